//! Open questions across kills: those that were answered stay answered, the others stay open, and nothing beside them is done again.

use outlast_tests::model_server::{KEY, ModelServer, Reply, last_text, messages};
use outlast_tests::process::until;
use outlast_tests::socket::Answer;
use outlast_tests::world::World;
use serde_json::{Value, json};

fn answer(world: &World, run: &str, question: &Value, choice: &str) -> Answer {
    let body = json!({ "question": question["id"], "choice": choice, "shown": question["shown"] });
    world.post(&format!("/v1/runs/{run}/answers"), &body)
}

/// Case APR-04: of three questions one is answered; after a kill it is not asked again, and two are open.
#[test]
fn an_answered_question_does_not_come_back() {
    let world = World::with_flows();
    let mut server = world.host(&["--no-workers", "flows/several_asks.flow"]);
    let _worker = world.worker("w", 4);
    world.begin("SeveralAsks", "r", &json!({ "names": ["a", "b", "c"] }));
    let questions = world.questions("r", 3);
    assert_eq!(answer(&world, "r", &questions[1], "approve").status, 200);
    until("b to be done", || world.lines("b").len() == 1);
    server.murder();
    server = world.host(&["--no-workers"]);
    let left = world.questions("r", 2);
    assert_eq!([&left[0]["id"], &left[1]["id"]], [&questions[0]["id"], &questions[2]["id"]]);
    let again = answer(&world, "r", &questions[1], "reject");
    assert_eq!((again.status, &again.body["error"]["code"]), (409, &json!("already_decided")));
    assert_eq!(answer(&world, "r", &left[0], "approve").status, 200);
    assert_eq!(answer(&world, "r", &left[1], "reject").status, 200);
    assert_eq!(world.outcome("r")["value"], json!(["done", "done", "left"]));
    assert_eq!(["a", "b", "c"].map(|name| world.lines(name).len()), [1, 1, 0]);
    drop(server);
}

/// Cases APR-05, APR-06: what ran beside a question is not run again when that is answered after a kill; and each answer of a review
/// counts for its own round.
#[test]
fn a_review_takes_as_many_rounds_as_answers_and_repeats_nothing_else() {
    let world = World::with_flows();
    let mut server = world.host(&["--no-workers", "flows/reviewed.flow"]);
    let _worker = world.worker("w", 4);
    world.begin("Reviewed", "r", &json!({ "name": "r" }));
    let question = world.questions("r", 1)[0].clone();
    until("the notice to be sent", || world.lines("r-notice").len() == 1);
    let mut asked = vec![question["id"].clone()];
    assert_eq!(answer(&world, "r", &question, "approve").status, 200);
    for choice in ["reject", "reject", "reject", "approve"] {
        server.murder();
        server = world.host(&["--no-workers"]);
        let question = world.questions("r", 1)[0].clone();
        assert!(!asked.contains(&question["id"]), "each round has a question of its own");
        asked.push(question["id"].clone());
        assert_eq!(answer(&world, "r", &question, choice).status, 200);
        assert_eq!(answer(&world, "r", &question, "approve").status, 409, "not for the next round");
    }
    assert_eq!(world.outcome("r")["value"], "published");
    let lines = ["r-notice", "r-draft", "r-published"].map(|name| world.lines(name).len());
    assert_eq!(lines, [1, 4, 1]);
    drop(server);
}

/// A model that asks for the command that it is told, and then says that it is done.
fn obedient() -> ModelServer {
    ModelServer::start(|body| match messages(body).last() {
        Some(last) if last["role"] == "user" => {
            Reply::Call("shell", json!({ "command": last_text(body, "user") }))
        }
        Some(_) | None => Reply::Text("done".to_owned()),
    })
}

fn world_of(model: &ModelServer) -> World {
    World::with_examples()
        .with_variable("OUTLAST_MODEL_URL", &model.url())
        .with_variable("OPENAI_API_KEY", KEY)
}

fn say(world: &World, run: &str, text: &str) {
    let message = json!({ "type": "Say", "value": { "text": text } });
    assert_eq!(world.post(&format!("/v1/runs/{run}/messages"), &message).status, 202);
}

fn is_idle(world: &World, run: &str) {
    until("the agent to be idle", || world.get(&format!("/v1/runs/{run}"))["state"] == "Idle");
}

/// Case APR-09: a grant holds for what it says, in its run, also after a kill; another command and a fork are asked about.
#[test]
fn what_is_always_allowed_is_that_command_in_that_run() {
    let model = obedient();
    let world = world_of(&model);
    let mut server = world.host(&["examples/agent.flow"]);
    world.begin("Agent", "r", &json!({ "task": "echo a >> a.log" }));
    let question = world.questions("r", 1)[0].clone();
    let grant = json!({
        "question": question["id"], "choice": "approve", "shown": question["shown"], "always": "shell(echo a >> a.log)",
    });
    assert_eq!(world.post("/v1/runs/r/answers", &grant).status, 200);
    is_idle(&world, "r");
    let granted = world.history("r").into_iter().find(|event| event["kind"] == "configured").unwrap();
    assert!(
        granted.to_string().contains("shell(echo a >> a.log)"),
        "the grant says what it allows: {granted}"
    );
    say(&world, "r", "echo a >> a.log; cat secret");
    let question = world.questions("r", 1)[0].clone();
    assert_eq!(answer(&world, "r", &question, "reject").status, 200);
    is_idle(&world, "r");
    server.murder();
    server = world.host(&[]);
    say(&world, "r", "echo a >> a.log");
    until("the second run of it", || world.file("a.log") == "a\na\n");
    is_idle(&world, "r");
    let forked = world.post("/v1/runs/r/fork", &json!({ "id": "f" }));
    assert_eq!(forked.status, 201, "{}", forked.body);
    say(&world, "f", "echo a >> a.log");
    assert_eq!(world.questions("f", 1).len(), 1, "a fork has no grants");
    assert_eq!(world.file("a.log"), "a\na\n");
    drop(server);
}

/// Case APR-10: a turn that is stopped takes its question along; a late answer runs nothing, and the next message works.
#[test]
fn a_question_of_a_stopped_turn_is_gone() {
    let model = obedient();
    let world = world_of(&model);
    let _server = world.host(&["examples/agent.flow"]);
    world.begin("Agent", "r", &json!({ "task": "echo a >> a.log" }));
    let question = world.questions("r", 1)[0].clone();
    assert_eq!(world.post("/v1/runs/r/messages", &json!({ "type": "Stop", "value": {} })).status, 202);
    is_idle(&world, "r");
    assert_eq!(world.get("/v1/runs/r")["questions"], json!([]));
    let late = answer(&world, "r", &question, "approve");
    assert!((400..500).contains(&late.status), "{}", late.body);
    say(&world, "r", "echo b >> b.log");
    let next = world.questions("r", 1)[0].clone();
    assert_eq!(answer(&world, "r", &next, "approve").status, 200);
    until("the next command", || world.file("b.log") == "b\n");
    assert_eq!(world.file("a.log"), "");
}
