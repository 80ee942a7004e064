//! How many tokens an attempt took: a figure that workers tell and that nothing is decided by.
//!
//! Leaves money to the cost beside it. Invariant: sums never overflow.

use serde::{Deserialize, Serialize};

/// Tokens that language models read and wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    /// Read.
    #[serde(rename = "i")]
    pub input: u64,
    /// Written.
    #[serde(rename = "o")]
    pub output: u64,
}

impl Tokens {
    /// Says whether there are none.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Tokens::default()
    }

    /// Returns both sums; what cannot be counted any more stays at the end of the scale.
    #[must_use]
    pub fn plus(self, more: Tokens) -> Tokens {
        Tokens {
            input: self.input.saturating_add(more.input),
            output: self.output.saturating_add(more.output),
        }
    }
}
