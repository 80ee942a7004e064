//! Inputs of people and drivers, timers, and reads.

use std::sync::Arc;

use outlast_kernel::State;
use outlast_kernel::ids::{Millis, OpId, RunId, Seq};
use outlast_kernel::input::{Input, Refusal};
use outlast_kernel::operation::Outcome;
use outlast_protocol::{ApiError, Code};
use outlast_store::breakage::{Breakage, breaks};
use outlast_store::{Put, RunWrite};

use super::Shard;
use crate::engine::census::Census;
use crate::engine::counters::Tally;
use crate::engine::dispatch::WorkId;
use crate::engine::draft::{Draft, Failure, event_weight};
use crate::engine::errors;
use crate::engine::frames;
use crate::engine::live::Live;
use crate::engine::message::{Consequence, Look, Partial, Reply, Subscribe, Subscription, Unread};
use crate::engine::view;
use crate::engine::waiting::Motion;

impl Shard {
    /// Takes inputs together.
    pub(super) fn inputs(&mut self, run: &RunId, inputs: &[Input], reply: Reply<Seq>) {
        let result = self.try_inputs(run, inputs);
        match result {
            Ok((Some(draft), n)) => {
                self.keep(run, draft, Vec::new(), vec![Consequence::Accepted(reply, Ok(n))]);
            }
            Ok((None, n)) => self.after(run, Consequence::Accepted(reply, Ok(n))),
            Err(error) => self.after(run, Consequence::Accepted(reply, Err(error))),
        }
    }

    fn try_inputs(&mut self, run: &RunId, inputs: &[Input]) -> Result<(Option<Draft>, Seq), ApiError> {
        let now = self.ctx.clock.now();
        let stops = |input: &Input| matches!(input, Input::Cancel { .. } | Input::Terminate { .. });
        let all_stop = inputs.iter().all(stops);
        if !all_stop {
            self.refuse_if_full(now)?;
            self.ready_for_input(run, now)?;
        }
        let random = self.random.number();
        let live = self.hydrate(run)?;
        let kept = live.fold.state.last();
        let mut draft = Draft::new(&live.fold, now, random);
        if all_stop && !breaks(Breakage::TakeLateInputFirst) {
            // In one step with the stop, which alone may take the last room of a full disk.
            let before = now.max(draft.fold.state.time());
            self.append_due(&mut draft, run, before, now).map_err(|failure| self.failure(run, failure))?;
        }
        let mut last = draft.fold.state.last();
        for input in inputs {
            match draft.input(input) {
                Ok(n) => last = n.unwrap_or(last),
                // The sender did not hear of it: it was accepted, and is again.
                Err(Failure::Refused(Refusal::MessageRepeated { n, .. })) if inputs.len() == 1 => {
                    return Ok((None, n));
                }
                // It is what was asked for, however often.
                Err(Failure::Refused(Refusal::AlreadyEnding | Refusal::RunEnded { .. }))
                    if matches!(inputs, [Input::Cancel { .. }]) && is_being_cancelled(&draft.fold.state) =>
                {
                    return Ok((None, kept));
                }
                Err(failure) => return Err(self.failure(run, failure)),
            }
        }
        Ok(((!draft.events.is_empty()).then_some(draft), last))
    }

