//! Paths and queries of requests: run ids that are run ids, parameters that are known, durations in the language's form.

use std::time::Duration;

use axum::extract::{FromRequestParts, Path, Query};
use axum::http::request::Parts;
use outlast_kernel::ids::RunId;
use serde::de::DeserializeOwned;

use super::fault::Fault;
use crate::duration;
use crate::limits::WAIT_MS_MAX;

/// The run that a path names.
pub(super) struct Run(pub(super) RunId);

impl<S: Send + Sync> FromRequestParts<S> for Run {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Run, Fault> {
        let Named(id) = Named::from_request_parts(parts, state).await?;
        RunId::new(&id).map(Run).map_err(|error| Fault::invalid(error.to_string()))
    }
}

/// The one variable part of a path, decoded.
pub(super) struct Named(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for Named {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Named, Fault> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        path.map(|Path(name)| Named(name)).map_err(|error| Fault::invalid(error.body_text()))
    }
}

/// A query whose every parameter is known.
pub(super) struct Params<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Params<T> {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Params<T>, Fault> {
        let query = Query::<T>::from_request_parts(parts, state).await;
        query.map(|Query(params)| Params(params)).map_err(|error| Fault::invalid(error.body_text()))
    }
}

/// Reads a `wait=`, cut to what one request may wait.
pub(super) fn wait(text: Option<&str>) -> Result<Duration, Fault> {
    let wait = text.map_or(Ok(Duration::ZERO), duration::parse);
    let wait = wait.map_err(|error| Fault::invalid(format!("wait: {error}")))?;
    Ok(wait.min(Duration::from_millis(WAIT_MS_MAX)))
}
