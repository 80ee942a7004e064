//! Promises that hold for every machine and every sequence of inputs; each test is named for what it promises.
//!
//! A run is driven by random numbers; whatever the engine, workers and people could say is said, sense or nonsense. A failing
//! case prints the numbers, which go into `proptest-regressions`.

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::{Run, bytes, machines};
use outlast_kernel::event::{ChildrenOfFork, Choice, Event, EventKind, Failure, LostWhy, Settlement, Tokens};
use outlast_kernel::ids::{Attempt, Millis, OpId, Seq};
use outlast_kernel::input::{Input, Report, Stopped};
use outlast_kernel::operation::{OperationKind, Outcome, Phase};
use outlast_kernel::{Json, State};
use proptest::prelude::*;
use serde_json::json;

/// Which machine, and the numbers that choose the inputs.
fn script() -> impl Strategy<Value = (usize, Vec<u64>)> {
    let count = machines::all().len();
    (0..count, prop::collection::vec(any::<u64>(), 1..60))
}

fn start(which: usize) -> Run {
    let (_, machine, input) = machines::all().swap_remove(which);
    Run::start(machine, input)
}

/// Turns a number into something from outside; mostly it makes sense in the state.
fn input(run: &Run, number: u64) -> Input {
    let activities = run.activities();
    let pick = |count: usize| usize::try_from(number >> 16).expect("64 bits") % count.max(1);
    let chosen = activities.get(pick(activities.len()));
    let nobody = OpId(Seq(number >> 40 & 7), 0);
    let op = chosen.map_or(nobody, |(id, _)| *id);
    let attempt = chosen.map_or(Attempt(1), |(_, op)| op.attempt);
    let attempt = if number >> 50 & 15 == 0 { Attempt(attempt.0.wrapping_sub(1)) } else { attempt };
    let name = chosen.map_or("", |(_, op)| op.activity.as_str());
    let by = ["ann", "bob", "cid"][pick(3)].to_owned();
    let cost = Some(["0.10", "0.40", "-1", "x"][pick(4)].to_owned());
    let held = chosen.is_some_and(|(_, op)| matches!(op.phase, Phase::Held(_)));
    if held && number >> 56 & 3 == 0 {
        // Held work is rare and gets a person's attention.
        return match number >> 58 & 3 {
            0 => Input::Settle { op, verdict: Settlement::NotHappened, by },
            1 => Input::Settle { op, verdict: Settlement::Happened(json!("yes")), by },
            _ => Input::Release { op, by },
        };
    }
    let reported = |report| Input::Reported { op, attempt, report };
    match number & 0xff {
        0..60 => reported(Report::Done { value: result(name, number), cost, tokens: Tokens::default() }),
        60..85 => reported(Report::Failed { error: failure(number), cost, tokens: Tokens::default() }),
        85..87 => reported(Report::Handle(json!({"job": number >> 60}))),
        87..90 => {
            reported(Report::Stopped([Stopped::Timeout, Stopped::Cancelled, Stopped::Leaving][pick(3)]))
        }
        90..130 => Input::Begin { op, attempt, worker: "w".to_owned() },
        130..145 => {
            let whys = [LostWhy::WorkerGone, LostWhy::Lease, LostWhy::Timeout, LostWhy::Restart];
            Input::Lost { op, attempt, why: whys[pick(4)] }
        }
        145..150 => Input::Void { op, attempt },
        150..185 => message(number, pick(12)),
        185..190 => {
            let unread = run.state.unread();
            let id = unread.first().map_or_else(|| "m1".to_owned(), |(id, ..)| id.clone());
            Input::Withdraw { id }
        }
        190..192 => Input::Close,
        192..230 => answer(run, number, by),
        230..232 => Input::Grant { pattern: "shell(rm *)".to_owned() },
        232..242 => {
            let verdicts = [Settlement::Happened(json!("yes")), Settlement::NotHappened, Settlement::Fail];
            Input::Settle { op, verdict: verdicts[pick(3)].clone(), by }
        }
        242..252 => Input::Release { op, by },
        252..255 => Input::Cancel { by },
        _ => Input::Terminate { by },
    }
}

