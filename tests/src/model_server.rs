//! A language model behind HTTP, as providers offer it: chat completions, responses and Anthropic messages. It streams answers,
//! refuses requests that break its rules, misbehaves as a test says, and keeps what it was sent.
//!
//! Leaves what is answered to the test, the rules to [`rules`] and the wording to [`speak`]. Invariant: a request that a strict
//! provider would refuse is refused here and remembered, so a test sees it even if the refusal was retried or passed over.

use std::collections::BTreeMap;
use std::io::{BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde_json::{Value, json};

use crate::http::read_head;
use crate::process::until;

mod rules;
pub mod speak;

/// A language of providers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// OpenAI's chat completions.
    Chat,
    /// OpenAI's responses.
    Responses,
    /// Anthropic's messages.
    Anthropic,
}

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
    /// Parts, and why no more come.
    Says(Vec<Part>, Stop),
    /// An answer with this status, these headers and this body.
    Plain(u16, Vec<(&'static str, String)>, String),
    /// A stream of these pieces, as they are, and how it goes on.
    Stream(Vec<String>, Ending),
}

/// A part of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// Text.
    Text(String),
    /// A thought, which is signed where providers sign.
    Thought(String),
    /// A call: id, tool, and arguments as the model writes them.
    Call(String, String, String),
}

/// Why an answer stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It is whole.
    End,
    /// It reached the limit of tokens.
    Length,
    /// The provider withholds it.
    Refused,
}

/// How a stream goes on behind its pieces.
#[derive(Clone, Debug, PartialEq)]
pub enum Ending {
    /// It ends, as HTTP does.
    Close,
    /// The connection breaks.
    Break,
    /// Nothing comes any more, and the connection stays.
    Silence,
    /// This piece comes for ever.
    Forever(String),
    /// These pieces follow when this file is gone, and it ends as HTTP does.
    Held(PathBuf, Vec<String>),
}

