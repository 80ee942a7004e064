//! What is left after processes die at exact points: before an effect, between an effect and its report, near the end.
//!
//! The ledger counts effects outside the product; gates hold an attempt where the test kills.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::time::Duration;

use outlast_tests::ledger::Gate;
use outlast_tests::process::{Process, until};
use outlast_tests::random::{Random, is_whole, repeats};
use outlast_tests::world::{Role, World};
use serde_json::{Value, json};

fn kinds(history: &[Value]) -> Vec<&str> {
    history.iter().map(|event| event["kind"].as_str().unwrap()).collect()
}

/// Case REC-01: start-up looks for unfinished runs at the moment at which new ones arrive. As a whole: 500 rounds.
#[test]
fn a_run_that_starts_the_moment_the_runtime_is_ready_is_done_once() {
    let world = World::with_flows();
    // Two of them: after a restart the other one may ask for work before the one that has it in hand is back.
    let _workers = [world.worker("one", 4), world.worker("two", 4)];
    let mut runs = Vec::new();
    for round in 0..repeats(if is_whole() { 500 } else { 30 }) {
        let mut server = world.host(&["--no-workers", "flows/three_steps.flow"]);
        let fresh = format!("fresh-{round}");
        world.begin("ThreeSteps", &fresh, &json!({"name": fresh}));
        assert_eq!(world.outcome(&fresh)["value"]["type"], "Written", "{fresh}");
        // Until now a worker had this one in hand, from before the kill.
        world.open(&format!("old-{}-1", round.wrapping_sub(1)), Gate::After);
        // The next start finds this one unfinished, with its effect done and its result on the way.
        let old = format!("old-{round}");
        world.close(&format!("{old}-1"), Gate::After);
        world.begin("ThreeSteps", &old, &json!({"name": old}));
        world.reached(&format!("{old}-1"), Gate::After);
        server.murder();
        runs.extend([fresh, old]);
    }
    let _server = world.host(&["--no-workers", "flows/three_steps.flow"]);
    for run in &runs {
        world.open(&format!("{run}-1"), Gate::After);
    }
    let mut lines: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for run in &runs {
        assert_eq!(world.outcome(run)["value"]["type"], "Written", "{run}");
        check_three_steps(&world, run);
        for step in 1..=3 {
            lines.insert(format!("{run}-{step}"), Vec::new());
        }
    }
    for line in world.ledger() {
        lines.get_mut(&line.name).unwrap().push(line.attempt);
    }
    let odd: Vec<_> = lines.iter().filter(|(_, attempts)| attempts.len() != 1).collect();
    assert!(odd.is_empty(), "steps that were not done once: {odd:?}");
}

fn check_three_steps(world: &World, run: &str) {
    let history = world.history(run);
    let of = |kind: &str| history.iter().filter(|event| event["kind"] == kind).count();
    assert_eq!((of("started"), of("done"), of("failed")), (1, 3, 0), "{run}: {history:?}");
    // A task that did not reach its worker is void and handed out again; nothing else may begin twice.
    assert_eq!((of("begun") - of("void"), of("lost")), (1, 0), "{run}: {history:?}");
}

/// Kills the runtime and the worker between the effect of step `a` and its report, and starts both again.
fn killed_between_effect_and_report(flow: &str, file: &str, approves: bool) -> (World, [Process; 2]) {
    let world = World::with_flows();
    world.close("a", Gate::After);
    let mut server = world.host(&["--no-workers", file]);
    let mut worker = world.worker("first", 1);
    world.begin(flow, "r", &json!({"name": "a"}));
    if approves {
        approve(&world, &world.questions("r", 1)[0]);
    }
    world.reached("a", Gate::After);
    server.murder();
    worker.murder();
    world.open("a", Gate::After);
    let processes = [world.host(&["--no-workers"]), world.worker("second", 1)];
    (world, processes)
}

fn approve(world: &World, question: &Value) {
    let answer = json!({"question": question["id"], "choice": "approve", "shown": question["shown"]});
    let answered = world.post("/v1/runs/r/answers", &answer);
    assert_eq!(answered.status, 200, "{}", answered.body);
}

