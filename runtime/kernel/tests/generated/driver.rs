//! Drives a machine that nobody has seen before: every kind of input, time in order, crashes; looks at the state after each event.
//!
//! Leaves what must be true at the end to the properties. Invariant: what an operation answers follows from its arguments, so that
//! the results of groups can be told apart.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use outlast_dsl::machine::{Each, EachBody, Effect, Expr, Literal, Machine};
use outlast_kernel::event::{Choice, Event, EventKind, Failure, LostWhy, OnOpen, Settlement, Tokens};
use outlast_kernel::ids::{Attempt, OpId};
use outlast_kernel::input::{Input, Report, Stopped};
use outlast_kernel::operation::{ActivityOp, Operation, OperationKind, Outcome, Phase};
use outlast_kernel::{Json, State};
use serde_json::json;

use crate::common::{Run, bytes};
use crate::generator::Dice;

/// What is known of an operation with an undo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Nobody can tell.
    Open,
    /// It gave its result.
    Done,
    /// It failed with an answer, or was never handed out.
    Not,
}

/// A run with what was seen of it.
pub(crate) struct Driven {
    pub(crate) run: Run,
    opened: BTreeSet<OpId>,
    closed: BTreeSet<OpId>,
    /// Operations with an undo, and what became of them.
    fates: BTreeMap<OpId, Fate>,
    /// What was undone, in order.
    undone: Vec<OpId>,
    /// Undoing operations that are open, with what they undo.
    undoing: BTreeMap<OpId, OpId>,
    /// Whether an undo came to another end than a good one.
    undo_trouble: bool,
    /// Whether it was cancelled: what is done while cleaning up comes after the undoing.
    cancelled: bool,
    /// A snapshot on the way.
    half_way: Option<String>,
}

impl Driven {
    pub(crate) fn start(machine: Machine) -> Driven {
        let run = Run::start(machine, json!({"x": 1}));
        let mut driven = Driven {
            run,
            opened: BTreeSet::new(),
            closed: BTreeSet::new(),
            fates: BTreeMap::new(),
            undone: Vec::new(),
            undoing: BTreeMap::new(),
            undo_trouble: false,
            cancelled: false,
            half_way: None,
        };
        driven.look();
        driven
    }

    /// Appends an event and looks at what came of it.
    fn append(&mut self, kind: EventKind) {
        let before: BTreeMap<OpId, ActivityOp> =
            self.run.activities().into_iter().map(|(id, work)| (id, work.clone())).collect();
        self.note(&kind, &before);
        self.run.append(kind);
        self.look();
    }

    /// Gives an input; one that is refused changes nothing.
    pub(crate) fn give(&mut self, input: &Input) -> bool {
        let Ok(kinds) = self.run.state.decide(input, self.run.now, self.run.random) else { return false };
        kinds.into_iter().for_each(|kind| self.append(kind));
        true
    }

    /// Goes on with another machine.
    pub(crate) fn migrate(&mut self, machine: &Arc<Machine>, map: Vec<(OpId, OnOpen)>) {
        self.run.migrate(machine, map);
        // A snapshot of the old version is of no use to the new one.
        self.half_way = None;
        self.look();
    }

    /// Lets time pass; what is due happens in its order.
    pub(crate) fn advance(&mut self, ms: u64) {
        self.run.now = self.run.now.plus(ms);
        while let Some(kind) = self.run.state.timer_due(self.run.now.plus(1)) {
            self.append(kind);
        }
    }

