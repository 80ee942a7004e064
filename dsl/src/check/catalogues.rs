//! Tool catalogues: the JSON files that `use tools` names.
//!
//! Leaves reading files to the caller of the crate. Invariant: the schemas of a catalogue are canonical (keys sorted), so that
//! the machine's hash does not depend on how the file was written.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::declare::{CatalogueText, Texts};
use crate::diag::Diagnostic;
use crate::diag::catalogue::names;
use crate::machine::{Catalogue, Permission, Tool, ToolEffect};

/// A tool in one of the common dialects.
#[derive(Deserialize)]
struct ToolJson {
    /// What model providers wrap around the rest.
    function: Option<FunctionJson>,
    #[serde(flatten)]
    own: FunctionJson,
    effect: Option<ToolEffect>,
    permission: Option<Permission>,
    #[serde(default)]
    annotations: Value,
}

#[derive(Deserialize)]
struct FunctionJson {
    #[serde(default)]
    name: String,
    #[serde(default)]
    description: String,
    #[serde(alias = "inputSchema", alias = "input_schema", alias = "parameters")]
    input: Option<Value>,
}

/// Reads all catalogues, in the order of their declarations.
pub(crate) fn read(texts: &Texts, out: &mut Vec<Diagnostic>) -> Vec<Catalogue> {
    texts.catalogues.iter().map(|text| read_one(text, out)).collect()
}

fn read_one(text: &CatalogueText, out: &mut Vec<Diagnostic>) -> Catalogue {
    let found = match &text.text {
        None => Err("there is no such file".to_owned()),
        Some(json) => tools(json),
    };
    let tools = found.unwrap_or_else(|why| {
        out.push(bad(text, &why));
        Vec::new()
    });
    Catalogue { name: text.name.clone(), tools }
}

fn bad(text: &CatalogueText, why: &str) -> Diagnostic {
    let message = format!("the catalogue `{}` cannot be used: {why}", text.key);
    let expected =
        r#"`{"tools": [{"name": …, "description": …, "input": {…}, "effect": …, "permission": …}]}`"#;
    Diagnostic::error(names::BAD_CATALOGUE, text.spot.file, text.spot.span, message).expected(expected)
}

fn tools(json: &str) -> Result<Vec<Tool>, String> {
    let whole: Value = serde_json::from_str(json).map_err(|error| error.to_string())?;
    let list = match whole {
        Value::Array(list) => Some(list),
        Value::Object(mut object) => match object.remove("tools") {
            Some(Value::Array(list)) => Some(list),
            Some(_) | None => None,
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    };
    let Some(list) = list else { return Err("it is no list of tools".to_owned()) };
    let mut tools: Vec<Tool> = Vec::new();
    for (at, tool) in list.into_iter().enumerate() {
        let tool = serde_json::from_value(tool).map_err(|error| format!("tool {}: {error}", at + 1))?;
        let tool = one_tool(tool)?;
        if tools.iter().any(|one| one.name == tool.name) {
            return Err(format!("the tool `{}` stands there twice", tool.name));
        }
        tools.push(tool);
    }
    Ok(tools)
}

fn one_tool(tool: ToolJson) -> Result<Tool, String> {
    let effect = tool.effect.unwrap_or_else(|| ToolEffect::of_annotations(&tool.annotations));
    let permission = tool.permission.unwrap_or(Permission::Ask);
    let is_function = tool.function.is_some();
    let FunctionJson { name, description, input } = tool.function.unwrap_or(tool.own);
    if name.is_empty() {
        return Err("a tool has no name".to_owned());
    }
    let input = match input {
        Some(input) if input.is_object() => sorted(input),
        // A function without parameters may leave them out.
        None if is_function => serde_json::json!({"type": "object", "properties": {}}),
        Some(_) | None => {
            return Err(format!(
                "the `input` of `{name}` (or `inputSchema`, `parameters`) is no JSON Schema"
            ));
        }
    };
    Ok(Tool { name, description, input, effect, permission })
}

/// Sorts the keys of all objects, whatever the JSON library's maps do.
fn sorted(value: Value) -> Value {
    match value {
        Value::Array(all) => Value::Array(all.into_iter().map(sorted).collect()),
        Value::Object(all) => {
            let sorted_map: BTreeMap<String, Value> =
                all.into_iter().map(|(key, value)| (key, sorted(value))).collect();
            Value::Object(sorted_map.into_iter().collect::<Map<String, Value>>())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}
