//! From JSON to values of a type.
//!
//! Leaves the question who may send what to its callers. Invariant: what is read has the type, keeps the limits, and has all
//! defaults filled in; a mismatch says where, what was expected and what was found.

use std::sync::Arc;

use outlast_dsl::machine::{FieldDef, Machine, Type, TypeKind, VariantDef};
use rust_decimal::Decimal;

use crate::Json;
use crate::eval::constant;
use crate::limits::{QUOTE_CHARS_MAX, VALUE_DEPTH_MAX};
use crate::program::Shapes;
use crate::text::{parse_base64, parse_duration, parse_time};
use crate::value::{List, Map, Oversize, Record, Shape, Value, round};

/// Says why JSON is not of a type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{expected} is expected, found {found}", if at.is_empty() { String::new() } else { format!("{at}: ") })]
pub struct Mismatch {
    /// Where, such as `messages[3].role`; empty for the whole.
    pub at: String,
    /// What was expected.
    pub expected: String,
    /// What was found, cut.
    pub found: String,
}

/// What happens to fields that a type does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// They are a mismatch: people and clients should hear of a slip.
    Refuse,
    /// They are dropped: workers may say more than the flow wants to know.
    Drop,
}

/// Reads JSON as a value of a type.
///
/// # Errors
/// [`Mismatch`] if it does not fit.
pub fn json_to_value(machine: &Machine, ty: &Type, json: &Json, unknown: Unknown) -> Result<Value, Mismatch> {
    let shapes = Shapes::new(machine);
    Reader { machine, shapes: &shapes, unknown }.read(ty, json)
}

/// Reads an object by named fields (parameters, a message) into one value for each field.
///
/// # Errors
/// [`Mismatch`] if a field does not fit, is missing or is unknown.
pub(crate) fn fields_to_values(
    reader: &Reader<'_>,
    fields: &[FieldDef],
    json: &Json,
) -> Result<Box<[Value]>, Mismatch> {
    let values = reader.fields(fields, json, At::Whole, false)?;
    let size: u64 = values.iter().map(Value::size).sum();
    if size > crate::limits::VALUE_BYTES_MAX {
        return Err(oversize(Oversize::Bytes));
    }
    Ok(values)
}

/// Reads values of one machine.
pub(crate) struct Reader<'a> {
    pub(crate) machine: &'a Machine,
    pub(crate) shapes: &'a Shapes,
    pub(crate) unknown: Unknown,
}

/// A place in a document, linked towards the root.
#[derive(Clone, Copy)]
enum At<'a> {
    Whole,
    Field(&'a At<'a>, &'a str),
    Item(&'a At<'a>, usize),
}

impl At<'_> {
    fn text(&self) -> String {
        match self {
            At::Whole => String::new(),
            At::Field(up, name) => match up.text() {
                up if up.is_empty() => (*name).to_owned(),
                up => format!("{up}.{name}"),
            },
            At::Item(up, index) => format!("{}[{index}]", up.text()),
        }
    }

    fn level(&self) -> u16 {
        match self {
            At::Whole => 0,
            At::Field(up, _) | At::Item(up, _) => up.level() + 1,
        }
    }
}

fn oversize(oversize: Oversize) -> Mismatch {
    let expected = match oversize {
        Oversize::Bytes => format!("a value of at most {} bytes", crate::limits::VALUE_BYTES_MAX),
        Oversize::Depth => format!("a value of at most {VALUE_DEPTH_MAX} levels"),
    };
    Mismatch { at: String::new(), expected, found: "more".to_owned() }
}

fn found(json: &Json) -> String {
    match json {
        Json::Array(items) => format!("a list of {}", items.len()),
        Json::Object(fields) => {
            let names: Vec<_> = fields.keys().take(6).map(String::as_str).collect();
            format!(
                "an object with {}",
                if names.is_empty() { "no fields".to_owned() } else { names.join(", ") }
            )
        }
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {
            let text = json.to_string();
            match text.char_indices().nth(QUOTE_CHARS_MAX) {
                Some((end, _)) => format!("{}…", &text[..end]),
                None => text,
            }
        }
    }
}