    fn note(&mut self, kind: &EventKind, before: &BTreeMap<OpId, ActivityOp>) {
        match kind {
            EventKind::Cancelled { .. } => self.cancelled = true,
            EventKind::Done { op, .. } => match before.get(op).and_then(|work| work.undoes) {
                Some(undone) => {
                    self.undone.push(undone);
                    self.undoing.remove(op);
                }
                None => {
                    self.fates.entry(*op).and_modify(|fate| *fate = Fate::Done);
                }
            },
            // Work that was lost or ran out of time may have happened all the same.
            EventKind::Failed { op, attempt: Attempt(1), error, retry_at: None, .. }
                if error.kind != "timeout" =>
            {
                self.fates.entry(*op).and_modify(|fate| *fate = Fate::Not);
            }
            EventKind::Settled { op, verdict, .. } => {
                let undoes = before.get(op).and_then(|work| work.undoes);
                match (verdict, undoes) {
                    (Settlement::Happened(_), Some(undone)) => {
                        self.undone.push(undone);
                        self.undoing.remove(op);
                    }
                    (Settlement::Happened(_), None) => {
                        self.fates.entry(*op).and_modify(|fate| *fate = Fate::Done);
                    }
                    (Settlement::NotHappened | Settlement::Fail, _) => {}
                }
            }
            _ => {}
        }
    }

    /// What must be true after every event.
    fn look(&mut self) {
        let run = &self.run;
        assert_eq!(run.state.audit(), Ok(()), "the parts of the state disagree");
        assert_eq!(run.state.blocked(), None, "a machine that passed the checker is blocked");
        for id in &run.effects.opened {
            assert!(self.opened.insert(*id), "{id} was opened twice");
        }
        for id in &run.effects.closed {
            assert!(self.opened.contains(id), "{id} was closed and never open");
            assert!(self.closed.insert(*id), "{id} was closed twice");
            self.undo_trouble |= self.undoing.contains_key(id);
        }
        let open: Vec<_> = self.opened.difference(&self.closed).copied().collect();
        let commands: Vec<_> = run.state.operations().map(|op| op.id).collect();
        assert_eq!(open, commands, "what is open is not what there is to do");
        if let [.., before, last] = run.history.as_slice() {
            assert!(before.time <= last.time, "time went back");
        }
        for op in run.state.operations() {
            let OperationKind::Activity(work) = &op.kind else { continue };
            if let Some(undone) = work.undoes {
                self.undoing.insert(op.id, undone);
            } else if !self.cancelled && has_undo(run.state.machine(), &work.activity) {
                self.fates.entry(op.id).or_insert(Fate::Open);
            }
        }
        few_enough_are_open(&run.state);
        run.effects.emits.iter().for_each(|emit| results_are_of_their_items(&emit.value));
    }

    /// Everything in memory is gone; what was written is read again.
    pub(crate) fn crash(&mut self) {
        let written = serde_json::to_string(&self.run.history).expect("events are data");
        self.run.history = serde_json::from_str::<Vec<Event>>(&written).expect("events read back");
        let again = self.run.refold();
        assert_eq!(bytes(&again), bytes(&self.run.state), "a second fold gives another state");
        assert!(again.operations().eq(self.run.state.operations()), "a second fold gives other operations");
        self.run.state = again;
        if self.half_way.is_none() {
            self.half_way = Some(bytes(&self.run.state));
        }
    }

    /// A snapshot on the way and the events after it give the same state.
    pub(crate) fn snapshot_and_the_rest_give_the_fold(&self) {
        let Some(text) = &self.half_way else { return };
        let snapshot = serde_json::from_str(text).expect("a snapshot reads back");
        let machine = self.run.state.machine().clone();
        let mut state = State::restore(machine, snapshot).expect("it is of this machine");
        let from = state.last();
        for event in self.run.history.iter().filter(|event| event.n > from) {
            state.apply(event).expect("it folds");
        }
        assert_eq!(bytes(&state), bytes(&self.run.state), "a snapshot and the rest give another state");
    }

    /// What is undone is undone once and may have happened; after a failure or a cancel all that happened is undone, unless an undo
    /// itself came to a bad end.
    pub(crate) fn what_happened_in_a_saga_is_undone(&self) {
        let machine = self.run.state.machine();
        let mut undone = self.undone.clone();
        undone.sort_unstable();
        assert!(undone.windows(2).all(|pair| pair[0] != pair[1]), "undone twice: {undone:?}");
        for op in &undone {
            let not = self.fates.get(op) == Some(&Fate::Not);
            assert!(!not || is_always_undone(machine), "{op} did not happen and was undone");
        }
        let left = matches!(self.run.state.outcome(), Some(Outcome::Failed(_) | Outcome::Cancelled));
        if machine.root().saga && left && !self.undo_trouble {
            for (op, fate) in &self.fates {
                assert!(*fate != Fate::Done || undone.contains(op), "{op} happened and was not undone");
            }
        }
    }

