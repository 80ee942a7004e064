//! The store on disk: a directory that one process owns, with fjall inside.
//!
//! ```text
//! DIR/FORMAT     the store's format as text, read before anything else
//! DIR/lock       held by the owner; holds its process id
//! DIR/mark       the number of the last durable commit
//! DIR/ballast    room that is given back when the disk is full
//! DIR/db/        fjall's files
//! DIR/evidence/  copies of journals that were found damaged
//! ```
//! Leaves keys, values and reads to the code that the store in memory uses too. Invariant: a commit returns after its fdatasync, or
//! the store is poisoned and no later call succeeds. Start at [`FjallStore::open`] in `disk/open.rs`.

pub(crate) mod backup;
mod files;
mod floor;
mod format;
mod journal;
mod lock;
mod mark;
mod open;
mod room;
mod scan;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use fjall::{Database, Keyspace, PersistMode, Readable, Snapshot};
use outlast_kernel::event::Event;
use outlast_kernel::ids::{Millis, RunId, Seq};

use crate::keys::Space;
use crate::plan::{Plan, plan, plan_purge};
use crate::view::{self, View, Visit};
use crate::{
    Batch, BlobId, Filter, Head, Index, Page, Purge, Record, Remains, Report, Segment, Stats, Store,
    StoreError, Summary, Table, Usage, blobs, check, limits, lineage, remains,
};

pub use floor::group_commits;
pub use open::{Mark, OpenOptions, Opened};

/// The store on disk. Dropping it gives the directory free.
pub struct FjallStore {
    // Dropped in this order: keyspaces, database, and the lock last, when nothing writes any more.
    spaces: Spaces,
    database: Database,
    committer: Mutex<Committer>,
    poison: OnceLock<String>,
    directory: PathBuf,
    free_bytes_min: u64,
    _lock: lock::Lock,
}

/// What one commit at a time uses.
struct Committer {
    commit_last: u64,
    commits: u64,
    commit_us_last: u64,
    commit_us_max: u64,
    /// Bytes that were taken away since their room was given back last.
    purged_bytes: u64,
    /// Bytes that were written since memtables were turned into tables last.
    unflushed_bytes: u64,
    mark: mark::MarkFile,
}

struct Spaces {
    log: Keyspace,
    view: Keyspace,
    blob: Keyspace,
    meta: Keyspace,
}

impl Spaces {
    fn of(&self, space: Space) -> &Keyspace {
        match space {
            Space::Log => &self.log,
            Space::View => &self.view,
            Space::Blob => &self.blob,
            Space::Meta => &self.meta,
        }
    }
}

impl FjallStore {
    /// Returns the data directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Has memtables written to tables, so that a quiet keyspace does not keep old journals alive. Call it now and then while idle.
    ///
    /// # Errors
    /// [`StoreError::Disk`].
    pub fn flush(&self) -> Result<(), StoreError> {
        self.alive()?;
        for space in Space::ALL {
            self.spaces.of(space).rotate_memtable().map_err(|e| self.poisoned("flush", &e))?;
        }
        Ok(())
    }

    fn alive(&self) -> Result<(), StoreError> {
        match self.poison.get() {
            Some(detail) => Err(files::disk(&self.directory, format!("it failed before: {detail}"), None)),
            None => Ok(()),
        }
    }

    /// Notes that a write failed: nobody knows what of it is on disk, so nothing is read or written any more.
    fn poisoned(&self, doing: &str, error: &dyn std::fmt::Display) -> StoreError {
        let detail = format!("{doing}: {error}");
        let detail = self.poison.get_or_init(|| detail);
        files::disk(&self.directory, detail.clone(), None)
    }

    fn picture(&self) -> Result<Picture<'_>, StoreError> {
        self.alive()?;
        Ok(Picture::take(&self.directory, &self.database, &self.spaces))
    }

    fn lock_committer(&self) -> MutexGuard<'_, Committer> {
        self.committer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, committer: &mut Committer, plan: &mut Plan) -> Result<(), StoreError> {
        let mut batch = fjall::OwnedWriteBatch::with_capacity(self.database.clone(), plan.writes.len())
            .durability(Some(PersistMode::SyncData));
        for write in plan.writes.drain(..) {
            let space = self.spaces.of(write.space);
            match write.value {
                Some(value) => batch.insert(space, write.key, value),
                None => batch.remove(space, write.key),
            }
        }
        let start = Instant::now();
        batch.commit().map_err(|e| self.poisoned("commit", &e))?;
        committer.commit_us_last = u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX);
        committer.commit_us_max = committer.commit_us_max.max(committer.commit_us_last);
        committer.commit_last += 1;
        committer.commits += 1;
        committer.mark.write(committer.commit_last).map_err(|e| self.poisoned("write the mark", &e))?;
        committer.unflushed_bytes += plan.bytes;
        if committer.unflushed_bytes < limits::UNFLUSHED_BYTES {
            return Ok(());
        }
        committer.unflushed_bytes = 0;
        // Nobody waits for the tables themselves.
        self.flush()
    }
}

