//! Ids of items: by a field of theirs, else by their content.
//!
//! Invariant: the same lines in the same order have the same ids in every process. Of each line that was named only 8 bytes are
//! remembered (about 10 to 20 in memory), so a million lines cost some 20 MB. Two different inputs meet in 8 bytes once in some ten
//! million files of a million lines; then the later one is counted as if it were equal to the earlier one.

use std::collections::{HashMap, HashSet};

use outlast_kernel::ids::RunId;
use outlast_protocol::{ApiError, Code};
use serde_json::{Map, Value};

use crate::limits::{BATCH_ID_CHARS_MAX, BATCH_PREFIX_CHARS, QUOTED_CHARS};

/// The field that holds a line's id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdField {
    /// Its name.
    pub name: String,
    /// Whether it is also a parameter of the flow; if not, it is taken out of the input.
    pub is_parameter: bool,
}

/// Reads the name of a batch.
///
/// # Errors
/// What no id may begin with, in words.
pub fn batch_name(text: &str) -> Result<String, String> {
    match RunId::new(text) {
        Ok(_) if text.chars().count() <= BATCH_PREFIX_CHARS => Ok(text.to_owned()),
        Ok(_) => Err(format!("a name has at most {BATCH_PREFIX_CHARS} characters")),
        Err(error) => Err(error.to_string()),
    }
}

/// Gives lines their ids.
#[derive(Debug)]
pub struct Naming {
    flow: String,
    /// What all ids begin with.
    batch: Option<String>,
    field: Option<IdField>,
    /// Hashes of what was named.
    seen: HashSet<u64>,
    /// How often, for what was seen more than once.
    repeated: HashMap<u64, u32>,
}

impl Naming {
    /// Names inputs of a flow.
    #[must_use]
    pub fn new(flow: &str, field: Option<IdField>) -> Naming {
        Naming { flow: flow.to_owned(), batch: None, field, seen: HashSet::new(), repeated: HashMap::new() }
    }

    /// Names the batch: all ids begin with it, so that the same inputs in another batch are other items.
    #[must_use]
    pub fn of_batch(self, name: Option<&str>) -> Naming {
        Naming { batch: name.map(str::to_owned), ..self }
    }

    /// Returns the id of an input, and the input as the flow takes it.
    ///
    /// # Errors
    /// What is wrong with its id field.
    pub(super) fn name(&mut self, mut input: Map<String, Value>) -> Result<(String, Value), ApiError> {
        let Some(field) = &self.field else {
            let input = Value::Object(input);
            // Objects are kept sorted, so equal inputs have equal text.
            let hash = hash(&[self.flow.as_bytes(), input.to_string().as_bytes()]);
            let flow: String = self.flow.to_lowercase().chars().take(BATCH_PREFIX_CHARS).collect();
            let prefix = self.batch.clone().unwrap_or(flow);
            return Ok((self.counted(&prefix, hash), input));
        };
        let value =
            if field.is_parameter { input.get(&field.name).cloned() } else { input.remove(&field.name) };
        let id = id_in(&field.name, self.batch.as_deref(), value.as_ref())?;
        if !self.seen.insert(short(hash(&[id.as_bytes()]))) {
            let message = format!("the id {id:?} is that of an earlier line");
            return Err(ApiError::new(Code::Conflict, message).at(&field.name));
        }
        Ok((id, Value::Object(input)))
    }

    /// Returns the id of a line that cannot be read, by the hash of its bytes.
    pub(super) fn name_broken(&mut self, hash: blake3::Hash) -> String {
        self.counted("broken", hash)
    }

    /// Makes an id of a hash and its ordinal among equals.
    fn counted(&mut self, prefix: &str, hash: blake3::Hash) -> String {
        let id = format!("{prefix}-{}", &hash.to_hex()[..32]);
        if self.seen.insert(short(hash)) {
            return id;
        }
        let ordinal = self.repeated.entry(short(hash)).or_insert(1);
        *ordinal += 1;
        format!("{id}.{ordinal}")
    }
}

