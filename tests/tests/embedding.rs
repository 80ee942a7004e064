//! The runtime inside a program of one's own: the example of the README, killed in the middle.
//!
//! Leaves workers that are processes of their own to `worker_loss.rs` and `kills.rs`.

use std::process::Command;

use outlast_tests::process::Process;
use outlast_tests::world::{World, binary};

fn start(world: &World) -> Process {
    Process::start(Command::new(binary("examples/embedded")).arg(world.data()).current_dir(world.work()))
}

#[test]
fn a_program_with_the_runtime_inside_goes_on_where_it_was_killed() {
    let world = World::new();
    let mut program = start(&world);
    // One at a time: whoever is greeted second follows a result that is kept.
    program.line("the second greeting", |line| line == "greeting Grace");
    program.murder();
    let finished = start(&world).finish();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let greeted: Vec<&str> =
        finished.stdout.lines().filter_map(|line| line.strip_prefix("greeting ")).collect();
    assert_eq!(greeted, ["Grace", "Alan"]);
    let last = finished.stdout.lines().last().unwrap_or_default();
    assert!(last.starts_with("ended: ") && last.contains("Hello, Ada!"), "{finished:?}");
    // Once more finds the same run.
    let again = start(&world).finish();
    assert!(again.code == Some(0) && !again.stdout.contains("greeting "), "{again:?}");
}
