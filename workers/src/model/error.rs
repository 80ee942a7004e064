//! Why a model did not answer, sorted by what helps.
//!
//! Leaves reading responses to the providers. Invariant: the text of an error never contains the key.

use std::time::{Duration, SystemTime};

use crate::Json;
use crate::limits::{ERROR_CHARS_MAX, RETRY_AFTER_DEFAULT, RETRY_AFTER_MAX, RETRY_AFTER_TOLD};
use crate::sdk::{Failure, duration_text};
use crate::tools::quote;

/// See the module.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{text}")]
pub(crate) struct ModelError {
    pub(crate) kind: Kind,
    pub(crate) text: String,
    pub(crate) retryable: bool,
    pub(crate) retry_after: Option<Duration>,
    /// Money spent on it, a decimal, if it is known.
    pub(crate) cost: Option<String>,
    /// What it took, if something was heard.
    pub(crate) usage: Option<Json>,
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
        ModelError { kind, text, retryable: kind.retryable(), retry_after, cost: None, usage: None }
    }

    /// Another attempt would end the same way.
    pub(crate) fn for_good(mut self) -> ModelError {
        self.retryable = false;
        self
    }

    pub(crate) fn after(mut self, wait: Option<Duration>) -> ModelError {
        if let Some(wait) = wait {
            self.retry_after = Some(wait);
            if wait > RETRY_AFTER_TOLD {
                self = self.noting(&format!("it asks to wait {}", duration_text(wait)));
            }
        }
        self
    }

    /// Adds what helps to understand it.
    pub(crate) fn noting(mut self, note: &str) -> ModelError {
        self.text.push_str(&format!(" ({note})"));
        self
    }
}

impl From<ModelError> for Failure {
    fn from(error: ModelError) -> Failure {
        let mut failure = Failure::new(error.kind.name(), error.text);
        failure.retryable = error.retryable;
        failure.retry_after = error.retry_after;
        failure.cost = error.cost.map(String::into_boxed_str);
        failure.usage = error.usage.map(Box::new);
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
    let error = |kind: Kind| match kind {
        Kind::RateLimited | Kind::Overloaded => {
            ModelError::new(kind, shown.clone()).after(wait_in(error, &text))
        }
        Kind::ContextOverflow | Kind::BadRequest | Kind::Auth | Kind::Refused | Kind::Timeout | Kind::Cut => {
            ModelError::new(kind, shown.clone())
        }
    };
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
    // Some providers refuse a key as they refuse any other field.
    if status == Some(400) && has(&KEY_WORDS) {
        return error(Kind::Auth);
    }
    match status {
        Some(401..=403) => error(Kind::Auth),
        Some(429) => error(Kind::RateLimited),
        Some(408 | 504) => error(Kind::Timeout),
        Some(500..) => error(Kind::Overloaded),
        Some(_) => error(Kind::BadRequest),
        None if has(&["rate_limit", "rate limit", "too many requests", "rate_limited"]) => {
            error(Kind::RateLimited)
        }
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

const KEY_WORDS: [&str; 6] = [
    "api key expired",
    "api key not valid",
    "api_key_invalid",
    "invalid api key",
    "invalid_api_key",
    "key expired",
];

/// The wait that an error's body asks for: a field, or a sentence such as "try again in 1.5s" or "in 6m0s".
fn wait_in(error: &Json, text: &str) -> Option<Duration> {
    let ms = |name: &str| error.get(name).and_then(Json::as_f64).map(|ms| ms / 1_000.0);
    let seconds = || error.get("retry_after").and_then(Json::as_f64);
    let details = error.get("details").and_then(Json::as_array).into_iter().flatten();
    let delay = details.filter_map(|detail| detail.get("retryDelay")?.as_str()).find_map(seconds_of);
    let said = || {
        let lower = text.to_lowercase();
        let at = ["try again in ", "retry in ", "retry after "]
            .iter()
            .find_map(|word| lower.find(word).map(|at| at + word.len()))?;
        seconds_of(lower[at..].split(' ').next().unwrap_or_default()).or_else(|| {
            // "in 20 seconds"
            let mut words = lower[at..].split(' ');
            let (count, unit) = (words.next()?.parse::<f64>().ok()?, words.next()?);
            match unit.get(..3)? {
                "mil" | "ms" => Some(count / 1_000.0),
                "sec" => Some(count),
                "min" => Some(count * 60.0),
                "hou" => Some(count * 3_600.0),
                _ => None,
            }
        })
    };
    let seconds = ms("retry_after_ms").or_else(seconds).or(delay).or_else(said)?;
    bounded(Duration::try_from_secs_f64(seconds).ok()?)
}

/// Reads `1.5s`, `6m0s`, `250ms`, `12h`.
fn seconds_of(text: &str) -> Option<f64> {
    let (mut sum, mut rest) = (0.0, text.trim_end_matches(['.', ',', ')', '!']));
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let unit_at = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let count: f64 = rest[..unit_at].parse().ok()?;
        rest = &rest[unit_at..];
        let length = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        sum += count
            * match &rest[..length] {
                "ms" => 0.001,
                "s" => 1.0,
                "m" => 60.0,
                "h" => 3_600.0,
                "d" => 86_400.0,
                _ => return None,
            };
        rest = &rest[length..];
    }
    Some(sum)
}

/// Reads `Retry-After`: seconds, or a date.
pub(crate) fn retry_after(header: &str, now: SystemTime) -> Option<Duration> {
    let header = header.trim();
    let wait = match header.parse::<f64>() {
        Ok(seconds) if seconds >= 0.0 => Duration::try_from_secs_f64(seconds).unwrap_or(RETRY_AFTER_MAX),
        Ok(_) => return None,
        Err(_) => httpdate::parse_http_date(header).ok()?.duration_since(now).unwrap_or_default(),
    };
    bounded(wait)
}

/// Whole milliseconds, which can be written as a duration of the language; rounded up, since earlier is too early.
fn bounded(wait: Duration) -> Option<Duration> {
    let ms = wait.min(RETRY_AFTER_MAX).as_nanos().div_ceil(1_000_000);
    u64::try_from(ms).ok().map(Duration::from_millis)
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
            (Some(400), json!({"error": {"message": "API key expired. Renew it."}}), Kind::Auth, false),
            (Some(402), json!({"error": {"type": "billing_error", "message": "pay"}}), Kind::Auth, false),
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

    #[test]
    fn waits_are_read_from_bodies() {
        for (body, wait_ms) in [
            (json!({"error": {"message": "Rate limit reached. Please try again in 1.5s."}}), Some(1_500)),
            (json!({"error": {"message": "Please try again in 6m0s."}}), Some(360_000)),
            (json!({"error": {"message": "try again in 250ms"}}), Some(250)),
            (json!({"error": {"message": "Please retry in 20 seconds"}}), Some(20_000)),
            (
                json!({"error": {"message": "x", "details": [{"@type": "y"}, {"retryDelay": "34.07s"}]}}),
                Some(34_070),
            ),
            (json!({"error": {"message": "x", "retry_after": 3}}), Some(3_000)),
            (json!({"error": {"message": "try again in a while"}}), Some(1_000)),
            (json!({"error": {"message": "try again in 12h"}}), Some(43_200_000)),
        ] {
            let wait = classify(Some(429), &body).retry_after;
            assert_eq!(wait, wait_ms.map(Duration::from_millis), "{body}");
        }
        let told = classify(Some(429), &json!({"error": {"message": "try again in 12h"}})).text;
        assert!(told.ends_with("(it asks to wait 43200s)"), "{told}");
    }
}
