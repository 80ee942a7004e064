//! Runs: start, look, feed, stop.

use std::time::Duration;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use outlast_kernel::Json as Value;
use outlast_protocol::requests::{self, Accepted, List};
use outlast_protocol::run::RunView;
use outlast_protocol::{ApiError, Code};
use outlast_store::{Filter, Status};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::parts::{Params, Run, wait};
use super::{Fault, Shared, body};
use crate::limits::{EVENTS_PAGE, EVENTS_PAGE_MAX, RUNS_PAGE_MAX, WAIT_MS_MAX};

type Taken = Result<(StatusCode, Json<Accepted>), Fault>;

/// A run, and whether it was there before.
#[derive(Serialize)]
pub(super) struct Started {
    #[serde(flatten)]
    run: RunView,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    existing: bool,
}

/// `POST /v1/runs`
pub(super) async fn start(
    State(app): Shared,
    request: Request,
) -> Result<(StatusCode, Json<Started>), Fault> {
    let mut start: requests::Start = body::json(request).await?;
    if start.profile.is_none() {
        let of_flow = app.served.engine.flow(&start.flow).and_then(|flow| flow.profile);
        let of_flow = of_flow.filter(|_| app.served.scripted);
        start.profile = of_flow.or_else(|| app.served.profile.clone());
    }
    let (run, existing) = app.served.engine.start(start, app.access.principal()).await?;
    let status = if existing { StatusCode::OK } else { StatusCode::CREATED };
    Ok((status, Json(Started { run, existing })))
}

/// The query of `GET /v1/runs`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    status: Option<String>,
    flow: Option<String>,
    profile: Option<String>,
    cursor: Option<String>,
    limit: Option<usize>,
}

/// `GET /v1/runs`
pub(super) async fn list(
    State(app): Shared,
    Params(wanted): Params<Wanted>,
) -> Result<Json<List<RunView>>, Fault> {
    let status = match wanted.status.as_deref() {
        None => None,
        Some("running") => Some(Status::Running),
        Some("waiting") => Some(Status::Waiting),
        Some("blocked") => Some(Status::Blocked),
        Some("ended") => Some(Status::Ended),
        Some(other) => {
            let known = "`running`, `waiting`, `blocked` or `ended`";
            return Err(Fault::invalid(format!("status: {known} is expected, not {other:?}")));
        }
    };
    let filter = Filter {
        status,
        flow: wanted.flow,
        profile: wanted.profile,
        after: wanted.cursor,
        limit: wanted.limit.unwrap_or_default().min(RUNS_PAGE_MAX),
    };
    Ok(Json(app.served.engine.list(filter).await?))
}

/// `GET /v1/runs/{id}`
pub(super) async fn get(State(app): Shared, Run(run): Run) -> Result<Json<RunView>, Fault> {
    Ok(Json(app.served.engine.get(run.as_str()).await?))
}

/// The query of `GET /v1/runs/{id}/result` and of messages.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wait {
    wait: Option<String>,
}

/// `GET /v1/runs/{id}/result?wait=30s`
pub(super) async fn result(
    State(app): Shared,
    Run(run): Run,
    Params(query): Params<Wait>,
) -> Result<Json<Value>, Fault> {
    let run = app.served.engine.result(run.as_str(), wait(query.wait.as_deref())?).await?;
    let mut shown = json!({ "id": run.id, "status": run.status });
    if let Some(outcome) = run.outcome {
        shown["outcome"] = json!(outcome);
    }
    if let Some(waiting_for) = run.waiting_for {
        shown["waiting_for"] = json!(waiting_for);
    }
    Ok(Json(shown))
}

/// `POST /v1/runs/{id}/messages`
pub(super) async fn message(
    State(app): Shared,
    Run(run): Run,
    Params(query): Params<Wait>,
    request: Request,
) -> Result<(StatusCode, Json<Value>), Fault> {
    let by = app.access.principal();
    let send = body::json(request).await?;
    match query.wait.as_deref() {
        None => {
            let accepted = app.served.engine.message(run.as_str(), send, by).await?;
            Ok((StatusCode::ACCEPTED, Json(json!(accepted))))
        }
        Some("handled") => {
            let handled = app.served.engine.message_handled(run.as_str(), send, by);
            let handled = tokio::time::timeout(Duration::from_millis(WAIT_MS_MAX), handled).await;
            let late = |_| ApiError::new(Code::Overloaded, "the message is accepted, but not taken yet");
            let late = |error| late(error).of_run(&run).hint("send it again with the same id to wait on");
            Ok((StatusCode::OK, Json(handled.map_err(late)??)))
        }
        Some(other) => Err(Fault::invalid(format!("wait: `handled` is expected, not {other:?}"))),
    }
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
    let status = if existing { StatusCode::OK } else { StatusCode::CREATED };
    Ok((status, Json(Started { run, existing })))
}

/// `GET /v1/runs/{id}/tree`
pub(super) async fn tree(State(app): Shared, Run(run): Run) -> Result<Json<List<RunView>>, Fault> {
    Ok(Json(app.served.engine.tree(run.as_str()).await?))
}

fn taken(status: StatusCode, accepted: Result<Accepted, ApiError>) -> Taken {
    Ok((status, Json(accepted?)))
}

/// The query of `GET /v1/runs/{id}/events`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Page {
    #[serde(default)]
    after: u64,
    limit: Option<usize>,
}

/// `GET /v1/runs/{id}/events?after=N&limit=`
pub(super) async fn events(
    State(app): Shared,
    Run(run): Run,
    Params(page): Params<Page>,
) -> Result<Json<List<Value>>, Fault> {
    let limit = page.limit.unwrap_or(EVENTS_PAGE).clamp(1, EVENTS_PAGE_MAX);
    Ok(Json(app.served.engine.events(run.as_str(), page.after, limit).await?))
}