/// All keyspaces at one moment.
struct Picture<'a> {
    directory: &'a Path,
    spaces: &'a Spaces,
    snapshot: Snapshot,
}

impl<'a> Picture<'a> {
    fn take(directory: &'a Path, database: &Database, spaces: &'a Spaces) -> Picture<'a> {
        Picture { directory, spaces, snapshot: database.snapshot() }
    }

    fn failed(&self, error: &fjall::Error) -> StoreError {
        files::disk(self.directory, format!("read: {error}"), None)
    }
}

impl View for Picture<'_> {
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let value = self.snapshot.get(self.spaces.of(space), key).map_err(|e| self.failed(&e))?;
        Ok(value.map(|value| value.to_vec()))
    }

    fn size(&self, space: Space, key: &[u8]) -> Result<Option<u64>, StoreError> {
        let size = self.snapshot.size_of(self.spaces.of(space), key).map_err(|e| self.failed(&e))?;
        Ok(size.map(u64::from))
    }

    fn scan(&self, space: Space, from: &[u8], to: &[u8], visit: &mut Visit<'_>) -> Result<(), StoreError> {
        for entry in self.snapshot.range(self.spaces.of(space), from..to) {
            let (key, value) = entry.into_inner().map_err(|e| self.failed(&e))?;
            if let ControlFlow::Break(()) = visit(&key, &value)? {
                break;
            }
        }
        Ok(())
    }
}

impl Store for FjallStore {
    fn commit(&self, batch: &Batch) -> Result<Vec<Head>, StoreError> {
        let mut committer = self.lock_committer();
        let picture = self.picture()?;
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        let mut plan = plan(&picture, batch, committer.commit_last + 1)?;
        drop(picture);
        room::check(&self.directory, self.free_bytes_min, plan.bytes, batch.makes_room())?;
        self.write(&mut committer, &mut plan)?;
        Ok(plan.heads)
    }

    fn blob(&self, id: &BlobId) -> Result<Option<Vec<u8>>, StoreError> {
        blobs::get(&self.picture()?, id)
    }

    fn blob_users(&self, id: &BlobId, limit: usize) -> Result<Vec<RunId>, StoreError> {
        blobs::users(&self.picture()?, id, limit)
    }

    fn purge(&self, after: Option<&RunId>, now: Millis) -> Result<Option<Purge>, StoreError> {
        let mut committer = self.lock_committer();
        let picture = self.picture()?;
        let planned = plan_purge(&picture, (after, now), committer.commit_last + 1)?;
        drop(picture);
        let Some((mut plan, purge)) = planned else { return Ok(None) };
        // As a batch that stops runs: it makes room.
        room::check(&self.directory, self.free_bytes_min, plan.bytes, true)?;
        self.write(&mut committer, &mut plan)?;
        committer.purged_bytes += purge.bytes;
        Ok(Some(purge))
    }

    fn reclaim(&self) -> Result<(), StoreError> {
        self.alive()?;
        let spaces = [&self.spaces.log, &self.spaces.blob];
        let bytes: u64 = spaces.iter().map(|space| space.disk_space()).sum();
        let purged = self.lock_committer().purged_bytes;
        let is_worth_it = purged >= limits::RECLAIM_BYTES_MIN && purged >= bytes / limits::RECLAIM_SHARE;
        // Tables are written anew before the old ones go.
        if !is_worth_it || room::free(&self.directory)? < bytes + self.free_bytes_min {
            return Ok(());
        }
        let failed = |e: fjall::Error| files::disk(&self.directory, format!("give room back: {e}"), None);
        // A journal stays as long as any keyspace has something in it only.
        for space in Space::ALL {
            self.spaces.of(space).rotate_memtable_and_wait().map_err(failed)?;
        }
        for space in spaces {
            space.major_compact().map_err(failed)?;
        }
        let mut committer = self.lock_committer();
        committer.purged_bytes = committer.purged_bytes.saturating_sub(purged);
        // The old tables go with the first flush after commits that came later than the new ones.
        for _ in 0..2 {
            let mut plan = Plan::of_nothing(committer.commit_last + 1);
            self.write(&mut committer, &mut plan)?;
        }
        drop(committer);
        self.spaces.meta.rotate_memtable_and_wait().map_err(failed)
    }

