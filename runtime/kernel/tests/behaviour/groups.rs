//! Fan-outs and regions, and what cuts them short.

use crate::common::Run;
use crate::common::machines::{budget, fan_out, regions};
use crate::{begin, fail_op, finish, open};
use outlast_dsl::machine::Join;
use outlast_kernel::event::{Choice, Tokens};
use outlast_kernel::ids::Attempt;
use outlast_kernel::input::{Input, Report};
use outlast_kernel::operation::Phase;
use serde_json::json;

#[test]
fn a_fan_out_gives_results_in_item_order() {
    let mut run = Run::start(fan_out(|_| {}), json!({"xs": [1, 2, 3]}));
    let ops: Vec<_> = run.activities().iter().map(|(id, _)| *id).collect();
    assert_eq!(ops.len(), 2);
    for (op, text) in [(ops[1], "b"), (ops[0], "a")] {
        run.must(outlast_kernel::input::Input::Begin {
            op,
            attempt: outlast_kernel::ids::Attempt(1),
            worker: "w".to_owned(),
        });
        run.done_op(op, json!(text));
    }
    run.done("work", json!("c"));
    assert_eq!(run.result(), json!(["a", "b", "c"]));
}

#[test]
fn stop_tells_what_was_cut_and_what_never_started() {
    let mut run = Run::start(fan_out(|_| {}), json!({"xs": [1, 2, 3, 4]}));
    let ops = open(&run);
    finish(&mut run, ops[0], "a");
    begin(&mut run, ops[1]);
    run.say("Stop", json!({}));
    assert_eq!(
        run.result(),
        json!([{"type": "Done", "value": "a"}, {"type": "Cut"}, {"type": "NotStarted"}, {"type": "NotStarted"}])
    );
}

#[test]
fn an_error_ends_a_group_unless_it_keeps_going() {
    let mut run = Run::start(fan_out(|_| {}), json!({"xs": [1, 2, 3]}));
    let ops = open(&run);
    fail_op(&mut run, ops[1]);
    assert_eq!(run.result()[1]["text"], json!("no"));
    assert_eq!(run.result()[0][2], json!({"type": "NotStarted"}));

    let mut run = Run::start(fan_out(|each| each.keep_going = true), json!({"xs": [1, 2, 3]}));
    let ops = open(&run);
    fail_op(&mut run, ops[0]);
    finish(&mut run, ops[1], "b");
    let rest = open(&run);
    finish(&mut run, rest[0], "c");
    assert_eq!(run.result()[1], json!({"type": "Done", "value": "b"}));
    assert_eq!(run.result()[0]["error"]["kind"], json!("failed"));
}

#[test]
fn an_empty_group_is_over_at_once_and_a_group_has_a_deadline() {
    let run = Run::start(fan_out(|_| {}), json!({"xs": []}));
    assert_eq!(run.result(), json!([]));
    let mut run = Run::start(
        fan_out(|each| each.within = Some(crate::common::build::within(5_000))),
        json!({"xs": [1, 2, 3]}),
    );
    let ops = open(&run);
    finish(&mut run, ops[0], "a");
    run.advance(5_000);
    assert_eq!(run.result()[0][0], json!({"type": "Done", "value": "a"}));
    assert_eq!(run.result()[1]["kind"], json!("timeout"));
}

#[test]
fn regions_join_all_or_some_or_one() {
    let mut run = Run::start(regions(Join::All), json!({}));
    run.say("Go", json!({"n": 5}));
    run.must(Run::answer(Choice::Approve, "ann"));
    for text in ["a", "b", "c"] {
        let op = open(&run)[0];
        run.done_op(op, json!(text));
    }
    assert_eq!(run.result(), json!(["a", 5, {"value": null, "by": ["ann"]}, ["b", "c"]]));

    let mut run = Run::start(regions(Join::Count(2)), json!({}));
    run.say("Go", json!({"n": 5}));
    let op = open(&run)[0];
    run.done_op(op, json!("a"));
    assert_eq!(
        run.result().as_array().unwrap()[..2],
        [json!({"type": "Done", "value": "a"}), json!({"type": "Done", "value": 5})]
    );
    assert_eq!(run.result()[2], json!({"type": "NotStarted"}));

    let mut run = Run::start(regions(Join::Region(1)), json!({}));
    run.advance(50_000);
    assert_eq!(run.result(), json!(["nobody answered in time"]));
}

#[test]
fn what_does_not_fit_the_budget_waits_and_breaks_the_limit_when_alone() {
    let mut run = Run::start(budget(), json!({"xs": [1, 2, 3, 4, 5]}));
    let phases =
        |run: &Run| -> Vec<Phase> { run.activities().iter().map(|(_, op)| op.phase.clone()).collect() };
    let ready = |run: &Run| phases(run).iter().filter(|phase| **phase == Phase::Ready).count();
    assert_eq!((ready(&run), run.state.reserved()), (2, "0.8".to_owned()));
    let done = |run: &mut Run, cost: &str| {
        let op = open(run)[0];
        let report =
            Report::Done { value: json!("x"), cost: Some(cost.to_owned()), tokens: Tokens::default() };
        run.must(Input::Reported { op, attempt: Attempt(1), report });
    };
    done(&mut run, "0.05");
    assert_eq!(
        (ready(&run), run.state.reserved(), run.state.cost()),
        (2, "0.8".to_owned(), "0.05".to_owned())
    );
    done(&mut run, "0.40");
    assert_eq!((ready(&run), run.state.reserved()), (1, "0.4".to_owned()));
    done(&mut run, "0.40");
    assert_eq!(run.result(), json!("too expensive"));
}
