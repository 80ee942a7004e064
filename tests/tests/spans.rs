//! What the log says of which run and operation: every line of a step of one stands in its span.

use std::process::Command;

use outlast_tests::world::World;
use serde_json::json;

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
