//! Rewrites schemas into the dialect that providers share.
//!
//! Leaves checking arguments to the tools, and answers to flows. Invariant: what a rewritten schema refuses, the original refuses
//! too, or nearly so: it is an instruction to a model, not the check. Its size is bounded, whatever its references do.

use serde_json::{Map, json};

use crate::Json;
use crate::limits::{SCHEMA_DEPTH_MAX, SCHEMA_NODES_MAX};

/// The form that an answer must have.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AnswerFormat {
    /// The schema, of an object.
    pub(crate) schema: Json,
    /// Whether providers can hold the model to it.
    pub(crate) strict: bool,
    /// The value that was asked for is the field `value`, since providers want an object.
    pub(crate) wrapped: bool,
}

impl AnswerFormat {
    /// The form of answers that fit a schema.
    pub(crate) fn of(schema: &Json) -> AnswerFormat {
        let mut plain = Rewriting::of(schema);
        let wrapped = plain.get("type") != Some(&json!("object"));
        if wrapped {
            plain = json!({"type": "object", "properties": {"value": plain}, "required": ["value"], "additionalProperties": false});
        }
        match strict(&plain) {
            Some(schema) => AnswerFormat { schema, strict: true, wrapped },
            None => AnswerFormat { schema: plain, strict: false, wrapped },
        }
    }

    /// Reads an answer.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn read(&self, text: &str) -> Result<Json, String> {
        let value: Json = serde_json::from_str(bare(text)).map_err(|error| error.to_string())?;
        if !self.wrapped {
            return Ok(value);
        }
        match value {
            Json::Object(mut fields) if fields.len() == 1 && fields.contains_key("value") => {
                Ok(fields.remove("value").unwrap_or_default())
            }
            // A model that was only told may leave out what was put around the value.
            value if !self.strict => Ok(value),
            _ => Err("the field \"value\" is missing".to_owned()),
        }
    }
}

/// The JSON of an answer that stands between marks of code, as models like to write it.
fn bare(text: &str) -> &str {
    let text = text.trim();
    let inner = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    inner.map_or(text, |inner| inner.trim_start_matches("json").trim())
}

/// Rewrites the schema of a tool's arguments: no `$schema`, `$ref`, `const` or lists of types.
pub(crate) fn adapt(schema: &Json) -> Json {
    match schema {
        Json::Object(_) => {
            let mut adapted = Rewriting::of(schema);
            // The arguments of a call are an object, whatever the tool says of itself.
            if adapted.get("type") != Some(&json!("object")) {
                adapted["type"] = json!("object");
            }
            if adapted.get("properties").is_none() {
                adapted["properties"] = json!({});
            }
            adapted
        }
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_) => {
            json!({"type": "object", "properties": {}})
        }
    }
}

/// A schema in the making.
struct Rewriting<'a> {
    root: &'a Json,
    /// The references that are being written out: one that comes again leads nowhere.
    open: Vec<&'a str>,
    depth: usize,
    nodes: usize,
}

impl<'a> Rewriting<'a> {
    fn of(schema: &'a Json) -> Json {
        Rewriting { root: schema, open: Vec::new(), depth: 0, nodes: 0 }.rewrite(schema)
    }

    fn rewrite(&mut self, schema: &'a Json) -> Json {
        let Json::Object(fields) = schema else { return schema.clone() };
        self.nodes += 1;
        if self.depth > SCHEMA_DEPTH_MAX || self.nodes > SCHEMA_NODES_MAX {
            return json!({});
        }
        self.depth += 1;
        let rewritten = match fields.get("$ref").and_then(Json::as_str) {
            // A schema that contains itself is open from here on.
            Some(at) if self.open.contains(&at) => json!({}),
            Some(at) => match resolve(self.root, at) {
                Some(target) => {
                    self.open.push(at);
                    let target = self.rewrite(target);
                    self.open.pop();
                    target
                }
                None => self.fields(fields),
            },
            None => self.fields(fields),
        };
        self.depth -= 1;
        rewritten
    }

    fn fields(&mut self, fields: &'a Map<String, Json>) -> Json {
        let mut out = Map::new();
        for (name, value) in fields {
            let value = match (name.as_str(), value) {
                ("$schema" | "$id" | "$comment" | "$defs" | "definitions" | "$ref", _) => continue,
                ("const", value) => {
                    out.insert("enum".to_owned(), json!([value]));
                    continue;
                }
                ("type", value) => one_type(value),
                ("properties" | "patternProperties" | "dependentSchemas", Json::Object(properties)) => {
                    properties.iter().map(|(key, value)| (key.clone(), self.rewrite(value))).collect()
                }
                ("anyOf" | "oneOf" | "allOf" | "prefixItems", Json::Array(choices)) => {
                    choices.iter().map(|choice| self.rewrite(choice)).collect()
                }
                // Examples, defaults and enums are data, however much they look like schemas.
                ("default" | "examples" | "enum", value) => value.clone(),
                (_, value) => self.rewrite(value),
            };
            out.insert(name.clone(), value);
        }
        Json::Object(out)
    }
}

