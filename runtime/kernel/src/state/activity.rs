//! What happens to open activities: results, failures, losses, deadlines.
//!
//! Leaves doubts about `once` work to `doubt`. Invariant: every event names an open operation and the activity that the machine
//! opened; anything else is a diverged history.

use std::sync::Arc;

use outlast_dsl::machine::{Activity, Outcome as On};

use super::budget::Cost;
use super::parts::{ActivityWork, Completion, Happened, Op, Work};
use super::turn::{Stop, Turn};
use crate::Json;
use crate::event::{Failure, LostWhy};
use crate::fault::Fault;
use crate::ids::{Attempt, Millis, OpId};
use crate::json::{Reader, Unknown};
use crate::limits::LOSSES_MAX;
use crate::operation::{Class, Phase};
use crate::value::Value;

/// How an attempt failed, as the event has it.
#[derive(Clone, Copy)]
pub(super) struct Failed<'a> {
    pub(super) attempt: Attempt,
    pub(super) error: &'a Failure,
    pub(super) retry_at: Option<Millis>,
    pub(super) cost: Option<&'a str>,
}

impl<'m> Turn<'m> {
    /// Returns the open activity that an event names.
    pub(super) fn named(&self, id: OpId, name: Option<&str>) -> Result<(Arc<Op>, &'m Activity), Stop> {
        let found = name.unwrap_or("an activity").to_owned();
        let Some(op) = self.s.ops.get(&id) else {
            return Err(Stop::Diverged(
                "an open operation".to_owned(),
                format!("{found} {id}, which is not open"),
            ));
        };
        let Work::Activity(work) = &op.work else {
            return Err(Stop::Diverged(
                format!("an activity as operation {id}"),
                "another operation".to_owned(),
            ));
        };
        let activity = &self.program.machine.activities[work.activity.at()];
        if name.is_some_and(|name| name != activity.name) {
            return Err(Stop::Diverged(format!("activity {} as operation {id}", activity.name), found));
        }
        Ok((Arc::clone(op), activity))
    }

    /// An activity gave its result.
    pub(super) fn done(
        &mut self,
        id: OpId,
        name: &str,
        value: &Json,
        (attempt, cost): (Attempt, Option<&str>),
    ) -> Result<(), Stop> {
        let (_, activity) = self.named(id, Some(name))?;
        let reader =
            Reader { machine: &self.program.machine, shapes: &self.program.shapes, unknown: Unknown::Drop };
        let value = reader.read(&activity.result, value).map_err(|mismatch| {
            Stop::Diverged(format!("a result of {}", activity.name), mismatch.to_string())
        })?;
        self.book(id, Cost::Reported(attempt, cost))?;
        Ok(self.complete_op(id, Completion::new(On::Ok, value))?)
    }

    /// An attempt failed with an answer.
    pub(super) fn failed(&mut self, id: OpId, name: &str, end: &Failed<'_>) -> Result<(), Stop> {
        let Failed { attempt, error, retry_at, cost } = *end;
        let (op, activity) = self.named(id, Some(name))?;
        let used = op.work.activity().map_or(0, |work| attempts_used(work, attempt));
        if let Work::Activity(work) = &op.work {
            // A late answer ends a doubt, and the operation's deadline counts again if it waited.
            if let Phase::Verifying(verifier) = work.phase {
                self.close(verifier);
            }
            if op.due.is_none() && !work.expired {
                self.set_due(id, Some(self.s.time.plus(activity.in_all_ms.unwrap_or(activity.within_ms))))?;
            }
        }
        self.book(id, Cost::Reported(attempt, cost))?;
        let has_undo = self.s.undos.contains_key(&id);
        self.edit_activity(id, |work| {
            work.last = Some(error.clone());
            work.begun = false;
            work.doubtful |= has_undo && error.kind == "timeout";
        })?;
        let settling = op.work.activity().is_some_and(|work| work.settling);
        if let Some(retry_at) = retry_at.filter(|_| !settling) {
            return Ok(self.next_attempt(id, attempt, Some(retry_at))?);
        }
        let policy = activity.retry.map(|ix| &self.program.machine.retries[ix.at()]);
        let rule = super::retry::rule(&self.program.machine, activity, &error.kind);
        let used_up = rule.is_some_and(|rule| !super::retry::attempts_left(rule, used));
        if policy.is_some_and(|policy| policy.then_hold) && error.retryable && used_up && !settling {
            return Ok(self.hold(id, format!("{used} attempts failed: {}", error.text))?);
        }
        let completion = self.failed_completion(activity, error, used)?;
        Ok(self.complete_op(id, completion)?)
    }

    /// Lets the next attempt start, at once or later.
    pub(super) fn next_attempt(
        &mut self,
        id: OpId,
        after: Attempt,
        not_before: Option<Millis>,
    ) -> Result<(), Fault> {
        self.edit_activity(id, |work| {
            work.attempt = Attempt(work.attempt.0.max(after.0.saturating_add(1)));
            work.begun = false;
            work.not_before = not_before;
        })?;
        let op = self.op(id)?;
        let Work::Activity(work) = &op.work else { return Ok(()) };
        if work.reserved {
            // A void attempt has cost nothing, so its reservation goes on.
            let phase = not_before.map_or(Phase::Ready, Phase::RetryAt);
            return self.edit_activity(id, |work| work.phase = phase);
        }
        self.queue_for_budget(id)
    }

