//! The worker protocol over HTTP, one call for one.

use axum::Json;
use axum::extract::Request;
use outlast_protocol::worker::{Control, Polled, Registered, Reported};
use serde::Deserialize;
use serde_json::{Value, json};

use super::parts::Params;
use super::server::Peer;
use super::{Call, Fault, body};
use crate::limits::{REPORT_BYTES_MAX, WAIT_MS_MAX};

/// `POST /v1/workers/register`
pub(super) async fn register(call: Call, request: Request) -> Result<Json<Registered>, Fault> {
    let peer = request.extensions().get::<Peer>().and_then(|peer| match peer {
        Peer::Process(pid) => *pid,
        Peer::Address(_) => None,
    });
    let mut register: outlast_protocol::worker::Register = body::json(request).await?;
    // Elsewhere, or in a container, the number names another process, whose end would be taken for the worker's.
    register.pid = register.pid.filter(|pid| Some(*pid) == peer);
    Ok(Json(call.engine().register(register).await?))
}

/// `POST /v1/workers/poll`
pub(super) async fn poll(call: Call, request: Request) -> Result<Json<Polled>, Fault> {
    let mut poll: outlast_protocol::worker::Poll = body::json(request).await?;
    poll.wait_ms = poll.wait_ms.min(WAIT_MS_MAX);
    Ok(Json(call.engine().poll(poll).await?))
}

/// `POST /v1/workers/report`
pub(super) async fn report(call: Call, request: Request) -> Result<Json<Reported>, Fault> {
    Ok(Json(call.engine().report(body::json_up_to(request, REPORT_BYTES_MAX).await?).await?))
}

/// `POST /v1/workers/progress`
pub(super) async fn progress(call: Call, request: Request) -> Result<Json<Value>, Fault> {
    call.engine().progress(body::json(request).await?).await?;
    Ok(Json(json!({})))
}

/// The query of `GET /v1/workers/control`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Session {
    session: String,
    #[serde(default)]
    wait_ms: u64,
}

/// `GET /v1/workers/control?session=&wait_ms=`
pub(super) async fn control(call: Call, Params(query): Params<Session>) -> Result<Json<Control>, Fault> {
    Ok(Json(call.engine().control(&query.session, query.wait_ms.min(WAIT_MS_MAX)).await?))
}
