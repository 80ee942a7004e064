//! `outlast batch` from outside: files of inputs and results, kills, signals, people, broken lines, exit codes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::process::Stdio;

use outlast_tests::process::{Finished, until};
use outlast_tests::world::{Role, World};
use serde_json::{Value, json};

const FLOW: &str = "flows/graded.flow";

fn rows(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Writes a line for each of these inputs.
fn inputs(world: &World, inputs: &[Value]) {
    let mut text = String::new();
    for input in inputs {
        writeln!(text, "{input}").unwrap();
    }
    world.write("in.jsonl", &text);
}

fn batch(world: &World, more: &[&str]) -> Finished {
    world.run(&[&["batch", FLOW, "--inputs", "in.jsonl"], more].concat())
}

fn ids(rows: &[Value]) -> BTreeSet<String> {
    rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
}

/// Case BAT-05: the same command after each of three kills, and once more when all is done.
#[test]
fn a_batch_that_is_killed_again_and_again_has_every_result_once() {
    let world = World::with_flows();
    let lines = 200;
    let flow = "edition 1\n\
        activity shell(command: text) -> text within 5m in all 7d queue \"tool\" effect once\n\
        flow Note(n: int, twin: bool = false) -> int {\n\
          start Act\n\
          state Act { do shell(\"echo {n} >> log\")  on ok -> end n  on unknown, problem -> end n }\n\
        }\n";
    world.write("note.flow", flow);
    // Each tenth line is a twin of another one: equal lines are items of their own.
    let all: Vec<Value> = (0..lines).map(|n| json!({"n": if n % 10 == 9 { n - 1 } else { n }})).collect();
    inputs(&world, &all);
    let command = ["batch", "note.flow", "--inputs", "in.jsonl", "--out", "out.jsonl", "--jobs", "8"];
    for enough in [20, 60, 120] {
        let mut killed = world.start(&command);
        until("some results", || world.file("out.jsonl").lines().count() >= enough);
        killed.murder();
    }
    let end = world.run(&command);
    assert_eq!(end.code, Some(0), "{end:?}");
    assert_eq!(end.stdout, "", "stdout carries results only, and they are in the file");
    let found = rows(&world.file("out.jsonl"));
    assert_eq!((found.len(), ids(&found).len()), (lines, lines));
    let mut values: Vec<i64> = found.iter().map(|row| row["outcome"]["value"].as_i64().unwrap()).collect();
    values.sort_unstable();
    let mut expected: Vec<i64> = all.iter().map(|input| input["n"].as_i64().unwrap()).collect();
    expected.sort_unstable();
    assert_eq!(values, expected);
    // What was in doubt was left alone, so nothing was done twice.
    let noted = world.file("log");
    for n in 0..lines {
        let times = noted.lines().filter(|line| *line == n.to_string()).count();
        let most = all.iter().filter(|input| input["n"] == json!(n)).count();
        assert!(times <= most, "{n} was noted {times} times");
    }
    let before = world.file("out.jsonl");
    let again = world.run(&command);
    assert!(again.code == Some(0) && again.stderr.contains("nothing to do: all 200 lines"), "{again:?}");
    assert_eq!(world.file("out.jsonl"), before);
}

/// Case BAT-06, and what becomes of lines that cannot be read.
#[test]
fn broken_lines_are_results_of_their_own_and_stop_nobody() {
    let world = World::with_flows().with_variable("CLICOLOR_FORCE", "1").with_variable("RUST_LOG", "trace");
    world.write(
        "in.jsonl",
        "{\"name\": \"a\"}\nnonsense\n\n[]\n{\"name\": 7}\n{\"name\": \"b\"}\r\n{\"nam\": \"c\"}",
    );
    let end = batch(&world, &[]);
    assert_eq!(end.code, Some(5), "{end:?}");
    let mut found = rows(&end.stdout);
    found.sort_by_key(|row| row["line"].as_u64());
    let seen: Vec<(u64, &str)> =
        found.iter().map(|row| (row["line"].as_u64().unwrap(), row["status"].as_str().unwrap())).collect();
    let expected = [(1, "done"), (2, "invalid"), (4, "invalid"), (5, "invalid"), (6, "done"), (7, "invalid")];
    assert_eq!(seen, expected);
    assert_eq!(found[1]["error"]["at"], "line 2");
    assert!(found[1]["error"]["message"].as_str().unwrap().contains("is expected"), "{}", found[1]);
    assert!(found[3]["error"]["message"].as_str().unwrap().contains("name"), "{}", found[3]);
    assert!(!end.stderr.contains('\u{1b}') && end.stderr.contains("line 2, broken-"), "{end:?}");
}

#[test]
fn items_keep_their_results_when_lines_are_added_and_moved_and_failed_ones_can_be_tried_again() {
    let world = World::with_flows();
    let line = |name: &str, grade: &str| json!({"name": name, "grade": grade});
    inputs(&world, &[line("a", "good"), line("b", "moody"), line("c", "good")]);
    let out = ["--out", "out.jsonl"];
    assert_eq!(batch(&world, &out).code, Some(5));
    let first = rows(&world.file("out.jsonl"));
    inputs(&world, &[line("d", "good"), line("c", "good"), line("b", "moody"), line("a", "good")]);
    let second = batch(&world, &out);
    assert!(second.code == Some(5) && second.stderr.contains("4 lines: 3 done, 1 failed"), "{second:?}");
    let found = rows(&world.file("out.jsonl"));
    assert_eq!((&found[..3], found.len()), (&first[..], 4));

    world.write("better", "");
    let third = batch(&world, &["--out", "out.jsonl", "--retry-failed"]);
    assert_eq!(third.code, Some(0), "{third:?}");
    let found = rows(&world.file("out.jsonl"));
    assert_eq!((found.len(), ids(&found).len()), (4, 4));
    let retried = found.iter().find(|row| row["outcome"]["value"] == "b").unwrap();
    assert_eq!(retried["run"], json!(format!("{}~2", retried["id"].as_str().unwrap())));
    // Without the file, the newest run of each item tells.
    let all = batch(&world, &["--ordered"]);
    let values: Vec<Value> = rows(&all.stdout).iter().map(|row| row["outcome"]["value"].clone()).collect();
    assert_eq!((all.code, values), (Some(0), vec![json!("d"), json!("c"), json!("b"), json!("a")]));
}

#[test]
fn lines_can_name_themselves_once() {
    let world = World::with_flows();
    let line = |id: &str, name: &str| json!({"id": id, "name": name});
    inputs(&world, &[line("x-1", "a"), line("x-2", "b"), line("x-1", "c"), json!({"name": "d"})]);
    let end = batch(&world, &["--id-field", "id", "--ordered"]);
    let found = rows(&end.stdout);
    let seen: Vec<(&str, &str)> = found
        .iter()
        .map(|row| (row["status"].as_str().unwrap(), row["error"]["code"].as_str().unwrap_or_default()))
        .collect();
    assert_eq!(seen, [("done", ""), ("done", ""), ("invalid", "conflict"), ("invalid", "invalid")]);
    assert_eq!((&found[0]["id"], &found[1]["id"]), (&json!("x-1"), &json!("x-2")));
    assert_eq!(world.json(&["show", "x-2", "--json"])["outcome"]["value"], "b");
    // The same id with another input is a conflict, not another run.
    inputs(&world, &[line("x-1", "z")]);
    let end = batch(&world, &["--id-field", "id"]);
    assert_eq!((end.code, &rows(&end.stdout)[0]["error"]["code"]), (Some(5), &json!("conflict")));
}

#[test]
fn people_are_waited_for_when_nothing_else_is_left() {
    let world = World::with_flows();
    let line = |name: &str, grade: &str| json!({"name": name, "grade": grade});
    inputs(&world, &[line("a", "asks"), line("b", "good"), line("c", "asks")]);
    let command = ["--out", "out.jsonl", "--jobs", "1"];
    let end = batch(&world, &command);
    assert_eq!(end.code, Some(3), "{end:?}");
    assert_eq!(rows(&world.file("out.jsonl")).len(), 1);
    assert!(end.stderr.contains("1 done, 2 waiting for a person"), "{end:?}");
    assert!(
        end.stderr.contains("outlast answer graded-") && end.stderr.contains("to go on: outlast batch"),
        "{end:?}"
    );
    let waiting = world.json(&["runs", "--status", "waiting", "--json"]);
    let run = waiting["items"][0]["id"].as_str().unwrap();
    assert_eq!(world.run(&["answer", run, "approve"]).code, Some(0));
    assert_eq!(batch(&world, &command).code, Some(3));
    assert_eq!(rows(&world.file("out.jsonl")).len(), 2);
    let end = batch(&world, &["--out", "out.jsonl", "--on-ask", "deny"]);
    assert_eq!(end.code, Some(5), "{end:?}");
    let found = rows(&world.file("out.jsonl"));
    assert_eq!((found.len(), &found[2]["status"]), (3, &json!("failed")));
}

#[test]
fn an_item_that_takes_too_long_is_cancelled_and_the_others_go_on() {
    let world = World::with_flows();
    inputs(&world, &[json!({"name": "a", "grade": "slow"}), json!({"name": "b"})]);
    let end = batch(&world, &["--item-timeout", "300ms", "--ordered"]);
    let found = rows(&end.stdout);
    assert_eq!(end.code, Some(5), "{end:?}");
    assert_eq!((&found[0]["status"], &found[0]["why"]), (&json!("cancelled"), &json!("item_timeout")));
    assert_eq!(found[1]["status"], "done");
    // Whoever looks later, into another file of results or none, is told the same.
    let again = batch(&world, &["--item-timeout", "300ms", "--ordered", "--out", "fresh.jsonl"]);
    assert_eq!((again.code, rows(&world.file("fresh.jsonl"))), (Some(5), found.clone()), "{again:?}");
    assert_eq!(rows(&batch(&world, &["--ordered"]).stdout), found);
    let by = world.run(&["audit", found[0]["id"].as_str().unwrap(), "--by", "local"]);
    assert!(by.stdout.contains("cancelled by=local detail=item_timeout"), "{by:?}");
    // Somebody else's cancel is another matter.
    inputs(&world, &[json!({"name": "c", "grade": "slow"})]);
    let late = batch(&world, &["--timeout", "300ms", "--id-field", "name"]);
    assert!(late.code == Some(124) && late.stderr.contains("to go on: outlast batch"), "{late:?}");
    assert_eq!(world.run(&["cancel", "c"]).code, Some(0));
    assert_eq!(batch(&world, &["--id-field", "name"]).code, Some(4));
}

#[test]
fn signals_end_a_batch_and_its_runs_stay() {
    let world = World::with_flows();
    inputs(&world, &[json!({"name": "a", "grade": "slow"}), json!({"name": "b"})]);
    for (signal, code) in [("TERM", 143), ("INT", 130)] {
        let mut command =
            world.start(&["batch", FLOW, "--inputs", "in.jsonl", "--output", "jsonl", "--out", "out.jsonl"]);
        command.line("the start of both", |line| line.contains("\"line\":2") || line.contains("\"begun\""));
        until("the result of b", || world.file("out.jsonl").lines().count() == 1);
        command.signal(signal);
        let end = command.finish();
        assert_eq!(end.code, Some(code), "{end:?}");
        assert!(
            end.stderr.contains("to go on: outlast batch flows/graded.flow --inputs in.jsonl"),
            "{end:?}"
        );
        let ends: Vec<Value> = rows(&end.stdout).into_iter().filter(|event| event["kind"] == "end").collect();
        assert_eq!((ends.len(), &ends[0]["exit"]), (1, &json!(code)), "{end:?}");
    }
    assert_eq!(rows(&world.file("out.jsonl")).len(), 1);
    assert_eq!(world.json(&["runs", "--status", "waiting", "--json"])["items"].as_array().unwrap().len(), 1);
}

#[test]
fn a_pipe_into_which_nobody_writes_holds_no_batch_back_from_ending() {
    let world = World::with_flows();
    let made = std::process::Command::new("mkfifo").arg(world.work().join("in.jsonl")).status();
    assert!(made.unwrap().success());
    let mut command = world.start(&["batch", FLOW, "--inputs", "in.jsonl", "--out", "out.jsonl"]);
    until("the batch to host", || world.socket().exists());
    command.signal("TERM");
    assert_eq!(command.finish().code, Some(143));
}

#[test]
fn events_end_with_one_record_whatever_happens() {
    let world = World::with_flows();
    world.write("in.jsonl", "{\"name\": \"a\"}\n{\"name\": \"b\", \"grade\": \"asks\"}\nx\n");
    for (arguments, exit) in [
        (&["batch", FLOW, "--inputs", "in.jsonl"][..], 3),
        (&["batch", FLOW, "--inputs", "in.jsonl", "--on-ask", "fail"], 5),
        (&["batch", FLOW, "--inputs", "missing.jsonl"], 2),
        (&["batch", "missing.flow", "--inputs", "in.jsonl"], 2),
        (&["batch", FLOW, "--inputs", "in.jsonl", "--out", "in.jsonl"], 2),
    ] {
        let end = world.run(&[arguments, &["--output", "jsonl"]].concat());
        assert_eq!(end.code, Some(exit), "{end:?}");
        let events = rows(&end.stdout);
        let ends = events.iter().filter(|event| event["kind"] == "end").count();
        assert_eq!((ends, &events.last().unwrap()["exit"]), (1, &json!(exit)), "{end:?}");
    }
    assert!(world.file("in.jsonl").starts_with("{\"name\""), "what is no file of results is left alone");
}

/// Case BAT-03: a reader that goes away.
#[test]
fn a_batch_whose_reader_goes_away_ends_quietly_and_goes_on_later() {
    let world = World::with_flows();
    let all: Vec<Value> = (0..50).map(|n| json!({"name": format!("n{n}")})).collect();
    inputs(&world, &all);
    let (reader, writer) = std::io::pipe().unwrap();
    let mut command = world.command(&["batch", FLOW, "--inputs", "in.jsonl"]);
    command.stdin(Stdio::null()).stdout(writer).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    drop((reader, command));
    let end = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&end.stderr);
    assert_eq!(end.status.code(), Some(141), "{stderr}");
    assert!(!stderr.contains("panicked") && !stderr.contains("error"), "{stderr}");
    let again = batch(&world, &[]);
    assert_eq!((again.code, rows(&again.stdout).len()), (Some(0), 50));
}

#[test]
fn a_batch_attaches_to_a_host_and_reads_from_stdin_and_two_do_not_share_a_file() {
    let world = World::with_flows();
    let host = world.host(&[]);
    let command = ["batch", FLOW, "--inputs", "-", "--out", "out.jsonl"];
    let mut first = world.start(&command);
    first.say("{\"name\": \"a\"}");
    until("the first result", || world.file("out.jsonl").lines().count() == 1);
    let second = world.run(&command);
    assert!(second.code == Some(75) && second.stderr.contains("written by another batch"), "{second:?}");
    first.say("{\"name\": \"b\"}");
    let end = first.finish();
    assert_eq!(end.code, Some(0), "{end:?}");
    assert_eq!(rows(&world.file("out.jsonl")).len(), 2);
    assert_eq!(world.pids(Role::Runtime), [host.pid()]);
}
