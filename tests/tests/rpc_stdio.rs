//! JSON-RPC from outside: over the pipes of `outlast rpc`, and over HTTP.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use outlast_tests::ledger::Gate;
use outlast_tests::process::{Finished, Process};
use outlast_tests::world::{Role, World};
use serde_json::{Value, json};

fn start(world: &World) -> Process {
    world.start(&["rpc", "flows/graded.flow"])
}

fn request(id: u64, method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

/// Makes a call and returns its answer; what else comes before it is dropped.
fn call(rpc: &mut Process, id: u64, method: &str, params: &Value) -> Value {
    rpc.say(&request(id, method, params));
    answer(rpc, id)
}

fn answer(rpc: &mut Process, id: u64) -> Value {
    let is_it = |line: &str| serde_json::from_str::<Value>(line).unwrap()["id"] == json!(id);
    serde_json::from_str(&rpc.line(&format!("the answer to {id}"), is_it)).unwrap()
}

fn begin(run: &str, grade: &str) -> Value {
    json!({"flow": "Graded", "id": run, "input": {"name": run, "grade": grade}})
}

fn only_protocol(finished: &Finished) {
    for line in finished.stdout.lines() {
        assert_eq!(serde_json::from_str::<Value>(line).unwrap()["jsonrpc"], "2.0", "{line}");
    }
}

/// Case RPC-02: broken lines of every kind; the next good request works.
#[test]
fn broken_lines_are_answered_and_stop_nothing() {
    let world = World::with_flows();
    let mut rpc = start(&world);
    let oversized = format!("\"{}\"", "x".repeat(2 * 1024 * 1024));
    for (line, code) in [
        ("nonsense", -32_700),
        ("{\"jsonrpc\":\"2.0\",\"id\":1", -32_700),
        ("{} {}", -32_700),
        ("[]", -32_600),
        ("7", -32_600),
        ("{\"id\":null,\"method\":\"runs.list\"}", -32_600),
        (oversized.as_str(), -32_000),
    ] {
        rpc.say(line);
        let text = rpc.line("a refusal", |_| true);
        let refused: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&refused["id"], &refused["error"]["code"]), (&Value::Null, &json!(code)), "{refused}");
    }
    // Of a mixed batch each request has its answer, and the notification none; line ends may be those of other systems.
    let batch = json!([
        1,
        {"jsonrpc": "2.0", "method": "runs.start", "params": begin("a", "good")},
        {"jsonrpc": "2.0", "id": "x", "method": "runs.get", "params": {"run": "a"}},
        {"jsonrpc": "2.0", "id": 2, "method": "runs.fly"},
        {"jsonrpc": "2.0", "id": 3, "method": "runs.get", "params": {"run": "a", "more": 1}},
        {"jsonrpc": "2.0", "id": 4, "method": "runs.get", "params": {"run": "b"}},
    ]);
    rpc.say(&format!("{batch}\r"));
    let text = rpc.line("the answers", |line| line.starts_with('['));
    let answers: Vec<Value> = serde_json::from_str(&text).unwrap();
    assert_eq!(answers.len(), 5, "{answers:?}");
    assert_eq!(
        (&answers[1]["id"], &answers[1]["result"]["id"]),
        (&json!("x"), &json!("a")),
        "after the start"
    );
    let codes: Vec<i64> = answers.iter().filter_map(|answer| answer["error"]["code"].as_i64()).collect();
    assert_eq!(codes, [-32_600, -32_601, -32_602, -32_000]);
    assert_eq!(answers[4]["error"]["data"]["code"], "not_found");
    let end = rpc.finish();
    assert_eq!(end.code, Some(0), "{end:?}");
    only_protocol(&end);
}

