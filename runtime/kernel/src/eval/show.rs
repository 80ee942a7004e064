//! Values as text, for interpolation.
//!
//! Invariant: fixed by the edition; what has no text of its own is shown as its canonical JSON.

use std::fmt::Write;

use crate::json::{canonical_text, value_to_json};
use crate::text::{base64_text, duration_text, time_text};
use crate::value::Value;

/// Appends the text of a value.
pub(crate) fn show(value: &Value, text: &mut String) {
    match value {
        Value::Nothing => text.push_str("nothing"),
        Value::None => text.push_str("none"),
        Value::Bool(value) => append(text, value),
        Value::Int(value) => append(text, value),
        Value::Decimal(value) => append(text, value),
        Value::Text(value) => text.push_str(value),
        Value::Bytes(bytes) => text.push_str(&base64_text(bytes)),
        Value::Time(time) => text.push_str(&time_text(*time)),
        Value::Duration(ms) => text.push_str(&duration_text(*ms)),
        Value::Secret(_) => text.push_str("(secret)"),
        Value::Float(_) | Value::List(_) | Value::Map(_) | Value::Record(_) | Value::Json(_) => {
            text.push_str(&canonical_text(&value_to_json(value)));
        }
    }
}

fn append(text: &mut String, value: &dyn std::fmt::Display) {
    // Writing to a string cannot fail.
    let _ = write!(text, "{value}");
}