/// Case REC-02: an approval counts once; what may have happened needs a new decision.
#[test]
fn an_approved_step_in_doubt_is_not_done_again_without_a_new_approval() {
    let (world, _processes) =
        killed_between_effect_and_report("ApprovedOnce", "flows/approved_once.flow", true);
    let question = world.questions("r", 1)[0].clone();
    assert_eq!(question["text"], "It may have happened. Do it again?");
    assert_eq!(world.lines("a").len(), 1);
    approve(&world, &question);
    assert_eq!(world.outcome("r")["value"]["type"], "Happened");
    let lines = world.lines("a");
    assert_eq!(lines.len(), 2);
    assert_ne!(lines[0].key, lines[1].key, "a new decision is a new operation");
    let history = world.history("r");
    assert_eq!(kinds(&history).iter().filter(|kind| **kind == "answered").count(), 2, "{history:?}");
}

/// Case REC-02: a flow without a plan for doubt holds, and says so, until a person settles it.
#[test]
fn a_step_in_doubt_without_a_plan_holds_until_a_person_settles_it() {
    let (world, _processes) = killed_between_effect_and_report("HeldOnce", "flows/held_once.flow", false);
    let mut run = Value::Null;
    until("the run to hold", || {
        run = world.get("/v1/runs/r");
        run["waiting_for"]["kind"] == "held"
    });
    assert_eq!(world.lines("a").len(), 1);
    let op = run["waiting_for"]["op"].as_str().unwrap();
    let settled = world.run(&["settle", "r", op, "happened", "--result", "\"seen\""]);
    assert_eq!(settled.code, Some(0), "{settled:?}");
    assert_eq!(world.outcome("r")["value"], "seen");
    assert_eq!(world.lines("a").len(), 1);
}

/// Case REC-02: an activity that can look is asked, and nothing is done twice.
#[test]
fn a_step_in_doubt_that_can_be_verified_is_verified() {
    let (world, _processes) =
        killed_between_effect_and_report("VerifiedOnce", "flows/verified_once.flow", false);
    let outcome = world.outcome("r");
    let lines = world.lines("a");
    assert_eq!(lines.len(), 1);
    assert_eq!(outcome["value"], json!({"type": "Happened", "key": lines[0].key}));
}

/// Case REC-02: what may be repeated is repeated under the same key.
#[test]
fn a_repeatable_step_is_repeated_under_the_same_key() {
    let (world, _processes) = killed_between_effect_and_report("Repeatable", "flows/repeatable.flow", false);
    let outcome = world.outcome("r");
    let lines = world.lines("a");
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0].key, lines[1].key);
    assert_eq!(outcome["value"], json!(lines[0].key));
}

/// Case REC-04: killed around the last event, a run has its result, and those who wait for it get it. As a whole: 300 kills.
#[test]
fn a_result_survives_a_kill_near_the_end_and_reaches_those_who_wait() {
    let mut random = Random::from_environment(4);
    for round in 0..repeats(if is_whole() { 300 } else { 12 }) {
        let world = World::with_flows();
        world.close("a", Gate::After);
        let mut server = world.host(&["--no-workers", "flows/repeatable.flow"]);
        let mut worker = world.worker("w", 1);
        world.begin("Repeatable", "r", &json!({"name": "a"}));
        world.reached("a", Gate::After);
        let mut waiting = world.start(&["run", "--id", "r", "--output", "jsonl"]);
        waiting.line("where the run is", |line| line.contains("\"state\""));
        world.open("a", Gate::After);
        let moment = Duration::from_micros(random.below(12_000));
        server.work_for(moment);
        server.murder();
        let what = format!("round {round}, killed after {moment:?}");
        // Whoever waits becomes the host when there is none.
        let waited = waiting.finish();
        assert_eq!(waited.code, Some(0), "{what}: {waited:?}");
        worker.murder();
        let key = json!(world.lines("a")[0].key);
        let result: Value = serde_json::from_str(waited.stdout.lines().last().unwrap()).unwrap();
        assert_eq!(result["outcome"], json!({"kind": "done", "value": key}), "{what}");
        assert_eq!(world.json(&["result", "r", "--json"])["outcome"], result["outcome"], "{what}");
        assert_eq!(world.lines("a").len(), 1, "{what}: nothing was lost, so nothing is repeated");
        let events = world.json(&["events", "r", "--json"]);
        assert_eq!(kinds(events["items"].as_array().unwrap()), ["started", "done"], "{what}");
    }
}

