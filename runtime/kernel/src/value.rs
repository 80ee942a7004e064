//! Values: immutable, shared, with their size and depth at hand.
//!
//! Leaves JSON to [`crate::json`] and arithmetic to the evaluator. Invariant: a value that exists is no deeper than
//! [`VALUE_DEPTH_MAX`] and its `size` and `depth` depend on its content alone, so that a limit trips at the same event on every
//! computer, before and after a snapshot.

mod collection;
mod compact;
mod order;

use std::sync::Arc;

use rust_decimal::Decimal;

pub use collection::{JsonValue, List, Map, Record, Shape};

use crate::Json;
use crate::ids::Millis;
use crate::limits::{VALUE_BYTES_MAX, VALUE_DEPTH_MAX};

/// A value of the language.
#[derive(Clone, Debug)]
pub enum Value {
    /// The result of what has no result.
    Nothing,
    /// An option without value.
    None,
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A finite float, never negative zero.
    Float(f64),
    /// A normalised decimal.
    Decimal(Decimal),
    /// Text.
    Text(Arc<str>),
    /// Bytes.
    Bytes(Arc<[u8]>),
    /// A moment.
    Time(Millis),
    /// A span in milliseconds.
    Duration(u64),
    /// A list.
    List(List),
    /// A map with text keys.
    Map(Map),
    /// A record, a variant or an error.
    Record(Arc<Record>),
    /// Any JSON.
    Json(Arc<JsonValue>),
    /// The name of a secret; its content is known to workers only.
    Secret(Arc<str>),
}

/// Says which limit a value would exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Oversize {
    /// More than [`VALUE_BYTES_MAX`] bytes.
    Bytes,
    /// More than [`VALUE_DEPTH_MAX`] levels.
    Depth,
}

impl Value {
    /// Makes text.
    #[must_use]
    pub fn text(text: &str) -> Value {
        Value::Text(text.into())
    }

    /// Makes a float; none if it is not finite. Negative zero becomes zero.
    #[must_use]
    pub fn float(float: f64) -> Option<Value> {
        float.is_finite().then_some(Value::Float(if float == 0.0 { 0.0 } else { float }))
    }

    /// Makes a decimal, rounded half to even to the scale that the language has.
    #[must_use]
    pub fn decimal(decimal: Decimal) -> Value {
        Value::Decimal(round(decimal))
    }

    /// Makes a list.
    ///
    /// # Errors
    /// [`Oversize`] if it is too big or too deep.
    pub fn list(items: impl IntoIterator<Item = Value>) -> Result<Value, Oversize> {
        Value::List(items.into_iter().collect()).checked()
    }

    /// Makes a record, or a variant if there is a tag.
    ///
    /// # Errors
    /// [`Oversize`] if it is too big or too deep.
    pub fn record<const N: usize>(tag: Option<&str>, fields: [(&str, Value); N]) -> Result<Value, Oversize> {
        let shape = Shape::new(tag, fields.iter().map(|(name, _)| *name));
        let values = fields.into_iter().map(|(_, value)| value).collect();
        Value::Record(Arc::new(Record::new(shape, values))).checked()
    }

    /// Makes a dynamic value.
    ///
    /// # Errors
    /// [`Oversize`] if it is too big or too deep.
    pub fn json(json: Json) -> Result<Value, Oversize> {
        Value::Json(Arc::new(JsonValue::new(json)?)).checked()
    }

    /// Returns the value if it keeps the limits.
    ///
    /// # Errors
    /// [`Oversize`] if it is too big or too deep.
    pub fn checked(self) -> Result<Value, Oversize> {
        if self.size() > VALUE_BYTES_MAX {
            return Err(Oversize::Bytes);
        }
        if self.depth() > VALUE_DEPTH_MAX {
            return Err(Oversize::Depth);
        }
        Ok(self)
    }

    /// Returns its rough size in bytes, as if nothing were shared.
    #[must_use]
    pub fn size(&self) -> u64 {
        match self {
            Value::Nothing
            | Value::None
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::Decimal(_)
            | Value::Time(_)
            | Value::Duration(_) => 16,
            Value::Text(text) | Value::Secret(text) => 16 + text.len() as u64,
            Value::Bytes(bytes) => 16 + bytes.len() as u64,
            Value::List(list) => list.size(),
            Value::Map(map) => map.size(),
            Value::Record(record) => record.size(),
            Value::Json(json) => json.size(),
        }
    }

    /// Returns how deeply it nests; 0 for what holds no other value.
    #[must_use]
    pub fn depth(&self) -> u16 {
        match self {
            Value::Nothing
            | Value::None
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::Decimal(_)
            | Value::Time(_)
            | Value::Duration(_)
            | Value::Text(_)
            | Value::Secret(_)
            | Value::Bytes(_) => 0,
            Value::List(list) => list.depth(),
            Value::Map(map) => map.depth(),
            Value::Record(record) => record.depth(),
            Value::Json(json) => json.depth(),
        }
    }

    /// Returns a field of a record or variant.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Value> {
        match self {
            Value::Record(record) => record.get(name),
            _ => None,
        }
    }

    /// Returns the tag of a variant.
    #[must_use]
    pub fn tag(&self) -> Option<&str> {
        match self {
            Value::Record(record) => record.shape().tag(),
            _ => None,
        }
    }

    /// Returns the text of a text.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Says in one word what it is, for messages.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Nothing => "nothing",
            Value::None => "none",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Float(_) => "float",
            Value::Decimal(_) => "decimal",
            Value::Text(_) => "text",
            Value::Bytes(_) => "bytes",
            Value::Time(_) => "time",
            Value::Duration(_) => "duration",
            Value::List(_) => "list",
            Value::Map(_) => "map",
            Value::Record(_) => "record",
            Value::Json(_) => "json",
            Value::Secret(_) => "secret",
        }
    }
}

/// Rounds to the scale of the language, half to even, without trailing zeros.
#[must_use]
pub fn round(decimal: Decimal) -> Decimal {
    let strategy = rust_decimal::RoundingStrategy::MidpointNearestEven;
    decimal.round_dp_with_strategy(crate::limits::DECIMAL_SCALE_MAX, strategy).normalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_and_depth_depend_on_content_alone() {
        let deep = Value::list([Value::list([Value::Int(1)]).unwrap()]).unwrap();
        let mut map = Map::default();
        map.insert("a".into(), deep.clone());
        let before = (map.size(), map.depth());
        map.insert("a".into(), Value::Int(1));
        assert_eq!((before.1, map.depth()), (3, 1));
        map.insert("a".into(), deep);
        assert_eq!(before, (map.size(), map.depth()));
    }

    #[test]
    fn too_deep_and_too_big_values_cannot_be_made() {
        let mut value = Value::Nothing;
        for _ in 0..VALUE_DEPTH_MAX {
            value = Value::list([value]).unwrap();
        }
        assert_eq!(Value::list([value]).err(), Some(Oversize::Depth));
        let big = Value::text(&"x".repeat(1 << 20));
        assert_eq!(Value::list(std::iter::repeat_n(big, 64)).err(), Some(Oversize::Bytes));
    }
}
