//! A real language model streams through the whole runtime: pieces while it still writes, kills and stops in the middle, two at once.
//!
//! Needs what `tests/real_model/run` fetches and builds, and is run by it. Leaves made-up answers, and what goes wrong with them, to
//! `models.rs`. Invariant: nothing here rests on how fast the model is; that it was in the middle of an answer is read from its server.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;
use std::process::Command;

use outlast_tests::http::Api;
use outlast_tests::model_server::{Part, Protocol, Stop, speak};
use outlast_tests::process::{Process, until};
use outlast_tests::terminal::{ESC, signal};
use outlast_tests::world::{Role, World};
use serde_json::{Value, json};

/// Tokens that an answer may have: some seconds' worth.
const TOKENS_MAX: u64 = 120;
/// What a model with this limit does not finish.
const STORY: &str = "Tell me a very long story about a lighthouse keeper and the sea.";

/// The model's server. It ends with the test.
struct RealModel {
    api: Api,
    _server: Process,
}

impl RealModel {
    fn start() -> RealModel {
        let given = |name: &str| {
            std::env::var_os(name).unwrap_or_else(|| panic!("{name} is not set: run tests/real_model/run"))
        };
        let mut command = Command::new(given("OUTLAST_REAL_MODEL_SERVER"));
        let mut server = Process::start(command.arg(given("OUTLAST_REAL_MODEL")));
        let line = server.line("its address", |line| line.contains("listening on "));
        RealModel { api: Api::at(line.trim_start_matches("listening on ")), _server: server }
    }

    /// Makes a world whose model this is.
    fn world(&self, world: World) -> World {
        world
            .with_variable("OUTLAST_MODEL_URL", &self.api.url("/v1"))
            .with_variable("OUTLAST_MODEL", "smollm2-135m")
            .with_variable("OUTLAST_MODEL_MAX_TOKENS", &TOKENS_MAX.to_string())
            .with_variable("OUTLAST_MODEL_OPTIONS", "{\"temperature\": 0}")
    }

    /// What the server says of its answers so far, in order of their requests.
    fn answers(&self) -> Vec<Value> {
        self.api.get("/answers").json().as_array().unwrap().clone()
    }

    /// How many tokens were made for an answer, if it is still being made.
    fn in_the_middle(&self, answer: usize) -> Option<u64> {
        let answers = self.answers();
        let of = answers.get(answer)?;
        of["end"].is_null().then(|| of["completion_tokens"].as_u64().unwrap()).filter(|tokens| *tokens > 0)
    }

    fn ends(&self) -> Vec<Value> {
        self.answers().iter().map(|answer| answer["end"].clone()).collect()
    }

    /// Asks the model itself, without Outlast.
    fn ask(&self, prompt: &str, fields: &Value) -> outlast_tests::http::Answer {
        let mut body = json!({"model": "smollm2-135m", "messages": [{"role": "user", "content": prompt}]});
        for (name, value) in fields.as_object().unwrap() {
            body[name] = value.clone();
        }
        self.api.post("/v1/chat/completions", &body)
    }

    /// What the model answers, asked by itself; an answer that its limit cut has the worker's mark.
    fn text(&self, prompt: &str) -> String {
        let answer = self.ask(prompt, &json!({"max_tokens": TOKENS_MAX})).json();
        let choice = &answer["choices"][0];
        let mark = if choice["finish_reason"] == "length" { "\n\n[cut at the token limit]" } else { "" };
        format!("{}{mark}", choice["message"]["content"].as_str().unwrap())
    }
}

fn say(world: &World, id: &str, text: &str) {
    let say = json!({"type": "Say", "value": {"text": text}, "id": id});
    assert_eq!(world.post("/v1/runs/r/messages", &say).status, 202);
}

fn idle(world: &World) {
    until("the model to have answered", || world.get("/v1/runs/r")["state"] == "Idle");
}

/// Who follows a run reads the answer while the model still writes it, piece by piece, each once and in order.
#[test]
#[ignore = "needs a real model: run tests/real_model/run"]
fn pieces_of_an_answer_arrive_while_it_is_written() {
    let model = RealModel::start();
    let world = model.world(World::with_flows());
    let (_server, api) = world.serve(&["flows/asked.flow"]);
    world.begin("Asked", "r", &json!({"prompt": STORY}));
    let mut heard = String::new();
    let mut written = BTreeSet::new();
    for frame in api.stream("r", None) {
        if frame.event == "partial" {
            let data: Value = serde_json::from_str(&frame.data).unwrap();
            assert_eq!(data["offset"], json!(heard.chars().count()), "{data}");
            heard.push_str(data["text"].as_str().unwrap());
            // At this very moment the model is still writing, and has written so much.
            written.extend(model.in_the_middle(0));
        }
    }
    assert!(written.len() >= 3, "pieces came when the model had written {written:?} tokens");
    let answer = world.outcome("r")["value"].as_str().unwrap().to_owned();
    assert!(!heard.is_empty() && answer.starts_with(&heard), "{heard:?} is no beginning of {answer:?}");
    assert_eq!(answer, model.text(STORY), "it is what the model says without Outlast");
    // What it took is what the model's server counted.
    let counted = model.answers()[0].clone();
    assert_eq!((&counted["end"], &counted["completion_tokens"]), (&json!("length"), &json!(TOKENS_MAX)));
    let tokens = world.get("/v1/runs/r")["tokens"].clone();
    assert_eq!(tokens, json!({"input": counted["prompt_tokens"], "output": TOKENS_MAX}));
}

