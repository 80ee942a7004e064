//! Sagas and clean-ups: what a cancelled saga opens while it cleans up, and what becomes of an undo at which a fork begins.

mod common;

use common::{Run, compiled};
use outlast_dsl::machine::{EffectClass, Machine};
use outlast_kernel::event::Settlement;
use outlast_kernel::input::Input;
use outlast_kernel::operation::{Outcome, Phase};
use serde_json::json;

const VISIT: &str = r#"
error Stuck
activity lock(door: text) within 20s effect idempotent undo unlock
activity unlock(door: text) within 20s effect idempotent
activity park(door: text) within 20s effect idempotent undo unpark
activity unpark(door: text) within 20s effect idempotent
activity enter() within 20s effect pure
saga flow Visit(door: text) raises Stuck {
  message Go
  on cancel within 5m -> Park
  start Lock
  state Lock { do lock(door) on ok -> Rest on problem -> fail Stuck }
  state Rest { await Go within forever on Go -> Enter }
  state Enter { do enter() on ok -> end on problem -> fail Stuck }
  state Park { do park(door) on ok -> Tell on problem -> fail Stuck }
  state Tell { do enter() on ok -> end on problem -> fail Stuck }
}
"#;

/// A cancelled visit that cleans up and has parked.
fn parked(text: &str) -> Run {
    let mut run = Run::start(compiled(text, "Visit"), json!({"door": "north"}));
    run.done("lock", json!(null));
    run.must(Input::Cancel { by: "ann".to_owned() });
    run.done("unlock", json!(null));
    run.done("park", json!(null));
    assert_eq!(run.state.path(), "Tell");
    run
}

fn names(run: &Run) -> Vec<String> {
    run.activities().iter().map(|(_, work)| work.activity.clone()).collect()
}

/// What can be replayed, and ended as cancelled.
fn ended(run: &Run) {
    assert_eq!(run.state.audit(), Ok(()));
    assert_eq!(common::bytes(&run.refold()), common::bytes(&run.state));
    assert_eq!(run.state.outcome(), Some(&Outcome::Cancelled), "at {}", run.state.path());
}

#[test]
fn a_clean_up_that_ends_well_is_left_as_it_is() {
    let mut run = parked(VISIT);
    run.done("enter", json!(null));
    ended(&run);
}

#[test]
fn a_clean_up_that_fails_undoes_what_it_opened_itself() {
    let mut run = parked(VISIT);
    run.failed("enter", "failed");
    assert_eq!(names(&run), ["unpark"], "what was undone before is not undone again");
    assert_eq!(run.state.audit(), Ok(()));
    run.done("unpark", json!(null));
    ended(&run);
}

#[test]
fn a_clean_up_that_takes_too_long_undoes_what_it_opened_itself() {
    let slow = "state Tell { await Go within forever on Go -> end }";
    let text = VISIT
        .replace("within 5m -> Park", "within 30s -> Park")
        .replace("state Tell { do enter() on ok -> end on problem -> fail Stuck }", slow);
    let mut run = parked(&text);
    run.advance(31_000);
    assert_eq!(names(&run), ["unpark"]);
    run.done("unpark", json!(null));
    ended(&run);

    // What is in hand settles first.
    let text = VISIT
        .replace("within 5m -> Park", "within 30s -> Tell")
        .replace("state Tell { do enter() on ok -> end", "state Tell { do enter() on ok -> Park")
        .replace("state Park { do park(door) on ok -> Tell", "state Park { do park(door) on ok -> end");
    let mut run = Run::start(compiled(&text, "Visit"), json!({"door": "north"}));
    run.must(Input::Cancel { by: "ann".to_owned() });
    run.done("lock", json!(null));
    run.done("unlock", json!(null));
    run.advance(15_000);
    run.done("enter", json!(null));
    run.advance(16_000);
    assert_eq!(names(&run), ["park"]);
    run.done("park", json!(null));
    assert_eq!(names(&run), ["unpark"]);
    run.done("unpark", json!(null));
    ended(&run);
}

