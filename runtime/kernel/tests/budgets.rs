//! Limits on cost and age: what may break them, and what becomes of them when more is allowed.
//!
//! Leaves reservations to `behaviour/groups.rs`. Invariant: every test ends with a fold that gives the same bytes.

mod common;

use std::sync::Arc;

use common::build::{decimal, go, limit};
use common::machines::adder;
use common::{Run, compiled};
use outlast_dsl::machine::Measure;
use outlast_kernel::event::{LostWhy, Tokens};
use outlast_kernel::input::{Input, Report};
use outlast_kernel::operation::{Outcome, Phase};
use serde_json::{Value as Json, json};

/// Reports the result of the only open activity of a name, and what it cost.
#[track_caller]
fn paid(run: &mut Run, name: &str, value: Json, cost: &str) {
    let (op, _) = run.op(name);
    run.answer_op(op, Report::Done { value, cost: Some(cost.to_owned()), tokens: Tokens::default() });
}

#[test]
fn what_is_done_beside_a_state_is_let_through_when_it_is_alone() {
    // The checker refuses `also do` of what costs; the kernel does not rely on it.
    let mut machine = adder();
    machine.activities[0].costs = Some("0.40".to_owned());
    machine.flows[0].limits = vec![limit(Measure::Cost, decimal("0.50"), go(0))];
    let mut run = Run::start(machine, json!({}));
    run.say("Add", json!({"n": 1}));
    run.say("Add", json!({"n": 2}));
    let phases: Vec<Phase> = run.activities().into_iter().map(|(_, work)| work.phase.clone()).collect();
    assert_eq!(phases, [Phase::Ready, Phase::Budget], "while others hold money, it waits");
    let (first, _) = run.activities()[0];
    run.answer_op(
        first,
        Report::Done { value: json!(null), cost: Some("0.40".to_owned()), tokens: Tokens::default() },
    );
    assert_eq!(run.phase("note"), Phase::Ready);
    run.must_be_sound();
    run.say("Enough", json!({}));
    run.done("note", json!(null));
    assert_eq!(run.result(), json!(3));
    run.must_be_sound();
}

#[test]
fn tokens_are_summed_over_results_and_failures() {
    let mut run = Run::start(adder(), json!({}));
    for (n, input) in [(1, 1_000), (2, u64::MAX)] {
        run.say("Add", json!({"n": n}));
        let (op, _) = run.activities()[0];
        let tokens = Tokens { input, output: 10 };
        run.answer_op(op, Report::Done { value: json!(null), cost: None, tokens });
    }
    assert_eq!(run.state.tokens(), Tokens { input: u64::MAX, output: 20 });
    run.must_be_sound();
}

#[test]
fn a_verifier_that_is_too_dear_breaks_the_limit_once_and_settles_the_doubt() {
    let text = r#"
        error Stopped
        activity model(x: int) within 1m costs <= 0.40 effect pure
        activity pay(x: int) -> text within 1m effect once verify look undo refund unknown holds
        activity look(x: int) -> Verdict<text> within 1m costs <= 0.40 effect pure
        activity refund(x: int, result: text?) within 1m effect idempotent
        saga flow Sale(x: int) raises Stopped {
          limit cost <= 0.50 else -> fail Stopped
          start Think
          state Think { do model(x) on ok -> Pay on problem -> fail Stopped }
          state Pay { do pay(x) on ok -> end on problem -> fail Stopped }
        }
    "#;
    for happened in [true, false] {
        let mut run = Run::start(compiled(text, "Sale"), json!({"x": 3}));
        paid(&mut run, "model", json!(null), "0.40");
        run.begin("pay");
        run.lost("pay", LostWhy::WorkerGone);
        assert_eq!(run.phase("look"), Phase::Ready);
        run.must_be_sound();
        let verdict = if happened {
            json!({"type": "Happened", "result": "r"})
        } else {
            json!({"type": "NotHappened"})
        };
        run.done("look", verdict);
        if happened {
            assert_eq!(run.op("refund").1.input, json!({"x": 3, "result": "r"}));
            run.done("refund", json!(null));
        }
        assert_eq!(run.state.outcome(), Some(&Outcome::Failed(json!({"type": "Stopped"}))));
        run.must_be_sound();
    }
}

