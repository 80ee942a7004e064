//! Flows and environment profiles: what runs are started from.

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use outlast_dsl::diag;
use outlast_kernel::Json as Value;
use outlast_protocol::requests::Deploy;
use outlast_protocol::{ApiError, Code};
use serde_json::json;

use super::parts::Named;
use super::{Fault, Shared, body};
use crate::engine::DeployError;
use outlast_protocol::profile::Profile;

/// `POST /v1/flows`
pub(super) async fn deploy(State(app): Shared, request: Request) -> Result<Response, Fault> {
    let deploy: Deploy = body::json(request).await?;
    match app.api().deploy(deploy).await {
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
pub(super) async fn list(State(app): Shared) -> Result<Json<Value>, Fault> {
    Ok(Json(json!({ "items": app.served.engine.flows()?, "next": null })))
}

/// `POST /v1/profiles`: keeps an environment in which runs may be started; answers with its name.
///
/// Only for the owner: a profile decides in which directory tools work.
pub(super) async fn put_profile(State(app): Shared, request: Request) -> Result<Json<Value>, Fault> {
    app.api().demand_owner()?;
    let profile: Profile = body::json(request).await?;
    let name = profile.name();
    app.served.engine.put_profile(&name, profile.record()).await?;
    Ok(Json(json!({ "name": name })))
}

/// `GET /v1/profiles/{name}`
pub(super) async fn profile(State(app): Shared, Named(name): Named) -> Result<Json<Value>, Fault> {
    app.api().demand_owner()?;
    let missing = || ApiError::new(Code::NotFound, format!("there is no environment profile {name:?}"));
    Ok(Json(app.served.engine.profile(&name)?.ok_or_else(missing)?))
}
