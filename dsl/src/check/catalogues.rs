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

/// A catalogue file.
#[derive(Deserialize)]
struct CatalogueJson {
    tools: Vec<ToolText>,
}

#[derive(Deserialize)]
struct ToolText {
    name: String,
    #[serde(default)]
    description: String,
    input: Value,
    #[serde(default = "once")]
    effect: ToolEffect,
    #[serde(default = "ask")]
    permission: Permission,
}

/// What is not known to be harmless counts as harmful.
fn once() -> ToolEffect {
    ToolEffect::Once
}

fn ask() -> Permission {
    Permission::Ask
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
    let text: CatalogueJson = serde_json::from_str(json).map_err(|error| error.to_string())?;
    let mut tools: Vec<Tool> = Vec::new();
    for tool in text.tools {
        if tool.name.is_empty() {
            return Err("a tool has no name".to_owned());
        }
        if tools.iter().any(|one| one.name == tool.name) {
            return Err(format!("the tool `{}` stands there twice", tool.name));
        }
        if !tool.input.is_object() {
            return Err(format!("the `input` of `{}` is no JSON Schema", tool.name));
        }
        let ToolText { name, description, input, effect, permission } = tool;
        tools.push(Tool { name, description, input: sorted(input), effect, permission });
    }
    Ok(tools)
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
