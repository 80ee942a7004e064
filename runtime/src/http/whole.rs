//! Whole runs and the whole store: carried elsewhere, brought from elsewhere, copied, weighed.

use std::path::PathBuf;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use outlast_kernel::Json as Value;
use outlast_protocol::requests::List;
use outlast_protocol::{ApiError, Code};
use outlast_store::StoreError;
use serde::Deserialize;
use serde_json::json;

use super::guard::Access;
use super::parts::{Params, Run};
use super::runs::started;
use super::{App, Fault, Shared, body};
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
    State(app): Shared,
    Run(run): Run,
    Params(from): Params<From>,
) -> Result<Json<List<Value>>, Fault> {
    Ok(Json(app.served.engine.export(run.as_str(), from.cursor).await?))
}

/// `POST /v1/runs/{id}/migrate`
pub(super) async fn migrate(
    State(app): Shared,
    Run(run): Run,
    request: Request,
) -> Result<Json<Value>, Fault> {
    let request = body::json(request).await?;
    Ok(Json(app.served.engine.migrate(run.as_str(), request, app.access.principal()).await?))
}

/// `POST /v1/runs/{id}/compatibility`
pub(super) async fn compatibility(
    State(app): Shared,
    Run(run): Run,
    request: Request,
) -> Result<Json<Value>, Fault> {
    let request = body::json_up_to(request, REPORT_BYTES_MAX).await?;
    Ok(Json(app.served.engine.compatibility(run.as_str(), request).await?))
}

/// `POST /v1/import`: keeps a run with all its events. Only for the owner: whoever may say what has happened may say anything.
pub(super) async fn import(
    State(app): Shared,
    request: Request,
) -> Result<(StatusCode, Json<Started>), Fault> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Import {
        records: Vec<Value>,
    }
    owner(&app)?;
    let Import { records } = body::json_up_to(request, IMPORT_BYTES_MAX).await?;
    let imported = app.served.engine.import(records).await;
    started(imported.map(|(run, existing)| Started { run, existing }))
}

/// `POST /v1/backup`: copies the store into a new directory. Only for the owner, as whom it writes there.
pub(super) async fn backup(State(app): Shared, request: Request) -> Result<Json<Value>, Fault> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Backup {
        directory: PathBuf,
    }
    owner(&app)?;
    let Backup { directory } = body::json(request).await?;
    if !directory.is_absolute() {
        return Err(Fault::invalid("directory: an absolute path is expected"));
    }
    let store = Arc::clone(&app.served.store);
    let copied = tokio::task::spawn_blocking(move || store.backup(&directory).map(|()| directory)).await;
    let copied = copied.map_err(|error| ApiError::new(Code::Internal, error.to_string()))?;
    let directory = copied.map_err(|error| match &error {
        StoreError::Invalid { .. } => ApiError::new(Code::Invalid, error.to_string()),
        StoreError::Full { .. } => ApiError::new(Code::DiskFull, error.to_string()),
        _ => ApiError::new(Code::Internal, error.to_string()),
    })?;
    Ok(Json(json!({ "directory": directory })))
}

/// `GET /v1/runs/{id}/usage`
pub(super) async fn usage(State(app): Shared, Run(run): Run) -> Result<Json<Value>, Fault> {
    Ok(Json(app.served.engine.usage(run.as_str()).await?))
}

/// `GET /v1/usage?cursor=`: the runs of a page, newest first.
pub(super) async fn usages(
    State(app): Shared,
    Params(from): Params<From>,
) -> Result<Json<List<Value>>, Fault> {
    Ok(Json(app.served.engine.usages(from.cursor).await?))
}

fn owner(app: &App) -> Result<(), Fault> {
    match &app.access {
        Access::Owner => Ok(()),
        Access::Loopback | Access::Token(_) => {
            Err(ApiError::new(Code::Forbidden, "this is for the owner's socket only").into())
        }
    }
}