/// Everything is killed in the middle of an answer: it is given again from its beginning, the same, and nothing else is done again.
#[test]
#[ignore = "needs a real model: run tests/real_model/run"]
fn an_answer_that_was_cut_by_a_kill_is_given_again_and_nothing_else() {
    let model = RealModel::start();
    let world = model.world(World::with_flows());
    let (mut server, _) = world.serve(&["flows/talk.flow"]);
    world.begin("Talk", "r", &json!({"task": "What is the capital of France?"}));
    idle(&world);
    say(&world, "m", STORY);
    until("the second answer to have begun", || model.in_the_middle(1).is_some());
    server.murder();
    world.kill(Role::Model);
    world.kill(Role::Tool);
    until("the model to be left alone", || model.ends()[1] == "dropped");

    let (_server, api) = world.serve(&[]);
    let (mut heard, mut idle_times) = (String::new(), 0);
    for frame in api.stream("r", None) {
        let data: Value = serde_json::from_str(&frame.data).unwrap();
        match frame.event.as_str() {
            // A runtime that knew nothing of the attempt begins with its first word.
            "partial" => {
                assert_eq!(data["offset"], json!(heard.chars().count()), "{data}");
                heard.push_str(data["text"].as_str().unwrap());
            }
            "state" if data["state"] == "Idle" => idle_times += 1,
            _ => {}
        }
        if idle_times == 2 {
            break;
        }
    }
    idle(&world);
    // The answer that was finished was not asked for again.
    assert_eq!(model.ends()[1], "dropped", "{:?}", model.answers());
    assert_eq!(model.ends().len(), 3, "{:?}", model.answers());
    assert_eq!(model.answers()[1]["prompt_tokens"], model.answers()[2]["prompt_tokens"]);
    let said: Vec<Value> = world
        .history("r")
        .iter()
        .filter(|event| event["kind"] == "done")
        .map(|event| event["value"]["text"].clone())
        .collect();
    assert!(!heard.is_empty() && said[1].as_str().unwrap().starts_with(&heard), "{heard:?}, {said:?}");

    // The same conversation without a kill has the same answer.
    world.begin("Talk", "calm", &json!({"task": "What is the capital of France?"}));
    until("the first answer", || world.get("/v1/runs/calm")["state"] == "Idle");
    let say = json!({"type": "Say", "value": {"text": STORY}, "id": "m"});
    assert_eq!(world.post("/v1/runs/calm/messages", &say).status, 202);
    let done =
        || world.history("calm").into_iter().filter(|event| event["kind"] == "done").collect::<Vec<_>>();
    until("the second answer", || done().len() == 2);
    assert_eq!(json!(said), done().iter().map(|event| event["value"]["text"].clone()).collect::<Value>());
}

/// Who reads an answer on a terminal when runtime and workers are killed sees that it was interrupted, and then all of it.
#[test]
#[ignore = "needs a real model: run tests/real_model/run"]
fn a_reader_sees_that_an_answer_was_cut_and_then_all_of_it() {
    let model = RealModel::start();
    let world = model.world(World::with_flows()).with_variable("NO_COLOR", "1");
    let whole = model.text(STORY);
    let begins = beginning(&whole);
    let mut server = world.host(&["flows/talk.flow"]);
    let mut chat = world.on_a_terminal("chat flows/talk.flow");
    chat.line("a prompt", |line| line.contains("say what is to be done"));
    chat.press(&format!("{STORY}\r"));
    chat.line("the beginning", |line| line.contains(&begins));
    chat.line("that it is being worked on", |line| line.contains("works; Esc stops"));
    assert!(model.in_the_middle(1).is_some(), "{:?}", model.answers());
    // The conversation takes over and starts workers of its own: those are not meant.
    let workers = [world.pids(Role::Model), world.pids(Role::Tool)].concat();
    server.murder();
    workers.into_iter().for_each(|pid| signal(pid, "KILL"));
    chat.line("the mark", |line| line.contains("(interrupted)"));
    chat.line("the beginning again", |line| line.contains(&begins));
    chat.line("an idle flow", |line| line.contains("listens"));
    assert_eq!(model.ends(), ["length", "dropped", "length"]);
}

