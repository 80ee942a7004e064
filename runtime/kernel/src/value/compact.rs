//! The stored form of values: lossless, self-describing, one level of nesting for each level of the value.
//!
//! Truth values, integers, text and nothing stand for themselves; everything else is a sequence that begins with a letter:
//! `n` none, `f` float (bits), `d` decimal, `b` bytes (base64), `t` time, `u` duration, `l` list, `m` map, `r` record (tag, then
//! names and values in turn), `j` JSON (canonical text), `s` secret. Invariant: reading what was written gives an equal value.

use std::fmt;
use std::sync::Arc;

use serde::de::{Error, SeqAccess, Visitor};
use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{JsonValue, List, Map, Record, Shape, Value};
use crate::ids::Millis;
use crate::json::canonical_text;
use crate::text::{base64_text, parse_base64};

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Nothing => serializer.serialize_unit(),
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::Int(value) => serializer.serialize_i64(*value),
            Value::Text(text) => serializer.serialize_str(text),
            Value::None => ("n",).serialize(serializer),
            Value::Float(value) => ("f", value.to_bits()).serialize(serializer),
            Value::Decimal(value) => ("d", value.to_string()).serialize(serializer),
            Value::Bytes(bytes) => ("b", base64_text(bytes)).serialize(serializer),
            Value::Time(time) => ("t", time.0).serialize(serializer),
            Value::Duration(ms) => ("u", ms).serialize(serializer),
            Value::Json(json) => ("j", canonical_text(json.json())).serialize(serializer),
            Value::Secret(name) => ("s", &**name).serialize(serializer),
            Value::List(list) => {
                let mut seq = serializer.serialize_seq(Some(1 + list.len()))?;
                seq.serialize_element("l")?;
                for item in list.iter() {
                    seq.serialize_element(item)?;
                }
                seq.end()
            }
            Value::Map(map) => {
                let mut seq = serializer.serialize_seq(Some(1 + 2 * map.len()))?;
                seq.serialize_element("m")?;
                for (key, value) in map.iter() {
                    seq.serialize_element(&**key)?;
                    seq.serialize_element(value)?;
                }
                seq.end()
            }
            Value::Record(record) => {
                let mut seq = serializer.serialize_seq(Some(2 + 2 * record.shape().names().len()))?;
                seq.serialize_element("r")?;
                seq.serialize_element(&record.shape().tag())?;
                for (name, value) in record.iter() {
                    seq.serialize_element(&**name)?;
                    seq.serialize_element(value)?;
                }
                seq.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a stored value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Nothing)
    }

    fn visit_none<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Nothing)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Int(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        i64::try_from(value).map(Value::Int).map_err(E::custom)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        Ok(Value::text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let letter: String = next(&mut seq)?;
        let value = match letter.as_str() {
            "n" => Value::None,
            "f" => Value::float(f64::from_bits(next(&mut seq)?)).ok_or_else(|| bad("float"))?,
            "d" => Value::Decimal(next::<String, A>(&mut seq)?.parse().map_err(A::Error::custom)?),
            "b" => {
                let bytes = parse_base64(&next::<String, A>(&mut seq)?).ok_or_else(|| bad("base64"))?;
                Value::Bytes(bytes.into())
            }
            "t" => Value::Time(Millis(next(&mut seq)?)),
            "u" => Value::Duration(next(&mut seq)?),
            "s" => Value::Secret(next::<String, A>(&mut seq)?.into()),
            "j" => {
                let text: String = next(&mut seq)?;
                let json = serde_json::from_str(&text).map_err(A::Error::custom)?;
                Value::Json(Arc::new(JsonValue::new(json).map_err(|_| bad("depth"))?))
            }
            "l" => {
                let mut list = List::default();
                while let Some(item) = seq.next_element()? {
                    list.push(item);
                }
                Value::List(list)
            }
            "m" => {
                let mut map = Map::default();
                while let Some(key) = seq.next_element::<String>()? {
                    map.insert(key.into(), next(&mut seq)?);
                }
                Value::Map(map)
            }
            "r" => record(&mut seq)?,
            other => return Err(A::Error::custom(format!("{other:?} begins no stored value"))),
        };
        Ok(value)
    }
}

fn record<'de, A: SeqAccess<'de>>(seq: &mut A) -> Result<Value, A::Error> {
    let tag: Option<String> = next(seq)?;
    let (mut names, mut values) = (Vec::new(), Vec::new());
    while let Some(name) = seq.next_element::<String>()? {
        names.push(name);
        values.push(next(seq)?);
    }
    let shape = Shape::new(tag.as_deref(), names.iter().map(String::as_str));
    Ok(Value::Record(Arc::new(Record::new(shape, values.into()))))
}

fn next<'de, T: Deserialize<'de>, A: SeqAccess<'de>>(seq: &mut A) -> Result<T, A::Error> {
    seq.next_element()?.ok_or_else(|| bad("length"))
}

fn bad<E: Error>(what: &str) -> E {
    E::custom(format!("a stored value has a wrong {what}"))
}
