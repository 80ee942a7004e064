//! Lists of tool patterns that runs share.
//!
//! Leaves reading a pattern to [`crate::rules`]. Invariant: a list is read back as it was, in whatever form it was written; the mark that stands
//! for the usual protection is no rule, so no list has it.

use std::ops::Deref;
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::rules;

/// What stands in the store for the rules of [`rules::usual_protection`], which nearly every run has. Its meaning never changes: another usual
/// protection gets another mark.
const MARK: &str = "@protected.1";

static USUAL: LazyLock<Patterns> = LazyLock::new(|| rules::usual_protection().into());

/// Tool patterns in order. Copies share them: most runs of an environment have the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Patterns(Arc<[String]>);

impl Patterns {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<Vec<String>> for Patterns {
    fn from(patterns: Vec<String>) -> Patterns {
        Patterns(patterns.into())
    }
}

impl Deref for Patterns {
    type Target = [String];

    fn deref(&self) -> &[String] {
        &self.0
    }
}

impl Serialize for Patterns {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let usual = &USUAL[..];
        let at = match serializer.is_human_readable() {
            true => None,
            false => self.0.windows(usual.len()).position(|part| part == usual),
        };
        let Some(at) = at else { return self.0.serialize(serializer) };
        let (before, after) = (&self.0[..at], &self.0[at + usual.len()..]);
        serializer.collect_seq(
            before.iter().map(String::as_str).chain([MARK]).chain(after.iter().map(String::as_str)),
        )
    }
}

impl<'de> Deserialize<'de> for Patterns {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Patterns, D::Error> {
        let mut patterns = Vec::<String>::deserialize(deserializer)?;
        match patterns.iter().position(|pattern| pattern == MARK) {
            None => Ok(patterns.into()),
            Some(0) if patterns.len() == 1 => Ok(USUAL.clone()),
            Some(at) => {
                patterns.splice(at..=at, USUAL.iter().cloned());
                Ok(patterns.into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_read_lists_whole() {
        let usual = rules::usual_protection();
        let text = serde_json::to_string(&Patterns::from(usual.clone())).unwrap();
        assert_eq!(text, serde_json::to_string(&usual).unwrap());
        assert_eq!(serde_json::from_str::<Patterns>(&text).unwrap()[..], usual);
    }

    #[test]
    fn the_mark_is_no_rule_and_stands_for_rules() {
        assert!(rules::check(MARK).is_err());
        assert!(USUAL.iter().all(|rule| rules::check(rule).is_ok()));
        assert_eq!(USUAL.len(), 36, "another usual protection needs another mark");
    }
}
