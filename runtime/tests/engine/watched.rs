//! A store on disk that tells a test what is done with it, and fails where the test says so.
//!
//! Invariant: a commit that the test fails before is not written, one that it fails after is.

use std::path::Path;

use outlast_kernel::event::Event;
use outlast_kernel::ids::{Millis, RunId, Seq};
use outlast_store::{
    Batch, BlobId, Filter, FjallStore, Head, Index, OpenOptions, Page, Purge, Record, Remains, Report,
    Segment, Side, Stats, Store, StoreError, Summary, Table, Usage,
};

/// See the module.
pub(crate) struct Watched {
    store: FjallStore,
    on_read: Box<dyn Fn(&RunId) + Send + Sync>,
    on_commit: Box<OnCommit>,
}

type OnCommit = dyn Fn(Side, &Batch) -> Result<(), StoreError> + Send + Sync;

impl Watched {
    pub(crate) fn open(directory: &Path) -> Watched {
        let (store, _) = FjallStore::open(directory, OpenOptions::default()).expect("it opens");
        Watched { store, on_read: Box::new(|_| {}), on_commit: Box::new(|_, _| Ok(())) }
    }

    /// Calls this before a history is read.
    pub(crate) fn on_read(mut self, on_read: impl Fn(&RunId) + Send + Sync + 'static) -> Watched {
        self.on_read = Box::new(on_read);
        self
    }

    /// Calls this on both sides of each commit; an error is that of the commit.
    pub(crate) fn on_commit(
        mut self,
        on_commit: impl Fn(Side, &Batch) -> Result<(), StoreError> + Send + Sync + 'static,
    ) -> Watched {
        self.on_commit = Box::new(on_commit);
        self
    }
}

impl Store for Watched {
    fn history(&self, run: &RunId, after: Seq, limit: usize) -> Result<Vec<Event>, StoreError> {
        (self.on_read)(run);
        self.store.history(run, after, limit)
    }

    fn commit(&self, batch: &Batch) -> Result<Vec<Head>, StoreError> {
        (self.on_commit)(Side::BeforeSync, batch)?;
        let heads = self.store.commit(batch)?;
        (self.on_commit)(Side::AfterSync, batch)?;
        Ok(heads)
    }

    fn purge(&self, after: Option<&RunId>, now: Millis) -> Result<Option<Purge>, StoreError> {
        self.store.purge(after, now)
    }

    fn blob(&self, id: &BlobId) -> Result<Option<Vec<u8>>, StoreError> {
        self.store.blob(id)
    }

    fn blob_users(&self, id: &BlobId, limit: usize) -> Result<Vec<RunId>, StoreError> {
        self.store.blob_users(id, limit)
    }

    fn reclaim(&self) -> Result<(), StoreError> {
        self.store.reclaim()
    }

    fn remains(&self, run: &RunId) -> Result<Option<Remains>, StoreError> {
        self.store.remains(run)
    }

    fn deleted(&self, after: Option<&RunId>, limit: usize) -> Result<Vec<RunId>, StoreError> {
        self.store.deleted(after, limit)
    }

    fn head(&self, run: &RunId) -> Result<Option<(Head, Index)>, StoreError> {
        self.store.head(run)
    }

    fn lineage(&self, run: &RunId) -> Result<Vec<Segment>, StoreError> {
        self.store.lineage(run)
    }

    fn head_at(&self, run: &RunId, at: Seq) -> Result<Option<Head>, StoreError> {
        self.store.head_at(run, at)
    }

    fn forks(
        &self,
        run: &RunId,
        after: Option<&(Seq, RunId)>,
        limit: usize,
    ) -> Result<Vec<(Seq, RunId)>, StoreError> {
        self.store.forks(run, after, limit)
    }

    fn usage(&self, run: &RunId) -> Result<Usage, StoreError> {
        self.store.usage(run)
    }

    fn backup(&self, to: &Path) -> Result<(), StoreError> {
        self.store.backup(to)
    }

    fn summary(&self, run: &RunId) -> Result<Option<Summary>, StoreError> {
        self.store.summary(run)
    }

    fn summaries(&self, filter: &Filter) -> Result<Page, StoreError> {
        self.store.summaries(filter)
    }

    fn snapshot(&self, run: &RunId) -> Result<Option<(Seq, Vec<u8>)>, StoreError> {
        self.store.snapshot(run)
    }

    fn ready(&self, after: Option<&RunId>, limit: usize) -> Result<Vec<RunId>, StoreError> {
        self.store.ready(after, limit)
    }

    fn due(
        &self,
        after: Option<&(Millis, RunId)>,
        before: Millis,
        limit: usize,
    ) -> Result<Vec<(Millis, RunId)>, StoreError> {
        self.store.due(after, before, limit)
    }

    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.store.get(table, key)
    }

    fn list(&self, table: Table) -> Result<Vec<Record>, StoreError> {
        self.store.list(table)
    }

    fn stats(&self) -> Result<Stats, StoreError> {
        self.store.stats()
    }

    fn check(&self) -> Result<Report, StoreError> {
        self.store.check()
    }
}
