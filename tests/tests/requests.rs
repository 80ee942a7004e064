//! Requests that are broken, as bytes on the socket.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use outlast_tests::socket::{Answer, request};
use outlast_tests::world::World;
use serde_json::{Value, json};

const JSON: &str = "content-type: application/json";

fn post(world: &World, path: &str, header: &str, body: &[u8]) -> Answer {
    request(&world.socket(), "POST", path, &[header], body).unwrap()
}

/// Case RPC-02: every broken body has a typed answer, changes nothing, and the next good request works.
#[test]
fn broken_bodies_are_refused_and_the_next_request_works() {
    let world = World::with_flows();
    let _server = world.host(&["--no-workers", "flows/repeatable.flow"]);
    let good = r#"{"flow": "Repeatable", "id": "good", "input": {"name": "a"}}"#;
    let huge = format!("{{\"flow\": \"{}\"}}", "x".repeat(20 << 20));
    let deep = "[".repeat(100_000);
    let twice = format!("{good}\n{good}");
    let marked = [b"\xef\xbb\xbf", good.as_bytes()].concat();
    let bodies: [(&str, u16, &[u8]); 14] = [
        ("nothing", 422, b""),
        ("not JSON", 422, b"flow=Repeatable"),
        ("cut off", 422, &good.as_bytes()[..20]),
        ("two objects", 422, twice.as_bytes()),
        ("a byte order mark", 422, &marked),
        ("invalid UTF-8", 422, b"{\"flow\": \"\xff\xfe\"}"),
        ("NUL", 422, b"{\"flow\": \"Repeatable\"}\0"),
        ("an empty batch", 422, b"[]"),
        ("a batch", 422, b"[{\"flow\": \"Repeatable\"}, 1]"),
        ("a text", 422, b"\"Repeatable\""),
        ("an unknown field", 422, b"{\"flow\": \"Repeatable\", \"colour\": 1}"),
        ("a half of a surrogate", 422, br#"{"flow": "\ud800"}"#),
        ("no bottom", 422, deep.as_bytes()),
        ("no end", 413, huge.as_bytes()),
    ];
    for (what, status, body) in bodies {
        let answer = post(&world, "/v1/runs", JSON, body);
        assert_eq!(answer.status, status, "{what}: {}", answer.body);
        let error = &answer.body["error"];
        assert!(error["code"].is_string() && error["message"].is_string(), "{what}: {}", answer.body);
        assert!(answer.body.to_string().len() < 2_000, "{what} is quoted at length");
    }
    let long = json!({"flow": "x".repeat(500_000)});
    let answer = world.post("/v1/runs", &long);
    assert_eq!(answer.status, 404);
    assert!(answer.body.to_string().len() < 2_000, "a long name is quoted at length");
    assert_eq!(post(&world, "/v1/runs", "content-type: text/plain", good.as_bytes()).status, 422);
    let empty = world.post("/v1/flows", &json!({"files": [{"name": "a.flow", "text": "// soon"}]}));
    assert_eq!(empty.body["error"]["message"], "there is no flow in these files", "{empty:?}");
    assert_eq!(world.get("/v1/runs")["items"], json!([]), "nothing was stored");
    let crlf = good.replace(' ', "\r\n");
    assert_eq!(post(&world, "/v1/runs", JSON, crlf.as_bytes()).status, 201, "line ends are white space");
}

/// Case RPC-02: the same for what is done to a run.
#[test]
fn broken_words_to_a_run_change_nothing() {
    let world = World::with_flows();
    let _server = world.host(&["--no-workers", "flows/approved_once.flow"]);
    world.begin("ApprovedOnce", "r", &json!({"name": "a"}));
    let before = world.history("r");
    for (path, body) in [
        ("messages", json!({"type": "Say"})),
        ("messages", json!({"type": "", "value": 1})),
        ("messages", json!([])),
        ("answers", json!({"choice": "perhaps"})),
        ("answers", json!({"choice": "approve", "question": "1.7"})),
        ("answers", json!({"choice": "approve", "question": "../1.0"})),
        ("answers", json!({"choice": "approve", "shown": "other"})),
        ("answers", json!({"choice": "approve", "value": "other"})),
        ("settle", json!({"op": "1.0", "verdict": "happened"})),
        ("release", json!({"op": "nonsense"})),
        ("cancel", json!({"reason": "because"})),
        ("fly", json!({})),
    ] {
        let answer = world.post(&format!("/v1/runs/r/{path}"), &body);
        assert!((400..500).contains(&answer.status), "{path} {body}: {answer:?}");
        assert!(answer.body["error"]["code"].is_string(), "{path} {body}: {answer:?}");
    }
    assert_eq!(world.history("r"), before);
    let question: Value = world.questions("r", 1)[0].clone();
    assert_eq!(question["text"], "Do it?");
}

/// What is asked for in the wrong way is told apart from what is not there.
#[test]
fn a_limit_of_nothing_is_refused_with_what_is_expected() {
    let world = World::with_flows();
    let _server = world.host(&["--no-workers", "flows/desk.flow"]);
    world.begin("Desk", "r", &json!({"topic": "tea"}));
    for path in ["/v1/runs?", "/v1/runs/r/events?", "/v1/runs/r/audit?"] {
        let answer = request(&world.socket(), "GET", &format!("{path}limit=0"), &[], b"").unwrap();
        let error = &answer.body["error"];
        assert_eq!((answer.status, &error["code"], &error["at"]), (422, &json!("invalid"), &json!("limit")));
        assert!(error["message"].as_str().unwrap().contains("from 1 on is expected"), "{path}: {error}");
        assert_eq!(world.get(&format!("{path}limit=1"))["items"].as_array().unwrap().len(), 1, "{path}");
    }
    for (method, params) in
        [("runs.list", json!({"limit": 0})), ("runs.events", json!({"run": "r", "limit": 0}))]
    {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let error = world.post("/v1/rpc", &call).body["error"].clone();
        assert!(error.to_string().contains("from 1 on is expected"), "{method}: {error}");
    }
}

#[test]
fn two_hosts_in_one_request_are_400_on_every_listener() {
    let world = World::with_flows();
    let (_server, api) = world.serve(&["--no-workers"]);
    for other in ["localhost", "attacker.test"] {
        let answer = api.send("GET", "/v1/runs", &[("host", other)], "");
        assert!(answer.status == 400 && answer.body.contains("one `Host` header"), "{answer:?}");
    }
    let header = format!("host: {}", "elsewhere");
    let answer = request(&world.socket(), "GET", "/v1/runs", &[&header], b"").unwrap();
    assert_eq!(answer.status, 400, "{answer:?}");
    assert_eq!(api.get("/v1/runs").status, 200);
}

#[test]
fn a_wrong_method_is_told_what_there_is() {
    let world = World::with_flows();
    let (_server, api) = world.serve(&["--no-workers", "flows/approved_once.flow"]);
    for (method, path, status) in [
        ("PATCH", "/v1/runs", 405),
        ("PUT", "/v1/runs/r", 405),
        ("TRACE", "/health/live", 405),
        ("GET", "/v1/nothing", 404),
        ("PATCH", "/v1/nothing", 404),
    ] {
        let answer = api.send(method, path, &[], "");
        assert_eq!(answer.status, status, "{method} {path}: {answer:?}");
        let code = answer.json()["error"]["code"].clone();
        assert_eq!(code, if status == 405 { "method_not_allowed" } else { "not_found" });
        assert_eq!(answer.headers.contains_key("allow"), status == 405, "{answer:?}");
    }
    assert_eq!(api.send("PATCH", "/v1/runs", &[], "").headers["allow"], "POST, GET");
    // What has nothing to say needs no body, and so no type of one; another type is refused.
    world.begin("ApprovedOnce", "r", &json!({"name": "a"}));
    assert_eq!(api.send("POST", "/v1/runs/r/cancel", &[("content-type", "text/plain")], "").status, 422);
    assert_eq!(api.send("POST", "/v1/runs/r/cancel", &[], "{}").status, 422);
    assert_eq!(api.send("POST", "/v1/runs/r/cancel", &[], "").status, 202);
}

/// A body that says that it is too large is not waited for.
#[test]
fn a_length_that_is_too_large_is_refused_at_once() {
    let world = World::with_flows();
    let _server = world.host(&["--no-workers"]);
    let mut stream = std::os::unix::net::UnixStream::connect(world.socket()).unwrap();
    let head = format!(
        "POST /v1/runs HTTP/1.1\r\nhost: localhost\r\n{JSON}\r\ncontent-length: 99999999999\r\n\r\n{{"
    );
    std::io::Write::write_all(&mut stream, head.as_bytes()).unwrap();
    let mut answer = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(stream), &mut answer).unwrap();
    assert!(answer.contains(" 413 "), "{answer}");
}

/// A body of which nothing is a request of JSON-RPC is a fault of HTTP's, too.
#[test]
fn a_body_that_is_no_request_is_400_and_a_request_with_faults_is_200() {
    let world = World::with_flows();
    let _server = world.host(&["--no-workers"]);
    for (body, status, code) in [
        ("nonsense", 400, json!(-32_700)),
        ("\0", 400, json!(-32_700)),
        ("[]", 400, json!(-32_600)),
        ("7", 400, json!(-32_600)),
        (r#"{"jsonrpc": "2.0", "id": 1, "method": "nothing"}"#, 200, json!(-32_601)),
        (r#"{"jsonrpc": "2.0", "id": 1, "method": "runs.get"}"#, 200, json!(-32_602)),
    ] {
        let answer = post(&world, "/v1/rpc", JSON, body.as_bytes());
        assert_eq!(
            (answer.status, &answer.body["error"]["code"]),
            (status, &code),
            "{body}: {}",
            answer.body
        );
    }
}
