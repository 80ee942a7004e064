//! Answers in the words of each protocol, and conversations read out of requests.
//!
//! Leaves when and whether they are sent to the server. Invariant: pieces are events; their order and cut are those of the real ones.

use serde_json::{Value, json};

use super::{Part, Protocol, Stop};

/// The tokens that every answer is said to have taken: read, of those from the cache, and written.
pub const TOKENS: (u64, u64, u64) = (1_000, 400, 250);

/// Signs a thought of a model. A signature fits its text and its model, as real ones do.
#[must_use]
pub fn sign(model: &str, thought: &str) -> String {
    let bytes = model.bytes().chain([0]).chain(thought.bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("sig-{hash:016x}")
}

/// Returns the events of a whole answer.
#[must_use]
pub fn pieces(protocol: Protocol, model: &str, parts: &[Part], stop: Stop) -> Vec<String> {
    match protocol {
        Protocol::Chat => chat(model, parts, stop),
        Protocol::Responses => responses(model, parts, stop),
        Protocol::Anthropic => anthropic(model, parts, stop),
    }
}

/// Returns what was said so far, as role and text; the texts of results stand under `tool`, calls are left out.
#[must_use]
pub fn heard(body: &Value) -> Vec<(String, String)> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut heard = Vec::new();
    for message in list(&body["messages"]).into_iter().chain(list(&body["input"])) {
        let role = message["role"].as_str().unwrap_or_default().to_owned();
        match (&message["content"], message["type"].as_str()) {
            (_, Some("function_call_output")) => heard.push(("tool".to_owned(), text_of(&message["output"]))),
            (Value::Array(blocks), _) => {
                for block in blocks {
                    match block["type"].as_str() {
                        Some("tool_result") => heard.push(("tool".to_owned(), text_of(&block["content"]))),
                        Some("text" | "input_text" | "output_text") => {
                            heard.push((role.clone(), text_of(&block["text"])));
                        }
                        Some(_) | None => {}
                    }
                }
            }
            (Value::String(text), _) => heard.push((role, text.clone())),
            (_, _) => {}
        }
    }
    heard
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(' ')
}

fn halves(text: &str) -> [&str; 2] {
    let (one, other) = text.split_at(text.floor_char_boundary(text.len() / 2));
    [one, other]
}