    /// Lets something happen.
    pub(crate) fn step(&mut self, dice: &mut Dice) {
        self.run.random = dice.next();
        match dice.below(100) {
            0..6 => self.crash(),
            6..18 => self.advance(dice.pick(&[1, 1_000, 5_000, 61_000, 1_300_000, 8_000_000])),
            18..20 => self.strange_events(),
            _ => {
                let input = input(&self.run, dice);
                self.give(&input);
            }
        }
    }

    /// Events that cannot follow are refused and change nothing.
    fn strange_events(&mut self) {
        let run = &mut self.run;
        let before = bytes(&run.state);
        let (n, time, digest) = (run.state.last().next(), run.now, run.state.digest());
        let kind = EventKind::Closed;
        for event in [
            Event { n: n.next(), time, digest, kind: kind.clone() },
            Event { n, time, digest: digest ^ 1, kind },
        ] {
            assert!(run.state.apply(&event).is_err(), "{event:?} follows nothing");
            assert_eq!(bytes(&run.state), before, "a refused event changed something");
        }
    }
}

fn has_undo(machine: &Machine, name: &str) -> bool {
    machine.activities.iter().any(|activity| activity.name == name && activity.undo.is_some())
}

/// Says whether an operation is undone even if it failed with an answer.
fn is_always_undone(machine: &Machine) -> bool {
    machine.activities.iter().any(|activity| activity.undo.is_some_and(|(_, always)| always))
}

/// A fan-out has no more members open than it says.
fn few_enough_are_open(state: &State) {
    let machine = state.machine();
    for def in &machine.root().states {
        let Effect::Each(each) = &def.effect else { continue };
        let Each { at_most: Expr::Lit(Literal::Int(most)), body: EachBody::Do(activity, ..), .. } = &**each
        else {
            continue;
        };
        let name = &machine.activities[usize::try_from(activity.0).expect("an index")].name;
        let is_member = |op: &&Operation| match &op.kind {
            OperationKind::Activity(work) => {
                op.path == def.name && work.activity == *name && work.undoes.is_none() && !work.settling
            }
            _ => false,
        };
        let open = state.operations().filter(is_member).count();
        assert!(open as i64 <= *most, "{open} members are open in {}, at most {most} may be", def.name);
    }
}

/// `group 1,2;r1,r2`: the results of a group stand where their items stand.
fn results_are_of_their_items(shown: &Json) {
    let Some((items, results)) = shown.as_str().and_then(|text| text.strip_prefix("group ")?.split_once(';'))
    else {
        return;
    };
    let (items, results): (Vec<_>, Vec<_>) = (items.split(',').collect(), results.split(',').collect());
    assert_eq!(items.len(), results.len(), "{shown}: not one result for each item");
    for (item, result) in items.into_iter().zip(results) {
        assert!(result == "-" || result == format!("r{item}"), "{shown}: {result} is not of {item}");
    }
}

/// The result that an operation gives: it names the argument.
pub(crate) fn result(work: &ActivityOp, dice: &mut Dice) -> Json {
    let text = json!(format!("r{}", work.input["x"]));
    match work.activity.as_str() {
        "sort_out" if dice.percent(50) => json!({"type": "Left", "n": dice.below(4)}),
        "sort_out" => json!({"type": "Right"}),
        "seen" => match dice.below(3) {
            0 => json!({"type": "NotHappened"}),
            1 => json!({"type": "CannotTell"}),
            _ => json!({"type": "Happened", "result": text}),
        },
        "aside" | "take_back" => Json::Null,
        _ => text,
    }
}

