//! Promises that hold for machines that nobody wrote: random programs that pass the checker, driven by random inputs.
//!
//! `OUTLAST_CASES` says how many programs are written, `OUTLAST_SEED` with which one to begin. A failing case prints its seed, its
//! text and its last events. Invariant: what is promised here is promised for every machine that passes the checker.

#[path = "../common/mod.rs"]
mod common;

mod driver;
mod fuzzed;
mod generator;
mod migrations;

use std::collections::BTreeMap;
use std::sync::Arc;

use driver::{Driven, failure, result};
use fuzzed::compiled;
use generator::{Dice, World, program};
use migrations::{Went, go_on, next_version};
use outlast_dsl::machine::{EachBody, Effect, Expr, Flow, Literal, Machine, Measure, StateDef};
use outlast_kernel::event::{Settlement, Tokens};
use outlast_kernel::input::{Input, Report};
use outlast_kernel::operation::Class;

/// Programs of one test, each compiled, which is what costs time.
const PROGRAMS: u64 = 24;
/// Runs of one program.
const RUNS: u64 = 8;
/// Inputs of one run.
const STEPS: usize = 60;
/// States that a run of activities only may enter in a test; programs that may go on for longer are left out.
const ENTERED_MAX: u64 = 4_000;
/// Items of the longest list that is written.
const ITEMS_MAX: u64 = 5;

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().expect("a number"))
}

fn seeds() -> std::ops::Range<u64> {
    let first = number("OUTLAST_SEED", 0);
    first..first + number("OUTLAST_CASES", PROGRAMS)
}

/// Prints what a failing case was.
struct Case<'a> {
    seed: u64,
    text: &'a str,
    events: Vec<String>,
}

impl Drop for Case<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("seed {}\n{}\n{}", self.seed, self.text, self.events.join("\n"));
        }
    }
}

impl Case<'_> {
    fn saw(&mut self, driven: &Driven) {
        self.events =
            driven.run.history.iter().map(|event| format!("{:?} {:?}", event.n, event.kind)).collect();
    }
}