/// What the server was sent.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The bodies, in order of arrival.
    pub bodies: Vec<Value>,
    /// The headers of each, their names in lower case.
    pub headers: Vec<BTreeMap<String, String>>,
    /// When each came.
    pub times: Vec<Instant>,
    /// What was wrong with them, if anything was.
    pub faults: Vec<String>,
    /// The key that requests must carry, if it is not [`KEY`].
    pub key: Option<String>,
    /// What was thought before each call, by the call's id, after the model's name: it must come back with the call.
    thoughts: BTreeMap<String, (String, String)>,
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

    /// Starts a server that gives these answers in turn, and then none.
    #[must_use]
    pub fn giving(replies: impl IntoIterator<Item = Reply>) -> ModelServer {
        let replies: Mutex<Vec<Reply>> = Mutex::new(replies.into_iter().collect());
        ModelServer::start(move |_| {
            let mut replies = replies.lock().unwrap_or_else(PoisonError::into_inner);
            if replies.is_empty() { Reply::Error(501) } else { replies.remove(0) }
        })
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

impl Protocol {
    /// All of them.
    pub const ALL: [Protocol; 3] = [Protocol::Chat, Protocol::Responses, Protocol::Anthropic];

    /// Returns what to set `OUTLAST_MODEL_PROVIDER` to.
    #[must_use]
    pub fn provider(self) -> &'static str {
        match self {
            Protocol::Chat => "openai",
            Protocol::Responses => "openai-responses",
            Protocol::Anthropic => "anthropic",
        }
    }

    fn at(first: &str) -> Option<Protocol> {
        match first {
            "POST /v1/chat/completions HTTP/1.1" => Some(Protocol::Chat),
            "POST /v1/responses HTTP/1.1" => Some(Protocol::Responses),
            "POST /v1/messages HTTP/1.1" => Some(Protocol::Anthropic),
            _ => None,
        }
    }

    /// Whether a request carries the key as this protocol wants it.
    fn admits(self, headers: &BTreeMap<String, String>, key: &str) -> bool {
        match self {
            Protocol::Chat | Protocol::Responses => {
                headers.get("authorization").is_some_and(|sent| *sent == format!("Bearer {key}"))
            }
            Protocol::Anthropic => {
                headers.get("x-api-key").is_some_and(|sent| sent == key)
                    && headers.contains_key("anthropic-version")
            }
        }
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
    let protocol = Protocol::at(&first);
    let fault = {
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        let fault = match protocol {
            None => Some((404, format!("nothing is at {first:?}"))),
            Some(protocol) if !protocol.admits(&headers, seen.key.as_deref().unwrap_or(KEY)) => {
                Some((401, "the key is wrong".to_owned()))
            }
            Some(protocol) => rules::check(protocol, &body, &seen.thoughts).err().map(|fault| (400, fault)),
        };
        seen.faults.extend(fault.iter().map(|(_, text)| text.clone()));
        seen.bodies.push(body.clone());
        seen.headers.push(headers);
        seen.times.push(Instant::now());
        fault
    };
    let protocol = protocol.unwrap_or(Protocol::Chat);
    if let Some((status, fault)) = fault {
        return refuse(&stream, status, &format!("refused with {status}: {fault}"));
    }
    let (parts, stop) = match answer(&body) {
        Reply::Error(status) => return refuse(&stream, status, &format!("refused with {status}")),
        Reply::Plain(status, headers, body) => return plain(&stream, status, &headers, &body),
        Reply::Stream(pieces, ending) => return stream_out(&stream, &pieces, &ending),
        Reply::Text(text) => (vec![Part::Text(text)], Stop::End),
        Reply::Calls(calls) => {
            let call = |(id, name, arguments): (&str, &str, Value)| {
                Part::Call(id.to_owned(), name.to_owned(), arguments.to_string())
            };
            (calls.into_iter().map(call).collect(), Stop::End)
        }
        Reply::Call(name, arguments) => {
            // The id is unique in the conversation because every call before has its result in it.
            let id =
                format!("call_{}", speak::heard(&body).iter().filter(|(role, _)| role == "tool").count());
            (vec![Part::Call(id, name.to_owned(), arguments.to_string())], Stop::End)
        }
        Reply::Says(parts, stop) => (parts, stop),
    };
    let model = body["model"].as_str().unwrap_or_default();
    remember(&parts, model, &mut seen.lock().unwrap_or_else(PoisonError::into_inner).thoughts);
    stream_out(&stream, &speak::pieces(protocol, model, &parts, stop), &Ending::Close)
}

/// Notes which thought stands before which call.
fn remember(parts: &[Part], model: &str, thoughts: &mut BTreeMap<String, (String, String)>) {
    let mut thought = None;
    for part in parts {
        match part {
            Part::Thought(text) => thought = Some(text),
            Part::Call(id, ..) => {
                thoughts.extend(thought.map(|thought| (id.clone(), (model.to_owned(), thought.clone()))));
            }
            Part::Text(_) => {}
        }
    }
}

fn refuse(stream: &TcpStream, status: u16, why: &str) -> std::io::Result<()> {
    let error = json!({"error": {"message": why}}).to_string();
    plain(stream, status, &[("content-type", "application/json".to_owned())], &error)
}

fn plain(
    mut stream: &TcpStream,
    status: u16,
    headers: &[(&'static str, String)],
    body: &str,
) -> std::io::Result<()> {
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let head = format!("HTTP/1.1 {status} Answered\r\nconnection: close\r\n{headers}");
    write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len())
}

/// Streams pieces, each as a chunk of its own.
fn stream_out(mut stream: &TcpStream, pieces: &[String], ending: &Ending) -> std::io::Result<()> {
    let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream";
    write!(stream, "{head}\r\ntransfer-encoding: chunked\r\n\r\n")?;
    let mut send = |piece: &str| {
        if piece.is_empty() {
            return Ok(());
        }
        write!(stream, "{:x}\r\n{piece}\r\n", piece.len()).and_then(|()| stream.flush())
    };
    for piece in pieces {
        send(piece)?;
    }
    match ending {
        Ending::Close => write!(stream, "0\r\n\r\n"),
        Ending::Break => Ok(()),
        Ending::Silence => {
            // The client ends it.
            stream.read(&mut [0]).map(drop)
        }
        Ending::Forever(piece) => loop {
            send(piece)?;
        },
        Ending::Held(gate, pieces) => {
            until("the gate of the model to be open", || !gate.exists());
            pieces.iter().try_for_each(|piece| send(piece))?;
            write!(stream, "0\r\n\r\n")
        }
    }
}