/// Case REC-07: a stop by signal writes nothing into the history; the attempt in hand goes on and its result counts.
#[test]
fn a_stop_by_signal_is_no_failure_of_the_run() {
    let world = World::with_flows();
    world.close("a", Gate::Before);
    let mut server = world.host(&["--no-workers", "flows/held_once.flow"]);
    let _worker = world.worker("w", 1);
    world.begin("HeldOnce", "r", &json!({"name": "a"}));
    world.reached("a", Gate::Before);
    server.signal("TERM");
    let stopped = server.finish();
    assert_eq!(stopped.code, Some(0), "{stopped:?}");
    let _server = world.host(&["--no-workers"]);
    assert_eq!(kinds(&world.history("r")), ["started", "begun"]);
    world.open("a", Gate::Before);
    let outcome = world.outcome("r");
    let lines = world.lines("a");
    assert_eq!((lines.len(), &outcome["value"]), (1, &json!(lines[0].key)));
    assert_eq!(kinds(&world.history("r")), ["started", "begun", "done"]);
}

/// Case REC-07: the stop comes while notifications are on their way: what was told is told once, and the rest after the stop.
#[test]
fn a_stop_amid_notifications_neither_loses_nor_repeats_one() {
    // Before the call, and after it, when its effect is there and its report is being written.
    for gate in [Gate::Before, Gate::After] {
        let world = World::with_flows();
        let flow = "edition 1\n\
            activity ledger(name: text) -> text within 30m queue \"test\" effect once\n\
            flow Notify(name: text) -> text emits text {\n\
              on unknown, problem -> end \"in doubt\"\n\
              start First\n\
              state First { do ledger(\"{name}-1\")  on ok  emit \"first\" -> Second }\n\
              state Second { do ledger(\"{name}-2\")  on ok  emit \"second\" -> end \"told\" }\n\
            }\n";
        world.write("notify.flow", flow);
        world.close("a-2", gate);
        let (mut server, api) = world.serve(&["--no-workers", "notify.flow"]);
        let _worker = world.worker("w", 1);
        world.begin("Notify", "r", &json!({"name": "a"}));
        let mut frames = api.stream("r", None);
        let first = frames.by_ref().find(|frame| frame.event == "emit").unwrap();
        world.reached("a-2", gate);
        server.signal("TERM");
        assert_eq!(server.finish().code, Some(0));
        assert!(frames.all(|frame| frame.event != "emit"), "the stream ends without another one");
        let before = world.json(&["events", "r", "--json"]);
        let told = kinds(before["items"].as_array().unwrap());
        assert!(!told.iter().any(|kind| ["failed", "lost", "cancelled"].contains(kind)), "{told:?}");
        let (_server, api) = world.serve(&["--no-workers"]);
        let frames = api.stream("r", first.id.as_deref());
        world.open("a-2", gate);
        let emitted: Vec<String> =
            frames.filter(|frame| frame.event == "emit").map(|frame| frame.data).collect();
        assert!(emitted.len() == 1 && emitted[0].contains("second"), "{emitted:?}");
        assert_eq!(world.outcome("r")["value"], "told");
        assert_eq!((world.lines("a-1").len(), world.lines("a-2").len()), (1, 1));
        assert_eq!(kinds(&world.history("r")), ["started", "begun", "done", "emit", "begun", "done", "emit"]);
        assert_eq!(world.run(&["doctor", "r"]).code, Some(0), "its history gives the same states");
    }
}

/// Case REC-07: the same for a command that hosts the engine itself, with the workers that it started.
#[test]
fn a_stopped_command_leaves_a_run_that_the_same_command_finishes() {
    let world = World::with_flows();
    let command = ["run", "flows/gated_shell.flow", "--id", "r", "--output", "json"];
    world.write("gate", "");
    let mut first = world.start(&command);
    until("the command to run", || world.work().join("reached").exists());
    first.signal("TERM");
    let stopped = first.finish();
    assert_eq!(stopped.code, Some(143), "{stopped:?}");
    assert!(stopped.stderr.contains("outlast run --id r"), "{stopped:?}");
    std::fs::remove_file(world.work().join("gate")).unwrap();
    let end = world.run(&command);
    assert_eq!(end.code, Some(0), "{end:?}");
    assert_eq!(world.file("shell.log").lines().count(), 1, "{}", world.file("shell.log"));
    let events = world.json(&["events", "r", "--json"]);
    assert_eq!(kinds(events["items"].as_array().unwrap()), ["started", "begun", "done"]);
    assert!(world.pids(Role::Runtime).is_empty());
}
