//! The newer ways of a run through the binary, with kills amid them: spawned runs, undoing, migration, export and import, backups.

use outlast_tests::ledger::Gate;
use outlast_tests::process::{Process, until};
use outlast_tests::world::World;
use serde_json::{Value, json};

fn kinds(world: &World, run: &str) -> Vec<String> {
    world.history(run).iter().map(|event| event["kind"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Kills the runtime and the worker, and starts both again.
fn restart(world: &World, mut processes: [Process; 2]) -> [Process; 2] {
    for process in &mut processes {
        process.murder();
    }
    [world.host(&["--no-workers"]), world.worker("next", 4)]
}

/// Cases CHD-04, CHD-05: a child ends while everything was killed, and its parent sees the end.
#[test]
fn a_parent_hears_of_the_end_of_its_child_whatever_is_killed_meanwhile() {
    for gate in [Gate::Before, Gate::After] {
        let world = World::with_flows();
        let processes = [world.host(&["--no-workers", "flows/family.flow"]), world.worker("first", 4)];
        world.close("child", gate);
        world.begin("Parent", "parent", &json!({"name": "child"}));
        world.reached("child", gate);
        let mut processes = restart(&world, processes);
        world.open("child", gate);
        // What had happened before the kill is done again under its key; nothing else is.
        let expected = if gate == Gate::Before { 1 } else { 2 };
        let outcome = world.outcome("parent");
        let lines = world.lines("child");
        assert_eq!(lines.len(), expected, "{lines:?}");
        assert!(lines.iter().all(|line| line.key == lines[0].key), "{lines:?}");
        assert_eq!(outcome["value"], json!(format!("done {}", lines[0].key)));
        processes = restart(&world, processes);
        assert_eq!(world.outcome("parent"), outcome);
        assert_eq!(kinds(&world, "parent"), ["started", "spawned", "child_ended"]);
        assert_eq!(world.lines("child").len(), expected);
        drop(processes);
    }
}

/// Case REC-12: work whose only worker is gone is shown as waiting for a worker, not as running, and is done when one comes.
#[test]
fn work_whose_only_worker_died_is_shown_as_waiting_for_one() {
    let world = World::with_flows();
    let _server = world.host(&["--no-workers", "flows/repeatable.flow"]);
    let mut worker = world.worker("first", 1);
    world.close("a", Gate::Before);
    world.begin("Repeatable", "r", &json!({"name": "a"}));
    world.reached("a", Gate::Before);
    assert_eq!(world.get("/v1/runs/r")["status"], "running");
    worker.murder();
    until("the loss to show", || world.get("/v1/runs/r")["waiting_for"]["kind"] == "worker");
    world.open("a", Gate::Before);
    let _worker = world.worker("second", 1);
    assert_eq!(world.outcome("r")["kind"], "done");
    assert_eq!(world.lines("a").len(), 1);
}

/// Case SAG-02: what was undone before the kill is not undone again, and the rest is, last first.
#[test]
fn undoing_goes_on_after_a_kill_where_it_was() {
    for (gate, expected) in [(Gate::Before, 1), (Gate::After, 2)] {
        let world = World::with_flows();
        let processes = [world.host(&["--no-workers", "flows/undone.flow"]), world.worker("first", 4)];
        world.close("undo-r-b", gate);
        world.begin("Undone", "r", &json!({"name": "r"}));
        world.reached("undo-r-b", gate);
        let _processes = restart(&world, processes);
        world.open("undo-r-b", gate);
        let outcome = world.outcome("r");
        assert_eq!(outcome["kind"], "failed", "{outcome}");
        let mut undone: Vec<String> = world.ledger().into_iter().map(|line| line.name).collect();
        undone.retain(|name| name.starts_with("undo-"));
        assert_eq!(world.lines("undo-r-b").len(), expected, "{gate:?}");
        undone.dedup();
        assert_eq!(undone, ["undo-r-c", "undo-r-b", "undo-r-a"], "{gate:?}");
    }
}

/// Cases VER-01, VER-02: a run is pinned to its version until it is migrated; a kill on either side changes nothing.
#[test]
fn a_run_goes_on_with_the_version_that_it_was_migrated_to_and_others_with_their_own() {
    let world = World::with_flows();
    let mut server = world.host(&["--no-workers", "flows/waiting_1.flow"]);
    for run in ["moved", "stays"] {
        world.begin("Waiting", run, &json!({"name": run}));
    }
    server.murder();
    let end = world.run(&["migrate", "--to", "flows/waiting_2.flow", "moved"]);
    assert_eq!(end.code, Some(0), "{end:?}");
    let mut server = world.host(&["--no-workers"]);
    server.murder();
    let _processes = [world.host(&["--no-workers"]), world.worker("w", 2)];
    for (run, value) in [("moved", "new"), ("stays", "old")] {
        let sent = world.run(&["send", run, "Go", "{}"]);
        assert_eq!(sent.code, Some(0), "{sent:?}");
        assert_eq!(world.outcome(run)["value"], value);
        assert_eq!(world.lines(&format!("{run}-{value}")).len(), 1);
        // The same command as ever, with the file of today.
        let input = json!({"name": run}).to_string();
        let again = world.run(&["run", "flows/waiting_2.flow", "--id", run, "--input", &input]);
        assert_eq!((again.code, again.stdout.contains(value)), (Some(0), true), "{again:?}");
        let told = again.stderr.contains("keeps the version of Waiting that it was started with");
        assert_eq!(told, run == "stays", "{again:?}");
    }
}

/// What was exported, imported and exported again is the same file, byte for byte; a changed one is refused.
#[test]
fn an_export_is_imported_whole_or_not_at_all_and_exported_again_byte_by_byte() {
    let world = World::with_flows();
    let mut server = world.host(&["--no-workers", "flows/waiting_1.flow"]);
    world.begin("Waiting", "r", &json!({"name": "r"}));
    server.murder();
    let run = |arguments: &[&str]| {
        let end = world.run(arguments);
        assert_eq!(end.code, Some(0), "{arguments:?}: {end:?}");
    };
    run(&["fork", "r", "--id", "f"]);
    for name in ["r", "f"] {
        let (first, second) = (format!("{name}.jsonl"), format!("{name}.again.jsonl"));
        run(&["export", name, "--out", &first]);
        let edited = world.file(&first).replacen("\"name\":\"r\"", "\"name\":\"x\"", 1);
        assert_ne!(edited, world.file(&first));
        world.write("edited.jsonl", &edited);
        let refused = world.run(&["import", "edited.jsonl", "--data", "there"]);
        assert!(refused.code != Some(0) && !refused.stderr.is_empty(), "{refused:?}");
        run(&["import", &first, "--data", "there"]);
        run(&["import", &first, "--data", "there"]);
        run(&["export", name, "--out", &second, "--data", "there"]);
        assert!(world.file(&first) == world.file(&second) && !world.file(&first).is_empty(), "{name}");
    }
    let weighed = world.json(&["du", "--json", "--data", "there"]);
    let items = weighed["items"].as_array().cloned().unwrap_or_default();
    let sum: u64 = items.iter().filter_map(|usage| usage["bytes"].as_u64()).sum();
    assert_eq!((items.len(), weighed["bytes"].as_u64()), (2, Some(sum)), "{weighed}");
    assert!(items.iter().all(|usage| usage["bytes"].as_u64().is_some_and(|bytes| bytes > 0)), "{weighed}");
}

/// Case STO-09: a backup that is made amid work is a whole store, from which the work goes on.
#[test]
fn work_goes_on_from_a_backup_that_was_made_amid_it() {
    let world = World::with_flows();
    let processes = [world.host(&["--no-workers", "flows/three_steps.flow"]), world.worker("first", 4)];
    world.begin("ThreeSteps", "ended", &json!({"name": "ended"}));
    let ended = world.outcome("ended");
    world.close("open-1", Gate::After);
    world.begin("ThreeSteps", "open", &json!({"name": "open"}));
    world.reached("open-1", Gate::After);
    let end = world.run(&["backup", "copy"]);
    assert_eq!(end.code, Some(0), "{end:?}");
    let again = world.run(&["backup", "copy"]);
    assert!(again.code != Some(0) && again.stderr.contains("copy"), "{again:?}");
    drop(processes);
    // To restore it, use it in place of the directory that was lost.
    for (from, to) in [(world.data(), world.work().join("lost")), (world.work().join("copy"), world.data())] {
        assert!(std::fs::rename(&from, &to).is_ok(), "{from:?}");
    }
    let doctor = world.run(&["doctor"]);
    assert_eq!(doctor.code, Some(0), "{doctor:?}");
    let _processes = [world.host(&["--no-workers"]), world.worker("second", 4)];
    world.open("open-1", Gate::After);
    assert_eq!(world.outcome("ended"), ended);
    assert_eq!(world.outcome("open")["value"]["type"], "Written");
    let first: Vec<String> = world.lines("open-1").into_iter().map(|line| line.key).collect();
    assert_eq!((first.len(), &first[0]), (2, &first[1]), "it was in hand: again, under its key");
    assert_eq!((world.lines("open-2").len(), world.lines("open-3").len()), (1, 1));
}

/// A backup that is killed is not there, and the next one is whole.
#[test]
fn a_backup_that_is_killed_leaves_nothing_that_looks_like_one() {
    let world = World::with_flows();
    let mut server = world.host(&["--no-workers", "flows/waiting_1.flow"]);
    for n in 0..30 {
        world.begin("Waiting", &format!("r{n}"), &json!({"name": "r"}));
    }
    server.murder();
    for wait in [0, 20, 40, 60, 80, 120] {
        let name = format!("copy-{wait}");
        let mut backup = world.start(&["backup", &name]);
        let _lives = backup.work_for(std::time::Duration::from_millis(wait));
        backup.murder();
        if world.work().join(&name).exists() {
            // It was done before the kill.
            assert_eq!(runs(&world, &name), 30);
        }
        let end = world.run(&["backup", &format!("{name}-again")]);
        assert_eq!(end.code, Some(0), "{end:?}");
        assert_eq!(runs(&world, &format!("{name}-again")), 30);
    }
}

fn runs(world: &World, directory: &str) -> usize {
    let listed: Value = world.json(&["runs", "--json", "--data", directory]);
    listed["items"].as_array().map_or(0, Vec::len)
}

/// Case STO-05: a directory that cannot be written is refused with one line.
#[test]
fn a_data_directory_that_is_no_directory_is_refused_with_one_line() {
    let world = World::with_flows();
    world.write("file", "");
    for directory in ["file", "file/data", "/proc/outlast"] {
        let end = world.run(&["runs", "--data", directory]);
        assert!(end.code.is_some_and(|code| code != 0), "{end:?}");
        assert!(end.stderr.contains(directory) && !end.stderr.contains("panicked"), "{end:?}");
    }
}
