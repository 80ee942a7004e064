//! Asks the runtime for an environment profile before a worker starts.
//!
//! Leaves its meaning to the caller. Invariant: a runtime that is away is waited for, but not for ever.

use super::client::{CallError, Client, Credentials};
use super::link::{Reaction, reaction};
use super::loops::Backoff;
use super::worker::WorkerError;
use crate::Json;
use crate::limits::{CALL_TIMEOUT_MAX, PROFILE_WAIT};

/// Fetches the record of a profile.
pub(crate) async fn fetch_profile(
    connect: &str,
    credentials: &Credentials,
    name: &str,
) -> Result<Json, WorkerError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || !name.chars().all(plain) {
        return Err(WorkerError::Configuration(format!("{name:?} is no name of an environment profile")));
    }
    let client = Client::new(connect, credentials.clone()).map_err(WorkerError::Configuration)?;
    let path = format!("/v1/profiles/{name}");
    let asking = async {
        let mut backoff = Backoff::new();
        loop {
            match client.get(&path, CALL_TIMEOUT_MAX).await {
                Ok(record) => return Ok(record),
                Err(CallError::Refused(error)) if reaction(error.code) != Reaction::Wait => {
                    return Err(WorkerError::Refused(error.message));
                }
                Err(CallError::Refused(_) | CallError::Unreachable(_)) => backoff.wait().await,
            }
        }
    };
    match tokio::time::timeout(PROFILE_WAIT, asking).await {
        Ok(record) => record,
        Err(_) => Err(WorkerError::Configuration(format!("no runtime answers at {connect}"))),
    }
}
