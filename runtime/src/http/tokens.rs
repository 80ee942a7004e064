//! Access tokens: made, listed, revoked.

use axum::Json;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use outlast_protocol::access::TokenView;
use outlast_protocol::requests::List;

use super::parts::Named;
use super::{Call, Fault, body};

/// `POST /v1/tokens`: the answer has the secret, this once.
pub(super) async fn add(call: Call, request: Request) -> Result<Response, Fault> {
    let made = call.engine().add_token(body::json(request).await?, &call.by()).await?;
    let silent = [(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    Ok((StatusCode::CREATED, silent, Json(made)).into_response())
}

/// `GET /v1/tokens`
pub(super) async fn list(call: Call) -> Json<List<TokenView>> {
    Json(call.engine().tokens())
}

/// `DELETE /v1/tokens/{name}`: the name, or the id.
pub(super) async fn revoke(call: Call, Named(which): Named) -> Result<Json<TokenView>, Fault> {
    Ok(Json(call.engine().revoke_token(&which).await?))
}
