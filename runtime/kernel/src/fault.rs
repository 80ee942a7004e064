//! Faults: what makes a machine stop in front of an event, visibly.
//!
//! Leaves failures of activities to events. Invariant: a fault depends on machine, state and event alone, so that replay stops at
//! the same place.

use crate::limits::{
    EVAL_DEPTH_MAX, FUEL_MAX, NESTING_MAX, OPERATIONS_MAX, SPAWN_DEPTH_MAX, TRANSITIONS_MAX, VALUE_BYTES_MAX,
    VALUE_DEPTH_MAX,
};
use crate::value::Oversize;

/// Why an event could not be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// A result is beyond its type.
    #[error("overflow: {what}")]
    Overflow {
        /// The operation and its values.
        what: String,
    },
    /// The evaluation took too many steps.
    #[error("more than {FUEL_MAX} steps of evaluation in one event")]
    Fuel,
    /// A value is too big.
    #[error("a value of more than {VALUE_BYTES_MAX} bytes")]
    Size,
    /// A value or an evaluation nests too deeply.
    #[error(
        "a value of more than {VALUE_DEPTH_MAX} levels, or evaluation nested more than {EVAL_DEPTH_MAX} times"
    )]
    Depth,
    /// The machine moves on and on without any input.
    #[error("more than {TRANSITIONS_MAX} transitions in one event")]
    Transitions,
    /// Too much is open.
    #[error("more than {OPERATIONS_MAX} operations open")]
    Operations,
    /// Flows are nested too deeply.
    #[error("flows and groups nested more than {NESTING_MAX} times")]
    Nesting,
    /// A run that was spawned by spawned runs spawns another one.
    #[error("runs spawned by runs, more than {SPAWN_DEPTH_MAX} deep")]
    SpawnDepth,
    /// The name of a spawned run is no run id.
    #[error("the name of a spawned run: {0}")]
    SpawnName(#[from] crate::ids::InvalidRunId),
    /// An outcome has no arrow that fits.
    #[error("no arrow fits the outcome {outcome}")]
    NoArrow {
        /// The outcome.
        outcome: String,
    },
    /// The machine does something that this release cannot.
    #[error("this release has no {what}")]
    Unsupported {
        /// What it is.
        what: &'static str,
    },
    /// The machine contradicts itself; a checked one does not.
    #[error("the machine contradicts itself: {what}")]
    Inconsistent {
        /// How.
        what: String,
    },
}

impl Fault {
    /// Says that a machine contradicts itself.
    pub(crate) fn inconsistent(what: impl Into<String>) -> Fault {
        Fault::Inconsistent { what: what.into() }
    }
}

impl From<Oversize> for Fault {
    fn from(oversize: Oversize) -> Fault {
        match oversize {
            Oversize::Bytes => Fault::Size,
            Oversize::Depth => Fault::Depth,
        }
    }
}
