//! Identities and moments: newtypes that cannot be mixed up.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Names a run: 1 to 128 characters of `[A-Za-z0-9._~-]`, compared by bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RunId(Arc<str>);

/// Says why text is not a run id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a run id: 1 to 128 letters, digits, `.`, `_`, `~` or `-` are expected, not only dots"
)]
pub struct InvalidRunId {
    /// The refused text, cut to 40 characters.
    pub text: String,
}

impl RunId {
    /// The longest run id in characters: it is a key in every store.
    pub const LENGTH_MAX: usize = 128;

    /// Reads a run id.
    ///
    /// # Errors
    /// [`InvalidRunId`] if the text is empty, too long, only dots, or has another character.
    pub fn new(text: &str) -> Result<RunId, InvalidRunId> {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '~' | '-');
        let only_dots = text.chars().all(|c| c == '.');
        if only_dots || text.len() > Self::LENGTH_MAX || !text.chars().all(fits) {
            return Err(InvalidRunId { text: text.chars().take(40).collect() });
        }
        Ok(RunId(text.into()))
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for RunId {
    type Error = InvalidRunId;

    fn try_from(text: String) -> Result<RunId, InvalidRunId> {
        RunId::new(&text)
    }
}

impl From<RunId> for String {
    fn from(id: RunId) -> String {
        id.0.to_string()
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The number of an event in its run's history: 1, 2, 3 …
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seq(pub u64);

impl Seq {
    /// Returns the number that comes next.
    #[must_use]
    pub const fn next(self) -> Seq {
        Seq(self.0 + 1)
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Names an operation: the k-th that was opened while event n was applied. Shown as `n.k`. Unique for ever, also across forks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct OpId(pub Seq, pub u32);

impl fmt::Display for OpId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

impl std::str::FromStr for OpId {
    type Err = InvalidOpId;

    fn from_str(text: &str) -> Result<OpId, InvalidOpId> {
        let parse = || {
            let (n, k) = text.split_once('.')?;
            Some(OpId(Seq(n.parse().ok()?), k.parse().ok()?))
        };
        parse().ok_or_else(|| InvalidOpId { text: text.chars().take(40).collect() })
    }
}

/// Says why text is not an operation id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not an operation id: the number of an event, a dot and an index are expected, as in `17.0`"
)]
pub struct InvalidOpId {
    /// The refused text, cut to 40 characters.
    pub text: String,
}

/// Counts the attempts of an operation: 1, 2, 3 …
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Attempt(pub u32);

impl Attempt {
    /// The first attempt.
    pub const FIRST: Attempt = Attempt(1);
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A moment: milliseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millis(pub i64);

impl Millis {
    /// Returns the moment this many milliseconds later; the far end of time instead of an overflow.
    #[must_use]
    pub const fn plus(self, ms: u64) -> Millis {
        Millis(self.0.saturating_add_unsigned(ms))
    }
}
