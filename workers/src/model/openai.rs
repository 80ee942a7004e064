//! Chat completions: any endpoint that speaks that protocol, streamed.
//!
//! Leaves putting pieces together to [`super::assembly`] and mending conversations to [`super::conversation`]. Invariant: the key
//! is sent to the endpoint alone (no redirect is followed) and never shown; the server's silence, length and errors all end in a
//! [`ModelError`], never in an answer that is not whole.

use std::time::{Duration, SystemTime};

use reqwest::Response;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use rust_decimal::Decimal;
use serde_json::json;
use tokio::time::Instant;

use super::assembly::{Assembled, Assembly};
use super::conversation::{Turn, turns};
use super::error::{Kind, ModelError, classify, retry_after};
use super::sse::{Event, Reader};
use super::{Completion, Provider, Request, ToolCall, ToolSchema, schema};
use crate::Json;
use crate::limits::{ERROR_BYTES_MAX, MODEL_CONNECT, MODEL_IDLE, MODEL_USAGE_WAIT, STREAM_BYTES_MAX};
use crate::options::{OpenAiSettings, Prices};
use crate::sdk::{TaskContext, error_chain, no_roots, with_ring};

/// See the module.
pub(crate) struct OpenAi {
    http: reqwest::Client,
    endpoint: reqwest::Url,
    settings: OpenAiSettings,
    key: Key,
    idle: Duration,
    prices: Option<(Decimal, Decimal)>,
}

/// The key, or why there is none.
enum Key {
    NotWanted,
    Missing { variable: String },
    Present(String),
}

impl OpenAi {
    pub(crate) fn new(settings: &OpenAiSettings) -> Result<OpenAi, String> {
        let base = settings.url.trim_end_matches('/');
        let whole = if base.ends_with("/chat/completions") {
            base.to_owned()
        } else {
            format!("{base}/chat/completions")
        };
        let endpoint =
            reqwest::Url::parse(&whole).map_err(|error| format!("the model's address {whole:?}: {error}"))?;
        let builder = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(MODEL_CONNECT);
        let builder = match endpoint.scheme() {
            "https" => with_ring(builder),
            "http" => no_roots(builder),
            other => return Err(format!("the model's address begins with {other}:, not http: or https:")),
        };
        let key = match settings.key_env.as_deref().filter(|name| !name.is_empty()) {
            None => Key::NotWanted,
            Some(variable) => match std::env::var(variable).ok().filter(|key| !key.trim().is_empty()) {
                Some(key) => Key::Present(key.trim().to_owned()),
                None => Key::Missing { variable: variable.to_owned() },
            },
        };
        Ok(OpenAi {
            http: builder.build().map_err(|error| error_chain(&error))?,
            endpoint,
            settings: settings.clone(),
            key,
            idle: settings.idle_ms.map_or(MODEL_IDLE, Duration::from_millis),
            prices: settings.prices.as_ref().map(prices).transpose()?,
        })
    }

    fn body(&self, request: &Request) -> Result<Json, ModelError> {
        let turns = turns(&request.messages);
        if !turns.iter().any(|turn| !matches!(turn, Turn::System { .. })) {
            return Err(ModelError::new(
                Kind::BadRequest,
                "there is nothing to answer: the conversation is empty",
            ));
        }
        let mut body = json!({
            "model": self.settings.name,
            "messages": turns.iter().map(message).collect::<Vec<Json>>(),
            "stream": true,
            "stream_options": {"include_usage": true},
        });
        if !request.tools.is_empty() {
            body["tools"] = request.tools.iter().map(tool).collect();
        }
        if let Some(max_tokens) = self.settings.max_tokens {
            body["max_tokens"] = max_tokens.into();
        }
        Ok(body)
    }

    async fn send(&self, body: &Json) -> Result<Response, ModelError> {
        let mut request = self.http.post(self.endpoint.clone()).header("content-type", "application/json");
        match &self.key {
            Key::NotWanted => {}
            Key::Missing { variable } => {
                let text = format!("the environment variable {variable} with the model's key is not set");
                return Err(ModelError::new(Kind::Auth, text));
            }
            Key::Present(key) => request = request.bearer_auth(key),
        }
        let request = request.header("accept", "text/event-stream").body(body.to_string());
        let response = match tokio::time::timeout(self.idle, request.send()).await {
            Ok(response) => response.map_err(|error| transport(error, Kind::Overloaded))?,
            Err(_) => return Err(self.silent()),
        };
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status().as_u16();
        let wait = wait_asked(response.headers(), SystemTime::now());
        // An error's body is worth a moment, not more.
        let bytes = tokio::time::timeout(MODEL_USAGE_WAIT, read_up_to(response, ERROR_BYTES_MAX)).await;
        let bytes = bytes.map(|read| read.0).unwrap_or_default();
        let body = serde_json::from_slice(&bytes).unwrap_or_else(|_| String::from_utf8_lossy(&bytes).into());
        Err(classify(Some(status), &body).after(wait))
    }

