//! Processes that take over from each other: one that still drains, several at once, one that is killed again and again while it starts.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use outlast_tests::ledger::Gate;
use outlast_tests::process::until;
use outlast_tests::random::{Random, is_whole, repeats};
use outlast_tests::socket::request;
use outlast_tests::world::World;
use serde_json::{Value, json};

/// Counts the attempts of each line of the ledger.
fn attempts(world: &World) -> BTreeMap<String, usize> {
    let mut counted = BTreeMap::new();
    for line in world.ledger() {
        *counted.entry(line.name).or_default() += 1;
    }
    counted
}

/// Case REC-06: the next server is started while the last one is told to leave and a step is in hand; it waits its turn or says who is there.
#[test]
fn a_server_that_starts_while_the_last_one_leaves_takes_over_and_nothing_is_stranded() {
    let world = World::with_flows();
    world.close("a", Gate::After);
    let mut first = world.host(&["--no-workers", "flows/repeatable.flow", "flows/held_over.flow"]);
    let _worker = world.worker("w", 1);
    world.begin("Repeatable", "r", &json!({"name": "a"}));
    world.begin("Timed", "sleeps", &json!({"name": "sleeps"}));
    world.reached("a", Gate::After);
    let pid = first.pid().to_string();
    first.signal("TERM");
    let mut refused = 0;
    let second = loop {
        let mut second = world.start(&["serve", "--json", "--no-workers"]);
        if second.work_for(Duration::from_secs(2)) {
            break second;
        }
        let end = second.finish();
        assert!(
            end.code == Some(75) && end.stderr.contains(&pid),
            "neither hosts nor says who does: {end:?}"
        );
        refused += 1;
        assert!(refused < 200, "it is never let in");
    };
    assert_eq!(first.finish().code, Some(0));
    until("the second one to host", || {
        let status = request(&world.socket(), "GET", "/v1/status", &[], b"");
        status.is_ok_and(|answer| answer.body["pid"] == second.pid())
    });
    world.open("a", Gate::After);
    assert_eq!(world.outcome("r")["kind"], "done");
    // It wakes in time, in the process that was not there when it fell asleep.
    until("the sleeper to end", || world.get("/v1/runs/sleeps")["status"] == "ended");
    assert_eq!(world.outcome("sleeps")["value"], "sleeps in time");
    assert_eq!(attempts(&world), BTreeMap::from([("a".to_owned(), 1)]));
    drop(second);
}

/// Case REC-10: what lets runs go on comes from all sides at once, twice; each goes on once.
#[test]
fn runs_that_are_resumed_from_all_sides_at_once_go_on_once() {
    const RUNS: usize = 30;
    let world = World::with_flows();
    let mut server = world.host(&["--no-workers", "flows/three_steps.flow"]);
    let _worker = world.worker("w", 8);
    for i in 0..RUNS {
        world.close(&format!("r{i}-1"), Gate::Before);
    }
    for i in 0..RUNS {
        world.begin("ThreeSteps", &format!("r{i}"), &json!({"name": format!("r{i}")}));
    }
    world.reached("r0-1", Gate::Before);
    server.murder();
    for i in 0..RUNS {
        world.open(&format!("r{i}-1"), Gate::Before);
    }
    // Batches and a client of JSON-RPC, at the same moment: one of them hosts. An old list comes again a moment later.
    let mut resumed = Vec::new();
    for wave in 0..2 {
        for i in (0..RUNS).step_by(10) {
            let input = json!({"name": format!("r{i}")}).to_string();
            let id = format!("r{i}");
            resumed.push(world.start(&["run", "flows/three_steps.flow", "--id", &id, "--input", &input]));
        }
        let mut rpc = world.start(&["rpc", "flows/three_steps.flow"]);
        for i in 0..RUNS {
            let start = json!({"jsonrpc": "2.0", "id": i, "method": "runs.start",
                "params": {"flow": "ThreeSteps", "id": format!("r{i}"), "input": {"name": format!("r{i}")}}});
            rpc.say(&start.to_string());
            let answer =
                rpc.line("an answer", |line| line.contains("\"result\"") || line.contains("\"error\""));
            assert!(answer.contains("\"existing\":true"), "wave {wave}: {answer}");
        }
        resumed.push(rpc);
    }
    for i in 0..RUNS {
        let ended = world.run(&["result", &format!("r{i}"), "--wait", "60s", "--json"]);
        assert!(ended.stdout.contains("Written"), "r{i}: {ended:?}");
    }
    drop(resumed);
    let counted = attempts(&world);
    assert_eq!(counted.len(), 3 * RUNS);
    assert!(counted.values().all(|count| *count == 1), "{counted:?}");
}

