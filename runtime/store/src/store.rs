//! The trait that the engine writes and reads through.

use std::collections::BTreeSet;
use std::path::Path;

use outlast_kernel::event::Event;
use outlast_kernel::ids::{Millis, RunId, Seq};

use crate::{
    Batch, BlobId, Head, Index, Purge, Remains, Report, Segment, Status, StoreError, Summary, Table,
};

/// A store of histories. Calls block; the engine calls `commit` from one thread and reads from any.
pub trait Store: Send + Sync + 'static {
    /// Makes a batch durable, all or nothing, and returns the heads of its runs in the order of `batch.runs`.
    /// Nothing of it is visible to readers before it is durable.
    ///
    /// # Errors
    /// [`StoreError::Stale`] if a run's history is not where `before` says (nothing is written, the store stays usable);
    /// [`StoreError::Full`] if the disk has no room beyond the ballast (nothing is written);
    /// [`StoreError::Invalid`] if the batch breaks a rule of [`Batch`] or a limit (nothing is written);
    /// [`StoreError::Disk`] if a write or sync failed: the outcome is unknown and every later call fails.
    fn commit(&self, batch: &Batch) -> Result<Vec<Head>, StoreError>;

    /// Takes a portion of what deleted runs left away for good, all or nothing, of runs after one; when there is nothing of any run, a
    /// portion of the blobs that nobody has named for an hour. None if there is nothing; begin again from the beginning until there is none,
    /// since one run's end may free what another one kept for it.
    ///
    /// # Errors
    /// As [`Store::commit`].
    fn purge(&self, after: Option<&RunId>, now: Millis) -> Result<Option<Purge>, StoreError>;

    /// Returns bytes by their hash.
    ///
    /// # Errors
    /// As [`Store::history`].
    fn blob(&self, id: &BlobId) -> Result<Option<Vec<u8>>, StoreError>;

    /// Returns runs that hold or name a blob, at most `limit`. Of a history that forks share it is the run under which it stands.
    ///
    /// # Errors
    /// As [`Store::history`].
    fn blob_users(&self, id: &BlobId, limit: usize) -> Result<Vec<RunId>, StoreError>;

    /// Gives the room of what was taken away back to the disk, if there is enough of it to be worth the work.
    ///
    /// # Errors
    /// [`StoreError::Disk`]; nothing is lost then, and the store stays usable.
    fn reclaim(&self) -> Result<(), StoreError>;

    /// Returns what is left of a deleted run; none if nothing is.
    ///
    /// # Errors
    /// As [`Store::history`].
    fn remains(&self, run: &RunId) -> Result<Option<Remains>, StoreError>;

    /// Returns deleted runs of which something is left, in the order of ids, after a run, at most `limit`.
    ///
    /// # Errors
    /// As [`Store::history`].
    fn deleted(&self, after: Option<&RunId>, limit: usize) -> Result<Vec<RunId>, StoreError>;

    /// Returns events after `after`, oldest first, at most `limit`.
    ///
    /// # Errors
    /// [`StoreError::Disk`], [`StoreError::Damaged`] and [`StoreError::Newer`].
    fn history(&self, run: &RunId, after: Seq, limit: usize) -> Result<Vec<Event>, StoreError>;

    /// Returns where a run's history stands, with its views; none if there is no such run.
    ///
    /// # Errors
    /// As [`Store::history`].
    fn head(&self, run: &RunId) -> Result<Option<(Head, Index)>, StoreError>;

    /// Returns the parts of a fork's history that stand in other runs, oldest first; none if it is no fork.
    ///
    /// # Errors
    /// As [`Store::history`].
    fn lineage(&self, run: &RunId) -> Result<Vec<Segment>, StoreError>;

    /// Returns the head that a fork of a run at an event begins with; none if the run has no such event.
    ///
    /// # Errors
    /// As [`Store::history`].
    fn head_at(&self, run: &RunId, at: Seq) -> Result<Option<Head>, StoreError>;

    /// Returns a run's forks by where they begin, after a position, at most `limit`.
    ///
    /// # Errors
    /// As [`Store::history`].
    fn forks(
        &self,
        run: &RunId,
        after: Option<&(Seq, RunId)>,
        limit: usize,
    ) -> Result<Vec<(Seq, RunId)>, StoreError>;

    /// Returns the bytes that a run has for itself.
    ///
    /// # Errors
    /// As [`Store::history`].
    fn usage(&self, run: &RunId) -> Result<Usage, StoreError>;

    /// Writes a whole copy of the store, as it is at one moment, into a directory that is not there yet. The directory appears when
    /// the copy is whole and durable.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] if something is there, and as [`Store::history`].
    fn backup(&self, to: &Path) -> Result<(), StoreError>;

    /// Returns a run's summary.
    ///
    /// # Errors
    /// As [`Store::history`].
    fn summary(&self, run: &RunId) -> Result<Option<Summary>, StoreError>;

    /// Returns summaries that fit, newest start first, from a cursor on.
    ///
    /// # Errors
    /// As [`Store::history`], and [`StoreError::Invalid`] for a cursor that no page gave.
    fn summaries(&self, filter: &Filter) -> Result<Page, StoreError>;

    /// Returns the newest snapshot: the event after which it was taken, and its bytes.
    ///
    /// # Errors
    /// As [`Store::history`].
    fn snapshot(&self, run: &RunId) -> Result<Option<(Seq, Vec<u8>)>, StoreError>;

    /// Returns runs with work to hand out, in the order of ids, after a run, at most `limit`.
    ///
    /// # Errors
    /// As [`Store::history`].
    fn ready(&self, after: Option<&RunId>, limit: usize) -> Result<Vec<RunId>, StoreError>;

    /// Returns runs with something due before `before`, earliest first, after a position, at most `limit`.
    ///
    /// # Errors
    /// As [`Store::history`].
    fn due(
        &self,
        after: Option<&(Millis, RunId)>,
        before: Millis,
        limit: usize,
    ) -> Result<Vec<(Millis, RunId)>, StoreError>;

    /// Returns a record beside histories.
    ///
    /// # Errors
    /// As [`Store::history`].
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError>;

    /// Returns all records of a table in the order of keys.
    ///
    /// # Errors
    /// As [`Store::history`].
    fn list(&self, table: Table) -> Result<Vec<Record>, StoreError>;

    /// Returns figures for `doctor`, and whether the disk has room for new runs.
    ///
    /// # Errors
    /// [`StoreError::Disk`].
    fn stats(&self) -> Result<Stats, StoreError>;

    /// Reads everything: every history whole, its chain unbroken, every view as its head says.
    ///
    /// # Errors
    /// [`StoreError::Disk`]. Damage is a finding, not an error.
    fn check(&self) -> Result<Report, StoreError>;
}

