//! What was shown is shown again, and what was paid is not paid again: ten turns of a model, seen by clients of every kind before a kill and
//! after it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use outlast_tests::http::{Api, Frame};
use outlast_tests::model_server::{KEY, ModelServer, Reply, messages};
use outlast_tests::process::until;
use outlast_tests::world::World;
use serde_json::{Value, json};

const TURNS: usize = 10;

/// Answers each turn by how many there were.
fn model() -> ModelServer {
    let said = |body: &Value| messages(body).iter().filter(|message| message["role"] == "user").count();
    ModelServer::start(move |body| Reply::Text(format!("this is answer {}", said(body))))
}

/// What a client that follows over HTTP sees from a place on, up to the end of the last turn.
fn over_http(api: &Api, after: &str, frames: usize) -> Vec<Frame> {
    let seen: Vec<Frame> = api.stream("r", Some(after)).take(frames).collect();
    assert!(seen.iter().all(|frame| frame.id.is_some() && frame.event != "partial"), "{seen:?}");
    seen
}

/// The same over JSON-RPC, as HTTP would show it.
fn over_rpc(world: &World, after: &str, frames: usize) -> Vec<Frame> {
    let mut rpc = world.start(&["rpc"]);
    let watch = json!({ "run": "r", "last_event_id": after });
    rpc.say(&json!({ "jsonrpc": "2.0", "id": 1, "method": "runs.watch", "params": watch }).to_string());
    let seen = (0..frames).map(|_| {
        let line = rpc.line("an event", |line| line.contains("runs.event"));
        let event = serde_json::from_str::<Value>(&line).unwrap()["params"].take();
        Frame {
            id: event["id"].as_str().map(str::to_owned),
            event: event["event"].as_str().unwrap().to_owned(),
            data: event["data"].to_string(),
        }
    });
    let seen = seen.collect();
    assert_eq!(rpc.finish().code, Some(0));
    seen
}

/// What a person sees who comes back, up to the last answer.
fn in_a_terminal(world: &World) -> Vec<String> {
    let mut chat = world.start(&["chat", "--resume", "r"]);
    let mut shown = Vec::new();
    chat.line("the last answer", |line| {
        shown.push(line.to_owned());
        line.contains(&format!("this is answer {TURNS}"))
    });
    chat.say("/quit");
    let left = chat.finish();
    assert_eq!(left.code, Some(0), "{left:?}");
    shown
}

/// Case RPL-09.
#[test]
fn ten_turns_are_shown_again_and_asked_once() {
    let model = model();
    let world = World::with_examples()
        .with_variable("OUTLAST_MODEL_PROVIDER", "openai")
        .with_variable("OUTLAST_MODEL_URL", &model.url())
        .with_variable("OUTLAST_MODEL_KEY_ENV", "MODEL_KEY")
        .with_variable("MODEL_KEY", KEY);
    let (mut server, mut api) = world.serve(&["examples/agent.flow"]);
    let input = json!({ "task": "turn 1", "max_turns": 20 });
    assert_eq!(api.post("/v1/runs", &json!({ "flow": "Agent", "id": "r", "input": input })).status, 201);
    let live = api.stream("r", Some("r/0.0"));
    for turn in 1..=TURNS {
        until("the end of the turn", || {
            world.get("/v1/runs/r")["state"] == "Idle" && model.seen().bodies.len() == turn
        });
        if turn < TURNS {
            let say = json!({ "type": "Say", "value": { "text": format!("turn {}", turn + 1) } });
            assert_eq!(api.post("/v1/runs/r/messages", &say).status, 202);
        }
    }
    let mut idle = 0;
    let mut whole: Vec<Frame> = Vec::new();
    for frame in live.filter(|frame| frame.id.is_some()) {
        idle += usize::from(frame.event == "state" && frame.data.contains("\"state\":\"Idle\""));
        whole.push(frame);
        if idle == TURNS {
            break;
        }
    }
    let emits = whole.iter().filter(|frame| frame.event == "emit").count();
    assert_eq!((idle, emits), (TURNS, TURNS), "{whole:?}");
    let shown = in_a_terminal(&world);
    let is_shown = |turn| shown.iter().any(|line| line.ends_with(&format!("this is answer {turn}")));
    assert!((1..=TURNS).all(is_shown), "{shown:?}");
    for life in 0..2 {
        for cut in [0, 1, whole.len() / 2, whole.len() - 1] {
            let after = cut.checked_sub(1).and_then(|at| whole[at].id.as_deref()).unwrap_or("r/0.0");
            let rest = &whole[cut..];
            assert_eq!(over_http(&api, after, rest.len()), rest, "{life}: after {after}");
            assert_eq!(over_rpc(&world, after, rest.len()), rest, "{life}: after {after}");
        }
        assert_eq!(in_a_terminal(&world), shown, "{life}");
        assert_eq!(model.seen().bodies.len(), TURNS, "{life}: no turn is asked again");
        server.murder();
        (server, api) = world.serve(&[]);
    }
    drop(server);
}
