//! Whole runs and the whole store: carried elsewhere, brought from elsewhere, copied, weighed.

use std::path::PathBuf;
use std::sync::Arc;

use axum::Json;
use axum::extract::Request;
use outlast_kernel::Json as Value;
use outlast_protocol::requests::{List, Retention};
use outlast_protocol::{ApiError, Code};
use outlast_store::StoreError;
use serde::Deserialize;
use serde_json::json;

use super::parts::{Params, Run};
use super::runs::{Begun, started};
use super::{Call, Fault, body};
use crate::api::Started;
use crate::limits::{IMPORT_BYTES_MAX, REPORT_BYTES_MAX};

/// The query of pages.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct From {
    cursor: Option<String>,
}

/// `GET /v1/runs/{id}/export?cursor=`
pub(super) async fn export(
    call: Call,
    Run(run): Run,
    Params(from): Params<From>,
) -> Result<Json<List<Value>>, Fault> {
    Ok(Json(call.engine().export(run.as_str(), from.cursor).await?))
}

/// `POST /v1/runs/{id}/migrate`
pub(super) async fn migrate(call: Call, Run(run): Run, request: Request) -> Result<Json<Value>, Fault> {
    let request = body::json(request).await?;
    Ok(Json(call.api().migrate(run.as_str(), request).await?))
}

/// `POST /v1/runs/{id}/compatibility`
pub(super) async fn compatibility(call: Call, Run(run): Run, request: Request) -> Result<Json<Value>, Fault> {
    let request = body::json_up_to(request, REPORT_BYTES_MAX).await?;
    Ok(Json(call.engine().compatibility(run.as_str(), request).await?))
}

/// `POST /v1/import`: keeps a run with all its events. Only for the owner: whoever may say what has happened may say anything.
pub(super) async fn import(call: Call, request: Request) -> Begun {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Import {
        records: Vec<Value>,
    }
    let Import { records } = body::json_up_to(request, IMPORT_BYTES_MAX).await?;
    let imported = call.engine().import(records).await;
    started(imported.map(|(run, existing)| Started { run, existing }))
}

/// `POST /v1/backup`: copies the store into a new directory. Only for the owner, as whom it writes there.
pub(super) async fn backup(call: Call, request: Request) -> Result<Json<Value>, Fault> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Backup {
        directory: PathBuf,
    }
    let Backup { directory } = body::json(request).await?;
    if !directory.is_absolute() {
        return Err(Fault::invalid("directory: an absolute path is expected"));
    }
    let store = Arc::clone(&call.app.served.store);
    let copied = tokio::task::spawn_blocking(move || store.backup(&directory).map(|()| directory)).await;
    let copied = copied.map_err(|error| ApiError::new(Code::Internal, error.to_string()))?;
    let directory = copied.map_err(|error| match &error {
        StoreError::Invalid { .. } => ApiError::new(Code::Invalid, error.to_string()),
        StoreError::Full { .. } => ApiError::new(Code::DiskFull, error.to_string()),
        _ => ApiError::new(Code::Internal, error.to_string()),
    })?;
    Ok(Json(json!({ "directory": directory })))
}

/// `GET /v1/retention`: how long ended runs are kept.
pub(super) async fn retention(call: Call) -> Result<Json<Retention>, Fault> {
    Ok(Json(call.api().retention()?))
}

/// `PUT /v1/retention`
pub(super) async fn put_retention(call: Call, request: Request) -> Result<Json<Retention>, Fault> {
    let retention = body::json(request).await?;
    Ok(Json(call.api().put_retention(retention).await?))
}

/// `GET /v1/runs/{id}/usage`
pub(super) async fn usage(call: Call, Run(run): Run) -> Result<Json<Value>, Fault> {
    Ok(Json(call.engine().usage(run.as_str()).await?))
}

/// `GET /v1/usage?cursor=`: the runs of a page, newest first.
pub(super) async fn usages(call: Call, Params(from): Params<From>) -> Result<Json<List<Value>>, Fault> {
    Ok(Json(call.api().usages(from.cursor).await?))
}
