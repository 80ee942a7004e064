//! The Python package: its own tests, run against this build of the binary.
//!
//! Needs `python3`, 3.10 or newer, and nothing beyond its standard library. Leaves what is tested to `workers/python/tests`, but for the
//! ten lines of the package's page, which run here as they stand there.

use std::process::Command;

use outlast_tests::held::Held;
use outlast_tests::process::{Process, until};
use outlast_tests::repository::block;
use outlast_tests::world::World;
use outlast_tests::{repository, world};
use serde_json::json;

fn suite(module: &str) {
    let package = repository::root().join("workers/python");
    let output = Command::new("python3")
        .args(["-W", "always::ResourceWarning", "-m", "unittest", module])
        .current_dir(package.join("tests"))
        .env("PYTHONPATH", package.join("src"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("OUTLAST_BIN", world::binary("outlast"))
        .output()
        .unwrap_or_else(|error| {
            panic!("python3 cannot be started ({error}): these tests need Python 3.10 or newer")
        });
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{module} failed:\n{said}");
    assert!(said.contains("OK") && !said.contains("skipped"), "{module} left tests out:\n{said}");
    assert!(!said.contains("ResourceWarning"), "{module} leaves things open:\n{said}");
}

#[test]
fn hints_become_schemas_and_values_go_there_and_back() {
    suite("test_schemas");
}

#[test]
fn the_package_is_whole() {
    suite("test_package");
}

#[test]
fn workers_keep_the_protocol_against_a_runtime_that_misbehaves() {
    suite("test_lease");
}

#[test]
fn a_server_that_is_away_is_borne_from_the_first_failure_on() {
    suite("test_patience");
}

#[test]
fn workers_serve_a_real_runtime() {
    suite("test_worker");
}

#[test]
fn kills_of_workers_and_runtimes_cost_nothing_that_was_done() {
    suite("test_kills");
}

#[test]
fn the_client_drives_runs_over_restarts() {
    suite("test_client");
}

#[test]
fn secrets_are_known_to_the_worker_alone() {
    suite("test_secrets");
}

/// Starts the worker of the package's page, as it is written there.
fn hello(world: &World, variable: &str, place: &str) -> Process {
    world.write("hello.py", &block("workers/python/README.md", "python"));
    let mut command = Command::new("python3");
    command.arg("hello.py").current_dir(world.work()).env(variable, place);
    command
        .env("PYTHONPATH", repository::root().join("workers/python/src"))
        .env("PYTHONDONTWRITEBYTECODE", "1");
    Process::start(&mut command)
}

/// The worker has greeted and not told it yet: it is killed there, and the next one greets again. That one outlives the runtime.
#[test]
fn the_ten_lines_of_the_page_serve_across_kills_of_the_worker_and_the_runtime() {
    let world = World::new();
    world.write("hello.flow", &block("workers/PROTOCOL.md", "flow"));
    let mut server = world.host(&["--no-workers", "hello.flow"]);
    let held = Held::new(&world.work(), world.socket());
    let mut worker = hello(&world, "OUTLAST_URL", &held.url());
    world.begin("Hello", "hello-1", &json!({"name": "Ann"}));
    until("the attempt to be over for the worker alone", || held.reports() > 0);
    worker.murder();
    assert_eq!(world.get("/v1/runs/hello-1")["status"], "running", "nobody has told the result");
    let _worker = hello(&world, "OUTLAST_DATA", &world.data().display().to_string());
    assert_eq!(world.outcome("hello-1")["value"], "hello Ann");
    server.murder();
    let _server = world.host(&["--no-workers"]);
    world.begin("Hello", "hello-2", &json!({"name": "Bob"}));
    assert_eq!(world.outcome("hello-2")["value"], "hello Bob", "by the worker that was there before");
}

/// The session below the ten lines, as it is printed there: what each command says, and nothing beside it.
#[test]
fn the_session_of_the_page_is_what_is_printed() {
    let page = std::fs::read_to_string(repository::root().join("workers/python/README.md")).unwrap();
    let (_, session) = page.split_once("```\n$ outlast serve").unwrap();
    let session = format!("$ outlast serve{}", session.split_once("```").unwrap().0);
    let world = World::new();
    world.write("hello.flow", &block("workers/PROTOCOL.md", "flow"));
    let session =
        session.replace("/home/ann/.local/share/outlast/socket", &world.socket().display().to_string());
    let (mut server, mut worker) = (None, None);
    let (mut of_server, mut of_worker) = (Vec::new(), Vec::new());
    for step in session.split("$ ").filter(|step| !step.is_empty()) {
        let (command, said) = step.split_once('\n').unwrap();
        let said: Vec<String> = said.lines().map(str::to_owned).collect();
        if let Some(arguments) = command.strip_prefix("outlast ") {
            let arguments: Vec<&str> = arguments.trim_end_matches(" &").split(' ').collect();
            let mut started = world.start(&arguments);
            let (ready, before) = said.split_last().unwrap();
            assert_eq!(started.line("its address", |_| true), *ready);
            of_server = before.to_vec();
            server = Some(started);
        } else if command.starts_with("pkill") {
            let mut killed = server.take().unwrap();
            killed.murder();
            let stderr = killed.finish().stderr;
            assert_eq!(stderr.lines().collect::<Vec<_>>(), of_server);
            of_worker = said;
        } else if command == "python3 hello.py &" {
            worker = Some(hello(&world, "OUTLAST_DATA", &world.data().display().to_string()));
        } else {
            let mut python = Command::new("sh");
            python.args(["-c", command]).env("OUTLAST_DATA", world.data());
            python.env("PYTHONPATH", repository::root().join("workers/python/src"));
            let output = python.env("PYTHONDONTWRITEBYTECODE", "1").output().unwrap();
            let printed =
                String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
            assert_eq!(printed.lines().collect::<Vec<_>>(), said, "{command}");
        }
    }
    let mut worker: Process = worker.unwrap();
    worker.signal("TERM");
    // Whether it has tried to register before the runtime was back is a matter of moments.
    let stderr = worker.finish().stderr;
    assert!(stderr.lines().all(|line| of_worker.iter().any(|said| said == line)), "{stderr}");
}
