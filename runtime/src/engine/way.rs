//! The way of a run through its states, as its history tells it.
//!
//! Leaves drawing it to the callers. Invariant: it is folded anew from the history, so it also has states that were left within the
//! event that entered them.

use std::collections::VecDeque;

use outlast_kernel::ids::Seq;
use outlast_protocol::requests::List;
use outlast_protocol::{ApiError, Code};

use super::Engine;
use super::errors;
use super::history::each_after;
use crate::limits::WAY_STATES_MAX;

impl Engine {
    /// Returns the paths of the states that a run entered, oldest first; of a long way the latest part.
    ///
    /// # Errors
    /// [`Code::NotFound`], [`Code::Internal`].
    pub async fn way(&self, run: &str) -> Result<List<String>, ApiError> {
        let run = self.known(run)?;
        let ctx = self.core.ctx.clone();
        let walk = tokio::task::spawn_blocking(move || {
            let head = ctx.store.head(&run).map_err(|e| errors::store(&e).of_run(&run))?;
            let (newest, _) = head.ok_or_else(|| errors::no_run(&run))?;
            let mut way = VecDeque::new();
            each_after(&ctx, &run, (Seq(0), newest.seq), &mut |told| {
                way.extend(told.effects.entered.iter().cloned());
                way.drain(..way.len().saturating_sub(WAY_STATES_MAX));
                true
            })?;
            Ok(List { items: way.into(), next: None })
        });
        walk.await.unwrap_or_else(|e| {
            Err(ApiError::new(Code::Internal, format!("the history could not be read: {e}")))
        })
    }
}