fn result(name: &str, number: u64) -> Json {
    let odd = number >> 20 & 7;
    match (name, odd) {
        (_, 7) => json!([1, {"type": "None"}]),
        ("model", 0..3) => json!({"type": "Text", "text": "hello"}),
        ("model", _) => json!({"type": "Tools", "calls": [
            {"id": "1", "name": "read", "args": {"path": "x"}},
            {"id": "2", "name": "shell", "args": {"command": "ls"}},
            {"id": "3", "name": "other", "args": null},
        ]}),
        ("look" | "tool_effect", 0..2) => json!({"type": "NotHappened"}),
        ("look" | "tool_effect", 2..4) => json!({"type": "CannotTell"}),
        ("look" | "tool_effect", _) => json!({"type": "Happened", "result": "it did"}),
        ("note", _) => Json::Null,
        _ => json!(format!("result {odd}")),
    }
}

fn failure(number: u64) -> Failure {
    let kind = ["failed", "timeout", "Strange"][usize::try_from(number >> 22 & 1).expect("one bit")];
    let retry_after_ms = (number >> 30 & 3 == 0).then_some(number >> 32 & 0xffff);
    Failure {
        kind: kind.to_owned(),
        text: "no".to_owned(),
        retryable: number >> 29 & 3 != 0,
        retry_after_ms,
        ..Failure::default()
    }
}

fn message(number: u64, pick: usize) -> Input {
    let big = if number >> 33 & 1 == 0 { i64::MAX } else { 1 };
    let (name, value) = match number >> 34 & 7 {
        0 => ("Say", json!({"text": "hello"})),
        1 => ("Stop", json!({})),
        2 => ("Go", json!({"n": 5})),
        3 => ("Poke", Json::Null),
        4 | 5 => ("Add", json!({"n": big})),
        6 => ("Enough", json!({})),
        _ => ("Say", json!({"words": 1})),
    };
    let id = (number >> 38 & 1 == 0).then(|| format!("m{pick}"));
    Input::Message { id, name: name.to_owned(), value, from: "ann".to_owned() }
}

fn answer(run: &Run, number: u64, by: String) -> Input {
    let questions = run.questions();
    let question = questions.get(usize::try_from(number >> 24 & 3).expect("two bits")).map(|(id, _)| *id);
    let wanted = questions.first().is_some_and(|(_, question)| question.wanted.is_some());
    let choice = match number >> 26 & 7 {
        0 => Choice::Reject,
        _ if wanted => Choice::Answer,
        _ => Choice::Approve,
    };
    let value = (wanted || number >> 29 & 3 == 0).then(|| json!(number >> 61));
    Input::Answer { question, choice, value, note: "so".to_owned(), by, role: None, shown: None }
}

/// Lets a number happen: time passes, or something arrives. Says whether an event came of it.
fn step(run: &mut Run, number: u64) -> bool {
    let before = run.history.len();
    run.random = number.rotate_left(17);
    if number >> 8 & 7 == 0 {
        run.advance(
            [1, 500, 5_000, 31_000, 100_000, 4_000_000]
                [usize::try_from(number >> 11 & 0xff).expect("a byte") % 6],
        );
    } else {
        let input = input(run, number);
        let _refused = run.give(&input);
    }
    run.history.len() > before
}

/// Drives a run and calls `check` after each step.
fn drive(script: &(usize, Vec<u64>), mut check: impl FnMut(&mut Run, bool)) -> Run {
    let mut run = start(script.0);
    check(&mut run, true);
    for number in &script.1 {
        let moved = step(&mut run, *number);
        check(&mut run, moved);
    }
    run
}

