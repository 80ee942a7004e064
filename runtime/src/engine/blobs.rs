//! Bytes by their hash: kept until an event of a run names them, and then as long as the run.
//!
//! Leaves references to the store. Invariant: bytes are kept under no other name than their hash, and it is said that they are kept when
//! that is durable.

use std::sync::Arc;

use outlast_protocol::{ApiError, Code};
use outlast_store::{BlobId, BlobPut};

use super::{Engine, errors};
use crate::limits::QUOTED_CHARS;

impl Engine {
    /// Keeps bytes under their hash for an hour, and longer if an event names them in a text as `blob:HASH`. Tells whether they were there.
    ///
    /// # Errors
    /// [`Code::Invalid`] if they have another hash, [`Code::DiskFull`].
    pub async fn put_blob(&self, hash: &str, bytes: Vec<u8>) -> Result<bool, ApiError> {
        let id = blob_id(hash)?;
        let found = BlobId::of(&bytes);
        if found != id {
            let message =
                format!("the bytes have the hash {found}, not {id}: they were changed on their way");
            return Err(ApiError::new(Code::Invalid, message).at("hash"));
        }
        let existed = !self.core.ctx.store.blob_users(&id, 1).map_err(|e| errors::store(&e))?.is_empty();
        let put = BlobPut { bytes, at: self.core.ctx.clock.now() };
        self.core.ctx.committer.put_blob(put).await.map_err(|refused| errors::refused(&refused))?;
        Ok(existed)
    }

    /// Returns bytes by their hash. With `sees`: only if a run of a flow that it knows holds or names them.
    ///
    /// # Errors
    /// [`Code::NotFound`], [`Code::Invalid`].
    pub(crate) async fn blob(
        &self,
        hash: &str,
        sees: Option<&(dyn Fn(&str) -> bool + Sync)>,
    ) -> Result<Vec<u8>, ApiError> {
        let id = blob_id(hash)?;
        let missing = || ApiError::new(Code::NotFound, format!("there is no blob {id}"));
        let store = Arc::clone(&self.core.ctx.store);
        if let Some(sees) = sees {
            let users =
                store.blob_users(&id, crate::limits::BLOB_USERS_MAX).map_err(|e| errors::store(&e))?;
            if !users.iter().any(|run| self.flow_of(run.as_str()).is_ok_and(|flow| sees(&flow))) {
                return Err(missing());
            }
        }
        let read = tokio::task::spawn_blocking(move || store.blob(&id)).await;
        let read =
            read.map_err(|e| ApiError::new(Code::Internal, format!("a blob could not be read: {e}")))?;
        read.map_err(|e| errors::store(&e))?.ok_or_else(missing)
    }
}

fn blob_id(hash: &str) -> Result<BlobId, ApiError> {
    BlobId::parse(hash).ok_or_else(|| {
        let hash: String = hash.chars().take(QUOTED_CHARS).collect();
        let message = format!(
            "{hash:?} is not the name of a blob: the BLAKE3 hash of its bytes, 64 hexadecimal digits"
        );
        ApiError::new(Code::Invalid, message).at("hash")
    })
}
