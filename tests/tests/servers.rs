//! Tools of MCP servers in whole runs: pulled into a catalogue, called by a flow, killed in the middle.
//!
//! The server is `outlast-test-mcp`; it leaves its lines in the ledger and stands at the gates, as the test worker does.

use std::process::Command;

use outlast_tests::ledger::Gate;
use outlast_tests::process::until;
use outlast_tests::world::{Role, World, binary};
use serde_json::{Value, json};

/// What can be killed in the middle of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Server,
    Worker,
    Runtime,
}

const FLOW: &str = "flows/server_call.flow";
const CATALOGUE: &str = "flows/server.tools.json";

fn configure(world: &World, servers: &Value) {
    world.write(".mcp.json", &json!({"mcpServers": servers}).to_string());
}

/// The entry of a scripted server.
fn scripted(script: &Value) -> Value {
    json!({"command": binary("outlast-test-mcp"), "args": [script.to_string()]})
}

/// A world with the server `s` and its catalogue.
fn world() -> World {
    let world = World::with_flows();
    configure(&world, &json!({"s": scripted(&json!({}))}));
    let pulled = world.run(&["tools", "pull", "--out", CATALOGUE]);
    assert_eq!(pulled.code, Some(0), "{pulled:?}");
    world
}

fn begin(world: &World, run: &str, tool: &str, args: &Value) {
    world.begin("ServerCall", run, &json!({"tool_name": tool, "args": args}));
}

fn approve(world: &World, run: &str) {
    let question = world.questions(run, 1).remove(0);
    let answer = json!({"question": question["id"], "choice": "approve", "shown": question["shown"]});
    assert_eq!(world.post(&format!("/v1/runs/{run}/answers"), &answer).status, 200);
}

#[test]
fn a_catalogue_is_pulled_and_its_changes_are_shown() {
    let world = World::with_flows();
    let none = world.run(&["tools", "pull"]);
    assert_eq!(none.code, Some(2), "{none:?}");
    assert!(none.stderr.contains(".mcp.json names no servers"), "{none:?}");
    configure(&world, &json!({"s": scripted(&json!({"only": ["echo", "note"]}))}));
    let first = world.run(&["tools", "pull"]);
    assert_eq!(
        first.stdout.trim_end(),
        "+ s__echo (pure, allow)\n+ s__note (once, ask)\nmcp.tools.json: 2 tools of 1 server, 2 changes",
        "{first:?}"
    );
    assert_eq!(world.run(&["tools", "pull", "--check"]).code, Some(0));
    let written = world.file("mcp.tools.json");
    // What a person wrote stays; a server that is broken leaves its tools as they are, and is named.
    world.write("mcp.tools.json", &written.replace("\"permission\":\"ask\"", "\"permission\":\"allow\""));
    let broken = json!({"command": "no-such-program"});
    configure(&world, &json!({"s": scripted(&json!({"only": ["note", "put"]})), "broken": broken}));
    let second = world.json(&["tools", "pull", "--json"]);
    assert_eq!(second["changes"], json!(["+ s__put (idempotent, ask)", "- s__echo"]));
    assert!(second["failed"]["broken"].as_str().unwrap().contains("cannot run no-such-program"), "{second}");
    assert!(world.file("mcp.tools.json").contains("\"permission\":\"allow\""));
    // Who disables a server for a while finds its tools, and their own words, as they were.
    let mut disabled = scripted(&json!({}));
    disabled["disabled"] = json!(true);
    configure(&world, &json!({"s": disabled}));
    let third = world.json(&["tools", "pull", "--json"]);
    assert_eq!((&third["changes"], &third["failed"]), (&json!([]), &json!({})), "{third}");
    assert!(world.file("mcp.tools.json").contains("\"permission\":\"allow\""));
    configure(&world, &json!({"s": scripted(&json!({"only": ["note"]}))}));
    assert_eq!(world.run(&["tools", "pull", "--check"]).code, Some(1));
    assert!(world.file("mcp.tools.json").contains("s__put"), "a check writes nothing");
}

#[test]
fn a_flow_calls_a_tool_of_a_server_after_a_person_said_yes() {
    let world = world();
    let _server = world.host(&[FLOW]);
    begin(&world, "read", "s__echo", &json!({"text": "hello"}));
    assert_eq!(world.outcome("read")["value"], json!({"type": "Said", "text": "hello", "ok": true}));
    begin(&world, "write", "s__note", &json!({"name": "n"}));
    approve(&world, "write");
    assert_eq!(world.outcome("write")["value"]["text"], "noted n");
    let lines = world.lines("n");
    assert_eq!((lines.len(), lines[0].run.as_str()), (1, "write"));
}

/// Cases MCP-01, WRK-01: whatever dies in the middle of a call, a `once` call is in doubt and is not made again, and an `idempotent`
/// one is made again with the same key.
#[test]
fn calls_that_were_killed_follow_their_class() {
    for victim in [Victim::Server, Victim::Worker, Victim::Runtime] {
        let world = world();
        let mut server = world.host(&[FLOW]);
        for (run, tool) in [("o", "s__note"), ("i", "s__put")] {
            world.close(run, Gate::After);
            begin(&world, run, tool, &json!({"name": run}));
            approve(&world, run);
            world.reached(run, Gate::After);
        }
        let pid = world.lines("o")[0].pid;
        match victim {
            Victim::Server => drop(Command::new("kill").args(["-9", &pid.to_string()]).output().unwrap()),
            Victim::Worker => world.kill(Role::Tool),
            Victim::Runtime => {
                server.murder();
                // The worker goes too: one that lives on delivers, which other tests show.
                world.kill(Role::Tool);
                server = world.host(&[]);
            }
        }
        until("the second attempt", || world.lines("i").len() == 2);
        for run in ["o", "i"] {
            world.open(run, Gate::After);
        }
        assert_eq!(world.outcome("o")["value"]["type"], "InDoubt", "{victim:?}");
        assert_eq!(world.outcome("i")["value"]["text"], "noted i", "{victim:?}");
        let (once, again) = (world.lines("o"), world.lines("i"));
        assert_eq!((once.len(), again.len()), (1, 2), "{victim:?}");
        assert_eq!(again[0].key, again[1].key, "{victim:?}");
        until("the end of the first server", || !std::path::Path::new(&format!("/proc/{pid}")).exists());
        drop(server);
    }
}