    fn remains(&self, run: &RunId) -> Result<Option<Remains>, StoreError> {
        remains::remains(&self.picture()?, run)
    }

    fn deleted(&self, after: Option<&RunId>, limit: usize) -> Result<Vec<RunId>, StoreError> {
        remains::deleted(&self.picture()?, after, limit)
    }

    fn history(&self, run: &RunId, after: Seq, limit: usize) -> Result<Vec<Event>, StoreError> {
        view::history(&self.picture()?, run, after, limit)
    }

    fn head(&self, run: &RunId) -> Result<Option<(Head, Index)>, StoreError> {
        Ok(view::head(&self.picture()?, run)?.map(|record| (record.head, record.index)))
    }

    fn lineage(&self, run: &RunId) -> Result<Vec<Segment>, StoreError> {
        lineage::lineage(&self.picture()?, run)
    }

    fn head_at(&self, run: &RunId, at: Seq) -> Result<Option<Head>, StoreError> {
        lineage::head_at(&self.picture()?, run, at)
    }

    fn forks(
        &self,
        run: &RunId,
        after: Option<&(Seq, RunId)>,
        limit: usize,
    ) -> Result<Vec<(Seq, RunId)>, StoreError> {
        lineage::forks(&self.picture()?, run, after, limit)
    }

    fn usage(&self, run: &RunId) -> Result<Usage, StoreError> {
        view::usage(&self.picture()?, run)
    }

    fn backup(&self, to: &Path) -> Result<(), StoreError> {
        backup::write(&self.picture()?, to)
    }

    fn summary(&self, run: &RunId) -> Result<Option<Summary>, StoreError> {
        view::summary(&self.picture()?, run)
    }

    fn summaries(&self, filter: &Filter) -> Result<Page, StoreError> {
        view::summaries(&self.picture()?, filter)
    }

    fn snapshot(&self, run: &RunId) -> Result<Option<(Seq, Vec<u8>)>, StoreError> {
        view::snapshot(&self.picture()?, run)
    }

    fn ready(&self, after: Option<&RunId>, limit: usize) -> Result<Vec<RunId>, StoreError> {
        view::ready(&self.picture()?, after, limit)
    }

    fn due(
        &self,
        after: Option<&(Millis, RunId)>,
        before: Millis,
        limit: usize,
    ) -> Result<Vec<(Millis, RunId)>, StoreError> {
        view::due(&self.picture()?, after, before, limit)
    }

    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        view::get(&self.picture()?, table, key)
    }

    fn list(&self, table: Table) -> Result<Vec<Record>, StoreError> {
        view::list(&self.picture()?, table)
    }

    fn stats(&self) -> Result<Stats, StoreError> {
        self.alive()?;
        let free_bytes = room::free(&self.directory)?;
        let bytes = files::bytes(&self.directory)?;
        let committer = self.lock_committer();
        Ok(Stats {
            commit_last: committer.commit_last,
            commits: committer.commits,
            commit_us_last: committer.commit_us_last,
            commit_us_max: committer.commit_us_max,
            bytes,
            free_bytes,
            nearly_full: free_bytes < self.free_bytes_min.max(limits::FREE_BYTES_SOFT),
        })
    }

    fn check(&self) -> Result<Report, StoreError> {
        check::check(&self.picture()?)
    }
}

#[cfg(test)]
mod tests {
    /// No test that kills a process can tell whether a commit syncs: the page cache outlives it. So the text must say so.
    #[test]
    fn every_write_is_one_synced_batch() {
        let text = include_str!("disk.rs");
        let (code, _) = text.split_once("#[cfg(test)]").unwrap();
        assert_eq!(code.matches(".durability(Some(PersistMode::SyncData))").count(), 1);
        for (word, count) in
            [("PersistMode::", 1), ("OwnedWriteBatch", 1), ("batch.commit()", 1), (".persist(", 0)]
        {
            assert_eq!(code.matches(word).count(), count, "{word}");
        }
    }
}
