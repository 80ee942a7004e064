//! Bodies of requests: JSON only, bounded in bytes and time, unknown fields refused.

use std::time::Duration;

use axum::body::{Bytes, HttpBody as _};
use axum::extract::Request;
use axum::http::{HeaderMap, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use outlast_protocol::{ApiError, Code};
use serde::de::DeserializeOwned;

use super::fault::Fault;
use crate::limits::{BODY_BYTES_ABSURD, BODY_MS_MAX, REQUEST_BYTES_MAX};

/// Reads the body of a driver's or client's request.
pub(super) async fn json<T: DeserializeOwned>(request: Request) -> Result<T, Fault> {
    json_up_to(request, REQUEST_BYTES_MAX).await
}

/// Reads a body of at most `bytes_max`.
pub(super) async fn json_up_to<T: DeserializeOwned>(request: Request, bytes_max: usize) -> Result<T, Fault> {
    demand_json(request.headers())?;
    let bytes = collect(request, bytes_max).await?;
    demand_object(&bytes)?;
    outlast_protocol::json::read(&bytes)
        .map_err(|error| Fault::invalid(format!("the body does not fit: {error}")))
}

/// Refuses a list where an object is expected: its items would be taken for the fields, by their order. Only the body itself is looked
/// at: a list inside it that stands for an object is still read by order.
fn demand_object(bytes: &[u8]) -> Result<(), Fault> {
    match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'[') => Err(Fault::invalid("the body does not fit: an object is expected, not a list")),
        Some(_) | None => Ok(()),
    }
}

/// Reads the body of a request that has nothing to say: nothing, or an object without fields.
pub(super) async fn nothing(request: Request) -> Result<(), Fault> {
    #[derive(Default, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Nothing {}

    optional(request).await.map(|Nothing {}| ())
}

/// Reads the body of a request that need not have one.
pub(super) async fn optional<T: Default + DeserializeOwned>(request: Request) -> Result<T, Fault> {
    let typed = request.headers().contains_key(header::CONTENT_TYPE);
    let is_json = demand_json(request.headers());
    let bytes = collect(request, REQUEST_BYTES_MAX).await?;
    if typed || !bytes.is_empty() {
        is_json?;
    }
    if bytes.is_empty() {
        return Ok(T::default());
    }
    demand_object(&bytes)?;
    let read: Result<T, _> = outlast_protocol::json::read(&bytes);
    read.map_err(|error| Fault::invalid(format!("the body does not fit: {error}")))
}

/// Refuses what a web page can send to another site without being asked: forms and plain text.
fn demand_json(headers: &HeaderMap) -> Result<(), Fault> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    Err(Fault::invalid("the content type must be application/json"))
}

/// Reads a JSON body that is looked into elsewhere.
pub(super) async fn bytes(request: Request) -> Result<Bytes, Fault> {
    demand_json(request.headers())?;
    collect(request, REQUEST_BYTES_MAX).await
}

/// Reads a body of any kind of at most `bytes_max`.
pub(super) async fn raw(request: Request, bytes_max: usize) -> Result<Bytes, Fault> {
    collect(request, bytes_max).await
}

async fn collect(request: Request, bytes_max: usize) -> Result<Bytes, Fault> {
    let too_large =
        || Err(ApiError::new(Code::TooLarge, format!("the body is over {bytes_max} bytes")).into());
    let body = request.into_body();
    // What nobody would send to its end is not waited for; a sender of less hears why more surely when it was read.
    if body.size_hint().lower() > BODY_BYTES_ABSURD {
        return too_large();
    }
    let read = Limited::new(body, bytes_max).collect();
    match tokio::time::timeout(Duration::from_millis(BODY_MS_MAX), read).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.downcast_ref::<LengthLimitError>().is_some() => too_large(),
        Ok(Err(error)) => Err(Fault::invalid(format!("the body cannot be read: {error}"))),
        Err(_) => Err(Fault::invalid(format!("the body did not arrive within {BODY_MS_MAX} ms"))),
    }
}
