//! Rewrites tool schemas into the dialect that providers share.
//!
//! Leaves checking arguments to the tools. Invariant: what a rewritten schema refuses, the original refuses too, or nearly so: it
//! is an instruction to a model, not the check.

use serde_json::{Map, json};

use crate::Json;
use crate::limits::SCHEMA_DEPTH_MAX;

/// Rewrites a schema: no `$schema`, `$ref`, `const` or lists of types.
pub(crate) fn adapt(schema: &Json) -> Json {
    match schema {
        Json::Object(_) => {
            let mut adapted = rewrite(schema, schema, 0);
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

fn rewrite(schema: &Json, root: &Json, depth: usize) -> Json {
    let Json::Object(fields) = schema else { return schema.clone() };
    if depth > SCHEMA_DEPTH_MAX {
        // A schema that contains itself is open from here on.
        return json!({});
    }
    if let Some(target) = fields.get("$ref").and_then(Json::as_str).and_then(|at| resolve(root, at)) {
        return rewrite(target, root, depth + 1);
    }
    let mut out = Map::new();
    for (name, value) in fields {
        match name.as_str() {
            "$schema" | "$id" | "$comment" | "$defs" | "definitions" | "$ref" => {}
            "const" => {
                out.insert("enum".to_owned(), json!([value]));
            }
            "type" => {
                out.insert(name.clone(), one_type(value));
            }
            "properties" | "patternProperties" | "dependentSchemas" => {
                let Json::Object(properties) = value else { continue };
                let properties =
                    properties.iter().map(|(key, value)| (key.clone(), rewrite(value, root, depth + 1)));
                out.insert(name.clone(), Json::Object(properties.collect()));
            }
            "anyOf" | "oneOf" | "allOf" | "prefixItems" => {
                let Json::Array(choices) = value else { continue };
                let choices = choices.iter().map(|choice| rewrite(choice, root, depth + 1)).collect();
                out.insert(name.clone(), Json::Array(choices));
            }
            // Examples, defaults and enums are data, however much they look like schemas.
            "default" | "examples" | "enum" => {
                out.insert(name.clone(), value.clone());
            }
            _ => {
                out.insert(name.clone(), rewrite(value, root, depth + 1));
            }
        }
    }
    Json::Object(out)
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
}