fn through_json(state: &State) -> State {
    let text = serde_json::to_string(&state.snapshot()).expect("a snapshot is data");
    let snapshot = serde_json::from_str(&text).expect("a snapshot reads back");
    State::restore(state.machine().clone(), snapshot).expect("it is of this machine")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn the_parts_of_a_state_always_agree(script in script()) {
        drive(&script, |run, _| {
            if let Err(what) = run.state.audit() {
                panic!("{what}, after {:#?}", run.history.last());
            }
        });
    }

    #[test]
    fn folding_the_history_twice_gives_the_same_bytes_and_operations(script in script()) {
        let run = drive(&script, |_, _| {});
        let again = run.refold();
        prop_assert_eq!(bytes(&run.state), bytes(&again));
        prop_assert!(run.state.operations().eq(again.operations()));
    }

    #[test]
    fn a_snapshot_at_every_event_and_the_rest_give_the_fold(script in script()) {
        let mut shadow: Option<State> = None;
        drive(&script, |run, _| {
            let Some(state) = &mut shadow else {
                shadow = Some(through_json(&run.state));
                return;
            };
            for event in run.history.iter().filter(|event| event.n > state.last()).cloned().collect::<Vec<_>>() {
                state.apply(&event).expect("it folds");
                *state = through_json(state);
            }
            assert_eq!(bytes(state), bytes(&run.state));
            assert!(state.operations().eq(run.state.operations()));
        });
    }

    #[test]
    fn an_operation_is_opened_once_and_closed_at_most_once(script in script()) {
        let (mut opened, mut closed, mut seen) = (BTreeSet::new(), BTreeSet::new(), 0);
        let mut run = start(script.0);
        for number in std::iter::once(None).chain(script.1.iter().map(Some)) {
            if let Some(number) = number {
                let input = input(&run, *number);
                if number >> 8 & 7 == 0 {
                    run.now = run.now.plus(20_000);
                    if let Some(kind) = run.state.timer_due(run.now) {
                        run.append(kind);
                    }
                } else if run.give(&input).is_err() {
                    continue;
                }
            }
            if run.history.len() == seen {
                continue;
            }
            seen = run.history.len();
            for id in &run.effects.opened {
                prop_assert!(opened.insert(*id), "{} was opened twice", id);
            }
            for id in &run.effects.closed {
                prop_assert!(opened.contains(id) && closed.insert(*id), "{} was closed twice or never open", id);
            }
            let open: Vec<_> = opened.difference(&closed).copied().collect();
            let state: Vec<_> = run.state.operations().map(|op| op.id).collect();
            prop_assert_eq!(open, state);
        }
    }

    #[test]
    fn a_refused_input_and_a_strange_event_change_nothing(script in script()) {
        drive(&script, |run, moved| {
            let before = bytes(&run.state);
            if !moved {
                return;
            }
            let bad = |n, time, digest, kind| Event { n, time, digest, kind };
            let (next, time, digest) = (run.state.last().next(), run.now, run.state.digest());
            let done = EventKind::Done { op: OpId(Seq(999), 0), activity: "work".to_owned(), attempt: Attempt(1), value: json!(1), cost: None, tokens: Tokens::default() };
            let mut state = run.state.clone();
            for event in [
                bad(next.next(), time, digest, EventKind::Closed),
                bad(next, time, digest ^ 1, EventKind::Closed),
                bad(next, Millis(run.state.time().0 - 1), digest, EventKind::Closed),
                bad(next, time, digest, done),
            ] {
                let blocked = state.blocked().is_some();
                if state.apply(&event).is_ok() {
                    // A blocked run keeps whatever comes.
                    assert!(blocked, "{event:?}");
                    return;
                }
                assert_eq!(bytes(&state), before);
            }
        });
    }

    #[test]
    fn time_never_goes_back_and_timers_are_neither_early_nor_fired_twice(script in script()) {
        let run = drive(&script, |_, _| {});
        let mut fired = BTreeSet::new();
        for pair in run.history.windows(2) {
            prop_assert!(pair[0].time <= pair[1].time);
        }
        for event in &run.history {
            if let EventKind::TimerFired { op, due } = &event.kind {
                prop_assert!(*due <= event.time, "{} was early", op);
                prop_assert!(fired.insert((*op, *due)), "{} fired twice", op);
            }
        }
    }

    #[test]
    fn accepted_messages_are_handled_or_withdrawn_or_unread(script in script()) {
        let mut handled = Vec::new();
        let mut seen = 0;
        let mut run = start(script.0);
        for number in &script.1 {
            if number >> 8 & 7 == 0 {
                // One event at a time, because effects are those of the last one.
                run.now = run.now.plus(20_000);
                if let Some(kind) = run.state.timer_due(run.now) {
                    run.append(kind);
                }
            } else {
                let input = input(&run, *number);
                let _refused = run.give(&input);
            }
            if run.history.len() > seen {
                seen = run.history.len();
                handled.extend(run.effects.handled.iter().cloned());
            }
        }
        let mut balance: BTreeMap<String, i64> = BTreeMap::new();
        for event in &run.history {
            match &event.kind {
                EventKind::Message { id, .. } => *balance.entry(id.clone()).or_default() += 1,
                EventKind::Withdrawn { id } => *balance.entry(id.clone()).or_default() -= 1,
                _ => {}
            }
        }
        for id in handled.into_iter().chain(run.state.unread().into_iter().map(|(id, ..)| id)) {
            *balance.entry(id).or_default() -= 1;
        }
        prop_assert!(balance.values().all(|left| *left == 0), "{:?}", balance);
    }

    #[test]
    fn money_spent_and_reserved_keeps_the_limit_while_reports_keep_their_word(script in script()) {
        let (name, machine, _) = machines::all().swap_remove(script.0);
        let limit = match name {
            "agent" => 2.0,
            "budget" => 1.0,
            _ => return Ok(()),
        };
        let _ = machine;
        drive(&script, |run, _| {
            let number = |text: String| text.parse::<f64>().expect("a number");
            let sum = number(run.state.cost()) + number(run.state.reserved());
            assert!(sum <= limit + 1e-9, "{sum} is more than {limit}");
        });
    }

    #[test]
    fn group_results_belong_to_their_items_and_few_enough_are_open(script in script()) {
        let run = drive(&script, |run, _| {
            let open = run.activities().iter().filter(|(_, op)| op.activity == "work").count();
            assert!(open <= 5);
        });
        let (name, ..) = machines::all().swap_remove(script.0);
        if name.starts_with("each")
            && let Some(Outcome::Done(Json::Array(items))) = run.state.outcome()
        {
            prop_assert!(items.len() <= 5);
        }
    }

    #[test]
    fn once_work_is_never_handed_out_again_while_it_is_in_doubt(script in script()) {
        // An attempt was begun; until someone who knows has spoken, no further one is begun.
        let run = drive(&script, |_, _| {});
        let mut begun: BTreeMap<OpId, Attempt> = BTreeMap::new();
        for event in &run.history {
            match &event.kind {
                EventKind::Begun { op, attempt, .. } => {
                    prop_assert!(begun.insert(*op, *attempt).is_none(), "{} was begun beside itself", op);
                }
                EventKind::Failed { op, .. } | EventKind::Void { op, .. } | EventKind::Settled { op, .. } => {
                    begun.remove(op);
                }
                EventKind::Handle { op, .. } => {
                    // A handle resumes what was begun.
                    begun.remove(op);
                }
                // A verifier said that it did not happen.
                EventKind::Done { activity, value, .. }
                    if (activity == "look" || activity == "tool_effect") && value["type"] == "NotHappened" =>
                {
                    begun.clear();
                }
                _ => {}
            }
        }
    }

    #[test]
    fn a_fork_starts_where_its_parent_was_and_leaves_it_alone(script in script()) {
        let run = drive(&script, |_, _| {});
        let before = bytes(&run.state);
        let mut fork = run.state.for_fork(common::run_id("fork"));
        let now = run.now.plus(5_000);
        let kind = EventKind::Forked { parent: run.state.run().clone(), at: run.state.last(), begun: Vec::new(), children: ChildrenOfFork::Unknown, by: "ann".to_owned() };
        let event = Event { n: fork.last().next(), time: now, digest: fork.digest(), kind };
        fork.apply(&event).expect("it forks");
        prop_assert_eq!(bytes(&run.state), before);
        prop_assert_eq!(fork.audit(), Ok(()));
        for op in fork.operations() {
            if let OperationKind::Activity(work) = &op.kind {
                prop_assert!(work.key.starts_with("fork/"));
                prop_assert!(!matches!(work.phase, Phase::Begun { .. } | Phase::Verifying(_)), "{:?}", work);
            }
        }
        let doubtful = run.state.operations().any(|op| match &op.kind {
            OperationKind::Activity(work) => matches!(work.phase, Phase::Begun { .. } | Phase::Verifying(_) | Phase::Held(_)),
            _ => false,
        });
        if !doubtful {
            prop_assert_eq!(fork.path(), run.state.path());
            let dues = |state: &State, from: Millis| -> Vec<_> {
                let mut dues: Vec<_> = state.operations().filter_map(|op| Some(op.due?.0 - from.0)).collect();
                dues.sort_unstable();
                dues
            };
            prop_assert_eq!(dues(&fork, now), dues(&run.state, run.state.time()));
        }
    }
}

