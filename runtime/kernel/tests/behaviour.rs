//! Behaviour of runs, concept by concept, through decide and apply.

mod common;

use common::machines::{
    adder, agent, budget, clean_up, fan_out, held, one, quorum, regions, retried, timers, verified,
};
use common::{Run, START};
use outlast_dsl::machine::{EffectClass, Join};
use outlast_kernel::check_input;
use outlast_kernel::event::{ChildrenOfFork, Choice, Config, Event, EventKind, Failure, LostWhy, Settlement};
use outlast_kernel::ids::{Attempt, Millis, OpId, Seq};
use outlast_kernel::input::{Input, Refusal, Report};
use outlast_kernel::operation::{OperationKind, Outcome, Phase};
use serde_json::json;

#[test]
fn a_run_does_its_work_and_ends() {
    let mut run = Run::start(one(EffectClass::Pure), json!({"x": 3}));
    assert_eq!(run.state.path(), "Work");
    let (id, op) = run.op("work");
    assert_eq!((id.to_string().as_str(), op.key.as_str(), op.input), ("1.0", "r1/1.0", json!({"x": 3})));
    run.done("work", json!("yes"));
    assert_eq!(run.result(), json!("yes"));
    assert!(run.effects.ended);
}

#[test]
fn failures_are_retried_as_the_policy_says() {
    let mut run = Run::start(retried(EffectClass::Pure, 3), json!({"x": 3}));
    run.random = 200;
    run.failed("work", "failed");
    assert!(matches!(run.phase("work"), Phase::RetryAt(time) if time.0 > run.now.0));
    run.now = run.now.plus(20_000);
    run.failed("work", "failed");
    run.now = run.now.plus(20_000);
    run.failed("work", "failed");
    assert_eq!(run.result()["attempts"], json!(3));
}

#[test]
fn an_agent_asks_before_it_runs_a_tool() {
    let mut run = Run::start(agent(), json!({"task": "tidy up"}));
    let call = json!({"id": "1", "name": "shell", "args": {"command": "rm -rf build"}});
    let read = json!({"id": "2", "name": "read", "args": {"path": "x"}});
    run.done("model", json!({"type": "Tools", "calls": [call, read]}));
    assert_eq!(run.state.path(), "Act");
    assert_eq!(run.questions().len(), 1);
    run.done("tool", json!("text of x"));
    run.must(Run::answer(Choice::Approve, "ann"));
    run.begin("tool");
    run.done("tool", json!("gone"));
    assert_eq!(run.op("model").1.input, json!({"log": ["tidy up", "reply", "gone", "text of x"]}));
    run.done("model", json!({"type": "Text", "text": "done"}));
    assert_eq!((run.state.path().as_str(), run.emits.clone()), ("Idle", vec![json!("done")]));
}

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

fn begin(run: &mut Run, op: OpId) {
    run.must(Input::Begin { op, attempt: Attempt(1), worker: "w".to_owned() });
}

fn finish(run: &mut Run, op: OpId, text: &str) {
    begin(run, op);
    run.done_op(op, json!(text));
}

fn fail_op(run: &mut Run, op: OpId) {
    begin(run, op);
    let error = Failure { kind: "failed".to_owned(), text: "no".to_owned(), ..Failure::default() };
    run.must(Input::Reported { op, attempt: Attempt(1), report: Report::Failed { error, cost: None } });
}

fn open(run: &Run) -> Vec<OpId> {
    run.activities().iter().map(|(id, _)| *id).collect()
}

#[test]
fn a_result_that_does_not_fit_is_a_failure_that_says_where() {
    let mut run = Run::start(retried(EffectClass::Pure, 3), json!({"x": 3}));
    run.done("work", json!({"a": 1}));
    let text = run.result()["text"].as_str().unwrap().to_owned();
    assert_eq!(text, "the result of work does not fit its type: text is expected, found an object with a");
}

#[test]
fn losses_count_as_attempts_and_restarts_do_not() {
    let mut run = Run::start(one(EffectClass::Idempotent), json!({"x": 3}));
    for _ in 0..30 {
        run.lost("work", LostWhy::Restart);
    }
    for _ in 0..19 {
        run.lost("work", LostWhy::WorkerGone);
    }
    assert_eq!(run.op("work").1.attempt, Attempt(50));
    run.lost("work", LostWhy::WorkerGone);
    assert_eq!(run.result()["text"], json!("lost: 20 attempts never answered"));
}

