//! Whether the server lives, whether it is ready, and its figures.

use axum::Json;
use axum::extract::State;
use outlast_kernel::Json as Value;
use outlast_protocol::{ApiError, Code};
use serde_json::json;

use super::{Fault, PROTOCOL, Shared};

/// `GET /health/live`: the process answers.
pub(super) async fn live() -> Json<Value> {
    Json(json!({ "live": true }))
}

/// `GET /health/ready`: the engine takes work.
pub(super) async fn ready(State(app): Shared) -> Result<Json<Value>, Fault> {
    // An engine that says nothing about it is ready: it answers only after its store was read.
    let ready = app.engine.status().get("ready").and_then(Value::as_bool).unwrap_or(true);
    if ready {
        Ok(Json(json!({ "ready": true })))
    } else {
        Err(ApiError::new(Code::NotReady, "the engine is starting or stopping").into())
    }
}

/// `GET /v1/status`: what the doctor and whoever attaches wants to know.
pub(super) async fn status(State(app): Shared) -> Json<Value> {
    Json(json!({
        "protocol": PROTOCOL,
        "version": env!("CARGO_PKG_VERSION"),
        "pid": std::process::id(),
        "engine": app.engine.status(),
    }))
}
