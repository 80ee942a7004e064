//! Secrets: tools have their values, and nothing that is stored, logged, exported or sent has them in any form.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::Path;

use outlast_tests::model_server::{KEY, ModelServer, Reply, messages};
use outlast_tests::world::World;
use serde_json::json;

/// Of an unusual shape: no prefix gives it away, and every form of it differs.
const CANARY: &str = r#"Kx7/pq+Zw "9m""#;

/// The canary in clear, and as base64 (also behind one and two other bytes), hexadecimal, an address, a form and JSON write it.
const FORMS: [&str; 9] = [
    CANARY,
    "S3g3L3BxK1p3ICI5bSI",
    "t4Ny9wcStadyAiOW0i",
    "LeDcvcHErWncgIjlt",
    "4b78372f70712b5a772022396d22",
    "4B78372F70712B5A772022396D22",
    "Kx7%2Fpq%2BZw%20%229m%22",
    "Kx7%2Fpq%2BZw+%229m%22",
    r#"Kx7/pq+Zw \"9m"#,
];

/// Says the canary in each form, and in pieces.
const SPEAK: &str = r#"
printf '%s' "$CANARY" > got
echo "plain $CANARY"; printf '%s' "$CANARY" | base64; printf 'x%s' "$CANARY" | base64; printf 'user:%s' "$CANARY" | base64 -w 7
printf '%s' "$CANARY" | od -An -v -tx1; echo 4B78372F70712B5A772022396D22
echo 'Kx7%2Fpq%2BZw%20%229m%22 Kx7%2Fpq%2BZw+%229m%22 "Kx7/pq+Zw \"9m\""'
printf 'Kx7/p' >&2; sleep 0.3; echo 'q+Zw "9m"' >&2
exit 3
"#;

/// Fails if a form stands in a text, written through or broken over lines.
fn clean(what: &str, bytes: &[u8]) {
    // Files of the store are mostly zeros.
    let told: Vec<u8> = bytes.iter().copied().filter(|byte| *byte != 0).collect();
    let unbroken: Vec<u8> = told.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
    for form in FORMS {
        let unspaced: String = form.split_whitespace().collect();
        for (text, form) in [(&told, form), (&unbroken, unspaced.as_str())] {
            assert!(!holds(text, form.as_bytes()), "{what} holds {form}");
        }
    }
}

fn holds(text: &[u8], form: &[u8]) -> bool {
    text.windows(form.len()).any(|window| window[0] == form[0] && window == form)
}

/// Fails if a form stands in any file of a directory; returns how many files there are.
fn clean_below(directory: &Path) -> usize {
    let mut files = 0;
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files += clean_below(&path);
        } else if path.is_file() {
            clean(&path.display().to_string(), &std::fs::read(&path).unwrap());
            files += 1;
        }
    }
    files
}

/// Case SEC-05, invariant 32: a command that has a secret tells it in every form, and only it and its files know.
#[test]
fn a_secret_that_a_command_tells_is_nowhere() {
    let model = ModelServer::start(|body| match messages(body).last() {
        Some(last) if last["role"] == "user" => Reply::Calls(vec![
            ("1", "shell", json!({"command": SPEAK})),
            ("2", "read", json!({"path": "vault"})),
            ("3", "grep", json!({"pattern": "Kx7|9m", "path": "vault"})),
        ]),
        Some(_) | None => Reply::Text("done".to_owned()),
    });
    let world = World::new()
        .with_variable("OUTLAST_MODEL_URL", &model.url())
        .with_variable("OPENAI_API_KEY", KEY)
        .with_variable("OUTLAST_LOG", "trace")
        .with_variable("CANARY", CANARY);
    let rules =
        "[permissions]\nallow = ['shell']\n[environment]\nvariables = ['CANARY']\nsecrets = ['CANARY']\n";
    world.write("outlast.toml", rules);
    world.write("vault", &format!("password = {CANARY}\n"));
    let mut server = world.host(&[]);
    let mut watching = world.start(&["run", "--task", "go", "--id", "r", "--output", "jsonl"]);
    let watched = watching.finish();
    assert_eq!(watched.code, Some(0), "{watched:?}");
    assert_eq!(world.file("got"), CANARY, "the command has the value itself");
    let told = model.conversations().pop().unwrap();
    let told: Vec<&str> =
        told.iter().filter(|m| m["role"] == "tool").filter_map(|m| m["content"].as_str()).collect();
    assert!(told[0].contains("plain [secret CANARY]") && told[0].contains("exit code 3"), "{told:?}");
    assert_eq!(told[0].matches("[secret CANARY]").count(), 10, "{told:?}");
    assert_eq!(told[1], "password = [secret CANARY]\n");
    assert_eq!(told[2], "(nothing found)", "a search is no way to guess it");
    clean("the output of run", format!("{watched:?}").as_bytes());
    for body in &model.seen().bodies {
        clean("a request to the model", body.to_string().as_bytes());
    }
    for command in
        [&["events", "r", "--json"][..], &["show", "r", "--json"], &["export", "r"], &["explain", "r"]]
    {
        let shown = world.run(command);
        clean(&format!("{command:?}"), format!("{}{}", shown.stdout, shown.stderr).as_bytes());
    }
    for path in ["/v1/runs/r", "/v1/runs/r/events?limit=1000", "/v1/runs/r/result", "/v1/status", "/v1/runs"]
    {
        clean(path, world.get(path).to_string().as_bytes());
    }
    // What the host and its workers wrote while it lived, at the level of everything.
    server.murder();
    let wrote = server.finish();
    assert!(wrote.stderr.len() > 1_000, "nothing was logged: {wrote:?}");
    clean("the logs", format!("{}{}", wrote.stdout, wrote.stderr).as_bytes());
    assert!(clean_below(&world.data()) > 3);
    // After the restart, in another run, the tool has it again.
    world.write("got", "");
    let again = world.run(&["run", "--task", "go", "--id", "s"]);
    assert_eq!((again.code, world.file("got").as_str()), (Some(0), CANARY), "{again:?}");
    clean_below(&world.data());
}

/// Case SEC-05: an activity of one's own is given a secret by name, and may tell it as a result, an error, a handle and bit by bit.
#[test]
fn a_secret_that_is_an_argument_is_known_to_the_worker_alone() {
    let world = World::with_flows().with_variable("OUTLAST_TEST_SECRET", CANARY);
    let mut server = world.host(&["--no-workers", "flows/told.flow"]);
    let worker = world.worker("w", 2);
    for (run, how) in [("answers", "answer"), ("fails", "fail")] {
        world.begin("Told", run, &json!({"how": how, "token": "OUTLAST_TEST_SECRET"}));
        assert_eq!(world.outcome(run)["value"], "it is [secret OUTLAST_TEST_SECRET]");
        assert_eq!(world.file("told"), CANARY);
        clean("the history", json!(world.history(run)).to_string().as_bytes());
    }
    world.begin("Told", "other", &json!({"how": "answer", "token": "HOME"}));
    let refused = world.outcome("other")["value"].to_string();
    assert!(refused.contains("HOME is none of the secrets that the worker was given"), "{refused}");
    server.murder();
    drop(worker);
    clean_below(&world.data());
}