#[test]
fn an_attempt_limit_of_the_policy_holds_and_a_person_gives_fresh_attempts() {
    let mut run = Run::start(held(2), json!({"x": 3}));
    run.failed("work", "failed");
    run.now = run.now.plus(20_000);
    run.failed("work", "failed");
    assert!(matches!(run.phase("work"), Phase::Held(_)));
    run.advance(10_000_000);
    let (op, _) = run.op("work");
    run.must(Input::Release { op, by: "ann".to_owned() });
    run.failed("work", "failed");
    assert!(matches!(run.phase("work"), Phase::RetryAt(_)));
    run.now = run.now.plus(20_000);
    run.done("work", json!("at last"));
    assert_eq!(run.result(), json!("at last"));
}

#[test]
fn once_work_in_doubt_is_held_until_a_person_settles_it() {
    for (verdict, expected) in [
        (Settlement::Happened(json!("it did")), json!("it did")),
        (Settlement::Fail, json!("settled as failed by ann")),
    ] {
        let mut run = Run::start(one(EffectClass::Once(None)), json!({"x": 3}));
        run.begin("work");
        run.lost("work", LostWhy::Lease);
        assert!(matches!(run.phase("work"), Phase::Held(_)));
        run.advance(10_000_000);
        let (op, work) = run.op("work");
        let again = Input::Begin { op, attempt: work.attempt, worker: "w2".to_owned() };
        assert!(run.give(&again).is_err(), "it must not run again");
        run.must(Input::Settle { op, verdict, by: "ann".to_owned() });
        let result = run.result();
        assert_eq!(if result.is_object() { &result["text"] } else { &result }, &expected);
    }
    let mut run = Run::start(one(EffectClass::Once(None)), json!({"x": 3}));
    run.begin("work");
    run.advance(60_000);
    let (op, _) = run.op("work");
    run.must(Input::Settle { op, verdict: Settlement::NotHappened, by: "ann".to_owned() });
    assert_eq!((run.op("work").1.attempt, run.phase("work")), (Attempt(2), Phase::Ready));
}

#[test]
fn a_late_answer_of_the_begun_attempt_ends_the_doubt() {
    let mut run = Run::start(verified(), json!({"x": 3}));
    run.begin("work");
    run.lost("work", LostWhy::Lease);
    let (op, _) = run.op("work");
    run.done_op(op, json!("after all"));
    assert_eq!(run.result(), json!("after all"));
}

#[test]
fn a_verifier_decides_what_became_of_once_work() {
    let started = || {
        let mut run = Run::start(verified(), json!({"x": 3}));
        run.begin("work");
        run.lost("work", LostWhy::WorkerGone);
        run
    };
    let mut run = started();
    let (_, look) = run.op("look");
    assert_eq!((look.key.as_str(), look.input), ("r1/1.0", json!({"x": 3})));
    run.done("look", json!({"type": "Happened", "result": "it did"}));
    assert_eq!(run.result(), json!("it did"));

    let mut run = started();
    for _ in 0..3 {
        run.done("look", json!({"type": "NotHappened"}));
        assert_eq!(run.phase("work"), Phase::Ready);
        run.begin("work");
        run.lost("work", LostWhy::WorkerGone);
    }
    run.done("look", json!({"type": "NotHappened"}));
    assert_eq!(run.result()["kind"], json!("failed"), "at most three further attempts");

    let mut run = started();
    run.failed("look", "failed");
    assert!(matches!(run.phase("work"), Phase::Held(_)), "a verifier that fails cannot tell");
}

#[test]
fn a_handle_resumes_a_lost_attempt() {
    let mut run = Run::start(verified(), json!({"x": 3}));
    run.begin("work");
    let (op, _) = run.op("work");
    let handle = Input::Reported { op, attempt: Attempt(1), report: Report::Handle(json!({"job": 7})) };
    run.must(handle.clone());
    assert_eq!(run.give(&handle), Err(Refusal::Repeated));
    run.lost("work", LostWhy::WorkerGone);
    let (_, work) = run.op("work");
    assert_eq!((work.attempt, work.phase, work.handle), (Attempt(2), Phase::Ready, Some(json!({"job": 7}))));
}

