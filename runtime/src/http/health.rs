//! Whether the server lives, whether it is ready, its figures, and what it can be asked.

use std::sync::Arc;

use axum::Json;
use axum::http::header;
use axum::response::IntoResponse;
use outlast_kernel::Json as Value;
use outlast_protocol::{ApiError, Code};
use outlast_store::StoreError;
use serde_json::json;

use super::{Call, Fault, PROTOCOL};

/// `GET /health/live`: the process answers.
pub(super) async fn live() -> Json<Value> {
    Json(json!({ "live": true }))
}

/// `GET /health/ready`: the engine takes new runs.
pub(super) async fn ready(call: Call) -> Result<Json<Value>, Fault> {
    // An engine that says nothing about it is ready: it answers only after its store was read.
    let ready = call.engine().status().get("ready").and_then(Value::as_bool).unwrap_or(true);
    if !ready {
        return Err(ApiError::new(Code::NotReady, "the engine is starting or stopping").into());
    }
    let store = Arc::clone(&call.app.served.store);
    let stats = tokio::task::spawn_blocking(move || store.stats()).await;
    let stats = stats.map_err(|error| ApiError::new(Code::Internal, error.to_string()))?;
    match stats {
        Ok(stats) if stats.nearly_full => {
            Err(ApiError::new(Code::DiskFull, "the disk has too little room for new runs").into())
        }
        Ok(_) => Ok(Json(json!({ "ready": true }))),
        Err(error) => Err(ApiError::new(Code::NotReady, error.to_string()).into()),
    }
}

/// `GET /v1/status`: what the doctor and whoever attaches wants to know.
pub(super) async fn status(call: Call) -> Json<Value> {
    Json(json!({
        "protocol": PROTOCOL,
        "version": env!("CARGO_PKG_VERSION"),
        "pid": std::process::id(),
        "engine": call.api().status(),
    }))
}

/// `GET /v1/openapi.json`: what can be asked, for programs.
pub(super) async fn openapi() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], outlast_protocol::OPENAPI)
}

/// `GET /v1/doctor`: reads the whole store and says what it found. Only for the owner: it takes its time.
pub(super) async fn doctor(call: Call) -> Result<Json<Value>, Fault> {
    let store = Arc::clone(&call.app.served.store);
    let checked = tokio::task::spawn_blocking(move || Ok::<_, StoreError>((store.stats()?, store.check()?)));
    let failed = |error: &dyn std::fmt::Display| ApiError::new(Code::Internal, error.to_string());
    let checked = checked.await.map_err(|error| failed(&error))?;
    let (stats, report) = checked.map_err(|error| failed(&error))?;
    Ok(Json(json!({
        "opened": call.app.served.opened,
        "stats": {
            "commit_last": stats.commit_last, "commits": stats.commits,
            "commit_us_last": stats.commit_us_last, "commit_us_max": stats.commit_us_max,
            "bytes": stats.bytes, "free_bytes": stats.free_bytes, "nearly_full": stats.nearly_full,
        },
        "check": { "runs": report.runs, "events": report.events, "findings": report.findings },
        "engine": call.engine().status(),
    })))
}
