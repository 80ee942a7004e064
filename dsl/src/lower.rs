//! From the syntax tree to the machine: names become indexes, types are checked, defaults are filled in.
//!
//! Types are checked while lowering, since most of what lowering decides (which variant, which literal, which conversion)
//! follows from types. Leaves declarations to `check`. Invariant: lowering never stops; what is wrong is reported and
//! becomes something harmless. Start with [`flows::flows`] and [`scope::Scope`].

pub(crate) mod activities;
pub(crate) mod acts;
pub(crate) mod arrows;
pub(crate) mod builtins;
pub(crate) mod calls;
pub(crate) mod construct;
pub(crate) mod defs;
pub(crate) mod effects;
pub(crate) mod expr;
pub(crate) mod flows;
pub(crate) mod groups;
pub(crate) mod migrations;
pub(crate) mod operators;
pub(crate) mod outcomes;
pub(crate) mod places;
pub(crate) mod scope;
pub(crate) mod steps;
pub(crate) mod tests;
pub(crate) mod word;