#[test]
fn a_deadline_is_counted_from_the_opening_and_survives_retries() {
    let mut run = Run::start(retried(EffectClass::Pure, 100), json!({"x": 3}));
    run.advance(30_000);
    run.failed("work", "failed");
    run.advance(29_999);
    assert!(run.state.outcome().is_none());
    run.advance(1);
    assert_eq!(run.result()["kind"], json!("timeout"));
}

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
fn a_quorum_needs_everyone_and_an_edit_starts_it_anew() {
    let mut run = Run::start(quorum(None), json!({}));
    let with = |by: &str, role: Option<&str>, value: Option<serde_json::Value>| match Run::answer(
        Choice::Approve,
        by,
    ) {
        Input::Answer { question, choice, note, by, shown, .. } => {
            Input::Answer { question, choice, value, note, by, role: role.map(str::to_owned), shown }
        }
        other => other,
    };
    run.must(with("ann", Some("owner"), None));
    assert_eq!(run.give(&with("ann", Some("owner"), None)), Err(Refusal::Repeated));
    assert!(matches!(run.give(&with("eve", Some("guest"), None)), Err(Refusal::WrongRole { .. })));
    assert!(matches!(run.give(&with("bob", None, Some(json!("x")))), Err(Refusal::Invalid { .. })));
    let shown = run.questions()[0].1.shown.clone();
    run.must(with("bob", Some("owner"), Some(json!(6))));
    assert_ne!(run.questions()[0].1.shown, shown);
    assert_eq!(run.questions()[0].1.agreed, vec![("bob".to_owned(), "owner".to_owned())]);
    run.must(with("ann", None, None));
    run.must(with("cid", None, None));
    assert_eq!(run.result(), json!({"value": 6, "by": ["bob", "ann", "cid"]}));
}

#[test]
fn the_first_answer_wins_and_later_ones_hear_of_it() {
    let mut run = Run::start(agent(), json!({"task": "t"}));
    let call = |id: &str| json!({"id": id, "name": "shell", "args": {"command": "ls"}});
    run.done("model", json!({"type": "Tools", "calls": [call("1"), call("2")]}));
    let questions: Vec<_> = run.questions().iter().map(|(id, _)| *id).collect();
    assert!(
        matches!(run.give(&Run::answer(Choice::Approve, "ann")), Err(Refusal::WhichQuestion { open }) if open == questions)
    );
    let named = |by: &str, shown: Option<String>| Input::Answer {
        question: Some(questions[0]),
        choice: Choice::Reject,
        value: None,
        note: "no".to_owned(),
        by: by.to_owned(),
        role: None,
        shown,
    };
    assert!(matches!(run.give(&named("ann", Some("0".repeat(64)))), Err(Refusal::ShownDiffers { .. })));
    run.must(named("ann", None));
    let how = "rejected by ann".to_owned();
    assert_eq!(run.give(&named("bob", None)), Err(Refusal::AlreadyDecided { op: questions[0], how }));
}

#[test]
fn an_answer_to_a_typed_question_fits_its_type() {
    let mut run = Run::start(quorum(Some(outlast_dsl::machine::Type::Int)), json!({}));
    assert_eq!(run.questions()[0].1.wanted, Some(json!({"type": "integer"})));
    let answer = |value| match Run::answer(Choice::Answer, "ann") {
        Input::Answer { question, choice, note, by, role, shown, .. } => {
            Input::Answer { question, choice, value: Some(value), note, by, role, shown }
        }
        other => other,
    };
    assert!(run.give(&answer(json!("five"))).is_err());
    run.must(answer(json!(5)));
    assert_eq!(run.result(), json!({"value": 5, "by": "ann"}));
}

#[test]
fn messages_are_taken_in_order_when_someone_listens() {
    let mut run = Run::start(agent(), json!({"task": "t"}));
    assert!(run.state.listens("Stop") && !run.state.listens("Say"));
    for text in ["one", "two", "three"] {
        run.say("Say", json!({"text": text}));
    }
    let unread = run.state.unread();
    run.must(Input::Withdraw { id: unread[1].0.clone() });
    run.done("model", json!({"type": "Text", "text": "x"}));
    assert_eq!(run.op("model").1.input["log"], json!(["t", "reply", "one"]));
    run.done("model", json!({"type": "Text", "text": "x"}));
    assert_eq!(run.op("model").1.input["log"], json!(["t", "reply", "one", "reply", "three"]));
    assert!(run.state.unread().is_empty());
}