fn wrong(at: At<'_>, expected: impl Into<String>, json: &Json) -> Mismatch {
    Mismatch { at: at.text(), expected: expected.into(), found: found(json) }
}

impl Reader<'_> {
    /// Reads JSON as a value of a type.
    pub(crate) fn read(&self, ty: &Type, json: &Json) -> Result<Value, Mismatch> {
        self.value(ty, json, At::Whole)?.checked().map_err(oversize)
    }

    fn value(&self, ty: &Type, json: &Json, at: At<'_>) -> Result<Value, Mismatch> {
        if at.level() > VALUE_DEPTH_MAX {
            return Err(oversize(Oversize::Depth));
        }
        match ty {
            Type::Option(_) if json.is_null() => Ok(Value::None),
            Type::Option(inner) => self.value(inner, json, at),
            Type::List(inner) => {
                let items = json.as_array().ok_or_else(|| wrong(at, "a list", json))?;
                let read = |(i, item)| self.value(inner, item, At::Item(&at, i));
                Ok(Value::List(items.iter().enumerate().map(read).collect::<Result<List, _>>()?))
            }
            Type::Map(inner) => {
                let fields = json.as_object().ok_or_else(|| wrong(at, "an object", json))?;
                let mut map = Map::default();
                for (key, value) in fields {
                    map.insert(key.as_str().into(), self.value(inner, value, At::Field(&at, key))?);
                }
                Ok(Value::Map(map))
            }
            Type::Named(ix) => self.named(ix.at(), json, at),
            Type::Slot(_) | Type::Verdict(_) | Type::Ended(_) => self.built_in_union(ty, json, at),
            Type::Problem | Type::Doubt(_) => {
                let fields = built_in_fields(ty);
                let shape = Shape::new(None, fields.iter().map(|field| field.name.as_str()));
                self.record(&shape, &fields, json, at)
            }
            Type::Approved(_) => {
                Err(wrong(at, "a value that a person or a policy approved in this run", json))
            }
            Type::Nothing
            | Type::Text
            | Type::Int
            | Type::Float
            | Type::Decimal
            | Type::Bool
            | Type::Time
            | Type::Duration
            | Type::Bytes
            | Type::Json
            | Type::Secret
            | Type::Handle(_) => scalar(ty, json, at, self.unknown),
        }
    }

    fn named(&self, ix: usize, json: &Json, at: At<'_>) -> Result<Value, Mismatch> {
        let def = &self.machine.types[ix];
        let shapes = self.shapes.of(ix);
        match &def.kind {
            TypeKind::Record(fields) => self.record(&shapes[0], fields, json, at),
            TypeKind::Error(fields) => match json.get("type").and_then(Json::as_str) {
                Some(tag) if tag == def.name => self.record(&shapes[0], fields, json, at),
                None if json.is_object() => self.record(&shapes[0], fields, json, at),
                Some(_) | None => Err(wrong(at, format!("an object with \"type\": \"{}\"", def.name), json)),
            },
            TypeKind::Union(variants) => {
                let at_tag = self.variant(variants, json, at)?;
                self.record(&shapes[at_tag], &variants[at_tag].fields, json, at)
            }
        }
    }

    /// Finds the variant that the tag names.
    fn variant(&self, variants: &[VariantDef], json: &Json, at: At<'_>) -> Result<usize, Mismatch> {
        let tag = json.get("type").and_then(Json::as_str);
        let known = tag.and_then(|tag| variants.iter().position(|variant| variant.name == tag));
        known.ok_or_else(|| {
            let names: Vec<_> = variants.iter().map(|variant| format!("\"{}\"", variant.name)).collect();
            let expected = format!("an object whose \"type\" is {}", names.join(" or "));
            match tag {
                Some(tag) => wrong(At::Field(&at, "type"), expected, &Json::from(tag)),
                None => wrong(at, expected, json),
            }
        })
    }

    fn built_in_union(&self, ty: &Type, json: &Json, at: At<'_>) -> Result<Value, Mismatch> {
        let variants = built_in_variants(ty);
        let variant = &variants[self.variant(&variants, json, at)?];
        let shape = Shape::new(Some(&variant.name), variant.fields.iter().map(|field| field.name.as_str()));
        self.record(&shape, &variant.fields, json, at)
    }

    fn record(
        &self,
        shape: &Arc<Shape>,
        fields: &[FieldDef],
        json: &Json,
        at: At<'_>,
    ) -> Result<Value, Mismatch> {
        let values = self.fields(fields, json, at, shape.tag().is_some())?;
        Ok(Value::Record(Arc::new(Record::new(Arc::clone(shape), values))))
    }

    fn fields(
        &self,
        fields: &[FieldDef],
        json: &Json,
        at: At<'_>,
        tagged: bool,
    ) -> Result<Box<[Value]>, Mismatch> {
        let object = json.as_object().ok_or_else(|| wrong(at, "an object", json))?;
        if self.unknown == Unknown::Refuse {
            let is_known = |key: &str| (tagged && key == "type") || fields.iter().any(|f| f.name == key);
            if let Some(key) = object.keys().find(|key| !is_known(key)) {
                let names: Vec<_> = fields.iter().map(|field| field.name.as_str()).collect();
                let expected = match names.as_slice() {
                    [] => "no field".to_owned(),
                    names => format!("no field but {}", names.join(", ")),
                };
                let found = format!("the field {}", found(&Json::String(key.clone())));
                return Err(Mismatch { at: at.text(), expected, found });
            }
        }
        let read = |field: &FieldDef| match (object.get(&field.name), &field.default) {
            (Some(json), _) => self.value(&field.ty, json, At::Field(&at, &field.name)),
            (None, Some(default)) => constant(self.machine, self.shapes, default).map_err(|fault| Mismatch {
                at: At::Field(&at, &field.name).text(),
                expected: "a default that can be computed".to_owned(),
                found: fault.to_string(),
            }),
            (None, None) if matches!(field.ty, Type::Option(_)) => Ok(Value::None),
            (None, None) => Err(Mismatch {
                at: At::Field(&at, &field.name).text(),
                expected: type_words(&field.ty, self.machine),
                found: "nothing".to_owned(),
            }),
        };
        fields.iter().map(read).collect()
    }
}

