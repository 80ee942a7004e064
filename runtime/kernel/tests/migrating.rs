//! Migration: what a run takes along to another machine, and when it cannot go.

mod common;

use std::sync::Arc;

use common::{Run, compiled};
use outlast_dsl::machine::Machine;
use outlast_kernel::event::{Event, EventKind, OnOpen};
use outlast_kernel::input::{Input, Refusal};
use outlast_kernel::operation::Outcome;
use outlast_kernel::{Compatibility, State};
use serde_json::json;

const OLD: &str = r#"
edition 1
activity work(x: int) -> int within 1m in all 1h effect idempotent
activity note(x: int) -> int within 1m in all 1h effect idempotent
flow F(x: int) -> text {
  message Add { n: int }
  data total: int = 1
  limit visits(Work) <= 5 else -> end "limit"
  start Work(x)
  state Work(n: int) {
    do work(n) as r
    on ok set total += r -> Rest
    on problem -> end "problem"
  }
  state Rest {
    await Add within 1h
    on Add { n: more } set total += more -> Work(more)
    on timeout -> end "total {total}"
  }
}
"#;

fn old() -> Machine {
    compiled(OLD, "F")
}

fn changed(changes: &[(&str, &str)]) -> Arc<Machine> {
    let text = changes.iter().fold(OLD.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    });
    Arc::new(compiled(&text, "F"))
}

fn start() -> Run {
    Run::start(old(), json!({"x": 3}))
}

/// Migrates a run; replay gives the same bytes.
#[track_caller]
fn migrate(run: &mut Run, machine: &Arc<Machine>, map: Vec<(outlast_kernel::ids::OpId, OnOpen)>) {
    let before = run.state.clone();
    let kind = run.state.migration(machine, map, "ann".to_owned()).expect("it can go on");
    let event = Event { n: before.last().next(), time: run.now, digest: before.digest(), kind };
    run.effects = run.state.apply_migrated(&event, machine).expect("it applies");
    assert_eq!(run.state.audit(), Ok(()));
    assert_eq!(run.state.snapshot().machine(), machine.hash().0);
    let mut again = before;
    assert!(again.apply(&event).is_err(), "the machine is needed");
    again.apply_migrated(&event, machine).expect("it applies");
    assert_eq!(common::bytes(&again), common::bytes(&run.state));
    let text = serde_json::to_string(&run.state.snapshot()).expect("a snapshot is data");
    let snapshot = serde_json::from_str(&text).expect("it reads back");
    let restored = State::restore(Arc::clone(machine), snapshot).expect("it is of the new machine");
    assert_eq!(common::bytes(&restored), common::bytes(&run.state));
    run.history.push(event);
}

#[test]
fn open_operations_data_and_counts_go_along() {
    let machine = changed(&[
        ("state Rest", "state Idle was Rest"),
        ("-> Rest", "-> Idle"),
        ("data total: int = 1", "data name: text = \"n{x}\"\n  data total: int = 1"),
        ("activity note", "activity before_all(x: int) -> int within 1m effect pure\nactivity note"),
        ("end \"total {total}\"", "end \"{name}: {total}\""),
    ]);
    let mut run = start();
    let (op, _) = run.op("work");
    assert_eq!(run.state.compatibility(&machine), Compatibility::Safe);
    migrate(&mut run, &machine, Vec::new());
    assert_eq!(run.op("work").0, op, "it keeps its id");
    run.done("work", json!(4));
    assert_eq!(run.state.path(), "Idle");
    run.advance(3_600_000);
    assert_eq!(run.result(), json!("n3: 5"));
}

#[test]
fn a_renamed_state_keeps_its_deadline() {
    let machine = changed(&[("state Rest", "state Idle was Rest"), ("-> Rest", "-> Idle")]);
    let mut run = start();
    run.done("work", json!(4));
    let due = run.state.next_due();
    migrate(&mut run, &machine, Vec::new());
    assert_eq!((run.state.path().as_str(), run.state.next_due()), ("Idle", due));
}

