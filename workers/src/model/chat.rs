//! Chat completions: the protocol of OpenAI that Ollama, llama.cpp, vLLM and most gateways speak.
//!
//! Leaves sending to [`super::remote`] and mending conversations to [`super::conversation`]. Invariant: what a model wants back with
//! its reasoning (a text, signed details, a signature on a call) is sent as it came, in the field in which it came.
//!
//! Source: the API reference of OpenAI (chat completions); DeepSeek, OpenRouter and Google for what they add to it.

use serde_json::json;

use super::conversation::{Piece, Said, Turn};
use super::schema::{self, AnswerFormat};
use super::{ToolCall, ToolSchema};
use crate::Json;

mod assembly;

pub(super) use assembly::Assembly;

/// The body of a request.
pub(super) fn body(turns: &[Turn], tools: &[ToolSchema], format: Option<&AnswerFormat>) -> Json {
    // A thought is sent back as text only while its calls are being answered: elsewhere servers refuse it or waste it.
    let last_user = turns.iter().rposition(|turn| matches!(turn, Turn::User { .. })).unwrap_or(0);
    let messages = turns.iter().enumerate().map(|(at, turn)| message(turn, at > last_user));
    let mut body = json!({
        "messages": messages.collect::<Vec<Json>>(),
        "stream_options": {"include_usage": true},
    });
    if !tools.is_empty() {
        body["tools"] = tools.iter().map(tool).collect();
    }
    if let Some(AnswerFormat { schema, strict, .. }) = format {
        let schema = json!({"name": "answer", "schema": schema, "strict": strict});
        body["response_format"] = json!({"type": "json_schema", "json_schema": schema});
    }
    body
}

fn message(turn: &Turn, is_current: bool) -> Json {
    match turn {
        Turn::System { text } => json!({"role": "system", "content": text}),
        Turn::User { pieces } => match pieces.as_slice() {
            [Piece::Text(text)] => json!({"role": "user", "content": text}),
            pieces => json!({"role": "user", "content": pieces.iter().map(piece).collect::<Vec<Json>>()}),
        },
        Turn::Assistant { parts } => assistant(parts, is_current),
        Turn::Tool { id, text, .. } => json!({"role": "tool", "tool_call_id": id, "content": text}),
    }
}

fn piece(piece: &Piece) -> Json {
    match piece {
        Piece::Text(text) => json!({"type": "text", "text": text}),
        Piece::Image(image) => json!({"type": "image_url", "image_url": {"url": image.url()}}),
    }
}

fn assistant(parts: &[Said], is_current: bool) -> Json {
    let mut texts: Vec<&str> = Vec::new();
    let mut calls: Vec<Json> = Vec::new();
    let mut message = json!({"role": "assistant"});
    let mut extras: Vec<Json> = Vec::new();
    for part in parts {
        match part {
            Said::Text(text) => texts.push(text),
            Said::Reasoning { text, data } => {
                if let (Some(field), true) = (data.get("field").and_then(Json::as_str), is_current) {
                    message[field] = json!(text);
                }
                if let Some(details) = data.get("details") {
                    message["reasoning_details"] = details.clone();
                }
                let list = data.get("extra_content").and_then(Json::as_array);
                extras = list.map(|list| list.iter().rev().cloned().collect()).unwrap_or_default();
            }
            Said::Call(of) => {
                let mut call = call(of);
                if let Some(extra) = extras.pop().filter(|extra| !extra.is_null()) {
                    call["extra_content"] = extra;
                }
                calls.push(call);
            }
        }
    }
    message["content"] = if texts.is_empty() { Json::Null } else { texts.join("\n\n").into() };
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    message
}

fn call(call: &ToolCall) -> Json {
    let function = json!({"name": call.name, "arguments": call.args.to_string()});
    json!({"id": call.id, "type": "function", "function": function})
}

fn tool(tool: &ToolSchema) -> Json {
    let parameters = schema::adapt(&tool.input);
    let function = json!({"name": tool.name, "description": tool.description, "parameters": parameters});
    json!({"type": "function", "function": function})
}
