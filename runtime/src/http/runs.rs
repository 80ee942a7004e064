//! Runs: start, look, feed, stop.

use axum::extract::Request;
use axum::http::StatusCode;
use axum::{Extension, Json};
use outlast_kernel::Json as Value;
use outlast_protocol::ApiError;
use outlast_protocol::audit::AuditRecord;
use outlast_protocol::requests::{Accepted, List};
use outlast_protocol::run::RunView;
use serde_json::json;

use super::note::Made;
use super::parts::{Params, Run};
use super::{Call, Fault, body};
use crate::api::{EventsPage, Started, Wait, Wanted};

type Taken = Result<(StatusCode, Json<Accepted>), Fault>;

/// `POST /v1/runs`
pub(super) async fn start(call: Call, request: Request) -> Begun {
    started(call.api().start(body::json(request).await?).await)
}

/// What a start gives: whether it made the run, and the run.
pub(super) type Begun = Result<(StatusCode, Extension<Made>, Json<Started>), Fault>;

pub(super) fn started(started: Result<Started, ApiError>) -> Begun {
    let started = started?;
    let status = if started.existing { StatusCode::OK } else { StatusCode::CREATED };
    Ok((status, Extension(Made(started.run.id.clone())), Json(started)))
}

/// `GET /v1/runs`
pub(super) async fn list(call: Call, Params(wanted): Params<Wanted>) -> Result<Json<List<RunView>>, Fault> {
    Ok(Json(call.api().list(wanted).await?))
}

/// `GET /v1/runs/{id}`
pub(super) async fn get(call: Call, Run(run): Run) -> Result<Json<RunView>, Fault> {
    Ok(Json(call.engine().get(run.as_str()).await?))
}

/// `GET /v1/runs/{id}/result?wait=30s`
pub(super) async fn result(
    call: Call,
    Run(run): Run,
    Params(query): Params<Wait>,
) -> Result<Json<Value>, Fault> {
    Ok(Json(call.api().result(run.as_str(), query).await?))
}

/// `POST /v1/runs/{id}/messages`
pub(super) async fn message(
    call: Call,
    Run(run): Run,
    Params(query): Params<Wait>,
    request: Request,
) -> Result<(StatusCode, Json<Value>), Fault> {
    let status = if query.wait.is_some() { StatusCode::OK } else { StatusCode::ACCEPTED };
    let send = body::json(request).await?;
    Ok((status, Json(call.api().message(run.as_str(), query, send).await?)))
}

/// `POST /v1/runs/{id}/withdraw`
pub(super) async fn withdraw(call: Call, Run(run): Run, request: Request) -> Taken {
    let request = body::json(request).await?;
    taken(StatusCode::OK, call.engine().withdraw(run.as_str(), request, &call.by()).await)
}

/// `POST /v1/runs/{id}/answers`
pub(super) async fn answer(call: Call, Run(run): Run, request: Request) -> Taken {
    let request = body::json(request).await?;
    taken(StatusCode::OK, call.api().answer(run.as_str(), request).await)
}

/// `POST /v1/runs/{id}/cancel`
pub(super) async fn cancel(call: Call, Run(run): Run, request: Request) -> Taken {
    let cancel = body::optional(request).await?;
    taken(StatusCode::ACCEPTED, call.api().cancel(run.as_str(), cancel).await)
}

/// `POST /v1/runs/{id}/terminate`
pub(super) async fn terminate(call: Call, Run(run): Run, request: Request) -> Taken {
    body::nothing(request).await?;
    taken(StatusCode::ACCEPTED, call.engine().terminate(run.as_str(), &call.by()).await)
}

/// `DELETE /v1/runs/{id}`
pub(super) async fn delete(call: Call, Run(run): Run, request: Request) -> Result<Json<Value>, Fault> {
    body::nothing(request).await?;
    call.engine().delete(run.as_str()).await?;
    Ok(Json(json!({ "deleted": run })))
}

/// `POST /v1/runs/{id}/settle`
pub(super) async fn settle(call: Call, Run(run): Run, request: Request) -> Taken {
    let request = body::json(request).await?;
    taken(StatusCode::OK, call.engine().settle(run.as_str(), request, &call.by()).await)
}

/// `POST /v1/runs/{id}/release`
pub(super) async fn release(call: Call, Run(run): Run, request: Request) -> Taken {
    let request = body::json(request).await?;
    taken(StatusCode::OK, call.engine().release(run.as_str(), request, &call.by()).await)
}

/// `POST /v1/runs/{id}/fork`
pub(super) async fn fork(call: Call, Run(run): Run, request: Request) -> Begun {
    let request = body::json(request).await?;
    started(call.api().fork(run.as_str(), request).await)
}

/// `GET /v1/runs/{id}/tree`
pub(super) async fn tree(call: Call, Run(run): Run) -> Result<Json<List<RunView>>, Fault> {
    Ok(Json(call.api().tree(run.as_str()).await?))
}

/// `GET /v1/runs/{id}/way`
pub(super) async fn way(call: Call, Run(run): Run) -> Result<Json<List<String>>, Fault> {
    Ok(Json(call.engine().way(run.as_str()).await?))
}

fn taken(status: StatusCode, accepted: Result<Accepted, ApiError>) -> Taken {
    Ok((status, Json(accepted?)))
}

/// `GET /v1/runs/{id}/events?after=N&limit=`
pub(super) async fn events(
    call: Call,
    Run(run): Run,
    Params(page): Params<EventsPage>,
) -> Result<Json<List<Value>>, Fault> {
    Ok(Json(call.api().events(run.as_str(), page).await?))
}

/// `GET /v1/runs/{id}/audit?after=N&limit=`
pub(super) async fn audit(
    call: Call,
    Run(run): Run,
    Params(page): Params<EventsPage>,
) -> Result<Json<List<AuditRecord>>, Fault> {
    Ok(Json(call.api().audit(run.as_str(), page).await?))
}
