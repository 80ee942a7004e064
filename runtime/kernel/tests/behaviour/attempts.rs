//! Attempts: retries, losses, doubts, handles, deadlines.

use crate::common::Run;
use crate::common::machines::{held, one, retried, verified};
use outlast_dsl::machine::EffectClass;
use outlast_kernel::event::{LostWhy, Settlement};
use outlast_kernel::ids::Attempt;
use outlast_kernel::input::{Input, Refusal, Report};
use outlast_kernel::operation::Phase;
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