/// Case MCP-12: a run whose server is away says so, by name, and goes on when a person has brought it.
#[test]
fn a_run_waits_for_a_server_that_is_away_and_names_it() {
    let world = world();
    configure(&world, &json!({}));
    let _server = world.host(&[FLOW]);
    begin(&world, "r", "s__echo", &json!({"text": "hello"}));
    until("the reason", || {
        let waiting = world.get("/v1/runs/r")["waiting_for"].to_string();
        waiting.contains("MCP server s: .mcp.json does not have it")
    });
    configure(&world, &json!({"s": scripted(&json!({}))}));
    assert_eq!(world.outcome("r")["value"]["text"], "hello");
}

/// What a person approved is what runs: a tool that has become another one since is refused.
#[test]
fn an_approval_does_not_hold_for_a_tool_that_has_changed() {
    let world = world();
    let _server = world.host(&[FLOW]);
    begin(&world, "r", "s__note", &json!({"name": "n"}));
    let changed =
        json!({"name": "note", "description": "Deletes everything.", "inputSchema": {"type": "object"}});
    configure(&world, &json!({"s": scripted(&json!({"only": [], "tools": [changed]}))}));
    approve(&world, "r");
    assert_eq!(world.outcome("r")["value"]["type"], "Stale");
    assert!(world.lines("n").is_empty());
}

/// Case BAT-06: a chatty server writes nothing into the results of a command.
#[test]
fn results_stay_clean_of_what_servers_say() {
    let world = world();
    configure(
        &world,
        &json!({"s": scripted(&json!({"banner": "hello\n", "noise": "noise\n", "flood": 100_000}))}),
    );
    let input = json!({"tool_name": "s__echo", "args": {"text": "clean"}}).to_string();
    let end = world.run(&["run", FLOW, "--input", &input, "--output", "json"]);
    let result: Value = serde_json::from_str(&end.stdout).unwrap();
    assert_eq!(result["outcome"]["value"]["text"], "clean", "{end:?}");
    assert!(!end.stderr.contains("eeee") && !end.stderr.contains('\u{1b}'), "{end:?}");
}

/// Case BAT-04: a command ends with its result, and nothing is left, whatever a server ignores.
#[test]
fn a_command_ends_with_its_result_and_leaves_no_server() {
    let world = World::with_flows();
    let server = binary("outlast-test-mcp");
    // It ignores the end of its input and SIGTERM, and so does what it leaves in the background.
    let line = format!(
        "trap '' TERM; sleep 600 & echo $! >> pids; echo $$ >> pids; '{}' '{{}}'; sleep 600",
        server.display()
    );
    configure(&world, &json!({"s": {"command": "sh", "args": ["-c", line]}}));
    let pulled = world.run(&["tools", "pull", "--out", CATALOGUE]);
    assert_eq!(pulled.code, Some(0), "{pulled:?}");
    let input = json!({"tool_name": "s__echo", "args": {"text": "hello"}}).to_string();
    let end = world.run(&["run", FLOW, "--input", &input]);
    assert!(end.code == Some(0) && end.stdout.contains("hello"), "{end:?}");
    let pids = world.file("pids");
    assert_eq!(pids.lines().count(), 4, "the server was started twice: {pids}");
    until("the end of all processes", || {
        pids.lines().all(|pid| !std::path::Path::new("/proc").join(pid).exists())
    });
}

/// Case BAT-07: without a server that is required nothing is begun; without another one the run begins, and is told.
#[test]
fn a_required_server_that_is_away_is_named_before_anything_begins() {
    let world = world();
    let away = |required: bool| {
        configure(
            &world,
            &json!({"s": {"command": "no-such-program", "required": required}, "t": {"command": "nor-this-one"}}),
        );
    };
    let input = json!({"tool_name": "s__echo", "args": {"text": "hello"}}).to_string();
    away(true);
    let refused = world.run(&["run", FLOW, "--id", "r", "--input", &input]);
    assert_eq!(refused.code, Some(75), "{refused:?}");
    for words in ["cannot run no-such-program", "nothing was started, because s is required"] {
        assert!(refused.stderr.contains(words), "{refused:?}");
    }
    assert_eq!(world.run(&["show", "r"]).code, Some(2), "there is no run");
    world.write("in.jsonl", &format!("{input}\n"));
    let refused = world.run(&["batch", FLOW, "--inputs", "in.jsonl", "--out", "out.jsonl"]);
    assert_eq!(refused.code, Some(75), "{refused:?}");
    away(false);
    let _waits = world.start(&["run", FLOW, "--id", "r", "--input", &input]);
    until("the run to say what it waits for", || {
        world.run(&["show", "r"]).stdout.contains("cannot run no-such-program")
    });
    // What has begun goes on, required or not.
    away(true);
    assert_eq!(
        world.run(&["run", FLOW, "--id", "r", "--input", &input, "--timeout", "100ms"]).code,
        Some(124)
    );
}
