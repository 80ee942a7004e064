//! What the server answers to requests that do not fit: a typed error, whoever asks and whatever they send.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use outlast_protocol::Code;
use outlast_protocol::requests::{Answer, Deploy, FileText, Send, Start};
use outlast_protocol::run::{Frame, FrameKind};
use outlast_runtime::client::{Address, Client, ClientError, Wanted};
use outlast_runtime::engine::{Engine, Options};
use outlast_runtime::http::{Admission, Listener, Served, Server, Token};
use outlast_runtime::limits::{CONNECTIONS_MAX, CONNECTIONS_SHARE};
use outlast_store::{MemoryStore, Store};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};

struct World {
    dir: tempfile::TempDir,
    server: Server,
    loopback: std::net::SocketAddr,
    guarded: std::net::SocketAddr,
}

impl World {
    async fn new() -> World {
        let dir = tempfile::tempdir().unwrap();
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let engine = Engine::open(Arc::clone(&store), Options::default()).await.unwrap();
        let any = "127.0.0.1:0".parse().unwrap();
        let unix = Listener::unix(&dir.path().join("socket")).unwrap();
        let loopback = Listener::tcp(any, Admission::default()).await.unwrap();
        let guarded =
            Listener::tcp(any, Admission { token: Some(Token::new("secret")), stored: false }).await.unwrap();
        let addresses = (loopback.address().unwrap(), guarded.address().unwrap());
        let (opened, profile, scripted, access_log) = (Value::Null, None, false, None);
        let served = Served { engine, store, opened, profile, scripted, access_log };
        let server = Server::start(served, vec![unix, loopback, guarded]);
        World { dir, server, loopback: addresses.0, guarded: addresses.1 }
    }

    fn socket(&self) -> std::path::PathBuf {
        self.dir.path().join("socket")
    }
}

/// Sends text as it is and returns the status and the body of the answer.
async fn exchange(mut stream: impl AsyncRead + AsyncWrite + Unpin, request: &[u8]) -> (u16, Value) {
    // A server may refuse a body before it has read all of it; what counts is its answer.
    let _sent = stream.write_all(request).await;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {answer:?}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap_or_else(|_| json!(body)))
}

async fn over_socket(socket: &Path, request: &[u8]) -> (u16, Value) {
    exchange(UnixStream::connect(socket).await.unwrap(), request).await
}