/// Returns the same numbers on every computer.
fn numbers(seed: u64, count: usize) -> Vec<u64> {
    let mut number = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = |_| {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        number ^ number >> 29
    };
    (0..count).map(next).collect()
}

/// What a fold gives must be the same in every release and on every kind of computer.
#[test]
fn folds_give_the_states_of_the_golden_file() {
    let mut lines = String::new();
    for (which, (name, ..)) in machines::all().into_iter().enumerate() {
        for seed in 0..3 {
            let run = drive(&(which, numbers(seed, 40)), |_, _| {});
            let hash = blake3::hash(bytes(&run.state).as_bytes());
            lines.push_str(&format!("{name} {seed}: {} events, {hash}\n", run.history.len()));
        }
    }
    common::compare_golden("folds.txt", &lines);
}

/// The properties mean little if the driver never comes anywhere.
#[test]
fn the_random_driver_reaches_every_kind_of_event_and_end() {
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for round in 0..2_000 {
        let numbers = numbers(round as u64, 40);
        let run = drive(&(round % machines::all().len(), numbers), |_, _| {});
        for event in &run.history {
            *kinds.entry(event.kind.name().to_owned()).or_default() += 1;
        }
        let end = match run.state.outcome() {
            Some(Outcome::Done(_)) => "end done",
            Some(Outcome::Failed(_)) => "end failed",
            Some(Outcome::Cancelled) => "end cancelled",
            Some(Outcome::Terminated) => "end terminated",
            None if run.state.blocked().is_some() => "end blocked",
            None => "end open",
        };
        *kinds.entry(end.to_owned()).or_default() += 1;
    }
    println!("{kinds:#?}");
    let expected = [
        "started",
        "configured",
        "done",
        "failed",
        "begun",
        "lost",
        "void",
        "handle",
        "settled",
        "released",
        "timer_fired",
        "message",
        "withdrawn",
        "closed",
        "answered",
        "cancelled",
        "terminated",
        "end done",
        "end cancelled",
        "end blocked",
        "end open",
    ];
    for kind in expected {
        assert!(kinds.get(kind).is_some_and(|count| *count >= 3), "{kind} is rare: {kinds:?}");
    }
}
