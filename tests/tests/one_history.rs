//! One run, driven in each of the three modes with the same words: its history is the same, but for times, names and who it was.

use outlast_tests::process::until;
use outlast_tests::world::World;
use serde_json::{Value, json};

const TASK: &str = "count the lines";

/// The history of the only run of a world, without what tells one run from another.
fn history(world: &World) -> Vec<Value> {
    let run = world.json(&["runs", "--json"])["items"][0]["id"].clone();
    let mut events = world.json(&["events", run.as_str().unwrap_or_default(), "--json"])["items"].clone();
    for event in events.as_array_mut().into_iter().flatten() {
        for name in ["time", "run", "seed", "by", "worker", "config"] {
            event.as_object_mut().map(|fields| fields.remove(name));
        }
    }
    serde_json::from_value(events).unwrap_or_default()
}

fn talked() -> Vec<Value> {
    let world = World::new();
    let mut chat = world.start(&["chat"]);
    chat.say(TASK);
    let line = chat.line("the run", |line| line.contains("run agent-"));
    chat.line("the question", |line| line.contains("Run shell?"));
    chat.say("yes");
    chat.line("the answer", |line| line.contains("ran a command"));
    let _left = chat.finish();
    let id = line.split_whitespace().find(|word| word.starts_with("agent-")).unwrap_or_default();
    assert_eq!(world.run(&["send", id, "closed"]).code, Some(0));
    assert_eq!(world.run(&["result", id, "--wait", "1m"]).code, Some(0));
    history(&world)
}

fn in_a_batch() -> Vec<Value> {
    let world = World::new();
    assert_eq!(world.run(&["run", "--task", TASK, "--id", "b"]).code, Some(3));
    assert_eq!(world.run(&["answer", "b", "approve"]).code, Some(0));
    assert_eq!(world.run(&["run", "--id", "b"]).code, Some(0));
    history(&world)
}

fn over_http() -> Vec<Value> {
    let world = World::with_examples();
    let (_host, api) = world.serve(&["examples/agent.flow"]);
    world.begin("Agent", "h", &json!({ "task": TASK }));
    let question = world.questions("h", 1)[0]["id"].clone();
    let answer = json!({ "question": question, "choice": "approve" });
    assert_eq!(api.post("/v1/runs/h/answers", &answer).status, 200);
    until("the end of the turn", || world.get("/v1/runs/h")["waiting_for"]["kind"] == "message");
    let closed = json!({ "type": "closed", "value": {} });
    assert_eq!(api.post("/v1/runs/h/messages", &closed).status, 202);
    assert_eq!(world.outcome("h")["kind"], "done");
    history(&world)
}

#[test]
fn a_run_has_the_same_history_in_every_mode() {
    let histories = [talked(), in_a_batch(), over_http()];
    let kinds = |events: &[Value]| events.iter().map(|event| event["kind"].clone()).collect::<Vec<_>>();
    assert!(histories[0].len() > 4, "{:?}", histories[0]);
    for other in &histories[1..] {
        assert_eq!(kinds(&histories[0]), kinds(other));
        // What the command found differs with the directory; what was asked, and of what, does not.
        for (one, other) in histories[0].iter().zip(other) {
            let facts = |event: &Value| {
                ["n", "kind", "op", "activity", "attempt", "choice", "type", "input"]
                    .map(|name| event[name].clone())
            };
            assert_eq!(facts(one), facts(other));
        }
    }
}
