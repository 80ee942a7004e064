//! A store in memory whose `crash()` forgets what was not synced: for tests of durability, which killing a process cannot give.
//!
//! Leaves keys, values and reads to the code that the store on disk uses too. Invariant: exactly what the store on disk promises,
//! no more: nothing is visible before its sync, and after a failed sync every call fails.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use outlast_kernel::event::Event;
use outlast_kernel::ids::{Millis, RunId, Seq};

use crate::breakage::{Breakage, breaks};
use crate::disk::backup;
use crate::keys::Space;
use crate::plan::{Plan, plan, plan_purge};
use crate::view::{self, View, Visit};
use crate::{
    Batch, BlobId, Filter, Head, Index, Page, Purge, Record, Remains, Report, Segment, Stats, Store,
    StoreError, Summary, Table, Usage, blobs, check, lineage, remains,
};

/// A store in memory. Clones are handles of the same life; [`MemoryStore::crash`] begins the next one.
#[derive(Clone, Debug)]
pub struct MemoryStore {
    shared: Arc<Shared>,
    life: u64,
}

/// A side of a commit's sync point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The batch is written, but a crash forgets it.
    BeforeSync,
    /// The batch is durable, but nobody has been told.
    AfterSync,
}

/// What a failed sync leaves behind; the caller cannot know which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailedSync {
    /// The batch is gone.
    Lost,
    /// The batch is found after the restart.
    Written,
}

/// One sync: what became durable by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncPoint {
    /// The number of the commit.
    pub commit: u64,
    /// The steps: run and last event.
    pub steps: Vec<(RunId, Seq)>,
    /// The records beside histories.
    pub puts: Vec<(Table, Vec<u8>)>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Held over a whole commit, so that a held commit keeps later ones out.
    committer: Mutex<()>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    life: u64,
    durable: Spaces,
    commit_last: u64,
    commits: u64,
    poisoned: Option<String>,
    hold: Option<Side>,
    held: Option<Side>,
    crash_at: Option<(u64, Side)>,
    /// A commit that finds no room, and how many tries it takes until there is some.
    refuse_at: Option<(u64, u8)>,
    fail_next: Option<FailedSync>,
    disk_full: bool,
    syncs: Vec<SyncPoint>,
    /// Bytes of all keys and values that were made durable.
    written_bytes: u64,
    /// What was durable before a commit that only pretends to be.
    before_pretence: Option<Spaces>,
}

type Spaces = BTreeMap<Space, BTreeMap<Vec<u8>, Vec<u8>>>;

impl Default for MemoryStore {
    fn default() -> MemoryStore {
        MemoryStore::new()
    }
}

impl MemoryStore {
    /// Makes an empty store.
    #[must_use]
    pub fn new() -> MemoryStore {
        MemoryStore { shared: Arc::default(), life: 0 }
    }

    /// Forgets everything that was not synced and returns the handle of the next life. Older handles fail from now on, a held
    /// commit of theirs too. Switches (disk full, hold) are off again.
    #[must_use]
    pub fn crash(&self) -> MemoryStore {
        let mut state = self.lock();
        state.life += 1;
        state.poisoned = None;
        (state.hold, state.held, state.crash_at, state.fail_next) = (None, None, None, None);
        (state.disk_full, state.refuse_at) = (false, None);
        state.commits = 0;
        if let Some(durable) = state.before_pretence.take() {
            state.durable = durable;
        }
        self.shared.changed.notify_all();
        MemoryStore { shared: Arc::clone(&self.shared), life: state.life }
    }

    /// Makes commits wait at a side of their sync point until [`MemoryStore::release`] or [`MemoryStore::crash`].
    pub fn hold(&self, side: Side) {
        self.lock().hold = Some(side);
    }

