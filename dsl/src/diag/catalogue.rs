//! Every code with its title and explanation: one place for people, tools and `outlast explain`.
//!
//! Leaves reporting to the parts of the crate; each area has a file of constants and entries here:
//! F01xx syntax, F02xx names, F03xx types, F04xx structure of flows, F05xx effects, F06xx deadlines, retries and
//! cost, F07xx regions, other runs, doubts and migrations, F08xx tests. Invariant: codes are unique and every constant has
//! an entry.

pub mod beside;
pub mod deadlines;
pub mod effects;
pub mod flows;
pub mod names;
pub mod syntax;
pub mod tests;
pub mod types;

use super::Code;

/// What a code means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The code.
    pub code: Code,
    /// A few words, in lower case.
    pub title: &'static str,
    /// Why it is refused and what to write.
    pub explanation: &'static str,
}

/// The tables of all areas with their titles; an area that is added is named here.
const AREAS: &[(&str, &[Entry])] = &[
    ("F01xx: syntax", syntax::ENTRIES),
    ("F02xx: names", names::ENTRIES),
    ("F03xx: types", types::ENTRIES),
    ("F04xx: states, arrows and limits", flows::ENTRIES),
    ("F05xx: activities and effects", effects::ENTRIES),
    ("F06xx: deadlines, retries and cost", deadlines::ENTRIES),
    ("F07xx: regions, other runs, doubts and migrations", beside::ENTRIES),
    ("F08xx: tests", tests::ENTRIES),
];

/// The areas with their titles, and their entries in the order of the codes.
pub fn areas() -> impl Iterator<Item = (&'static str, &'static [Entry])> {
    AREAS.iter().copied()
}

/// All entries in the order of their codes.
pub fn entries() -> impl Iterator<Item = &'static Entry> {
    areas().flat_map(|(_, entries)| entries)
}

/// The entry of `code`.
pub fn find(code: Code) -> Option<&'static Entry> {
    entries().find(|entry| entry.code == code)
}

#[cfg(test)]
mod every_entry {
    use super::*;

    #[test]
    fn codes_are_unique_and_in_order() {
        let codes: Vec<Code> = entries().map(|entry| entry.code).collect();
        assert!(codes.windows(2).all(|pair| pair[0] < pair[1]), "{codes:?}");
    }

    #[test]
    fn entries_are_written() {
        for entry in entries() {
            assert!(!entry.title.is_empty() && !entry.title.ends_with('.'), "{}", entry.code);
            assert!(entry.explanation.ends_with('.'), "{}", entry.code);
        }
    }
}