/// Case RPC-03: the input ends cleanly, in the middle of a line, and while something is waited for.
#[test]
fn the_end_of_the_input_is_the_end_of_the_client_and_of_no_run() {
    let world = World::with_flows();
    let mut rpc = start(&world);
    call(&mut rpc, 1, "runs.start", &begin("a", "asks"));
    rpc.say(&request(2, "runs.result", &json!({"run": "a", "wait": "0s"})));
    rpc.say(&request(3, "runs.watch", &json!({"run": "a"})));
    rpc.press("{\"jsonrpc\":");
    let end = rpc.finish();
    assert_eq!(end.code, Some(0), "{end:?}");
    only_protocol(&end);
    assert!(end.stdout.contains("\"id\":2") && end.stdout.contains("-32700"), "{end:?}");
    assert_eq!(world.pids(Role::Tool).len() + world.pids(Role::Model).len(), 0, "no child is left");

    let mut rpc = start(&world);
    assert_eq!(call(&mut rpc, 1, "runs.get", &json!({"run": "a"}))["result"]["status"], "waiting");
    call(&mut rpc, 2, "runs.start", &begin("b", "slow"));
    rpc.say(&request(3, "runs.result", &json!({"run": "b", "wait": "5m"})));
    let end = rpc.finish();
    assert_eq!(end.code, Some(0), "{end:?}");
    let last: Value = serde_json::from_str(end.stdout.lines().last().unwrap()).unwrap();
    assert_eq!((&last["id"], &last["error"]["data"]["code"]), (&json!(3), &json!("not_ready")), "{end:?}");
    assert_eq!(world.json(&["show", "b", "--json"])["status"], "waiting");
}

/// Cases RPC-05 and RPC-10: who waits blocks nobody; an ended run takes nothing more.
#[test]
fn whoever_waits_holds_up_nobody_else() {
    let world = World::with_flows();
    let mut rpc = start(&world);
    call(&mut rpc, 1, "runs.start", &begin("a", "slow"));
    rpc.say(&request(2, "runs.result", &json!({"run": "a", "wait": "5m"})));
    call(&mut rpc, 3, "runs.start", &begin("b", "asks"));
    let listed = call(&mut rpc, 4, "runs.list", &json!({"status": "waiting"}));
    assert_eq!(listed["result"]["items"].as_array().unwrap().len(), 2, "{listed}");
    assert!(
        call(&mut rpc, 5, "runs.answer", &json!({"run": "b", "choice": "approve"}))["result"].is_object()
    );
    rpc.say(&request(6, "runs.cancel", &json!({"run": "a"})));
    // Either of the two may be told first.
    for _ in 0..2 {
        let told = rpc.line("the end of the wait, or of the cancel", |line| !line.contains("\"method\""));
        let told: Value = serde_json::from_str(&told).unwrap();
        let is_cancel = told["id"] == 6 && told["result"]["accepted"].is_u64();
        assert!(is_cancel || (told["id"] == 2 && told["result"]["outcome"]["kind"] == "cancelled"), "{told}");
    }
    let again = call(&mut rpc, 10, "runs.cancel", &json!({"run": "a"}));
    assert!(again["result"]["accepted"].is_u64(), "it is what was asked for: {again}");
    for (id, method, params) in [
        (7, "runs.cancel", json!({"run": "b"})),
        (8, "runs.answer", json!({"run": "b", "choice": "approve"})),
        (9, "runs.message", json!({"run": "a", "type": "Say", "value": {}})),
    ] {
        let refused = call(&mut rpc, id, method, &params);
        assert_eq!(refused["error"]["data"]["code"], "run_ended", "{method}: {refused}");
    }
}

/// Case RPC-06: the same start twice, and with another input.
#[test]
fn a_repeated_start_is_the_same_run() {
    let world = World::with_flows();
    let mut rpc = start(&world);
    for id in 1..=20 {
        rpc.say(&request(id, "runs.start", &begin("a", "asks")));
    }
    let existing = (1..=20).filter(|id| answer(&mut rpc, *id)["result"]["existing"] == json!(true)).count();
    assert_eq!(existing, 19);
    rpc.murder();
    let mut rpc = start(&world);
    assert_eq!(call(&mut rpc, 1, "runs.start", &begin("a", "asks"))["result"]["existing"], true);
    assert_eq!(call(&mut rpc, 2, "runs.start", &begin("a", "good"))["error"]["data"]["code"], "conflict");
}

