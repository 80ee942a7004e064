//! The total order and structural equality of values.
//!
//! Invariant: the order is the same on every computer; values of different kinds are ordered by kind, floats by their total
//! order, records by tag and then by fields in declared order.

use std::cmp::Ordering;
use std::sync::Arc;

use super::Value;
use crate::json::canonical_text;

impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        self.size() == other.size() && self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Value {}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Value) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Value {
    fn cmp(&self, other: &Value) -> Ordering {
        match (self, other) {
            (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
            (Value::Int(a), Value::Int(b)) => a.cmp(b),
            (Value::Float(a), Value::Float(b)) => a.total_cmp(b),
            (Value::Decimal(a), Value::Decimal(b)) => a.cmp(b),
            (Value::Text(a), Value::Text(b)) | (Value::Secret(a), Value::Secret(b)) => a.cmp(b),
            (Value::Bytes(a), Value::Bytes(b)) => a.cmp(b),
            (Value::Time(a), Value::Time(b)) => a.cmp(b),
            (Value::Duration(a), Value::Duration(b)) => a.cmp(b),
            (Value::List(a), Value::List(b)) => a.iter().cmp(b.iter()),
            (Value::Map(a), Value::Map(b)) => a.iter().cmp(b.iter()),
            (Value::Record(a), Value::Record(b)) => {
                if Arc::ptr_eq(a, b) {
                    return Ordering::Equal;
                }
                let tags = a.shape().tag().cmp(&b.shape().tag());
                tags.then_with(|| a.iter().cmp(b.iter()))
            }
            (Value::Json(a), Value::Json(b)) => {
                if Arc::ptr_eq(a, b) || a.json() == b.json() {
                    return Ordering::Equal;
                }
                canonical_text(a.json()).cmp(&canonical_text(b.json()))
            }
            (a, b) => rank(a).cmp(&rank(b)),
        }
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::None => 0,
        Value::Nothing => 1,
        Value::Bool(_) => 2,
        Value::Int(_) => 3,
        Value::Float(_) => 4,
        Value::Decimal(_) => 5,
        Value::Text(_) => 6,
        Value::Bytes(_) => 7,
        Value::Time(_) => 8,
        Value::Duration(_) => 9,
        Value::List(_) => 10,
        Value::Map(_) => 11,
        Value::Record(_) => 12,
        Value::Json(_) => 13,
        Value::Secret(_) => 14,
    }
}
