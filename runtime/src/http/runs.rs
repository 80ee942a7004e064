//! Runs: start, look, feed, stop.

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use outlast_kernel::Json as Value;
use outlast_protocol::ApiError;
use outlast_protocol::requests::{Accepted, List};
use outlast_protocol::run::RunView;

use super::parts::{Params, Run};
use super::{Fault, Shared, body};
use crate::api::{EventsPage, Started, Wait, Wanted};

type Taken = Result<(StatusCode, Json<Accepted>), Fault>;

/// `POST /v1/runs`
pub(super) async fn start(
    State(app): Shared,
    request: Request,
) -> Result<(StatusCode, Json<Started>), Fault> {
    started(app.api().start(body::json(request).await?).await)
}

pub(super) fn started(started: Result<Started, ApiError>) -> Result<(StatusCode, Json<Started>), Fault> {
    let started = started?;
    let status = if started.existing { StatusCode::OK } else { StatusCode::CREATED };
    Ok((status, Json(started)))
}

/// `GET /v1/runs`
pub(super) async fn list(
    State(app): Shared,
    Params(wanted): Params<Wanted>,
) -> Result<Json<List<RunView>>, Fault> {
    Ok(Json(app.api().list(wanted).await?))
}

/// `GET /v1/runs/{id}`
pub(super) async fn get(State(app): Shared, Run(run): Run) -> Result<Json<RunView>, Fault> {
    Ok(Json(app.served.engine.get(run.as_str()).await?))
}

/// `GET /v1/runs/{id}/result?wait=30s`
pub(super) async fn result(
    State(app): Shared,
    Run(run): Run,
    Params(query): Params<Wait>,
) -> Result<Json<Value>, Fault> {
    Ok(Json(app.api().result(run.as_str(), query).await?))
}

/// `POST /v1/runs/{id}/messages`
pub(super) async fn message(
    State(app): Shared,
    Run(run): Run,
    Params(query): Params<Wait>,
    request: Request,
) -> Result<(StatusCode, Json<Value>), Fault> {
    let status = if query.wait.is_some() { StatusCode::OK } else { StatusCode::ACCEPTED };
    let send = body::json(request).await?;
    Ok((status, Json(app.api().message(run.as_str(), query, send).await?)))
}

/// `POST /v1/runs/{id}/withdraw`
pub(super) async fn withdraw(State(app): Shared, Run(run): Run, request: Request) -> Taken {
    let request = body::json(request).await?;
    taken(StatusCode::OK, app.served.engine.withdraw(run.as_str(), request, app.access.principal()).await)
}

/// `POST /v1/runs/{id}/answers`
pub(super) async fn answer(State(app): Shared, Run(run): Run, request: Request) -> Taken {
    let request = body::json(request).await?;
    taken(StatusCode::OK, app.served.engine.answer(run.as_str(), request, app.access.principal()).await)
}

/// `POST /v1/runs/{id}/cancel`
pub(super) async fn cancel(State(app): Shared, Run(run): Run, request: Request) -> Taken {
    body::nothing(request).await?;
    taken(StatusCode::ACCEPTED, app.served.engine.cancel(run.as_str(), app.access.principal()).await)
}

/// `POST /v1/runs/{id}/terminate`
pub(super) async fn terminate(State(app): Shared, Run(run): Run, request: Request) -> Taken {
    body::nothing(request).await?;
    taken(StatusCode::ACCEPTED, app.served.engine.terminate(run.as_str(), app.access.principal()).await)
}

/// `POST /v1/runs/{id}/settle`
pub(super) async fn settle(State(app): Shared, Run(run): Run, request: Request) -> Taken {
    let request = body::json(request).await?;
    taken(StatusCode::OK, app.served.engine.settle(run.as_str(), request, app.access.principal()).await)
}

/// `POST /v1/runs/{id}/release`
pub(super) async fn release(State(app): Shared, Run(run): Run, request: Request) -> Taken {
    let request = body::json(request).await?;
    taken(StatusCode::OK, app.served.engine.release(run.as_str(), request, app.access.principal()).await)
}

/// `POST /v1/runs/{id}/fork`
pub(super) async fn fork(
    State(app): Shared,
    Run(run): Run,
    request: Request,
) -> Result<(StatusCode, Json<Started>), Fault> {
    let request = body::json(request).await?;
    let (run, existing) = app.served.engine.fork(run.as_str(), request, app.access.principal()).await?;
    started(Ok(Started { run, existing }))
}

/// `GET /v1/runs/{id}/tree`
pub(super) async fn tree(State(app): Shared, Run(run): Run) -> Result<Json<List<RunView>>, Fault> {
    Ok(Json(app.served.engine.tree(run.as_str()).await?))
}

/// `GET /v1/runs/{id}/way`
pub(super) async fn way(State(app): Shared, Run(run): Run) -> Result<Json<List<String>>, Fault> {
    Ok(Json(app.served.engine.way(run.as_str()).await?))
}

fn taken(status: StatusCode, accepted: Result<Accepted, ApiError>) -> Taken {
    Ok((status, Json(accepted?)))
}

/// `GET /v1/runs/{id}/events?after=N&limit=`
pub(super) async fn events(
    State(app): Shared,
    Run(run): Run,
    Params(page): Params<EventsPage>,
) -> Result<Json<List<Value>>, Fault> {
    Ok(Json(app.api().events(run.as_str(), page).await?))
}
