//! A step of a run in the making: inputs become events and are applied to a copy of its state.
//!
//! Leaves keeping the outcome to the shard. Invariant: the run itself is unchanged until the draft is whole, so a refused input, a
//! diverged history or a panic of the kernel leaves nothing behind.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use outlast_dsl::machine::Machine;
use outlast_kernel::event::{Event, EventKind};
use outlast_kernel::ids::{Millis, OpId, RunId, Seq};
use outlast_kernel::input::{Input, Refusal};
use outlast_kernel::operation::{Effects, Outcome};
use outlast_kernel::{Diverged, Json, Ready, State};
use outlast_protocol::run::Frame;

use super::frames::Fold;
use crate::limits;

/// A step in the making.
#[derive(Debug)]
pub(crate) struct Draft {
    /// The state after it.
    pub(crate) fold: Fold,
    /// When its events are accepted.
    pub(crate) at: Millis,
    /// Its events.
    pub(crate) events: Vec<Event>,
    /// What watchers are shown of it.
    pub(crate) frames: Vec<Frame>,
    /// Spreads retry waits.
    random: u64,
}

/// Why an input changes nothing.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The kernel refuses it.
    Refused(Refusal),
    /// The kernel cannot go on with this run: a bug or a damaged history. The run is blocked.
    Broken(String),
}

impl Draft {
    /// Begins a step. Its time is the engine's, but never before the run's last event.
    pub(crate) fn new(fold: &Fold, now: Millis, random: u64) -> Draft {
        let at = now.max(fold.state.time());
        Draft { fold: fold.clone(), at, events: Vec::new(), frames: Vec::new(), random }
    }

    /// Begins a run.
    ///
    /// # Errors
    /// [`Failure::Broken`] if the kernel panics or takes it for no start.
    pub(crate) fn start(
        machine: impl Into<Ready>,
        run: RunId,
        at: Millis,
        kind: EventKind,
    ) -> Result<Draft, Failure> {
        let (machine, event) = (machine.into(), Event { n: Seq(1), time: at, digest: 0, kind });
        let started = catch_unwind(AssertUnwindSafe(|| State::start(machine, run.clone(), &event)));
        let (state, effects) = started
            .map_err(|panic| Failure::Broken(panic_text(&*panic)))?
            .map_err(|diverged| Failure::Broken(diverged.to_string()))?;
        let (fold, frames) = Fold::started(run, state, &event, &effects);
        let mut draft = Draft { fold, at, events: vec![event], frames, random: 0 };
        draft.refuse_by_rule()?;
        Ok(draft)
    }

    /// Begins a fork with the state of its parent's prefix.
    ///
    /// # Errors
    /// [`Failure::Broken`] if the kernel panics or takes it for no fork.
    pub(crate) fn fork(prefix: &State, run: &RunId, now: Millis, kind: EventKind) -> Result<Draft, Failure> {
        let fold = Fold::of(run.clone(), prefix.for_fork(run.clone()));
        let mut draft = Draft::new(&fold, now, 0);
        draft.append(kind)?;
        Ok(draft)
    }

    /// Takes a whole history that was folded elsewhere as one step.
    pub(crate) fn brought(fold: Fold, events: Vec<Event>) -> Draft {
        let at = fold.state.time();
        Draft { fold, at, events, frames: Vec::new(), random: 0 }
    }

    /// Appends the timers that are due before a moment, except those that must wait. Tells whether there were any.
    ///
    /// # Errors
    /// [`Failure::Broken`].
    pub(crate) fn timers(
        &mut self,
        before: Millis,
        must_wait: Option<&dyn Fn(OpId) -> bool>,
    ) -> Result<bool, Failure> {
        let mut any = false;
        for _ in 0..limits::TIMERS_PER_STEP {
            let due = match must_wait {
                None => self.fold.state.timer_due(before),
                Some(must_wait) => next_timer(&self.fold.state, before, must_wait),
            };
            let Some(kind) = due else { break };
            self.append(kind)?;
            any = true;
        }
        Ok(any)
    }

    /// Appends what an input causes. Returns the number of its last event; none if it causes nothing.
    ///
    /// # Errors
    /// [`Failure`]; the draft must be dropped then.
    pub(crate) fn input(&mut self, input: &Input) -> Result<Option<Seq>, Failure> {
        let (state, at, random) = (&self.fold.state, self.at, self.random);
        let decided = catch_unwind(AssertUnwindSafe(|| state.decide(input, at, random)));
        let kinds =
            decided.map_err(|panic| Failure::Broken(panic_text(&*panic)))?.map_err(Failure::Refused)?;
        // What was decided together is applied together: an answer by rule in between might close what the next event is about.
        let mut last = None;
        for kind in kinds {
            last = Some(self.append_one(kind, Fold::apply)?);
        }
        self.refuse_by_rule()?;
        Ok(last)
    }