#[test]
fn what_changed_its_type_needs_a_migration_and_gets_it() {
    let changes = [
        ("state Work(n: int)", "state Work(n: int, why: text)"),
        ("start Work(x)", "start Work(x, \"start\")"),
        ("Work(more)", "Work(more, \"more\")"),
        ("data total: int = 1", "data total: text = \"none\""),
        ("set total += r ", ""),
        ("set total += more ", ""),
        ("end \"problem\"", "end why"),
    ];
    let mut run = start();
    let Compatibility::NeedsMigrate(needs) = run.state.compatibility(&changed(&changes)) else {
        panic!("it needs a migration")
    };
    assert_eq!(needs.len(), 2, "{needs:?}");
    let migration = "migrate Work(n: int, total: int) set total = \"{total}\" -> Work(n, \"moved\")\nflow F";
    let with = [&changes[..], &[("flow F", migration)]].concat();
    let machine = changed(&with);
    let (op, _) = run.op("work");
    migrate(&mut run, &machine, Vec::new());
    assert_eq!(run.op("work").0, op);
    run.failed("work", "failed");
    assert_eq!(run.result(), json!("moved"));
}

#[test]
fn an_operation_that_does_not_fit_is_drained_cut_or_opened_again() {
    let machine = changed(&[("activity work(x: int)", "activity work(x: int, y: int = 2)")]);
    let run = start();
    let (op, _) = run.op("work");
    assert_eq!(run.state.compatibility(&machine), Compatibility::Drain(vec![op]));
    let mut cut = run.clone();
    migrate(&mut cut, &machine, vec![(op, OnOpen::Cut)]);
    assert_eq!(cut.result(), json!("problem"));
    let mut again = run.clone();
    migrate(&mut again, &machine, vec![(op, OnOpen::Again)]);
    let (new, work) = again.op("work");
    assert_eq!((new.to_string().as_str(), work.input), ("2.0", json!({"x": 3, "y": 2})));
    // At its next rest it can go as it is.
    let mut drained = run;
    drained.done("work", json!(1));
    assert_eq!(drained.state.compatibility(&machine), Compatibility::Safe);
}

#[test]
fn a_blocked_run_goes_on_with_what_it_held() {
    let mut run = start();
    run.done("work", json!(i64::MAX));
    assert!(run.state.blocked().is_some());
    run.say("Add", json!({"n": 2}));
    let machine = changed(&[("set total += r ", "")]);
    migrate(&mut run, &machine, Vec::new());
    assert_eq!(run.state.blocked(), None);
    let (op, work) = run.op("work");
    assert_eq!((op.to_string().as_str(), work.input), ("4.1", json!({"x": 2})));
    // A machine that does not help leaves it blocked at the same event.
    let mut run = start();
    run.done("work", json!(i64::MAX));
    let machine = changed(&[("\"problem\"", "\"other\"")]);
    migrate(&mut run, &machine, Vec::new());
    assert_eq!(run.state.blocked().map(|blocked| blocked.event), Some(2));
}

#[test]
fn an_unread_message_must_have_a_place() {
    let mut run = start();
    run.say("Add", json!({"n": 2}));
    let machine = changed(&[("Add", "Put")]);
    assert!(
        matches!(run.state.compatibility(&machine), Compatibility::NeedsMigrate(needs) if needs[0].contains("Add"))
    );
    let ended = {
        run.must(Input::Terminate { by: "ann".to_owned() });
        run
    };
    assert_eq!(ended.state.outcome(), Some(&Outcome::Terminated));
    assert!(matches!(ended.state.compatibility(&machine), Compatibility::NeedsMigrate(_)));
    let refused = ended.clone().give(&Input::Cancel { by: "ann".to_owned() });
    assert!(matches!(refused, Err(Refusal::RunEnded { .. })));
    assert!(!ended.history.iter().any(|event| matches!(event.kind, EventKind::Migrated(_))));
}

#[test]
fn folds_of_migrations_give_the_states_of_the_golden_file() {
    let machine = changed(&[("state Rest", "state Idle was Rest"), ("-> Rest", "-> Idle")]);
    let mut run = start();
    let mut lines = common::fold_line("before", &run);
    migrate(&mut run, &machine, Vec::new());
    lines += &common::fold_line("after", &run);
    run.done("work", json!(4));
    lines += &common::fold_line("later", &run);
    common::compare_golden("migrated.txt", &lines);
}