    /// Blocks until a commit waits at the held side.
    pub fn wait_until_held(&self) {
        let mut state = self.lock();
        while state.held.is_none() && state.life == self.life {
            state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Lets held commits go on.
    pub fn release(&self) {
        self.lock().hold = None;
        self.shared.changed.notify_all();
    }

    /// Lets the process die in a coming commit, at a side of its sync point: 0 is the next one. That commit and every later call
    /// fail; [`MemoryStore::crash`] gives the handle of the next life. For simulators with one thread, which cannot hold.
    pub fn crash_at(&self, commits: u64, side: Side) {
        let mut state = self.lock();
        state.crash_at = Some((state.commit_last + 1 + commits, side));
    }

    /// Lets the next sync fail: its outcome is unknown to the caller, and every later call fails.
    pub fn fail_next_sync(&self, outcome: FailedSync) {
        self.lock().fail_next = Some(outcome);
    }

    /// Fills the disk: commits are refused until [`MemoryStore::empty_disk`].
    pub fn fill_disk(&self) {
        self.lock().disk_full = true;
    }

    /// Refuses a coming commit so many times for lack of room: 0 is the next one. There is room before it and after it: others fill
    /// the disk, too, and make room again.
    pub fn refuse_at(&self, commits: u64, times: u8) {
        let mut state = self.lock();
        state.refuse_at = Some((state.commit_last + 1 + commits, times));
    }

    /// Makes room on the disk again.
    pub fn empty_disk(&self) {
        let mut state = self.lock();
        (state.disk_full, state.refuse_at) = (false, None);
    }

    /// Returns every sync of every life, in order: an effect is right only if the sync of its event is in here.
    #[must_use]
    pub fn syncs(&self) -> Vec<SyncPoint> {
        self.lock().syncs.clone()
    }

    /// Returns the bytes of all keys and values that were ever made durable, whether they are there or not.
    #[must_use]
    pub fn written_bytes(&self) -> u64 {
        self.lock().written_bytes
    }

    /// Returns the number of the last commit, over all lives.
    #[must_use]
    pub fn commit_last(&self) -> u64 {
        self.lock().commit_last
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the state of a store that still works, in this life.
    fn alive(&self) -> Result<MutexGuard<'_, State>, StoreError> {
        let state = self.lock();
        if state.life != self.life {
            return Err(disk("the process of this handle crashed".into()));
        }
        match &state.poisoned {
            Some(detail) => Err(disk(detail.clone())),
            None => Ok(state),
        }
    }

    /// Waits while commits are held at this side; fails if the process died meanwhile, or is to die here.
    fn pass<'a>(&'a self, mut state: MutexGuard<'a, State>, side: Side) -> Passed<'a> {
        while state.life == self.life && state.hold == Some(side) {
            state.held = Some(side);
            self.shared.changed.notify_all();
            state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.life != self.life {
            return Err(disk("the process crashed".into()));
        }
        state.held = None;
        let coming = if side == Side::BeforeSync { state.commit_last + 1 } else { state.commit_last };
        if state.crash_at == Some((coming, side)) {
            state.poisoned = Some("the process crashed".into());
            return Err(disk("the process crashed".into()));
        }
        Ok(state)
    }
}

impl MemoryStore {
    /// Makes a plan durable, unless the process dies on the way or the sync fails.
    fn write(&self, state: MutexGuard<'_, State>, plan: &Plan, batch: &Batch) -> Result<(), StoreError> {
        let mut state = self.pass(state, Side::BeforeSync)?;
        if let Some(outcome) = state.fail_next.take() {
            match outcome {
                FailedSync::Lost => {}
                FailedSync::Written => state.sync(plan, batch),
            }
            state.poisoned = Some("a sync failed".into());
            return Err(disk("a sync failed".into()));
        }
        state.sync(plan, batch);
        drop(self.pass(state, Side::AfterSync)?);
        Ok(())
    }
}

type Passed<'a> = Result<MutexGuard<'a, State>, StoreError>;

impl State {
    /// Whether the coming commit finds no room this time.
    fn is_refused(&mut self) -> bool {
        let coming = self.commit_last + 1;
        match self.refuse_at {
            Some((at, times)) if at == coming && times > 0 => {
                self.refuse_at = Some((at, times - 1));
                true
            }
            Some(_) | None => false,
        }
    }

    /// The sync point: from here on the batch survives a crash.
    fn sync(&mut self, plan: &Plan, batch: &Batch) {
        if breaks(Breakage::SkipSync) && self.before_pretence.is_none() {
            self.before_pretence = Some(self.durable.clone());
        }
        self.commit_last += 1;
        self.commits += 1;
        self.written_bytes += plan.bytes;
        for write in &plan.writes {
            let space = self.durable.entry(write.space).or_default();
            match &write.value {
                Some(value) => space.insert(write.key.clone(), value.clone()),
                None => space.remove(&write.key),
            };
        }
        let steps = batch.runs.iter().zip(&plan.heads).map(|(write, head)| (write.run.clone(), head.seq));
        let puts = batch.puts.iter().map(|put| (put.table, put.key.clone()));
        let (steps, puts) = (steps.collect(), puts.collect());
        self.syncs.push(SyncPoint { commit: self.commit_last, steps, puts });
    }
}

impl View for State {
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.durable.get(&space).and_then(|space| space.get(key)).cloned())
    }

    fn size(&self, space: Space, key: &[u8]) -> Result<Option<u64>, StoreError> {
        Ok(self.durable.get(&space).and_then(|space| space.get(key)).map(|value| value.len() as u64))
    }

    fn scan(&self, space: Space, from: &[u8], to: &[u8], visit: &mut Visit<'_>) -> Result<(), StoreError> {
        let range = (Bound::Included(from), Bound::Excluded(to));
        for (key, value) in self.durable.get(&space).into_iter().flat_map(|s| s.range::<[u8], _>(range)) {
            if let ControlFlow::Break(()) = visit(key, value)? {
                break;
            }
        }
        Ok(())
    }
}

impl Store for MemoryStore {
    fn commit(&self, batch: &Batch) -> Result<Vec<Head>, StoreError> {
        let _one_at_a_time = self.shared.committer.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.alive()?;
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        let plan = plan(&*state, batch, state.commit_last + 1)?;
        if (state.disk_full || state.is_refused()) && !batch.makes_room() {
            return Err(StoreError::Full { path: path(), free: 0, needed: plan.bytes });
        }
        self.write(state, &plan, batch)?;
        Ok(plan.heads)
    }

