//! From inputs to events: what an input would cause, or why it causes nothing.
//!
//! Leaves numbers and durability to the engine. Invariant: pure; whatever [`State::decide`] returns, [`State::apply`] accepts at
//! the same state.

mod answer;
mod message;
mod policy;
mod relation;
mod report;

use crate::event::{Config, EventKind, Settlement};
use crate::ids::{Attempt, Millis, OpId};
use crate::input::{Input, Refusal};
use crate::json::{Reader, Unknown, value_to_json};
use crate::operation::{Class, Outcome, Phase};
use crate::state::{ActivityWork, Op, State};

impl State {
    /// Returns the events that an input causes at `now`, none if there is nothing to record; `random` spreads retry waits.
    ///
    /// # Errors
    /// [`Refusal`] if the input does not fit; nothing happened.
    pub fn decide(&self, input: &Input, now: Millis, random: u64) -> Result<Vec<EventKind>, Refusal> {
        match input {
            Input::Reported { op, attempt, report } => {
                self.reported(*op, *attempt, report, now, random).map(|kind| vec![kind])
            }
            Input::Begin { op, attempt, worker } => self.begin(*op, *attempt, worker, now),
            Input::Lost { op, attempt, why } => {
                self.lost(*op, *attempt, *why, now, random).map(|kind| vec![kind])
            }
            Input::Void { op, attempt } => self.void(*op, *attempt),
            Input::Message { id, name, value, from } => {
                self.message(id.as_deref(), name, value, from).map(|kind| vec![kind])
            }
            Input::Withdraw { id } => self.withdraw(id),
            Input::Close => {
                // Who closed it before may not have heard of it.
                let held = self.core.held.iter().any(|event| event.kind == EventKind::Closed);
                if self.core.closed || held {
                    return Ok(Vec::new());
                }
                self.alive()?;
                Ok(vec![EventKind::Closed])
            }
            Input::Answer { question, choice, value, note, by, role, shown } => {
                let given = answer::Given { choice: *choice, value: value.as_ref(), note, by };
                self.answer(*question, &given, role.as_deref(), shown.as_deref()).map(|kind| vec![kind])
            }
            Input::Grant { pattern } => self.grant(pattern),
            Input::Settle { op, verdict, by } => self.settle(*op, verdict, by).map(|kind| vec![kind]),
            Input::Release { op, by } => self.release(*op, by).map(|kind| vec![kind]),
            Input::Spawned { op, result } => self.spawned(*op, result).map(|kind| vec![kind]),
            Input::ChildEnded { op, outcome } => self.child_ended(*op, outcome),
            Input::Delivered { op, receipt } => self.delivered(*op, receipt).map(|kind| vec![kind]),
            Input::Cancel { by } => {
                self.not_ended()?;
                let stuck = self.core.blocked.is_some();
                if self.core.ending.is_some() || (self.core.cancelling.is_some() && !stuck) {
                    return Err(Refusal::AlreadyEnding);
                }
                Ok(vec![EventKind::Cancelled { by: by.clone() }])
            }
            Input::Terminate { by } => {
                self.not_ended()?;
                if self.tells_parent() {
                    // How it ended is on its way to the run that spawned it.
                    return Err(Refusal::AlreadyEnding);
                }
                Ok(vec![EventKind::Terminated { by: by.clone() }])
            }
        }
    }

    fn not_ended(&self) -> Result<(), Refusal> {
        let outcome = match self.outcome() {
            None => return Ok(()),
            Some(Outcome::Done(_)) => "done",
            Some(Outcome::Failed(_)) => "failed",
            Some(Outcome::Cancelled) => "cancelled",
            Some(Outcome::Terminated) => "terminated",
        };
        Err(Refusal::RunEnded { outcome: outcome.to_owned() })
    }

    /// Refuses what no flow would ever read.
    fn alive(&self) -> Result<(), Refusal> {
        self.not_ended()?;
        if self.core.ending.is_some() { Err(Refusal::AlreadyEnding) } else { Ok(()) }
    }

