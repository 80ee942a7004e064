//! JSON-RPC over HTTP: `POST /v1/rpc`, one request or a batch in the body.
//!
//! Invariant: requests of a batch are done one after the other, in their order.

use axum::Json;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use outlast_kernel::Json as Value;

use super::{Call, Fault, body};
use crate::api::Api;
use crate::rpc::{self, Parsed, methods};

/// `POST /v1/rpc`
pub(super) async fn call(call: Call, request: Request) -> Result<Response, Fault> {
    let bytes = body::bytes(request).await?;
    let answered = match rpc::parse(&bytes) {
        // Nothing of it is a request: that is a fault of HTTP's, too.
        Parsed::One(Err(refusal)) => return Ok((StatusCode::BAD_REQUEST, Json(refusal)).into_response()),
        Parsed::One(request) => answer(call.api(), request).await,
        Parsed::Many(requests) => {
            let mut answers = Vec::new();
            for request in requests {
                answers.extend(answer(call.api(), request).await);
            }
            (!answers.is_empty()).then_some(Value::Array(answers))
        }
    };
    Ok(match answered {
        Some(answered) => Json(answered).into_response(),
        None => StatusCode::NO_CONTENT.into_response(),
    })
}

/// Returns the answer to a request; none to a notification.
async fn answer(api: Api<'_>, request: Result<rpc::Request, Value>) -> Option<Value> {
    let request = match request {
        Ok(request) => request,
        Err(refusal) => return Some(refusal),
    };
    let result = methods::call(api, &request.method, request.params).await;
    request.id.map(|id| rpc::answer(&id, result))
}
