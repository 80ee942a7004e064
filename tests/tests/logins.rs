//! Logins at MCP servers in whole runs: a person who logs in, a worker that is killed with a new token, tokens that nobody sees.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;

use outlast_tests::ledger::Gate;
use outlast_tests::process::{Process, until};
use outlast_tests::world::{Role, World, binary};
use serde_json::{Value, json};

const FLOW: &str = "flows/server_call.flow";

/// A world with the service `s`, which wants a login, and the catalogue of its tools.
fn world() -> (World, Process) {
    let world = World::with_flows();
    let entry = json!({"command": binary("outlast-test-mcp"), "args": ["{}"]});
    world.write(".mcp.json", &json!({"mcpServers": {"s": entry}}).to_string());
    let pulled = world.run(&["tools", "pull", "--out", "flows/server.tools.json"]);
    assert_eq!(pulled.code, Some(0), "{pulled:?}");
    let script = json!({"http": "address", "oauth": {}}).to_string();
    let service =
        Process::start(Command::new(binary("outlast-test-mcp")).arg(script).current_dir(world.work()));
    until("the service", || world.work().join("address").exists());
    let entry = json!({"url": world.file("address")});
    world.write(".mcp.json", &json!({"mcpServers": {"s": entry}}).to_string());
    (world, service)
}

/// Opens an address as a browser does; where it is sent.
fn opened(address: &str) -> String {
    let (host, path) = address.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut connection = TcpStream::connect(host).unwrap();
    write!(connection, "GET /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    answer.lines().find_map(|line| line.strip_prefix("location: ")).unwrap_or_default().to_owned()
}

fn log_in(world: &World) {
    let mut command = world.start(&["tools", "login", "s", "--json"]);
    let line = command.line("the address to open", |line| line.contains("\"open\""));
    let said: Value = serde_json::from_str(&line).unwrap();
    opened(&opened(said["open"].as_str().unwrap()));
    let finished = command.finish();
    assert_eq!(finished.code, Some(0), "{finished:?}");
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
fn a_run_waits_for_a_login_and_its_tokens_outlive_the_worker_unseen() {
    let (world, _service) = world();
    let _server = world.host(&[FLOW]);
    begin(&world, "r", "s__echo", &json!({"text": "hello"}));
    until("the run to say what it waits for", || {
        world.get("/v1/runs/r")["waiting_for"].to_string().contains("outlast tools login s")
    });
    log_in(&world);
    assert_eq!(world.outcome("r")["value"]["text"], "hello");
    // A worker that dies with its new token: the next one has it.
    world.write("revoke", "");
    world.close("i", Gate::Before);
    begin(&world, "i", "s__put", &json!({"name": "i"}));
    approve(&world, "i");
    world.reached("i", Gate::Before);
    world.kill(Role::Tool);
    world.open("i", Gate::Before);
    assert_eq!(world.outcome("i")["value"]["text"], "noted i");
    let renewals = world.file("oauth.jsonl").lines().filter(|line| line.contains("refresh_token")).count();
    assert_eq!(renewals, 1);
    // The service has written its tokens down; whoever reads that is not told.
    begin(&world, "m", "read", &json!({"path": "requests.jsonl"}));
    approve(&world, "m");
    let text = world.outcome("m")["value"]["text"].to_string();
    assert!(text.contains("[secret login of s]"), "{text}");
    assert!(!text.contains(newest(&world).as_str()), "{text}");
    let out = world.run(&["tools", "logout", "s"]);
    assert_eq!(out.stdout.trim_end(), "the login at s is forgotten", "{out:?}");
    assert!(world.run(&["tools", "pull"]).stderr.contains("run: outlast tools login s"));
}

/// The token that the service saw last.
fn newest(world: &World) -> String {
    let line: Value = serde_json::from_str(world.file("requests.jsonl").lines().last().unwrap()).unwrap();
    line["token"].as_str().unwrap().trim_start_matches("Bearer ").to_owned()
}
