//! `outlast test`: the examples hold, a failing test is shown where it stands, and the exit code tells scripts.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use outlast_tests::world::World;
use serde_json::{Value, json};

const FLOW: &str = r#"edition 1
activity greet(name: text) -> text within 1m effect pure
flow Hello(name: text) -> text {
  start Greet
  state Greet { do greet(name) as words
    on ok -> end words
    on problem -> end "nothing"
  }
}
test "it greets" {
  start Hello("Ann")
  stub greet(name) gives "hello {name}"
  expect end "hello Ann"
}
test "it greets <others>" {
  start Hello("Bob")
  stub greet(name) gives "hello {name}"
  expect end "hello Ann"
}
"#;

#[test]
fn the_tests_of_the_examples_hold_and_all_their_crashes_are_survived() {
    let world = World::with_examples();
    let files = ["examples/agent.flow", "examples/deploy.flow", "examples/report.flow"];
    let end = world.run(&[&["test"][..], &files[..]].concat());
    assert_eq!((end.code, end.stderr.as_str()), (Some(0), ""), "{end:?}");
    assert!(
        end.stdout.contains("ok      examples/agent.flow: a refused tool call goes back to the model"),
        "{end:?}"
    );
    assert!(end.stdout.contains(", 0 failed; "), "{end:?}");
    assert!(end.stdout.contains("arrows taken ("), "{end:?}");
    assert!(!world.data().exists(), "tests need no data directory");
}

/// Returns the files of `examples/flows`, by name.
fn flows(world: &World) -> Vec<String> {
    let entries = std::fs::read_dir(world.work().join("examples/flows")).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert!(!names.is_empty(), "no flows in examples/flows");
    names.iter().map(|name| format!("examples/flows/{name}")).collect()
}

#[test]
fn the_tests_of_the_flows_users_have_hold_and_take_every_arrow() {
    let world = World::with_examples();
    let files = flows(&world);
    let files = files.iter().map(String::as_str);
    let end = world.run(&["test", "--coverage-min", "100"].into_iter().chain(files).collect::<Vec<&str>>());
    assert_eq!((end.code, end.stderr.as_str()), (Some(0), ""), "{end:?}");
    assert!(end.stdout.contains(", 0 failed; "), "{end:?}");
    assert!(!end.stdout.contains("never taken"), "{end:?}");
}

#[test]
fn the_checker_has_nothing_to_say_about_the_flows_users_have() {
    let world = World::with_examples();
    let files = flows(&world);
    let files = files.iter().map(String::as_str);
    let checked = world.json(&["check", "--json"].into_iter().chain(files).collect::<Vec<&str>>());
    assert_eq!((&checked["ok"], &checked["diagnostics"]), (&json!(true), &json!([])));
}

#[test]
fn a_failing_test_is_shown_where_it_stands() {
    let world = World::new();
    world.write("hello.flow", FLOW);
    let end = world.run(&["test", "hello.flow", "--junit", "out.xml"]);
    assert_eq!(end.code, Some(1), "{end:?}");
    for words in [
        "ok      hello.flow: it greets",
        "FAILED  hello.flow: it greets <others>",
        "hello.flow:18:3",
        "expect end \"hello Ann\"",
        "expected: \"hello Ann\"",
        "found: \"hello Bob\"",
        "path: Greet",
        "1 held, 1 failed",
        "hello.flow:7 Hello.Greet: on problem",
    ] {
        assert!(end.stdout.contains(words), "nothing about {words:?}: {end:?}");
    }
    let xml = std::fs::read_to_string(world.work().join("out.xml")).unwrap();
    assert!(xml.contains("tests=\"2\" failures=\"1\"") && xml.contains("it greets &lt;others&gt;"), "{xml}");
}

#[test]
fn programs_read_the_report_as_json() {
    let world = World::new();
    world.write("hello.flow", FLOW);
    let end = world.run(&["test", "hello.flow", "--json"]);
    let report: Value = serde_json::from_str(&end.stdout).unwrap();
    assert_eq!((end.code, &report["ok"]), (Some(1), &json!(false)));
    let failed = &report["tests"][1];
    assert_eq!(
        (&failed["line"], &failed["failure"]["found"]),
        (&json!(18), &json!("\"hello Bob\"")),
        "{failed}"
    );
    assert_eq!(report["coverage"]["arrows"], json!({ "taken": 1, "all": 2 }));
    let end = world.run(&["test", "hello.flow", "--json", "--filter", "it greets <"]);
    let report: Value = serde_json::from_str(&end.stdout).unwrap();
    assert_eq!(report["tests"].as_array().unwrap().len(), 1);
}

#[test]
fn the_exit_code_tells_what_is_wrong() {
    let world = World::new();
    world.write("hello.flow", FLOW);
    world.write("bad.flow", &FLOW.replace("do greet", "do great"));
    for (arguments, code) in [
        (vec!["test", "hello.flow"], 1),
        (vec!["test", "hello.flow", "bad.flow"], 2),
        (vec!["test", "missing.flow"], 2),
        (vec!["test", "hello.flow", "--filter", "others"], 1),
        (vec!["test", "hello.flow", "--filter", "nothing is named so"], 2),
        (vec!["test", "hello.flow", "--coverage-min", "50"], 1),
    ] {
        let end = world.run(&arguments);
        assert_eq!(end.code, Some(code), "{arguments:?}: {end:?}");
    }
    let end = world.run(&["test", "hello.flow", "--filter", "nothing is named so"]);
    for words in
        ["no test has \"nothing is named so\" in its name", "\"it greets\"", "\"it greets <others>\""]
    {
        assert!(end.stderr.contains(words), "nothing about {words:?}: {end:?}");
    }
    world.write("good.flow", FLOW.split("test \"it greets <").next().unwrap());
    for (least, code) in [("50", 0), ("51", 1)] {
        let end = world.run(&["test", "good.flow", "--coverage-min", least]);
        assert_eq!(end.code, Some(code), "{least}: {end:?}");
    }
}
