//! `outlast check --fix`, `explain` and `fmt`: mistakes are mended where the meaning is sure, and explained everywhere; layout is changed and nothing else.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use outlast_tests::world::World;
use serde_json::{Value, json};

const HABITS: &str = "fn f(a: bool, b: bool) -> bool = a && !b;\nfn g(message: text) -> text = mesage\n";
const MENDED: &str = "fn f(a: bool, b: bool) -> bool = a and not b\nfn g(message: text) -> text = mesage\n";

#[test]
fn sure_fixes_are_made_and_said_and_the_rest_is_told() {
    let world = World::new();
    world.write("habits.flow", HABITS);
    let path = world.work().join("habits.flow");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    symlink("habits.flow", world.work().join("link.flow")).unwrap();
    let end = world.run(&["check", "--fix", "link.flow"]);
    assert_eq!(end.code, Some(2), "a name is still unknown: {end:?}");
    for told in [
        "link.flow:1:36: fixed F0141: replaced `&&` by `and`",
        "link.flow:1:39: fixed F0143",
        "fixed F0150: removed `;`",
        "did you mean `message`",
        "1 error found",
    ] {
        assert!(end.stderr.contains(told), "nothing about {told}: {end:?}");
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), MENDED);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(fs::symlink_metadata(world.work().join("link.flow")).unwrap().is_symlink());
    let names: Vec<String> = fs::read_dir(world.work())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| name.contains("flow"))
        .collect();
    assert_eq!(names.len(), 2, "nothing else is left behind: {names:?}");

    let again: Value =
        serde_json::from_str(&world.run(&["check", "--fix", "habits.flow", "--json"]).stdout).unwrap();
    assert_eq!((&again["ok"], &again["changes"]), (&json!(false), &json!([])));
    let found = &again["diagnostics"][0];
    assert_eq!((&found["code"], &found["severity"]), (&json!("F0201"), &json!("error")));
    assert_eq!(
        (&found["file"], &found["line"], &found["column"]),
        (&json!("habits.flow"), &json!(2), &json!(31))
    );
    let start = found["span"]["start"].as_u64().unwrap();
    assert_eq!(
        found["suggestions"],
        json!([{
            "text": "replace `mesage` by `message`",
            "safe": false,
            "edits": [{ "start": start, "end": start + 6, "text": "message" }],
        }])
    );
}

#[test]
fn without_fix_nothing_is_written() {
    let world = World::new();
    world.write("habits.flow", HABITS);
    assert_eq!(world.run(&["check", "habits.flow"]).code, Some(2));
    assert_eq!(fs::read_to_string(world.work().join("habits.flow")).unwrap(), HABITS);
}

#[test]
fn every_code_can_be_explained() {
    let world = World::new();
    let one = world.run(&["explain", "F0141"]);
    assert_eq!(one.code, Some(0), "{one:?}");
    for told in ["F0141: and is written `and`", "Wrong:", "a && b", "Right:", "a and b"] {
        assert!(one.stdout.contains(told), "nothing about {told}: {one:?}");
    }
    let all = world.run(&["explain"]);
    assert!(
        all.stdout.contains("F01xx: syntax") && all.stdout.contains("  F0401  unhandled outcome"),
        "{all:?}"
    );
    let unknown = world.run(&["explain", "F0499"]);
    assert_eq!((unknown.code, unknown.stdout.as_str()), (Some(2), ""), "{unknown:?}");
    assert!(unknown.stderr.contains("there is no code F0499"), "{unknown:?}");
    let machine: Value = serde_json::from_str(&world.run(&["explain", "F0141", "--json"]).stdout).unwrap();
    assert_eq!(machine["code"], "F0141");
}

const CROOKED: &str = "activity a() within 1m effect pure\nflow F() {\nstart A\nstate A { steps { x = do a() y = do a() } on ok,problem->end }\n}\n";

#[test]
fn fmt_lays_out_whole_files_and_leaves_broken_ones_alone() {
    let world = World::new();
    world.write("crooked.flow", CROOKED);
    world.write("broken.flow", "flow F( {");
    let read = |name: &str| fs::read_to_string(world.work().join(name)).unwrap();

    let check = world.run(&["fmt", "--check", "crooked.flow"]);
    assert_eq!(check.code, Some(1), "{check:?}");
    assert!(check.stdout.starts_with("--- crooked.flow\n+++ crooked.flow\n@@ "), "{check:?}");
    assert_eq!(read("crooked.flow"), CROOKED, "only looked at");

    let both = world.run(&["fmt", "crooked.flow", "broken.flow"]);
    assert_eq!(both.code, Some(2), "{both:?}");
    assert!(both.stderr.contains("broken.flow:1:"), "{both:?}");
    assert_eq!(read("broken.flow"), "flow F( {", "nothing is made of what cannot be read");
    assert!(read("crooked.flow").contains("on ok, problem -> end\n"), "{}", read("crooked.flow"));
    assert_eq!(world.run(&["fmt", "--check", "crooked.flow"]).code, Some(0));

    let expanded = world.run(&["fmt", "--expand", "crooked.flow"]);
    assert_eq!(expanded.code, Some(0), "{expanded:?}");
    assert!(!expanded.stdout.contains("steps"), "{}", expanded.stdout);
    world.write("expanded.flow", &format!("{}\n", expanded.stdout.trim_end()));
    assert_eq!(world.run(&["fmt", "--check", "expanded.flow"]).code, Some(0), "laid out as well");
    assert_eq!(world.run(&["check", "expanded.flow"]).code, Some(0));
    assert!(read("crooked.flow").contains("steps"), "the file keeps its sugar");
}

