//! Spawned runs: news is acknowledged, repeated news changes nothing, and nobody is forgotten.

mod common;

use std::sync::Arc;

use common::{Run, START, compiled};
use outlast_kernel::State;
use outlast_kernel::event::{Event, EventKind, Receipt, SpawnResult};
use outlast_kernel::ids::{OpId, Seq};
use outlast_kernel::input::{Input, Refusal};
use outlast_kernel::operation::{Effects, OnClose, OperationKind, Outcome};
use serde_json::{Value as Json, json};

const TEXT: &str = r#"
edition 1
error Broken { detail: text }
activity work(x: int) -> int within 1m effect pure
flow Child(x: int) -> int raises Broken {
  start A
  state A { do work(x) as r on ok -> end r on problem as p -> fail Broken { detail: p.text } }
}
flow Parent(name: text) -> text {
  message Go
  start Start
  state Start {
    spawn Child(7) named name cancel as h
    on ok -> Before(h)
    on exists -> end "exists"
  }
  state Before(h: handle<Child>) { await Go within 1h on Go -> Wait(h) on timeout -> end "late" }
  state Wait(h: handle<Child>) {
    await ended(h) within 1h
    on ended { outcome } -> Judge(outcome)
    on timeout -> end "nothing"
  }
  state Judge(outcome: Ended<Child>) {
    choose outcome {
      Done { value } -> end "done {value}"
      Failed { error } -> end "{error.kind}: {error.text}"
      Cancelled -> end "cancelled"
    }
  }
}
flow Deep(n: int) -> int {
  start A
  state A { spawn Deep(n + 1) detach on ok -> end n on exists -> end n }
}
"#;

fn parent(name: &str) -> Run {
    Run::start(compiled(TEXT, "Parent"), json!({ "name": name }))
}

fn only(run: &Run, wanted: fn(&OperationKind) -> bool) -> OpId {
    let found: Vec<_> = run.state.operations().filter(|op| wanted(&op.kind)).map(|op| op.id).collect();
    assert_eq!(found.len(), 1, "{:?}", run.state.operations().collect::<Vec<_>>());
    found[0]
}

fn spawn_op(run: &Run) -> OpId {
    only(run, |kind| matches!(kind, OperationKind::Spawn(_)))
}

/// Does what an engine does: starts the run and says so.
fn start_child(run: &mut Run) -> (OpId, Run) {
    let op = spawn_op(run);
    let start = run.state.child_start(op).expect("it starts");
    assert_eq!(start.machine, compiled(TEXT, &start.started.flow), "it is the machine of that flow alone");
    let kind = EventKind::Started(Box::new(start.started));
    let event = Event { n: Seq(1), time: START, digest: 0, kind };
    let machine = Arc::new(start.machine);
    let (state, _) = State::start(Arc::clone(&machine), start.run.clone(), &event).expect("it starts");
    let child = Run {
        state,
        history: vec![event],
        now: START,
        random: 0,
        effects: Effects::default(),
        machines: vec![machine],
        emits: Vec::new(),
        entered: Vec::new(),
    };
    run.must(Input::Spawned { op, result: SpawnResult::Run(start.run) });
    (op, child)
}

/// Carries the news of a child's end.
fn carry_end(run: &mut Run, child: &mut Run) {
    let op = only(child, |kind| matches!(kind, OperationKind::TellParent(_)));
    let Some(OperationKind::TellParent(notice)) = child.state.operation(op).map(|op| op.kind.clone()) else {
        unreachable!("it was just found")
    };
    assert_eq!(&notice.parent, run.state.run());
    assert_eq!(child.state.ending(), Some(&notice.outcome));
    assert_eq!(child.state.outcome(), None);
    run.must(Input::ChildEnded { op: notice.op, outcome: notice.outcome.clone() });
    // The receipt was lost: the news comes again.
    let again = run.give(&Input::ChildEnded { op: notice.op, outcome: notice.outcome });
    assert!(matches!(again, Err(Refusal::Repeated | Refusal::RunEnded { .. })), "{again:?}");
    child.must(Input::Delivered { op, receipt: Receipt::Ok });
    assert!(child.effects.ended);
}

#[test]
fn a_child_gives_its_result_to_whoever_awaits_its_end() {
    for ends_first in [true, false] {
        let mut run = parent("part-1");
        assert_eq!(run.state.path(), "Start");
        let (_, mut child) = start_child(&mut run);
        assert_eq!((child.state.run().as_str(), run.state.path().as_str()), ("part-1", "Before"));
        child.done("work", json!(8));
        if ends_first {
            carry_end(&mut run, &mut child);
            run.say("Go", json!({}));
        } else {
            run.say("Go", json!({}));
            carry_end(&mut run, &mut child);
        }
        assert_eq!(run.result(), json!("done 8"));
        assert_eq!(child.state.outcome(), Some(&Outcome::Done(json!(8))));
        assert_eq!(common::bytes(&run.state), common::bytes(&run.refold()));
    }
}

