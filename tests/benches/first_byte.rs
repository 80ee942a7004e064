//! How much later a streamed token reaches a client of `serve` than it left the provider, against a client that asks the provider itself.
//!
//! Run with `cargo build --release --workspace && cargo bench -p outlast-tests --bench first_byte`. Promise: less than 5 ms more.

#![expect(clippy::print_stdout, reason = "a benchmark is read on the terminal")]
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on has failed")]

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use outlast_tests::http::Api;
use outlast_tests::model_server::speak::pieces;
use outlast_tests::model_server::{Ending, KEY, ModelServer, Part, Protocol, Reply, Stop};
use outlast_tests::process::until;
use outlast_tests::world::World;
use serde_json::json;

const TURNS: usize = 200;

/// Milliseconds that may be added.
const PROMISE_MS: f64 = 5.0;

/// Holds the provider's answers back until somebody listens, and remembers when it let the last one go.
#[derive(Debug, Default)]
struct Gate {
    opened: Mutex<Option<Instant>>,
    changed: Condvar,
}

impl Gate {
    fn pass(&self) {
        let mut opened = self.opened.lock().unwrap();
        while opened.is_none() {
            opened = self.changed.wait(opened).unwrap();
        }
    }

    /// Lets one answer go; returns when.
    fn open(&self) -> Instant {
        let now = Instant::now();
        *self.opened.lock().unwrap() = Some(now);
        self.changed.notify_all();
        now
    }

    fn close(&self) {
        *self.opened.lock().unwrap() = None;
    }
}

/// Waits until the provider holds one more answer back.
fn asked(model: &ModelServer, before: usize) {
    until("the question to the model", || model.seen().bodies.len() > before);
}

/// Asks the provider itself; returns how long its first piece took.
fn directly(model: &ModelServer, gate: &Gate) -> Duration {
    let before = model.seen().bodies.len();
    let url = model.url();
    let address = url.trim_start_matches("http://").trim_end_matches("/v1");
    let body = json!({"model": "m", "stream": true, "stream_options": {"include_usage": true}, "messages": [{"role": "user", "content": "go"}]});
    let body = body.to_string();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {KEY}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    asked(model, before);
    let began = gate.open();
    let (mut text, mut piece) = (String::new(), [0; 4096]);
    while !text.contains("data:") {
        let read = stream.read(&mut piece).unwrap();
        assert!(read > 0, "the provider gave nothing: {text}");
        text.push_str(&String::from_utf8_lossy(&piece[..read]));
    }
    let took = began.elapsed();
    gate.close();
    took
}

/// Follows a run's stream; returns how long the first piece of its model's answer took.
fn through(api: &Api, model: &ModelServer, gate: &Gate, turn: usize) -> Duration {
    let before = model.seen().bodies.len();
    let id = format!("t{turn}");
    let start = json!({"flow": "Agent", "id": id, "input": {"task": "go"}});
    assert_eq!(api.post("/v1/runs", &start).status, 201);
    let mut frames = api.stream(&id, None);
    asked(model, before);
    // The stream tells where the run stands before it tells anything new.
    let _stands = frames.next().unwrap();
    let began = gate.open();
    let piece = frames.find(|frame| frame.event == "partial").unwrap();
    let took = began.elapsed();
    assert!(piece.data.contains("text"), "{piece:?}");
    gate.close();
    assert_eq!(api.post(&format!("/v1/runs/{id}/terminate"), &json!({})).status, 202);
    took
}

fn percentile(times: &[Duration], percent: usize) -> f64 {
    times[(times.len() - 1) * percent / 100].as_secs_f64() * 1_000.0
}

fn main() {
    let gate = Arc::new(Gate::default());
    let held = Arc::clone(&gate);
    let answer =
        pieces(Protocol::Chat, "m", &[Part::Text("Here is what there is to say.".to_owned())], Stop::End);
    // The beginning of an answer that goes on: of one that is over, the result comes first.
    let begun = answer[..answer.len() / 2].to_vec();
    let model = ModelServer::start(move |_| {
        held.pass();
        Reply::Stream(begun.clone(), Ending::Silence)
    });
    let world = World::with_examples()
        .with_variable("OUTLAST_MODEL_PROVIDER", "openai")
        .with_variable("OUTLAST_MODEL_URL", &model.url())
        .with_variable("OUTLAST_MODEL_KEY_ENV", "MODEL_KEY")
        .with_variable("MODEL_KEY", KEY);
    let (_server, api) = world.serve(&["examples/agent.flow"]);
    // The first turn starts the workers.
    through(&api, &model, &gate, TURNS);
    let mut direct: Vec<Duration> = (0..TURNS).map(|_| directly(&model, &gate)).collect();
    let mut whole: Vec<Duration> = (0..TURNS).map(|turn| through(&api, &model, &gate, turn)).collect();
    direct.sort_unstable();
    whole.sort_unstable();
    println!("first piece after it left the provider, ms, {TURNS} turns");
    println!("              p50     p99");
    for (name, times) in [("direct", &direct), ("through serve", &whole)] {
        println!("{name:<13} {:>5.2}   {:>5.2}", percentile(times, 50), percentile(times, 99));
    }
    let added = percentile(&whole, 50) - percentile(&direct, 50);
    println!("added at p50: {added:.2} ms; promise: less than {PROMISE_MS} ms");
}