/// Case APR-11: who cannot, or does not, answer hangs nothing up: waiting for the result says at once that a person is asked, and
/// anybody who comes later finds the question and answers it.
#[test]
fn a_question_outlives_clients_that_do_not_answer_it() {
    let world = World::with_flows();
    let mut silent = start(&world);
    call(&mut silent, 1, "runs.start", &begin("a", "asks"));
    let result = call(&mut silent, 2, "runs.result", &json!({"run": "a", "wait": "5m"}));
    assert_eq!(result["result"]["waiting_for"]["kind"], "question", "{result}");
    let mut gone = start(&world);
    assert!(call(&mut gone, 1, "runs.watch", &json!({"run": "a"}))["result"]["watch"].is_string());
    gone.line("the question", |line| line.contains("Is a good?"));
    gone.murder();
    world.write("in.jsonl", &json!({"name": "b", "grade": "asks"}).to_string());
    let batch = world.run(&["batch", "flows/graded.flow", "--inputs", "in.jsonl", "--out", "out.jsonl"]);
    assert_eq!(batch.code, Some(3), "{batch:?}");
    let waiting = world.json(&["runs", "--status", "waiting", "--json"]);
    let items = waiting["items"].as_array().unwrap();
    let runs: Vec<&str> = items.iter().map(|run| run["id"].as_str().unwrap()).collect();
    assert_eq!(runs.len(), 2, "{waiting}");
    for run in runs {
        assert_eq!(world.run(&["answer", run, "approve"]).code, Some(0), "{run}");
        assert_eq!(world.outcome(run)["kind"], "done", "{run}");
    }
}

/// Case RPC-09: following a run that waits, one that has ended, and one that is not there.
#[test]
fn a_followed_run_says_where_it_stands_and_how_it_ends() {
    let world = World::with_flows();
    let mut rpc = start(&world);
    call(&mut rpc, 1, "runs.start", &begin("a", "asks"));
    let watch = call(&mut rpc, 2, "runs.watch", &json!({"run": "a"}))["result"]["watch"].clone();
    let event = |rpc: &mut Process| -> Value {
        serde_json::from_str::<Value>(&rpc.line("an event", |line| line.contains("runs.event"))).unwrap()["params"].take()
    };
    let first = event(&mut rpc);
    assert_eq!((&first["watch"], &first["event"]), (&watch, &json!("state")), "{first}");
    rpc.line("the question", |line| line.contains("\"event\":\"question\""));
    call(&mut rpc, 3, "runs.answer", &json!({"run": "a", "choice": "approve"}));
    call(&mut rpc, 4, "runs.watch", &json!({"run": "a"}));
    let ended = rpc.line("the end", |line| line.contains("\"event\":\"ended\""));
    assert!(ended.contains("\"done\""), "{ended}");
    assert_eq!(call(&mut rpc, 5, "runs.watch", &json!({"run": "b"}))["error"]["data"]["code"], "not_found");
    let wrong = call(&mut rpc, 6, "runs.watch", &json!({"run": "a", "last_event_id": "b/1.0"}));
    assert_eq!(wrong["error"]["data"]["code"], "invalid_cursor", "{wrong}");
    call(&mut rpc, 7, "runs.start", &begin("c", "asks"));
    let watch = call(&mut rpc, 8, "runs.watch", &json!({"run": "c"}))["result"]["watch"].clone();
    assert_eq!(call(&mut rpc, 9, "runs.unwatch", &json!({"watch": watch}))["result"], json!({}));
    assert_eq!(
        call(&mut rpc, 10, "runs.unwatch", &json!({"watch": watch}))["error"]["data"]["code"],
        "not_found"
    );
}

/// Case RPC-04: the client's process is killed while a tool works; the host goes on, and a new client finds the run.
#[test]
fn a_client_that_is_killed_leaves_its_runs_to_the_host_and_a_watch_outlives_the_host() {
    let world = World::with_flows();
    let mut host = world.host(&["flows/repeatable.flow"]);
    let _worker = world.worker("w", 1);
    world.close("a", Gate::Before);
    let mut rpc = world.start(&["rpc"]);
    let started = json!({"flow": "Repeatable", "id": "r", "input": {"name": "a"}});
    call(&mut rpc, 1, "runs.start", &started);
    world.reached("a", Gate::Before);
    rpc.murder();
    let mut rpc = world.start(&["rpc"]);
    call(&mut rpc, 1, "runs.watch", &json!({"run": "r"}));
    host.murder();
    world.open("a", Gate::Before);
    let ended = rpc.line("the end", |line| line.contains("\"event\":\"ended\""));
    assert!(ended.contains("\"done\""), "{ended}");
    assert_eq!(call(&mut rpc, 2, "runs.get", &json!({"run": "r"}))["result"]["outcome"]["kind"], "done");
    assert_eq!(world.lines("a").len(), 1);
}