/// Returns the bytes of a store's files, without what is there in advance.
fn bytes(directory: &Path) -> u64 {
    let mut sum = 0;
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        sum += match path.is_dir() {
            true => bytes(&path),
            false if path.ends_with("ballast") => 0,
            false => entry.metadata().map_or(0, |data| data.len()),
        };
    }
    sum
}

/// Case REC-11: a store that is killed again and again while it is opened does not grow by it, and has what one that was never killed has.
/// As a whole: 100,000 events, 20 kills.
#[test]
fn starts_that_are_killed_again_and_again_change_nothing() {
    const MESSAGES: usize = 99;
    let (runs, kills, last_ms) = if is_whole() { (1_000, 20, 2_000) } else { (50, 8, 400) };
    let mut random = Random::from_environment(11);
    let world = World::with_flows();
    let mut server = world.host(&["--no-workers", "flows/desk.flow"]);
    let says = vec![json!({"type": "Say", "value": {"text": "x"}}); MESSAGES];
    for i in 0..runs {
        let start = json!({"flow": "Desk", "id": format!("r{i}"), "input": {"topic": "t"}, "messages": says});
        let started = world.post("/v1/runs", &start);
        assert_eq!(started.status, 201, "{}", started.body);
    }
    server.murder();
    let control = World::new();
    copy(&world.data(), &control.data());
    let mut largest = 0;
    for round in 0..repeats(kills) {
        let mut starting = world.start(&["serve", "--json", "--no-workers"]);
        starting.work_for(Duration::from_millis(100 + random.below(last_ms - 100)));
        starting.murder();
        let now = bytes(&world.data());
        if round == 0 {
            largest = now + (256 << 10);
        }
        assert!(now <= largest, "round {round}: {now} bytes, {largest} were expected at most");
    }
    for each in [&world, &control] {
        assert_eq!(each.run(&["doctor"]).code, Some(0));
    }
    let _servers = [&world, &control].map(|each| each.host(&["--no-workers"]));
    for i in 0..runs {
        let run = format!("r{i}");
        let left = world.history(&run);
        assert!(left.len() > MESSAGES && left == control.history(&run), "{run} differs: {left:?}");
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy(&path, &target);
        } else if path.is_file() {
            std::fs::copy(&path, &target).unwrap();
        }
    }
}

/// Case STO-11: killed amid eight results at once, again and again, each call has one result, and what is exported is sound line by line.
/// As a whole: 200 kills.
#[test]
fn every_call_has_one_result_whatever_is_killed_amid_eight_at_once() {
    let mut random = Random::from_environment(111);
    let world = World::with_flows();
    let mut turn = 0;
    let mut server = world.host(&["--no-workers", "flows/eight_at_once.flow"]);
    let mut worker = world.worker("w", 8);
    world.begin("EightAtOnce", "r", &json!({}));
    for round in 0..repeats(if is_whole() { 200 } else { 12 }) {
        let said = world.post(
            "/v1/runs/r/messages",
            &json!({"type": "Turn", "value": {"n": turn}, "id": format!("t{turn}")}),
        );
        assert_eq!(said.status, 202, "{}", said.body);
        turn += 1;
        server.work_for(Duration::from_micros(random.below(40_000)));
        server.murder();
        if round % 3 == 0 {
            worker.murder();
            worker = world.worker("w", 8);
        }
        server = world.host(&["--no-workers"]);
        until("the turn", || {
            world.get("/v1/runs/r")["waiting_for"]["kind"] == "message"
                && world.get("/v1/runs/r")["unread"] == json!([])
        });
    }
    let history = world.history("r");
    let mut results: BTreeMap<String, usize> = BTreeMap::new();
    for event in history.iter().filter(|event| event["kind"] == "done" || event["kind"] == "failed") {
        *results.entry(event["op"].to_string()).or_default() += 1;
    }
    assert_eq!(results.len(), 8 * turn, "{results:?}");
    assert!(results.values().all(|count| *count == 1), "{results:?}");
    let exported = world.run(&["export", "r"]);
    assert_eq!(exported.code, Some(0), "{exported:?}");
    for line in exported.stdout.lines() {
        let record: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(record["record"].is_string() && record["id"].is_string(), "{line}");
    }
}
