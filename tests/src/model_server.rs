//! A language model behind HTTP, as providers offer it: streams answers, refuses requests that break their rules, keeps what it was sent.
//!
//! Leaves what is answered to the test. Invariant: a request that a strict provider would refuse is refused here and remembered, so a
//! test sees it even if the refusal was retried or passed over.

use std::collections::BTreeSet;
use std::io::{BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use crate::http::read_head;

/// What the model answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// Text, sent word by word.
    Text(String),
    /// A call of a tool, with its arguments.
    Call(&'static str, Value),
    /// Several calls at once: id, tool, arguments.
    Calls(Vec<(&'static str, &'static str, Value)>),
    /// An error with this status.
    Error(u16),
}

/// What the server was sent.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The bodies, in order of arrival.
    pub bodies: Vec<Value>,
    /// What was wrong with them, if anything was.
    pub faults: Vec<String>,
}

/// A running server; it ends with the test's process.
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
}

/// The key that every request must carry.
pub const KEY: &str = "sk-test-0123456789";

type Answering = Arc<dyn Fn(&Value) -> Reply + Send + Sync>;

impl ModelServer {
    /// Starts a server that answers by this function of the request's body.
    ///
    /// # Panics
    /// If there is no free port.
    #[must_use]
    pub fn start(answer: impl Fn(&Value) -> Reply + Send + Sync + 'static) -> ModelServer {
        let bound = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr().map(|address| (l, address)));
        let (listener, address) =
            bound.unwrap_or_else(|error| panic!("no port for the model server: {error}"));
        let seen = Arc::new(Mutex::new(Seen::default()));
        let (answer, facts): (Answering, _) = (Arc::new(answer), Arc::clone(&seen));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (answer, facts) = (Arc::clone(&answer), Arc::clone(&facts));
                // A client that goes away while it is answered is its own business.
                std::thread::spawn(move || drop(serve(stream, &answer, &facts)));
            }
        });
        ModelServer { address, seen }
    }

    /// Returns what to set `OUTLAST_MODEL_URL` to.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Returns the messages of every request so far.
    #[must_use]
    pub fn conversations(&self) -> Vec<Vec<Value>> {
        self.seen().bodies.iter().map(|body| messages(body).to_vec()).collect()
    }

    /// Returns what was sent so far.
    pub fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the text of the last message of a role; empty if there is none.
#[must_use]
pub fn last_text(body: &Value, role: &str) -> String {
    let mut messages = body["messages"].as_array().into_iter().flatten();
    let last = messages.rfind(|message| message["role"] == role);
    last.and_then(|message| message["content"].as_str()).unwrap_or_default().to_owned()
}

