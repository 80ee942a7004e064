//! Sagas: what may have happened is undone, the latest first, once each, and nothing is skipped silently.

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::{Run, compiled, trips::trip};
use outlast_kernel::event::{EventKind, Failure, LostWhy, Settlement, Tokens};
use outlast_kernel::ids::OpId;
use outlast_kernel::input::{Input, Report};
use outlast_kernel::operation::{OperationKind, Outcome, Phase};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

fn start() -> Run {
    Run::start(trip(), json!({"days": 3}))
}

fn open(run: &Run) -> Vec<(String, Json)> {
    run.activities().iter().map(|(_, work)| (work.activity.clone(), work.input.clone())).collect()
}

fn first(run: &Run) -> OpId {
    run.activities()[0].0
}

fn done(value: &str) -> Report {
    Report::Done { value: json!(value), cost: None, tokens: Tokens::default() }
}

fn nothing() -> Report {
    Report::Done { value: Json::Null, cost: None, tokens: Tokens::default() }
}

fn refused() -> Report {
    let error = Failure { kind: "failed".to_owned(), text: "no".to_owned(), ..Failure::default() };
    Report::Failed { error, cost: None, tokens: Tokens::default() }
}

/// Books all three hotels.
fn booked() -> Run {
    let mut run = start();
    for room in ["a", "b", "c"] {
        run.answer_op(first(&run), done(room));
    }
    assert_eq!(run.state.path(), "Pay");
    run
}

#[test]
fn a_failed_step_undoes_the_steps_before_it_the_latest_first_with_their_results() {
    let mut run = booked();
    run.answer_op(first(&run), refused());
    for (days, room) in [(3, "c"), (2, "b"), (1, "a")] {
        let expected = json!({"days": days, "result": room});
        assert_eq!(open(&run), [("cancel_hotel".to_owned(), expected)]);
        run.answer_op(first(&run), nothing());
        assert_eq!(run.state.audit(), Ok(()));
    }
    assert_eq!(run.state.outcome(), Some(&Outcome::Failed(json!({"type": "NotBooked"}))));
}

#[test]
fn what_is_in_hand_settles_before_anything_is_undone() {
    let mut run = start();
    let (a, b) = (run.activities()[0].0, run.activities()[1].0);
    run.answer_op(a, refused());
    // The other one is in hand or not; it is not handed out any more.
    let (op, work) = run.op("hotel");
    assert_eq!((op, work.settling), (b, true));
    assert!(run.give(&Input::Begin { op, attempt: work.attempt, worker: "w".to_owned() }).is_err());
    run.answer_op(b, done("b"));
    assert_eq!(open(&run), [("cancel_hotel".to_owned(), json!({"days": 2, "result": "b"}))]);
    run.answer_op(first(&run), nothing());
    assert!(run.effects.ended);

    let mut run = start();
    run.answer_op(run.activities()[0].0, refused());
    let (op, work) = run.op("hotel");
    run.must(Input::Void { op, attempt: work.attempt });
    assert!(run.effects.ended, "nobody had it in hand, so nothing is to be undone");
}

#[test]
fn an_unknown_outcome_is_undone_without_a_result() {
    let mut run = booked();
    run.begin("charge");
    run.lost("charge", LostWhy::WorkerGone);
    assert_eq!(open(&run), [("refund".to_owned(), json!({"amount": 3, "result": null}))]);
}

#[test]
fn an_arrow_may_settle_a_doubt() {
    let text = common::trips::TRIP;
    for (verdict, undo) in
        [("Happened { result: \"r9\" }", Some(json!({"amount": 3, "result": "r9"}))), ("NotHappened", None)]
    {
        let machine = compiled(
            &text.replace("on unknown ->", &format!("on unknown as d settle d as {verdict} ->")),
            "Trip",
        );
        let mut run = Run::start(machine, json!({"days": 3}));
        for room in ["a", "b", "c"] {
            run.answer_op(first(&run), done(room));
        }
        run.begin("charge");
        run.lost("charge", LostWhy::WorkerGone);
        let next = open(&run).remove(0);
        match undo {
            Some(input) => assert_eq!(next, ("refund".to_owned(), input), "{verdict}"),
            None => assert_eq!(next.0, "cancel_hotel", "{verdict}"),
        }
    }
}

