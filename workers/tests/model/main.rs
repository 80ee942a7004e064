//! The model worker against a server with the habits, rules and faults of real ones, in each protocol.

#![expect(clippy::unwrap_used, reason = "a broken test bench should stop the test")]

mod conversations;
mod faults;
mod settings;
mod shapes;

use std::sync::Arc;

use outlast_protocol::profile::{Endpoint, Model, Prices};
use outlast_tests::model_server::{ModelServer, Part, Protocol};
use outlast_workers::sdk::{Activity, Done, Failure, Task, TaskContext};
use outlast_workers::{Json, model};
use serde_json::json;

/// A variable that is surely set: its value serves as the key.
const KEY_VARIABLE: &str = "CARGO_MANIFEST_DIR";

/// Where a test's model is.
fn endpoint(server: &ModelServer) -> Endpoint {
    server.seen().key = Some(std::env::var(KEY_VARIABLE).unwrap());
    Endpoint {
        url: server.url(),
        name: "m-1".to_owned(),
        key_env: Some(KEY_VARIABLE.to_owned()),
        idle_ms: Some(10_000),
        prices: Some(Prices {
            input: "1".to_owned(),
            output: "2".to_owned(),
            cached: Some("0.1".to_owned()),
            cache_written: None,
        }),
        ..Endpoint::default()
    }
}

fn config(protocol: Protocol, endpoint: Endpoint) -> Model {
    match protocol {
        Protocol::Chat => Model::Openai(endpoint),
        Protocol::Responses => Model::OpenaiResponses(endpoint),
        Protocol::Anthropic => Model::Anthropic(endpoint),
    }
}

fn activity(config: &Model, name: &str) -> Arc<dyn Activity> {
    let activities = model::activities(config).unwrap();
    activities.into_iter().find(|activity| activity.offer().name == name).unwrap()
}

fn context(input: Json) -> TaskContext {
    TaskContext::alone(Task { input, op: "9.0".to_owned(), key: "r/9.0".to_owned(), ..Task::default() })
}

async fn run(config: &Model, name: &str, input: Json) -> Result<Done, Failure> {
    activity(config, name).run(context(input)).await
}

/// Asks for a turn.
async fn ask(protocol: Protocol, server: &ModelServer, messages: &[Json]) -> Result<Done, Failure> {
    run(&config(protocol, endpoint(server)), "model", json!({"messages": messages, "schemas": [schema()]}))
        .await
}

async fn ask_hello(protocol: Protocol, server: &ModelServer) -> Result<Done, Failure> {
    ask(protocol, server, &[user("hello")]).await
}

/// A tool whose schema is full of what providers refuse.
fn schema() -> Json {
    json!({"name": "read", "description": "Reads.", "input": {
        "$schema": "x", "type": "object", "$defs": {"M": {"const": 1}},
        "properties": {"path": {"type": ["string", "null"]}, "m": {"$ref": "#/$defs/M"}}}})
}

fn user(text: &str) -> Json {
    json!({"role": "user", "text": text, "parts": []})
}

fn answer(id: &str, text: &str) -> Json {
    let result = json!({"id": id, "text": text, "ok": true});
    json!({"role": "tool", "text": text, "parts": [{"type": "ToolAnswer", "result": result}]})
}

fn text(text: &str) -> Part {
    Part::Text(text.to_owned())
}

fn thought(text: &str) -> Part {
    Part::Thought(text.to_owned())
}

fn call(id: &str, args: &str) -> Part {
    Part::Call(id.to_owned(), "read".to_owned(), args.to_owned())
}
