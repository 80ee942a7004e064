//! Runs: timers, limits, faults, cancels, forks, their first and last events.

use crate::common::machines::{adder, agent, clean_up, one, timers};
use crate::common::{Run, START};
use outlast_dsl::machine::EffectClass;
use outlast_kernel::check_input;
use outlast_kernel::event::{ChildrenOfFork, Event, EventKind};
use outlast_kernel::ids::{Millis, Seq};
use outlast_kernel::input::{Input, Refusal};
use outlast_kernel::operation::{OperationKind, Outcome, Phase};
use serde_json::json;

#[test]
fn timers_tick_at_their_nominal_times_and_skip_what_is_over() {
    let mut run = Run::start(timers(), json!({}));
    run.advance(10_000);
    run.advance(25_000);
    assert_eq!(run.state.next_due(), Some(Millis(START.0 + 40_000)));
    run.advance(25_000);
    assert_eq!(run.state.path(), "Then");
    run.say("Poke", json!({}));
    assert_eq!(run.state.path(), "Then", "stay keeps the wait");
    run.advance(30_000);
    assert_eq!(run.result(), json!(103), "ticks at 10, 20 and 40 s, and a poke");
}

#[test]
fn a_limit_on_age_ends_a_run_that_is_too_old() {
    let mut run = Run::start(timers(), json!({}));
    run.say("Poke", json!({}));
    for _ in 0..20 {
        run.now = run.now.plus(20_000);
        if run.now.0 - START.0 > 300_000 {
            break;
        }
    }
    run.advance(0);
    assert_eq!(
        run.state.outcome().map(|outcome| format!("{outcome:?}")),
        Some("Done(String(\"too old\"))".to_owned())
    );
}

#[test]
fn a_visit_limit_counts_since_the_other_state() {
    let mut run = Run::start(agent(), json!({"task": "t"}));
    for _ in 0..3 {
        run.done("model", json!({"type": "Tools", "calls": []}));
    }
    run.done("model", json!({"type": "Text", "text": "x"}));
    run.say("Say", json!({"text": "more"}));
    for _ in 0..3 {
        run.done("model", json!({"type": "Tools", "calls": []}));
    }
    assert_eq!(run.state.path(), "Think", "Idle counts anew");
    run.done("model", json!({"type": "Tools", "calls": []}));
    assert_eq!(run.result(), json!("too many turns"));
}

#[test]
fn a_cancel_cleans_up_from_the_inside_out_in_bounded_time() {
    let mut run = Run::start(clean_up(), json!({}));
    run.must(Input::Cancel { by: "ann".to_owned() });
    assert_eq!(run.give(&Input::Cancel { by: "bob".to_owned() }), Err(Refusal::AlreadyEnding));
    assert_eq!((run.state.path().as_str(), run.op("work").1.input), ("Go/Inner.Clean", json!({"x": 100})));
    run.done("work", json!("ok"));
    assert_eq!((run.state.path().as_str(), run.op("work").1.input), ("Clean", json!({"x": 200})));
    run.advance(5_000);
    assert_eq!(run.state.outcome(), Some(&Outcome::Cancelled));
    assert!(matches!(run.give(&Input::Cancel { by: "bob".to_owned() }), Err(Refusal::RunEnded { .. })));
}

#[test]
fn a_nested_flow_fails_by_type_and_keeps_its_time() {
    let mut run = Run::start(clean_up(), json!({}));
    run.failed("work", "failed");
    assert_eq!(run.result()["kind"], json!("Broken"));
    assert_eq!(run.result()["text"], json!("it broke"));
    let mut run = Run::start(clean_up(), json!({}));
    run.advance(20_000);
    assert_eq!(run.result()["kind"], json!("Broken"), "the activity's own deadline comes first");
}

#[test]
fn a_fault_blocks_the_run_visibly_and_facts_are_kept() {
    let mut run = Run::start(adder(), json!({}));
    run.say("Add", json!({"n": i64::MAX}));
    run.done("note", json!(null));
    let before = run.state.digest();
    run.say("Add", json!({"n": 1}));
    let blocked = run.state.blocked().unwrap().clone();
    assert_eq!(blocked.cause, format!("overflow: {} + 1", i64::MAX));
    assert_eq!(blocked.place, ("Adder".to_owned(), Some("Add".to_owned()), "arrow 0".to_owned()));
    run.say("Enough", json!({}));
    assert_eq!((run.state.digest(), run.state.last()), (before, Seq(5)));
    assert_eq!(run.state.unread().len(), 2);
    assert_eq!(run.state.next_due(), None, "a blocked run needs no clock");
    run.must(Input::Cancel { by: "ann".to_owned() });
    assert_eq!((run.state.outcome(), run.state.unread().len()), (Some(&Outcome::Cancelled), 2));
}

#[test]
fn a_run_ends_when_what_it_also_does_has_settled() {
    let mut run = Run::start(adder(), json!({}));
    run.say("Add", json!({"n": 2}));
    run.say("Enough", json!({}));
    assert!(run.state.outcome().is_none());
    assert_eq!(run.give(&Input::Cancel { by: "ann".to_owned() }), Err(Refusal::AlreadyEnding));
    run.done("note", json!(null));
    assert_eq!(run.result(), json!(2));
}

#[test]
fn a_fork_never_runs_what_its_parent_has_begun() {
    let mut run = Run::start(one(EffectClass::Once(None)), json!({"x": 3}));
    let before = run.state.clone();
    run.begin("work");
    for (state, begun) in [(run.state.clone(), vec![]), (before, vec![run.op("work").0])] {
        let mut fork = state.for_fork(crate::common::run_id("fork"));
        let kind = EventKind::Forked {
            parent: crate::common::run_id("r1"),
            at: fork.last(),
            begun,
            children: ChildrenOfFork::Unknown,
            by: "ann".to_owned(),
        };
        let event = Event { n: fork.last().next(), time: run.now, digest: fork.digest(), kind };
        fork.apply(&event).unwrap();
        let held = fork.operations().any(|op| match &op.kind {
            OperationKind::Activity(work) => matches!(work.phase, Phase::Held(_)) && work.key == "fork/1.0",
            _ => false,
        });
        assert!(held);
    }
}

#[test]
fn input_is_checked_and_filled_before_a_run_starts() {
    let machine = one(EffectClass::Pure);
    assert_eq!(check_input(&machine, json!({"x": 3})), Ok(json!({"x": 3})));
    for (input, words) in [
        (
            json!({}),
            "the input of One does not fit: x: a whole number of at most 64 bits is expected, found nothing",
        ),
        (
            json!({"x": 1, "y": 2}),
            "the input of One does not fit: no field but x is expected, found the field \"y\"",
        ),
        (json!([1]), "the input of One does not fit: an object is expected, found a list of 1"),
    ] {
        assert_eq!(check_input(&machine, input), Err(words.to_owned()));
    }
}

#[test]
fn events_read_in_full_names() {
    let mut run = Run::start(one(EffectClass::Pure), json!({"x": 3}));
    run.failed("work", "failed");
    let json = run.history[1].to_json(run.state.run());
    assert_eq!(
        json,
        json!({
            "run": "r1", "n": 2, "time": "2027-01-15T08:00:00.000Z", "kind": "failed", "op": "1.0", "activity": "work",
            "attempt": 1, "error": {"kind": "failed", "text": "no", "retryable": true},
        })
    );
}