    async fn answer(&self, response: Response, task: &TaskContext) -> Result<Assembled, ModelError> {
        let kind =
            response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let mut assembly = Assembly::default();
        if kind.starts_with("application/json") {
            self.whole(response, &mut assembly, task).await?;
        } else {
            self.stream(response, &mut assembly, task).await?;
        }
        assembly.finish(&task.op().replace('.', "_"))
    }

    /// Reads the answer of a server that does not stream.
    async fn whole(
        &self,
        response: Response,
        assembly: &mut Assembly,
        task: &TaskContext,
    ) -> Result<(), ModelError> {
        let read = tokio::time::timeout(self.idle, read_up_to(response, STREAM_BYTES_MAX)).await;
        let (bytes, complete) = read.map_err(|_| self.silent())?;
        let answer: Json = match serde_json::from_slice(&bytes) {
            Ok(answer) if complete => answer,
            Ok(_) | Err(_) => return Err(ModelError::new(Kind::Cut, "the answer is not whole")),
        };
        task.progress(&assembly.add(&answer)?.text);
        assembly.done();
        Ok(())
    }

    async fn stream(
        &self,
        mut response: Response,
        assembly: &mut Assembly,
        task: &TaskContext,
    ) -> Result<(), ModelError> {
        let mut reader = Reader::default();
        let mut silent_at = Instant::now() + self.idle;
        while !assembly.is_done() {
            let chunk = match tokio::time::timeout_at(silent_at, response.chunk()).await {
                Ok(Ok(Some(chunk))) => chunk,
                Ok(Ok(None)) => break,
                // The answer was whole; only the farewell is missing.
                Ok(Err(_)) | Err(_) if assembly.has_end() => return Ok(()),
                Ok(Err(error)) => return Err(transport(error, Kind::Cut)),
                Err(_) => return Err(self.silent()),
            };
            let events = reader
                .push(&chunk)
                .map_err(|error| ModelError::new(Kind::Cut, error.to_string()).for_good())?;
            for event in events {
                if take(&event, assembly, task)? {
                    silent_at = Instant::now()
                        + if assembly.has_end() { MODEL_USAGE_WAIT.min(self.idle) } else { self.idle };
                }
            }
        }
        let last =
            reader.finish().map_err(|error| ModelError::new(Kind::Cut, error.to_string()).for_good())?;
        if let Some(event) = last {
            take(&event, assembly, task)?;
        }
        Ok(())
    }

    fn silent(&self) -> ModelError {
        ModelError::new(Kind::Timeout, format!("the model said nothing for {} s", self.idle.as_secs_f64()))
    }

    fn completion(&self, answer: Assembled) -> Completion {
        let count = |name: &str| answer.usage.get(name).and_then(Json::as_u64);
        let (read, written) = (count("prompt_tokens"), count("completion_tokens"));
        let mut usage = json!({"model": answer.model.as_deref().unwrap_or(&self.settings.name)});
        let cached = answer.usage.pointer("/prompt_tokens_details/cached_tokens").and_then(Json::as_u64);
        for (name, count) in [("input_tokens", read), ("output_tokens", written), ("cached_tokens", cached)] {
            if let Some(count) = count {
                usage[name] = count.into();
            }
        }
        if let Some(stop) = answer.stop {
            usage["stop"] = stop.into();
        }
        let cost = match (self.prices, read, written) {
            (Some((input, output)), Some(read), Some(written)) => cost(input, output, read, written),
            (None, _, _) | (_, None, _) | (_, _, None) => None,
        };
        let Assembled { text, reasoning, calls, .. } = answer;
        Completion { text, reasoning, calls, usage, cost }
    }

    /// Takes the key out of what a server says: some repeat it.
    fn masked(&self, mut error: ModelError) -> ModelError {
        if let Key::Present(key) = &self.key {
            error.text = error.text.replace(key.as_str(), "[key]");
        }
        error
    }
}

#[async_trait::async_trait]
impl Provider for OpenAi {
    async fn complete(&self, request: &Request, task: &TaskContext) -> Result<Completion, ModelError> {
        let asked = async {
            let response = self.send(&self.body(request)?).await?;
            self.answer(response, task).await
        };
        asked.await.map(|answer| self.completion(answer)).map_err(|error| self.masked(error))
    }
}