fn chat(model: &str, parts: &[Part], stop: Stop) -> Vec<String> {
    let chunk = |choices: Value, usage: Value| {
        let chunk = json!({
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1_764_547_200,
            "model": model,
            "choices": choices,
            "usage": usage,
        });
        format!("data: {chunk}\n\n")
    };
    let choice = |delta: &Value, reason: Option<&str>| {
        chunk(json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": reason}]), Value::Null)
    };
    let mut pieces = Vec::new();
    let mut calls = 0;
    for part in parts {
        match part {
            Part::Text(text) => {
                pieces.extend(words(text).map(|word| choice(&json!({"content": word}), None)));
            }
            Part::Thought(text) => {
                pieces.extend(words(text).map(|word| choice(&json!({"reasoning_content": word}), None)));
            }
            Part::Call(id, name, args) => {
                let [begin, end] = halves(args);
                let function = json!({"name": name, "arguments": begin});
                let call = json!({"index": calls, "id": id, "type": "function", "function": function});
                pieces.push(choice(&json!({"tool_calls": [call]}), None));
                let rest = json!({"index": calls, "function": {"arguments": end}});
                pieces.push(choice(&json!({"tool_calls": [rest]}), None));
                calls += 1;
            }
        }
    }
    let reason = match stop {
        Stop::End if calls > 0 => "tool_calls",
        Stop::End => "stop",
        Stop::Length => "length",
        Stop::Refused => "content_filter",
    };
    pieces.push(choice(&json!({}), Some(reason)));
    let (read, cached, written) = TOKENS;
    let usage = json!({
        "prompt_tokens": read,
        "completion_tokens": written,
        "total_tokens": read + written,
        "prompt_tokens_details": {"cached_tokens": cached},
    });
    pieces.push(chunk(json!([]), usage));
    pieces.push("data: [DONE]\n\n".to_owned());
    pieces
}

fn event(kind: &str, mut data: Value) -> String {
    data["type"] = json!(kind);
    format!("event: {kind}\ndata: {data}\n\n")
}

fn responses(model: &str, parts: &[Part], stop: Stop) -> Vec<String> {
    let mut pieces = vec![event("response.created", json!({"response": {"status": "in_progress"}}))];
    let mut output = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        let delta = |kind: &str, delta: &str| event(kind, json!({"output_index": at, "delta": delta}));
        let added =
            |item: &Value| event("response.output_item.added", json!({"output_index": at, "item": item}));
        let item = match part {
            Part::Text(text) => {
                pieces.push(added(&json!({"type": "message", "role": "assistant", "content": []})));
                pieces.extend(words(text).map(|word| delta("response.output_text.delta", word)));
                let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
                json!({"type": "message", "id": format!("msg_{at}"), "role": "assistant", "content": content})
            }
            Part::Thought(text) => {
                pieces.push(added(&json!({"type": "reasoning", "id": format!("rs_{at}"), "summary": []})));
                pieces.extend(words(text).map(|word| delta("response.reasoning_summary_text.delta", word)));
                let summary = json!([{"type": "summary_text", "text": text}]);
                json!({"type": "reasoning", "id": format!("rs_{at}"), "summary": summary, "status": null,
                    "encrypted_content": sign(model, text)})
            }
            Part::Call(id, name, args) => {
                let mut item = json!({"type": "function_call", "id": format!("fc_{at}"), "call_id": id, "name": name, "arguments": ""});
                pieces.push(added(&item));
                for half in halves(args) {
                    pieces.push(delta("response.function_call_arguments.delta", half));
                }
                item["arguments"] = json!(args);
                item
            }
        };
        pieces.push(event("response.output_item.done", json!({"output_index": at, "item": item})));
        output.push(item);
    }
    let (read, cached, written) = TOKENS;
    let mut response = json!({
        "object": "response", "model": model, "status": "completed", "output": output,
        "usage": {"input_tokens": read, "input_tokens_details": {"cached_tokens": cached}, "output_tokens": written},
    });
    let reason = match stop {
        Stop::End => None,
        Stop::Length => Some("max_output_tokens"),
        Stop::Refused => Some("content_filter"),
    };
    let last = if reason.is_some() { "response.incomplete" } else { "response.completed" };
    if let Some(reason) = reason {
        response["status"] = json!("incomplete");
        response["incomplete_details"] = json!({"reason": reason});
    }
    pieces.push(event(last, json!({"response": response})));
    pieces
}

fn anthropic(model: &str, parts: &[Part], stop: Stop) -> Vec<String> {
    let (read, cached, written) = TOKENS;
    let usage = json!({"input_tokens": read - cached, "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": 0, "output_tokens": 1});
    let message = json!({"type": "message", "role": "assistant", "model": model, "content": [], "stop_reason": null, "usage": usage});
    let mut pieces = vec![event("message_start", json!({"message": message})), event("ping", json!({}))];
    for (at, part) in parts.iter().enumerate() {
        let begin = |block: Value| event("content_block_start", json!({"index": at, "content_block": block}));
        let delta = |delta: Value| event("content_block_delta", json!({"index": at, "delta": delta}));
        match part {
            Part::Text(text) => {
                pieces.push(begin(json!({"type": "text", "text": ""})));
                pieces.extend(words(text).map(|word| delta(json!({"type": "text_delta", "text": word}))));
            }
            Part::Thought(text) => {
                pieces.push(begin(json!({"type": "thinking", "thinking": "", "signature": ""})));
                pieces.extend(
                    words(text).map(|word| delta(json!({"type": "thinking_delta", "thinking": word}))),
                );
                pieces.push(delta(json!({"type": "signature_delta", "signature": sign(model, text)})));
            }
            Part::Call(id, name, args) => {
                pieces.push(begin(json!({"type": "tool_use", "id": id, "name": name, "input": {}})));
                pieces.extend(
                    halves(args).map(|half| delta(json!({"type": "input_json_delta", "partial_json": half}))),
                );
            }
        }
        pieces.push(event("content_block_stop", json!({"index": at})));
    }
    let calls = parts.iter().any(|part| matches!(part, Part::Call(..)));
    let reason = match stop {
        Stop::End if calls => "tool_use",
        Stop::End => "end_turn",
        Stop::Length => "max_tokens",
        Stop::Refused => "refusal",
    };
    let end = json!({"delta": {"stop_reason": reason}, "usage": {"output_tokens": written}});
    pieces.push(event("message_delta", end));
    pieces.push(event("message_stop", json!({})));
    pieces
}
