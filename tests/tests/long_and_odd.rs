//! What is very long or oddly written, as people and other programs are shown it: cut between characters, bounded in memory, kept whole.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use outlast_tests::model_server::{KEY, ModelServer, Reply, messages};
use outlast_tests::process::until;
use outlast_tests::random::is_whole;
use outlast_tests::world::{Role, World};
use serde_json::{Value, json};

/// The most memory that a process has had, in MiB.
fn peak(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() >> 10
}

/// The text of each answer of a tool in a request.
fn answers(body: &Value) -> Vec<String> {
    let tools = messages(body).iter().filter(|message| message["role"] == "tool");
    tools.map(|message| message["content"].as_str().unwrap().to_owned()).collect()
}

/// Case LIM-04: commands print hundreds of megabytes, one line of twelve, and bytes that are no text. The model has the ends of each and where the
/// whole is; no process holds what went through it, and the conversation goes on. As a whole: 200 MB.
#[test]
fn outputs_of_hundreds_of_megabytes_are_bounded_and_named() {
    let megabytes = if is_whole() { 200 } else { 60 };
    let long = format!("seq -f 'line %012.0f of many, which all say the same' 1 {}", megabytes * 20_000);
    let model = ModelServer::start(move |body| match messages(body).last() {
        Some(last) if last["role"] == "user" && last["content"] == "go" => Reply::Calls(vec![
            ("a", "shell", json!({"command": long, "timeout": "5m"})),
            ("b", "shell", json!({"command": "head -c 12000000 /dev/zero | tr '\\0' x"})),
            ("c", "shell", json!({"command": "head -c 3000000 /dev/urandom"})),
        ]),
        Some(_) | None => Reply::Text("well".to_owned()),
    });
    let world = World::with_examples()
        .with_variable("OUTLAST_MODEL_URL", &model.url())
        .with_variable("OPENAI_API_KEY", KEY);
    let server = world.host(&["examples/agent.flow"]);
    let start =
        json!({"flow": "Agent", "id": "r", "input": {"task": "go"}, "permissions": {"allow": ["shell(*)"]}});
    assert_eq!(world.post("/v1/runs", &start).status, 201);
    until("the answer", || world.get("/v1/runs/r")["state"] == "Idle");
    assert_eq!(model.seen().faults, Vec::<String>::new());
    let told = answers(model.seen().bodies.last().unwrap());
    assert_eq!(told.len(), 3);
    for text in &told {
        assert!(text.len() < 100_000 && text.contains("left out"), "{}", text.len());
        assert!(text.contains("blob:"), "where the whole is: {}", &text[text.len() - 200..]);
    }
    assert!(
        told[0].contains("line 000000000001 ")
            && told[0].contains(&format!("line {:012} ", megabytes * 20_000))
    );
    assert!(told[1].starts_with("xxx") && told[2].contains("were not UTF-8"));
    let pids = world.pids(Role::Tool).into_iter().chain(world.pids(Role::Model)).chain([server.pid()]);
    for pid in pids {
        // It is the same for 60 MB as for 200: most is what the store has yet to write to its tables.
        assert!(peak(pid) < 600, "{} MiB", peak(pid));
    }
    let say = json!({"type": "Say", "value": {"text": "and now?"}, "id": "m"});
    assert_eq!(world.post("/v1/runs/r/messages", &say).status, 202);
    until("the next turn", || model.conversations().len() == 3);
}

/// Case LIM-02: wherever people are shown the beginning of a text, it is cut between characters; nothing ends, and the server goes on.
#[test]
fn texts_in_other_scripts_are_cut_between_characters_wherever_they_are_shown() {
    let world = World::with_flows().with_variable("OUTLAST_LOG", "trace");
    let mut server = world.host(&["flows/desk.flow", "flows/prints_much.flow"]);
    let odd = "👩‍👩‍👧日本é́e\u{301}\u{202e}ש";
    for shift in 0..8 {
        let text = format!("{}{}", "x".repeat(shift), odd.repeat(300));
        let run = format!("r{shift}");
        world.begin("Desk", &run, &json!({"topic": text}));
        let say =
            json!({"type": "Say", "value": {"text": text}, "id": text.chars().take(20).collect::<String>()});
        assert_eq!(world.post(&format!("/v1/runs/{run}/messages"), &say).status, 202);
        assert_eq!(world.post(&format!("/v1/runs/{run}/messages"), &json!({"type": "closed"})).status, 202);
        until("the question", || world.get(&format!("/v1/runs/{run}"))["waiting_for"]["kind"] == "question");
        for command in [&["show"][..], &["events"], &["explain"], &["audit"], &["result"], &["tree"]] {
            let end = world.run(&[command, &[run.as_str()]].concat());
            let told = format!("{}{}", end.stdout, end.stderr);
            assert!(end.code != Some(101) && !told.contains("panicked"), "{command:?}: {told}");
            assert!(!told.contains('\u{FFFD}'), "{command:?}, {shift}: {told}");
        }
    }
    for command in [&["runs"][..], &["doctor"], &["du"]] {
        let end = world.run(command);
        assert!(end.code == Some(0) && !end.stdout.contains('\u{FFFD}'), "{command:?}: {end:?}");
    }
    server.signal("TERM");
    let logged = server.finish();
    assert_eq!(logged.code, Some(0));
    assert!(!logged.stderr.contains('\u{FFFD}') && !logged.stderr.contains("panicked"), "{}", logged.stderr);
}
