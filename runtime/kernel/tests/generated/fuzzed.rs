//! A life that bytes decide: the body of the fuzz target, and of the test that replays what it found.
//!
//! Leaves making bytes to the fuzzer (`tests/fuzz`). Invariant: the same bytes give the same life.

use outlast_dsl::machine::Machine;

use crate::driver::Driven;
use crate::generator::{Dice, World, program};

/// Inputs of one life.
const STEPS: usize = 60;

/// Compiles a program; nothing if the checker refuses it.
pub(crate) fn compiled(text: &str) -> Option<Machine> {
    let source = outlast_dsl::SourceFile { name: "test.flow".to_owned(), text: text.to_owned() };
    let checked = outlast_dsl::check(&[source], &std::collections::BTreeMap::new());
    checked.flows.into_iter().find(|flow| flow.name == "F0").map(|flow| flow.machine)
}

/// Lets the bytes write a program and live its run; says how many events it made, if the checker accepts it.
pub(crate) fn lives(bytes: &[u8]) -> Option<usize> {
    let mut dice = Dice::of(bytes);
    let machine = compiled(&program(&mut dice, World::Everything))?;
    let mut driven = Driven::start(machine);
    for _ in 0..STEPS {
        driven.step(&mut dice);
    }
    driven.snapshot_and_the_rest_give_the_fold();
    driven.crash();
    driven.what_happened_in_a_saga_is_undone();
    Some(driven.run.history.len())
}
