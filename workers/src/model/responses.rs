//! OpenAI responses: items in, items out, nothing kept on the server.
//!
//! Leaves sending to [`super::remote`] and mending conversations to [`super::conversation`]. Invariant: reasoning is asked for
//! encrypted and goes back as the item that it was, before what followed from it; every call of a function has its output.
//!
//! Source: the API reference of OpenAI (responses, streaming events of responses).

use serde_json::json;

use super::conversation::{Piece, Said, Turn};
use super::schema::{self, AnswerFormat};
use super::{ToolCall, ToolSchema};
use crate::Json;

mod assembly;

pub(super) use assembly::Assembly;

/// The body of a request to the model of this name.
pub(super) fn body(turns: &[Turn], tools: &[ToolSchema], format: Option<&AnswerFormat>, name: &str) -> Json {
    let mut body = json!({"store": false, "input": turns.iter().flat_map(items).collect::<Vec<Json>>()});
    for turn in turns {
        if let Turn::System { text } = turn {
            body["instructions"] = json!(text);
        }
    }
    if reasons(name) {
        body["include"] = json!(["reasoning.encrypted_content"]);
    }
    if !tools.is_empty() {
        body["tools"] = tools.iter().map(tool).collect();
    }
    if let Some(AnswerFormat { schema, strict, .. }) = format {
        let format = json!({"type": "json_schema", "name": "answer", "schema": schema, "strict": strict});
        body["text"] = json!({"format": format});
    }
    body
}

/// Whether a model may be asked for its reasoning: those from before there was any refuse that.
fn reasons(name: &str) -> bool {
    let name = name.rsplit('/').next().unwrap_or(name);
    !["gpt-3", "gpt-4", "chatgpt-"].iter().any(|old| name.starts_with(old))
}

fn items(turn: &Turn) -> Vec<Json> {
    match turn {
        // It stands beside the items.
        Turn::System { .. } => Vec::new(),
        Turn::User { pieces } => {
            let content: Vec<Json> = pieces.iter().map(piece).collect();
            vec![json!({"type": "message", "role": "user", "content": content})]
        }
        Turn::Assistant { parts } => parts.iter().filter_map(said).collect(),
        Turn::Tool { id, text, .. } => {
            vec![json!({"type": "function_call_output", "call_id": id, "output": text})]
        }
    }
}

fn piece(piece: &Piece) -> Json {
    match piece {
        Piece::Text(text) => json!({"type": "input_text", "text": text}),
        Piece::Image(image) => json!({"type": "input_image", "image_url": image.url()}),
    }
}

fn said(part: &Said) -> Option<Json> {
    match part {
        Said::Text(text) => {
            let content = json!([{"type": "output_text", "text": text}]);
            Some(json!({"type": "message", "role": "assistant", "content": content}))
        }
        Said::Reasoning { data, .. } => data.get("item").cloned(),
        Said::Call(ToolCall { id, name, args }) => {
            Some(json!({"type": "function_call", "call_id": id, "name": name, "arguments": args.to_string()}))
        }
    }
}

fn tool(tool: &ToolSchema) -> Json {
    let parameters = schema::adapt(&tool.input);
    // Strict tools would need every field, which tools do not.
    json!({"type": "function", "name": tool.name, "description": tool.description, "parameters": parameters, "strict": false})
}
