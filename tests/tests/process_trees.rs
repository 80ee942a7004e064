//! Commands that start what does not want to end.

use std::time::{Duration, Instant};

use outlast_tests::process::until;
use outlast_tests::world::World;
use serde_json::json;

/// Far above what ending a tree takes, far below how long its processes would live.
const SECONDS: Duration = Duration::from_secs(15);

/// One that ignores SIGTERM and holds the output open, one in a session of its own behind a parent that is gone, and the command itself.
const TREE: &str = r#"
sh -c 'trap "" TERM; echo $$ > deaf; while :; do sleep 1000; done' &
setsid sh -c 'sh -c "trap \"\" TERM HUP; echo \$\$ > orphan; while :; do sleep 1000; done" & exit'
while ! test -s deaf || ! test -s orphan; do sleep 0.01; done
echo $$ > main; echo ready; wait; sleep 1000
"#;

const NAMES: [&str; 3] = ["deaf", "orphan", "main"];

fn lives(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or_default().trim_start().starts_with('Z'))
}

fn pids(world: &World) -> [String; 3] {
    until("the tree to stand", || NAMES.iter().all(|name| !world.file(name).trim().is_empty()));
    NAMES.map(|name| world.file(name))
}

/// Case CAN-05: a time limit and a cancel end all that a command has started, and the runtime is free for others meanwhile.
#[test]
fn nothing_of_a_command_outlives_its_time_or_its_run() {
    let world = World::with_flows();
    let _server = world.host(&["flows/tree.flow"]);
    let begin = |run: &str, command: &str, timeout: &str| {
        world.begin("Tree", run, &json!({"command": command, "timeout": timeout}));
    };
    // Its time begins with the command; the tree stands well before.
    begin("limited", TREE, "3s");
    let tree = pids(&world);
    let started = Instant::now();
    begin("beside", "echo free", "30s");
    assert_eq!(world.outcome("beside")["value"]["said"], "free\n", "the runtime is not held up");
    let said = world.outcome("limited")["value"]["said"].as_str().unwrap().to_owned();
    assert!(started.elapsed() < SECONDS, "{:?}", started.elapsed());
    assert!(said.contains("timed out after") && said.contains("ready"), "{said}");
    assert!(!tree.iter().any(|pid| lives(pid)), "{tree:?}: {said}");
    for name in NAMES {
        std::fs::remove_file(world.work().join(name)).unwrap();
    }
    begin("cancelled", TREE, "1h");
    let tree = pids(&world);
    let started = Instant::now();
    assert_eq!(world.post("/v1/runs/cancelled/cancel", &json!({})).status, 202);
    assert_eq!(world.outcome("cancelled")["kind"], "cancelled");
    until("the tree to be gone", || !tree.iter().any(|pid| lives(pid)));
    assert!(started.elapsed() < SECONDS, "{:?}", started.elapsed());
    begin("after", "echo free", "30s");
    assert_eq!(world.outcome("after")["value"]["said"], "free\n");
}

/// What somebody else has ended is told as that: the worker is there, and nobody saw how far the command came.
#[test]
fn a_guard_that_is_killed_is_no_lost_worker() {
    let world = World::with_flows();
    let _server = world.host(&["flows/tree.flow"]);
    let command = "echo $PPID > guard; echo $$ > main; sleep 1000";
    world.begin("Tree", "r", &json!({"command": command, "timeout": "1h"}));
    until("the command", || !world.file("main").trim().is_empty() && !world.file("guard").trim().is_empty());
    let guard = world.file("guard");
    let killed = std::process::Command::new("kill").args(["-KILL", guard.trim()]).status();
    assert!(killed.is_ok_and(|status| status.success()));
    assert_eq!(world.outcome("r")["value"]["type"], "InDoubt");
    until("the command to be gone", || !lives(&world.file("main")));
    let told = world.run(&["events", "r"]).stdout;
    assert!(told.contains("why=broken_off") && !told.contains("worker_gone"), "{told}");
    let audit = world.run(&["audit", "r"]).stdout;
    assert!(audit.contains("detail=broken_off"), "{audit}");
}
