//! How long tokens hold: through `kill -9`, through streams and waits, and against whatever is sent in their place.
//!
//! Rights are in `tokens.rs`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use outlast_tests::http::Api;
use outlast_tests::process::{PATIENCE, Process};
use outlast_tests::random::repeats;
use outlast_tests::world::World;
use serde_json::{Value, json};

/// Well above the second that requests in hand have when their token ends, and far below what they would wait for.
const BOUNDED: Duration = Duration::from_secs(20);

fn token(world: &World, name: &str, rights: &[&str]) -> String {
    let made = world.json(&[&["token", "add", name, "--json"], rights].concat());
    made["token"].as_str().unwrap_or_else(|| panic!("{name}: {made}")).to_owned()
}

fn served(world: &World) -> (Process, Api) {
    world.serve(&["--tokens", "--no-workers", "flows/desk.flow"])
}

/// What was acknowledged is there after the runtime was killed the moment after: a token opens, a revoked one does not.
#[test]
fn acknowledged_tokens_and_revocations_outlive_a_kill() {
    let world = World::with_flows();
    let (mut held, mut revoked): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    for round in 0..repeats(6) {
        let (mut server, api) = served(&world);
        for secret in &held {
            assert_eq!(api.with_token(secret).get("/v1/runs").status, 200, "round {round}");
        }
        for secret in &revoked {
            let answer = api.with_token(secret).get("/v1/runs");
            assert!(
                answer.status == 401 && answer.body.contains("was revoked at"),
                "round {round}: {answer:?}"
            );
        }
        let last = held.pop();
        let made = world.post("/v1/tokens", &json!({"name": format!("t-{round}"), "scopes": ["read"]}));
        if let Some(secret) = last {
            let before = format!("t-{}", round - 1);
            let headers = ["content-type: application/json"];
            let path = format!("/v1/tokens/{before}");
            let gone =
                outlast_tests::socket::request(&world.socket(), "DELETE", &path, &headers, b"").unwrap();
            server.murder();
            assert_eq!(gone.body["status"], "revoked");
            revoked.push(secret);
        } else {
            server.murder();
        }
        assert_eq!(made.status, 201);
        held.push(made.body["token"].as_str().unwrap().to_owned());
    }
}

#[test]
fn what_waits_under_a_token_ends_when_it_is_revoked() {
    let world = World::with_flows();
    let (_server, api) = world.serve(&["--tokens", "--no-workers", "flows/desk.flow", "flows/graded.flow"]);
    world.begin("Desk", "r", &json!({"topic": "tea"}));
    // Its result is an hour away.
    world.begin("Graded", "slow", &json!({"name": "n", "grade": "slow"}));
    let api = api.with_token(&token(&world, "ci", &["--scope", "read"]));
    let worker = api.with_token(&token(&world, "w", &["--scope", "work"]));
    let mut frames = api.stream("r", None);
    assert!(frames.next().is_some(), "the stream has begun");
    let offer = json!({"worker": "w", "boot": "b", "queues": ["test"], "concurrency": 1, "activities": []});
    let session = worker.post("/v1/workers/register", &offer).json()["session"].clone();
    let waits = [
        std::thread::spawn(move || api.get("/v1/runs/slow/result?wait=5m")),
        std::thread::spawn(move || {
            worker.post("/v1/workers/poll", &json!({"session": session, "max": 1, "wait_ms": 300_000}))
        }),
    ];
    let begun = Instant::now();
    for name in ["ci", "w"] {
        assert_eq!(world.run(&["token", "revoke", name]).code, Some(0));
    }
    // What the stream had before is read; then it ends, although its run goes on.
    assert!(frames.all(|frame| frame.event != "ended"));
    for wait in waits {
        let answer = wait.join().unwrap();
        assert_eq!(answer.status, 401, "{answer:?}");
        assert!(answer.body.contains("was revoked at"), "{answer:?}");
    }
    assert!(begun.elapsed() < BOUNDED);
    assert_eq!(world.get("/v1/runs/r")["status"], "waiting", "the run knows nothing of it");
}

#[test]
fn a_token_that_expires_amid_a_stream_ends_it() {
    let world = World::with_flows();
    let (_server, api) = served(&world);
    world.begin("Desk", "r", &json!({"topic": "tea"}));
    // Long enough for the stream to begin on a machine that is busy.
    let api = api.with_token(&token(&world, "brief", &["--scope", "read", "--expires", "3s"]));
    let frames = api.stream("r", None);
    assert!(frames.count() >= 1);
    let late = api.get("/v1/runs");
    assert!(late.status == 401 && late.body.contains("the token brief expired at "), "{late:?}");
    assert_eq!(world.json(&["token", "list", "--json"])["items"][0]["status"], "expired");
}

/// Sends a head as it is and returns the status of the answer; none if the connection is just closed.
fn raw(api: &Api, head: &[u8]) -> Option<u16> {
    let address = api.url("").trim_start_matches("http://").to_owned();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let _refused_early = stream.write_all(head);
    let mut answer = Vec::new();
    let _cut = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).split(' ').nth(1)?.parse().ok()
}