    /// Holds an operation for a person; its deadline waits too.
    pub(super) fn hold(&mut self, id: OpId, why: String) -> Result<(), Fault> {
        self.set_due(id, None)?;
        self.edit_activity(id, |work| work.phase = Phase::Held(why))
    }

    /// A person gave a held operation fresh attempts.
    pub(super) fn released(&mut self, id: OpId) -> Result<(), Stop> {
        let (op, activity) = self.named(id, None)?;
        let Work::Activity(work) = &op.work else { return Ok(()) };
        let attempt = work.attempt;
        let due = self.s.time.plus(activity.in_all_ms.unwrap_or(activity.within_ms));
        self.set_due(id, Some(due))?;
        self.edit_activity(id, |work| {
            work.uncounted = attempt.0;
            work.expired = false;
        })?;
        Ok(self.next_attempt(id, attempt, None)?)
    }

    /// An attempt of a `once` activity is about to be handed out.
    pub(super) fn begun(&mut self, id: OpId, attempt: Attempt, worker: &str) -> Result<(), Stop> {
        self.named(id, None)?;
        Ok(self.edit_activity(id, |work| {
            work.attempt = attempt;
            work.begun = true;
            work.not_before = None;
            work.phase = Phase::Begun { worker: worker.to_owned() };
        })?)
    }

    /// A begun attempt never reached its worker: it does not count, and there is no doubt.
    pub(super) fn void(&mut self, id: OpId, attempt: Attempt) -> Result<(), Stop> {
        let (op, _) = self.named(id, None)?;
        if let Some(work) = op.work.activity().filter(|work| work.settling) {
            let happened = if work.doubtful { Happened::Maybe } else { Happened::No };
            return Ok(self.settle_op(id, happened)?);
        }
        self.edit_activity(id, |work| work.uncounted += 1)?;
        Ok(self.next_attempt(id, attempt, None)?)
    }

    /// A worker gave something to resume with.
    pub(super) fn handle(&mut self, id: OpId, handle: &Json) -> Result<(), Stop> {
        self.named(id, None)?;
        Ok(self.edit_activity(id, |work| work.handle = Some(handle.clone()))?)
    }

    /// An attempt will never answer.
    pub(super) fn lost(&mut self, id: OpId, attempt: Attempt, why: LostWhy) -> Result<(), Stop> {
        let (op, activity) = self.named(id, None)?;
        let Work::Activity(work) = &op.work else { return Ok(()) };
        self.book(id, Cost::Lost)?;
        if work.class == Class::Once {
            return Ok(self.in_doubt(id)?);
        }
        if work.settling {
            return Ok(self.settle_op(id, Happened::Maybe)?);
        }
        if self.s.undos.contains_key(&id) {
            self.edit_activity(id, |work| work.doubtful = true)?;
        }
        if why == LostWhy::Restart {
            // A restart of the engine is nobody's failure.
            self.edit_activity(id, |work| work.uncounted += 1)?;
            return Ok(self.next_attempt(id, attempt, None)?);
        }
        let used = attempts_used(work, attempt);
        let kind = if why == LostWhy::Timeout { "timeout" } else { "failed" };
        let left = match super::retry::rule(&self.program.machine, activity, kind) {
            Some(rule) => super::retry::attempts_left(rule, used),
            None => used < LOSSES_MAX,
        };
        if left {
            return Ok(self.next_attempt(id, attempt, None)?);
        }
        let text = format!("lost: {used} attempts never answered");
        let error = Failure { kind: kind.to_owned(), text, ..Failure::default() };
        let completion = self.failed_completion(activity, &error, used)?;
        Ok(self.complete_op(id, Completion { happened: Happened::Maybe, ..completion })?)
    }

    /// Ends the wait for an attempt in hand whose result nobody wants but its saga.
    pub(super) fn settle_op(&mut self, id: OpId, happened: Happened) -> Result<(), Fault> {
        let completion = Completion { happened, ..Completion::new(On::Unknown, Value::Nothing) };
        self.complete_op(id, completion)
    }

    /// The deadline of the whole operation is over.
    pub(super) fn activity_timeout(&mut self, id: OpId) -> Result<(), Stop> {
        let (op, activity) = self.named(id, None)?;
        let Work::Activity(work) = &op.work else { return Ok(()) };
        self.set_due(id, None)?;
        self.edit_activity(id, |work| work.expired = true)?;
        if matches!(work.phase, Phase::Verifying(_)) {
            // The verifier has its own deadline and decides; only further attempts are over.
            return Ok(());
        }
        if work.begun {
            return Ok(self.in_doubt(id)?);
        }
        let used = attempts_used(work, work.attempt).saturating_sub(1);
        let completion = self.timeout_completion(activity, used)?;
        // A `once` operation that was not begun cannot have happened.
        let happened = if work.class == Class::Once { Happened::No } else { Happened::Maybe };
        Ok(self.complete_op(id, Completion { happened, ..completion })?)
    }

    /// Returns the outcome of an activity whose time is over.
    pub(super) fn timeout_completion(&self, activity: &Activity, used: u32) -> Result<Completion, Fault> {
        let text = format!("{} gave no result in time", activity.name);
        let error = Failure { kind: "timeout".to_owned(), text, ..Failure::default() };
        self.failed_completion(activity, &error, used)
    }
}

/// Returns how many attempts count, this one included.
pub(crate) fn attempts_used(work: &ActivityWork, attempt: Attempt) -> u32 {
    attempt.0.saturating_sub(work.uncounted)
}
