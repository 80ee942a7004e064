//! What the server answers to requests that do not fit: a typed error, whoever asks and whatever they send.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::Path;
use std::sync::Arc;

use outlast_runtime::client::{Address, Client, ClientError};
use outlast_runtime::engine::{Engine, Options};
use outlast_runtime::http::{Listener, Served, Server, Token};
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
        let loopback = Listener::tcp(any, None).await.unwrap();
        let guarded = Listener::tcp(any, Some(Token::new("secret"))).await.unwrap();
        let addresses = (loopback.address().unwrap(), guarded.address().unwrap());
        let served = Served { engine, store, opened: Value::Null, profile: None };
        let server = Server::start(served, vec![unix, loopback, guarded]);
        World { dir, server, loopback: addresses.0, guarded: addresses.1 }
    }

    fn socket(&self) -> std::path::PathBuf {
        self.dir.path().join("socket")
    }
}

/// Sends text as it is and returns the status and the body of the answer.
async fn exchange(mut stream: impl AsyncRead + AsyncWrite + Unpin, request: &[u8]) -> (u16, Value) {
    stream.write_all(request).await.unwrap();
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
        ("wrong type", post("/v1/runs", JSON, br#"{"flow": 1}"#), 422, "invalid"),
        ("plain text", post("/v1/runs", "text/plain", br#"{"flow": "A"}"#), 422, "invalid"),
        ("a form", post("/v1/runs/a/cancel", "application/x-www-form-urlencoded", b""), 422, "invalid"),
        ("unknown field in nothing", post("/v1/runs/a/cancel", JSON, br#"{"a": 1}"#), 422, "invalid"),
        ("too large", post("/v1/runs", JSON, &vec![b' '; 1024 * 1024 + 1]), 413, "too_large"),
        ("no such path", get("/v2", local), 404, "not_found"),
        ("no such method", get("/v1/runs/a/cancel", local), 404, "not_found"),
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
    assert!(Listener::tcp(any, None).await.is_err(), "an open address without a token");
    world.server.stop().await;
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
