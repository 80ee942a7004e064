//! Money: reservations against `limit cost`, and what was really spent.
//!
//! An activity that says what it `costs` at most reserves that much before it may be handed out. What does not fit waits while
//! others hold reservations, and breaks the limit when it is alone; what no way out of a limit would close is then let through.
//! Invariant: spent + reserved keeps every limit at the moment of any other reservation, and the oldest waiting operation is served first.

use outlast_dsl::machine::Measure;
use rust_decimal::Decimal;

use super::parts::{ActivityWork, NodeId, NodeKind, Owner, Work};
use super::turn::{Task, Turn};
use crate::eval::eval;
use crate::fault::Fault;
use crate::ids::{Attempt, OpId};
use crate::operation::Phase;
use crate::value::Value;

impl Turn<'_> {
    /// Returns the most that an activity may cost.
    fn costs(&self, work: &ActivityWork) -> Option<Decimal> {
        let text = self.program.machine.activities[work.activity.at()].costs.as_deref()?;
        crate::json::parse_decimal(text)
    }

    /// Lets an operation wait for the budget, or makes it ready if it costs nothing.
    pub(super) fn queue_for_budget(&mut self, id: OpId) -> Result<(), Fault> {
        let op = self.op(id)?;
        let Work::Activity(work) = &op.work else { return Ok(()) };
        // What undoes is paid for whatever the limit says.
        if self.costs(work).is_some() && op.owner.undoes().is_none() {
            self.s.waiting.insert_mut(id);
            return self.edit_activity(id, |work| work.phase = Phase::Budget);
        }
        self.edit_activity(id, make_ready)
    }

    /// Serves waiting operations, oldest first, as far as the budget goes.
    pub(super) fn admit_waiting(&mut self) -> Result<(), Fault> {
        while let Some(id) = self.s.waiting.first().copied() {
            let op = self.op(id)?;
            let Work::Activity(work) = &op.work else {
                return Err(Fault::inconsistent("a timer waits for a budget"));
            };
            let costs = self.costs(work).unwrap_or_default();
            if let Some((room, flow, limit)) = self.room(op.flow)?
                && costs > room
            {
                if !self.s.reserved.is_zero() {
                    return Ok(());
                }
                if self.is_awaited(op.owner) {
                    self.tasks.push(Task::Break(flow, limit));
                    return Ok(());
                }
            }
            self.s.waiting.remove_mut(&id);
            self.s.reserved = sum(self.s.reserved, costs)?;
            self.edit_activity(id, |work| {
                work.reserved = true;
                make_ready(work);
            })?;
        }
        Ok(())
    }

    /// Says whether a state waits for an operation, so that the way out of a limit closes it. Nothing else may break a limit: it
    /// would still be there, and break it again.
    fn is_awaited(&self, owner: Owner) -> bool {
        match owner {
            Owner::Work(_) => true,
            Owner::Verify(of) => {
                self.s.ops.get(&of).is_some_and(|verified| matches!(verified.owner, Owner::Work(_)))
            }
            Owner::Timer(..)
            | Owner::Limit(..)
            | Owner::Deadline(_)
            | Owner::Also
            | Owner::CleanUp
            | Owner::Run
            | Owner::Children
            | Owner::Settling
            | Owner::Undo(..) => false,
        }
    }

    /// Returns how much the tightest limit leaves, and whose it is: the innermost one if several are as tight.
    fn room(&mut self, flow: NodeId) -> Result<Option<(Decimal, NodeId, u32)>, Fault> {
        if self.s.cancelling.is_some() {
            return Ok(None);
        }
        let program = self.program;
        let mut tightest: Option<(Decimal, NodeId, u32)> = None;
        let mut next = Some(flow);
        while let Some(id) = next {
            let Some(node) = self.s.nodes.get(&id).cloned() else { break };
            next = node.parent.map(|parent| parent.node);
            let NodeKind::Flow(flow) = &node.kind else { continue };
            for (at, limit) in program.flow(flow.flow).limits.iter().enumerate() {
                if limit.measure != Measure::Cost {
                    continue;
                }
                let mut scope = self.flow_scope(id)?;
                let max = match eval(&mut self.env, &mut scope, &limit.max)? {
                    Value::Decimal(max) => max,
                    Value::Int(max) => Decimal::from(max),
                    other => return Err(crate::eval::unexpected("a limit on cost", &other)),
                };
                let room = max - self.s.spent - self.s.reserved;
                if tightest.is_none_or(|(known, ..)| room < known) {
                    tightest = Some((room, id, super::enter::index(at)?));
                }
            }
        }
        Ok(tightest)
    }

    /// Gives back the reservation of an operation, and its place in the queue.
    pub(super) fn release(&mut self, id: OpId, work: &ActivityWork) {
        self.s.waiting.remove_mut(&id);
        if work.reserved {
            let costs = self.costs(work).unwrap_or_default();
            self.s.reserved = (self.s.reserved - costs).normalize();
        }
    }

    /// Books what an attempt has cost; without a figure a lost attempt costs all that was reserved.
    pub(super) fn book(&mut self, id: OpId, cost: Cost<'_>) -> Result<(), Fault> {
        let op = self.op(id)?;
        let Work::Activity(work) = &op.work else { return Ok(()) };
        let cost = match cost {
            // A late answer of an attempt that counts as lost was paid for in full when it was lost.
            Cost::Reported(attempt, _)
                if self.costs(work).is_some()
                    && (attempt != work.attempt || !work.reserved)
                    && op.owner.undoes().is_none() =>
            {
                Decimal::ZERO
            }
            Cost::Reported(_, text) => text.and_then(crate::json::parse_decimal).unwrap_or_default(),
            Cost::Lost => self.costs(work).unwrap_or_default(),
        };
        self.release(id, work);
        self.s.spent = sum(self.s.spent, cost)?;
        self.edit_activity(id, |work| work.reserved = false)
    }
}

/// What is known of the cost of an attempt.
pub(super) enum Cost<'a> {
    /// What the worker said of which attempt, if it did.
    Reported(Attempt, Option<&'a str>),
    /// Nothing, because nobody answered.
    Lost,
}

fn make_ready(work: &mut ActivityWork) {
    work.phase = match work.not_before {
        Some(time) => Phase::RetryAt(time),
        None => Phase::Ready,
    };
}

fn sum(a: Decimal, b: Decimal) -> Result<Decimal, Fault> {
    let sum = a.checked_add(b).map(crate::value::round);
    sum.ok_or_else(|| Fault::Overflow { what: format!("{a} + {b}") })
}