fn id_in(field: &str, batch: Option<&str>, value: Option<&Value>) -> Result<String, ApiError> {
    let wrong = |message: String| Err(ApiError::new(Code::Invalid, message).at(field));
    let id = match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) if number.is_u64() => number.to_string(),
        Some(_) => return wrong(format!("the field {field:?} is no id: text or a whole number is expected")),
        None => return wrong(format!("the field {field:?} is missing, which holds the line's id")),
    };
    let id = batch.map_or_else(|| id.clone(), |batch| format!("{batch}-{id}"));
    let shown: String = id.chars().take(QUOTED_CHARS).collect();
    if id.chars().count() > BATCH_ID_CHARS_MAX {
        return wrong(format!("the id {shown:?}… is over {BATCH_ID_CHARS_MAX} characters"));
    }
    match RunId::new(&id) {
        Ok(_) => Ok(id),
        Err(error) => wrong(error.to_string()),
    }
}

/// Hashes parts so that no two lists of parts run together.
fn hash(parts: &[&[u8]]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
    }
    hasher.finalize()
}

fn short(hash: blake3::Hash) -> u64 {
    let mut low = [0; 8];
    low.copy_from_slice(&hash.as_bytes()[..8]);
    u64::from_le_bytes(low)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn named(naming: &mut Naming, input: &Value) -> Result<(String, Value), ApiError> {
        let Value::Object(input) = input.clone() else { panic!("an object is expected") };
        naming.name(input)
    }

    #[test]
    fn equal_content_has_equal_ids_wherever_it_stands_and_ordinals_tell_equals_apart() {
        let lines =
            [json!({"b": 1, "a": 2}), json!({"x": 1}), json!({"a": 2, "b": 1}), json!({"a": 2, "b": 1})];
        let ids = |order: &[usize]| -> Vec<String> {
            let mut naming = Naming::new("Report", None);
            order.iter().map(|at| named(&mut naming, &lines[*at]).unwrap().0).collect()
        };
        let first = ids(&[0, 1, 2, 3]);
        let base = first[0].clone();
        assert!(base.starts_with("report-") && RunId::new(&base).is_ok(), "{base}");
        assert_eq!(first[2..], [format!("{base}.2"), format!("{base}.3")]);
        assert_eq!(ids(&[1, 0]), [first[1].clone(), base.clone()]);
        let mut again = Naming::new("Report", None).of_batch(Some("may"));
        assert_eq!(named(&mut again, &lines[0]).unwrap().0, base.replace("report-", "may-"));
        let mut other = Naming::new("Other", None);
        assert!(!named(&mut other, &lines[0]).unwrap().0.ends_with(&base["report-".len()..]));
    }

    #[test]
    fn a_batch_has_a_name_that_ids_may_begin_with() {
        assert_eq!(batch_name("may-2027"), Ok("may-2027".to_owned()));
        for wrong in ["", "a b", "x/y", &"n".repeat(25)] {
            assert!(batch_name(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_id_field_names_each_line_once() {
        let field = |is_parameter| Some(IdField { name: "id".to_owned(), is_parameter });
        let mut naming = Naming::new("F", field(false));
        assert_eq!(
            named(&mut naming, &json!({"id": "a-1", "x": 1})).unwrap(),
            ("a-1".into(), json!({"x": 1}))
        );
        assert_eq!(named(&mut naming, &json!({"id": 7})).unwrap(), ("7".into(), json!({})));
        let mut again = Naming::new("F", field(false)).of_batch(Some("may"));
        assert_eq!(named(&mut again, &json!({"id": 7})).unwrap().0, "may-7");
        let mut kept = Naming::new("F", field(true));
        assert_eq!(named(&mut kept, &json!({"id": "a"})).unwrap().1, json!({"id": "a"}));
        for (line, code) in [
            (json!({"id": "a-1"}), Code::Conflict),
            (json!({}), Code::Invalid),
            (json!({"id": -1}), Code::Invalid),
            (json!({"id": null}), Code::Invalid),
            (json!({"id": "a b"}), Code::Invalid),
            (json!({"id": ""}), Code::Invalid),
            (json!({"id": "x".repeat(121)}), Code::Invalid),
        ] {
            let error = named(&mut naming, &line).unwrap_err();
            assert_eq!((error.code, error.at.as_deref()), (code, Some("id")), "{line}");
        }
    }
}