/// Takes in an event; says whether it brought anything.
fn take(event: &Event, assembly: &mut Assembly, task: &TaskContext) -> Result<bool, ModelError> {
    if event.data.trim() == "[DONE]" {
        assembly.done();
        return Ok(true);
    }
    let Ok(piece) = serde_json::from_str::<Json>(&event.data) else {
        return Err(if event.name == "error" {
            classify(None, &event.data.clone().into())
        } else {
            ModelError::new(Kind::Cut, "the stream contains what is no JSON")
        });
    };
    if event.name == "error" {
        return Err(classify(None, &piece));
    }
    let added = assembly.add(&piece)?;
    task.progress(&added.text);
    Ok(added.something)
}

fn message(turn: &Turn) -> Json {
    match turn {
        Turn::System { text } => json!({"role": "system", "content": text}),
        Turn::User { text, images } if images.is_empty() => json!({"role": "user", "content": text}),
        Turn::User { text, images } => {
            let text = (!text.is_empty()).then(|| json!({"type": "text", "text": text}));
            let images = images.iter().map(|url| json!({"type": "image_url", "image_url": {"url": url}}));
            json!({"role": "user", "content": text.into_iter().chain(images).collect::<Vec<Json>>()})
        }
        Turn::Assistant { text, calls } if calls.is_empty() => json!({"role": "assistant", "content": text}),
        Turn::Assistant { text, calls } => {
            json!({"role": "assistant", "content": text, "tool_calls": calls.iter().map(call).collect::<Vec<Json>>()})
        }
        Turn::Tool { id, text } => json!({"role": "tool", "tool_call_id": id, "content": text}),
    }
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

/// A failure of the connection. It never names the address, which may carry what is nobody's business.
fn transport(error: reqwest::Error, otherwise: Kind) -> ModelError {
    let kind = if error.is_timeout() && !error.is_connect() { Kind::Timeout } else { otherwise };
    let what = if error.is_connect() {
        "cannot reach the model's server"
    } else {
        "the connection to the model broke"
    };
    ModelError::new(kind, format!("{what}: {}", error_chain(&error.without_url())))
}

/// The wait that a server asks for.
fn wait_asked(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let ms = text("retry-after-ms").and_then(|ms| ms.trim().parse().ok()).map(Duration::from_millis);
    ms.or_else(|| retry_after(text("retry-after")?, now))
}

/// Reads at most so many bytes; says whether that was all.
async fn read_up_to(mut response: Response, most: usize) -> (Vec<u8>, bool) {
    let mut bytes = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if bytes.len() + chunk.len() <= most => bytes.extend_from_slice(&chunk),
            Ok(None) => return (bytes, true),
            Ok(Some(_)) | Err(_) => return (bytes, false),
        }
    }
}

fn prices(prices: &Prices) -> Result<(Decimal, Decimal), String> {
    let read = |text: &str| text.parse::<Decimal>().map_err(|error| format!("the price {text:?}: {error}"));
    Ok((read(&prices.input)?, read(&prices.output)?))
}

fn cost(input: Decimal, output: Decimal, read: u64, written: u64) -> Option<String> {
    let read = input.checked_mul(read.into())?;
    let written = output.checked_mul(written.into())?;
    let cost = read.checked_add(written)?.checked_div(Decimal::from(1_000_000))?;
    Some(cost.normalize().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_completed_or_refused() {
        let settings = |url: &str| OpenAiSettings { url: url.to_owned(), ..OpenAiSettings::default() };
        for (url, endpoint) in [
            ("http://h:1/v1", Some("http://h:1/v1/chat/completions")),
            ("http://h:1/v1/", Some("http://h:1/v1/chat/completions")),
            ("http://h/x/chat/completions", Some("http://h/x/chat/completions")),
            ("ftp://h", None),
            ("h", None),
        ] {
            let model = OpenAi::new(&settings(url)).ok();
            assert_eq!(model.as_ref().map(|model| model.endpoint.as_str()), endpoint, "{url}");
        }
    }

    #[test]
    fn costs_are_exact() {
        let (input, output) = prices(&Prices { input: "2.50".into(), output: "10".into() }).unwrap();
        assert_eq!(cost(input, output, 1_000, 100).as_deref(), Some("0.0035"));
        assert_eq!(cost(input, output, 0, 0).as_deref(), Some("0"));
        assert!(prices(&Prices { input: "cheap".into(), output: "10".into() }).is_err());
    }
}
