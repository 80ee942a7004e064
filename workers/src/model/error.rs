//! Why a model did not answer, sorted by what helps.
//!
//! Leaves reading responses to the providers. Invariant: the text of an error never contains the key.

use std::time::{Duration, SystemTime};

use crate::Json;
use crate::limits::{ERROR_CHARS_MAX, RETRY_AFTER_DEFAULT, RETRY_AFTER_MAX};
use crate::sdk::Failure;
use crate::tools::quote;

/// See the module.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{text}")]
pub(crate) struct ModelError {
    pub(crate) kind: Kind,
    pub(crate) text: String,
    pub(crate) retryable: bool,
    pub(crate) retry_after: Option<Duration>,
}

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Too many requests: wait.
    RateLimited,
    /// The other side is in trouble: wait.
    Overloaded,
    /// The conversation is too long: shorten it.
    ContextOverflow,
    /// The request is wrong: mend it.
    BadRequest,
    /// The key is wrong or missing.
    Auth,
    /// The model or its provider will not answer this.
    Refused,
    /// No answer in time.
    Timeout,
    /// The answer broke off.
    Cut,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::RateLimited => "RateLimited",
            Kind::Overloaded => "Overloaded",
            Kind::ContextOverflow => "ContextOverflow",
            Kind::BadRequest => "BadRequest",
            Kind::Auth => "Auth",
            Kind::Refused => "Refused",
            Kind::Timeout => "Timeout",
            Kind::Cut => "Cut",
        }
    }

    fn retryable(self) -> bool {
        match self {
            Kind::RateLimited | Kind::Overloaded | Kind::Timeout | Kind::Cut => true,
            Kind::ContextOverflow | Kind::BadRequest | Kind::Auth | Kind::Refused => false,
        }
    }
}

impl ModelError {
    pub(crate) fn new(kind: Kind, text: impl Into<String>) -> ModelError {
        let text = quote(&text.into(), ERROR_CHARS_MAX);
        // Flows declare that field of this error, so there is always one.
        let retry_after = (kind == Kind::RateLimited).then_some(RETRY_AFTER_DEFAULT);
        ModelError { kind, text, retryable: kind.retryable(), retry_after }
    }

    /// Another attempt would end the same way.
    pub(crate) fn for_good(mut self) -> ModelError {
        self.retryable = false;
        self
    }

    pub(crate) fn after(mut self, wait: Option<Duration>) -> ModelError {
        if wait.is_some() {
            self.retry_after = wait;
        }
        self
    }
}

impl From<ModelError> for Failure {
    fn from(error: ModelError) -> Failure {
        let mut failure = Failure::new(error.kind.name(), error.text);
        failure.retryable = error.retryable;
        failure.retry_after = error.retry_after;
        failure
    }
}

/// Sorts an error by its HTTP status (none: it came in a stream) and its body.
pub(crate) fn classify(status: Option<u16>, body: &Json) -> ModelError {
    let error = body.get("error").filter(|error| !error.is_null()).unwrap_or(body);
    let text = error.get("message").and_then(Json::as_str).or(error.as_str());
    let text =
        text.map_or_else(|| if error.is_null() { String::new() } else { error.to_string() }, str::to_owned);
    let word = |name: &str| match error.get(name) {
        Some(Json::String(word)) => word.to_lowercase(),
        Some(Json::Number(number)) => number.to_string(),
        Some(Json::Null | Json::Bool(_) | Json::Array(_) | Json::Object(_)) | None => String::new(),
    };
    let (code, kind) = (word("code"), word("type"));
    // In a stream, the code or the status inside stands for the status of the response.
    let inner = || [&code, &word("status")].iter().find_map(|word| word.parse::<u16>().ok());
    let status = status.or_else(inner);
    let has = |words: &[&str]| {
        let lower = text.to_lowercase();
        words.iter().any(|word| code.contains(word) || kind.contains(word) || lower.contains(word))
    };
    let shown = match status {
        Some(status) => format!("the model's server answered {status}: {text}"),
        None => format!("the model's server reported an error: {text}"),
    };
    let error = |kind: Kind| ModelError::new(kind, shown.clone());
    if has(&CONTEXT_WORDS) || status == Some(413) {
        return error(Kind::ContextOverflow);
    }
    if has(&["insufficient_quota", "billing_hard_limit"]) {
        return error(Kind::RateLimited).for_good();
    }
    if has(&["content_filter", "content_policy", "content policy", "safety"])
        && status.is_none_or(|s| s < 500)
    {
        return error(Kind::Refused);
    }
    match status {
        Some(401 | 403) => error(Kind::Auth),
        Some(429) => error(Kind::RateLimited),
        Some(408 | 504) => error(Kind::Timeout),
        Some(500..) => error(Kind::Overloaded),
        Some(_) => error(Kind::BadRequest),
        None if has(&["rate_limit", "rate limit", "too many requests"]) => error(Kind::RateLimited),
        None if has(&["authentication", "invalid_api_key", "permission"]) => error(Kind::Auth),
        None if has(&["timeout", "timed out"]) => error(Kind::Timeout),
        None if has(&["invalid_request", "bad_request"]) => error(Kind::BadRequest),
        None => error(Kind::Overloaded),
    }
}