/// Compiles the programs and gives those that pass to `check`. Of a usual number a third must pass: a generator whose programs are
/// refused tests nothing.
fn with_programs(world: World, mut check: impl FnMut(Machine, &mut Case<'_>)) {
    let mut passed = 0;
    for seed in seeds() {
        let text = program(&mut Dice::new(seed), world);
        let Some(machine) = compiled(&text) else { continue };
        passed += 1;
        check(machine, &mut Case { seed, text: &text, events: Vec::new() });
    }
    let all = seeds().end - seeds().start;
    println!("{passed} of {all} programs passed the checker");
    assert!(all < PROGRAMS || passed * 3 >= all, "{passed} of {all} programs passed the checker");
}

#[test]
fn a_machine_that_passed_the_checker_keeps_every_promise_whatever_happens() {
    with_programs(World::Everything, |machine, case| {
        for round in 0..RUNS {
            let mut dice = Dice::new(case.seed << 8 | round);
            let mut driven = Driven::start(machine.clone());
            for _ in 0..STEPS {
                driven.step(&mut dice);
                case.saw(&driven);
            }
            driven.snapshot_and_the_rest_give_the_fold();
            driven.crash();
            driven.what_happened_in_a_saga_is_undone();
        }
    });
}

#[test]
fn a_run_goes_on_with_another_version_with_all_that_fits() {
    let (mut versions, mut went) = (0, BTreeMap::new());
    with_programs(World::Everything, |machine, case| {
        let text = next_version(case.text, &mut Dice::new(case.seed));
        let Some(next) = compiled(&text) else { return };
        versions += 1;
        let next = Arc::new(next);
        for round in 0..RUNS {
            let mut dice = Dice::new(case.seed << 8 | round);
            let mut driven = Driven::start(machine.clone());
            for _ in 0..dice.below(STEPS / 5) {
                driven.step(&mut dice);
                case.saw(&driven);
            }
            let how = go_on(&mut driven, &next, &mut dice);
            *went.entry(format!("{how:?}")).or_insert(0) += 1;
            // It goes on as what was started with the new version does.
            for _ in 0..if how == Went::Not { 0 } else { STEPS / 2 } {
                driven.step(&mut dice);
                case.saw(&driven);
            }
            driven.crash();
        }
    });
    println!("{versions} other versions: {went:?}");
    let all = seeds().end - seeds().start;
    assert!(all < PROGRAMS || versions * 5 >= all, "only {versions} other versions passed the checker");
    assert!(all < PROGRAMS || went.contains_key("Safely"), "{went:?}");
}

/// The most states that a flow may enter, with those of the flows that it runs, if its counters bound it.
fn entered_at_most(machine: &Machine, flow: &Flow) -> u64 {
    let counted = flow.limits.iter().map(|limit| match (limit.measure, &limit.max) {
        (Measure::Visits(..) | Measure::Data(_), Expr::Lit(Literal::Int(most))) => most.unsigned_abs() + 2,
        _ => 1,
    });
    let rounds = counted.fold(1, u64::saturating_mul);
    let entered = |state: &StateDef| inside(machine, &state.effect).saturating_add(1);
    rounds.saturating_mul(flow.states.iter().map(entered).fold(0, u64::saturating_add))
}

/// The most states that the flows which an effect runs may enter.
fn inside(machine: &Machine, effect: &Effect) -> u64 {
    let rounds = match effect {
        Effect::Each(_) => ITEMS_MAX,
        Effect::Parallel(all)
            if all.regions.iter().any(|region| matches!(region.body, EachBody::Each(_))) =>
        {
            ITEMS_MAX
        }
        Effect::Run(..)
        | Effect::Parallel(_)
        | Effect::Wait
        | Effect::Do(..)
        | Effect::Await(_)
        | Effect::Ask(_)
        | Effect::Spawn(_)
        | Effect::Choose(_)
        | Effect::Match(..) => 1,
    };
    let flows = effect
        .runs()
        .into_iter()
        .map(|flow| entered_at_most(machine, &machine.flows[usize::try_from(flow.0).expect("an index")]));
    flows.fold(0, u64::saturating_add).saturating_mul(rounds)
}

#[test]
fn a_loop_that_passed_the_checker_ends_while_time_stands_still() {
    let mut driven_ones = 0;
    with_programs(World::ActivitiesOnly, |machine, case| {
        let most = entered_at_most(&machine, machine.root());
        if most > ENTERED_MAX {
            return;
        }
        driven_ones += 1;
        for round in 0..RUNS {
            let mut dice = Dice::new(case.seed << 8 | round);
            let mut driven = Driven::start(machine.clone());
            // Some rounds never see a failure.
            let good = if round < 2 { 100 } else { 60 };
            while driven.run.state.outcome().is_none() {
                settle_one(&mut driven, &mut dice, good);
                case.saw(&driven);
                let entered = driven.run.entered.len() as u64;
                assert!(entered <= most, "{entered} states were entered, {most} were to be the most");
            }
        }
    });
    assert!(driven_ones * 4 >= seeds().end - seeds().start, "only {driven_ones} programs were driven");
}

/// Brings one of the open activities to its end.
fn settle_one(driven: &mut Driven, dice: &mut Dice, good: usize) {
    let open = driven.run.activities();
    assert!(!open.is_empty(), "it rests at {} with nothing to do", driven.run.state.path());
    let (op, work) = open[dice.below(open.len())];
    let (attempt, work) = (work.attempt, work.clone());
    let report = if dice.percent(good) {
        Report::Done { value: result(&work, dice), cost: None, tokens: Tokens::default() }
    } else {
        let mut error = failure(dice);
        error.retryable = false;
        Report::Failed { error, cost: None, tokens: Tokens::default() }
    };
    if work.class == Class::Once {
        driven.give(&Input::Begin { op, attempt, worker: "w".to_owned() });
    }
    if !driven.give(&Input::Reported { op, attempt, report }) {
        // It waits for its verifier, which is open too, or for a person.
        driven.give(&Input::Settle { op, verdict: Settlement::Fail, by: "ann".to_owned() });
    }
}

#[test]
fn every_life_that_was_fuzzed_keeps_every_promise() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fuzz/cases/kernel");
    let entries = std::fs::read_dir(folder).expect("there is a folder of cases");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    assert!(!files.is_empty(), "no lives were kept");
    let lived = files.iter().filter_map(|file| {
        let lived = fuzzed::lives(&std::fs::read(file).expect("a readable file"));
        println!("{}: {lived:?} events", file.display());
        lived
    });
    assert!(lived.sum::<usize>() > 20, "too little happened");
}