    pub(super) fn refuse_if_full(&self, now: Millis) -> Result<(), ApiError> {
        match self.full_until {
            Some(until) if until > now => {
                Err(ApiError::new(Code::DiskFull, "the disk is full").hint("make room and try again"))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Brings a run into memory and appends the timers that are due before an input: what came in time goes before its deadline,
    /// what came late after it.
    pub(super) fn ready_for_input(&mut self, run: &RunId, now: Millis) -> Result<(), ApiError> {
        let at = now.max(self.hydrate(run)?.state().time());
        if breaks(Breakage::TakeLateInputFirst) {
            return Ok(());
        }
        self.fire(run, at, now)?;
        Ok(())
    }

    /// Appends the timers that are due before a moment. Tells whether there were any.
    fn fire(&mut self, run: &RunId, before: Millis, now: Millis) -> Result<bool, ApiError> {
        let before = if breaks(Breakage::FireEarly) { before.plus(60_000) } else { before };
        let live = self.hydrate(run)?;
        if live.state().next_due().is_none_or(|due| due >= before) {
            return Ok(false);
        }
        // Timers spread nothing.
        let mut draft = Draft::new(&live.fold, now, 0);
        match self.append_due(&mut draft, run, before, now) {
            Ok(true) => {
                self.keep(run, draft, Vec::new(), Vec::new());
                Ok(true)
            }
            Ok(false) => Ok(false),
            Err(failure) => Err(self.failure(run, failure)),
        }
    }

    /// Appends to a draft the timers that are due before a moment. Tells whether there were any.
    fn append_due(
        &self,
        draft: &mut Draft,
        run: &RunId,
        before: Millis,
        now: Millis,
    ) -> Result<bool, Failure> {
        // What a worker of the last epoch may have in hand is not timed out before that worker had its chance to come back.
        let dispatch = &self.ctx.dispatch;
        let held = |op: OpId| dispatch.may_be_held(&WorkId { run: run.clone(), op }, now);
        let waits = now < dispatch.adoption_until() && !breaks(Breakage::ExpireBeforeAdoption);
        draft.timers(before, waits.then_some(&held as &dyn Fn(OpId) -> bool))
    }

    /// Looks at a run that had something due: timers, deadlines, retries.
    pub(super) fn due(&mut self, run: &RunId, now: Millis) {
        let revive = self.revive.remove(run);
        if !revive && !self.live.contains_key(run) {
            // What stands in the heap may be old; do not read a whole run for nothing.
            let due = self.ctx.store.head(run).ok().flatten().and_then(|(_, index)| index.due);
            match due {
                Some(due) if due <= now => {}
                Some(due) => return self.timers.note(due, run),
                None => return,
            }
        }
        let before = now.plus(1);
        if let Err(error) = self.fire(run, before, now) {
            tracing::warn!(run = %run, %error, "what is due in a run cannot be done");
            return;
        }
        let Some(live) = self.live.get_mut(run) else { return };
        // A retry that may start now is no event; only the dispatch is told. What is closed was told with its event.
        let changes = live.changes(now);
        let next = next_look(live, now, self.ctx.dispatch.adoption_until());
        for consequence in changes.consequences() {
            self.after(run, consequence);
        }
        if let Some(next) = next {
            self.timers.note(next, run);
        }
    }

    /// Keeps a draft: the run goes on from it at once, what follows waits until it is durable.
    pub(super) fn keep(
        &mut self,
        run: &RunId,
        draft: Draft,
        puts: Vec<Put>,
        mut consequences: Vec<Consequence>,
    ) {
        if let Some(outcome) = draft.fold.state.outcome().filter(|_| self.awaited.contains_key(run)) {
            let outcome = outcome.clone();
            consequences.extend(self.end_told(run, &outcome));
        }
        let Some(live) = self.live.get_mut(run) else { unreachable!("a draft is made of a run in memory") };
        let Draft { fold, at, events, frames, .. } = draft;
        let weight: usize = events.iter().map(event_weight).sum();
        let (summary, motion) = view::summary(&live.facts, &fold.state, at, &self.ctx.flows);
        let tally = Tally::of(live, &fold.state, &events, &summary);
        live.counted = Census::of(&summary);
        live.fold = fold;
        live.pending += 1;
        let index = live.index_of();
        let index_before = std::mem::replace(&mut live.index, index);
        live.since_snapshot.0 += events.len();
        live.since_snapshot.1 += weight;
        let snapshot = live.wants_snapshot().then(|| {
            live.since_snapshot = (0, 0);
            serde_json::to_vec(&live.state().snapshot())
        });
        // A snapshot that cannot be written is missed by nobody: the history says the same.
        let snapshot = snapshot.and_then(Result::ok);
        if !frames.is_empty() {
            consequences.push(Consequence::Frames(frames));
        }
        consequences.extend(live.changes(at).consequences());
        consequences.push(Consequence::Changed(motion));
        if let Some(due) = live.index.due {
            self.timers.note(due, run);
        }
        let write = RunWrite {
            run: run.clone(),
            before: outlast_store::Head::default(), // The committer knows it.
            events,
            index_before,
            index: live.index,
            summary: Arc::new(summary),
            snapshot,
            origin: live.origin.take(),
        };
        let head = Arc::clone(&live.head);
        self.live.weigh(run);
        let consequences = self.withhold(run, consequences);
        self.outbox.queue(head, write, puts, (weight, tally), consequences);
    }

    /// Does something as soon as all that the run has in memory is durable.
    pub(super) fn after(&mut self, run: &RunId, consequence: Consequence) {
        if breaks(Breakage::AnswerBeforeEarlierSteps) {
            return self.perform(run, consequence);
        }
        if let Some(now) = self.outbox.wait(run, consequence) {
            self.perform(run, now);
        }
    }

    /// Shows a run.
    pub(super) fn look(&mut self, run: &RunId, reply: Reply<Look>) {
        match self.looked_at(run) {
            Ok(look) => self.after(run, Consequence::Look(reply, Box::new(look))),
            Err(error) => {
                // Whoever asked may be gone.
                let _ = reply.send(Err(error));
            }
        }
    }

    pub(super) fn looked_at(&mut self, run: &RunId) -> Result<Look, ApiError> {
        let changed = self.watchers.changed(run);
        let ctx = Arc::clone(&self.ctx);
        let live = match self.hydrate(run) {
            Ok(live) => live,
            // A run that cannot be read or gone on with is shown as it was, and why.
            Err(error) if error.code == Code::Internal => {
                let summary = ctx.store.summary(run).map_err(|e| errors::store(&e))?;
                let summary = summary.ok_or_else(|| errors::no_run(run))?;
                let view = view::broken(&summary, &error.message);
                return Ok(Look { view, motion: Motion::Still, changed });
            }
            Err(error) => return Err(error),
        };
        let now = ctx.clock.now();
        let (view, motion) = view::view(&live.facts, live.state(), now, &ctx.flows, Some(&ctx.dispatch));
        Ok(Look { view, motion, changed })
    }

    /// Tells whether a message was taken.
    pub(super) fn unread(&mut self, run: &RunId, id: &str, reply: Reply<Unread>) {
        let changed = self.watchers.changed(run);
        let answer = self.hydrate(run).map(|live| {
            let unread = live.state().unread().iter().any(|(known, ..)| known == id);
            match (unread, live.state().outcome()) {
                (true, Some(_)) => Unread::AtEnd,
                (true, None) => Unread::Still(changed),
                (false, _) => Unread::Taken,
            }
        });
        self.after(run, Consequence::Unread(reply, answer));
    }

    /// Adds a watcher, from the newest durable event on.
    pub(super) fn subscribe(&mut self, run: &RunId, reply: Reply<Subscription>) {
        match self.hydrate(run) {
            Ok(live) => {
                let subscribe = Subscribe {
                    after: live.state().last(),
                    current: frames::current(live.state()),
                    ended: live.state().outcome().is_some(),
                };
                self.after(run, Consequence::Subscribe(reply, Box::new(subscribe)));
            }
            Err(error) => {
                // Whoever asked may be gone.
                let _ = reply.send(Err(error));
            }
        }
    }

    /// Takes partial output of a task in hand.
    pub(super) fn partial(&mut self, partial: &Partial) {
        let run = &partial.work.run;
        let open = self.hydrate(run).is_ok_and(|live| live.state().operation(partial.work.op).is_some());
        if open {
            self.watchers.partial(run, partial);
        }
    }
}

/// Returns when a run must be looked at again, if it has anything due.
fn next_look(live: &Live, now: Millis, adoption_until: Millis) -> Option<Millis> {
    match live.state().next_due() {
        // Something due had to wait, or there was too much for one step.
        Some(due) if due <= now => Some(adoption_until.max(now.plus(1))),
        Some(_) | None => live.due_after(now),
    }
}

/// Tells whether a run was cancelled, or will be when it has cleaned up.
fn is_being_cancelled(state: &State) -> bool {
    state.is_cancelling() || matches!(state.outcome(), Some(Outcome::Cancelled))
}
