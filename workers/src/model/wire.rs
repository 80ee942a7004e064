//! One request to a model's server and its streamed answer.
//!
//! Leaves what is asked and what the pieces mean to the protocols. Invariant: the key is sent to the endpoint alone (no redirect is
//! followed) and never shown; the server's silence, length and errors all end in a [`ModelError`].

use std::time::{Duration, SystemTime};

use outlast_protocol::profile::Endpoint;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{RequestBuilder, Response};
use tokio::time::Instant;

use super::Variables;
use super::error::{Kind, ModelError, classify, retry_after};
use super::heard::{Assemble, Progress};
use super::sse::{Event, Reader};
use crate::Json;
use crate::limits::{ERROR_BYTES_MAX, MODEL_CONNECT, MODEL_IDLE, MODEL_USAGE_WAIT, STREAM_BYTES_MAX};
use crate::sdk::{Mask, TaskContext, error_chain, no_roots, with_ring};

/// An endpoint and how to reach it.
pub(crate) struct Wire {
    http: reqwest::Client,
    endpoint: reqwest::Url,
    key: Key,
    idle: Duration,
}

/// The key, or why there is none.
enum Key {
    NotWanted,
    Missing { variable: String },
    Present { variable: String, key: String, mask: Mask },
}

impl Wire {
    /// Prepares requests to `path` below the base of the settings.
    pub(crate) fn new(settings: &Endpoint, path: &str, variable: Variables<'_>) -> Result<Wire, String> {
        let base = settings.url.trim_end_matches('/');
        let whole = if base.ends_with(path) { base.to_owned() } else { format!("{base}{path}") };
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
            Some(name) => match variable(name).filter(|key| !key.trim().is_empty()) {
                Some(key) => {
                    let (variable, key) = (name.to_owned(), key.trim().to_owned());
                    Key::Present { mask: Mask::new([(name, key.as_str())]), variable, key }
                }
                None => Key::Missing { variable: name.to_owned() },
            },
        };
        Ok(Wire {
            http: builder.build().map_err(|error| error_chain(&error))?,
            endpoint,
            key,
            idle: settings.idle_ms.map_or(MODEL_IDLE, Duration::from_millis),
        })
    }

    /// Sends a body; `sign` adds the key to the request as the provider wants it.
    pub(crate) async fn send(
        &self,
        body: &Json,
        sign: impl FnOnce(RequestBuilder, Option<&str>) -> RequestBuilder,
    ) -> Result<Response, ModelError> {
        let key = match &self.key {
            Key::NotWanted => None,
            Key::Missing { variable } => {
                let text = format!("the environment variable {variable} with the model's key is not set");
                return Err(ModelError::new(Kind::Auth, text));
            }
            Key::Present { key, .. } => Some(key.as_str()),
        };
        let request = self
            .http
            .post(self.endpoint.clone())
            .header("content-type", "application/json")
            .header("accept", "text/event-stream")
            .body(body.to_string());
        let response = match tokio::time::timeout(self.idle, sign(request, key).send()).await {
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
        Err(classify(Some(status), &self.without_key(body)).after(wait))
    }

    /// Reads an answer to its end, showing its text on the way.
    pub(crate) async fn read(
        &self,
        response: Response,
        assembly: &mut dyn Assemble,
        task: &TaskContext,
    ) -> Result<(), ModelError> {
        let kind =
            response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if kind.starts_with("application/json") {
            self.whole(response, assembly, task).await
        } else {
            self.stream(response, assembly, task).await
        }
    }

    /// Reads the answer of a server that does not stream.
    async fn whole(
        &self,
        response: Response,
        assembly: &mut dyn Assemble,
        task: &TaskContext,
    ) -> Result<(), ModelError> {
        let read = tokio::time::timeout(self.idle, read_up_to(response, STREAM_BYTES_MAX)).await;
        let (bytes, complete) = read.map_err(|_| self.silent())?;
        let answer: Json = match serde_json::from_slice(&bytes) {
            Ok(answer) if complete => answer,
            Ok(_) | Err(_) => return Err(ModelError::new(Kind::Cut, "the answer is not whole")),
        };
        task.progress(&assembly.add(&self.harmless("", answer))?.text);
        assembly.done();
        Ok(())
    }

    async fn stream(
        &self,
        mut response: Response,
        assembly: &mut dyn Assemble,
        task: &TaskContext,
    ) -> Result<(), ModelError> {
        let too_much = |error: super::sse::TooMuch| ModelError::new(Kind::Cut, error.to_string()).for_good();
        let mut reader = Reader::default();
        let mut silent_at = Instant::now() + self.idle;
        while assembly.progress() != Progress::Over {
            let chunk = match tokio::time::timeout_at(silent_at, response.chunk()).await {
                Ok(Ok(Some(chunk))) => chunk,
                Ok(Ok(None)) => break,
                // The answer was whole; only the farewell is missing.
                Ok(Err(_)) | Err(_) if assembly.progress() == Progress::Ended => return Ok(()),
                Ok(Err(error)) => return Err(transport(error, Kind::Cut)),
                Err(_) => return Err(self.silent()),
            };
            for event in reader.push(&chunk).map_err(too_much)? {
                if self.take(&event, assembly, task)? {
                    silent_at = Instant::now()
                        + match assembly.progress() {
                            Progress::Open => self.idle,
                            Progress::Ended | Progress::Over => MODEL_USAGE_WAIT.min(self.idle),
                        };
                }
            }
        }
        if let Some(event) = reader.finish().map_err(too_much)? {
            self.take(&event, assembly, task)?;
        }
        Ok(())
    }

    fn silent(&self) -> ModelError {
        ModelError::new(Kind::Timeout, format!("the model said nothing for {} s", self.idle.as_secs_f64()))
    }

    /// Takes in an event; says whether it brought anything.
    fn take(
        &self,
        event: &Event,
        assembly: &mut dyn Assemble,
        task: &TaskContext,
    ) -> Result<bool, ModelError> {
        if event.data.trim() == "[DONE]" {
            assembly.done();
            return Ok(true);
        }
        let is_error = event.name == "error";
        let piece = match serde_json::from_str::<Json>(&event.data) {
            Ok(piece) => piece,
            Err(_) if is_error => event.data.clone().into(),
            Err(_) => return Err(ModelError::new(Kind::Cut, "the stream contains what is no JSON")),
        };
        let piece = self.harmless(&event.name, piece);
        if is_error {
            return Err(classify(None, &piece));
        }
        let added = assembly.add(&piece)?;
        task.progress(&added.text);
        Ok(added.something)
    }

    /// Takes the key out of a piece that tells of an error, whose text is shown; an answer stays as it is.
    fn harmless(&self, event: &str, piece: Json) -> Json {
        let kind = piece.get("type").and_then(Json::as_str).unwrap_or(event);
        let has_error = piece.get("error").is_some_and(|error| !error.is_null());
        let tells = has_error || event == "error" || ["error", "response.failed"].contains(&kind);
        if tells { self.without_key(piece) } else { piece }
    }

    /// Takes the key out of what a server says: some repeat it. This comes before any cut, which would leave a part of it.
    fn without_key(&self, said: Json) -> Json {
        match &self.key {
            Key::Present { mask, .. } => mask.json(said),
            Key::NotWanted | Key::Missing { .. } => said,
        }
    }

    /// Takes the key out of an error, wherever it came in from, and says where a refused one comes from.
    pub(crate) fn explained(&self, mut error: ModelError) -> ModelError {
        match &self.key {
            Key::Present { variable, mask, .. } => {
                error.text = mask.text(error.text);
                if error.kind == Kind::Auth {
                    error
                        .text
                        .push_str(&format!(" (the key is that of the environment variable {variable})"));
                }
            }
            Key::NotWanted if error.kind == Kind::Auth => {
                error
                    .text
                    .push_str(" (no key was sent: OUTLAST_MODEL_KEY_ENV names the variable that holds one)");
            }
            Key::NotWanted | Key::Missing { .. } => {}
        }
        error
    }

    #[cfg(test)]
    fn endpoint(&self) -> &str {
        self.endpoint.as_str()
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_completed_or_refused() {
        let settings = |url: &str| Endpoint { url: url.to_owned(), ..Endpoint::default() };
        for (url, endpoint) in [
            ("http://h:1/v1", Some("http://h:1/v1/chat/completions")),
            ("http://h:1/v1/", Some("http://h:1/v1/chat/completions")),
            ("http://h/x/chat/completions", Some("http://h/x/chat/completions")),
            ("ftp://h", None),
            ("h", None),
        ] {
            let wire = Wire::new(&settings(url), "/chat/completions", &|_| None).ok();
            assert_eq!(wire.as_ref().map(Wire::endpoint), endpoint, "{url}");
        }
    }
}
