//! When runs of a shard have something due.
//!
//! Leaves what is due to the kernel. Invariant: everything due before the horizon stands here; what is due later stands in the store
//! only, so a run that waits for long costs no memory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use outlast_kernel::ids::{Millis, RunId};
use outlast_store::{Store, StoreError};

use super::context::shard_of;
use super::message::DueAt;
use crate::limits;

/// The due times of a shard's runs.
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<DueAt>>,
    /// What is due before stands in the heap.
    horizon: Millis,
}

impl Timers {
    /// Begins with nothing; [`Timers::refill`] comes next.
    pub(crate) fn new() -> Timers {
        Timers { heap: BinaryHeap::new(), horizon: Millis(i64::MIN) }
    }

    /// Takes note of a due time. What is far away is read from the store when it comes near; a step that is on its way to the store
    /// gets there long before a whole window has passed.
    pub(crate) fn note(&mut self, due: Millis, run: &RunId) {
        if due < self.horizon.plus(limits::DUE_WINDOW_MS) {
            self.heap.push(Reverse((due, run.clone())));
        }
    }

    /// Returns when there is something to do.
    pub(crate) fn next(&self) -> Millis {
        let refill = Millis(self.horizon.0.saturating_sub_unsigned(limits::DUE_WINDOW_MS));
        self.heap.peek().map_or(refill, |Reverse((due, _))| (*due).min(refill))
    }

    /// Waits with everything until a moment: the store could not be read.
    pub(crate) fn retry_at(&mut self, at: Millis) {
        self.horizon = at.plus(limits::DUE_WINDOW_MS);
    }

    /// Takes out a run that has something due.
    pub(crate) fn pop(&mut self, now: Millis) -> Option<RunId> {
        let Reverse((due, _)) = self.heap.peek()?;
        if *due > now {
            return None;
        }
        let Reverse((_, run)) = self.heap.pop()?;
        // The same run may stand here several times; one look is enough.
        while self.heap.peek().is_some_and(|Reverse((due, other))| *due <= now && *other == run) {
            self.heap.pop();
        }
        Some(run)
    }

    /// Reads what comes near from the store, if it is time for that.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub(crate) fn refill(
        &mut self,
        store: &dyn Store,
        now: Millis,
        shard: usize,
        shards: usize,
    ) -> Result<(), StoreError> {
        if now.plus(limits::DUE_WINDOW_MS) < self.horizon {
            return Ok(());
        }
        let horizon = now.plus(2 * limits::DUE_WINDOW_MS);
        let mut after: Option<DueAt> = None;
        loop {
            let page = store.due(after.as_ref(), horizon, limits::DUE_PAGE)?;
            after = page.last().cloned();
            let own = page.into_iter().filter(|(_, run)| shard_of(run, shards) == shard);
            self.heap.extend(own.map(Reverse));
            if after.is_none() {
                break;
            }
        }
        self.horizon = horizon;
        Ok(())
    }
}
