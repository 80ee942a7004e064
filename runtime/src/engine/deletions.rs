//! Deleting runs, and taking away what they left.
//!
//! Leaves whether a run may be deleted to its shard. Invariant: what a deletion left is taken away even if the process ends in the middle:
//! the store says what there is to take, and every start asks it.

use std::sync::Arc;

use outlast_protocol::ApiError;
use outlast_store::breakage::{Breakage, breaks};

use super::Engine;
use super::core::Core;
use super::message::Message;
use crate::limits;

impl Engine {
    /// Deletes a run that has ended, with its history. Runs that were forked from it keep what they share.
    ///
    /// # Errors
    /// [`outlast_protocol::Code::NotFound`], [`outlast_protocol::Code::Conflict`] if it has not ended.
    pub async fn delete(&self, run: &str) -> Result<(), ApiError> {
        let run = self.known(run)?;
        self.core.ask(&run, |reply| Message::Delete(run.clone(), reply)).await
    }
}

impl Core {
    /// Takes away what deleted runs left, for ever: at the start and after every deletion.
    pub(crate) async fn purge(self: Arc<Core>) {
        if breaks(Breakage::SkipPurge) {
            self.ctx.purge.notified().await;
        }
        loop {
            if let Err(why) = self.purge_all().await {
                tracing::warn!(why, "what deleted runs left cannot be taken away now; trying again");
                let again = self.ctx.clock.now().plus(limits::PURGE_RETRY_MS);
                self.ctx.clock.sleep_until(again).await;
                continue;
            }
            // Blobs that nobody names are taken away an hour later.
            let next = self.ctx.clock.now().plus(limits::PURGE_EVERY_MS);
            tokio::select! {
                () = self.ctx.purge.notified() => {}
                () = self.ctx.clock.sleep_until(next) => {}
            }
        }
    }

    /// Takes away, portion by portion, until a whole round finds nothing.
    async fn purge_all(&self) -> Result<(), String> {
        let (mut after, mut found, mut taken) = (None, false, false);
        loop {
            let now = self.ctx.clock.now();
            match self.ctx.committer.purge(after.take(), now).await.map_err(|refused| refused.to_string())? {
                Some(portion) => (after, found, taken) = (portion.after, true, true),
                None if found => found = false,
                None => break,
            }
        }
        if taken {
            let store = Arc::clone(&self.ctx.store);
            let reclaimed = tokio::task::spawn_blocking(move || store.reclaim()).await;
            if let Ok(Err(error)) = reclaimed {
                tracing::warn!(%error, "the room of deleted runs is not given back yet");
            }
        }
        Ok(())
    }
}
