//! Opening a store: its epoch, its key, its clock, and the sessions of the last epoch.

use std::sync::Arc;

use outlast_kernel::ids::Millis;
use outlast_protocol::{ApiError, Code};
use outlast_store::breakage::{Breakage, breaks};
use outlast_store::{Put, Store, StoreError, Table};

use super::census::Ledger;
use super::committer::{Committer, Refused, TIME_KEY};
use super::context::Random;
use super::errors;
use super::options::Options;
use super::session::Record;
use super::token::TokenKey;
use crate::limits;

const EPOCH_KEY: &[u8] = b"epoch";
const TOKEN_KEY: &[u8] = b"token_key";

/// What was found in a store, and what makes the new epoch durable.
pub(crate) struct Opening {
    /// The new epoch.
    pub(crate) epoch: u64,
    /// The key of its tokens.
    pub(crate) key: TokenKey,
    /// Sessions of the last epoch.
    pub(crate) sessions: Vec<Record>,
    /// The time of the newest event.
    pub(crate) newest: Millis,
    /// Whether the store was never opened before.
    pub(crate) is_first: bool,
    /// How many runs there are.
    pub(crate) census: Ledger,
    /// To be made durable before anything is handed out.
    pub(crate) puts: Vec<Put>,
}

/// Reads what an engine needs to begin.
///
/// # Errors
/// [`Code::Internal`] if the store cannot be read.
pub(crate) fn read(store: &dyn Store, random: &Random) -> Result<Opening, ApiError> {
    let told = |e: StoreError| errors::store(&e);
    let setting = |key: &[u8]| store.get(Table::Setting, key).map_err(told);
    let number = |bytes: Option<Vec<u8>>, what: &str| match bytes {
        None => Ok(None),
        Some(bytes) => <[u8; 8]>::try_from(bytes.as_slice()).map(Some).map_err(|_| unreadable(what)),
    };
    let epoch = number(setting(EPOCH_KEY)?, "the epoch")?.map_or(0, u64::from_be_bytes) + 1;
    let newest = number(setting(TIME_KEY)?, "the newest time")?.map_or(0, i64::from_be_bytes);
    let put = |key: &[u8], value| Put { table: Table::Setting, key: key.to_vec(), value: Some(value) };
    let mut puts = vec![put(EPOCH_KEY, epoch.to_be_bytes().to_vec())];
    let key = match setting(TOKEN_KEY)? {
        Some(bytes) => <[u8; 32]>::try_from(bytes.as_slice()).map_err(|_| unreadable("the token key"))?,
        None => {
            let key = random.bytes();
            puts.push(put(TOKEN_KEY, key.to_vec()));
            key
        }
    };
    let mut sessions = Vec::new();
    for (worker, bytes) in store.list(Table::Session).map_err(told)? {
        match serde_json::from_slice(&bytes) {
            Ok(record) => sessions.push(record),
            // Without its record nothing is kept back for the worker; what it reports is still judged by its tokens.
            Err(error) => {
                let worker = String::from_utf8_lossy(&worker).into_owned();
                tracing::warn!(worker, %error, "a worker's session cannot be read");
            }
        }
    }
    let is_first = puts.len() > 1;
    let census = Ledger::open(store, epoch)?;
    Ok(Opening { epoch, key: TokenKey::new(key), sessions, newest: Millis(newest), is_first, census, puts })
}

/// Makes the new epoch durable. On a full disk it is returned instead, owed to the first worker: without one nothing is handed out, so
/// the store can be looked at and its runs can be stopped.
///
/// # Errors
/// What the store refuses, or that it fails.
pub(crate) async fn keep(committer: &Committer, opening: &Opening) -> Result<Vec<Put>, ApiError> {
    match committer.put(opening.puts.clone()).await {
        Ok(()) => Ok(Vec::new()),
        Err(Refused::Full(_)) if !opening.is_first => Ok(opening.puts.clone()),
        Err(refused) => Err(errors::refused(&refused)),
    }
}

/// Sets the clock: after the newest event, unless that is so far ahead of the wall that one of them must be wrong.
///
/// # Errors
/// [`Code::NotReady`] if the wall clock is far behind.
pub(crate) fn set_clock(options: &Options, newest: Millis) -> Result<Millis, ApiError> {
    let behind = newest.0.saturating_sub(options.clock.wall().0);
    if behind > limits::CLOCK_BEHIND_MS_MAX && !options.accept_clock {
        let minutes = behind / 60_000;
        let message = format!("the clock is {minutes} minutes behind the newest event of the store");
        let hint = "set the clock; or, if it is right, set OUTLAST_ACCEPT_CLOCK=1: the store's time then goes on from its newest event";
        return Err(ApiError::new(Code::NotReady, message).hint(hint));
    }
    // What carries an older time than this was there before this epoch.
    if !breaks(Breakage::SetClockBack) {
        options.clock.raise(newest.plus(1));
    }
    Ok(options.clock.now())
}

/// Reads a store off the engine's tasks.
///
/// # Errors
/// As [`read`].
pub(crate) async fn read_aside(store: Arc<dyn Store>, random: Arc<Random>) -> Result<Opening, ApiError> {
    let read = tokio::task::spawn_blocking(move || read(&*store, &random)).await;
    read.unwrap_or_else(|e| Err(ApiError::new(Code::Internal, format!("the store could not be read: {e}"))))
}

pub(super) fn unreadable(what: &str) -> ApiError {
    ApiError::new(Code::Internal, format!("{what} cannot be read from the store"))
}
