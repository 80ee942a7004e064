//! Tool catalogues: the JSON files that `use tools` names.
//!
//! Leaves reading files to the caller of the crate. Invariant: the schemas of a catalogue are canonical (keys sorted), so that
//! the machine's hash does not depend on how the file was written.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::declare::Texts;
use crate::diag::catalogue::names;
use crate::diag::{Diagnostic, FileId, TextSpan};
use crate::machine::{Catalogue, Permission, Tool, ToolEffect};
use crate::syntax::ast::{self, AstNode as _};

/// A catalogue file.
#[derive(Deserialize)]
struct CatalogueText {
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
pub(crate) fn read(
    texts: &Texts,
    attachments: &BTreeMap<String, String>,
    out: &mut Vec<Diagnostic>,
) -> Vec<Catalogue> {
    texts.catalogues.iter().map(|(file, text)| read_one(*file, text, attachments, out)).collect()
}

fn read_one(
    file: FileId,
    text: &ast::Use,
    attachments: &BTreeMap<String, String>,
    out: &mut Vec<Diagnostic>,
) -> Catalogue {
    let name = text.name().map(|name| name.text()).unwrap_or_default();
    let span = text.path().map_or_else(|| text.span(), |path| path.span());
    let path = text.path().and_then(|path| path.plain());
    let found = match path.as_ref().and_then(|path| attachments.get(path)) {
        None => Err("there is no such file".to_owned()),
        Some(json) => tools(json),
    };
    let tools = found.unwrap_or_else(|why| {
        out.push(bad(file, span, path.as_deref().unwrap_or_default(), &why));
        Vec::new()
    });
    Catalogue { name, tools }
}

fn bad(file: FileId, span: TextSpan, path: &str, why: &str) -> Diagnostic {
    let message = format!("the catalogue `{path}` cannot be used: {why}");
    let expected =
        r#"`{"tools": [{"name": …, "description": …, "input": {…}, "effect": …, "permission": …}]}`"#;
    Diagnostic::error(names::BAD_CATALOGUE, file, span, message).expected(expected)
}

fn tools(json: &str) -> Result<Vec<Tool>, String> {
    let text: CatalogueText = serde_json::from_str(json).map_err(|error| error.to_string())?;
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
