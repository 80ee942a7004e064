//! Anthropic messages.
//!
//! Leaves sending to [`super::remote`] and mending conversations to [`super::conversation`]. Invariant: the answers to a turn's
//! calls stand first in the one message behind it; a thought goes back with its signature as it came.
//!
//! Source: the API reference of Anthropic (messages, streaming, extended thinking, prompt caching, structured outputs).

use serde_json::{Value, json};

use super::conversation::{Image, Piece, Said, Turn};
use super::schema::{self, AnswerFormat};
use super::{ToolCall, ToolSchema};
use crate::Json;
use crate::limits::ANTHROPIC_MAX_TOKENS;

mod assembly;

pub(super) use assembly::Assembly;

/// The version of the protocol that is spoken here.
pub(super) const VERSION: &str = "2023-06-01";

/// The body of a request.
pub(super) fn body(turns: &[Turn], tools: &[ToolSchema], format: Option<&AnswerFormat>) -> Json {
    let mut system = String::new();
    let mut messages: Vec<(&str, Vec<Json>)> = Vec::new();
    for turn in turns {
        let (role, blocks) = match turn {
            Turn::System { text } => {
                system.push_str(text);
                continue;
            }
            Turn::User { pieces } => ("user", pieces.iter().map(piece).collect()),
            Turn::Assistant { parts } => ("assistant", parts.iter().map(said).collect()),
            Turn::Tool { id, text, ok } => (
                "user",
                vec![json!({"type": "tool_result", "tool_use_id": id, "content": text, "is_error": !ok})],
            ),
        };
        match messages.last_mut() {
            Some((before, content)) if *before == role => content.extend(blocks),
            Some(_) | None => messages.push((role, blocks)),
        }
    }
    // The prefix up to a mark is cached: the next turn reads it at a tenth of the price.
    if let Some(block) = messages.last_mut().and_then(|(_, content)| content.last_mut()) {
        mark(block);
    }
    let messages = messages.into_iter().map(|(role, content)| json!({"role": role, "content": content}));
    let mut body = json!({"max_tokens": ANTHROPIC_MAX_TOKENS, "messages": messages.collect::<Vec<Json>>()});
    if let Some(AnswerFormat { schema, strict, .. }) = format {
        if *strict {
            body["output_config"] = json!({"format": {"type": "json_schema", "schema": schema}});
        } else {
            // Not every schema can be enforced; then the model is told.
            system.push_str(&told(schema, system.is_empty()));
        }
    }
    if !system.is_empty() {
        let mut block = json!({"type": "text", "text": system});
        mark(&mut block);
        body["system"] = json!([block]);
    }
    if !tools.is_empty() {
        body["tools"] = tools.iter().map(tool).collect();
    }
    body
}

fn mark(block: &mut Json) {
    block["cache_control"] = json!({"type": "ephemeral"});
}

fn told(schema: &Value, first: bool) -> String {
    let gap = if first { "" } else { "\n\n" };
    format!("{gap}Answer with one JSON value and nothing else. It must fit this JSON Schema: {schema}")
}

fn piece(piece: &Piece) -> Json {
    match piece {
        Piece::Text(text) => json!({"type": "text", "text": text}),
        Piece::Image(Image::Data { media, data }) => {
            json!({"type": "image", "source": {"type": "base64", "media_type": media, "data": data}})
        }
        Piece::Image(Image::Url(url)) => json!({"type": "image", "source": {"type": "url", "url": url}}),
    }
}

fn said(part: &Said) -> Json {
    match part {
        // It may not end with white space where it is the last word.
        Said::Text(text) => json!({"type": "text", "text": text.trim_end()}),
        Said::Reasoning { text, data } => match data.get("redacted") {
            Some(redacted) => json!({"type": "redacted_thinking", "data": redacted}),
            None => json!({"type": "thinking", "thinking": text, "signature": data.get("signature")}),
        },
        Said::Call(ToolCall { id, name, args }) => {
            json!({"type": "tool_use", "id": id, "name": name, "input": args})
        }
    }
}

fn tool(tool: &ToolSchema) -> Json {
    json!({"name": tool.name, "description": tool.description, "input_schema": schema::adapt(&tool.input)})
}