/// Returns a request's messages.
#[must_use]
pub fn messages(body: &Value) -> &[Value] {
    body["messages"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Returns how many messages of a role a request has.
#[must_use]
pub fn count(body: &Value, role: &str) -> usize {
    let messages = body["messages"].as_array().into_iter().flatten();
    messages.filter(|message| message["role"] == role).count()
}

fn serve(stream: TcpStream, answer: &Answering, seen: &Mutex<Seen>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (first, headers) = read_head(&mut reader);
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut bytes = vec![0; length];
    reader.read_exact(&mut bytes)?;
    let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let authorized = headers.get("authorization").is_some_and(|key| *key == format!("Bearer {KEY}"));
    let fault = if first != "POST /v1/chat/completions HTTP/1.1" {
        Some((404, format!("nothing is at {first:?}")))
    } else if !authorized {
        Some((401, "the key is wrong".to_owned()))
    } else {
        check(&body).err().map(|fault| (400, fault))
    };
    {
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.faults.extend(fault.iter().map(|(_, text)| text.clone()));
        seen.bodies.push(body.clone());
    }
    match fault.map_or_else(|| answer(&body), |(status, _)| Reply::Error(status)) {
        Reply::Error(status) => {
            let error = json!({"error": {"message": format!("refused with {status}")}}).to_string();
            let head =
                format!("HTTP/1.1 {status} Refused\r\nconnection: close\r\ncontent-type: application/json");
            write!(&stream, "{head}\r\ncontent-length: {}\r\n\r\n{error}", error.len())
        }
        Reply::Text(text) => {
            stream_out(&stream, text.split_inclusive(' ').map(|word| json!({"content": word})), "stop")
        }
        Reply::Calls(calls) => {
            let whole = calls.iter().enumerate().map(|(at, (id, name, arguments))| {
                let function = json!({"name": name, "arguments": arguments.to_string()});
                json!({"index": at, "id": id, "type": "function", "function": function})
            });
            let whole: Vec<Value> = whole.collect();
            stream_out(&stream, [json!({ "tool_calls": whole })], "tool_calls")
        }
        Reply::Call(name, arguments) => {
            // The id is unique in the conversation because every call before has its result in it.
            let id = format!("call_{}", count(&body, "tool"));
            let (arguments, mut pieces) = (arguments.to_string(), Vec::new());
            let (start, end) = arguments.split_at(arguments.len() / 2);
            let begin = json!({"index": 0, "id": id, "type": "function", "function": {"name": name, "arguments": start}});
            pieces.push(json!({"tool_calls": [begin]}));
            pieces.push(json!({"tool_calls": [{"index": 0, "function": {"arguments": end}}]}));
            stream_out(&stream, pieces, "tool_calls")
        }
    }
}

/// Streams an answer in pieces, then why it ended, what it took, and the farewell.
fn stream_out(
    mut stream: &TcpStream,
    pieces: impl IntoIterator<Item = Value>,
    reason: &str,
) -> std::io::Result<()> {
    write!(stream, "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\n\r\n")?;
    let mut send = |piece: &Value| write!(stream, "data: {piece}\n\n").and_then(|()| stream.flush());
    for delta in pieces {
        send(&json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]}))?;
    }
    send(&json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}))?;
    send(&json!({"choices": [], "usage": {"prompt_tokens": 20, "completion_tokens": 10}}))?;
    write!(stream, "data: [DONE]\n\n")
}

/// The rules of strict providers.
fn check(body: &Value) -> Result<(), String> {
    if body["stream"] != true || body["model"].as_str().unwrap_or_default().is_empty() {
        return Err("a named model and a stream are expected".to_owned());
    }
    let messages = messages(body);
    let (mut ids, mut open) = (BTreeSet::new(), Vec::new());
    let mut before = "";
    for (at, message) in messages.iter().enumerate() {
        let wrong = |what: &str| Err(format!("message {at}: {what}: {message}"));
        let role = message["role"].as_str().unwrap_or_default();
        let text = message["content"].as_str().unwrap_or_default();
        match role {
            "system" if at > 0 => return wrong("a system message that is not the first"),
            "system" | "user" | "assistant" if !open.is_empty() => {
                return wrong("calls before have no result");
            }
            "user" if before == "user" || text.trim().is_empty() => {
                return wrong("a second user message, or an empty one");
            }
            "system" | "user" => {}
            "assistant" => {
                let calls = message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
                if calls.is_empty() && text.trim().is_empty() {
                    return wrong("nothing in it");
                }
                for call in calls {
                    let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
                    if !serde_json::from_str(arguments).is_ok_and(|arguments: Value| arguments.is_object()) {
                        return wrong("arguments that are no object");
                    }
                    let id = call["id"].as_str().unwrap_or_default();
                    if !ids.insert(id) {
                        return wrong("an id that was there before");
                    }
                    open.push(id);
                }
            }
            "tool" => {
                let id = message["tool_call_id"].as_str().unwrap_or_default();
                let Some(place) = open.iter().position(|call: &&str| *call == id) else {
                    return wrong("a result of no call");
                };
                open.remove(place);
            }
            _ => return wrong("a role that nobody knows"),
        }
        before = role;
    }
    if open.is_empty() && before != "assistant" {
        Ok(())
    } else {
        Err("there is nothing to answer".to_owned())
    }
}
