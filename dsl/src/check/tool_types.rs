//! The types of tools' arguments, out of the JSON Schemas of a catalogue.
//!
//! `dev.ReadFile` are the arguments of the tool `read_file` of the catalogue `dev`. Leaves what is sent to a tool to the flow.
//! Invariant: whatever has one of these types is what the schema asks for, as far as the type tells; what a type cannot tell is
//! `json`, and the type knows what was lost.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::declare::CatalogueText;
use super::tables::{FieldSig, Shape, Spot, Tables, TypeSig, VariantSig};
use super::ty::Ty;
use crate::machine::{Catalogue, CatalogueIx, TypeIx};
use crate::syntax::words::to_upper_name;

/// A type of a catalogue.
#[derive(Clone, Debug)]
pub(crate) struct ToolType {
    pub(crate) ty: Ty,
    /// The tool whose arguments it holds; none for a part of them.
    pub(crate) tool: Option<String>,
    /// What the schema says and the type does not.
    pub(crate) losses: Vec<String>,
}

/// Declares the types of all catalogues.
pub(crate) fn declare(catalogues: &[Catalogue], texts: &[CatalogueText], tables: &mut Tables) {
    for (at, (catalogue, text)) in catalogues.iter().zip(texts).enumerate() {
        let ix = CatalogueIx(u32::try_from(at).unwrap_or(u32::MAX));
        for tool in &catalogue.tools {
            let mut reader = Reader {
                tables,
                catalogue: ix,
                prefix: &catalogue.name,
                root: &tool.input,
                spot: text.spot,
                known: BTreeMap::new(),
                losses: Vec::new(),
            };
            let name = reader.free_name(&to_upper_name(&tool.name));
            let ty = reader.arguments(&name);
            let losses = reader.losses;
            let of_tool = ToolType { ty, tool: Some(tool.name.clone()), losses };
            tables.tool_types.insert((ix, name), of_tool);
        }
    }
}

struct Reader<'r> {
    tables: &'r mut Tables,
    catalogue: CatalogueIx,
    /// The catalogue's name.
    prefix: &'r str,
    /// The schema that references point into.
    root: &'r Value,
    spot: Spot,
    /// What references mean; none while it is being read.
    known: BTreeMap<String, Option<Ty>>,
    losses: Vec<String>,
}

