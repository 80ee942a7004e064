//! Reads exactly one JSON object, without anything that could be read in two ways.
//!
//! Invariant: a field that stands twice is an error, at any depth; guessing which one was meant could run the wrong thing.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Map;

use crate::Json;

/// Reads the object.
///
/// # Errors
/// What is wrong with the text.
pub(crate) fn object(text: &str) -> Result<Json, String> {
    match serde_json::from_str::<Strict>(text) {
        Ok(Strict(object @ Json::Object(_))) => Ok(object),
        Ok(Strict(Json::Null)) => Err("it is null".to_owned()),
        Ok(Strict(Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_))) => {
            Err("it is another kind of value".to_owned())
        }
        Err(_) if text.trim().is_empty() => Err("it is empty".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

struct Strict(Json);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Strict, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Strict;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Strict, E> {
        Ok(Strict(Json::Null))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Strict, E> {
        Ok(Strict(value.into()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Strict, E> {
        Ok(Strict(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Strict, E> {
        Ok(Strict(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Strict, E> {
        Ok(Strict(value.into()))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Strict, E> {
        Ok(Strict(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Strict, A::Error> {
        let mut list = Vec::new();
        while let Some(Strict(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Strict(list.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Strict, A::Error> {
        let mut object = Map::new();
        while let Some((name, Strict(value))) = fields.next_entry::<String, Strict>()? {
            if object.insert(name.clone(), value).is_some() {
                return Err(A::Error::custom(format!("{name:?} stands twice")));
            }
        }
        Ok(Strict(Json::Object(object)))
    }
}