#[test]
fn the_same_methods_are_there_over_http() {
    let world = World::with_flows();
    let (_host, api) = world.serve(&["flows/graded.flow"]);
    let one = |method: &str, params: Value| {
        api.post("/v1/rpc", &json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})).json()
    };
    assert_eq!(one("runs.start", begin("a", "asks"))["result"]["id"], "a");
    assert!(one("runs.answer", json!({"run": "a", "choice": "approve"}))["result"]["accepted"].is_u64());
    assert_eq!(one("runs.result", json!({"run": "a", "wait": "30s"}))["result"]["outcome"]["value"], "a");
    assert_eq!(one("runs.watch", json!({"run": "a"}))["error"]["data"]["code"], "invalid");
    let batch = json!([
        {"jsonrpc": "2.0", "id": 1, "method": "runs.start", "params": begin("b", "good")},
        {"jsonrpc": "2.0", "id": 2, "method": "runs.get", "params": {"run": "b"}},
        {"jsonrpc": "2.0", "method": "runs.cancel", "params": {"run": "b"}},
    ]);
    let answers = api.post("/v1/rpc", &batch).json();
    assert_eq!(
        (answers.as_array().unwrap().len(), &answers[1]["result"]["id"]),
        (2, &json!("b")),
        "{answers}"
    );
    let silent = api.post("/v1/rpc", &json!({"jsonrpc": "2.0", "method": "runs.list"}));
    assert_eq!((silent.status, silent.body.as_str()), (204, ""));
    let deployed = one(
        "flows.deploy",
        json!({"files": [{"name": "a.flow", "text": "edition 1\nflow A() -> int { start S state S { choose else -> end x } }"}]}),
    );
    assert!(
        deployed["error"]["data"]["diagnostics"].is_array()
            || deployed["error"]["data"]["diagnostics"].is_object(),
        "{deployed}"
    );
    let plain = api.send("POST", "/v1/rpc", &[("content-type", "text/plain")], "{}");
    assert_eq!(plain.status, 422);
}

#[test]
fn schedules_are_methods_too() {
    let world = World::with_flows();
    let mut rpc = start(&world);
    let put = json!({"name": "nightly", "flow": "Graded", "input": {"name": "a"}, "cron": ["30 2 * * *"]});
    let kept = call(&mut rpc, 1, "schedules.put", &put);
    assert_eq!(kept["result"]["kept"], "created", "{kept}");
    let listed = call(&mut rpc, 2, "schedules.list", &json!({}));
    assert_eq!(listed["result"]["items"][0]["name"], "nightly", "{listed}");
    let name = json!({"name": "nightly"});
    assert_eq!(call(&mut rpc, 3, "schedules.pause", &name)["result"]["paused"], true);
    assert_eq!(call(&mut rpc, 4, "schedules.resume", &name)["result"]["paused"], false);
    let run = call(&mut rpc, 5, "schedules.run_now", &name)["result"]["id"].clone();
    assert!(run.as_str().unwrap().starts_with("nightly~"), "{run}");
    assert_eq!(call(&mut rpc, 6, "runs.get", &json!({"run": run}))["result"]["flow"], "Graded");
    assert_eq!(call(&mut rpc, 7, "schedules.remove", &name)["result"], json!({}));
    let gone = call(&mut rpc, 8, "schedules.get", &name);
    assert_eq!(gone["error"]["data"]["code"], "not_found", "{gone}");
    let nameless = call(&mut rpc, 9, "schedules.get", &json!({}));
    assert_eq!(nameless["error"]["message"], "the parameter `name` is missing");
    let faulty =
        call(&mut rpc, 10, "schedules.put", &json!({"name": "x", "flow": "Graded", "cron": ["never"]}));
    assert_eq!(faulty["error"]["code"], -32_602, "{faulty}");
}