/// Esc ends an answer in the model's server, not only on the screen; so does a run that is cancelled. Another answer follows.
#[test]
#[ignore = "needs a real model: run tests/real_model/run"]
fn stopping_in_the_middle_stops_the_model() {
    let model = RealModel::start();
    let world = model.world(World::with_flows()).with_variable("NO_COLOR", "1");
    let begins = beginning(&model.text(STORY));
    let mut chat = world.on_a_terminal("chat flows/talk.flow");
    chat.line("a prompt", |line| line.contains("say what is to be done"));
    chat.press(&format!("{STORY}\r"));
    chat.line("the beginning", |line| line.contains(&begins));
    chat.press(ESC);
    chat.line("the mark", |line| line.contains("(interrupted)"));
    until("the model to have stopped", || model.ends()[1] == "dropped");
    chat.press("Say hello.\r");
    until("the next answer", || model.ends().get(2).is_some_and(|end| end == "stop" || end == "length"));

    let world = model.world(World::with_flows());
    let _server = world.host(&["flows/talk.flow"]);
    world.begin("Talk", "r", &json!({"task": STORY}));
    until("the answer to have begun", || model.in_the_middle(3).is_some());
    assert_eq!(world.run(&["cancel", "r"]).code, Some(0));
    until("the model to have stopped", || model.ends()[3] == "dropped");
    for given_up in [1, 3] {
        let tokens = model.answers()[given_up]["completion_tokens"].as_u64().unwrap();
        assert!(tokens < TOKENS_MAX, "{tokens} tokens were made");
    }
}

/// Two conversations are answered at the same time, each as if it were alone.
#[test]
#[ignore = "needs a real model: run tests/real_model/run"]
fn two_conversations_at_once_do_not_mix() {
    let model = RealModel::start();
    let world = model.world(World::with_flows());
    let _server = world.host(&["flows/asked.flow"]);
    let prompts = [("a", STORY), ("b", "Explain in many words how bread is baked.")];
    for (run, prompt) in prompts {
        world.begin("Asked", run, &json!({"prompt": prompt}));
    }
    until("both answers to be in the making", || {
        (0..prompts.len()).all(|answer| model.in_the_middle(answer).is_some())
    });
    let said = prompts.map(|(run, _)| world.outcome(run)["value"].as_str().unwrap().to_owned());
    for ((run, prompt), said) in prompts.iter().zip(said) {
        assert_eq!(said, model.text(prompt), "{run}");
    }
}

/// What this model cannot do is told by its server as providers do, after one request, and the run says it.
#[test]
#[ignore = "needs a real model: run tests/real_model/run"]
fn what_the_model_cannot_do_is_told() {
    let model = RealModel::start();
    let world = model.world(World::with_examples());
    let _server = world.host(&["examples/agent.flow"]);
    world.begin("Agent", "r", &json!({"task": "What is in here?"}));
    idle(&world);
    let told = json!(world.history("r")).to_string();
    assert!(told.contains("BadRequest") && told.contains("does not support tools"), "{told}");

    let world = model.world(World::with_flows());
    let _server = world.host(&["flows/asked.flow"]);
    world.begin("Asked", "long", &json!({"prompt": "on and ".repeat(4_000)}));
    let outcome = world.outcome("long").to_string();
    assert!(outcome.contains("maximum context length") && outcome.contains("conversation"), "{outcome}");
    assert!(json!(world.history("long")).to_string().contains("ContextOverflow"));
    assert_eq!(model.answers(), [] as [Value; 0], "nothing was made");
}

/// The model that tests play speaks as the real one does: what its pieces say stands where it stands there.
#[test]
#[ignore = "needs a real model: run tests/real_model/run"]
fn the_played_model_speaks_as_the_real_one() {
    let model = RealModel::start();
    let fields = json!({"max_tokens": 8, "stream": true, "stream_options": {"include_usage": true}});
    let real = shapes(&model.ask(STORY, &fields).body);
    let parts = [Part::Text("Once upon a time".to_owned())];
    let played = shapes(&speak::pieces(Protocol::Chat, "m", &parts, Stop::Length).concat());
    for shape in &played {
        assert!(real.contains(shape), "the real model has nothing like {shape:?}: {real:#?}");
    }
    assert_eq!(real.last().map(Vec::as_slice), Some(&["[DONE]".to_owned()][..]));
    assert_eq!(real.last(), played.last());
}

/// The words with which an answer begins, as far as they are on the first row.
fn beginning(text: &str) -> String {
    text.lines().next().unwrap().chars().take(20).collect()
}

/// What the pieces of a stream say, each as the paths of what is not null.
fn shapes(stream: &str) -> Vec<Vec<String>> {
    fn paths(at: &str, value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Null => {}
            Value::Object(fields) => {
                fields.iter().for_each(|(name, value)| paths(&format!("{at}/{name}"), value, found));
            }
            Value::Array(items) => items.iter().for_each(|value| paths(&format!("{at}/0"), value, found)),
            Value::Bool(_) | Value::Number(_) | Value::String(_) => found.push(at.to_owned()),
        }
    }
    let mut shapes: Vec<Vec<String>> = Vec::new();
    for data in stream.lines().filter_map(|line| line.strip_prefix("data: ")) {
        let mut found = Vec::new();
        match serde_json::from_str(data) {
            Ok(value) => paths("", &value, &mut found),
            Err(_) => found.push(data.to_owned()),
        }
        if !shapes.contains(&found) {
            shapes.push(found);
        }
    }
    shapes
}
