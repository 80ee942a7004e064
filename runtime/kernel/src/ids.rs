//! Identities and moments: newtypes that cannot be mixed up.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Names a run: 1 to 128 characters of `[A-Za-z0-9._~-]`, compared by bytes. The run of a schedule is named by the schedule and the
/// minute for which it is due, as in `nightly@2027-03-14T02:30Z`.
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
        let plain = schedule_of(text).unwrap_or(text);
        let only_dots = plain.chars().all(|c| c == '.');
        if only_dots || text.len() > Self::LENGTH_MAX || !plain.chars().all(fits) {
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

/// Returns what stands before a due time, if the text ends with one.
fn schedule_of(text: &str) -> Option<&str> {
    const FORM: &[u8] = b"@0000-00-00t00:00z";
    let (name, due) = text.as_bytes().split_at_checked(text.len().checked_sub(FORM.len())?)?;
    let fits = |(byte, form): (&u8, &u8)| match form {
        b'0' => byte.is_ascii_digit(),
        form => byte.to_ascii_lowercase() == *form,
    };
    if due.iter().zip(FORM).all(fits) { text.get(..name.len()) } else { None }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_schedules_are_named_by_their_minute() {
        for (text, fits) in [
            ("nightly@2027-03-14T02:30Z", true),
            ("nightly@2027-03-14t02:30z", true),
            ("@2027-03-14T02:30Z", false),
            ("..@2027-03-14T02:30Z", false),
            ("a@b@2027-03-14T02:30Z", false),
            ("nightly@2027-03-14T02:30", false),
            ("nightly@2027-03-14T02:30:00Z", false),
            ("nightly@", false),
            ("a:b", false),
            ("ü@2027-03-14T02:30Z", false),
        ] {
            assert_eq!(RunId::new(text).is_ok(), fits, "{text}");
        }
    }
}
