//! Reading JSON that somebody else wrote.
//!
//! Leaves what a text means to its types. Invariant: an object that names a field twice is refused, however deep it lies: readers differ in
//! which of the two counts, and ids and inputs decide what is the same request.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeOwned, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Reads a value.
///
/// # Errors
/// If the text is no JSON, does not fit the type, or names a field of an object twice.
pub fn read<T: DeserializeOwned>(text: &[u8]) -> Result<T, serde_json::Error> {
    let Unique = serde_json::from_slice(text)?;
    serde_json::from_slice(text)
}

/// Any JSON in which no object names a field twice.
struct Unique;

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Unique, D::Error> {
        deserializer.deserialize_any(Walk)
    }
}

/// A field's name, borrowed where it stands without escapes.
#[derive(Deserialize, PartialEq, Eq, Hash)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

struct Walk;

impl<'de> Visitor<'de> for Walk {
    type Value = Unique;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_str<E>(self, _: &str) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Unique, A::Error> {
        while let Some(Unique) = items.next_element()? {}
        Ok(Unique)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Unique, A::Error> {
        let mut names = HashSet::new();
        while let Some(Name(name)) = fields.next_key::<Name<'de>>()? {
            if names.contains(&name) {
                return Err(A::Error::custom(format_args!("the field `{name}` stands twice")));
            }
            names.insert(name);
            let Unique = fields.next_value()?;
        }
        Ok(Unique)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_field_that_stands_twice_is_refused_wherever_it_lies() {
        for (text, twice) in [
            (r#"{"a":1,"a":1}"#, "a"),
            (r#"[{"b":{"c":[{"d":1,"e":2,"d":3}]}}]"#, "d"),
            (r#"{"a":1,"\u0061":2}"#, "a"),
        ] {
            let error = read::<Value>(text.as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with(&format!("the field `{twice}` stands twice at line 1")), "{error}");
        }
        let fine = r#"{"a":{"a":[null,true,-1,1e300,"a"]},"b":{"a":18446744073709551615}}"#;
        assert_eq!(read::<Value>(fine.as_bytes()).unwrap(), serde_json::from_str::<Value>(fine).unwrap());
        assert_eq!(read::<Value>(b"{}").unwrap(), json!({}));
        assert!(read::<Value>(b"{\"a\":1} x").is_err() && read::<Value>(b"").is_err());
    }
}
