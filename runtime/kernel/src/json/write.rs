//! From values to JSON, and the canonical text of JSON.
//!
//! Invariant: canonical text has sorted keys and no spaces; it does not depend on how a map was built.

use std::fmt::Write;

use serde_json::Number;

use crate::Json;
use crate::text::{base64_text, duration_text, time_text};
use crate::value::Value;

/// What becomes of a field that holds `none`.
#[derive(Clone, Copy)]
enum NoneField {
    Null,
    LeftOut,
}

/// Returns the JSON of a value: variants carry their tag in `"type"`, decimals, times and durations are text.
#[must_use]
pub fn value_to_json(value: &Value) -> Json {
    to_json(value, NoneField::Null)
}

/// Returns the JSON of a value as `json(v)` gives it: a field that holds `none` is left out, since who reads JSON by a schema
/// knows optional properties and seldom `null`.
#[must_use]
pub(crate) fn value_to_open_json(value: &Value) -> Json {
    to_json(value, NoneField::LeftOut)
}

fn to_json(value: &Value, none: NoneField) -> Json {
    match value {
        Value::Nothing | Value::None => Json::Null,
        Value::Bool(value) => Json::Bool(*value),
        Value::Int(value) => Json::from(*value),
        Value::Float(value) => Number::from_f64(*value).map_or(Json::Null, Json::Number),
        Value::Decimal(value) => Json::String(value.to_string()),
        Value::Text(text) => Json::String(text.to_string()),
        Value::Bytes(bytes) => Json::String(base64_text(bytes)),
        Value::Time(time) => Json::String(time_text(*time)),
        Value::Duration(ms) => Json::String(duration_text(*ms)),
        Value::List(list) => list.iter().map(|item| to_json(item, none)).collect(),
        Value::Map(map) => {
            Json::Object(map.iter().map(|(key, value)| (key.to_string(), to_json(value, none))).collect())
        }
        Value::Record(record) => {
            let tag = record.shape().tag().map(|tag| ("type".to_owned(), Json::from(tag)));
            let stays = |value: &Value| match none {
                NoneField::Null => true,
                NoneField::LeftOut => !matches!(value, Value::None),
            };
            let fields = record.iter().filter(|(_, value)| stays(value));
            let fields = fields.map(|(name, value)| (name.to_string(), to_json(value, none)));
            Json::Object(tag.into_iter().chain(fields).collect())
        }
        Value::Json(json) => json.json().clone(),
        Value::Secret(name) => serde_json::json!({ "$secret": &**name }),
    }
}

/// Returns the one text of some JSON: keys in byte order, no spaces.
#[must_use]
pub fn canonical_text(json: &Json) -> String {
    let mut text = String::new();
    write(json, &mut text);
    text
}

fn write(json: &Json, text: &mut String) {
    match json {
        // Writing to a string cannot fail.
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {
            let _ = write!(text, "{json}");
        }
        Json::Array(items) => {
            text.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    text.push(',');
                }
                write(item, text);
            }
            text.push(']');
        }
        Json::Object(fields) => {
            // The map may keep the order of insertion if some other crate asks for it.
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_unstable_by_key(|(key, _)| *key);
            text.push('{');
            for (i, (key, value)) in sorted.into_iter().enumerate() {
                if i > 0 {
                    text.push(',');
                }
                let _ = write!(text, "{}:", Json::from(key.as_str()));
                write(value, text);
            }
            text.push('}');
        }
    }
}
