//! What strict providers refuse.
//!
//! Leaves answering to the server. Invariant: a body that passes is one that the real provider takes, as far as its conversation,
//! its tools and the form of its answer go.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Protocol;

mod anthropic;
mod chat;
mod responses;

/// What was thought before each call, and by which model.
type Thoughts = BTreeMap<String, (String, String)>;

/// The thought that must stand before a call, if this model had one.
fn thought_before<'a>(call: &Value, thoughts: &'a Thoughts, model: &str) -> Option<&'a str> {
    let (by, thought) = thoughts.get(call.as_str()?)?;
    (by == model).then_some(thought)
}

/// Checks a body; says what is wrong with it.
pub(super) fn check(protocol: Protocol, body: &Value, thoughts: &Thoughts) -> Result<(), String> {
    if body["stream"] != true || body["model"].as_str().unwrap_or_default().is_empty() {
        return Err("a named model and a stream are expected".to_owned());
    }
    match protocol {
        Protocol::Chat => chat::check(body, thoughts),
        Protocol::Responses => responses::check(body, thoughts),
        Protocol::Anthropic => anthropic::check(body, thoughts),
    }
}

/// Refuses fields that a provider does not know.
fn known(body: &Value, fields: &[&str]) -> Result<(), String> {
    let mut names = body.as_object().into_iter().flat_map(serde_json::Map::keys);
    match names.find(|name| !fields.contains(&name.as_str())) {
        Some(name) => Err(format!("unknown field {name:?}")),
        None => Ok(()),
    }
}

/// Calls that were made and have no result yet.
#[derive(Default)]
struct Calls<'a> {
    /// Whether ids may have plain characters only.
    plain: bool,
    ids: BTreeSet<&'a str>,
    open: Vec<&'a str>,
}

impl<'a> Calls<'a> {
    /// A call of a model, with its arguments as the provider has them.
    fn made(&mut self, id: &'a str, name: &str, args: Option<&Value>) -> Result<(), String> {
        let plain = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
        if id.is_empty() || id.chars().count() > 40 || (self.plain && !plain(id)) {
            return Err(format!("the id {id:?} of a call"));
        }
        if !self.ids.insert(id) {
            return Err(format!("the id {id:?} was there before"));
        }
        if name.is_empty() || name.len() > 64 || !plain(name) {
            return Err(format!("the name {name:?} of a tool"));
        }
        if !args.is_some_and(Value::is_object) {
            return Err(format!("the arguments of {id:?} are no object: {args:?}"));
        }
        self.open.push(id);
        Ok(())
    }

    fn answered(&mut self, id: &str, text: &Value) -> Result<(), String> {
        let place = self.open.iter().position(|call| *call == id);
        self.open.remove(place.ok_or_else(|| format!("a result of no call: {id:?}"))?);
        if text.as_str().unwrap_or_default().trim().is_empty() {
            Err(format!("the result of {id:?} is empty"))
        } else {
            Ok(())
        }
    }

    fn none_open(&self) -> Result<(), String> {
        if self.open.is_empty() { Ok(()) } else { Err(format!("calls {:?} have no result", self.open)) }
    }
}

/// Text that says something.
fn says(text: &Value) -> Result<(), String> {
    if text.as_str().unwrap_or_default().trim().is_empty() {
        Err(format!("empty text: {text}"))
    } else {
        Ok(())
    }
}

/// An image's address.
fn shows(url: &Value) -> Result<(), String> {
    let url = url.as_str().unwrap_or_default();
    let carried = url.strip_prefix("data:image/").is_some_and(|rest| rest.contains(";base64,"));
    if carried || url.starts_with("http") { Ok(()) } else { Err(format!("no image: {url:?}")) }
}

/// The schema of a tool, in the dialect of a provider that knows little.
fn tool_schema(schema: &Value) -> Result<(), String> {
    if schema["type"] != "object" || !schema["properties"].is_object() {
        return Err(format!("no schema of an object: {schema}"));
    }
    let text = schema.to_string();
    match ["\"$schema\"", "\"$ref\"", "\"const\"", "\"type\":["].iter().find(|word| text.contains(**word)) {
        Some(word) => Err(format!("tools: {word} is not supported")),
        None => Ok(()),
    }
}

/// A schema to which a provider holds its model.
fn strict_schema(schema: &Value) -> Result<(), String> {
    if let Some(choices) = schema["anyOf"].as_array() {
        return choices.iter().try_for_each(strict_schema);
    }
    match schema["type"].as_str() {
        Some("object") => {
            let properties = schema["properties"].as_object().ok_or("an object without properties")?;
            let required = schema["required"].as_array().ok_or("an object without required")?;
            if schema["additionalProperties"] != false || required.len() != properties.len() {
                return Err(format!("not strict: {schema}"));
            }
            properties.values().try_for_each(strict_schema)
        }
        Some("array") => strict_schema(&schema["items"]),
        Some("string" | "integer" | "number" | "boolean" | "null") => Ok(()),
        Some(_) | None => Err(format!("no type: {schema}")),
    }
}
