//! How fast a queue gives out its tasks, as a configuration says it.
//!
//! Leaves keeping to it to the engine. Invariant: what is left out is not limited.

use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};

/// What a queue gives out in a minute, to all workers together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rate {
    /// How many tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_minute: Option<NonZeroU64>,
    /// Of how many tokens, read and written, as workers report them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_minute: Option<NonZeroU64>,
}

impl Rate {
    /// Returns what this says, and where it says nothing, the other.
    #[must_use]
    pub fn or(self, other: Rate) -> Rate {
        Rate {
            requests_per_minute: self.requests_per_minute.or(other.requests_per_minute),
            tokens_per_minute: self.tokens_per_minute.or(other.tokens_per_minute),
        }
    }
}