const CONTEXT_WORDS: [&str; 9] = [
    "context_length",
    "context length",
    "context window",
    "maximum context",
    "context_window",
    "prompt is too long",
    "too many tokens",
    "input is too long",
    "exceeds the available context",
];

/// Reads `Retry-After`: seconds, or a date.
pub(crate) fn retry_after(header: &str, now: SystemTime) -> Option<Duration> {
    let header = header.trim();
    let wait = match header.parse::<f64>() {
        Ok(seconds) if seconds >= 0.0 => Duration::try_from_secs_f64(seconds).unwrap_or(RETRY_AFTER_MAX),
        Ok(_) => return None,
        Err(_) => httpdate::parse_http_date(header).ok()?.duration_since(now).unwrap_or_default(),
    };
    // Whole milliseconds can be written as a duration of the language.
    let ms = u64::try_from(wait.min(RETRY_AFTER_MAX).as_millis()).unwrap_or(u64::MAX);
    Some(Duration::from_millis(ms))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn errors_are_sorted_by_status_and_body() {
        for (status, body, kind, retryable) in [
            (Some(429), json!({"error": {"message": "slow down"}}), Kind::RateLimited, true),
            (
                Some(429),
                json!({"error": {"message": "pay", "code": "insufficient_quota"}}),
                Kind::RateLimited,
                false,
            ),
            (Some(401), json!({"error": {"message": "bad key"}}), Kind::Auth, false),
            (Some(403), json!(null), Kind::Auth, false),
            (
                Some(400),
                json!({"error": {"message": "no", "code": "context_length_exceeded"}}),
                Kind::ContextOverflow,
                false,
            ),
            (
                Some(400),
                json!({"error": "This model's maximum context length is 8192 tokens"}),
                Kind::ContextOverflow,
                false,
            ),
            (
                Some(400),
                json!({"error": {"message": "filtered", "code": "content_filter"}}),
                Kind::Refused,
                false,
            ),
            (Some(400), json!({"error": {"message": "bad schema"}}), Kind::BadRequest, false),
            (Some(404), json!({"error": {"message": "no such model"}}), Kind::BadRequest, false),
            (Some(413), json!("too big"), Kind::ContextOverflow, false),
            (Some(500), json!({}), Kind::Overloaded, true),
            (Some(503), json!("busy"), Kind::Overloaded, true),
            (Some(529), json!({"type": "overloaded_error"}), Kind::Overloaded, true),
            (Some(504), json!(null), Kind::Timeout, true),
            (None, json!({"error": {"message": "x", "type": "rate_limit_error"}}), Kind::RateLimited, true),
            (None, json!({"error": {"message": "x", "code": 429}}), Kind::RateLimited, true),
            (None, json!({"error": {"message": "Server overloaded"}}), Kind::Overloaded, true),
            (None, json!({"error": {"code": "502", "message": "x"}}), Kind::Overloaded, true),
        ] {
            let error = classify(status, &body);
            assert_eq!((error.kind, error.retryable), (kind, retryable), "{status:?} {body}");
        }
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        for (header, wait_ms) in [
            ("20", Some(20_000)),
            (" 1.5 ", Some(1_500)),
            ("0", Some(0)),
            ("Sun, 06 Nov 1994 08:50:07 GMT", Some(30_000)),
            ("Sun, 06 Nov 1994 08:49:00 GMT", Some(0)),
            ("999999999999999999999", Some(86_400_000)),
            ("-3", None),
            ("soon", None),
        ] {
            assert_eq!(retry_after(header, now), wait_ms.map(Duration::from_millis), "{header}");
        }
    }
}