    /// Returns the reader for values of the run's machine.
    fn reader(&self, unknown: Unknown) -> Reader<'_> {
        Reader { machine: &self.program.machine, shapes: &self.program.shapes, unknown }
    }

    /// Returns an open activity.
    fn activity(&self, id: OpId) -> Option<(&Op, &ActivityWork)> {
        let op = self.core.ops.get(&id)?;
        op.work.activity().map(|work| (&**op, work))
    }

    /// Says whether a blocked run holds a fact about an operation: there is then no second one.
    fn holds_fact_of(&self, id: OpId) -> bool {
        self.core.held.iter().any(|event| event.kind.op() == Some(id))
    }

    fn begin(
        &self,
        id: OpId,
        attempt: Attempt,
        worker: &str,
        now: Millis,
    ) -> Result<Vec<EventKind>, Refusal> {
        let superseded = Refusal::Superseded { op: id, attempt };
        let Some((_, work)) = self.activity(id).filter(|_| self.core.blocked.is_none()) else {
            return Err(superseded);
        };
        let ready = match work.phase {
            Phase::Ready => true,
            Phase::RetryAt(time) => time <= now,
            Phase::Begun { .. } | Phase::Verifying(_) | Phase::Held(_) | Phase::Budget => false,
        };
        if !ready || attempt != work.attempt || work.settling {
            return Err(superseded);
        }
        if work.class != Class::Once {
            return Ok(Vec::new());
        }
        Ok(vec![EventKind::Begun { op: id, attempt, worker: worker.to_owned() }])
    }

    fn void(&self, id: OpId, attempt: Attempt) -> Result<Vec<EventKind>, Refusal> {
        let begun = self.activity(id).filter(|(_, work)| {
            // What only settles may not be begun any more: that nobody has it in hand ends it.
            let may_be = matches!(work.phase, Phase::Begun { .. }) || work.settling;
            may_be && work.attempt == attempt && !self.holds_fact_of(id)
        });
        match begun {
            Some(_) => Ok(vec![EventKind::Void { op: id, attempt }]),
            None => Err(Refusal::Superseded { op: id, attempt }),
        }
    }

    fn grant(&self, pattern: &str) -> Result<Vec<EventKind>, Refusal> {
        self.alive()?;
        if self.core.config.grants.iter().any(|known| known == pattern) {
            return Ok(Vec::new());
        }
        let mut config: Config = (*self.core.config).clone();
        config.grants.push(pattern.to_owned());
        Ok(vec![EventKind::Configured { config }])
    }

    /// Returns an open activity that a person names, unless a fact about it is held.
    fn named(&self, id: OpId) -> Result<&ActivityWork, Refusal> {
        self.not_ended()?;
        match self.activity(id) {
            Some((_, work)) if !self.holds_fact_of(id) => Ok(work),
            Some(_) | None => Err(Refusal::NotFound { what: "operation", id: id.to_string() }),
        }
    }

    fn settle(&self, id: OpId, verdict: &Settlement, by: &str) -> Result<EventKind, Refusal> {
        let work = self.named(id)?;
        // A person may have undone by hand, or give up.
        let undoes = self.core.ops.get(&id).is_some_and(|op| op.owner.undoes().is_some());
        let held_undo = undoes && matches!(work.phase, Phase::Held(_)) && *verdict != Settlement::NotHappened;
        if !work.in_doubt() && !held_undo {
            let detail = format!("operation {id} is not in doubt");
            return Err(Refusal::Invalid { detail });
        }
        let verdict = match verdict {
            Settlement::Happened(json) => {
                let ty = &self.program.machine.activities[work.activity.at()].result;
                let value = self.reader(Unknown::Drop).read(ty, json);
                let value = value.map_err(|mismatch| Refusal::Invalid { detail: mismatch.to_string() })?;
                Settlement::Happened(value_to_json(&value))
            }
            Settlement::NotHappened => Settlement::NotHappened,
            Settlement::Fail => Settlement::Fail,
        };
        Ok(EventKind::Settled { op: id, verdict, by: by.to_owned() })
    }

    fn release(&self, id: OpId, by: &str) -> Result<EventKind, Refusal> {
        let work = self.named(id)?;
        match work.phase {
            Phase::Held(_) if !work.begun => Ok(EventKind::Released { op: id, by: by.to_owned() }),
            Phase::Held(_) => {
                let detail = format!("operation {id} is in doubt: settle it");
                Err(Refusal::Invalid { detail })
            }
            Phase::Ready | Phase::RetryAt(_) | Phase::Begun { .. } | Phase::Verifying(_) | Phase::Budget => {
                let detail = format!("operation {id} is not held");
                Err(Refusal::Invalid { detail })
            }
        }
    }
}
