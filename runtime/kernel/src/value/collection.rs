//! Lists, maps, records and JSON, each with its size and depth kept beside it.
//!
//! Leaves limits to [`super::Value::checked`]. Invariant: `size` and `depth` are exact after every change.

use std::sync::Arc;

use rpds::{RedBlackTreeMapSync, VectorSync};

use super::{Oversize, Value};
use crate::Json;
use crate::limits::VALUE_DEPTH_MAX;

/// A persistent list: appending shares the rest.
#[derive(Clone, Debug)]
pub struct List {
    items: VectorSync<Value>,
    size: u64,
    depth: u16,
}

impl Default for List {
    fn default() -> List {
        List { items: VectorSync::new_sync(), size: 16, depth: 1 }
    }
}

impl List {
    /// Appends an item.
    pub fn push(&mut self, item: Value) {
        self.size += item.size() + 8;
        self.depth = self.depth.max(item.depth().saturating_add(1));
        self.items.push_back_mut(item);
    }

    /// Returns an item.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&Value> {
        self.items.get(index)
    }

    /// Returns how many items there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Says whether there are no items.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Walks over the items in order.
    pub fn iter(&self) -> impl Iterator<Item = &Value> {
        self.items.iter()
    }

    /// Returns the rough size in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns how deeply it nests.
    #[must_use]
    pub fn depth(&self) -> u16 {
        self.depth
    }
}

impl FromIterator<Value> for List {
    fn from_iter<I: IntoIterator<Item = Value>>(items: I) -> List {
        let mut list = List::default();
        for item in items {
            list.push(item);
        }
        list
    }
}

/// A persistent map in byte order of its keys.
#[derive(Clone, Debug)]
pub struct Map {
    entries: RedBlackTreeMapSync<Arc<str>, Value>,
    size: u64,
    depth: u16,
}

impl Default for Map {
    fn default() -> Map {
        Map { entries: RedBlackTreeMapSync::new_sync(), size: 16, depth: 1 }
    }
}

impl Map {
    /// Sets an entry.
    pub fn insert(&mut self, key: Arc<str>, value: Value) {
        let entry = |value: &Value| value.size() + 24;
        let replaced = self.entries.get(&key).map(|old| (entry(old), old.depth()));
        self.size += entry(&value);
        self.size += if replaced.is_some() { 0 } else { key.len() as u64 };
        self.depth = self.depth.max(value.depth().saturating_add(1));
        self.entries.insert_mut(key, value);
        if let Some((size, depth)) = replaced {
            self.size -= size;
            if depth + 1 == self.depth {
                let deepest = self.entries.values().map(Value::depth).max().unwrap_or(0);
                self.depth = deepest + 1;
            }
        }
    }

    /// Returns the value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.entries.get(key)
    }

    /// Returns how many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.size()
    }

    /// Says whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Walks over the entries in byte order of the keys.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &Value)> {
        self.entries.iter()
    }

    /// Returns the rough size in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns how deeply it nests.
    #[must_use]
    pub fn depth(&self) -> u16 {
        self.depth
    }
}

/// The tag and the field names of a record, shared by all records of a type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shape {
    tag: Option<Arc<str>>,
    names: Box<[Arc<str>]>,
}

impl Shape {
    /// Makes a shape.
    #[must_use]
    pub fn new<'a>(tag: Option<&str>, names: impl Iterator<Item = &'a str>) -> Arc<Shape> {
        Arc::new(Shape { tag: tag.map(Arc::from), names: names.map(Arc::from).collect() })
    }

    /// Returns the tag of a variant or error.
    #[must_use]
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// Returns the names of the fields in declared order.
    #[must_use]
    pub fn names(&self) -> &[Arc<str>] {
        &self.names
    }
}

/// A record, a variant or an error.
#[derive(Clone, Debug)]
pub struct Record {
    shape: Arc<Shape>,
    values: Box<[Value]>,
    size: u64,
    depth: u16,
}

impl Record {
    /// Makes a record; there are as many values as the shape has names.
    #[must_use]
    pub fn new(shape: Arc<Shape>, values: Box<[Value]>) -> Record {
        debug_assert_eq!(shape.names.len(), values.len(), "one value for each name");
        let size = values.iter().map(|value| value.size() + 8).sum::<u64>() + 24;
        let depth = values.iter().map(Value::depth).max().unwrap_or(0).saturating_add(1);
        Record { shape, values, size, depth }
    }

    /// Returns the shape.
    #[must_use]
    pub fn shape(&self) -> &Arc<Shape> {
        &self.shape
    }

    /// Returns a field.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        let at = self.shape.names.iter().position(|known| &**known == name)?;
        self.values.get(at)
    }

    /// Walks over the fields in declared order.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &Value)> {
        self.shape.names.iter().zip(self.values.iter())
    }

    /// Returns the rough size in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns how deeply it nests.
    #[must_use]
    pub fn depth(&self) -> u16 {
        self.depth
    }
}

/// JSON with its size and depth.
#[derive(Clone, Debug)]
pub struct JsonValue {
    json: Json,
    size: u64,
    depth: u16,
}

impl JsonValue {
    /// Measures JSON.
    ///
    /// # Errors
    /// [`Oversize::Depth`] if it nests too deeply.
    pub fn new(json: Json) -> Result<JsonValue, Oversize> {
        let (size, depth) = measure(&json, 0).ok_or(Oversize::Depth)?;
        Ok(JsonValue { json, size, depth })
    }

    /// Returns the JSON.
    #[must_use]
    pub fn json(&self) -> &Json {
        &self.json
    }

    /// Returns the rough size in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns how deeply it nests.
    #[must_use]
    pub fn depth(&self) -> u16 {
        self.depth
    }
}

/// Returns size and depth; none if it is too deep.
fn measure(json: &Json, level: u16) -> Option<(u64, u16)> {
    if level > VALUE_DEPTH_MAX {
        return None;
    }
    let mut size = 16;
    let mut depth = 0;
    let mut child = |json: &Json| {
        let (bytes, levels) = measure(json, level + 1)?;
        size += bytes + 8;
        depth = depth.max(levels + 1);
        Some(())
    };
    match json {
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
        Json::String(text) => size += text.len() as u64,
        Json::Array(items) => {
            for item in items {
                child(item)?;
            }
            depth = depth.max(1);
        }
        Json::Object(fields) => {
            for field in fields.values() {
                child(field)?;
            }
            size += fields.keys().map(|key| key.len() as u64).sum::<u64>();
            depth = depth.max(1);
        }
    }
    Some((size, depth))
}
