//! The source map: where the parts of a machine stand in the text.
//!
//! Leaves finding the part to the kernel, which names it by flow, state and part. Invariant: a place is told as precisely as it
//! is known: the part, else its state, else its flow.

use serde::{Deserialize, Serialize};

/// Where the parts of a machine stand. Stored beside the machine; not part of its hash.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Places {
    /// In the order of the text of each flow.
    pub entries: Vec<PlaceEntry>,
}

/// Where one part stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlaceEntry {
    /// The flow.
    pub flow: String,
    /// The state; none for what belongs to the flow itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// `flow`, `state`, `effect`, `start`, `arrow 2`, `arrow 2 arm 0`, `branch 1` (of `choose`), `timer 0`, `limit 0`, `data x`.
    pub part: String,
    /// The column, from 1, so that parts on one line can be told apart; 0 if it was not noted.
    #[serde(default)]
    pub column: u32,
    /// The line.
    #[serde(flatten)]
    pub line: PlaceLine,
}

/// A line of a source file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlaceLine {
    /// The file as it was named.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The text of the line without the space around it.
    pub snippet: String,
}

impl Places {
    /// Returns the line of a part, or of what is nearest around it.
    #[must_use]
    pub fn find(&self, flow: &str, state: Option<&str>, part: &str) -> Option<&PlaceLine> {
        let exact = |state: Option<&str>, part: &str| {
            let fits = |entry: &&PlaceEntry| {
                entry.flow == flow && entry.state.as_deref() == state && entry.part == part
            };
            self.entries.iter().find(fits).map(|entry| &entry.line)
        };
        exact(state, part).or_else(|| exact(state, "state")).or_else(|| exact(None, "flow"))
    }
}
