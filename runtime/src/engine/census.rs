//! How many runs there are of each kind, and what in them waits for people: kept in the store, so that nobody ever has to count.
//!
//! Leaves making batches to the committer, which writes the census with the steps that change it. Invariant: what stands in the store is
//! what counting all durable summaries would give; after an opening by a release that keeps no census it is counted anew, once.

use std::time::Instant;

use outlast_protocol::ApiError;
use outlast_store::{Batch, Filter, Head, Put, Status, Store, StoreError, Summary, Table};
use serde::{Deserialize, Serialize};

use super::committer::Work;
use super::counters::Counters;
use super::errors;
use crate::limits;

const KEY: &[u8] = b"census";

/// Counts, or changes of counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Census {
    pub(crate) running: i64,
    pub(crate) waiting: i64,
    pub(crate) blocked: i64,
    pub(crate) ended: i64,
    /// Open questions.
    pub(crate) questions: i64,
    /// `once` operations of which nobody knows whether they happened.
    pub(crate) in_doubt: i64,
}

/// What stands in the store.
#[derive(Serialize, Deserialize)]
struct Kept {
    /// The epoch in which it was written last.
    epoch: u64,
    counts: Census,
}

/// The census as it is durable, on the committer's side.
#[derive(Clone, Copy)]
pub(crate) struct Ledger {
    epoch: u64,
    counts: Census,
    /// Whether this epoch has not written it yet.
    is_unwritten: bool,
}

impl Census {
    /// Counts a run by what the store keeps of it.
    pub(crate) fn of(summary: &Summary) -> Census {
        let mut census = Census::default();
        match summary.status {
            Status::Running => census.running = 1,
            Status::Waiting => census.waiting = 1,
            Status::Blocked => census.blocked = 1,
            Status::Ended => census.ended = 1,
        }
        let questions = summary.view["questions"].as_array().map_or(0, Vec::len);
        census.questions = i64::try_from(questions).unwrap_or(i64::MAX);
        census.in_doubt = summary.view["in_doubt"].as_i64().unwrap_or_default();
        census
    }

    /// Returns both together.
    pub(crate) fn plus(self, other: Census) -> Census {
        self.with(other, i64::saturating_add)
    }

    /// Returns what must be added to `before` to make this.
    pub(crate) fn minus(self, before: Census) -> Census {
        self.with(before, i64::saturating_sub)
    }

    fn with(self, other: Census, each: impl Fn(i64, i64) -> i64) -> Census {
        Census {
            running: each(self.running, other.running),
            waiting: each(self.waiting, other.waiting),
            blocked: each(self.blocked, other.blocked),
            ended: each(self.ended, other.ended),
            questions: each(self.questions, other.questions),
            in_doubt: each(self.in_doubt, other.in_doubt),
        }
    }
}

impl Work {
    /// Returns what it changes.
    fn census(&self) -> Census {
        match self {
            Work::Step(step) => step.tally.census,
            // Only what has ended is deleted.
            Work::Delete(_) => Census { ended: -1, ..Census::default() },
            Work::Puts { .. } | Work::Blob { .. } | Work::Purge { .. } => Census::default(),
        }
    }
}

impl Ledger {
    /// Reads the census of a store, or counts if the last epoch kept none. `epoch` is the one that begins.
    ///
    /// # Errors
    /// [`outlast_protocol::Code::Internal`] if the store cannot be read.
    pub(crate) fn open(store: &dyn Store, epoch: u64) -> Result<Ledger, ApiError> {
        let told = |error| errors::store(&error);
        let kept = store.get(Table::Setting, KEY).map_err(told)?;
        let kept: Option<Kept> = kept.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let counts = match kept.filter(|kept| kept.epoch + 1 == epoch) {
            Some(kept) => kept.counts,
            None => counted(store)?,
        };
        Ok(Ledger { epoch, counts, is_unwritten: true })
    }

    /// Returns what is durable.
    pub(crate) fn counts(&self) -> Census {
        self.counts
    }

    /// Commits the batch of some works together with the counts after it, and counts what it comes to.
    ///
    /// # Errors
    /// As [`Store::commit`].
    pub(crate) fn commit(
        &mut self,
        store: &dyn Store,
        works: &[Work],
        batch: &mut Batch,
        counters: &Counters,
    ) -> Result<Vec<Head>, StoreError> {
        let _span = tracing::info_span!("commit", runs = batch.runs.len()).entered();
        let (counts, put) = self.after(works);
        batch.puts.extend(put);
        let begun = Instant::now();
        let committed = store.commit(batch);
        counters.commits.took(begun.elapsed());
        if committed.is_ok() {
            (self.counts, self.is_unwritten) = (counts, false);
            counters.committed(works, counts);
        }
        committed
    }

    /// Returns the counts after works, and what writes them down if that is needed.
    fn after(&self, works: &[Work]) -> (Census, Option<Put>) {
        let counts = works.iter().map(Work::census).fold(self.counts, Census::plus);
        if counts == self.counts && !self.is_unwritten {
            return (counts, None);
        }
        let value = serde_json::to_vec(&Kept { epoch: self.epoch, counts }).ok();
        (counts, Some(Put { table: Table::Setting, key: KEY.to_vec(), value }))
    }
}

fn counted(store: &dyn Store) -> Result<Census, ApiError> {
    let mut counts = Census::default();
    let mut filter = Filter { limit: limits::CENSUS_PAGE, ..Filter::default() };
    loop {
        let page = store.summaries(&filter).map_err(|error| errors::store(&error))?;
        counts = page.items.iter().map(Census::of).fold(counts, Census::plus);
        filter.after = page.next;
        if filter.after.is_none() {
            return Ok(counts);
        }
    }
}
