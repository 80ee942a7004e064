//! A reader of stdout that goes away, as `head` does.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Output, Stdio};

use outlast_tests::ledger::Gate;
use outlast_tests::process::until;
use outlast_tests::world::World;
use serde_json::{Value, json};

/// Case BAT-03: lists end quietly when nobody reads on.
#[test]
fn lists_end_quietly_when_their_reader_goes_away() {
    let world = World::with_flows();
    let _server = world.host(&["--no-workers", "flows/repeatable.flow"]);
    for number in 0..3 {
        world.begin("Repeatable", &format!("r{number}"), &json!({"name": "a"}));
    }
    for arguments in [&["runs"][..], &["runs", "--json"], &["show", "r0"], &["events", "r0"], &["doctor"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        let mut command = world.command(arguments);
        command.stdin(Stdio::null()).stdout(writer).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        // The command still holds the writing end.
        drop((reader, command));
        check_quiet(&child.wait_with_output().unwrap(), &format!("{arguments:?}"));
    }
}

/// Case BAT-03: a run whose reader goes away is not lost; the same command finds it.
#[test]
fn a_run_whose_reader_goes_away_is_found_again() {
    let world = World::with_flows();
    let arguments = ["run", "flows/shown_steps.flow", "--id", "r", "--output", "jsonl"];
    world.write("gate", "");
    let mut child = piped(&mut world.command(&arguments));
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    serde_json::from_str::<Value>(&line).unwrap();
    drop(reader);
    // It may notice between the steps, and leave the second one to who comes next.
    until("the second step to begin, or the end", || {
        world.work().join("reached").exists() || child.try_wait().unwrap().is_some()
    });
    std::fs::remove_file(world.work().join("gate")).unwrap();
    check_quiet(&child.wait_with_output().unwrap(), "run");
    let found = world.run(&["run", "--id", "r", "--output", "json"]);
    let result: Value = serde_json::from_str(&found.stdout).unwrap();
    assert_eq!((found.code, &result["outcome"]["kind"]), (Some(0), &json!("done")), "{found:?}");
    assert_eq!(world.file("shell.log"), "one\ntwo\n", "each step was done once");
}

/// Case BAT-03: the same beside a server, which goes on with the run by itself.
#[test]
fn a_run_of_a_server_goes_on_when_the_reader_of_its_driver_goes_away() {
    let world = World::with_flows();
    let _server = world.host(&["--no-workers", "flows/repeatable.flow"]);
    let _worker = world.worker("w", 1);
    world.close("a", Gate::Before);
    let input = json!({"name": "a"}).to_string();
    let arguments = ["run", "flows/repeatable.flow", "--id", "r", "--input", &input, "--output", "jsonl"];
    let mut child = piped(&mut world.command(&arguments));
    drop(child.stdout.take());
    world.reached("a", Gate::Before);
    world.open("a", Gate::Before);
    check_quiet(&child.wait_with_output().unwrap(), "run");
    assert_eq!(world.outcome("r")["kind"], "done");
    assert_eq!(world.lines("a").len(), 1);
}

fn piped(command: &mut Command) -> std::process::Child {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// A reader that went away is no error to speak of: no panic, and the exit code of a broken pipe, or none at all.
fn check_quiet(output: &Output, what: &str) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!stderr.contains("panicked") && !stderr.contains("error"), "{what}: {stderr}");
    assert!(matches!(output.status.code(), Some(0 | 141)), "{what}: {output:?}");
}
