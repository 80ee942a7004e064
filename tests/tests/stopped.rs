//! Processes that are stopped for a while, as a laptop that sleeps stops them, and go on.

use std::time::{Duration, Instant};

use outlast_tests::ledger::Gate;
use outlast_tests::process::until;
use outlast_tests::random::is_whole;
use outlast_tests::world::World;
use serde_json::json;

/// Case TMR-09: all processes stand still across a timer, a heartbeat and an attempt. The timer fires at once when they go on, and the worker
/// goes on with what it had or is replaced in it once; nothing has to be started. As a whole: for two minutes, across the lease.
#[test]
fn a_sleep_of_all_processes_costs_nothing_but_its_time() {
    let world = World::with_flows();
    let mut server = world.host(&["--no-workers", "flows/repeatable.flow", "flows/held_over.flow"]);
    let worker = world.worker("w", 1);
    world.close("a", Gate::Before);
    world.begin("Repeatable", "a", &json!({"name": "a"}));
    world.reached("a", Gate::Before);
    world.begin("Timed", "timed", &json!({"name": "timed"}));
    server.signal("STOP");
    worker.signal("STOP");
    // Nothing comes from a process that stands still: this is a wait for the clock.
    let still = server.work_for(Duration::from_secs(if is_whole() { 120 } else { 4 }));
    assert!(still, "it lives");
    let awake = Instant::now();
    worker.signal("CONT");
    server.signal("CONT");
    until("the timer to fire", || world.history("timed").iter().any(|event| event["kind"] == "timer_fired"));
    assert!(awake.elapsed() < Duration::from_secs(2), "{:?}", awake.elapsed());
    until("the end", || world.get("/v1/runs/timed")["status"] == "ended");
    assert_eq!(world.outcome("timed")["value"], "timed in time");
    let fired = world.history("timed").iter().filter(|event| event["kind"] == "timer_fired").count();
    assert_eq!(fired, 2, "one for each of its waits");
    world.open("a", Gate::Before);
    assert_eq!(world.outcome("a")["kind"], "done");
    let lost = world.history("a").iter().filter(|event| event["kind"] == "lost").count();
    let lines = world.lines("a");
    assert!(lost <= 1 && lines.len() == 1, "{lost} losses, {lines:?}");
}
