//! The tests of flows, run on the real kernel with stubs for workers and a clock that only the test moves.
//!
//! Leaves reading files to its callers and telling people to the command line; a test is checked by the language before it comes
//! here. Each test is played once, and then again with a crash before and after every event: the state is folded anew from the
//! encoded history, attempts in hand are lost, and the result must be the same. Invariant: pure; the same files give the same
//! report. Start at [`run`]; one play is in `play`, what crashes must keep in `crash`.

mod coverage;
mod crash;
mod diff;
mod expect;
mod failure;
mod hands;
mod limits;
mod play;
mod stubs;
mod world;

use std::collections::BTreeMap;
use std::sync::Arc;

use outlast_dsl::diag::{FileId, TextSpan};
use outlast_dsl::machine::Machine;
use outlast_dsl::{Checked, TestCase};
use outlast_kernel::Functions;

pub use coverage::{Coverage, Untaken};
pub use failure::TestFailure;

use play::Play;
use world::World;

/// What the tests of some files came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// One for each test, in the order of the text.
    pub results: Vec<TestResult>,
    /// Which arrows the tests took.
    pub coverage: Coverage,
}

/// What one test came to.
#[derive(Clone, Debug, PartialEq)]
pub struct TestResult {
    /// What it shows.
    pub name: String,
    /// The position of its file among those that were checked.
    pub file: FileId,
    /// Where its name stands.
    pub span: TextSpan,
    /// How many events it made.
    pub events: usize,
    /// How many crashes were tried.
    pub crashes: usize,
    /// Why it failed; none: it holds.
    pub failure: Option<TestFailure>,
}

impl Report {
    /// Returns how many tests failed.
    #[must_use]
    pub fn failed(&self) -> usize {
        self.results.iter().filter(|result| result.failure.is_some()).count()
    }
}

/// Runs the tests that are wanted.
#[must_use]
pub fn run(checked: &Checked, wanted: impl Fn(&TestCase) -> bool) -> Report {
    let machines: BTreeMap<String, Arc<Machine>> =
        checked.flows.iter().map(|flow| (flow.name.clone(), Arc::new(flow.machine.clone()))).collect();
    let machines = Arc::new(machines);
    let mut coverage = Coverage::of(&checked.flows);
    let mut results = Vec::new();
    for test in checked.tests.iter().filter(|test| wanted(test)) {
        results.push(run_one(test, &machines, &mut coverage));
    }
    Report { results, coverage }
}

fn run_one(
    test: &TestCase,
    machines: &Arc<BTreeMap<String, Arc<Machine>>>,
    coverage: &mut Coverage,
) -> TestResult {
    let values = Functions::new(Arc::new(test.values.clone()));
    let mut calm = Play::recorded(test, World::new(Arc::clone(machines), Arc::new(values)));
    let mut failure = calm.run_from(0).err().map(|stop| *stop);
    let world = calm.world();
    coverage.add(&world.tally.taken);
    let (events, moments) = (world.events(), calm.moments());
    let mut crashes = 0;
    if failure.is_none() {
        crashes = 2 * moments.len();
        failure = crash::first_difference(test, moments, world).map(|stop| *stop);
    }
    TestResult { name: test.name.clone(), file: test.file, span: test.span, events, crashes, failure }
}
