//! Workers that die or lie.

use std::process::Command;
use std::time::{Duration, Instant};

use outlast_tests::ledger::Gate;
use outlast_tests::process::{Process, until};
use outlast_tests::world::{Role, World};
use serde_json::{Value, json};

/// Far above what noticing a dead process takes, far below every deadline of the flows here (30 minutes) and the lease (30 s).
const SECONDS: Duration = Duration::from_secs(15);

/// Case WRK-01: the loss of a worker shows at once; what it had in hand follows its class, what waited for it goes elsewhere.
#[test]
fn tasks_of_a_killed_worker_go_on_elsewhere_within_seconds() {
    let world = World::with_flows();
    let _server = world.host(&["--no-workers", "flows/repeatable.flow"]);
    let mut first = world.worker("first", 1);
    world.close("a", Gate::Before);
    for name in ["a", "b", "c"] {
        world.begin("Repeatable", name, &json!({"name": name}));
        if name == "a" {
            world.reached("a", Gate::Before);
        }
    }
    first.murder();
    let begin = Instant::now();
    world.open("a", Gate::Before);
    let second = world.worker("second", 1);
    for name in ["a", "b", "c"] {
        assert_eq!(world.outcome(name)["kind"], "done");
        let lines = world.lines(name);
        assert_eq!((lines.len(), lines[0].pid), (1, u64::from(second.pid())), "{name}");
    }
    assert!(begin.elapsed() < SECONDS, "it took {:?}", begin.elapsed());
}

/// Case WRK-01: a stock worker that is killed is started again, and its command is not run twice.
#[test]
fn a_killed_tool_worker_leaves_its_command_in_doubt_within_seconds() {
    let world = World::with_flows();
    world.write("gate", "");
    let mut run = world.start(&["run", "flows/gated_shell.flow", "--id", "r", "--output", "json"]);
    until("the command to run", || world.work().join("reached").exists());
    let begin = Instant::now();
    world.kill(Role::Tool);
    let end = run.finish();
    assert!(begin.elapsed() < SECONDS, "it took {:?}", begin.elapsed());
    let result: Value = serde_json::from_str(&end.stdout).unwrap();
    assert_eq!(result["outcome"]["value"], json!({"type": "InDoubt", "why": "unknown"}), "{end:?}");
    std::fs::remove_file(world.work().join("gate")).unwrap();
    assert_eq!(world.file("shell.log"), "", "the command died with its worker");
}

/// A worker in a container has process ids of its own, which name other processes here.
#[test]
fn a_process_id_is_believed_of_the_process_that_calls_alone() {
    let world = World::with_flows();
    let _server = world.host(&["--no-workers", "flows/held_once.flow"]);
    let mut other = Process::start(Command::new("sleep").arg("600"));
    let offer = json!({
        "worker": "w", "boot": "b", "queues": ["test"], "concurrency": 1, "activities": [{"name": "ledger"}],
        "pid": other.pid(),
    });
    let session = world.post("/v1/workers/register", &offer).body["session"].clone();
    world.begin("HeldOnce", "mine", &json!({"name": "mine"}));
    let poll = json!({"session": session, "max": 1, "wait_ms": 10_000});
    let token = world.post("/v1/workers/poll", &poll).body["tasks"][0]["token"].clone();
    other.murder();
    // Whoever dies after it is noticed after it.
    world.close("b", Gate::Before);
    let mut second = world.worker("second", 1);
    world.begin("HeldOnce", "b", &json!({"name": "b"}));
    world.reached("b", Gate::Before);
    second.murder();
    until("the loss of the second", || world.history("b").iter().any(|event| event["kind"] == "lost"));
    let result = json!({"token": token, "kind": "done", "value": "k"});
    let report = json!({"session": session, "results": [result]});
    let answer = world.post("/v1/workers/report", &report);
    assert_eq!(answer.body["results"][0]["status"], "accepted", "{answer:?}");
    assert_eq!(world.outcome("mine")["value"], "k");
}

/// Case WRK-04: a worker that is told to leave ends what it has, and nobody does it beside it; what is new goes to another.
#[test]
fn a_worker_that_leaves_ends_what_it_has_alone() {
    let world = World::with_flows();
    let _server = world.host(&["--no-workers", "flows/repeatable.flow"]);
    let mut first = world.worker("first", 2);
    world.close("a", Gate::Before);
    world.begin("Repeatable", "a", &json!({"name": "a"}));
    world.reached("a", Gate::Before);
    let second = world.worker("second", 2);
    first.signal("TERM");
    world.open("a", Gate::Before);
    assert_eq!(world.outcome("a")["kind"], "done");
    let lines = world.lines("a");
    assert_eq!((lines.len(), lines[0].pid), (1, u64::from(first.pid())), "{lines:?}");
    assert_eq!(first.finish().code, Some(0));
    world.begin("Repeatable", "c", &json!({"name": "c"}));
    assert_eq!(world.outcome("c")["kind"], "done");
    assert_eq!(world.lines("c")[0].pid, u64::from(second.pid()));
}

/// Case WRK-06: only the token that was given out counts, and only while its operation is open.
#[test]
fn reports_under_wrong_tokens_change_nothing() {
    let world = World::with_flows();
    let _server = world.host(&["--no-workers", "flows/repeatable.flow"]);
    let session = world.post(
        "/v1/workers/register",
        &json!({
            "worker": "w", "boot": "b", "queues": ["test"], "concurrency": 2,
            "activities": [{"name": "repeatable"}],
        }),
    );
    assert_eq!(session.status, 200, "{}", session.body);
    let session = session.body["session"].clone();
    let report = |token: &Value, value: &str| {
        let result = json!({"token": token, "kind": "done", "value": value});
        let answer = world.post("/v1/workers/report", &json!({"session": session, "results": [result]}));
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.body["results"][0]["status"].as_str().unwrap().to_owned()
    };
    let take = |run: &str| {
        world.begin("Repeatable", run, &json!({"name": run}));
        let polled =
            world.post("/v1/workers/poll", &json!({"session": session, "max": 1, "wait_ms": 10_000}));
        polled.body["tasks"][0]["token"].clone()
    };
    let ended = take("ended");
    assert_eq!(report(&ended, "first"), "accepted");
    let open = take("open");
    let before = world.history("open");
    // The end of a token proves the rest.
    let mut forged = open.as_str().unwrap().to_owned();
    let at = forged.len() - 8;
    forged.replace_range(at..=at, if forged[at..].starts_with('A') { "B" } else { "A" });
    for token in [json!(""), json!("nonsense"), json!(forged), json!("A".repeat(10_000))] {
        assert_eq!(report(&token, "lie"), "unknown_token", "{token}");
    }
    assert_eq!(report(&ended, "first"), "accepted", "the same report again");
    assert_eq!(report(&ended, "second"), "superseded");
    assert_eq!(world.history("open"), before);
    assert_eq!(world.outcome("ended")["value"], "first");
    assert_eq!(report(&open, "truth"), "accepted");
    assert_eq!(world.outcome("open")["value"], "truth");
    let stranger = json!({"session": "nobody", "results": []});
    assert_eq!(world.post("/v1/workers/report", &stranger).status, 404);
}
