//! Limits: measured after the sets of an arrow and before its goal, and when a budget or an age runs out.
//!
//! Invariant: a broken limit replaces the arrow; its own goal is not measured again. What was spent and how old a flow is nothing can
//! set back, so a limit on them is broken once, and again only after more was allowed; what costs more than is left still finds no
//! room. Cleaning up knows no limits.

use outlast_dsl::machine::{Goal, Measure};
use rust_decimal::Decimal;

use super::arrow::Cause;
use super::enter::{index, visits_after};
use super::parts::NodeId;
use super::turn::{Spot, Turn};
use crate::eval::eval;
use crate::fault::Fault;
use crate::operation::Way;
use crate::value::Value;

impl Turn<'_> {
    /// Returns the first limit that would be broken by going to a goal.
    pub(super) fn broken_limit(&mut self, id: NodeId, goal: &Goal) -> Result<Option<usize>, Fault> {
        if self.s.cancelling.is_some() {
            return Ok(None);
        }
        let program = self.program;
        let def = program.flow(self.flow(id)?.flow);
        for at in 0..def.limits.len() {
            match (self.is_exceeded(id, at, goal)?, self.was_broken(id, at)?) {
                (true, false) => return Ok(Some(at)),
                (false, true) => self.mark(id, at)?,
                (true, true) | (false, false) => {}
            }
        }
        Ok(None)
    }

    /// Measures a limit.
    fn is_exceeded(&mut self, id: NodeId, at: usize, goal: &Goal) -> Result<bool, Fault> {
        let limit = &self.program.flow(self.flow(id)?.flow).limits[at];
        self.spot = (Some(id), Spot::Flow(Way::Limit(index(at)?)));
        let measured = self.measure(id, at, limit.measure, goal)?;
        let mut scope = self.flow_scope(id)?;
        let max = eval(&mut self.env, &mut scope, &limit.max)?;
        exceeds(&measured, &max)
    }

    /// Says whether the way out of a limit on cost or age was taken, and nothing has been allowed since.
    pub(super) fn was_broken(&self, id: NodeId, at: usize) -> Result<bool, Fault> {
        let flow = self.flow(id)?;
        let only_grows = only_grows(self.program.flow(flow.flow).limits[at].measure);
        Ok(only_grows && flow.visits.get(at).is_some_and(|mark| *mark != 0))
    }

    /// Marks a limit on cost or age whose way out is taken, unless it is kept now because more is allowed; one on age then needs
    /// its timer again.
    pub(super) fn mark(&mut self, id: NodeId, at: usize) -> Result<(), Fault> {
        let limit = &self.program.flow(self.flow(id)?.flow).limits[at];
        if !only_grows(limit.measure) {
            return Ok(());
        }
        let exceeded = self.is_exceeded(id, at, &limit.goal)?;
        let flow = self.flow_mut(id)?;
        if let Some(mark) = flow.visits.get_mut(at) {
            *mark = i64::from(exceeded);
        }
        let armed = flow.limits.iter().any(|(known, _)| *known as usize == at);
        if limit.measure == Measure::Age && !exceeded && !armed { self.arm_limit(id, at) } else { Ok(()) }
    }

    /// The time of a limit on age is over, unless more was allowed since it was armed.
    pub(super) fn age_reached(&mut self, id: NodeId, at: usize) -> Result<(), Fault> {
        if self.was_broken(id, at)? {
            return Ok(());
        }
        let limit = &self.program.flow(self.flow(id)?.flow).limits[at];
        if self.is_exceeded(id, at, &limit.goal)? { self.take_limit(id, at) } else { self.arm_limit(id, at) }
    }

    fn measure(&self, id: NodeId, at: usize, measure: Measure, goal: &Goal) -> Result<Value, Fault> {
        let flow = self.flow(id)?;
        Ok(match measure {
            Measure::Visits(counted, since) => {
                let count = flow.visits.get(at).copied().unwrap_or(0);
                match goal {
                    Goal::State(state, _) => Value::Int(visits_after(count, counted, since, *state)),
                    Goal::Stay | Goal::End(_) | Goal::Fail(_) => Value::Int(count),
                }
            }
            Measure::Data(data) => {
                let value = flow.data.get(data.at()).cloned();
                value.ok_or_else(|| Fault::inconsistent("a limit measures no data field"))?
            }
            Measure::Cost => Value::Decimal(self.s.spent),
            Measure::Age => {
                let age = self.s.time.0.saturating_sub(flow.started_at.0).max(0);
                Value::Duration(age.unsigned_abs())
            }
        })
    }

    /// Takes the way out of a broken limit.
    pub(super) fn take_limit(&mut self, id: NodeId, at: usize) -> Result<(), Fault> {
        if !self.s.nodes.contains_key(&id) {
            return Ok(());
        }
        self.count_transition()?;
        let limit = &self.program.flow(self.flow(id)?.flow).limits[at];
        self.spot = (Some(id), Spot::Flow(Way::Limit(index(at)?)));
        self.note_taken(id, self.spot.1)?;
        let mut scope = self.flow_scope(id)?;
        self.sets(&mut scope, &limit.acts)?;
        self.flow_mut(id)?.data.clone_from(&scope.data);
        self.mark(id, at)?;
        self.go_unlimited(id, scope, &[&limit.acts], &limit.goal, Cause::Limit)
    }
}

/// Says whether what a limit measures only grows, so that it stays broken until more is allowed.
fn only_grows(measure: Measure) -> bool {
    match measure {
        Measure::Cost | Measure::Age => true,
        Measure::Visits(..) | Measure::Data(_) => false,
    }
}

/// Says whether a measured value is more than is allowed.
pub(super) fn exceeds(measured: &Value, max: &Value) -> Result<bool, Fault> {
    match (measured, max) {
        (Value::Decimal(measured), Value::Int(max)) => Ok(*measured > Decimal::from(*max)),
        (Value::Int(measured), Value::Decimal(max)) => Ok(Decimal::from(*measured) > *max),
        (Value::Int(_), Value::Int(_))
        | (Value::Decimal(_), Value::Decimal(_))
        | (Value::Float(_), Value::Float(_))
        | (Value::Duration(_), Value::Duration(_)) => Ok(measured > max),
        (_, other) => Err(crate::eval::unexpected("a limit", other)),
    }
}
