//! The Rust kit as its page shows it: the ten lines there are compiled, and served to a real runtime across kills.

use std::process::Command;

use outlast_tests::process::{Process, until};
use outlast_tests::repository;
use outlast_tests::world::{World, binary};
use serde_json::json;

/// The text of a page between a fence of this kind and the next one.
fn block(page: &str, kind: &str) -> String {
    let text = std::fs::read_to_string(repository::root().join(page)).unwrap_or_default();
    let fence = format!("```{kind}\n");
    let after = text.split_once(&fence).map(|(_, after)| after);
    after.and_then(|after| after.split_once("```")).map(|(block, _)| block.to_owned()).unwrap_or_default()
}

/// Starts the worker of the page as a user does: with nothing but the data directory in its environment.
fn hello(world: &World) -> Process {
    let mut command = Command::new(binary("outlast-hello-worker"));
    command.current_dir(world.work()).env_clear().env("OUTLAST_DATA", world.data());
    Process::start(&mut command)
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
