//! What runs weigh in the store.

use std::sync::Arc;

use outlast_kernel::Json;
use outlast_kernel::ids::RunId;
use outlast_protocol::requests::List;
use outlast_protocol::{ApiError, Code};
use outlast_store::{Filter, Store, Usage};
use serde_json::json;

use super::{Engine, errors};
use crate::limits;

impl Engine {
    /// Returns the bytes that a run has for itself; a history that it shares weighs with the run whose it is.
    ///
    /// # Errors
    /// [`Code::NotFound`].
    pub async fn usage(&self, run: &str) -> Result<Json, ApiError> {
        let run = self.known(run)?;
        let read = move |store: &dyn Store| {
            let told = |e| errors::store(&e).of_run(&run);
            let Some((head, _)) = store.head(&run).map_err(told)? else {
                store.remains(&run).map_err(told)?.ok_or_else(|| errors::no_run(&run))?;
                return Ok(deleted(&run, store.usage(&run).map_err(told)?));
            };
            let shared = store.lineage(&run).map_err(told)?.last().map_or(0, |segment| segment.to.0);
            Ok(shown(&run, store.usage(&run).map_err(told)?, (head.seq.0, shared)))
        };
        self.read_aside(read).await
    }

    /// Returns the bytes of a page of runs, newest first, and last of all what is left of deleted ones.
    ///
    /// # Errors
    /// [`Code::InvalidCursor`].
    pub async fn usages(&self, cursor: Option<String>) -> Result<List<Json>, ApiError> {
        let read = move |store: &dyn Store| {
            let told = |e| errors::store(&e);
            let filter = Filter { after: cursor, limit: limits::USAGE_PAGE, ..Filter::default() };
            let page = store.summaries(&filter).map_err(told)?;
            let mut items = Vec::with_capacity(page.items.len());
            for summary in page.items {
                let shared = store.lineage(&summary.run).map_err(told)?;
                let shared = shared.last().map_or(0, |segment| segment.to.0);
                let events = summary.view["events"].as_u64().unwrap_or_default();
                items.push(shown(&summary.run, store.usage(&summary.run).map_err(told)?, (events, shared)));
            }
            if page.next.is_none() {
                for run in store.deleted(None, limits::DELETED_SHOWN_MAX).map_err(told)? {
                    items.push(deleted(&run, store.usage(&run).map_err(told)?));
                }
            }
            Ok(List { items, next: page.next })
        };
        self.read_aside(read).await
    }

    async fn read_aside<T: Send + 'static>(
        &self,
        read: impl FnOnce(&dyn Store) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let store = Arc::clone(&self.core.ctx.store);
        let read = tokio::task::spawn_blocking(move || read(&*store)).await;
        read.unwrap_or_else(|e| {
            Err(ApiError::new(Code::Internal, format!("the store could not be read: {e}")))
        })
    }
}

fn shown(run: &RunId, usage: Usage, (events, shared): (u64, u64)) -> Json {
    let Usage { history_bytes, blob_bytes, snapshot_bytes, index_bytes } = usage;
    json!({
        "run": run, "bytes": history_bytes + blob_bytes + snapshot_bytes + index_bytes, "history_bytes": history_bytes, "blob_bytes": blob_bytes,
        "snapshot_bytes": snapshot_bytes, "index_bytes": index_bytes, "events": events, "shared_events": shared,
    })
}

/// Shows what a deleted run still has, because forks share it or because it is being taken away.
fn deleted(run: &RunId, usage: Usage) -> Json {
    let Usage { history_bytes, blob_bytes, snapshot_bytes, index_bytes } = usage;
    json!({
        "run": run, "deleted": true, "bytes": history_bytes + blob_bytes + snapshot_bytes + index_bytes,
        "history_bytes": history_bytes, "blob_bytes": blob_bytes, "snapshot_bytes": snapshot_bytes, "index_bytes": index_bytes,
    })
}
