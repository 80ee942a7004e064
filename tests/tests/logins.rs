//! Logins at MCP servers in whole runs: a person who logs in, a worker that is killed with a new token, tokens that nobody sees.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::MetadataExt as _;
use std::process::Command;

use outlast_tests::ledger::Gate;
use outlast_tests::process::{Finished, Process, until};
use outlast_tests::world::{Role, World, binary};
use serde_json::{Value, json};

const FLOW: &str = "flows/server_call.flow";

/// A world with the service `s`, which wants a login, and the catalogue of its tools.
fn world(oauth: &Value) -> (World, Process) {
    // Whatever the log says at its loudest, it says no token.
    let world = World::with_flows().with_variable("OUTLAST_LOG", "trace");
    let entry = json!({"command": binary("outlast-test-mcp"), "args": ["{}"]});
    world.write(".mcp.json", &json!({"mcpServers": {"s": entry}}).to_string());
    let pulled = world.run(&["tools", "pull", "--out", "flows/server.tools.json"]);
    assert_eq!(pulled.code, Some(0), "{pulled:?}");
    let script = json!({"http": "address", "oauth": oauth}).to_string();
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

fn log_in(world: &World) -> Finished {
    let mut command = world.start(&["tools", "login", "s", "--json"]);
    let line = command.line("the address to open", |line| line.contains("\"open\""));
    let said: Value = serde_json::from_str(&line).unwrap();
    opened(&opened(said["open"].as_str().unwrap()));
    let finished = command.finish();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    finished
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
    let (world, _service) = world(&json!({}));
    let _server = world.host(&[FLOW]);
    begin(&world, "r", "s__echo", &json!({"text": "hello"}));
    until("the run to say what it waits for", || {
        world.get("/v1/runs/r")["waiting_for"].to_string().contains("outlast tools login s")
    });
    let _said = log_in(&world);
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
    let expected = "the login at s is forgotten here; s names no way to end it, but for its own settings";
    assert_eq!((out.code, out.stdout.trim_end()), (Some(0), expected), "{out:?}");
    assert!(world.run(&["tools", "pull"]).stderr.contains("run: outlast tools login s"));
}

/// The token that the service saw last.
fn newest(world: &World) -> String {
    let line: Value = serde_json::from_str(world.file("requests.jsonl").lines().last().unwrap()).unwrap();
    line["token"].as_str().unwrap().trim_start_matches("Bearer ").to_owned()
}

/// A tool worker by hand, which takes one call at a time.
fn worker(world: &World) -> Process {
    world.start(&["worker", "tool", "--concurrency", "1"])
}

/// How often something is noted in a file of the service.
fn noted(world: &World, file: &str, what: &str) -> usize {
    world.file(file).lines().filter(|line| line.contains(what)).count()
}

/// Whether a process waits for another one that renews a login.
fn is_waited_for(world: &World) -> bool {
    let Ok(entries) = std::fs::read_dir(world.data().join("logins")) else { return false };
    let locks = std::fs::read_to_string("/proc/locks").unwrap();
    entries.map(|entry| entry.unwrap()).filter(|entry| entry.path().extension().unwrap() == "lock").any(
        |entry| {
            let file = format!(":{} ", entry.metadata().unwrap().ino());
            locks.lines().any(|line| line.contains("-> FLOCK") && line.contains(&file))
        },
    )
}

/// Two workers that share a login find that it has ended, one while the other renews it: the service is asked for one new token, and
/// both have it. If that other one is killed in the middle, it holds nobody up.
#[test]
fn a_login_is_renewed_once_for_all_workers_also_when_one_dies_in_the_middle() {
    for dies in [false, true] {
        let (world, _service) = world(&json!({}));
        let _server = world.host(&["--no-workers", FLOW]);
        let _said = log_in(&world);
        world.write("revoke", "");
        world.write(if dies { "swallow" } else { "hold" }, "");
        let mut first = worker(&world);
        begin(&world, "one", "s__echo", &json!({"text": "one"}));
        until("the first worker to renew the login", || noted(&world, "held.jsonl", "") == 1);
        let _second = worker(&world);
        begin(&world, "two", "s__echo", &json!({"text": "two"}));
        until("the second worker to find it ended, and to wait", || is_waited_for(&world));
        if dies {
            first.murder();
        } else {
            std::fs::remove_file(world.work().join("hold")).unwrap();
        }
        for run in ["two", "one"] {
            assert_eq!(world.outcome(run)["value"]["text"], run, "one dies: {dies}");
        }
        assert_eq!(noted(&world, "oauth.jsonl", "refresh_token"), 1, "one dies: {dies}");
    }
}

/// No token and no code stands in a log, whatever is logged: by the library, before it is used, after it was renewed.
#[test]
fn the_loudest_log_says_no_token() {
    let (world, service) = world(&json!({"ends": true}));
    let _server = world.host(&["--no-workers", FLOW]);
    let mut said = log_in(&world).stderr;
    let mut worker = worker(&world);
    begin(&world, "one", "s__echo", &json!({"text": "one"}));
    assert_eq!(world.outcome("one")["value"]["text"], "one");
    world.write("revoke", "");
    begin(&world, "two", "s__echo", &json!({"text": "two"}));
    assert_eq!(world.outcome("two")["value"]["text"], "two");
    worker.signal("TERM");
    said += &worker.finish().stderr;
    let pulled = world.run(&["tools", "pull", "--out", "again.json"]);
    let out = world.run(&["tools", "logout", "s"]);
    assert_eq!(
        (out.code, out.stdout.trim_end()),
        (Some(0), "the login at s has ended, there and here"),
        "{out:?}"
    );
    said += &(pulled.stderr + &out.stderr);
    for secret in ["access-token", "refresh-token", "id-token", "code"] {
        let secret = format!("{secret}-{}-", service.pid());
        let line = said.lines().find(|line| line.contains(&secret));
        assert_eq!(line, None, "{secret}");
    }
    for logged in ["exchange token result", "refresh token present", "[secret login of s]"] {
        assert!(said.contains(logged), "the library was to be heard: {logged}");
    }
}

#[test]
fn who_cannot_log_out_at_the_service_is_told_and_is_logged_out_here() {
    let (world, _service) = world(&json!({"ends": true}));
    let _said = log_in(&world);
    world.write("unended", "");
    let out = world.run(&["tools", "logout", "s"]);
    assert_eq!((out.code, out.stdout.trim_end()), (Some(1), "the login at s is forgotten here"), "{out:?}");
    let why = "s could not be told to end it: it answers 503 (temporarily_unavailable)";
    assert!(out.stderr.contains(why), "{out:?}");
    let again = world.run(&["tools", "logout", "s", "--json"]);
    assert!(again.stdout.contains("\"forgotten\":false"), "{again:?}");
    assert_eq!(again.code, Some(0));
    let _said = log_in(&world);
    std::fs::remove_file(world.work().join("unended")).unwrap();
    world.write(".mcp.json", "{}");
    let without_entry = world.json(&["tools", "logout", "s", "--json"]);
    let expected = json!({"server": "s", "forgotten": true, "at_service": "ended", "why": null});
    assert_eq!(without_entry, expected);
}
