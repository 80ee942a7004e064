//! Bytes beside a result: what is too large for it is brought to the runtime under its hash, and named by the result.
//!
//! Leaves keeping to the runtime: what an event names stays as long as its run, what none names goes after an hour. Invariant: no
//! secret of the worker is in what is brought, and a runtime that restarts in the middle is waited for, but not for ever.

use super::client::CallError;
use super::context::TaskContext;
use super::link::{Reaction, reaction};
use super::loops::Backoff;
use crate::limits::{BLOB_BYTES_MAX, BLOB_CALL_TIMEOUT, BLOB_PATIENCE, QUOTE_CHARS_MAX};

/// What stands before the hash where a text names such bytes.
const PREFIX: &str = "blob:";

/// Why bytes are not kept, or not to be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BlobError {
    /// Nobody would keep them: the attempt was made by itself, as tests do.
    #[error("no runtime listens to this attempt")]
    NoRuntime,
    /// They are too many.
    #[error("{bytes} bytes are too many to keep: {BLOB_BYTES_MAX} are allowed")]
    TooLarge {
        /// How many.
        bytes: usize,
    },
    /// The text names nothing that can be fetched.
    #[error("{0:?} is not blob: and 64 hexadecimal digits")]
    Name(String),
    /// The runtime says no.
    #[error("{0}")]
    Refused(String),
    /// The runtime did not answer in time.
    #[error("the runtime did not answer in time")]
    Away,
}

impl TaskContext {
    /// Keeps bytes beside the result, without the worker's secrets, and returns the name under which the result can tell of them:
    /// `blob:` and a hash. They stay as long as a run whose events have that name in a text.
    ///
    /// # Errors
    /// [`BlobError`]; the attempt can do without.
    pub async fn put_blob(&self, bytes: Vec<u8>) -> Result<String, BlobError> {
        let bytes = self.mask().bytes(bytes);
        if bytes.len() > BLOB_BYTES_MAX {
            return Err(BlobError::TooLarge { bytes: bytes.len() });
        }
        let client = self.client().ok_or(BlobError::NoRuntime)?;
        let hash = blake3::hash(&bytes).to_hex();
        let prepared = client.raw(&format!("/v1/blobs/{hash}"), bytes);
        self.patiently(|| client.put_raw(&prepared, BLOB_CALL_TIMEOUT)).await?;
        Ok(format!("{PREFIX}{hash}"))
    }

    /// Fetches bytes by the name that a result told.
    ///
    /// # Errors
    /// [`BlobError`].
    pub async fn blob(&self, name: &str) -> Result<Vec<u8>, BlobError> {
        let hash = name.trim().strip_prefix(PREFIX).filter(|hash| is_hash(hash));
        let hash = hash.ok_or_else(|| BlobError::Name(name.chars().take(QUOTE_CHARS_MAX).collect()))?;
        let client = self.client().ok_or(BlobError::NoRuntime)?;
        let path = format!("/v1/blobs/{hash}");
        self.patiently(|| client.get_raw(&path, BLOB_CALL_TIMEOUT)).await
    }

    /// Calls until there is an answer, for as long as the attempt can wait and still end well.
    async fn patiently<A, F: Future<Output = Result<A, CallError>>>(
        &self,
        call: impl Fn() -> F,
    ) -> Result<A, BlobError> {
        let patience = self.remaining().map_or(BLOB_PATIENCE, |left| BLOB_PATIENCE.min(left / 2));
        let calls = async {
            let mut backoff = Backoff::new();
            loop {
                match call().await {
                    Ok(answer) => return Ok(answer),
                    // `not_found` means the bytes here; there is no session that could be gone.
                    Err(CallError::Refused(error)) if reaction(error.code) != Reaction::Wait => {
                        return Err(BlobError::Refused(error.message));
                    }
                    Err(CallError::Refused(_) | CallError::Unreachable(_)) => backoff.wait().await,
                }
            }
        };
        tokio::time::timeout(patience, calls).await.unwrap_or(Err(BlobError::Away))
    }
}

fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether a text is the name of bytes beside a result.
pub(crate) fn is_name(text: &str) -> bool {
    text.trim().strip_prefix(PREFIX).is_some_and(is_hash)
}