#[test]
fn a_clean_up_whose_undo_fails_says_so() {
    let mut run = parked(VISIT);
    run.failed("enter", "failed");
    run.failed("unpark", "failed");
    let Some(Outcome::Failed(report)) = run.state.outcome() else { panic!("{:?}", run.state.outcome()) };
    let first = |list: &str| report[list][0]["activity"].clone();
    assert_eq!((first("undone"), first("failed")), (json!("lock"), json!("park")));
}

#[test]
fn a_saga_that_a_clean_up_runs_tells_it_of_its_failure() {
    let text = VISIT
        .replace(
            "state Park { do park(door) on ok -> Tell",
            "state Park { run Inner(door) on ok -> end on undo_failed -> end",
        )
        .replace("on problem -> fail Stuck }\n  state Tell", "on Stuck -> Tell }\n  state Tell")
        + r#"
saga flow Inner(door: text) raises Stuck {
  start Park
  state Park { do park(door) on ok -> Enter on problem -> fail Stuck }
  state Enter { do enter() on ok -> end on problem -> fail Stuck }
}
"#;
    let mut run = Run::start(compiled(&text, "Visit"), json!({"door": "north"}));
    run.done("lock", json!(null));
    run.must(Input::Cancel { by: "ann".to_owned() });
    run.done("unlock", json!(null));
    run.done("park", json!(null));
    run.failed("enter", "failed");
    run.done("unpark", json!(null));
    assert_eq!(run.state.path(), "Tell");
    run.done("enter", json!(null));
    ended(&run);
}

#[test]
fn a_clean_up_that_goes_round_in_circles_is_given_up() {
    let text = VISIT
        .replace(
            "state Tell { do enter() on ok -> end on problem -> fail Stuck }",
            "state Tell { await Go, closed within forever on Go -> end on closed set turns += 1 -> Tell }",
        )
        .replace("  message Go\n", "  message Go\n  data turns: int = 0\n  limit turns <= 9 else -> end\n");
    // It is closed while the clean-up waits.
    let mut run = parked(&text);
    run.must(Input::Close);
    assert_eq!((names(&run), run.state.blocked()), (vec!["unpark".to_owned()], None));
    run.done("unpark", json!(null));
    ended(&run);
    // It was closed long before.
    let mut run = Run::start(compiled(&text, "Visit"), json!({"door": "north"}));
    run.must(Input::Close);
    run.done("lock", json!(null));
    run.must(Input::Cancel { by: "ann".to_owned() });
    run.done("unlock", json!(null));
    run.done("park", json!(null));
    run.done("unpark", json!(null));
    ended(&run);
}

#[test]
fn a_clean_up_that_goes_round_in_circles_takes_no_other_with_it() {
    let text = r#"
        activity tell(who: text) within 20s effect idempotent
        flow Outer() {
          on cancel within 5m -> Tell
          start Work
          state Work { run Inner() on ok -> end }
          state Tell { do tell("outer") on ok, problem -> end }
        }
        flow Inner() {
          message Go
          data turns: int = 0
          limit turns <= 9 else -> end
          on cancel within 5m -> Circle
          start Rest
          state Rest { await Go within forever on Go -> end }
          state Circle { await Go, closed within forever on Go -> end on closed set turns += 1 -> Circle }
        }
    "#;
    // It is closed while the inner flow cleans up, or was so before.
    for early in [false, true] {
        let mut run = Run::start(compiled(text, "Outer"), json!({}));
        let cancel = Input::Cancel { by: "ann".to_owned() };
        for input in if early { [Input::Close, cancel] } else { [cancel, Input::Close] } {
            run.must(input);
        }
        assert_eq!((names(&run), run.state.blocked()), (vec!["tell".to_owned()], None));
        assert_eq!(run.op("tell").1.input, json!({"who": "outer"}));
        run.done("tell", json!(null));
        ended(&run);
    }
}

/// A visit that failed and undoes.
fn undoing(machine: Machine) -> Run {
    let mut run = Run::start(machine, json!({"door": "north"}));
    run.done("lock", json!(null));
    run.say("Go", json!({}));
    run.failed("enter", "failed");
    assert_eq!(names(&run), ["unlock"]);
    run
}