/// Rewrites a plain schema so that providers can hold a model to it; `None` if they cannot.
///
/// Every field becomes required: one that may be left out may then be null, or is simply given. What only narrows is left out.
fn strict(schema: &Json) -> Option<Json> {
    let mut out = Map::new();
    if let Some(description) = schema.get("description") {
        out.insert("description".to_owned(), description.clone());
    }
    if let Some(choices) = schema.get("anyOf") {
        let choices: Option<Vec<Json>> = choices.as_array()?.iter().map(strict).collect();
        out.insert("anyOf".to_owned(), choices?.into());
        return Some(Json::Object(out));
    }
    if let Some(values) = schema.get("enum") {
        let texts = values.as_array()?.iter().all(Json::is_string);
        out.insert("enum".to_owned(), values.clone());
        out.extend(texts.then(|| ("type".to_owned(), json!("string"))));
        return texts.then_some(Json::Object(out));
    }
    let kind = schema.get("type")?.as_str()?;
    out.insert("type".to_owned(), json!(kind));
    match kind {
        "object" => {
            let closed = schema.get("additionalProperties").is_none_or(|more| *more == json!(false));
            let properties = schema.get("properties").and_then(Json::as_object).filter(|_| closed)?;
            let strict = properties.iter().map(|(name, value)| Some((name.clone(), strict(value)?)));
            out.insert("properties".to_owned(), Json::Object(strict.collect::<Option<Map<_, _>>>()?));
            out.insert("required".to_owned(), properties.keys().cloned().collect());
            out.insert("additionalProperties".to_owned(), json!(false));
        }
        "array" => {
            out.insert("items".to_owned(), strict(schema.get("items")?)?);
        }
        "string" => out.extend(
            ["format", "pattern"]
                .iter()
                .filter_map(|name| Some(((*name).to_owned(), schema.get(*name)?.clone()))),
        ),
        "integer" | "number" | "boolean" | "null" => {}
        _ => return None,
    }
    Some(Json::Object(out))
}

/// The first type that says something; that null is allowed is dropped.
fn one_type(value: &Json) -> Json {
    let Json::Array(types) = value else { return value.clone() };
    types.iter().find(|kind| *kind != "null").cloned().unwrap_or_else(|| json!("string"))
}

fn resolve<'a>(root: &'a Json, reference: &str) -> Option<&'a Json> {
    root.pointer(reference.strip_prefix('#')?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dialects_become_plain() {
        for (schema, plain) in [
            (json!(null), json!({"type": "object", "properties": {}})),
            (json!({"$schema": "x", "type": "object"}), json!({"type": "object", "properties": {}})),
            (
                json!({"type": "object", "properties": {"const": {"const": 1}, "t": {"type": ["null", "integer"]}}}),
                json!({"type": "object", "properties": {"const": {"enum": [1]}, "t": {"type": "integer"}}}),
            ),
            (
                json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "string"}}}),
                json!({"type": "object", "properties": {"a": {"type": "string"}}}),
            ),
            (
                json!({"type": "object", "properties": {"l": {"type": "array", "items": {"const": "x"}}}}),
                json!({"type": "object", "properties": {"l": {"type": "array", "items": {"enum": ["x"]}}}}),
            ),
        ] {
            assert_eq!(adapt(&schema), plain, "{schema}");
        }
    }

    #[test]
    fn a_schema_that_contains_itself_ends() {
        let tree =
            json!({"type": "object", "properties": {"left": {"$ref": "#"}, "other": {"$ref": "#/nowhere"}}});
        assert!(!adapt(&tree).to_string().contains("$ref"));
    }

    #[test]
    fn a_schema_that_doubles_at_every_step_is_bounded() {
        let mut defs = Map::new();
        for level in 0..30 {
            let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
            defs.insert(format!("d{level}"), json!({"type": "object", "properties": {"a": next, "b": next}}));
        }
        let schema = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": defs});
        assert!(adapt(&schema).to_string().len() < 1 << 20);
    }

    #[test]
    fn answers_are_held_to_what_providers_can_check() {
        let object = |properties: Json, required: Json| json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
        let text = json!({"type": "string"});
        let perhaps = json!({"anyOf": [text, {"type": "null"}]});
        for (what, schema, expected, wrapped) in [
            (
                "a record with a field that may be left out",
                object(
                    json!({"a": text, "b": perhaps, "c": {"type": "integer", "default": 1}}),
                    json!(["a"]),
                ),
                Some(object(
                    json!({"a": text, "b": perhaps, "c": {"type": "integer"}}),
                    json!(["a", "b", "c"]),
                )),
                false,
            ),
            (
                "a list",
                json!({"type": "array", "items": text}),
                Some(object(json!({"value": {"type": "array", "items": text}}), json!(["value"]))),
                true,
            ),
            (
                "a union",
                json!({"anyOf": [object(json!({"type": {"const": "A"}}), json!(["type"]))]}),
                Some(object(
                    json!({"value": {"anyOf": [object(json!({"type": {"type": "string", "enum": ["A"]}}), json!(["type"]))]}}),
                    json!(["value"]),
                )),
                true,
            ),
            ("a map", json!({"type": "object", "additionalProperties": text}), None, false),
            ("anything", json!({}), None, true),
        ] {
            let format = AnswerFormat::of(&schema);
            assert_eq!((format.strict, format.wrapped), (expected.is_some(), wrapped), "{what}");
            if let Some(expected) = expected {
                assert_eq!(format.schema, expected, "{what}");
            }
        }
    }

    #[test]
    fn answers_are_unwrapped() {
        let list = AnswerFormat::of(&json!({"type": "array", "items": {"type": "integer"}}));
        let any = AnswerFormat::of(&json!({}));
        let record =
            AnswerFormat::of(&json!({"type": "object", "properties": {"value": {"type": "integer"}}}));
        for (format, text, value) in [
            (&list, "{\"value\": [1]}", Some(json!([1]))),
            (&list, "[1]", None),
            (&any, "{\"value\": 1}", Some(json!(1))),
            (&any, "[1]", Some(json!([1]))),
            (&record, "```json\n{\"value\": 1}\n```", Some(json!({"value": 1}))),
            (&record, "Here it is: {}", None),
            (&record, "", None),
        ] {
            assert_eq!(format.read(text).ok(), value, "{text}");
        }
    }
}