fn scalar(ty: &Type, json: &Json, at: At<'_>, unknown: Unknown) -> Result<Value, Mismatch> {
    let text = || json.as_str();
    let value = match ty {
        Type::Nothing if json.is_null() || unknown == Unknown::Drop => Some(Value::Nothing),
        Type::Text => text().map(Value::text),
        Type::Int => json.as_i64().or_else(|| whole(json)).map(Value::Int),
        Type::Float => json.as_f64().and_then(Value::float),
        Type::Decimal => decimal(json).map(Value::Decimal),
        Type::Bool => json.as_bool().map(Value::Bool),
        Type::Time => text().and_then(parse_time).map(Value::Time),
        Type::Duration => text().and_then(parse_duration).map(Value::Duration),
        Type::Bytes => text().and_then(parse_base64).map(|bytes| Value::Bytes(bytes.into())),
        Type::Json => return Value::json(json.clone()).map_err(oversize),
        Type::Secret => {
            let name = text().or_else(|| json.get("$secret").and_then(Json::as_str));
            name.map(|name| Value::Secret(name.into()))
        }
        Type::Handle(_) => text().map(Value::text),
        // Types with parts are read above; none of them is a scalar.
        Type::Nothing
        | Type::List(_)
        | Type::Map(_)
        | Type::Option(_)
        | Type::Named(_)
        | Type::Approved(_)
        | Type::Slot(_)
        | Type::Verdict(_)
        | Type::Ended(_)
        | Type::Doubt(_)
        | Type::Problem => None,
    };
    value.ok_or_else(|| wrong(at, scalar_words(ty), json))
}

