//! The rules of Anthropic's messages.

use serde_json::{Value, json};

use super::super::speak::sign;
use super::{Calls, Thoughts, known, says, shows, strict_schema, thought_before, tool_schema};

const FIELDS: [&str; 9] = [
    "model",
    "messages",
    "stream",
    "system",
    "tools",
    "max_tokens",
    "output_config",
    "temperature",
    "thinking",
];
/// Marks of the cache in one request.
const MARKS_MAX: usize = 4;

pub(super) fn check(body: &Value, thoughts: &Thoughts) -> Result<(), String> {
    known(body, &FIELDS)?;
    if body["max_tokens"].as_u64().unwrap_or(0) == 0 {
        return Err("max_tokens: field required".to_owned());
    }
    if body.to_string().matches("cache_control").count() > MARKS_MAX {
        return Err("too many marks of the cache".to_owned());
    }
    for block in body["system"].as_array().into_iter().flatten() {
        says(&block["text"]).map_err(|fault| format!("system: {fault}"))?;
    }
    let messages = super::super::messages(body);
    let model = body["model"].as_str().unwrap_or_default();
    let mut calls = Calls { plain: true, ..Calls::default() };
    for (at, message) in messages.iter().enumerate() {
        let expected = if at % 2 == 0 { "user" } else { "assistant" };
        if message["role"] != expected {
            return Err(format!("message {at}: expected the role {expected}: {message}"));
        }
        let blocks = message["content"].as_array().filter(|blocks| !blocks.is_empty());
        let blocks = blocks.ok_or_else(|| format!("message {at}: no content"))?;
        let checked =
            if expected == "user" { user(blocks, &mut calls) } else { said(blocks, &mut calls, model) };
        checked.map_err(|fault| format!("message {at}: {fault}: {message}"))?;
        if at + 2 == messages.len() {
            last_thought(blocks, thoughts, model)
                .map_err(|fault| format!("message {at}: {fault}: {message}"))?;
        }
    }
    calls.none_open()?;
    if messages.len().is_multiple_of(2) {
        return Err("the conversation must end with a user message".to_owned());
    }
    for tool in body["tools"].as_array().into_iter().flatten() {
        tool_schema(&tool["input_schema"])?;
    }
    let format = &body["output_config"]["format"];
    if format.is_null() { Ok(()) } else { strict_schema(&format["schema"]) }
}

fn user<'a>(blocks: &'a [Value], calls: &mut Calls<'a>) -> Result<(), String> {
    for block in blocks {
        if block["type"] == "tool_result" {
            calls.answered(block["tool_use_id"].as_str().unwrap_or_default(), &block["content"])?;
            continue;
        }
        // Results stand first, and all of them here.
        calls.none_open()?;
        match (block["type"].as_str(), block["source"]["type"].as_str()) {
            (Some("text"), _) => says(&block["text"])?,
            (Some("image"), Some("url")) => shows(&block["source"]["url"])?,
            (Some("image"), Some("base64")) => {
                let media = block["source"]["media_type"].as_str().unwrap_or_default();
                let data = block["source"]["data"].as_str().unwrap_or_default();
                shows(&json!(format!("data:{media};base64,{data}")))?;
            }
            (_, _) => return Err(format!("no block of a user: {block}")),
        }
    }
    calls.none_open()
}

fn said<'a>(blocks: &'a [Value], calls: &mut Calls<'a>, model: &str) -> Result<(), String> {
    for block in blocks {
        match block["type"].as_str() {
            Some("text") => says(&block["text"])?,
            Some("thinking") => {
                let thought = block["thinking"].as_str().unwrap_or_default();
                if block["signature"] != json!(sign(model, thought)) || block.get("cache_control").is_some() {
                    return Err("invalid signature in a thinking block".to_owned());
                }
            }
            Some("tool_use") => {
                let name = block["name"].as_str().unwrap_or_default();
                calls.made(block["id"].as_str().unwrap_or_default(), name, Some(&block["input"]))?;
            }
            Some(_) | None => return Err(format!("no block of a model: {block}")),
        }
    }
    if blocks.last().is_some_and(|block| block["type"] == "thinking") {
        return Err("a thought is the last block".to_owned());
    }
    Ok(())
}

/// What was thought before the calls that are answered now must be there, unless another model thought it.
fn last_thought(blocks: &[Value], thoughts: &Thoughts, model: &str) -> Result<(), String> {
    for call in blocks.iter().filter(|block| block["type"] == "tool_use") {
        let Some(thought) = thought_before(&call["id"], thoughts, model) else { continue };
        let signature = json!(sign(model, thought));
        if !blocks.iter().any(|block| block["signature"] == signature) {
            return Err(format!("the thought {thought:?} is missing"));
        }
    }
    Ok(())
}
