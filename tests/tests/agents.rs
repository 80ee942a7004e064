//! What a language model is sent after processes died while its tools ran.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use outlast_tests::model_server::{KEY, ModelServer, Reply, messages};
use outlast_tests::process::{Process, until};
use outlast_tests::world::{Role, World};
use serde_json::{Value, json};

/// A command that says that it has begun, waits while there is a gate, and then leaves a line.
fn command(id: &str) -> Value {
    let script = format!(
        "echo {id} >> begun.log; while test -e {id}.gate; do sleep 0.01; done; echo {id} >> ledger.log; echo done-{id}"
    );
    json!({ "command": script })
}

/// A model that asks for the commands `ids` when it is told to go, and repeats what it was told at last.
fn asks_for(ids: &'static [&'static str]) -> ModelServer {
    ModelServer::start(move |body| match messages(body).last() {
        Some(last) if last["role"] == "user" && last["content"].to_string().contains("go") => {
            Reply::Calls(ids.iter().map(|id| (*id, "shell", command(id))).collect())
        }
        Some(last) => Reply::Text(format!("heard: {}", last["content"].as_str().unwrap_or_default())),
        None => Reply::Text("nothing".to_owned()),
    })
}

/// Makes a world whose model is this one.
fn world_of(model: &ModelServer) -> World {
    World::with_examples()
        .with_variable("OUTLAST_MODEL_URL", &model.url())
        .with_variable("OPENAI_API_KEY", KEY)
}

fn begin(world: &World) {
    let start =
        json!({"flow": "Agent", "id": "r", "input": {"task": "go"}, "permissions": {"allow": ["shell(*)"]}});
    let answer = world.post("/v1/runs", &start);
    assert_eq!(answer.status, 201, "{}", answer.body);
}

/// Starts a tool worker of the run's environment that works on one task at a time.
fn one_at_a_time(world: &World, kind: &str, concurrency: &str) -> Process {
    let profile = world.get("/v1/runs/r")["profile"].as_str().unwrap().to_owned();
    world.start(&["worker", kind, "--profile", &profile, "--concurrency", concurrency])
}

fn idle(world: &World) {
    until("the agent to be idle", || world.get("/v1/runs/r")["state"] == "Idle");
}

/// Lets a command go on; one that died with its worker does not.
fn open_gate(world: &World, id: &str) {
    std::fs::remove_file(world.work().join(format!("{id}.gate"))).unwrap();
}

fn ledger(world: &World, id: &str) -> usize {
    world.file("ledger.log").lines().filter(|line| *line == id).count()
}

/// Case REC-03: of a turn's three calls one is done, one is in the middle, one waits; then everything is killed.
#[test]
fn a_batch_of_tool_calls_half_done_goes_on_with_the_rest() {
    let model = asks_for(&["a", "b", "c"]);
    let world = world_of(&model);
    let mut server = world.host(&["--no-workers", "examples/agent.flow"]);
    world.write("b.gate", "");
    begin(&world);
    let _workers = [one_at_a_time(&world, "model", "1"), one_at_a_time(&world, "tool", "1")];
    until("b to run", || world.file("begun.log").contains('b'));
    assert_eq!(world.file("begun.log"), "a\nb\n", "the third one waits");
    server.murder();
    for role in [Role::Model, Role::Tool] {
        world.kill(role);
    }
    let _server = world.host(&[]);
    idle(&world);
    open_gate(&world, "b");
    let lines = ["a", "b", "c"].map(|id| ledger(&world, id));
    assert_eq!(lines, [1, 0, 1], "b was begun and must not be run again unasked");
    let conversations = model.conversations();
    assert_eq!(
        (conversations.len(), model.seen().faults.clone()),
        (2, Vec::new()),
        "the finished turn is not asked for again"
    );
    let results: Vec<&Value> = conversations[1].iter().filter(|message| message["role"] == "tool").collect();
    let ids: Vec<&str> = results.iter().map(|result| result["tool_call_id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["a", "b", "c"]);
    assert!(results[0]["content"].as_str().unwrap().contains("done-a"), "{results:?}");
    assert!(results[1]["content"].as_str().unwrap().contains("unknown"), "{results:?}");
    assert!(results[2]["content"].as_str().unwrap().contains("done-c"), "{results:?}");
}

/// Case MOD-01: a call whose tool was killed has one answer, so the conversation goes on.
#[test]
fn a_conversation_goes_on_after_its_tool_was_killed() {
    for victims in [&[Role::Runtime][..], &[Role::Tool], &[Role::Runtime, Role::Tool]] {
        let model = asks_for(&["a"]);
        let world = world_of(&model);
        let mut server = world.host(&["examples/agent.flow"]);
        world.write("a.gate", "");
        begin(&world);
        until("the tool to run", || world.file("begun.log").contains('a'));
        for victim in victims {
            world.kill(*victim);
        }
        if victims.contains(&Role::Runtime) {
            server.murder();
            server = world.host(&[]);
        }
        let survived = !victims.contains(&Role::Tool);
        if survived {
            open_gate(&world, "a");
        }
        idle(&world);
        let say = json!({"type": "Say", "value": {"text": "and now?"}, "id": "m"});
        assert_eq!(world.post("/v1/runs/r/messages", &say).status, 202);
        until("the next turn", || model.conversations().len() == 3);
        idle(&world);
        assert_eq!(model.seen().faults.clone(), Vec::<String>::new(), "{victims:?}");
        let last = model.conversations().pop().unwrap();
        let answers = last.iter().filter(|message| message["role"] == "tool").count();
        assert_eq!(
            (answers, &last[last.len() - 1]["content"]),
            (1, &json!("and now?")),
            "{victims:?}: {last:?}"
        );
        assert_eq!(ledger(&world, "a"), usize::from(survived), "{victims:?}");
        drop(server);
    }
}

/// Case MOD-01: stopping a turn by message leaves a conversation that goes on.
#[test]
fn a_conversation_goes_on_after_its_turn_was_stopped() {
    let model = asks_for(&["a", "b"]);
    let world = world_of(&model);
    let _server = world.host(&["examples/agent.flow"]);
    world.write("b.gate", "");
    begin(&world);
    until("a to be done and b to run", || world.file("begun.log").contains('b') && ledger(&world, "a") == 1);
    let send = |kind: &str, value: Value| {
        let answer = world.post("/v1/runs/r/messages", &json!({"type": kind, "value": value, "id": kind}));
        assert_eq!(answer.status, 202, "{}", answer.body);
    };
    send("Stop", json!({}));
    idle(&world);
    send("Say", json!({"text": "what happened?"}));
    until("the next turn", || model.conversations().len() == 2);
    idle(&world);
    let last = model.conversations().pop().unwrap();
    let answers: Vec<&str> =
        last.iter().filter(|m| m["role"] == "tool").map(|m| m["tool_call_id"].as_str().unwrap()).collect();
    assert_eq!((answers, model.seen().faults.clone()), (vec!["a", "b"], Vec::new()), "{last:?}");
    assert_eq!(ledger(&world, "b"), 0, "the stopped command was killed");
}
