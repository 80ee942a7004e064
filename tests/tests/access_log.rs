//! The access log of `serve`: a line for each request, no secret in any, and nothing that becomes of the file holds a request up.

use outlast_tests::process::until;
use outlast_tests::world::World;
use serde_json::{Value, json};

#[test]
fn each_request_has_a_line_and_no_line_a_secret() {
    let world = World::with_flows();
    let secret = world.json(&["token", "add", "ci", "--scope", "read,start", "--json"])["token"]
        .as_str()
        .unwrap()
        .to_owned();
    let (mut server, api) =
        world.serve(&["--tokens", "--no-workers", "--access-log", "access.jsonl", "flows/desk.flow"]);
    let ci = api.with_token(&secret);
    let started =
        ci.post("/v1/runs", &json!({"flow": "Desk", "id": "r-1", "input": {"topic": "classified"}}));
    assert_eq!(started.status, 201);
    assert_eq!(ci.get("/v1/runs?flow=hidden-in-query").status, 200);
    assert_eq!(ci.post("/v1/runs/r-1/cancel", &json!({})).status, 403);
    assert_eq!(api.get("/v1/runs/r-1").status, 401);
    assert_eq!(api.with_token("outlast_guess").get("/v1/nowhere").status, 401);
    assert_eq!(api.get("/health/live").status, 200);
    drop(ci.stream("r-1", None).next());
    let text = || world.file("access.jsonl");
    let lines = || -> Vec<Value> {
        text()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
            .collect()
    };
    let of = |path: &str, method: &str| {
        lines().into_iter().find(|line| line["path"] == path && line["method"] == method)
    };
    until("the line of the stream", || of("/v1/runs/r-1/stream", "GET").is_some());
    for (method, path, by, run, status) in [
        ("POST", "/v1/runs", json!("token:ci"), json!("r-1"), 201),
        ("GET", "/v1/runs", json!("token:ci"), Value::Null, 200),
        ("POST", "/v1/runs/r-1/cancel", json!("token:ci"), json!("r-1"), 403),
        ("GET", "/v1/runs/r-1", Value::Null, json!("r-1"), 401),
        ("GET", "/v1/nowhere", Value::Null, Value::Null, 401),
        ("GET", "/health/live", json!("nobody"), Value::Null, 200),
        ("GET", "/v1/runs/r-1/stream", json!("token:ci"), json!("r-1"), 200),
    ] {
        let line = of(path, method).unwrap_or_else(|| panic!("no line for {method} {path} in {}", text()));
        assert_eq!((&line["by"], &line["run"], &line["status"]), (&by, &run, &json!(status)), "{line}");
        assert!(
            line["peer"].as_str().unwrap().starts_with("127.0.0.1:") && line["bytes"].as_u64() > Some(0),
            "{line}"
        );
    }
    for hidden in [&secret[..], &secret[8..], "classified", "hidden-in-query", "outlast_guess"] {
        assert!(!text().contains(hidden), "{hidden}");
    }
    // Rotation: what comes after the signal goes to a new file.
    std::fs::rename(world.work().join("access.jsonl"), world.work().join("access.1")).unwrap();
    server.signal("HUP");
    until("the new file", || {
        let _answer = ci.get("/v1/flows");
        text().contains("/v1/flows")
    });
    assert!(!text().contains("/v1/nowhere") && world.file("access.1").contains("/v1/nowhere"));
    assert_eq!(ci.get("/v1/usage").status, 200);
    server.signal("TERM");
    assert_eq!(server.finish().code, Some(0));
    assert!(text().lines().last().unwrap().contains("/v1/usage"), "the last line is written before the end");
}

#[test]
fn a_log_that_cannot_be_written_is_said_once_and_holds_up_nobody() {
    let world = World::with_flows();
    let refused = world.run(&["serve", "--access-log", "no/such/folder/log"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("no/such/folder/log"), "{refused:?}");
    let (mut server, api) = world.serve(&["--no-workers", "--access-log", "/dev/full"]);
    for _ in 0..20 {
        assert_eq!(api.get("/v1/status").status, 200);
    }
    server.signal("TERM");
    let finished = server.finish();
    assert_eq!(finished.stderr.matches("cannot write the access log").count(), 1, "{finished:?}");
}
