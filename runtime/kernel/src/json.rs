//! JSON in and out: one documented form for each type.
//!
//! Leaves the stored form of values to [`crate::value`]. Invariant: `json_to_value(type, value_to_json(v)) == v` for every value
//! of a type that may come from outside; an `approved` value may not.

mod read;
mod schema;
mod write;

pub use read::{Mismatch, Unknown, json_to_value};
pub(crate) use read::{Reader, fields_to_values, parse_decimal};
pub use schema::schema;
pub(crate) use write::value_to_open_json;
pub use write::{canonical_text, value_to_json};