/// Case SEC-01 where tokens are demanded, and whatever else may be sent in place of one: refused, and the next caller is served.
#[test]
fn whatever_is_sent_in_place_of_a_token_is_refused() {
    let world = World::with_flows();
    let (_server, api) = served(&world);
    world.begin("Desk", "r", &json!({"topic": "tea"}));
    let secret = token(&world, "ci", &["--scope", "read,start"]);
    let host = api.url("").trim_start_matches("http://").to_owned();
    let head = |path: &str, headers: &str| {
        format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{headers}\r\n").into_bytes()
    };
    let bearer = |text: &str| format!("authorization: Bearer {text}\r\n");
    for (what, headers, status) in [
        ("nothing", String::new(), 401),
        ("an empty token", bearer(""), 401),
        ("the prefix", bearer("outlast_"), 401),
        ("all but the last letter", bearer(&secret[..secret.len() - 1]), 401),
        ("one letter more", bearer(&format!("{secret}0")), 401),
        ("capitals", bearer(&secret.to_uppercase()), 401),
        ("the hash", bearer(&format!("outlast_{}", "0".repeat(64))), 401),
        ("another scheme", format!("authorization: Basic {secret}\r\n"), 401),
        ("no scheme", format!("authorization: {secret}\r\n"), 401),
        ("two tokens", bearer(&secret) + &bearer("x"), 401),
        ("the same twice", bearer(&secret) + &bearer(&secret), 401),
        ("the token elsewhere", format!("x-token: {secret}\r\n"), 401),
        ("much", bearer(&"x".repeat(100_000)), 401),
        ("the token", bearer(&secret), 200),
        ("the scheme in capitals", format!("AUTHORIZATION: BEARER {secret}\r\n"), 200),
        ("a foreign page with the token", bearer(&secret) + "origin: https://attacker.test\r\n", 403),
        ("a page without an origin", bearer(&secret) + "origin: null\r\n", 403),
    ] {
        assert_eq!(raw(&api, &head("/v1/runs", &headers)), Some(status), "{what}");
    }
    let mut binary = head("/v1/runs", "");
    binary.truncate(binary.len() - 2);
    binary.extend(b"authorization: Bearer \xff\xfe\xc3\r\n\r\n");
    assert_eq!(raw(&api, &binary), Some(401));
    let stream = head("/v1/runs/r/stream", &(bearer(&secret) + "origin: https://attacker.test\r\n"));
    assert_eq!(raw(&api, &stream), Some(403), "a stream for a foreign page");
    assert_eq!(raw(&api, &head("/v1/runs/r/stream", "")), Some(401), "a stream for nobody");
    assert_eq!(raw(&api, &head(&format!("/v1/runs?token={secret}"), "")), Some(401), "in the query");
    // More than any head may have: the connection is closed or refused, and nobody else notices.
    let huge = raw(&api, &head("/v1/runs", &bearer(&"x".repeat(2_000_000))));
    assert!(huge.is_none_or(|status| status >= 400), "{huge:?}");
    // A form of a foreign page starts nothing.
    let body = r#"{"flow":"Desk","id":"x","input":{"topic":"t"}}"#;
    let form = format!(
        "POST /v1/runs HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{}content-type: text/plain\r\ncontent-length: {}\r\n\r\n{body}",
        bearer(&secret),
        body.len()
    );
    assert_eq!(raw(&api, form.as_bytes()), Some(422));
    let runs = world.get("/v1/runs");
    assert_eq!(runs["items"].as_array().map(Vec::len), Some(1), "{runs}");
}

#[test]
fn a_server_says_who_may_call_and_is_open_to_nobody_by_accident() {
    let world = World::with_flows().with_variable("SECRET", "all-rights-of-all-callers\n");
    let world = world.with_variable("EMPTY", "").with_variable("SHORT", "all-rights");
    let open = world.run(&["serve", "--listen", "0.0.0.0:0"]);
    assert_eq!(open.code, Some(2), "{open:?}");
    assert!(open.stderr.contains("--tokens") && open.stderr.contains("--token-env"), "{open:?}");
    for unfit in ["EMPTY", "NOT_SET", "SHORT"] {
        let refused = world.run(&["serve", "--listen", "127.0.0.1:0", "--token-env", unfit]);
        assert!(refused.code == Some(2) && refused.stderr.contains(unfit), "{refused:?}");
    }
    let listen = ["serve", "--no-workers", "--listen", "127.0.0.1:0"];
    for (more, callers) in [
        (&[][..], "programs on this machine"),
        (&["--tokens"], "holders of a token"),
        (&["--token-env", "SECRET"], "holders of the token in SECRET"),
        (
            &["--tokens", "--token-env", "SECRET"],
            "holders of a token (outlast token) or of the one in SECRET",
        ),
    ] {
        let mut server = world.start(&[&listen[..], more].concat());
        let line = server.line("its address", |line| line.starts_with("listening on "));
        assert!(line.contains(callers), "{line}");
        server.murder();
    }
    let (mut server, api) = world.serve(&["--no-workers"]);
    assert_eq!(api.get("/v1/tokens").status, 403, "without tokens, tokens are for the owner");
    assert_eq!(api.post("/v1/tokens", &json!({"name": "a", "scopes": ["admin"]})).status, 403);
    server.murder();
    let (_server, api) = world.serve(&["--no-workers", "--tokens", "--token-env", "SECRET"]);
    let root = api.with_token("all-rights-of-all-callers");
    let made = root.post("/v1/tokens", &json!({"name": "a", "scopes": ["read"]}));
    assert_eq!((made.status, &made.json()["created_by"]), (201, &Value::from("token")));
    assert_eq!(api.with_token(made.json()["token"].as_str().unwrap()).get("/v1/runs").status, 200);
    assert_eq!(root.get("/v1/doctor").status, 403, "the disk is the owner's");
}
