//! Migration of groups: their members go along one by one, and what they have come to keeps its meaning.

mod common;

use std::sync::Arc;

use common::{Run, compiled};
use outlast_dsl::machine::Machine;
use outlast_kernel::Compatibility;
use outlast_kernel::event::OnOpen;
use serde_json::json;

const OLD: &str = r#"
edition 1
activity fetch(x: int) -> int within 1m in all 1h effect idempotent
activity weigh(x: int) -> int within 1m in all 1h effect idempotent
flow All(xs: list<int>) -> list<int> {
  start All
  state All {
    each x in xs at most 2 within 3h as rs { do fetch(x) as r on ok yield r + 1 }
    on ok -> end rs
    on problem -> end []
  }
}
flow Both(x: int) -> int {
  start Both
  state Both {
    parallel { a: do fetch(x) as r on failed yield 100   b: do weigh(x) as r on failed yield 200 } join all
    on ok -> end a + b
    on failed -> end 0
  }
}
"#;

fn changed(flow: &str, changes: &[(&str, &str)]) -> Arc<Machine> {
    let text = changes.iter().fold(OLD.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    });
    Arc::new(compiled(&text, flow))
}

fn all() -> Run {
    Run::start(compiled(OLD, "All"), json!({"xs": [1, 2, 3]}))
}

fn both() -> Run {
    Run::start(compiled(OLD, "Both"), json!({"x": 3}))
}

#[test]
fn members_go_along_when_only_how_they_are_asked_has_changed() {
    let machine = changed(
        "All",
        &[
            ("each x in xs at most 2 within 3h as rs", "each item in xs at most 3 within 5h as all"),
            ("do fetch(x) as r on ok yield r + 1", "do fetch(item * 10) as it on ok yield it + 1"),
            ("on ok -> end rs", "on ok -> end all"),
            ("activity fetch", "activity before_all(x: int) -> int within 1m effect pure\nactivity fetch"),
        ],
    );
    let mut run = all();
    run.answer_op(run.activities()[0].0, common::done(json!(7)));
    let open: Vec<_> = run.activities().into_iter().map(|(op, _)| op).collect();
    let due = run.state.next_due();
    assert_eq!(run.state.compatibility(&machine), Compatibility::Safe);
    run.migrate(&machine, Vec::new());
    assert_eq!(run.activities().into_iter().map(|(op, _)| op).collect::<Vec<_>>(), open);
    assert_eq!(run.state.next_due(), due, "the deadline stays");
    for (op, value) in open.into_iter().zip([8, 9]) {
        run.answer_op(op, common::done(json!(value)));
    }
    assert_eq!(run.result(), json!([8, 9, 10]));
}

#[test]
fn a_member_that_starts_after_the_migration_is_one_of_the_new_version() {
    let machine = changed("All", &[("do fetch(x)", "do fetch(x * 10)")]);
    let mut run = all();
    run.migrate(&machine, Vec::new());
    run.answer_op(run.activities()[0].0, common::done(json!(1)));
    let inputs: Vec<_> = run.activities().iter().map(|(_, work)| work.input.clone()).collect();
    assert_eq!(inputs, [json!({"x": 2}), json!({"x": 30})]);
}

#[test]
fn what_members_have_come_to_must_keep_its_meaning() {
    let run = all();
    let open: Vec<_> = run.activities().into_iter().map(|(op, _)| op).collect();
    for change in [
        ("yield r + 1", "yield r + 2"),
        ("each x in xs", "each x in [y + 1 for y in xs]"),
        ("within 3h as", "keep going within 3h as"),
        ("do fetch(x)", "do weigh(x)"),
    ] {
        let mut changes = vec![change];
        if change.1.starts_with("keep going") {
            changes.extend([("on ok -> end rs", "on ok -> end done(rs)"), ("on problem", "on timeout")]);
        }
        let found = run.state.compatibility(&changed("All", &changes));
        assert_eq!(found, Compatibility::Drain(open.clone()), "{change:?}");
    }
}

#[test]
fn only_the_member_that_does_not_fit_is_drained_cut_or_opened_again() {
    let machine = changed("Both", &[("activity weigh(x: int)", "activity weigh(x: int, y: int = 2)")]);
    let run = both();
    let (fetch, weigh) = (run.op("fetch").0, run.op("weigh").0);
    assert_eq!(run.state.compatibility(&machine), Compatibility::Drain(vec![weigh]));

    let mut cut = run.clone();
    cut.migrate(&machine, vec![(weigh, OnOpen::Cut)]);
    assert_eq!(cut.op("fetch").0, fetch, "the other one goes on");
    cut.done("fetch", json!(5));
    assert_eq!(cut.result(), json!(205));

    let mut again = run.clone();
    again.migrate(&machine, vec![(weigh, OnOpen::Again)]);
    assert_eq!(again.op("fetch").0, fetch, "the other one goes on");
    let (new, work) = again.op("weigh");
    assert_eq!((new.to_string().as_str(), work.input), ("2.0", json!({"x": 3, "y": 2})));
    again.done("weigh", json!(6));
    again.done("fetch", json!(5));
    assert_eq!(again.result(), json!(11));

    let mut drained = run;
    drained.done("weigh", json!(6));
    assert_eq!(drained.state.compatibility(&machine), Compatibility::Safe);
    drained.migrate(&machine, Vec::new());
    drained.done("fetch", json!(5));
    assert_eq!(drained.result(), json!(11));
}
