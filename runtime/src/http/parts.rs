//! Paths and queries of requests: run ids that are run ids and of which the caller may know, parameters that are known.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Path, Query};
use axum::http::request::Parts;
use outlast_kernel::ids::RunId;
use serde::de::DeserializeOwned;

use super::fault::Fault;
use super::{App, Call};

/// The run that a path names, of which the caller may know.
pub(super) struct Run(pub(super) RunId);

impl FromRequestParts<Arc<App>> for Run {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Run, Fault> {
        let Named(id) = Named::from_request_parts(parts, app).await?;
        let run = RunId::new(&id).map_err(|error| Fault::invalid(error.to_string()))?;
        Call::from_request_parts(parts, app).await?.api().see_run(run.as_str())?;
        Ok(Run(run))
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
        query.map(|Query(params)| Params(params)).map_err(|error| {
            let text = error.body_text();
            let what = text.strip_prefix("Failed to deserialize query string: ").unwrap_or(&text);
            Fault::invalid(format!("the query does not fit: {what}"))
        })
    }
}