#[test]
fn a_line_break_of_another_kind_is_a_difference_that_is_shown() {
    let world = World::new();
    world.write("dos.flow", "error Busy\r\n");
    let check = world.run(&["fmt", "--check", "dos.flow"]);
    assert_eq!(check.code, Some(1), "{check:?}");
    assert!(check.stdout.contains("-error Busy") && check.stdout.contains("+error Busy"), "{check:?}");
}

#[test]
fn a_file_that_cannot_be_read_does_not_keep_the_others_from_being_checked() {
    let world = World::new();
    world.write("wrong.flow", "fn f() -> int = \"x\"\n");
    let end = world.run(&["check", "missing.flow", "wrong.flow"]);
    assert_eq!(end.code, Some(2), "{end:?}");
    for told in ["cannot read missing.flow", "wrong.flow:1:17", "2 errors found"] {
        assert!(end.stderr.contains(told), "nothing about {told}: {end:?}");
    }
    let end = world.run(&["check", "--json", "missing.flow", "wrong.flow"]);
    let told: Value = serde_json::from_str(&end.stdout).unwrap();
    assert_eq!((end.code, &told["ok"]), (Some(2), &json!(false)), "{end:?}");
    assert_eq!(told["errors"][0]["code"], "invalid");
    assert!(told["errors"][0]["message"].as_str().unwrap().contains("missing.flow"), "{told}");
    assert_eq!(told["diagnostics"][0]["code"], "F0301");
}

#[test]
fn tools_are_told_in_json_what_fmt_did() {
    let world = World::new();
    world.write("crooked.flow", CROOKED);
    world.write("broken.flow", "flow F( {");
    let json_of = |arguments: &[&str]| -> Value {
        let end = world.run(arguments);
        serde_json::from_str(&end.stdout).unwrap_or_else(|error| panic!("{error}: {end:?}"))
    };
    let told = json_of(&["fmt", "--json", "--check", "crooked.flow"]);
    assert_eq!((&told["ok"], &told["files"][0]["outcome"]), (&json!(false), &json!("differs")));
    assert!(told["files"][0]["diff"].as_str().unwrap().starts_with("--- crooked.flow"), "{told}");
    let told = json_of(&["fmt", "--json", "crooked.flow", "broken.flow", "missing.flow"]);
    let outcomes: Vec<&Value> =
        told["files"].as_array().unwrap().iter().map(|file| &file["outcome"]).collect();
    assert_eq!(outcomes, ["changed", "refused", "refused"]);
    assert_eq!(told["files"][1]["diagnostics"][0]["severity"], "error");
    assert!(told["files"][2]["message"].as_str().unwrap().contains("missing.flow"), "{told}");
    let told = json_of(&["fmt", "--json", "--expand", "crooked.flow"]);
    assert!(told["files"][0]["text"].as_str().unwrap().contains("state A"), "{told}");
}

#[test]
fn tools_are_told_in_json_what_the_diagram_is_and_what_they_did_wrong() {
    let world = World::new();
    world.write("crooked.flow", CROOKED);
    let told: Value =
        serde_json::from_str(&world.run(&["graph", "--json", "crooked.flow", "--format", "dot"]).stdout)
            .unwrap();
    assert_eq!((&told["flow"], &told["format"]), (&json!("F"), &json!("dot")));
    assert!(told["diagram"].as_str().unwrap().starts_with("digraph"), "{told}");
    for wrong in [&["check", "--json"][..], &["graph", "--json", "--format", "pdf"], &["--json", "fly"]] {
        let end = world.run(wrong);
        let told: Value =
            serde_json::from_str(&end.stderr).unwrap_or_else(|error| panic!("{error}: {end:?}"));
        assert_eq!((end.code, &told["error"]["code"]), (Some(2), &json!("invalid")), "{end:?}");
        assert!(!told["error"]["message"].as_str().unwrap().starts_with("error"), "{told}");
    }
}

#[test]
fn a_diagram_of_another_flow_than_the_run_s_is_refused() {
    let world = World::new();
    world.write("two.flow", "flow One() {\n  start A\n  state A { after 1s -> B }\n  state B { after 1s -> end }\n}\nflow Two() {\n  start A\n  state A { after 1s -> end }\n}\n");
    let run = world.run(&["run", "two.flow:One", "--id", "r-1"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let other = world.run(&["graph", "two.flow:Two", "--run", "r-1"]);
    assert_eq!((other.code, other.stdout.as_str()), (Some(2), ""), "{other:?}");
    assert!(other.stderr.contains("run r-1 is of flow One, not of Two"), "{other:?}");
    let own = world.run(&["graph", "two.flow", "--run", "r-1"]);
    assert_eq!(own.code, Some(0), "{own:?}");
    assert!(own.stdout.contains("  > after 1s -> B"), "the arrow that was taken last: {}", own.stdout);
}