/// Reads `3.0` as 3: some languages write every number with a point.
fn whole(json: &Json) -> Option<i64> {
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    let float = json.as_f64()?;
    #[expect(clippy::cast_possible_truncation, reason = "whole and below 2^53, so exact")]
    (float.fract() == 0.0 && float.abs() <= EXACT_MAX).then_some(float as i64)
}

fn decimal(json: &Json) -> Option<Decimal> {
    let text = match json {
        Json::String(text) => text.clone(),
        Json::Number(number) => number.to_string(),
        Json::Null | Json::Bool(_) | Json::Array(_) | Json::Object(_) => return None,
    };
    parse_decimal(&text)
}

/// Reads a decimal as the language writes it, or in scientific form.
pub(crate) fn parse_decimal(text: &str) -> Option<Decimal> {
    let parsed = if text.contains(['e', 'E']) { Decimal::from_scientific(text) } else { text.parse() };
    parsed.ok().map(round)
}

fn scalar_words(ty: &Type) -> &'static str {
    match ty {
        Type::Nothing => "null",
        Type::Text => "text",
        Type::Int => "a whole number of at most 64 bits",
        Type::Float => "a number",
        Type::Decimal => "a decimal such as \"0.40\"",
        Type::Bool => "true or false",
        Type::Time => "an RFC 3339 time such as \"2027-03-14T02:30:00Z\"",
        Type::Duration => "a duration such as \"5m\"",
        Type::Bytes => "base64 text",
        Type::Secret => "the name of a secret",
        Type::Handle(_) => "the id of a run",
        Type::Json => "JSON",
        Type::List(_) => "a list",
        Type::Map(_)
        | Type::Option(_)
        | Type::Named(_)
        | Type::Approved(_)
        | Type::Slot(_)
        | Type::Verdict(_)
        | Type::Ended(_)
        | Type::Doubt(_)
        | Type::Problem => "an object",
    }
}

fn type_words(ty: &Type, machine: &Machine) -> String {
    match ty {
        Type::Named(ix) => format!("a {}", machine.type_def(*ix).name),
        other => scalar_words(other).to_owned(),
    }
}

fn field(name: &str, ty: Type) -> FieldDef {
    FieldDef { name: name.to_owned(), ty, default: None }
}

/// Returns the fields of a built-in record.
pub(crate) fn built_in_fields(ty: &Type) -> Vec<FieldDef> {
    let option = |ty| Type::Option(Box::new(ty));
    match ty {
        Type::Approved(inner) => {
            vec![field("value", (**inner).clone()), field("by", Type::List(Box::new(Type::Text)))]
        }
        Type::Doubt(_) => {
            vec![field("text", Type::Text), field("kind", Type::Text), field("activity", Type::Text)]
        }
        Type::Problem => vec![
            field("text", Type::Text),
            field("kind", Type::Text),
            field("activity", option(Type::Text)),
            field("retry_after", option(Type::Duration)),
            field("attempts", Type::Int),
        ],
        _ => Vec::new(),
    }
}

/// Returns the variants of a built-in union.
pub(crate) fn built_in_variants(ty: &Type) -> Vec<VariantDef> {
    let variant = |name: &str, fields| VariantDef { name: name.to_owned(), fields };
    match ty {
        Type::Slot(inner) => vec![
            variant("Done", vec![field("value", (**inner).clone())]),
            variant("Failed", vec![field("error", Type::Problem)]),
            variant("Cut", Vec::new()),
            variant("NotStarted", Vec::new()),
        ],
        Type::Verdict(inner) => vec![
            variant("Happened", vec![field("result", (**inner).clone())]),
            variant("NotHappened", Vec::new()),
            variant("CannotTell", Vec::new()),
        ],
        Type::Ended(inner) => vec![
            variant("Done", vec![field("value", (**inner).clone())]),
            variant("Failed", vec![field("error", Type::Problem)]),
            variant("Cancelled", Vec::new()),
        ],
        _ => Vec::new(),
    }
}
