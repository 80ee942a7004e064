//! What a large answer of a tool costs the worker in memory while it is on its way to where it is kept.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use outlast_tests::world::{Role, World, binary};
use serde_json::{Value, json};

/// Bytes of an answer.
const BYTES: u64 = 10_000_000;

/// How often an answer may be in memory. It is once or twice, three times one of a server; with a copy in each step it was twelve times
/// and more.
const TIMES_MAX: u64 = 7;

/// A figure of a process, in bytes.
fn figure(pid: u32, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

/// Calls a tool, and returns what became of it.
fn called(world: &World, run: &str, tool: &str, args: &Value) -> Value {
    world.begin("Looked", run, &json!({"name": tool, "args": args}));
    let question = world.questions(run, 1).remove(0);
    let answer = json!({"question": question["id"], "choice": "approve", "shown": question["shown"]});
    assert_eq!(world.post(&format!("/v1/runs/{run}/answers"), &answer).status, 200);
    world.outcome(run)["value"].clone()
}

/// The worker's figures in whole runs, with a secret to look for: all that is said goes through the mask.
#[test]
fn a_large_answer_is_in_memory_few_times() {
    let shell = |bytes: u64| json!({"command": format!("yes | head -c {bytes}")});
    for (tool, small, large) in [
        ("shell", shell(1_000), shell(BYTES)),
        ("read", json!({"path": ".mcp.json"}), json!({"path": "large"})),
        ("s__huge", json!({"bytes": 1_000}), json!({ "bytes": BYTES })),
    ] {
        let world = World::with_flows().with_variable("KEY", "a-key-that-nobody-sees");
        world.write("outlast.toml", "[environment]\nsecrets = [\"KEY\"]\n");
        let server = json!({"command": binary("outlast-test-mcp"), "args": ["{}"]});
        world.write(".mcp.json", &json!({"mcpServers": {"s": server}}).to_string());
        std::fs::write(world.work().join("large"), b"a line of 20 bytes.\n".repeat(500_000)).unwrap();
        let _server = world.host(&["flows/looked.flow"]);
        let first = called(&world, "small", tool, &small);
        assert_eq!(first["ok"], true, "{first}");
        let worker = world.pids(Role::Tool)[0];
        let before = figure(worker, "VmHWM");
        let became = called(&world, "large", tool, &large);
        assert!(became["text"].as_str().unwrap().contains("the whole is blob:"), "{tool}: {became}");
        let more = figure(worker, "VmHWM") - before;
        assert!(more < TIMES_MAX * BYTES, "{tool}: {more} bytes more for {BYTES}");
    }
}