#[test]
fn a_fork_in_the_middle_of_undoing_does_the_open_undo_under_its_own_key() {
    let mut fork = undoing(compiled(VISIT, "Visit")).fork();
    assert_eq!(fork.state.audit(), Ok(()));
    let (op, work) = fork.op("unlock");
    assert_eq!((work.phase, work.key), (Phase::Ready, format!("fork/{op}")));
    fork.done("unlock", json!(null));
    assert_eq!(fork.state.outcome(), Some(&Outcome::Failed(json!({"type": "Stuck"}))));
}

#[test]
fn an_undo_that_is_once_and_begun_is_in_doubt_in_a_fork() {
    // The checker refuses such an undo; the kernel does not rely on it.
    let mut machine = compiled(VISIT, "Visit");
    for activity in machine.activities.iter_mut().filter(|activity| activity.name == "unlock") {
        activity.effect = EffectClass::Once(None);
    }
    let mut run = undoing(machine);
    let free = run.fork();
    assert_eq!(free.op("unlock").1.phase, Phase::Ready, "nobody has begun it");
    run.begin("unlock");
    let fork = run.fork();
    assert_eq!(fork.state.audit(), Ok(()));
    let (op, work) = fork.op("unlock");
    assert!(matches!(work.phase, Phase::Held(_)), "{:?}", work.phase);
    for verdict in [Settlement::Happened(json!(null)), Settlement::Fail] {
        let mut fork = fork.clone();
        let is_done = verdict != Settlement::Fail;
        fork.must(Input::Settle { op, verdict, by: "ann".to_owned() });
        let Some(Outcome::Failed(error)) = fork.state.outcome() else { panic!("{:?}", fork.state.outcome()) };
        assert_eq!(error["type"], if is_done { "Stuck" } else { "UndoFailed" });
    }
}

/// A sale whose payment is begun, of which a fork is made; on an unknown outcome it fails, or holds.
fn payment_of_a_fork(unknown: &str) -> Run {
    let text = r#"
        error Declined
        activity reserve(x: int) -> text within 20s effect idempotent undo give_back
        activity give_back(x: int, result: text?) within 20s effect idempotent
        activity pay(x: int) -> text within 20s effect once undo refund unknown holds
        activity refund(x: int, result: text?) within 20s effect idempotent
        activity send(x: int) within 20s effect pure
        saga flow Sale(x: int) raises Declined {
          start Pay
          state Pay { do pay(x) on ok -> Book on problem -> fail Declined UNKNOWN }
          state Book { do reserve(x) on ok -> Send on problem -> fail Declined }
          state Send { do send(x) on ok -> end on problem -> fail Declined }
        }
    "#;
    let text = text.replace("UNKNOWN", unknown);
    let text = if unknown.is_empty() { text } else { text.replace(" unknown holds", "") };
    let mut run = Run::start(compiled(&text, "Sale"), json!({"x": 3}));
    run.begin("pay");
    let fork = run.fork();
    assert_eq!(fork.state.audit(), Ok(()));
    fork
}

#[test]
fn a_fork_does_not_undo_what_its_parent_has_begun() {
    let declined = Some(Outcome::Failed(json!({"type": "Declined"})));
    let fork = payment_of_a_fork("on unknown -> fail Declined");
    assert_eq!(fork.state.outcome().cloned(), declined, "{:?}", names(&fork));

    let held = payment_of_a_fork("");
    let (op, _) = held.op("pay");
    for verdict in [Settlement::Happened(json!("receipt")), Settlement::NotHappened] {
        let is_own = verdict == Settlement::NotHappened;
        let mut fork = held.clone();
        fork.must(Input::Settle { op, verdict, by: "ann".to_owned() });
        if is_own {
            fork.done("pay", json!("a receipt of its own"));
        }
        fork.done("reserve", json!("shelf"));
        fork.failed("send", "failed");
        fork.done("give_back", json!(null));
        if is_own {
            assert_eq!(fork.op("refund").1.input["result"], json!("a receipt of its own"));
            fork.done("refund", json!(null));
        }
        assert_eq!(fork.state.outcome().cloned(), declined, "{:?}", names(&fork));
    }
}
