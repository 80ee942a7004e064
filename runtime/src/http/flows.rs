//! Flows and environment profiles: what runs are started from.

use axum::Json;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use outlast_dsl::diag;
use outlast_kernel::Json as Value;
use outlast_protocol::requests::Deploy;
use outlast_protocol::{ApiError, Code};
use serde_json::json;

use super::parts::Named;
use super::{Call, Fault, body};
use crate::engine::DeployError;
use outlast_protocol::profile::Profile;

/// `POST /v1/flows`
pub(super) async fn deploy(call: Call, request: Request) -> Result<Response, Fault> {
    let deploy: Deploy = body::json(request).await?;
    match call.api().deploy(deploy).await {
        Ok(flows) => Ok(Json(json!({ "flows": flows })).into_response()),
        Err(DeployError::Other(error)) => Err(error.into()),
        Err(DeployError::Invalid { diagnostics, sources }) => {
            let error = ApiError::new(Code::Invalid, "the flows have faults; see `diagnostics`");
            let body = json!({ "error": error, "diagnostics": diag::json(&diagnostics, &sources) });
            Ok((StatusCode::UNPROCESSABLE_ENTITY, Json(body)).into_response())
        }
    }
}

/// `GET /v1/flows`
pub(super) async fn list(call: Call) -> Result<Json<Value>, Fault> {
    Ok(Json(json!(call.api().flows()?)))
}

/// `GET /v1/machines/{hash}`: a checked flow as runs pin it.
pub(super) async fn machine(call: Call, Named(hash): Named) -> Result<Response, Fault> {
    let machine = call.api().machine(&hash)?;
    Ok(([(CONTENT_TYPE, "application/json")], machine.encode()).into_response())
}

/// `POST /v1/profiles`: keeps an environment in which runs may be started; answers with its name.
///
/// Only for the owner: a profile decides in which directory tools work.
pub(super) async fn put_profile(call: Call, request: Request) -> Result<Json<Value>, Fault> {
    let profile: Profile = body::json(request).await?;
    let name = profile.name();
    call.engine().put_profile(&name, profile.record()).await?;
    Ok(Json(json!({ "name": name })))
}

/// `GET /v1/profiles/{name}`
pub(super) async fn profile(call: Call, Named(name): Named) -> Result<Json<Value>, Fault> {
    let missing = || ApiError::new(Code::NotFound, format!("there is no environment profile {name:?}"));
    Ok(Json(call.engine().profile(&name)?.ok_or_else(missing)?))
}