impl Reader<'_> {
    /// A name that no other type of the catalogue has.
    fn free_name(&self, wanted: &str) -> String {
        let begins = wanted.starts_with(|c: char| c.is_ascii_uppercase());
        let mut name = if begins { wanted.to_owned() } else { format!("Tool{wanted}") };
        while self.tables.tool_types.contains_key(&(self.catalogue, name.clone())) {
            name.push('2');
        }
        name
    }

    /// The arguments of the tool: an object, if it takes none an empty one.
    fn arguments(&mut self, name: &str) -> Ty {
        match self.root.as_object() {
            Some(object) if !object.contains_key("$ref") && !has_alternatives(object) => {
                self.record(object, name, "")
            }
            Some(_) | None => self.ty(self.root, name, ""),
        }
    }

    /// The type of a schema; `name` is for what needs one, `at` says where it stands.
    fn ty(&mut self, schema: &Value, name: &str, at: &str) -> Ty {
        let Some(object) = schema.as_object() else { return Ty::Json };
        if let Some(reference) = object.get("$ref").and_then(Value::as_str) {
            return self.referred(reference, name, at);
        }
        if let Some(alternatives) = alternatives(object) {
            return self.union(alternatives, name, at);
        }
        if let Some(values) = object.get("enum").and_then(Value::as_array) {
            return self.joined(values.iter().map(constant), at);
        }
        if let Some(value) = object.get("const") {
            return self.joined([constant(value)].into_iter(), at);
        }
        let ty = match object.get("type") {
            Some(Value::String(word)) => self.of_word(word, object, name, at),
            Some(Value::Array(words)) => {
                let of = |reader: &mut Self, word: &Value| match word.as_str() {
                    Some("null") => Some(Ty::option(Ty::Unknown)),
                    Some(word) => Some(reader.of_word(word, object, name, at)),
                    None => None,
                };
                let all: Vec<Option<Ty>> = words.iter().map(|word| of(self, word)).collect();
                self.joined(all.into_iter(), at)
            }
            Some(_) => self.lost(at, "its type is no word"),
            None if object.contains_key("properties") => self.of_word("object", object, name, at),
            None => Ty::Json,
        };
        let nullable = object.get("nullable") == Some(&Value::Bool(true));
        if nullable { Ty::option(ty) } else { ty }
    }

    fn of_word(&mut self, word: &str, object: &Map<String, Value>, name: &str, at: &str) -> Ty {
        match word {
            "string" => match (object.get("format"), object.get("contentEncoding")) {
                (Some(Value::String(format)), _) if format == "date-time" => Ty::Time,
                (_, Some(Value::String(encoding))) if encoding == "base64" => Ty::Bytes,
                _ => Ty::Text,
            },
            "integer" => Ty::Int,
            "number" => Ty::Float,
            "boolean" => Ty::Bool,
            "array" => match object.get("items") {
                Some(items @ Value::Object(_)) => {
                    let item = self.ty(items, name, &format!("{at}[]"));
                    Ty::list(item)
                }
                Some(_) | None => Ty::list(Ty::Json),
            },
            "object" => match object.get("properties").and_then(Value::as_object) {
                Some(_) => self.record(object, name, at),
                None => match object.get("additionalProperties") {
                    Some(values @ Value::Object(_)) => {
                        Ty::Map(Box::new(self.ty(values, name, &format!("{at}.*"))))
                    }
                    Some(_) | None => Ty::Map(Box::new(Ty::Json)),
                },
            },
            word => self.lost(at, &format!("there is no type `{word}`")),
        }
    }

    fn record(&mut self, object: &Map<String, Value>, name: &str, at: &str) -> Ty {
        let required = required(object);
        if let Some(bad) = required.iter().find(|name| !is_field(name)) {
            return self.lost(at, &format!("it needs `{bad}`, which is no name of a field"));
        }
        let ix = self.push(name, at);
        let fields = self.fields(ix, object, name, at, None);
        self.tables.types[ix.at()].shape = Shape::Record(fields);
        Ty::Named(ix)
    }

    /// Declares a type that has no fields yet, so that its fields can name it.
    fn push(&mut self, name: &str, at: &str) -> TypeIx {
        let ix = TypeIx(u32::try_from(self.tables.types.len()).unwrap_or(u32::MAX));
        let shape = Shape::Record(Vec::new());
        let full = format!("{}.{name}", self.prefix);
        self.tables.types.push(TypeSig { name: full, shape, spot: self.spot });
        if !at.is_empty() {
            let part = ToolType { ty: Ty::Named(ix), tool: None, losses: Vec::new() };
            self.tables.tool_types.insert((self.catalogue, name.to_owned()), part);
        }
        ix
    }

    /// The properties of an object but its tag.
    fn fields(
        &mut self,
        of: TypeIx,
        object: &Map<String, Value>,
        name: &str,
        at: &str,
        tag: Option<&str>,
    ) -> Vec<FieldSig> {
        let required = required(object);
        let properties = object.get("properties").and_then(Value::as_object).into_iter().flatten();
        let mut fields = Vec::new();
        for (property, schema) in properties.filter(|(property, _)| Some(property.as_str()) != tag) {
            let place = if at.is_empty() { property.clone() } else { format!("{at}.{property}") };
            if !is_field(property) {
                self.losses.push(format!("`{place}` cannot be given: it is no name of a field"));
                continue;
            }
            let inner = self.free_name(&format!("{name}{}", to_upper_name(property)));
            let ty = self.ty(schema, &inner, &place);
            let ty = if required.contains(&property.as_str()) { ty } else { Ty::option(ty) };
            if let Some(values) = literals(schema) {
                self.tables.literals.insert((of, property.clone()), values);
            }
            fields.push(FieldSig { name: property.clone(), ty, default: None, spot: self.spot });
        }
        fields
    }

    fn referred(&mut self, reference: &str, name: &str, at: &str) -> Ty {
        match self.known.get(reference) {
            Some(Some(ty)) => return ty.clone(),
            Some(None) => return self.lost(at, "it contains itself"),
            None => {}
        }
        let root = self.root;
        let target = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        let Some(target) = target else {
            return self.lost(at, &format!("`{reference}` is not in the schema"));
        };
        self.known.insert(reference.to_owned(), None);
        let ty = self.ty(target, name, at);
        self.known.insert(reference.to_owned(), Some(ty.clone()));
        ty
    }

    /// `oneOf`, `anyOf`, `allOf`.
    fn union(&mut self, alternatives: &[Value], name: &str, at: &str) -> Ty {
        let is_null = |schema: &&Value| schema.get("type") == Some(&Value::String("null".to_owned()));
        let real: Vec<&Value> = alternatives.iter().filter(|schema| !is_null(schema)).collect();
        let optional = real.len() < alternatives.len();
        let ty = match (real.as_slice(), self.variants(&real)) {
            ([one], _) => self.ty(one, name, at),
            (_, Some(variants)) => {
                let ix = self.push(name, if at.is_empty() { "." } else { at });
                let all = variants.iter().map(|(tag, object)| {
                    let inner = format!("{name}{tag}");
                    let fields = self.fields(ix, object, &inner, &format!("{at}.{tag}"), Some("type"));
                    VariantSig { name: tag.clone(), fields }
                });
                let all = all.collect();
                self.tables.types[ix.at()].shape = Shape::Union(all);
                Ty::Named(ix)
            }
            (all, None) if all.iter().all(|one| one.get("properties").is_none()) => {
                let types: Vec<Option<Ty>> = all.iter().map(|one| Some(self.ty(one, name, at))).collect();
                self.joined(types.into_iter(), at)
            }
            (_, None) => {
                self.lost(at, "its alternatives are not told apart by a `type` with an upper-case name")
            }
        };
        if optional { Ty::option(ty) } else { ty }
    }

    /// The alternatives if each is an object with another constant in its property `type`: as Flow writes variants.
    fn variants(&self, alternatives: &[&Value]) -> Option<Vec<(String, Map<String, Value>)>> {
        let mut all: Vec<(String, Map<String, Value>)> = Vec::new();
        for one in alternatives {
            let mut object = one.as_object()?;
            if let Some(reference) = object.get("$ref").and_then(Value::as_str) {
                object = self.root.pointer(reference.strip_prefix('#')?)?.as_object()?;
            }
            let tag = object.get("properties")?.get("type")?.get("const")?.as_str()?;
            let fits = to_upper_name(tag) == tag && !all.iter().any(|(known, _)| known == tag);
            if !fits || !required(object).iter().all(|name| is_field(name)) {
                return None;
            }
            all.push((tag.to_owned(), object.clone()));
        }
        (all.len() > 1).then_some(all)
    }

    /// The one type of several values or alternatives.
    fn joined(&mut self, all: impl Iterator<Item = Option<Ty>>, at: &str) -> Ty {
        let mut joined = Ty::Unknown;
        for ty in all {
            let next = match (&joined, ty) {
                (_, None) => None,
                (Ty::Int, Some(Ty::Float)) | (Ty::Float, Some(Ty::Int)) => Some(Ty::Float),
                (joined, Some(ty)) => joined.join(&ty),
            };
            match next {
                Some(next) => joined = next,
                None => return self.lost(at, "its values have no type in common"),
            }
        }
        if joined.is_unknown() { Ty::Json } else { joined }
    }

    fn lost(&mut self, at: &str, why: &str) -> Ty {
        let what = if at.is_empty() { "it".to_owned() } else { format!("`{at}`") };
        self.losses.push(format!("{what} is `json`: {why}"));
        Ty::Json
    }
}