#[test]
fn what_a_saga_inside_did_is_undone_with_the_one_around_it() {
    let mut run = booked();
    for value in ["paid", "paid again", "room"] {
        run.answer_op(first(&run), done(value));
    }
    assert_eq!(run.state.path(), "Last");
    run.answer_op(first(&run), refused());
    let mut undone = Vec::new();
    while !run.effects.ended {
        undone.extend(open(&run).into_iter().map(|(_, input)| input["result"].clone()));
        run.answer_op(first(&run), nothing());
    }
    assert_eq!(undone, ["room", "paid again", "paid", "c", "b", "a"]);
}

#[test]
fn a_saga_inside_that_fails_undoes_its_own_steps_and_tells_the_one_around_it() {
    let mut run = booked();
    run.answer_op(first(&run), done("paid"));
    run.answer_op(first(&run), done("paid again"));
    run.answer_op(first(&run), refused());
    assert_eq!(open(&run)[0].1, json!({"amount": 3, "result": "paid again"}));
    run.answer_op(first(&run), nothing());
    assert_eq!(open(&run)[0].1, json!({"amount": 3, "result": "paid"}));
}

#[test]
fn an_undo_that_fails_ends_the_run_with_what_was_undone_and_what_is_left() {
    let mut run = booked();
    run.answer_op(first(&run), refused());
    run.answer_op(first(&run), nothing());
    run.answer_op(first(&run), refused());
    let Some(Outcome::Failed(report)) = run.state.outcome() else { panic!("{:?}", run.state.outcome()) };
    assert_eq!(report["type"], "UndoFailed");
    let days = |list: &str| -> Vec<_> {
        let list = report[list].as_array().expect("a list");
        list.iter().map(|undo| undo["input"]["days"].as_i64().unwrap()).collect()
    };
    assert_eq!((days("undone"), days("failed"), days("left")), (vec![3], vec![2], vec![1]));
    assert_eq!(report["failed"][0]["problem"]["text"], "no");
}

#[test]
fn a_held_undo_waits_for_a_person_who_may_have_done_it_by_hand() {
    let text = common::trips::TRIP.replace("doubling to 10s }", "doubling to 10s then hold }");
    let mut run = Run::start(compiled(&text, "Trip"), json!({"days": 3}));
    run.answer_op(first(&run), done("a"));
    let other = run.activities()[0].0;
    run.answer_op(other, refused());
    let (op, work) = run.op("hotel");
    run.must(Input::Void { op, attempt: work.attempt });
    for _ in 0..2 {
        run.failed("cancel_hotel", "failed");
        run.now = run.now.plus(20_000);
    }
    assert!(matches!(run.phase("cancel_hotel"), Phase::Held(_)));
    let mut again = run.clone();
    again.must(Input::Release { op: first(&again), by: "ann".to_owned() });
    assert!(matches!(again.phase("cancel_hotel"), Phase::Ready));
    let verdict = Settlement::Happened(Json::Null);
    run.must(Input::Settle { op: first(&run), verdict, by: "ann".to_owned() });
    assert_eq!(run.state.outcome(), Some(&Outcome::Failed(json!({"type": "NotBooked"}))));
}

