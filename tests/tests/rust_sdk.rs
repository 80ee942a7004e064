//! The Rust kit as its page shows it: the ten lines there are compiled, and served to a real runtime across kills.

use std::process::Command;

use outlast_tests::held::Held;
use outlast_tests::process::{Process, until};
use outlast_tests::repository::{self, block};
use outlast_tests::world::{World, binary};
use serde_json::json;

/// Starts the worker of the page as a user does: with nothing but where the runtime is in its environment.
fn hello_at(world: &World, variable: &str, place: &str) -> Process {
    let mut command = Command::new(binary("outlast-hello-worker"));
    command.current_dir(world.work()).env_clear().env(variable, place);
    Process::start(&mut command)
}

fn hello(world: &World) -> Process {
    hello_at(world, "OUTLAST_DATA", &world.data().display().to_string())
}

#[test]
fn the_ten_lines_of_the_page_are_those_that_are_compiled() {
    let source = std::fs::read_to_string(repository::root().join("tests/src/hello.rs")).unwrap_or_default();
    assert_eq!(block("workers/README.md", "rust"), source);
}

#[test]
fn the_worker_of_the_page_serves_across_kills_of_the_runtime_and_of_itself() {
    let world = World::new();
    world.write("hello.flow", &block("workers/PROTOCOL.md", "flow"));
    let mut server = world.host(&["--no-workers", "hello.flow"]);
    let mut worker = hello(&world);
    world.begin("Hello", "hello-1", &json!({"name": "Ann"}));
    assert_eq!(world.outcome("hello-1")["value"], "hello Ann");
    server.murder();
    server = world.host(&["--no-workers"]);
    world.begin("Hello", "hello-2", &json!({"name": "Bob"}));
    assert_eq!(world.outcome("hello-2")["value"], "hello Bob", "by the worker that was there before");
    worker.murder();
    world.begin("Hello", "hello-3", &json!({"name": "Eve"}));
    until("nobody to be there", || world.get("/v1/runs/hello-3")["waiting_for"]["kind"] == "worker");
    server.murder();
    let _server = world.host(&["--no-workers"]);
    let _worker = hello(&world);
    assert_eq!(world.outcome("hello-3")["value"], "hello Eve");
}

/// The worker has greeted and not told it yet: it is killed there, and the next one greets again.
#[test]
fn the_worker_of_the_page_may_be_killed_in_the_middle_of_an_attempt() {
    let world = World::new();
    world.write("hello.flow", &block("workers/PROTOCOL.md", "flow"));
    let _server = world.host(&["--no-workers", "hello.flow"]);
    let held = Held::new(&world.work(), world.socket());
    let mut worker = hello_at(&world, "OUTLAST_URL", &held.url());
    world.begin("Hello", "hello-1", &json!({"name": "Ann"}));
    until("the attempt to be over for the worker alone", || held.reports() > 0);
    worker.murder();
    assert_eq!(world.get("/v1/runs/hello-1")["status"], "running", "nobody has told the result");
    let _worker = hello(&world);
    assert_eq!(world.outcome("hello-1")["value"], "hello Ann");
}
