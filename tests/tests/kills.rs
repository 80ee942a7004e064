//! The promise, as a person would check it: kill processes at random moments, run the same command again, look at what is left.
//!
//! The report example keeps a log with one line for each note, so counting lines is the truth about what happened how often.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use outlast_tests::random::Random;
use outlast_tests::world::{Role, World};
use serde_json::Value;

const COMMAND: [&str; 6] = ["run", "examples/report.flow", "--id", "report", "--output", "json"];

/// How many kills each test makes; `OUTLAST_KILLS` sets another number.
fn rounds(usual: u64) -> u64 {
    std::env::var("OUTLAST_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

#[test]
fn the_runtime_killed_at_random_moments_goes_on_where_it_was() {
    survives(1, rounds(20), &[Role::Runtime]);
}

#[test]
fn the_model_worker_killed_at_random_moments_goes_unnoticed() {
    survives(2, rounds(20), &[Role::Model]);
}

#[test]
fn the_tool_worker_killed_at_random_moments_goes_unnoticed() {
    survives(3, rounds(20), &[Role::Tool]);
}

#[test]
fn all_processes_killed_at_random_moments_go_on_where_they_were() {
    survives(4, rounds(20), &[Role::Runtime, Role::Model, Role::Tool]);
}

fn survives(seed: u64, rounds: u64, victims: &[Role]) {
    let mut random = Random::from_environment(seed);
    let begin = Instant::now();
    let calm = finish(&World::with_examples(), "a calm run");
    let span = u64::try_from(begin.elapsed().as_millis()).unwrap();
    for round in 0..rounds {
        let world = World::with_examples();
        let mut process = world.start(&COMMAND);
        let moment = Duration::from_millis(random.below(span));
        process.work_for(moment);
        for victim in victims {
            world.kill(*victim);
        }
        let what = format!("round {round}: {victims:?} killed after {moment:?}");
        let end = process.finish();
        if !victims.contains(&Role::Runtime) {
            assert_eq!(end.code, Some(0), "{what}: the run did not go on by itself: {end:?}");
        }
        assert_eq!(finish(&world, &what), calm, "{what}");
    }
}

/// Runs the command (again) to its end, checks the history, and returns what is left to compare.
fn finish(world: &World, what: &str) -> Left {
    let end = world.run(&COMMAND);
    assert_eq!(end.code, Some(0), "{what}: {end:?}");
    let result: Value = serde_json::from_str(&end.stdout).unwrap();
    assert_eq!(result["outcome"]["kind"], "done", "{what}: {result}");
    check_history(world, what);
    let mut log: Vec<String> = world.file("report.log").lines().map(without_key).collect();
    log.sort();
    Left { outcome: result["outcome"].clone(), report: world.file("report.md"), log }
}

/// What must be the same after any kill.
#[derive(Debug, PartialEq)]
struct Left {
    outcome: Value,
    report: String,
    log: Vec<String>,
}

/// Lines of the log end in their operation's key, which names the event: it may differ between runs.
fn without_key(line: &str) -> String {
    line.split("  #").next().unwrap_or(line).to_owned()
}

/// No operation is done twice, and none is begun again without a doubt in between.
fn check_history(world: &World, what: &str) {
    let listed = world.json(&["events", "report", "--json"]);
    let mut done = BTreeSet::new();
    let mut begun: BTreeMap<String, String> = BTreeMap::new();
    for event in listed["items"].as_array().unwrap() {
        let (kind, op) = (event["kind"].as_str().unwrap(), event["op"].to_string());
        match kind {
            "done" => assert!(done.insert(op.clone()), "{what}: {op} is done twice"),
            "begun" => assert!(!begun.contains_key(&op), "{what}: {op} is begun again: {listed}"),
            _other => {}
        }
        match kind {
            "begun" => drop(begun.insert(op, event["worker"].to_string())),
            "lost" | "void" | "failed" => drop(begun.remove(&op)),
            _other => {}
        }
    }
}
