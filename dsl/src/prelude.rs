//! The standard library: Flow text that is compiled in.
//!
//! Leaves what cannot be written in Flow to the builtins of the edition. Invariant: its files check without a diagnostic.

/// The files of the standard library: name and text.
pub(crate) const FILES: &[(&str, &str)] = &[
    ("std/types.flow", include_str!("prelude/types.flow")),
    ("std/conversation.flow", include_str!("prelude/conversation.flow")),
    ("std/tools.flow", include_str!("prelude/tools.flow")),
];