/// A record beside histories: its key and its value.
pub type Record = (Vec<u8>, Vec<u8>);

/// The bytes that a run has for itself: not those of the history that it shares with the run it was forked from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Of its events.
    pub history_bytes: u64,
    /// Of the values that its events hold or name by hash; others may, too, and then they stand once all the same.
    pub blob_bytes: u64,
    /// Of its snapshot, which can be made again.
    pub snapshot_bytes: u64,
    /// Of its places in lists.
    pub index_bytes: u64,
}

/// Figures of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// The number of the last durable commit, over the store's whole life.
    pub commit_last: u64,
    /// Commits since it was opened.
    pub commits: u64,
    /// Microseconds that the last commit took, sync included.
    pub commit_us_last: u64,
    /// Microseconds that the slowest commit since opening took.
    pub commit_us_max: u64,
    /// Bytes of its files.
    pub bytes: u64,
    /// Bytes that the disk has left for it.
    pub free_bytes: u64,
    /// Whether new runs should be refused, so that the running ones can end.
    pub nearly_full: bool,
}

/// Which summaries are wanted.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only these statuses; none: all.
    pub statuses: Vec<Status>,
    /// These runs too, whatever their status.
    pub besides: BTreeSet<RunId>,
    /// Only this flow.
    pub flow: Option<String>,
    /// Only this profile.
    pub profile: Option<String>,
    /// Only what started before this moment.
    pub started_before: Option<Millis>,
    /// The cursor of the page before.
    pub after: Option<String>,
    /// At most this many; 0 means 100.
    pub limit: usize,
}

/// One page of summaries, newest start first. It may hold fewer than asked for, even none, while `next` names another: the work
/// for one page is bounded, however few summaries fit.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The summaries.
    pub items: Vec<Summary>,
    /// The cursor of the next page; none at the end.
    pub next: Option<String>,
}