#[test]
fn messages_are_checked_and_accepted_once() {
    let mut run = Run::start(agent(), json!({"task": "t"}));
    let said = run.message("Say", json!({"text": "hello"}), Some("m1"));
    run.must(said.clone());
    assert_eq!(run.give(&said), Err(Refusal::MessageRepeated { id: "m1".to_owned(), n: Seq(2) }));
    let other = run.message("Say", json!({"text": "bye"}), Some("m1"));
    assert_eq!(run.give(&other), Err(Refusal::MessageConflict { id: "m1".to_owned() }));
    for (name, value, words) in [
        ("Sing", json!({}), "the flow takes no message Sing, but Say, Stop"),
        ("Say", json!({}), "Say: text: text is expected, found nothing"),
        ("Say", json!({"text": 5}), "Say: text: text is expected, found 5"),
        ("Say", json!({"text": "a", "loud": 1}), "Say: only text is expected, found \"field loud\""),
    ] {
        let input = run.message(name, value, None);
        assert_eq!(run.give(&input), Err(Refusal::Invalid { detail: words.to_owned() }));
    }
    let mut timers = Run::start(timers(), json!({}));
    timers.say("Poke", json!(null));
    run.done("model", json!({"type": "Text", "text": "x"}));
    run.done("model", json!({"type": "Text", "text": "x"}));
    run.must(Input::Close);
    assert!(matches!(run.give(&said), Err(Refusal::RunEnded { .. })));
}

#[test]
fn a_now_message_that_nobody_takes_is_refused_and_a_full_mailbox_too() {
    let mut run = Run::start(agent(), json!({"task": "t"}));
    for _ in 0..1_000 {
        run.say("Say", json!({"text": "x"}));
    }
    let one_more = run.message("Say", json!({"text": "x"}), None);
    assert_eq!(run.give(&one_more), Err(Refusal::MailboxFull { held: 1_000 }));
    let mut fan = Run::start(fan_out(|_| {}), json!({"xs": []}));
    let stop = fan.message("Stop", json!({}), None);
    assert!(matches!(fan.give(&stop), Err(Refusal::RunEnded { .. })));
    let mut held = Run::start(clean_up(), json!({}));
    let stop = held.message("Stop", json!({}), None);
    assert!(matches!(held.give(&stop), Err(Refusal::Invalid { .. })));
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
        fan_out(|each| each.within = Some(common::build::within(5_000))),
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
        let report = Report::Done { value: json!("x"), cost: Some(cost.to_owned()) };
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
fn policy_decides_which_tools_need_a_person() {
    let asked = |config: Config| {
        let mut run = Run::start_with(agent(), json!({"task": "t"}), config);
        let call = json!({"id": "1", "name": "shell", "args": {"command": "git status"}});
        run.done("model", json!({"type": "Tools", "calls": [call]}));
        run.questions().len()
    };
    let patterns = |pattern: &str| vec![pattern.to_owned()];
    let allow = Config { allow: patterns("shell(git *)"), ..Config::default() };
    assert_eq!(asked(Config::default()), 1);
    assert_eq!(asked(allow.clone()), 0);
    assert_eq!(asked(Config { deny: patterns("shell"), ..allow.clone() }), 1);
    assert_eq!(asked(Config { ask: patterns("shell(*)"), ..allow }), 1);
    assert_eq!(asked(Config { grants: patterns("shell(git status)"), ..Config::default() }), 0);
}

#[test]
fn a_fork_never_runs_what_its_parent_has_begun() {
    let mut run = Run::start(one(EffectClass::Once(None)), json!({"x": 3}));
    let before = run.state.clone();
    run.begin("work");
    for (state, begun) in [(run.state.clone(), vec![]), (before, vec![run.op("work").0])] {
        let mut fork = state.for_fork(common::run_id("fork"));
        let kind = EventKind::Forked {
            parent: common::run_id("r1"),
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
        (json!({"x": 1, "y": 2}), "the input of One does not fit: only x is expected, found \"field y\""),
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
