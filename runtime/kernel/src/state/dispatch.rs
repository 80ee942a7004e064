//! From the kind of an event to the work that it causes.
//!
//! Invariant: every kind of the closed list has its place here.

use std::sync::Arc;

use outlast_dsl::machine::Outcome as On;

use super::activity::Failed;
use super::ask::Answer;
use super::parts::{Completion, Owner, Work};
use super::turn::{Spot, Stop, Turn};
use crate::event::{EventKind, Started};
use crate::fault::Fault;
use crate::ids::{Millis, OpId};
use crate::json::{Reader, Unknown, fields_to_values};
use crate::operation::Outcome;
use crate::value::Value;

/// Says whether a blocked run takes an event of this kind at once.
pub(super) fn frees(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::Cancelled { .. }
            | EventKind::Terminated { .. }
            | EventKind::Forked { .. }
            | EventKind::Migrated(_)
    )
}

impl Turn<'_> {
    /// Works off one event.
    pub(super) fn dispatch(&mut self, kind: &EventKind) -> Result<(), Stop> {
        self.begin(kind)?;
        Ok(self.settle()?)
    }

    pub(super) fn begin(&mut self, kind: &EventKind) -> Result<(), Stop> {
        match kind {
            EventKind::Started(started) => self.started(started),
            EventKind::Forked { parent, begun, children, .. } => {
                Ok(self.forked(parent, self.before, begun, *children)?)
            }
            EventKind::Configured { config } => {
                self.s.config = Arc::new(config.clone());
                self.env.config = Arc::clone(&self.s.config);
                Ok(())
            }
            EventKind::Done { op, activity, attempt, value, cost, tokens } => {
                self.s.tokens = self.s.tokens.plus(*tokens);
                self.done(*op, activity, value, (*attempt, cost.as_deref()))
            }
            EventKind::Failed { op, activity, attempt, error, retry_at, cost, tokens } => {
                self.s.tokens = self.s.tokens.plus(*tokens);
                let cost = cost.as_deref();
                self.failed(*op, activity, &Failed { attempt: *attempt, error, retry_at: *retry_at, cost })
            }
            EventKind::Begun { op, attempt, worker } => self.begun(*op, *attempt, worker),
            EventKind::Lost { op, attempt, why } => self.lost(*op, *attempt, *why),
            EventKind::Void { op, attempt } => self.void(*op, *attempt),
            EventKind::Handle { op, handle, .. } => self.handle(*op, handle),
            EventKind::Settled { op, verdict, by } => self.settled(*op, verdict, by),
            EventKind::Released { op, .. } => self.released(*op),
            EventKind::TimerFired { op, due } => self.timer_fired(*op, *due),
            EventKind::Message { id, name, value, .. } => self.message(id, name, value),
            EventKind::Withdrawn { id } => self.withdrawn(id),
            EventKind::Closed => Ok(self.no_more_messages()?),
            EventKind::Answered { op, choice, value, note, by, role } => {
                let (value, role) = (value.as_ref(), role.as_deref());
                self.answered(*op, &Answer { choice: *choice, value, note, by, role })
            }
            EventKind::Spawned { op, result } => self.spawned(*op, result),
            EventKind::ChildEnded { op, outcome } => self.child_ended(*op, outcome),
            EventKind::Delivered { op, receipt } => self.delivered(*op, receipt),
            EventKind::Migrated(_) => {
                Err(Stop::Diverged("the machine that it names".to_owned(), kind.name().to_owned()))
            }
            EventKind::Cancelled { .. } => Ok(self.cancel()?),
            EventKind::Terminated { .. } => {
                self.stop_at_once(Outcome::Terminated);
                Ok(())
            }
        }
    }

    fn started(&mut self, started: &Started) -> Result<(), Stop> {
        let root = self.program.machine.root;
        let def = self.program.flow(root);
        self.s.seed = started.seed;
        self.env.seed = started.seed;
        self.s.config = Arc::new(started.config.clone());
        self.env.config = Arc::clone(&self.s.config);
        self.s.parent = started.parent.clone().map(Arc::new);
        self.s.ancestors = started.ancestors.clone().into();
        let reader =
            Reader { machine: &self.program.machine, shapes: &self.program.shapes, unknown: Unknown::Refuse };
        let params = fields_to_values(&reader, &def.params, &started.input).map_err(|mismatch| {
            Stop::Diverged(format!("the parameters of {}", def.name), mismatch.to_string())
        })?;
        let id = self.start_flow(None, root, params.into())?;
        self.s.root = Some(id);
        Ok(())
    }

    /// A timer or deadline was due.
    fn timer_fired(&mut self, id: OpId, due: Millis) -> Result<(), Stop> {
        let found = format!("a timer of {id} due at {}", due.0);
        let Some(op) = self.s.ops.get(&id).cloned() else {
            return Err(Stop::Diverged("an open operation".to_owned(), found));
        };
        if op.due != Some(due) || self.s.time < due {
            let expected = format!("{id} due at {:?}, not before", op.due.map(|due| due.0));
            return Err(Stop::Diverged(expected, found));
        }
        match (&op.work, op.owner) {
            (Work::Activity(_), _) => self.activity_timeout(id)?,
            (Work::Ask(_), _) => {
                let completion = waited_in_vain()?;
                self.decided(id, completion, "expired".to_owned())?;
            }
            (Work::Await(_) | Work::AwaitEnded(..), _) => {
                let completion = waited_in_vain()?;
                self.complete_op(id, completion)?;
            }
            (Work::Timer(period), Owner::Timer(node, at)) => {
                self.close(id);
                self.timer_arrow(node, at, due, *period)?;
            }
            (Work::Timer(_), Owner::Limit(node, at)) => {
                self.close(id);
                self.flow_mut(node)?.limits.retain(|(_, op)| *op != id);
                self.age_reached(node, at as usize)?;
            }
            (Work::Timer(_), Owner::Deadline(node)) => self.deadline(node)?,
            (Work::Timer(_), Owner::CleanUp) => self.give_up_clean_up()?,
            (Work::Timer(_), Owner::Children) => self.children_stopped(id)?,
            (
                Work::Timer(_),
                Owner::Work(_)
                | Owner::Also
                | Owner::Verify(_)
                | Owner::Run
                | Owner::Settling
                | Owner::Undo(..),
            )
            | (Work::Spawn(_) | Work::Child(_) | Work::CancelChild(..) | Work::TellParent(_), _) => {
                self.spot = (None, Spot::Effect);
                return Err(Fault::inconsistent("a timer belongs to nobody").into());
            }
        }
        Ok(())
    }
}

/// Returns the outcome of a wait or question that nobody ended in time.
fn waited_in_vain() -> Result<Completion, Fault> {
    let problem = super::failure::problem("nobody answered in time", "timeout", None, None, 0)?;
    Ok(Completion { problem: Some(problem), ..Completion::new(On::Timeout, Value::Nothing) })
}
