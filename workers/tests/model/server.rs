//! A model server that keeps what it was sent, refuses what providers refuse, and answers as a test says.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use http_body_util::channel::{Channel, Sender};
use outlast_workers::Json as Value;
use serde_json::json;

/// How the next request is answered.
pub(crate) enum Answer {
    /// A stream of these pieces, as they are, and its end.
    Stream(Vec<String>),
    /// The pieces, and then a broken connection.
    Broken(Vec<String>),
    /// The pieces, and then nothing for ever.
    Stalled(Vec<String>),
    /// The same piece for ever.
    Endless(String),
    /// A whole body with a status and headers.
    Plain(u16, Vec<(&'static str, &'static str)>, String),
}

#[derive(Default)]
pub(crate) struct Facts {
    pub(crate) answers: VecDeque<Answer>,
    pub(crate) bodies: Vec<Value>,
    pub(crate) keys: Vec<Option<String>>,
    open: Vec<Sender<Bytes, std::io::Error>>,
}

pub(crate) struct Server {
    facts: Arc<Mutex<Facts>>,
    pub(crate) url: String,
    serving: tokio::task::JoinHandle<()>,
}

impl Server {
    pub(crate) async fn start(answers: impl IntoIterator<Item = Answer>) -> Server {
        let facts =
            Arc::new(Mutex::new(Facts { answers: answers.into_iter().collect(), ..Facts::default() }));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let router = Router::new().route("/v1/chat/completions", post(complete)).with_state(facts.clone());
        let serving = tokio::spawn(async { axum::serve(listener, router).await.unwrap() });
        Server { facts, url, serving }
    }

    pub(crate) fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn complete(
    State(facts): State<Arc<Mutex<Facts>>>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Response {
    let answer = {
        let mut facts = facts.lock().unwrap();
        let key = headers.get("authorization").map(|key| key.to_str().unwrap().to_owned());
        facts.keys.push(key);
        facts.bodies.push(body.clone());
        facts.answers.pop_front()
    };
    if let Err(problem) = check(&body) {
        return (StatusCode::BAD_REQUEST, Json(json!({"error": {"message": problem}}))).into_response();
    }
    let Some(answer) = answer else { return StatusCode::NOT_IMPLEMENTED.into_response() };
    let (mut sender, channel) = Channel::<Bytes, std::io::Error>::new(1);
    match answer {
        Answer::Plain(status, headers, body) => {
            let mut response = (StatusCode::from_u16(status).unwrap(), body).into_response();
            response.headers_mut().remove("content-type");
            for (name, value) in headers {
                response.headers_mut().insert(name, value.parse().unwrap());
            }
            return response;
        }
        Answer::Stream(pieces) => {
            tokio::spawn(async move { send(&mut sender, pieces).await });
        }
        Answer::Broken(pieces) => {
            tokio::spawn(async move {
                send(&mut sender, pieces).await;
                sender.abort(std::io::Error::other("broken"));
            });
        }
        Answer::Stalled(pieces) => {
            tokio::spawn(async move {
                send(&mut sender, pieces).await;
                facts.lock().unwrap().open.push(sender);
            });
        }
        Answer::Endless(piece) => {
            let piece = Bytes::from(piece);
            tokio::spawn(async move { while sender.send_data(piece.clone()).await.is_ok() {} });
        }
    }
    ([("content-type", "text/event-stream")], Body::new(channel)).into_response()
}

async fn send(sender: &mut Sender<Bytes, std::io::Error>, pieces: Vec<String>) {
    for piece in pieces {
        // The client may have seen enough.
        let _gone = sender.send_data(piece.into()).await;
    }
}

/// The rules of strict providers.
fn check(body: &Value) -> Result<(), String> {
    let messages = body["messages"].as_array().ok_or("no messages")?;
    let mut ids = BTreeSet::new();
    let mut open: Vec<String> = Vec::new();
    let mut before = "";
    for (at, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().ok_or("no role")?;
        if role != "tool" && !open.is_empty() {
            return Err(format!("message {at}: calls {open:?} have no result"));
        }
        if role == "system" && at > 0 {
            return Err("a system message is not the first".to_owned());
        }
        if (role == "user" || role == "assistant" && before != "tool") && role == before {
            return Err(format!("message {at}: two {role} messages in a row"));
        }
        let text = message["content"].as_str();
        if text.is_some_and(|text| text.trim().is_empty()) {
            return Err(format!("message {at}: empty text"));
        }
        let calls = message["tool_calls"].as_array();
        if message["content"].is_null() && calls.is_none_or(Vec::is_empty) {
            return Err(format!("message {at}: nothing in it"));
        }
        for call in calls.into_iter().flatten() {
            let id = call["id"].as_str().unwrap_or_default();
            if id.is_empty() || !ids.insert(id.to_owned()) {
                return Err(format!("message {at}: the id {id:?} is not unique"));
            }
            let args = call["function"]["arguments"].as_str().unwrap_or_default();
            if !serde_json::from_str::<Value>(args).is_ok_and(|args| args.is_object()) {
                return Err(format!("message {at}: the arguments {args} are no object"));
            }
            let name = call["function"]["name"].as_str().unwrap_or_default();
            if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c)) {
                return Err(format!("message {at}: the name {name:?}"));
            }
            open.push(id.to_owned());
        }
        if role == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            let place = open
                .iter()
                .position(|call| call == id)
                .ok_or(format!("message {at}: a result of no call"))?;
            open.remove(place);
        }
        before = role;
    }
    let tools = body["tools"].to_string();
    let refused = ["$schema", "$ref", "\"const\"", "\"type\":["].iter().find(|word| tools.contains(**word));
    match refused {
        Some(word) => Err(format!("tools: {word} is not supported")),
        None if open.is_empty() => Ok(()),
        None => Err(format!("calls {open:?} have no result")),
    }
}
