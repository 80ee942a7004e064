//! What the run's rules answer in place of a person.
//!
//! Leaves recording the answer to the engine, at once after the event that opened the question. Invariant: rules only ever say no; a
//! yes comes from a person, or from the machine that found that none is needed.

use crate::eval::policy::refusal;
use crate::event::{Choice, EventKind};
use crate::state::State;

/// Who answers: no person has this name.
const BY: &str = "policy";

impl State {
    /// Returns the answer to the oldest open question about a tool call that the rules refuse.
    #[must_use]
    pub fn refused_by_rule(&self) -> Option<EventKind> {
        if self.core.blocked.is_some() || self.outcome().is_some() {
            return None;
        }
        self.core.ops.iter().find_map(|(op, work)| {
            let ask = work.work.question()?;
            let note = refusal(&self.program.machine, &self.core.config, &ask.show)?;
            Some(EventKind::Answered {
                op: *op,
                choice: Choice::Reject,
                value: None,
                note,
                by: BY.to_owned(),
                role: None,
            })
        })
    }
}
