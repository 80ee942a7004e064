//! What the log says of which run and operation: every line of a step of one stands in its span.

use std::process::Command;

use outlast_tests::world::World;
use serde_json::{Value, json};

/// Each way of an operation, from the hand-out to the disk, and the attempt in its worker, is named by run and operation.
#[test]
fn log_lines_name_run_and_operation() {
    let world = World::with_flows().with_variable("OUTLAST_LOG", "debug");
    let mut server = world.host(&["flows/shown_steps.flow"]);
    world.begin("ShownSteps", "r-7", &json!({}));
    assert_eq!(world.outcome("r-7")["kind"], "done");
    server.signal("TERM");
    let log = server.finish().stderr;
    for span in [
        "report{run=r-7 op=2.0 attempt=1}: outlast_runtime::engine::shard::reports: judged status=Accepted",
        "durable{run=r-7}: outlast_runtime::engine::shard::release: a step is on the disk",
        "handed out run=r-7 op=2.0 attempt=1 activity=\"shell\"",
    ] {
        assert!(log.contains(span), "{span}\n{log}");
    }
    let logs = Command::new("grep").args(["-rh", "attempt{"]).arg(world.data()).output().unwrap();
    let worker = String::from_utf8_lossy(&logs.stdout);
    assert!(worker.contains("attempt{run=\"r-7\" op=\"2.0\" attempt=1 activity=\"shell\"}"), "{worker}");
}

/// The same for machines: each line is an object, that of the worker too.
#[test]
fn log_lines_are_json_where_that_is_wanted() {
    let world =
        World::with_flows().with_variable("OUTLAST_LOG", "debug").with_variable("OUTLAST_LOG_FORMAT", "json");
    let mut server = world.host(&["flows/shown_steps.flow"]);
    world.begin("ShownSteps", "r-7", &json!({}));
    assert_eq!(world.outcome("r-7")["kind"], "done");
    server.signal("TERM");
    let log = server.finish().stderr;
    let logs = Command::new("grep").args(["-rh", "\"name\":\"attempt\""]).arg(world.data()).output().unwrap();
    let worker = String::from_utf8_lossy(&logs.stdout);
    let parsed = |text: &str| -> Vec<Value> {
        // What is said to people beside it stays text.
        let lines = text.lines().filter(|line| line.starts_with('{'));
        lines.map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
    };
    let of_the_step = |line: &Value| line["message"] == "judged" && line["spans"][0]["op"] == "2.0";
    let judged = parsed(&log).into_iter().find(of_the_step).unwrap();
    assert_eq!((&judged["level"], &judged["status"]), (&json!("DEBUG"), &json!("Accepted")), "{judged}");
    let span = &judged["spans"][0];
    assert_eq!((&span["name"], &span["run"]), (&json!("report"), &json!("r-7")), "{judged}");
    let attempts = parsed(&worker);
    assert!(attempts.iter().any(|line| line["spans"][0]["run"] == "r-7"), "{worker}");
}

#[test]
fn another_form_of_log_is_refused() {
    let refused = World::new().with_variable("OUTLAST_LOG_FORMAT", "xml").run(&["runs"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(
        refused.stderr.contains("OUTLAST_LOG_FORMAT is \"xml\"; text or json is expected"),
        "{refused:?}"
    );
}