fn post(path: &str, kind: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

fn get(path: &str, headers: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nconnection: close\r\n{headers}\r\n").into_bytes()
}

const JSON: &str = "application/json";

#[tokio::test]
async fn requests_that_do_not_fit_get_typed_errors() {
    let world = World::new().await;
    let deep = "[".repeat(100_000);
    let long = format!("/v1/runs/{}", "x".repeat(5_000));
    let local = "host: localhost\r\n";
    for (what, request, status, code) in [
        ("not json", post("/v1/runs", JSON, b"{"), 422, "invalid"),
        ("not utf-8", post("/v1/runs", JSON, b"{\"flow\": \"\xff\"}"), 422, "invalid"),
        ("two values", post("/v1/runs", JSON, b"{} {}"), 422, "invalid"),
        ("empty", post("/v1/runs", JSON, b""), 422, "invalid"),
        ("too deep", post("/v1/runs", JSON, deep.as_bytes()), 422, "invalid"),
        ("unknown field", post("/v1/runs", JSON, br#"{"flow": "A", "extra": 1}"#), 422, "invalid"),
        (
            "a field twice",
            post("/v1/runs", JSON, br#"{"flow": "A", "input": {"n": 1, "n": 2}}"#),
            422,
            "invalid",
        ),
        ("a list of fields", post("/v1/runs", JSON, br#" ["A", {}, "r"]"#), 422, "invalid"),
        ("a list of nothing", post("/v1/runs/a/fork", JSON, b"[null, null]"), 422, "invalid"),
        ("a list for nothing", post("/v1/runs/a/cancel", JSON, b"[]"), 422, "invalid"),
        ("wrong type", post("/v1/runs", JSON, br#"{"flow": 1}"#), 422, "invalid"),
        ("plain text", post("/v1/runs", "text/plain", br#"{"flow": "A"}"#), 422, "invalid"),
        ("a form", post("/v1/runs/a/cancel", "application/x-www-form-urlencoded", b""), 422, "invalid"),
        ("unknown field in nothing", post("/v1/runs/a/cancel", JSON, br#"{"a": 1}"#), 422, "invalid"),
        ("too large", post("/v1/runs", JSON, &vec![b' '; 1024 * 1024 + 1]), 413, "too_large"),
        ("no such path", get("/v2", local), 404, "not_found"),
        ("no such method", get("/v1/runs/a/cancel", local), 405, "method_not_allowed"),
        ("id with a slash", get("/v1/runs/a%2Fb", local), 422, "invalid"),
        ("id that climbs", get("/v1/runs/..%2f..%2fx", local), 422, "invalid"),
        ("id of dots", get("/v1/runs/..", local), 422, "invalid"),
        ("id with nul", get("/v1/runs/a%00", local), 422, "invalid"),
        ("id that is not utf-8", get("/v1/runs/%ff", local), 422, "invalid"),
        ("id too long", get(&long, local), 422, "invalid"),
        ("unknown parameter", get("/v1/runs?colour=red", local), 422, "invalid"),
        ("unknown status", get("/v1/runs?status=lost", local), 422, "invalid"),
        ("wait without a unit", get("/v1/runs/a/result?wait=30", local), 422, "invalid"),
        ("after that is no number", get("/v1/runs/a/events?after=-1", local), 422, "invalid"),
        ("control without a session", get("/v1/workers/control", local), 422, "invalid"),
    ] {
        let (found, body) = over_socket(&world.socket(), &request).await;
        assert_eq!((found, body["error"]["code"].as_str()), (status, Some(code)), "{what}: {body}");
        assert!(body["error"]["message"].as_str().is_some_and(|text| !text.is_empty()), "{what}: {body}");
    }
    world.server.stop().await;
}

#[tokio::test]
async fn web_pages_and_strangers_are_refused_on_tcp() {
    let world = World::new().await;
    let (loopback, guarded) = (world.loopback, world.guarded);
    let here = format!("host: {loopback}\r\n");
    let there = format!("host: {guarded}\r\n");
    let with_token = format!("{there}authorization: Bearer secret\r\n");
    for (what, to, headers, status) in [
        ("a local program", loopback, here.clone(), 200),
        ("a page of its own", loopback, format!("{here}origin: http://{loopback}\r\n"), 200),
        ("a foreign page", loopback, format!("{here}origin: https://attacker.test\r\n"), 403),
        ("a page without an origin", loopback, format!("{here}origin: null\r\n"), 403),
        ("a rebound name", loopback, "host: attacker.test\r\n".to_owned(), 403),
        ("no token", guarded, there.clone(), 401),
        ("a wrong token", guarded, format!("{there}authorization: Bearer secrets\r\n"), 401),
        ("the token", guarded, with_token.clone(), 200),
        ("the token, by a foreign page", guarded, format!("{with_token}origin: http://a.test\r\n"), 403),
    ] {
        let stream = TcpStream::connect(to).await.unwrap();
        let (found, body) = exchange(stream, &get("/v1/status", &headers)).await;
        assert_eq!(found, status, "{what}: {body}");
    }
    for path in ["/v1/doctor", "/v1/profiles/a"] {
        let stream = TcpStream::connect(loopback).await.unwrap();
        let (found, body) = exchange(stream, &get(path, &here)).await;
        assert_eq!(found, 403, "{path} is for the owner's socket: {body}");
    }
    let any = "0.0.0.0:0".parse().unwrap();
    assert!(Listener::tcp(any, Admission::default()).await.is_err(), "an open address without a token");
    world.server.stop().await;
}

/// Whoever only holds places gives them up for those who have something to say.
#[tokio::test]
async fn silent_connections_take_nobodys_place() {
    let world = World::new().await;
    let mut silent = Vec::new();
    let descriptors = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let descriptors = usize::try_from(descriptors.unwrap_or(u64::MAX)).unwrap();
    for _ in 0..CONNECTIONS_MAX.min(descriptors / CONNECTIONS_SHARE) {
        silent.push(TcpStream::connect(world.loopback).await.unwrap());
    }
    let stream = TcpStream::connect(world.loopback).await.unwrap();
    let (status, _) = exchange(stream, &get("/v1/flows", "host: localhost\r\n")).await;
    assert_eq!(status, 200);
    // Not all of them had to go for that.
    let nothing = silent[0].try_read(&mut [0; 1]).unwrap_err();
    assert_eq!(nothing.kind(), std::io::ErrorKind::WouldBlock);
}

#[tokio::test]
async fn the_socket_is_its_owners_and_a_stale_one_is_replaced() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new().await;
    let mode = std::fs::metadata(world.socket()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    world.server.stop().await;
    let client = Client::new(Address::Unix(world.dir.path().join("socket")), None);
    assert!(matches!(client.status().await, Err(ClientError::Unreachable { .. })));
    Listener::unix(&world.dir.path().join("socket")).unwrap();
}

#[tokio::test]
async fn the_client_tells_refusals_from_silence() {
    let world = World::new().await;
    let client = Client::new(Address::Unix(world.socket()), None);
    assert_eq!(client.status().await.unwrap()["protocol"], json!(1));
    assert!(matches!(client.run("../x").await, Err(ClientError::Refused(_))));
    let token = Client::new(Address::Http(world.guarded.to_string()), Some("secret".to_owned()));
    assert_eq!(token.status().await.unwrap()["protocol"], json!(1));
    let stranger = Client::new(Address::Http(world.guarded.to_string()), None);
    assert!(matches!(stranger.status().await, Err(ClientError::Refused(_))));
    world.server.stop().await;
}

const TALK: &str = r#"edition 1
flow Talk(task: text) -> text emits text version 1 {
  message Say { text: text }
  message Stop now
  start Idle
  state Idle {
    await Say, closed within 30d
    on Say { text: said }   emit said   -> Ask
    on closed, timeout                  -> end task
  }
  state Ask {
    ask "Go on?" to "owner" within 24h
    on approve                          -> Idle
    on reject                           -> end "no"
    on timeout                          -> end "late"
  }
}
"#;

fn code_of<T: std::fmt::Debug>(called: Result<T, ClientError>) -> Code {
    match called {
        Err(ClientError::Refused(error)) => error.code,
        other => panic!("a refusal is expected: {other:?}"),
    }
}

async fn talking(world: &World) -> Client {
    let client = Client::new(Address::Unix(world.socket()), None);
    let file = FileText { name: "talk.flow".to_owned(), text: TALK.to_owned() };
    let flows = client.deploy(&Deploy { files: vec![file], profile: None }).await.unwrap();
    assert_eq!(flows[0].name, "Talk");
    client
}

fn start(id: &str, task: &str) -> Start {
    let (flow, id) = ("Talk".to_owned(), Some(id.to_owned()));
    Start { flow, input: json!({ "task": task }), id, ..Start::default() }
}

fn say(text: &str, id: &str) -> Send {
    Send { name: "Say".to_owned(), value: json!({ "text": text }), id: Some(id.to_owned()) }
}

#[tokio::test]
async fn a_start_counts_once_and_other_input_is_a_conflict() {
    let world = World::new().await;
    let client = talking(&world).await;
    assert!(!client.start(&start("r", "a")).await.unwrap().existing);
    assert!(client.start(&start("r", "a")).await.unwrap().existing);
    assert_eq!(code_of(client.start(&start("r", "b")).await), Code::Conflict);
    assert_eq!(code_of(client.start(&start("R", "a")).await), Code::Conflict, "ids that differ only in case");
    let wrong = Start { input: json!({ "task": 1 }), ..start("s", "") };
    assert_eq!(code_of(client.start(&wrong).await), Code::Invalid);
    let nowhere = Start { flow: "Nope".to_owned(), ..start("s", "") };
    assert_eq!(code_of(client.start(&nowhere).await), Code::NotFound);
    assert_eq!(client.runs(&Wanted::default()).await.unwrap().items.len(), 1);
    let faulty = FileText { name: "x.flow".to_owned(), text: "flow".to_owned() };
    assert_eq!(code_of(client.deploy(&Deploy { files: vec![faulty], profile: None }).await), Code::Invalid);
    world.server.stop().await;
}

#[tokio::test]
async fn messages_and_answers_are_refused_by_name() {
    let world = World::new().await;
    let client = talking(&world).await;
    client.start(&start("r", "a")).await.unwrap();
    let first = client.message("r", &say("hello", "m1")).await.unwrap();
    assert_eq!(client.message("r", &say("hello", "m1")).await.unwrap(), first, "sent twice, counted once");
    assert_eq!(code_of(client.message("r", &say("other", "m1")).await), Code::Conflict);
    let stop = Send { name: "Stop".to_owned(), value: json!({}), id: None };
    assert_eq!(code_of(client.message("r", &stop).await), Code::NotListening);
    let unknown = Send { name: "Shout".to_owned(), ..stop };
    assert_eq!(code_of(client.message("r", &unknown).await), Code::Invalid);
    assert_eq!(code_of(client.message("s", &say("x", "m")).await), Code::NotFound);

    let question = client.run("r").await.unwrap().questions.remove(0);
    let answer = |choice: &str, question: &str, shown: Option<&str>| Answer {
        question: Some(question.to_owned()),
        choice: choice.to_owned(),
        shown: shown.map(str::to_owned),
        role: Some("owner".to_owned()),
        ..Answer::default()
    };
    assert_eq!(code_of(client.answer("r", &answer("perhaps", &question.id, None)).await), Code::Invalid);
    let stale = answer("approve", &question.id, Some("something else"));
    assert_eq!(code_of(client.answer("r", &stale).await), Code::Conflict);
    let fits = answer("reject", &question.id, Some(&question.shown));
    client.answer("r", &fits).await.unwrap();
    let late = code_of(client.answer("r", &answer("approve", &question.id, None)).await);
    assert!(matches!(late, Code::AlreadyDecided | Code::RunEnded), "{late:?}");
    assert_eq!(code_of(client.message("r", &say("x", "m2")).await), Code::RunEnded);
    assert_eq!(code_of(client.cancel("r").await), Code::RunEnded);
    let result = client.result("r", Duration::ZERO).await.unwrap();
    assert_eq!(result.outcome.unwrap().value, Some(json!("no")));
    world.server.stop().await;
}

#[tokio::test]
async fn a_stream_goes_on_where_it_was_cut() {
    let world = World::new().await;
    let client = talking(&world).await;
    client.start(&start("r", "a")).await.unwrap();
    client.message("r", &say("hello", "m1")).await.unwrap();
    let reject = Answer { choice: "reject".to_owned(), role: Some("owner".to_owned()), ..Answer::default() };
    client.answer("r", &reject).await.unwrap();
    let all = frames(&client, None).await;
    assert_eq!(all.last().unwrap().event, FrameKind::Ended);
    assert!(all.iter().any(|f| f.event == FrameKind::Emit && f.data["value"] == "hello"));
    for (at, frame) in all.iter().enumerate() {
        let rest = frames(&client, frame.id.as_deref()).await;
        assert_eq!(rest, all[at + 1..], "after {:?}", frame.id);
    }
    for cursor in ["s/1.0", "r/x", "r/99.0", ""] {
        assert_eq!(
            code_of(client.follow("r", Some(cursor)).await.map(|_| ())),
            Code::InvalidCursor,
            "{cursor:?}"
        );
    }
    assert_eq!(code_of(client.follow("s", None).await.map(|_| ())), Code::NotFound);
    let events = client.events("r", 0, 2).await.unwrap();
    assert!(events.next.is_some());
    world.server.stop().await;
}

/// Returns the frames that have an id, to the end of the stream.
async fn frames(client: &Client, last: Option<&str>) -> Vec<Frame> {
    let mut follow = client.follow("r", last).await.unwrap();
    let mut frames = Vec::new();
    while let Some(frame) = follow.next().await.unwrap() {
        if frame.id.is_some() {
            frames.push(frame);
        }
    }
    frames
}
