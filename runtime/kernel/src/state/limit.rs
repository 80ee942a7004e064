//! Limits: measured after the sets of an arrow and before its goal, and when a budget or an age runs out.
//!
//! Invariant: a broken limit replaces the arrow; its own goal is not measured again. A limit on cost or age, which nothing can set back,
//! is broken once and not measured from then on; what costs more than is left still finds no room. Cleaning up knows no limits.

use outlast_dsl::machine::{Goal, Measure};
use rust_decimal::Decimal;

use super::arrow::Way;
use super::enter::visits_after;
use super::parts::NodeId;
use super::turn::{Spot, Turn};
use crate::eval::eval;
use crate::fault::Fault;
use crate::value::Value;

impl Turn<'_> {
    /// Returns the first limit that would be broken by going to a goal.
    pub(super) fn broken_limit(&mut self, id: NodeId, goal: &Goal) -> Result<Option<usize>, Fault> {
        if self.s.cancelling.is_some() {
            return Ok(None);
        }
        let program = self.program;
        let def = program.flow(self.flow(id)?.flow);
        for (at, limit) in def.limits.iter().enumerate() {
            if self.is_broken(id, at)? {
                continue;
            }
            self.spot = (Some(id), Spot::Limit(at));
            let measured = self.measure(id, at, limit.measure, goal)?;
            let mut scope = self.flow_scope(id)?;
            let max = eval(&mut self.env, &mut scope, &limit.max)?;
            if exceeds(&measured, &max)? {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    /// Says whether the way out of a limit on cost or age has been taken.
    fn is_broken(&self, id: NodeId, at: usize) -> Result<bool, Fault> {
        let flow = self.flow(id)?;
        let for_good = is_for_good(self.program.flow(flow.flow).limits[at].measure);
        Ok(for_good && flow.visits.get(at).is_some_and(|mark| *mark != 0))
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
        if is_for_good(limit.measure)
            && let Some(mark) = self.flow_mut(id)?.visits.get_mut(at)
        {
            *mark = 1;
        }
        self.spot = (Some(id), Spot::Limit(at));
        self.note_taken(id, self.spot.1)?;
        let mut scope = self.flow_scope(id)?;
        self.sets(&mut scope, &limit.acts)?;
        self.flow_mut(id)?.data.clone_from(&scope.data);
        self.go_unlimited(id, scope, &[&limit.acts], &limit.goal, Way::Limit)
    }
}

/// Says whether what a limit measures only grows, so that once broken it stays so.
fn is_for_good(measure: Measure) -> bool {
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
