//! The rules of chat completions.

use serde_json::Value;

use super::{Calls, Thoughts, known, says, shows, strict_schema, thought_before, tool_schema};

const FIELDS: [&str; 9] = [
    "model",
    "messages",
    "stream",
    "stream_options",
    "tools",
    "max_tokens",
    "response_format",
    "temperature",
    "reasoning_effort",
];

pub(super) fn check(body: &Value, thoughts: &Thoughts) -> Result<(), String> {
    known(body, &FIELDS)?;
    let messages = super::super::messages(body);
    let last_user = messages.iter().rposition(|message| message["role"] == "user").unwrap_or(0);
    let mut calls = Calls::default();
    let mut before = "";
    for (at, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        one(message, role, (before, at), &mut calls)
            .map_err(|fault| format!("message {at}: {fault}: {message}"))?;
        thought(message, at > last_user, (body["model"].as_str().unwrap_or_default(), thoughts))
            .map_err(|fault| format!("message {at}: {fault}: {message}"))?;
        before = role;
    }
    calls.none_open()?;
    if before.is_empty() || before == "assistant" || before == "system" {
        return Err("there is nothing to answer".to_owned());
    }
    for tool in body["tools"].as_array().into_iter().flatten() {
        tool_schema(&tool["function"]["parameters"])?;
    }
    let format = &body["response_format"]["json_schema"];
    if format["strict"] == true { strict_schema(&format["schema"]) } else { Ok(()) }
}

fn one<'a>(
    message: &'a Value,
    role: &str,
    (before, at): (&str, usize),
    calls: &mut Calls<'a>,
) -> Result<(), String> {
    match role {
        "system" if at > 0 => Err("a system message that is not the first".to_owned()),
        "system" => says(&message["content"]),
        "user" => {
            calls.none_open()?;
            if before == "user" {
                return Err("a second user message".to_owned());
            }
            let Some(parts) = message["content"].as_array() else { return says(&message["content"]) };
            parts.iter().try_for_each(|part| match part["type"].as_str() {
                Some("text") => says(&part["text"]),
                _ => shows(&part["image_url"]["url"]),
            })
        }
        "assistant" => {
            calls.none_open()?;
            if before == "assistant" {
                return Err("a second message of the model".to_owned());
            }
            let made = message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
            if made.is_empty() || !message["content"].is_null() {
                says(&message["content"])?;
            }
            made.iter().try_for_each(|call| {
                let args = call["function"]["arguments"].as_str().unwrap_or_default();
                let args: Option<Value> = serde_json::from_str(args).ok();
                let name = call["function"]["name"].as_str().unwrap_or_default();
                calls.made(call["id"].as_str().unwrap_or_default(), name, args.as_ref())
            })
        }
        "tool" => calls.answered(message["tool_call_id"].as_str().unwrap_or_default(), &message["content"]),
        _ => Err("a role that nobody knows".to_owned()),
    }
}

/// A thought is wanted while its calls are being answered, and refused elsewhere.
fn thought(message: &Value, is_current: bool, (model, thoughts): (&str, &Thoughts)) -> Result<(), String> {
    let sent = message["reasoning_content"].as_str();
    if sent.is_some() && !is_current {
        return Err("a thought of an earlier turn".to_owned());
    }
    for call in message["tool_calls"].as_array().into_iter().flatten().filter(|_| is_current) {
        let known = thought_before(&call["id"], thoughts, model);
        if known.is_some() && known != sent {
            return Err(format!("the thought before it was {known:?}"));
        }
    }
    Ok(())
}