fn required(object: &Map<String, Value>) -> Vec<&str> {
    let names = object.get("required").and_then(Value::as_array);
    names.map(|names| names.iter().filter_map(Value::as_str).collect()).unwrap_or_default()
}

fn has_alternatives(object: &Map<String, Value>) -> bool {
    alternatives(object).is_some()
}

fn alternatives(object: &Map<String, Value>) -> Option<&[Value]> {
    if let Some(Value::Array(all)) = object.get("allOf")
        && all.len() == 1
    {
        return Some(all);
    }
    let all = object.get("oneOf").or_else(|| object.get("anyOf")).and_then(Value::as_array)?;
    (!object.contains_key("properties")).then_some(all.as_slice())
}

/// The texts that a schema allows, if it names them.
fn literals(schema: &Value) -> Option<Vec<String>> {
    let values = match (schema.get("enum"), schema.get("const")) {
        (Some(Value::Array(values)), _) => values.as_slice(),
        (_, Some(value)) => std::slice::from_ref(value),
        _ => return None,
    };
    values.iter().map(|value| value.as_str().map(str::to_owned)).collect()
}

fn constant(value: &Value) -> Option<Ty> {
    match value {
        Value::Null => Some(Ty::option(Ty::Unknown)),
        Value::Bool(_) => Some(Ty::Bool),
        Value::Number(number) => Some(if number.is_i64() { Ty::Int } else { Ty::Float }),
        Value::String(_) => Some(Ty::Text),
        Value::Array(_) | Value::Object(_) => None,
    }
}

/// Whether Flow can write a property as a field.
fn is_field(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_lowercase() || c == '_')
        && chars.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}