#[test]
fn a_cancelled_saga_undoes_and_ends_cancelled() {
    let mut run = booked();
    run.answer_op(first(&run), done("paid"));
    run.begin("charge");
    run.must(Input::Cancel { by: "ann".to_owned() });
    assert_eq!(run.state.audit(), Ok(()));
    // The charge is in hand: its answer counts.
    run.done("charge", json!("paid again"));
    let mut undone = Vec::new();
    while !run.effects.ended {
        undone.extend(open(&run).into_iter().map(|(_, input)| input["result"].clone()));
        assert!(run.give(&Input::Cancel { by: "bob".to_owned() }).is_err());
        run.answer_op(first(&run), nothing());
        assert_eq!(run.state.audit(), Ok(()));
    }
    assert_eq!(undone, ["paid again", "paid", "c", "b", "a"]);
    assert_eq!(run.state.outcome(), Some(&Outcome::Cancelled));
}

#[test]
fn a_saga_that_is_cut_off_undoes_on_its_own_before_the_one_around_it() {
    let mut run = booked();
    run.answer_op(first(&run), done("paid"));
    run.answer_op(first(&run), done("paid again"));
    // The deadline of the saga inside.
    run.advance(20 * 60_000 - 1);
    let mut run = booked();
    run.answer_op(first(&run), done("paid"));
    run.answer_op(first(&run), done("paid again"));
    run.say("Stop", json!({}));
    let (op, work) = run.op("hotel");
    run.must(Input::Void { op, attempt: work.attempt });
    let mut undone = Vec::new();
    while !run.effects.ended {
        undone.extend(open(&run).into_iter().map(|(_, input)| input["result"].clone()));
        run.answer_op(first(&run), nothing());
        assert_eq!(run.state.audit(), Ok(()));
    }
    assert_eq!(undone, ["paid again", "paid", "c", "b", "a"]);
}

/// What the history says of an operation with an undo.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    /// Nobody can tell.
    Open,
    Done,
    /// It failed with an answer.
    Not,
}

