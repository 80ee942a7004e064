//! The recorded order is the order: messages and results that arrive together are replayed as they were numbered.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::time::Duration;

use outlast_tests::process::until;
use outlast_tests::random::{Random, is_whole, repeats};
use outlast_tests::world::World;
use serde_json::{Value, json};

/// Case RPL-02: an activity is started by a message unless one is running. Whether it was running is decided by the recorded order,
/// whatever is killed meanwhile.
#[test]
fn messages_between_results_are_replayed_in_their_recorded_order() {
    let mut random = Random::from_environment(2);
    let world = World::with_flows();
    let mut server = world.host(&["--no-workers", "flows/one_at_a_time.flow"]);
    let _workers = [world.worker("one", 1), world.worker("two", 1)];
    world.begin("OneAtATime", "r", &json!({}));
    let mut kills = 0;
    for number in 0..repeats(if is_whole() { 200 } else { 60 }) {
        send(&world, number, if random.below(3) == 0 { "Look" } else { "Go" });
        if random.below(6) == 0 {
            server.work_for(Duration::from_micros(random.below(20_000)));
            server.murder();
            kills += 1;
            server = world.host(&["--no-workers"]);
        }
    }
    until("the run to be idle", || world.get("/v1/runs/r")["state"] == "Idle");
    let history = world.history("r");
    let expected = by_hand(&history);
    server.murder();
    server = world.host(&["--no-workers"]);
    assert_eq!(world.history("r"), history, "a restart writes nothing");
    send(&world, u64::MAX, "closed");
    assert_eq!(world.outcome("r")["value"], expected, "{kills} kills: {history:?}");
    let started = usize::try_from(expected["started"].as_u64().unwrap()).unwrap();
    assert_eq!(world.ledger().len(), started, "each activity ran once: {history:?}");
    drop(server);
}

fn send(world: &World, number: u64, kind: &str) {
    let message = json!({"type": kind, "value": {}, "id": format!("m{number}")});
    let answer = world.post("/v1/runs/r/messages", &message);
    assert_eq!(answer.status, 202, "{}", answer.body);
}

/// Plays the flow by hand over the recorded events.
fn by_hand(history: &[Value]) -> Value {
    let (mut working, mut started, mut passed, mut looks) = (false, 0, 0, 0);
    for event in history {
        match (event["kind"].as_str().unwrap(), event["type"].as_str().unwrap_or_default()) {
            ("message", "Go") if working => passed += 1,
            ("message", "Go") => (working, started) = (true, started + 1),
            ("message", "Look") => looks += 1,
            ("done", _) => {
                assert!(working, "a result of nothing: {event}");
                working = false;
            }
            ("started", _) => {}
            other => panic!("{other:?} in {history:?}"),
        }
    }
    json!({"type": "Counted", "started": started, "passed": passed, "looks": looks})
}