#[test]
fn a_child_that_fails_or_is_stopped_says_how() {
    type End = fn(&mut Run);
    let told: [(End, Json); 3] = [
        (|child| child.failed("work", "failed"), json!("Broken: no")),
        (|child| child.must(Input::Cancel { by: "ann".to_owned() }), json!("cancelled")),
        (|child| child.must(Input::Terminate { by: "ann".to_owned() }), json!("cancelled")),
    ];
    for (end, result) in told {
        let mut run = parent("part-1");
        let (_, mut child) = start_child(&mut run);
        end(&mut child);
        run.say("Go", json!({}));
        carry_end(&mut run, &mut child);
        assert_eq!(run.result(), result);
    }
}

#[test]
fn a_taken_name_is_an_outcome_and_so_is_the_runs_own_name() {
    let mut run = parent("part-1");
    let op = spawn_op(&run);
    run.must(Input::Spawned { op, result: SpawnResult::Exists });
    assert_eq!(run.result(), json!("exists"));
    assert_eq!(parent("r1").result(), json!("exists"));
    assert!(parent("no run id").state.blocked().is_some_and(|why| why.cause.contains("is not a run id")));
}

#[test]
fn a_child_may_end_before_its_start_is_acknowledged() {
    let mut run = parent("part-1");
    let op = spawn_op(&run);
    run.must(Input::ChildEnded { op, outcome: Outcome::Done(json!(5)) });
    assert_eq!(run.state.path(), "Before");
    run.say("Go", json!({}));
    assert_eq!(run.result(), json!("done 5"));
}

#[test]
fn a_parent_that_ends_cancels_its_children_and_is_ending_until_they_know() {
    let mut run = parent("part-1");
    let (spawned_by, _) = start_child(&mut run);
    run.advance(3_600_001);
    assert_eq!((run.state.ending(), run.state.outcome()), (Some(&Outcome::Done(json!("late"))), None));
    let op = only(&run, |kind| matches!(kind, OperationKind::CancelChild(_)));
    let Some(OperationKind::CancelChild(child)) = run.state.operation(op).map(|op| op.kind.clone()) else {
        unreachable!("it was just found")
    };
    assert_eq!(
        (child.run.as_str(), child.spawned_by, child.on_close),
        ("part-1", spawned_by, OnClose::Cancel)
    );
    run.must(Input::Delivered { op, receipt: Receipt::Ok });
    assert_eq!(run.result(), json!("late"));
    assert_eq!(run.state.audit(), Ok(()));
}

#[test]
fn a_cancelled_parent_waits_for_its_children_but_not_for_ever() {
    let mut run = parent("part-1");
    let (spawned_by, _) = start_child(&mut run);
    run.must(Input::Cancel { by: "ann".to_owned() });
    let op = only(&run, |kind| matches!(kind, OperationKind::CancelChild(_)));
    run.must(Input::Delivered { op, receipt: Receipt::Ok });
    assert_eq!(run.state.outcome(), None);
    let mut late = run.clone();
    run.must(Input::ChildEnded { op: spawned_by, outcome: Outcome::Cancelled });
    assert_eq!(run.state.outcome(), Some(&Outcome::Cancelled));
    late.advance(outlast_kernel::limits::CHILDREN_STOP_MS_MAX);
    assert_eq!(late.state.outcome(), Some(&Outcome::Cancelled));
}

#[test]
fn a_start_that_is_not_acknowledged_survives_a_cancel() {
    let mut run = parent("part-1");
    let op = spawn_op(&run);
    run.must(Input::Cancel { by: "ann".to_owned() });
    assert_eq!(spawn_op(&run), op);
    let run_id = common::run_id("part-1");
    run.must(Input::Spawned { op, result: SpawnResult::Run(run_id) });
    only(&run, |kind| matches!(kind, OperationKind::CancelChild(_)));
    run.must(Input::ChildEnded { op, outcome: Outcome::Cancelled });
    assert_eq!(run.state.outcome(), Some(&Outcome::Cancelled));
}

#[test]
fn runs_that_spawn_runs_are_stopped_at_a_depth() {
    let mut run = Run::start(compiled(TEXT, "Deep"), json!({"n": 1}));
    let mut depth = 0;
    while run.state.blocked().is_none() {
        let (_, child) = start_child(&mut run);
        assert!(child.state.run().as_str().len() <= 128);
        run = child;
        depth += 1;
    }
    assert_eq!(depth, outlast_kernel::limits::SPAWN_DEPTH_MAX);
}

#[test]
fn folds_of_spawned_runs_give_the_states_of_the_golden_file() {
    let mut run = parent("part-1");
    let (_, mut child) = start_child(&mut run);
    let mut lines = common::fold_line("spawned", &run) + &common::fold_line("child", &child);
    child.done("work", json!(8));
    lines += &common::fold_line("child ending", &child);
    carry_end(&mut run, &mut child);
    lines += &common::fold_line("child ended", &run);
    run.must(Input::Cancel { by: "ann".to_owned() });
    lines += &common::fold_line("cancelled", &run);
    common::compare_golden("spawned.txt", &lines);
}
