//! What happens by itself: attempts are handed out and reported, timers fire, the clock goes on.
//!
//! Order: everything that can be handed out; then one report; then one timer; then the next moment. An input at the moment of a
//! deadline comes before it, as in the engine. Invariant: each round makes an event, hands out an attempt or moves the clock.

use outlast_kernel::event::{EventKind, LostWhy, Tokens};
use outlast_kernel::ids::{Millis, RunId};
use outlast_kernel::input::{Input, Report, Stopped};
use outlast_kernel::operation::Class;

use super::{Cause, Moment, Play, Until};
use crate::failure::Problem;
use crate::hands::{Comes, Hand};
use crate::world::{OpKey, activity_of, doubt_of};

/// Retry waits are spread by chance; in tests they are as short as they can be.
pub(super) const RANDOM: u64 = 0;

impl Play<'_> {
    /// Appends an event.
    pub(super) fn append(&mut self, run: usize, kind: EventKind, cause: Cause) -> Result<(), Problem> {
        if let Some(moments) = &mut self.moments {
            let moment =
                Moment { world: self.world.clone(), step: self.step, cause, run, kind: kind.clone() };
            moments.push(moment);
        }
        self.world.append(run, kind)
    }

    /// Appends what an input causes that nothing can refuse here.
    pub(super) fn cause(&mut self, run: usize, input: &Input, cause: &Cause) -> Result<(), Problem> {
        let decided = self.world.runs[run].state.decide(input, self.world.now, RANDOM);
        let kinds =
            decided.map_err(|refusal| Problem::promise(format!("{input:?} is refused: {refusal}")))?;
        kinds.into_iter().try_for_each(|kind| self.append(run, kind, cause.clone()))
    }

    /// Lets happen what can happen, up to a moment if there is one. Says whether the end that was wanted was reached.
    pub(crate) fn settle(&mut self, target: Option<Millis>, until: Until<'_>) -> Result<bool, Problem> {
        if let Some((flow, input)) = self.world.start.take() {
            let Ok(id) = RunId::new("test") else { unreachable!("the name of the run is a run id") };
            self.world.begin(id, &flow, input, None)?;
        }
        loop {
            if let Some(key) = self.world.next_ready() {
                self.hand_out(key)?;
                continue;
            }
            let reached = match until {
                Until::Quiet => false,
                // What the world itself has to say of a crash comes first.
                Until::InHand | Until::At(_) if self.world.hands.iter().any(|hand| hand.is_truth) => false,
                Until::InHand => self.world.hands.iter().any(Hand::is_out),
                Until::At(path) => self.world.is_at(path),
            };
            if reached {
                return Ok(true);
            }
            if self.relate()? || self.report()? || self.fire()? {
                continue;
            }
            match self.world.next_moment(target) {
                Some(moment) => self.world.now = moment,
                None => break,
            }
        }
        self.world.now = self.world.now.max(target.unwrap_or(self.world.now));
        Ok(until == Until::Quiet)
    }

    fn hand_out(&mut self, key: OpKey) -> Result<(), Problem> {
        let (run, op) = key;
        let (hand, class, stubs) = self.world.prepare(key)?;
        if self.world.finished.contains(&key) {
            let message = format!("`{}` had finished as operation {op} and is run again", hand.activity);
            return Err(Problem::promise(message));
        }
        if class == Class::Once && self.world.truths.contains_key(&key) {
            let message =
                format!("`{}` may have happened and is begun again, before anyone knows", hand.activity);
            return Err(Problem::promise(message));
        }
        if class == Class::Once && hand.is_out() {
            let begin = Input::Begin { op, attempt: hand.attempt, worker: "test".to_owned() };
            self.cause(run, &begin, &Cause::Drive)?;
        }
        self.world.stubs = stubs;
        if hand.is_out() && !hand.is_truth {
            *self.world.tally.attempts.entry(hand.activity.clone()).or_default() += 1;
        }
        if let Some(of) = doubt_of(&self.world.runs[run].state, op) {
            self.world.truths.remove(&(run, of));
        }
        self.world.hands.push(hand);
        Ok(())
    }

    /// Reports the first attempt whose moment has come.
    fn report(&mut self) -> Result<bool, Problem> {
        let due = |hand: &&Hand| hand.due.is_some_and(|due| due <= self.world.now);
        let first = self.world.hands.iter().filter(due).min_by_key(|hand| (!hand.is_truth, hand.due));
        let Some(hand) = first.cloned() else {
            return Ok(false);
        };
        let (op, attempt) = (hand.op, hand.attempt);
        let report = match hand.comes {
            Comes::Done(value) => Report::Done { value, cost: hand.cost, tokens: Tokens::default() },
            Comes::Failed(error) => Report::Failed { error, cost: hand.cost, tokens: Tokens::default() },
            Comes::Late => Report::Stopped(Stopped::Timeout),
            Comes::Lost | Comes::Silence | Comes::Queued | Comes::Unanswered(_) => {
                Report::Stopped(Stopped::Leaving)
            }
        };
        self.cause(hand.run, &Input::Reported { op, attempt, report }, &Cause::Drive)?;
        self.world.hands.retain(|other| (other.run, other.op) != (hand.run, op));
        Ok(true)
    }

    /// Fires the earliest timer or deadline that is due.
    fn fire(&mut self) -> Result<bool, Problem> {
        let after = Millis(self.world.now.0.saturating_add(1));
        let due = self.world.runs.iter().enumerate().filter_map(|(at, run)| {
            let due = run.state.next_due().filter(|due| *due <= self.world.now)?;
            Some((due, at, run.state.timer_due(after)?))
        });
        let Some((_, run, kind)) = due.min_by_key(|(due, at, _)| (*due, *at)) else { return Ok(false) };
        self.append(run, kind, Cause::Drive)?;
        Ok(true)
    }

    /// Drops the states and folds them anew; attempts in hand are lost, and begun ones are in doubt.
    pub(crate) fn crash(&mut self) -> Result<(), Problem> {
        self.world.same_folded()?;
        let begun = self.world.begun();
        let hands = self.world.hands.clone();
        self.world.hands.retain(|hand| begun.contains(&(hand.run, hand.op)));
        for run in &mut self.world.runs {
            run.state = run.folded.clone();
        }
        for (at, (run, op)) in begun.into_iter().enumerate() {
            let call = self.world.runs[run].state.operation(op).and_then(activity_of);
            let Some(attempt) = call.map(|call| call.attempt) else { continue };
            self.cause(run, &Input::Lost { op, attempt, why: LostWhy::Restart }, &Cause::Loss(at))?;
            self.world.hands.retain(|hand| (hand.run, hand.op) != (run, op));
        }
        for hand in hands {
            // What is known to have happened has used its reply up, and what is known not to have happened has not.
            let is_used = match self.world.truths.get(&(hand.run, hand.op)) {
                Some(truth) => truth.is_some(),
                None => hand.comes == Comes::Lost,
            };
            if let Some(taken) = hand.taken.filter(|_| !is_used) {
                self.world.stubs.give_back(taken);
            }
        }
        Ok(())
    }
}
