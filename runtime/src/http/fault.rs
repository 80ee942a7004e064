//! Errors as answers: the contract's body, its status, and `Retry-After` where trying again helps.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use outlast_protocol::error::ErrorBody;
use outlast_protocol::{ApiError, Code};

use crate::limits::RETRY_AFTER_S;

/// The code of a refusal, for those who count.
#[derive(Clone, Copy, Debug)]
pub(super) struct Refused(pub(super) Code);

/// Why a request is refused.
#[derive(Debug)]
pub(super) struct Fault(ApiError);

impl Fault {
    /// Makes the refusal of a request that does not fit.
    pub(super) fn invalid(message: impl Into<String>) -> Fault {
        Fault(ApiError::new(Code::Invalid, message))
    }
}

impl From<ApiError> for Fault {
    fn from(error: ApiError) -> Fault {
        Fault(error)
    }
}

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        if status.is_server_error() {
            tracing::warn!(code = ?self.0.code, run = self.0.run, "{}", self.0.message);
        }
        let code = self.0.code;
        let mut response = (status, Json(ErrorBody { error: self.0 })).into_response();
        response.extensions_mut().insert(Refused(code));
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if matches!(status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS) {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(RETRY_AFTER_S));
        }
        response
    }
}
