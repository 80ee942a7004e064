//! Chat completions as OpenAI's API has them: what is asked, what is refused, and what answers look like.
//!
//! Leaves sending to [`super::serving`]. Invariant: a field that would change the answer is kept to or refused.
//!
//! Source: the API reference of OpenAI (chat completions: create, the chunk object, errors).

use serde_json::{Map, Value, json};

use crate::record::End;

/// A message of the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) role: String,
    pub(crate) text: String,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) model: String,
    pub(crate) messages: Vec<Message>,
    pub(crate) tokens_max: usize,
    pub(crate) is_streamed: bool,
    pub(crate) wants_usage: bool,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    code: Option<&'static str>,
    field: Option<String>,
    text: String,
}

/// What an answer took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) prompt: usize,
    pub(crate) completion: usize,
}

/// An answer's name and when it began; each of its pieces carries them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Naming {
    pub(crate) id: String,
    /// Seconds since 1970.
    pub(crate) created: u64,
    pub(crate) model: String,
    pub(crate) wants_usage: bool,
}

impl Refusal {
    pub(crate) fn new(status: u16, text: impl Into<String>) -> Refusal {
        Refusal { status, code: None, field: None, text: text.into() }
    }

    pub(crate) fn too_long(tokens: usize, tokens_max: usize) -> Refusal {
        let text = format!(
            "This model's maximum context length is {tokens_max} tokens. However, your messages resulted in {tokens} tokens."
        );
        Refusal {
            code: Some("context_length_exceeded"),
            field: Some("messages".to_owned()),
            ..Refusal::new(400, text)
        }
    }

    fn of(field: &str, text: impl Into<String>) -> Refusal {
        Refusal { field: Some(field.to_owned()), ..Refusal::new(400, text) }
    }

    pub(crate) fn body(&self) -> Value {
        let kind = match self.status {
            429 => "rate_limit_error",
            500.. => "server_error",
            _ => "invalid_request_error",
        };
        json!({"error": {"message": self.text, "type": kind, "param": self.field, "code": self.code}})
    }
}

/// Reads a request.
pub(crate) fn read(body: &[u8]) -> Result<Asked, Refusal> {
    let body: Value = serde_json::from_slice(body)
        .map_err(|error| Refusal::new(400, format!("the body is no JSON: {error}")))?;
    let Value::Object(fields) = body else { return Err(Refusal::new(400, "the body is no object")) };
    for (name, value) in &fields {
        check(name, value)?;
    }
    let messages = fields.get("messages").and_then(Value::as_array).filter(|messages| !messages.is_empty());
    let messages = messages.ok_or_else(|| Refusal::of("messages", "expected a list of messages"))?;
    Ok(Asked {
        model: text(&fields, "model")?,
        messages: messages.iter().enumerate().map(|(at, of)| message(at, of)).collect::<Result<_, _>>()?,
        tokens_max: tokens_max(&fields)?,
        is_streamed: fields.get("stream").and_then(Value::as_bool).unwrap_or(false),
        wants_usage: fields
            .get("stream_options")
            .and_then(|options| options.get("include_usage")?.as_bool())
            .unwrap_or(false),
    })
}

/// Refuses a field that this model cannot keep to.
fn check(name: &str, value: &Value) -> Result<(), Refusal> {
    let is_empty = match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => false,
    };
    let fits = match name {
        "tools" | "functions" | "stop" | "logit_bias" | "audio" => is_empty,
        "temperature" => is_empty || value.as_f64() == Some(0.0),
        "top_p" | "n" => is_empty || value.as_f64() == Some(1.0),
        "presence_penalty" | "frequency_penalty" => is_empty || value.as_f64() == Some(0.0),
        "logprobs" => is_empty || value == &json!(false),
        "response_format" => is_empty || value.get("type") == Some(&json!("text")),
        "tool_choice" => is_empty || value == "none" || value == "auto",
        // What is left says nothing about the answer, or is read elsewhere.
        _ => true,
    };
    let text =
        || format!("this model does not support {name} of {value}: it writes text, and always the likeliest");
    if fits { Ok(()) } else { Err(Refusal::of(name, text())) }
}

fn text(fields: &Map<String, Value>, name: &str) -> Result<String, Refusal> {
    let text = fields.get(name).and_then(Value::as_str);
    text.map(str::to_owned).ok_or_else(|| Refusal::of(name, format!("expected a text as {name}")))
}

/// The newer name of the limit wins; without one, the context is the limit.
fn tokens_max(fields: &Map<String, Value>) -> Result<usize, Refusal> {
    for name in ["max_completion_tokens", "max_tokens"] {
        if let Some(value) = fields.get(name).filter(|value| !value.is_null()) {
            let count =
                value.as_u64().filter(|count| *count > 0).and_then(|count| usize::try_from(count).ok());
            return count
                .ok_or_else(|| Refusal::of(name, format!("{value} is no number of tokens, 1 or more")));
        }
    }
    Ok(usize::MAX)
}

