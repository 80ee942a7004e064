//! Schedules: runs that are started by the clock.

use axum::Json;
use axum::extract::Request;
use axum::http::StatusCode;
use outlast_kernel::Json as Value;
use outlast_protocol::requests::List;
use outlast_protocol::run::RunView;
use outlast_protocol::schedule::{Kept, KeptSchedule, ScheduleView};
use serde_json::json;

use super::parts::Named;
use super::{Call, Fault, body};

/// `GET /v1/schedules`
pub(super) async fn list(call: Call) -> Result<Json<List<ScheduleView>>, Fault> {
    Ok(Json(call.api().schedules().await?))
}

/// `PUT /v1/schedules/{name}`
pub(super) async fn put(
    call: Call,
    Named(name): Named,
    request: Request,
) -> Result<(StatusCode, Json<KeptSchedule>), Fault> {
    let kept = call.api().put_schedule(&name, body::json(request).await?).await?;
    let status = if kept.kept == Kept::Created { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(kept)))
}

/// `GET /v1/schedules/{name}`
pub(super) async fn get(call: Call, Named(name): Named) -> Result<Json<ScheduleView>, Fault> {
    Ok(Json(call.api().schedule(&name).await?))
}

/// `DELETE /v1/schedules/{name}`
pub(super) async fn remove(call: Call, Named(name): Named) -> Result<Json<Value>, Fault> {
    call.api().schedule(&name).await?;
    call.engine().remove_schedule(&name).await?;
    Ok(Json(json!({})))
}

/// `POST /v1/schedules/{name}/pause`
pub(super) async fn pause(
    call: Call,
    Named(name): Named,
    request: Request,
) -> Result<Json<ScheduleView>, Fault> {
    body::nothing(request).await?;
    call.api().schedule(&name).await?;
    Ok(Json(call.engine().pause_schedule(&name, true).await?))
}

/// `POST /v1/schedules/{name}/resume`
pub(super) async fn resume(
    call: Call,
    Named(name): Named,
    request: Request,
) -> Result<Json<ScheduleView>, Fault> {
    body::nothing(request).await?;
    call.api().schedule(&name).await?;
    Ok(Json(call.engine().pause_schedule(&name, false).await?))
}

/// `POST /v1/schedules/{name}/run-now`
pub(super) async fn run_now(
    call: Call,
    Named(name): Named,
    request: Request,
) -> Result<(StatusCode, Json<RunView>), Fault> {
    body::nothing(request).await?;
    call.api().schedule(&name).await?;
    Ok((StatusCode::CREATED, Json(call.engine().run_schedule_now(&name).await?)))
}