    /// Appends the event by which the run goes on with another machine.
    ///
    /// # Errors
    /// [`Failure::Broken`].
    pub(crate) fn migrate(&mut self, kind: EventKind, machine: &Arc<Machine>) -> Result<Seq, Failure> {
        self.append_by(kind, |fold, event| fold.migrate(event, machine))
    }

    fn append(&mut self, kind: EventKind) -> Result<Seq, Failure> {
        self.append_by(kind, Fold::apply)
    }

    fn append_by(
        &mut self,
        kind: EventKind,
        apply: impl FnOnce(&mut Fold, &Event) -> Result<(Effects, Vec<Frame>), Diverged>,
    ) -> Result<Seq, Failure> {
        let n = self.append_one(kind, apply)?;
        self.refuse_by_rule()?;
        Ok(n)
    }

    /// Answers what the run's rules refuse to ask a person. A flow that asks again each time goes on with its next event.
    fn refuse_by_rule(&mut self) -> Result<(), Failure> {
        for _ in 0..limits::REFUSALS_PER_EVENT {
            let state = &self.fold.state;
            let refused = catch_unwind(AssertUnwindSafe(|| state.refused_by_rule()));
            let refused = refused.map_err(|panic| Failure::Broken(panic_text(&*panic)))?;
            let Some(answer) = refused else { break };
            self.append_one(answer, Fold::apply)?;
        }
        Ok(())
    }

    fn append_one(
        &mut self,
        kind: EventKind,
        apply: impl FnOnce(&mut Fold, &Event) -> Result<(Effects, Vec<Frame>), Diverged>,
    ) -> Result<Seq, Failure> {
        let state = &self.fold.state;
        let event = Event { n: state.last().next(), time: self.at, digest: state.digest(), kind };
        let fold = &mut self.fold;
        let applied = catch_unwind(AssertUnwindSafe(|| apply(fold, &event)));
        let (_, frames) = applied
            .map_err(|panic| Failure::Broken(panic_text(&*panic)))?
            .map_err(|diverged| Failure::Broken(diverged.to_string()))?;
        let n = event.n;
        self.events.push(event);
        self.frames.extend(frames);
        Ok(n)
    }
}

/// Finds the earliest due timer among those that need not wait, in the order that the kernel gives them.
fn next_timer(state: &State, before: Millis, must_wait: &dyn Fn(OpId) -> bool) -> Option<EventKind> {
    // A run that is blocked or has ended has no timers.
    state.next_due()?;
    let due = state.operations().filter_map(|operation| Some((operation.due?, operation.id)));
    let (due, op) = due.filter(|(due, op)| *due < before && !must_wait(*op)).min()?;
    Some(EventKind::TimerFired { op, due })
}

/// Returns what a panic said.
pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let said = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let said = said.or_else(|| panic.downcast_ref::<String>().cloned());
    format!("the kernel panicked: {}", said.unwrap_or_else(|| "it did not say why".into()))
}

/// Returns about how many bytes an event has in the store.
pub(crate) fn event_weight(event: &Event) -> usize {
    const FIXED: usize = 100;
    let big = match &event.kind {
        EventKind::Started(started) => json_weight(&started.input),
        EventKind::Done { value, .. } | EventKind::Message { value, .. } => json_weight(value),
        EventKind::Handle { handle, .. } => json_weight(handle),
        EventKind::ChildEnded { outcome: Outcome::Done(value) | Outcome::Failed(value), .. } => {
            json_weight(value)
        }
        EventKind::Answered { value, note, .. } => value.as_ref().map_or(0, json_weight) + note.len(),
        EventKind::Failed { error, .. } => {
            error.text.len() + error.fields.values().map(json_weight).sum::<usize>()
        }
        EventKind::Forked { .. }
        | EventKind::Configured { .. }
        | EventKind::Begun { .. }
        | EventKind::Lost { .. }
        | EventKind::Void { .. }
        | EventKind::Settled { .. }
        | EventKind::Released { .. }
        | EventKind::TimerFired { .. }
        | EventKind::Withdrawn { .. }
        | EventKind::Closed
        | EventKind::Spawned { .. }
        | EventKind::ChildEnded { .. }
        | EventKind::Delivered { .. }
        | EventKind::Migrated(_)
        | EventKind::Cancelled { .. }
        | EventKind::Terminated { .. } => 0,
    };
    FIXED + big
}

fn json_weight(json: &Json) -> usize {
    match json {
        Json::Null | Json::Bool(_) => 1,
        Json::Number(_) => 9,
        Json::String(text) => text.len() + 3,
        Json::Array(items) => 3 + items.iter().map(json_weight).sum::<usize>(),
        Json::Object(fields) => 3 + fields.iter().map(|(k, v)| k.len() + 3 + json_weight(v)).sum::<usize>(),
    }
}