fn message(at: usize, message: &Value) -> Result<Message, Refusal> {
    let of = |field: &str| format!("messages[{at}].{field}");
    let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
    if !["system", "user", "assistant"].contains(&role) {
        return Err(Refusal::of(
            &of("role"),
            format!("expected system, user or assistant, and not {role:?}"),
        ));
    }
    if message.get("tool_calls").is_some_and(|calls| !calls.is_null()) {
        return Err(Refusal::of(&of("tool_calls"), "this model does not support tools"));
    }
    let text = match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            let text = |part: &Value| Some(part.get("text")?.as_str()?.to_owned());
            parts.iter().map(text).collect::<Option<Vec<String>>>().map(|parts| parts.concat()).ok_or_else(
                || Refusal::of(&of("content"), "this model reads text only, no images, sound or files"),
            )?
        }
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => {
            return Err(Refusal::of(&of("content"), "expected text"));
        }
    };
    Ok(Message { role: role.to_owned(), text })
}

impl Usage {
    fn json(self) -> Value {
        json!({
            "prompt_tokens": self.prompt,
            "completion_tokens": self.completion,
            "total_tokens": self.prompt + self.completion,
            "prompt_tokens_details": {"cached_tokens": 0},
        })
    }
}

impl Naming {
    /// A piece of a streamed answer.
    pub(crate) fn piece(&self, delta: &Value, end: Option<End>) -> Value {
        let choice =
            json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": end.map(End::name)});
        self.chunk(json!([choice]), Value::Null)
    }

    /// The last piece, which says what the answer took.
    pub(crate) fn usage(&self, usage: Usage) -> Value {
        self.chunk(json!([]), usage.json())
    }

    /// A whole answer.
    pub(crate) fn whole(&self, text: &str, end: End, usage: Usage) -> Value {
        let message = json!({"role": "assistant", "content": text, "refusal": null});
        let choice = json!({"index": 0, "message": message, "logprobs": null, "finish_reason": end.name()});
        json!({
            "id": self.id,
            "object": "chat.completion",
            "created": self.created,
            "model": self.model,
            "choices": [choice],
            "usage": usage.json(),
        })
    }

    fn chunk(&self, choices: Value, usage: Value) -> Value {
        let mut chunk = json!({
            "id": self.id,
            "object": "chat.completion.chunk",
            "created": self.created,
            "model": self.model,
            "choices": choices,
        });
        if self.wants_usage {
            chunk["usage"] = usage;
        }
        chunk
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(field: &str, value: Value) -> Result<Asked, Refusal> {
        let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "hello"}]});
        body[field] = value;
        read(body.to_string().as_bytes())
    }

    #[test]
    fn what_the_model_cannot_do_is_refused_by_name() {
        let image = json!([{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]);
        for (field, value, named) in [
            ("tools", json!([{"type": "function", "function": {"name": "read"}}]), "tools"),
            ("messages", json!([{"role": "user", "content": image}]), "messages[0].content"),
            ("messages", json!([{"role": "tool", "content": "42", "tool_call_id": "a"}]), "messages[0].role"),
            ("messages", json!([]), "messages"),
            ("temperature", json!(0.7), "temperature"),
            ("n", json!(2), "n"),
            ("response_format", json!({"type": "json_schema"}), "response_format"),
            ("max_tokens", json!(0), "max_tokens"),
            ("max_completion_tokens", json!("many"), "max_completion_tokens"),
            ("model", json!(7), "model"),
        ] {
            let refusal = asked(field, value.clone()).expect_err(field);
            let body = refusal.body();
            assert_eq!((refusal.status, &body["error"]["param"]), (400, &json!(named)), "{field} {value}");
            assert_eq!(body["error"]["type"], "invalid_request_error");
        }
        assert_eq!(read(b"{").expect_err("half an object").status, 400);
    }

    #[test]
    fn what_changes_nothing_is_taken() {
        let parts = json!([{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]);
        assert_eq!(asked("messages", parts).expect("parts").messages[0].text, "ab");
        for (field, value, tokens_max) in [
            ("tools", json!([]), usize::MAX),
            ("temperature", json!(0), usize::MAX),
            ("user", json!("somebody"), usize::MAX),
            ("max_tokens", json!(12), 12),
            ("max_completion_tokens", json!(13), 13),
        ] {
            assert_eq!(asked(field, value).expect(field).tokens_max, tokens_max, "{field}");
        }
    }
}
