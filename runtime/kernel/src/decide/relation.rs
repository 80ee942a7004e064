//! News of other runs: spawned ones, and receipts for what was sent to others.
//!
//! Invariant: news that is in the history already is told apart from news that nobody waits for, so that its sender can stop.

use crate::event::{EventKind, Receipt, SpawnResult};
use crate::ids::OpId;
use crate::input::Refusal;
use crate::operation::Outcome;
use crate::state::{State, Work};

impl State {
    pub(super) fn spawned(&self, op: OpId, result: &SpawnResult) -> Result<EventKind, Refusal> {
        match self.work_of(op) {
            Some(Work::Spawn(child)) => match result {
                SpawnResult::Run(run) if *run != child.run => {
                    let detail = format!("operation {op} spawns {}, not {run}", child.run);
                    Err(Refusal::Invalid { detail })
                }
                SpawnResult::Run(_) | SpawnResult::Exists => {
                    Ok(EventKind::Spawned { op, result: result.clone() })
                }
            },
            _ => Err(self.not_waited_for(op)),
        }
    }

    /// A child may end before its start is acknowledged: the one implies the other.
    pub(super) fn child_ended(&self, op: OpId, outcome: &Outcome) -> Result<Vec<EventKind>, Refusal> {
        let ended = EventKind::ChildEnded { op, outcome: outcome.clone() };
        match self.work_of(op) {
            Some(Work::Child(_)) => Ok(vec![ended]),
            Some(Work::Spawn(child)) if self.blocked().is_none() => {
                let result = SpawnResult::Run(child.run.clone());
                Ok(vec![EventKind::Spawned { op, result }, ended])
            }
            _ => Err(self.not_waited_for(op)),
        }
    }

    pub(super) fn delivered(&self, op: OpId, receipt: &Receipt) -> Result<EventKind, Refusal> {
        match self.work_of(op) {
            Some(Work::CancelChild(..) | Work::TellParent(_)) => {
                Ok(EventKind::Delivered { op, receipt: receipt.clone() })
            }
            _ => Err(self.not_waited_for(op)),
        }
    }

    /// Says whether the run that spawned this one is being told how it ended.
    pub(super) fn tells_parent(&self) -> bool {
        self.core.ops.values().any(|op| matches!(op.work, Work::TellParent(_)))
    }

    fn work_of(&self, op: OpId) -> Option<&Work> {
        self.core.ops.get(&op).map(|op| &op.work).filter(|_| !self.holds_fact_of(op))
    }

    /// An operation that was opened and is closed is known not to need the news.
    fn not_waited_for(&self, op: OpId) -> Refusal {
        match self.not_ended() {
            Err(ended) => ended,
            Ok(()) if op.0 <= self.last() => Refusal::Repeated,
            Ok(()) => Refusal::NotFound { what: "operation", id: op.to_string() },
        }
    }
}
