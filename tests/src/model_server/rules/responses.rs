//! The rules of OpenAI's responses.

use serde_json::{Value, json};

use super::super::speak::sign;
use super::{Calls, Thoughts, known, says, shows, strict_schema, thought_before, tool_schema};

const FIELDS: [&str; 11] = [
    "model",
    "input",
    "stream",
    "instructions",
    "tools",
    "max_output_tokens",
    "include",
    "store",
    "text",
    "temperature",
    "reasoning",
];

pub(super) fn check(body: &Value, thoughts: &Thoughts) -> Result<(), String> {
    known(body, &FIELDS)?;
    let model = body["model"].as_str().unwrap_or_default();
    if body["store"] != false {
        return Err("these tests keep nothing on the server".to_owned());
    }
    if !body["include"].is_null()
        && (model.starts_with("gpt-4") || body["include"] != json!(["reasoning.encrypted_content"]))
    {
        return Err("encrypted content is not supported with this model".to_owned());
    }
    if !body["instructions"].is_null() {
        says(&body["instructions"])?;
    }
    let items = body["input"].as_array().ok_or("no input")?;
    let mut calls = Calls { plain: true, ..Calls::default() };
    let mut before = &Value::Null;
    // What was thought last in the turn that an item belongs to.
    let mut thought = &Value::Null;
    for (at, item) in items.iter().enumerate() {
        let wrong = |fault: String| format!("item {at}: {fault}: {item}");
        one(item, before, &mut calls, model).map_err(wrong)?;
        match item["type"].as_str() {
            Some("reasoning") => thought = &item["encrypted_content"],
            Some("function_call_output") => thought = &Value::Null,
            Some("function_call") => {
                if let Some(text) = thought_before(&item["call_id"], thoughts, model)
                    && *thought != json!(sign(model, text))
                {
                    return Err(wrong(format!("the thought {text:?} before it is missing")));
                }
            }
            Some(_) | None => {}
        }
        before = item;
    }
    calls.none_open()?;
    if before["role"] != "user" && before["type"] != "function_call_output" {
        return Err("there is nothing to answer".to_owned());
    }
    for tool in body["tools"].as_array().into_iter().flatten() {
        if tool["type"] != "function" || tool["name"].as_str().unwrap_or_default().is_empty() {
            return Err(format!("no tool: {tool}"));
        }
        tool_schema(&tool["parameters"])?;
    }
    let format = &body["text"]["format"];
    if format["strict"] == true { strict_schema(&format["schema"]) } else { Ok(()) }
}

fn one<'a>(item: &'a Value, before: &Value, calls: &mut Calls<'a>, model: &str) -> Result<(), String> {
    let kind = item["type"].as_str().unwrap_or_default();
    if before["type"] == "reasoning" && !["function_call", "message", "reasoning"].contains(&kind) {
        return Err("a thought without what follows from it".to_owned());
    }
    match kind {
        "message" => {
            calls.none_open()?;
            let content =
                item["content"].as_array().filter(|content| !content.is_empty()).ok_or("no content")?;
            if item["role"] == "user" && before["type"] == "reasoning" {
                return Err("a thought without what follows from it".to_owned());
            }
            content.iter().try_for_each(|part| match (item["role"].as_str(), part["type"].as_str()) {
                (Some("user"), Some("input_text")) | (Some("assistant"), Some("output_text")) => {
                    says(&part["text"])
                }
                (Some("user"), Some("input_image")) => shows(&part["image_url"]),
                (_, _) => Err(format!("no part of such a message: {part}")),
            })
        }
        "reasoning" => {
            let texts = item["summary"].as_array().into_iter().flatten();
            let text: String = texts.filter_map(|part| part["text"].as_str()).collect();
            if item["encrypted_content"] != json!(sign(model, &text))
                || !item["status"].is_null()
                || item.get("status").is_some()
            {
                return Err("a thought that was changed, or is another model's".to_owned());
            }
            Ok(())
        }
        "function_call" => {
            let id = item["call_id"].as_str().unwrap_or_default();
            let args: Option<Value> =
                serde_json::from_str(item["arguments"].as_str().unwrap_or_default()).ok();
            calls.made(id, item["name"].as_str().unwrap_or_default(), args.as_ref())
        }
        "function_call_output" => {
            calls.answered(item["call_id"].as_str().unwrap_or_default(), &item["output"])
        }
        _ => Err("an item that nobody knows".to_owned()),
    }
}