pub(crate) fn failure(dice: &mut Dice) -> Failure {
    Failure {
        kind: dice.pick(&["failed", "Refused", "timeout", "Strange"]).to_owned(),
        text: "no".to_owned(),
        retryable: dice.percent(70),
        ..Failure::default()
    }
}

/// Something from outside; mostly it makes sense.
fn input(run: &Run, dice: &mut Dice) -> Input {
    let by = dice.pick(&["ann", "bob", "cid"]).to_owned();
    match dice.below(100) {
        0..62 => about_work(run, dice, by),
        62..76 => answer(run, dice, by),
        76..92 => message(run, dice),
        92..94 => {
            let id = run.state.unread().first().map_or_else(|| "m1".to_owned(), |(id, ..)| id.clone());
            Input::Withdraw { id }
        }
        94..96 => Input::Close,
        96..98 => Input::Cancel { by },
        98 if dice.percent(10) => Input::Terminate { by },
        _ => Input::Grant { pattern: "shell(ls)".to_owned() },
    }
}

fn about_work(run: &Run, dice: &mut Dice, by: String) -> Input {
    let open = run.activities();
    let Some((op, work)) = open.get(dice.below(open.len())).map(|(id, work)| (*id, *work)) else {
        return Input::Close;
    };
    let attempt = if dice.percent(4) { Attempt(work.attempt.0.wrapping_sub(1)) } else { work.attempt };
    if matches!(work.phase, Phase::Held(_)) && dice.percent(70) {
        let verdict = match dice.below(4) {
            0 => return Input::Release { op, by },
            1 => Settlement::NotHappened,
            2 => Settlement::Fail,
            _ => Settlement::Happened(result(work, dice)),
        };
        return Input::Settle { op, verdict, by };
    }
    let cost = dice.percent(30).then(|| "0.07".to_owned());
    let report = match dice.below(100) {
        0..40 => Report::Done { value: result(work, dice), cost, tokens: Tokens::default() },
        40..55 => Report::Failed { error: failure(dice), cost, tokens: Tokens::default() },
        55..57 => Report::Done { value: json!([1]), cost, tokens: Tokens::default() },
        57..59 => Report::Handle(json!(dice.below(9))),
        59..62 => Report::Stopped(dice.pick(&[Stopped::Timeout, Stopped::Cancelled, Stopped::Leaving])),
        62..85 => return Input::Begin { op, attempt, worker: "w".to_owned() },
        85..93 => {
            let whys = [LostWhy::WorkerGone, LostWhy::Lease, LostWhy::Timeout, LostWhy::Restart];
            return Input::Lost { op, attempt, why: dice.pick(&whys) };
        }
        93..97 => return Input::Void { op, attempt },
        97 => return Input::Release { op, by },
        _ => return Input::Settle { op, verdict: Settlement::Happened(result(work, dice)), by },
    };
    Input::Reported { op, attempt, report }
}

fn answer(run: &Run, dice: &mut Dice, by: String) -> Input {
    let questions = run.questions();
    let chosen = questions.get(dice.below(questions.len()));
    let wanted = chosen.is_some_and(|(_, question)| question.wanted.is_some());
    let choice = match dice.below(6) {
        0 => Choice::Reject,
        _ if wanted => Choice::Answer,
        _ => Choice::Approve,
    };
    let value = chosen.filter(|_| wanted).map(|(_, question)| json!(format!("r{}", question.show)));
    let question = chosen.filter(|_| dice.percent(90)).map(|(id, _)| *id);
    Input::Answer { question, choice, value, note: "so".to_owned(), by, role: None, shown: None }
}

fn message(run: &Run, dice: &mut Dice) -> Input {
    let flows = &run.state.machine().flows;
    let flow = &flows[dice.below(flows.len())];
    let name = flow.messages.get(dice.below(flow.messages.len())).map_or("Other", |message| &message.name);
    let value = if name.starts_with("Poke") { json!({"n": dice.below(5)}) } else { json!({}) };
    let id = dice.percent(40).then(|| format!("m{}", dice.below(12)));
    Input::Message { id, name: name.to_owned(), value, from: "ann".to_owned() }
}
