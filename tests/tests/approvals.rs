//! People's decisions: each counts for what was shown, once, and the first one recorded wins.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::Barrier;

use outlast_tests::model_server::{KEY, ModelServer, Reply, messages};
use outlast_tests::process::{Process, until};
use outlast_tests::random::repeats;
use outlast_tests::socket::Answer;
use outlast_tests::world::World;
use serde_json::{Value, json};

/// A model that asks for two commands in one turn, and then says that it is done.
fn two_commands() -> ModelServer {
    let call = |id: &'static str| (id, "shell", json!({"command": format!("echo {id} >> {id}.log")}));
    let calls = vec![call("a"), call("b")];
    ModelServer::start(move |body| match messages(body).last() {
        Some(last) if last["role"] == "user" => Reply::Calls(calls.clone()),
        Some(_) | None => Reply::Text("done".to_owned()),
    })
}

/// Makes a world whose model is this one.
fn world_of(model: &ModelServer) -> World {
    World::with_examples()
        .with_variable("OUTLAST_MODEL_URL", &model.url())
        .with_variable("OPENAI_API_KEY", KEY)
}

/// Starts the built-in agent, which then has two questions open.
fn two_questions(model: &ModelServer) -> (World, Process, Vec<Value>) {
    let world = world_of(model);
    let server = world.host(&["examples/agent.flow"]);
    world.begin("Agent", "r", &json!({"task": "two commands, please"}));
    let questions = world.questions("r", 2);
    (world, server, questions)
}

/// Returns the question about the command of call `id`.
fn about<'a>(questions: &'a [Value], id: &str) -> &'a Value {
    let log = format!("{id}.log");
    questions.iter().find(|question| question["show"].to_string().contains(&log)).unwrap()
}

fn answer(world: &World, run: &str, question: &Value, choice: &str) -> Answer {
    let body =
        json!({"question": question["id"], "choice": choice, "shown": question["shown"], "note": "so be it"});
    world.post(&format!("/v1/runs/{run}/answers"), &body)
}

/// Cases APR-02, MOD-01: of two questions of one turn each answer reaches its own, also when the runtime is killed in between; and the
/// model is told of both in the order of its calls.
#[test]
fn two_approvals_of_one_turn_are_not_mixed_up() {
    for kills in [false, true] {
        let model = two_commands();
        let (world, mut server, questions) = two_questions(&model);
        assert_ne!(questions[0]["id"], questions[1]["id"]);
        assert_eq!(answer(&world, "r", about(&questions, "b"), "approve").status, 200);
        if kills {
            server.murder();
            server = world.host(&[]);
            assert_eq!(world.questions("r", 1)[0]["id"], about(&questions, "a")["id"]);
        }
        assert_eq!(answer(&world, "r", about(&questions, "a"), "reject").status, 200);
        let message = json!({"type": "closed", "value": {}});
        until("the agent to be idle", || world.get("/v1/runs/r")["state"] == "Idle");
        assert_eq!(world.post("/v1/runs/r/messages", &message).status, 202);
        assert_eq!(world.outcome("r")["value"]["text"], "done");
        assert_eq!(
            (world.file("a.log"), world.file("b.log")),
            (String::new(), "b\n".to_owned()),
            "kills: {kills}"
        );
        let conversations = model.conversations();
        assert_eq!((conversations.len(), model.seen().faults.clone()), (2, Vec::new()), "one request a turn");
        let results: Vec<&Value> = conversations[1].iter().filter(|m| m["role"] == "tool").collect();
        assert_eq!((&results[0]["tool_call_id"], &results[1]["tool_call_id"]), (&json!("a"), &json!("b")));
        assert!(results[0]["content"].as_str().unwrap().contains("so be it"), "{results:?}");
        drop(server);
    }
}

/// Case APR-03: an answer that names no question is refused while two are open, and says which.
#[test]
fn an_unaddressed_answer_is_refused_while_two_questions_are_open() {
    let model = two_commands();
    let (world, _server, questions) = two_questions(&model);
    let before = world.history("r");
    let refused = world.post("/v1/runs/r/answers", &json!({"choice": "approve"}));
    assert!((400..500).contains(&refused.status), "{}", refused.body);
    let said = refused.body.to_string();
    for question in &questions {
        assert!(said.contains(question["id"].as_str().unwrap()), "{said}");
    }
    let by_command = world.run(&["answer", "r", "approve"]);
    assert_ne!(by_command.code, Some(0), "{by_command:?}");
    assert_eq!(world.history("r"), before);
    assert_eq!(world.questions("r", 2), questions);
}

/// Case APR-07: of two answers in one moment the first recorded one wins, the other caller is told so, and it stays so.
#[test]
fn of_two_answers_at_once_one_wins_and_the_other_is_told() {
    let world = World::with_flows();
    let mut server = world.host(&["--no-workers", "flows/approved_once.flow"]);
    let _worker = world.worker("w", 4);
    let mut decided = Vec::new();
    for round in 0..repeats(25) {
        for choices in [["approve", "approve"], ["approve", "reject"]] {
            let run = format!("{}-{round}", choices[1]);
            world.begin("ApprovedOnce", &run, &json!({"name": run}));
            let question = world.questions(&run, 1)[0].clone();
            let answers = at_once(&world, &run, &question, choices);
            let won: Vec<usize> = (0..2).filter(|at| answers[*at].status == 200).collect();
            assert_eq!(won.len(), 1, "{answers:?}");
            let (choice, other) = (choices[won[0]], &answers[1 - won[0]]);
            assert_eq!((other.status, &other.body["error"]["code"]), (409, &json!("already_decided")));
            assert!(other.body.to_string().contains(choice), "the winner is named: {}", other.body);
            decided.push((run, choice));
        }
    }
    for restarted in [false, true] {
        for (run, choice) in &decided {
            let expected = if *choice == "approve" { ("Happened", 1) } else { ("LeftAlone", 0) };
            let found = (world.outcome(run)["value"]["type"].clone(), world.lines(run).len());
            assert_eq!(found, (json!(expected.0), expected.1), "{run}, restarted: {restarted}");
        }
        if !restarted {
            server.murder();
            server = world.host(&["--no-workers"]);
        }
    }
    drop(server);
}

fn at_once(world: &World, run: &str, question: &Value, choices: [&'static str; 2]) -> Vec<Answer> {
    let barrier = Barrier::new(choices.len());
    std::thread::scope(|scope| {
        let threads = choices.map(|choice| {
            let barrier = &barrier;
            scope.spawn(move || {
                barrier.wait();
                answer(world, run, question, choice)
            })
        });
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}
