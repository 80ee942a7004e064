//! The standard library: Flow text that is compiled in. The prelude is in sight everywhere; the other parts are named by
//! `use std "PART" { … }`.
//!
//! Leaves what cannot be written in Flow to the builtins of the edition. Invariant: its files check without a diagnostic.

/// The files of the prelude.
pub(crate) const FILES: &[&str] = &[
    include_str!("prelude/types.flow"),
    include_str!("prelude/conversation.flow"),
    include_str!("prelude/tools.flow"),
];

/// The other parts: name and text.
pub(crate) const PARTS: &[(&str, &str)] = &[];

/// The catalogues of the parts, by the name written there.
const CATALOGUES: &[(&str, &str)] = &[];

/// The text of a part.
pub(crate) fn part(name: &str) -> Option<&'static str> {
    PARTS.iter().find(|(one, _)| *one == name).map(|(_, text)| *text)
}

/// The text of a catalogue of a part.
pub(crate) fn catalogue(name: &str) -> Option<&'static str> {
    CATALOGUES.iter().find(|(one, _)| *one == name).map(|(_, text)| *text)
}
