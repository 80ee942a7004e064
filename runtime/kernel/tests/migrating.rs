//! Migration: what a run takes along to another machine, and when it cannot go.

mod common;

use std::sync::Arc;

use common::{Run, compiled};
use outlast_dsl::machine::Machine;
use outlast_kernel::Compatibility;
use outlast_kernel::event::{Choice, EventKind, OnOpen};
use outlast_kernel::input::{Input, Refusal};
use outlast_kernel::operation::Outcome;
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
    run.migrate(&machine, Vec::new());
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
    run.migrate(&machine, Vec::new());
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
    run.migrate(&machine, Vec::new());
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
    cut.migrate(&machine, vec![(op, OnOpen::Cut)]);
    assert_eq!(cut.result(), json!("problem"));
    let mut again = run.clone();
    again.migrate(&machine, vec![(op, OnOpen::Again)]);
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
    run.migrate(&machine, Vec::new());
    assert_eq!(run.state.blocked(), None);
    let (op, work) = run.op("work");
    assert_eq!((op.to_string().as_str(), work.input), ("4.1", json!({"x": 2})));
    // A machine that does not help leaves it blocked at the same event.
    let mut run = start();
    run.done("work", json!(i64::MAX));
    let machine = changed(&[("\"problem\"", "\"other\"")]);
    run.migrate(&machine, Vec::new());
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
    run.migrate(&machine, Vec::new());
    lines += &common::fold_line("after", &run);
    run.done("work", json!(4));
    lines += &common::fold_line("later", &run);
    common::compare_golden("migrated.txt", &lines);
}

/// The first version of `upgrade.flow`: one person is asked about a plain text.
const ASKS_ONE: &str = r#"
edition 1
activity polish(draft: text, note: text) -> text within 5m in all 20m effect pure
flow Write(topic: text) -> text version 1 {
  limit visits(Improving) <= 20 else -> end ""
  start Improving("", "")
  state Improving(draft: text, note: text) {
    do polish(draft, note) as better
    on ok -> Asking(better)
    on problem -> Asking(draft)
  }
  state Asking(draft: text) {
    ask "Is \"{topic}\" good?" show draft to "author" within 7d
    on approve -> end draft
    on reject { note } -> Improving(draft, note)
    on timeout -> end draft
  }
}
"#;

#[test]
fn a_run_of_the_first_version_goes_on_with_the_program_that_migrates_it() {
    let machine = Arc::new(compiled(include_str!("../../../dsl/tests/programs/upgrade.flow"), "Write"));
    let mut asked = Run::start(compiled(ASKS_ONE, "Write"), json!({"topic": "cats"}));
    asked.done("polish", json!("They purr."));
    let question = asked.questions()[0].0;
    // Another type is shown now, so it is asked anew.
    assert_eq!(asked.state.compatibility(&machine), Compatibility::Drain(vec![question]));
    asked.migrate(&machine, vec![(question, OnOpen::Again)]);
    let draft = json!({"title": "cats", "text": "They purr."});
    let (_, question) = asked.questions()[0];
    assert_eq!((&question.show, question.to.len()), (&draft, 2));
    for by in ["author", "editor"] {
        asked.must(Run::answer(Choice::Approve, by));
    }
    assert_eq!(asked.result(), draft);

    let mut improving = Run::start(compiled(ASKS_ONE, "Write"), json!({"topic": "cats"}));
    improving.done("polish", json!("They purr."));
    let reject = Input::Answer {
        question: None,
        choice: Choice::Reject,
        value: None,
        note: "longer".to_owned(),
        by: "author".to_owned(),
        role: None,
        shown: None,
    };
    improving.must(reject);
    let (op, _) = improving.op("polish");
    assert_eq!(improving.state.compatibility(&machine), Compatibility::Drain(vec![op]));
    improving.migrate(&machine, vec![(op, OnOpen::Again)]);
    let input = json!({"draft": draft, "notes": ["longer"]});
    assert_eq!(improving.op("improve").1.input, input);
}