/// Drives a trip by random numbers to its end; returns the undo operations in the order in which they were done.
fn drive(numbers: &[u64]) -> (Run, BTreeMap<OpId, (String, Fate)>, Vec<OpId>) {
    let mut run = start();
    let mut fates: BTreeMap<OpId, (String, Fate)> = BTreeMap::new();
    let mut undone = Vec::new();
    for (step, number) in numbers.iter().copied().chain(std::iter::repeat_n(0, 400)).enumerate() {
        for (id, work) in run.activities() {
            if work.undoes.is_none() {
                let path = run.state.operation(id).map(|op| op.path.clone()).unwrap_or_default();
                fates.entry(id).or_insert((path, Fate::Open));
            }
        }
        if run.state.outcome().is_some() {
            break;
        }
        let open: Vec<_> = run.activities().into_iter().map(|(id, work)| (id, work.clone())).collect();
        let Some((op, work)) = open.get(usize::try_from(number >> 8).expect("64 bits") % open.len().max(1))
        else {
            run.advance(1_000);
            continue;
        };
        let (op, attempt) = (*op, work.attempt);
        let report = |report| Input::Reported { op, attempt, report };
        let input = match number & 31 {
            _ if step >= numbers.len() && work.undoes.is_none() => report(refused()),
            0..12 => report(if work.undoes.is_some() { nothing() } else { done("yes") }),
            12..15 => report(refused()),
            15..21 => Input::Begin { op, attempt, worker: "w".to_owned() },
            21..23 => Input::Lost { op, attempt, why: LostWhy::WorkerGone },
            23..25 => Input::Void { op, attempt },
            25 => run.message("Stop", json!({}), None),
            26 => Input::Cancel { by: "ann".to_owned() },
            _ => {
                run.advance(if number & 32 == 0 { 2_000 } else { 700_000 });
                continue;
            }
        };
        let before = run.history.len();
        if run.give(&input).is_err() && step >= numbers.len() {
            run.give(&Input::Begin { op, attempt, worker: "w".to_owned() }).ok();
            run.advance(1_000);
        }
        for event in &run.history[before..] {
            match &event.kind {
                EventKind::Done { .. } if work.undoes.is_some() => undone.extend(work.undoes),

                EventKind::Done { op, .. } => {
                    fates.entry(*op).and_modify(|(_, fate)| *fate = Fate::Done);
                }
                EventKind::Failed { op, retry_at: None, .. } if work.undoes.is_none() => {
                    fates.entry(*op).and_modify(|(_, fate)| *fate = Fate::Not);
                }
                _ => {}
            }
        }
        assert_eq!(run.state.audit(), Ok(()), "after {:?}", run.history.last());
    }
    (run, fates, undone)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// The multiset of what is undone after `fail` or cancel is what may have happened, each once, or it is reported.
    #[test]
    fn all_that_may_have_happened_is_undone_once_or_reported(numbers in prop::collection::vec(any::<u64>(), 1..60)) {
        let (run, fates, undone) = drive(&numbers);
        let outcome = run.state.outcome().cloned();
        prop_assert!(outcome.is_some(), "it is at {} with {:?}", run.state.path(), open(&run));
        let set: BTreeSet<_> = undone.iter().copied().collect();
        prop_assert_eq!(set.len(), undone.len(), "undone twice: {:?}", undone);
        for op in &undone {
            prop_assert_ne!(fates[op].1, Fate::Not, "{} did not happen and was undone", op);
        }
        let happened: BTreeSet<_> =
            fates.iter().filter(|(_, (_, fate))| *fate == Fate::Done).map(|(op, _)| *op).collect();
        match outcome {
            Some(Outcome::Done(_)) => {}
            Some(Outcome::Failed(json)) if json["type"] == "UndoFailed" => {
                let reported = ["failed", "left"].map(|list| json[list].as_array().map_or(0, Vec::len));
                prop_assert!(reported[0] > 0 || reported[1] > 0);
            }
            _ => {
                // What the saga inside could not undo it has told to the one around it, which goes on undoing.
                let inside = |op: &&OpId| fates[*op].0.starts_with("Inner/");
                let missed: Vec<_> = happened.difference(&set).filter(|op| !inside(op)).collect();
                prop_assert!(missed.is_empty(), "{missed:?} were not undone");
                let around: Vec<_> = undone.iter().filter(|op| !inside(op)).collect();
                prop_assert!(around.is_sorted_by(|a, b| a > b), "not the latest first: {around:?}");
            }
        }
    }

    #[test]
    fn a_saga_folds_to_the_same_bytes_also_through_snapshots(numbers in prop::collection::vec(any::<u64>(), 1..60)) {
        let (run, ..) = drive(&numbers);
        prop_assert_eq!(common::bytes(&run.state), common::bytes(&run.refold()));
        let mut state = Run::start(trip(), json!({"days": 3})).state;
        for event in &run.history[1..] {
            state.apply(event).expect("it folds");
            let text = serde_json::to_string(&state.snapshot()).expect("a snapshot is data");
            let snapshot = serde_json::from_str(&text).expect("it reads back");
            state = outlast_kernel::State::restore(state.machine().clone(), snapshot).expect("of this machine");
        }
        prop_assert_eq!(common::bytes(&state), common::bytes(&run.state));
    }
}

#[test]
fn undo_operations_say_what_they_undo() {
    let mut run = booked();
    run.answer_op(first(&run), refused());
    let undoes = run.state.operations().find_map(|op| match &op.kind {
        OperationKind::Activity(work) => work.undoes,
        _ => None,
    });
    assert!(undoes.is_some());
}

#[test]
fn folds_of_sagas_give_the_states_of_the_golden_file() {
    let mut run = booked();
    let mut lines = common::fold_line("booked", &run);
    run.begin("charge");
    run.must(Input::Cancel { by: "ann".to_owned() });
    lines += &common::fold_line("settling", &run);
    run.lost("charge", LostWhy::WorkerGone);
    lines += &common::fold_line("undoing", &run);
    run.answer_op(first(&run), nothing());
    run.answer_op(first(&run), refused());
    lines += &common::fold_line("undo failed", &run);
    common::compare_golden("sagas.txt", &lines);
}