    fn blob(&self, id: &BlobId) -> Result<Option<Vec<u8>>, StoreError> {
        blobs::get(&*self.alive()?, id)
    }

    fn blob_users(&self, id: &BlobId, limit: usize) -> Result<Vec<RunId>, StoreError> {
        blobs::users(&*self.alive()?, id, limit)
    }

    fn purge(&self, after: Option<&RunId>, now: Millis) -> Result<Option<Purge>, StoreError> {
        let _one_at_a_time = self.shared.committer.lock().unwrap_or_else(PoisonError::into_inner);
        let state = self.alive()?;
        let planned = plan_purge(&*state, (after, now), state.commit_last + 1)?;
        let Some((plan, purge)) = planned else { return Ok(None) };
        self.write(state, &plan, &Batch::default())?;
        Ok(Some(purge))
    }

    fn reclaim(&self) -> Result<(), StoreError> {
        self.alive().map(drop)
    }

    fn remains(&self, run: &RunId) -> Result<Option<Remains>, StoreError> {
        remains::remains(&*self.alive()?, run)
    }

    fn deleted(&self, after: Option<&RunId>, limit: usize) -> Result<Vec<RunId>, StoreError> {
        remains::deleted(&*self.alive()?, after, limit)
    }

    fn history(&self, run: &RunId, after: Seq, limit: usize) -> Result<Vec<Event>, StoreError> {
        view::history(&*self.alive()?, run, after, limit)
    }

    fn head(&self, run: &RunId) -> Result<Option<(Head, Index)>, StoreError> {
        Ok(view::head(&*self.alive()?, run)?.map(|record| (record.head, record.index)))
    }

    fn lineage(&self, run: &RunId) -> Result<Vec<Segment>, StoreError> {
        lineage::lineage(&*self.alive()?, run)
    }

    fn head_at(&self, run: &RunId, at: Seq) -> Result<Option<Head>, StoreError> {
        lineage::head_at(&*self.alive()?, run, at)
    }

    fn forks(
        &self,
        run: &RunId,
        after: Option<&(Seq, RunId)>,
        limit: usize,
    ) -> Result<Vec<(Seq, RunId)>, StoreError> {
        lineage::forks(&*self.alive()?, run, after, limit)
    }

    fn usage(&self, run: &RunId) -> Result<Usage, StoreError> {
        view::usage(&*self.alive()?, run)
    }

    fn backup(&self, to: &Path) -> Result<(), StoreError> {
        backup::write(&*self.alive()?, to)
    }

    fn summary(&self, run: &RunId) -> Result<Option<Summary>, StoreError> {
        view::summary(&*self.alive()?, run)
    }

    fn summaries(&self, filter: &Filter) -> Result<Page, StoreError> {
        view::summaries(&*self.alive()?, filter)
    }

    fn snapshot(&self, run: &RunId) -> Result<Option<(Seq, Vec<u8>)>, StoreError> {
        view::snapshot(&*self.alive()?, run)
    }

    fn ready(&self, after: Option<&RunId>, limit: usize) -> Result<Vec<RunId>, StoreError> {
        view::ready(&*self.alive()?, after, limit)
    }

    fn due(
        &self,
        after: Option<&(Millis, RunId)>,
        before: Millis,
        limit: usize,
    ) -> Result<Vec<(Millis, RunId)>, StoreError> {
        view::due(&*self.alive()?, after, before, limit)
    }

    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        view::get(&*self.alive()?, table, key)
    }

    fn list(&self, table: Table) -> Result<Vec<Record>, StoreError> {
        view::list(&*self.alive()?, table)
    }

    fn stats(&self) -> Result<Stats, StoreError> {
        let state = self.alive()?;
        let bytes = state.durable.values().flatten().map(|(key, value)| (key.len() + value.len()) as u64);
        Ok(Stats {
            commit_last: state.commit_last,
            commits: state.commits,
            bytes: bytes.sum(),
            free_bytes: if state.disk_full { 0 } else { u64::MAX },
            nearly_full: state.disk_full,
            ..Stats::default()
        })
    }

    fn check(&self) -> Result<Report, StoreError> {
        check::check(&*self.alive()?)
    }
}

fn path() -> PathBuf {
    PathBuf::from("memory")
}

fn disk(detail: String) -> StoreError {
    StoreError::Disk { path: path(), detail, source: None }
}
