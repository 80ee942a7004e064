//! News of other runs: spawned ones, and receipts for what was sent to others.
//!
//! Invariant: news that is in the history already is told apart from news that nobody waits for, so that its sender can stop.

use crate::event::{EventKind, Receipt, SpawnResult};
use crate::ids::OpId;
use crate::input::Refusal;
use crate::operation::Outcome;
use crate::state::State;

impl State {
    pub(super) fn spawned(&self, op: OpId, _result: &SpawnResult) -> Result<EventKind, Refusal> {
        self.not_ended()?;
        Err(Refusal::NotFound { what: "operation", id: op.to_string() })
    }

    pub(super) fn child_ended(&self, op: OpId, _outcome: &Outcome) -> Result<EventKind, Refusal> {
        self.not_ended()?;
        Err(Refusal::NotFound { what: "operation", id: op.to_string() })
    }

    pub(super) fn delivered(&self, op: OpId, _receipt: &Receipt) -> Result<EventKind, Refusal> {
        self.not_ended()?;
        Err(Refusal::NotFound { what: "operation", id: op.to_string() })
    }
}
