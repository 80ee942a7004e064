//! Whole programs from text to their end that reach beyond one run's states: a sale that is undone, parts that are runs of their own.
//!
//! Leaves what they look like to the language's tests, where the programs stand. Invariant: every test ends with a fold that gives
//! the same bytes.

mod common;

use common::Run;
use outlast_dsl::machine::Machine;
use outlast_kernel::event::{ChildrenOfFork, Choice, Event, EventKind, LostWhy, SpawnResult};
use outlast_kernel::ids::OpId;
use outlast_kernel::input::Input;
use outlast_kernel::operation::{OperationKind, Outcome};
use serde_json::{Value as Json, json};

/// Returns the machine of one flow of a program.
fn program(file: &str, flow: &str) -> Machine {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dsl/tests/programs").join(file);
    common::compiled(&std::fs::read_to_string(&path).expect("a program"), flow)
}

/// A sale whose charge was in hand when its worker died, and of which the bank cannot tell.
fn doubted_sale() -> Run {
    let order = json!({"id": "o1", "sku": "lamp", "amount": "19.90", "mail": "ann"});
    let mut run = Run::start(program("refund.flow", "Sale"), json!({ "order": order }));
    run.done("reserve", json!("shelf 4"));
    run.begin("charge");
    run.lost("charge", LostWhy::WorkerGone);
    assert_eq!(run.state.path(), "LookUp");
    run.done("look_up", json!({"type": "CannotTell"}));
    let asked = &run.questions()[0].1.text;
    assert!(asked.starts_with("Was order o1 charged? ("), "{asked}");
    run
}

fn says(choice: Choice, value: Option<Json>) -> Input {
    Input::Answer {
        question: None,
        choice,
        value,
        note: String::new(),
        by: "eve".to_owned(),
        role: None,
        shown: None,
    }
}

#[test]
fn a_charge_that_happened_after_all_is_refunded_with_its_receipt_when_the_sale_fails() {
    let mut run = doubted_sale();
    run.must(says(Choice::Answer, Some(json!("receipt 7"))));
    run.failed("send", "failed");
    assert_eq!(run.op("refund").1.input["result"], json!("receipt 7"));
    assert!(run.activities().iter().all(|(_, op)| op.activity != "release"), "one at a time");
    run.done("refund", json!(null));
    assert_eq!(run.op("release").1.input["result"], json!("shelf 4"));
    run.done("release", json!(null));
    let failed = json!({"type": "Declined", "reason": "no"});
    assert_eq!(run.state.outcome(), Some(&Outcome::Failed(failed)));
    run.must_be_sound();
}

#[test]
fn a_charge_that_did_not_happen_is_not_refunded() {
    let mut run = doubted_sale();
    run.must(says(Choice::Reject, None));
    let open: Vec<String> = run.activities().into_iter().map(|(_, op)| op.activity.clone()).collect();
    assert_eq!(open, ["release"]);
    run.done("release", json!(null));
    assert_eq!(
        run.state.outcome(),
        Some(&Outcome::Failed(json!({"type": "Declined", "reason": "not charged"})))
    );
    run.must_be_sound();
}

#[test]
fn a_sale_that_is_sent_undoes_nothing() {
    let mut run = doubted_sale();
    run.must(says(Choice::Answer, Some(json!("receipt 7"))));
    run.done("send", json!("parcel 1"));
    assert_eq!(run.op("write").1.input["what"], json!("sent as parcel 1"));
    run.done("write", json!(null));
    assert_eq!(run.result(), json!("receipt 7"));
    run.must_be_sound();
}

/// The only spawned run that is not started yet.
#[track_caller]
fn started(run: &mut Run) -> (OpId, String) {
    let op = run.state.operations().find(|op| matches!(op.kind, OperationKind::Spawn(_))).map(|op| op.id);
    let op = op.unwrap_or_else(|| panic!("nothing is spawned at {}", run.state.path()));
    let start = run.state.child_start(op).expect("it starts");
    let id = start.run.as_str().to_owned();
    run.must(Input::Spawned { op, result: SpawnResult::Run(start.run) });
    (op, id)
}

