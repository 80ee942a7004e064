//! Bytes by their hash: workers bring what is too large for a result, and whoever may look at runs fetches it.

use axum::Json;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use outlast_kernel::Json as Value;
use serde_json::json;

use super::parts::Named;
use super::{Call, Fault, body};
use crate::limits::BLOB_BYTES_MAX;

/// `PUT /v1/blobs/{hash}`
pub(super) async fn put(
    call: Call,
    Named(hash): Named,
    request: Request,
) -> Result<(StatusCode, Json<Value>), Fault> {
    let bytes = body::raw(request, BLOB_BYTES_MAX).await?;
    let count = bytes.len();
    let existed = call.engine().put_blob(&hash, bytes.into()).await?;
    let status = if existed { StatusCode::OK } else { StatusCode::CREATED };
    Ok((status, Json(json!({ "hash": hash, "bytes": count }))))
}

/// `GET /v1/blobs/{hash}`: for whoever looks at runs, and for workers.
pub(super) async fn get(call: Call, Named(hash): Named) -> Result<impl IntoResponse, Fault> {
    let bytes = call.api().blob(&hash).await?;
    // Whatever a tool wrote is shown by no browser as a page of this server.
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CACHE_CONTROL, "private, immutable, max-age=31536000"),
    ];
    Ok((headers, bytes))
}