const RAISED: &str = r#"
activity model(x: int) within 1m costs <= 0.60 effect idempotent
flow Raised(x: int) -> int {
  message Go
  data cap: decimal = 1.00
  data raised: int = 0
  limit raised <= 8 else -> end raised
  limit cost <= cap else set cap += 1.00, raised += 1 -> Rest
  start Think
  state Think { do model(x) on ok -> Rest on problem -> end raised }
  state Rest { await Go, closed within forever on Go -> Think on closed -> end raised }
}
"#;

#[test]
fn a_cap_that_was_raised_counts() {
    let mut run = Run::start(compiled(RAISED, "Raised"), json!({"x": 3}));
    let raised = |run: &Run| run.state.data("raised");
    // None: what may cost 0.60 more does not fit.
    for (cost, so_often) in
        [(Some("0.60"), 0), (None, 1), (Some("1.50"), 2), (Some("0.60"), 2), (None, 3), (Some("1.50"), 4)]
    {
        if let Some(cost) = cost {
            paid(&mut run, "model", json!(null), cost);
        }
        assert_eq!((run.state.path(), raised(&run)), ("Rest".to_owned(), Some(json!(so_often))));
        run.say("Go", json!({}));
    }
    assert_eq!((run.state.cost(), run.phase("model")), ("4.2".to_owned(), Phase::Ready), "5.00 are allowed");
    paid(&mut run, "model", json!(null), "0.10");
    run.must(Input::Close);
    assert_eq!(run.result(), json!(4));
    run.must_be_sound();
}

#[test]
fn a_new_version_that_allows_more_money_is_held_to_it() {
    let fixed = |cap: &str| {
        let limit = format!("limit cost <= {cap} else set raised += 1 -> Rest");
        RAISED.replace("limit cost <= cap else set cap += 1.00, raised += 1 -> Rest", &limit)
    };
    let mut run = Run::start(compiled(&fixed("1.00"), "Raised"), json!({"x": 3}));
    let raised = |run: &Run| run.state.data("raised");
    paid(&mut run, "model", json!(null), "1.10");
    assert_eq!(raised(&run), Some(json!(1)));
    run.migrate(&Arc::new(compiled(&fixed("2.00"), "Raised")), Vec::new());
    run.say("Go", json!({}));
    paid(&mut run, "model", json!(null), "1.00");
    assert_eq!(raised(&run), Some(json!(2)), "the new cap");
    run.must(Input::Close);
    assert_eq!(run.result(), json!(2), "which is broken once");
    run.must_be_sound();
}

#[test]
fn more_time_that_was_allowed_is_waited_for_and_counts() {
    let text = r#"
        flow Old() -> int {
          message More
          data most: duration = 1h
          data broken: int = 0
          limit age <= most else set broken += 1 -> Rest
          start Rest
          state Rest { await More, closed within forever on More set most += 1h -> Rest on closed -> end broken }
        }
    "#;
    let mut run = Run::start(compiled(text, "Old"), json!({}));
    let broken = |run: &Run| run.state.data("broken");
    let minutes = |run: &mut Run, count: u64| run.advance(count * 60_000);
    run.say("More", json!({}));
    minutes(&mut run, 90);
    assert_eq!(broken(&run), Some(json!(0)), "two hours are allowed by now");
    minutes(&mut run, 31);
    assert_eq!(broken(&run), Some(json!(1)));
    minutes(&mut run, 60);
    assert_eq!(broken(&run), Some(json!(1)), "once");
    run.say("More", json!({}));
    run.say("More", json!({}));
    run.must_be_sound();
    minutes(&mut run, 60);
    assert_eq!(broken(&run), Some(json!(2)), "after four hours");
    run.must(Input::Close);
    assert_eq!(run.result(), json!(2));
    run.must_be_sound();
}