fn release(names: &[&str]) -> (Run, Vec<OpId>) {
    let parts: Vec<Json> = names.iter().map(|name| json!({"name": name, "size": 3})).collect();
    let input = json!({"version": "v2", "parts": parts});
    let mut run = Run::start(program("children.flow", "Release"), input);
    let ops = names.iter().map(|name| {
        let (op, id) = started(&mut run);
        assert_eq!(id, format!("v2-{name}"));
        op
    });
    let ops = ops.collect();
    (run, ops)
}

#[test]
fn spawned_parts_are_awaited_in_turn_whichever_ends_first() {
    let (mut run, ops) = release(&["web", "api"]);
    assert_eq!(run.state.path(), "Wait");
    let ends = |op: OpId, url: &str| Input::ChildEnded { op, outcome: Outcome::Done(json!(url)) };
    run.must(ends(ops[1], "api.tar"));
    run.advance(600_001);
    assert_eq!(run.emits, [json!("waiting for web")]);
    run.must(ends(ops[0], "web.tar"));
    let (_, _) = started(&mut run);
    assert_eq!(run.result(), json!({"type": "Released", "urls": ["web.tar", "api.tar"]}));
    run.must_be_sound();
}

#[test]
fn a_part_that_fails_or_is_cancelled_ends_the_release() {
    let failed = Outcome::Failed(json!({"type": "TooBig"}));
    for (outcome, kind) in [(failed, "TooBig"), (Outcome::Cancelled, "cancelled")] {
        let (mut run, ops) = release(&["web", "api"]);
        run.must(Input::ChildEnded { op: ops[0], outcome });
        // The other one is cancelled with its parent, which waits for the news of it.
        run.must(Input::ChildEnded { op: ops[1], outcome: Outcome::Cancelled });
        let said = run.state.ending().or(run.state.outcome()).cloned();
        let Some(Outcome::Done(result)) = said else { panic!("{said:?}") };
        assert_eq!(result["part"], json!("web"));
        assert!(result["why"].as_str().is_some_and(|why| why.contains(kind)), "{result}");
        run.must_be_sound();
    }
}

/// What gives nothing may be undone by an activity that takes no result.
#[test]
fn an_undo_without_a_result_gets_the_input_alone() {
    let text = r#"
        error Stuck
        activity lock(door: text) within 1m effect idempotent undo unlock
        activity unlock(door: text) within 1m effect idempotent
        activity enter() within 1m effect pure
        saga flow Visit(door: text) raises Stuck {
          start Lock
          state Lock { do lock(door) on ok -> Enter on problem -> fail Stuck }
          state Enter { do enter() on ok -> end on problem -> fail Stuck }
        }
    "#;
    let mut run = Run::start(common::compiled(text, "Visit"), json!({"door": "north"}));
    run.done("lock", json!(null));
    run.failed("enter", "failed");
    assert_eq!(run.op("unlock").1.input, json!({"door": "north"}));
    run.done("unlock", json!(null));
    assert_eq!(run.state.outcome(), Some(&Outcome::Failed(json!({"type": "Stuck"}))));
    run.must_be_sound();
}

#[test]
fn a_fork_undoes_nothing_that_its_parent_did() {
    let run = doubted_sale();
    let mut fork = run.state.for_fork(common::run_id("fork"));
    let kind = EventKind::Forked {
        parent: run.state.run().clone(),
        at: run.state.last(),
        begun: Vec::new(),
        children: ChildrenOfFork::Unknown,
        by: "ann".to_owned(),
    };
    fork.apply(&Event { n: fork.last().next(), time: run.now, digest: fork.digest(), kind })
        .expect("it forks");
    for kind in fork.decide(&says(Choice::Reject, None), run.now, 0).expect("it is asked anew") {
        let event = Event { n: fork.last().next(), time: run.now, digest: fork.digest(), kind };
        fork.apply(&event).expect("it is answered");
    }
    assert_eq!(fork.operations().count(), 0, "the shelf is still reserved for the parent");
    assert_eq!(fork.outcome(), Some(&Outcome::Failed(json!({"type": "Declined", "reason": "not charged"}))));
    assert_eq!(fork.audit(), Ok(()));
}
