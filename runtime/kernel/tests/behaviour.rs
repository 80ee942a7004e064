//! Behaviour of runs, concept by concept, through decide and apply.

mod common;

use common::Run;
use common::machines::{agent, fan_out, one, retried};
use outlast_dsl::machine::EffectClass;
use outlast_kernel::event::Choice;
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
