//! The committer: one thread that makes the steps of all shards durable, many at a time.
//!
//! Leaves deciding to the shards, which go on with the next steps meanwhile. Invariant: steps become durable in the order in which
//! they were queued, and nobody is told of one before the store's commit returned. After a failed commit everybody is told so, and nothing else.

mod batch;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use outlast_kernel::ids::{Millis, RunId, Seq};
use outlast_store::breakage::{Breakage, breaks};
use outlast_store::{BlobPut, Delete, Head, Purge, Put, RunWrite, Store, StoreError};
use tokio::sync::{mpsc, oneshot, watch};

use super::census::Ledger;
use super::counters::{Counters, Tally, WriteFailure};
use crate::limits;
use batch::{batch_of, move_heads};

/// Where a run's durable history stands: read and moved on by the committer only, made by the run's shard.
pub(crate) type HeadCell = Arc<Mutex<Head>>;

/// The key in [`Table::Setting`] of the newest event's time: the engine's clock starts there at least.
pub(crate) const TIME_KEY: &[u8] = b"time";

/// Something to make durable.
pub(crate) enum Work {
    /// A step of a run.
    Step(Box<Step>),
    /// Records beside histories.
    Puts {
        /// The records.
        puts: Vec<Put>,
        /// Whom to tell.
        done: oneshot::Sender<Result<(), Refused>>,
    },
    /// Bytes by their hash.
    Blob {
        /// The bytes.
        put: BlobPut,
        /// Whom to tell.
        done: oneshot::Sender<Result<(), Refused>>,
    },
    /// The deletion of a run.
    Delete(Box<Deletion>),
    /// A portion of what deleted runs left is to be taken away.
    Purge {
        /// The run after which it goes on.
        after: Option<RunId>,
        /// The moment that it is.
        now: Millis,
        /// Whom to tell.
        done: oneshot::Sender<Result<Option<Purge>, Refused>>,
    },
}

/// The deletion of a run.
pub(crate) struct Deletion {
    /// What to delete.
    pub(crate) delete: Delete,
    /// Records that go with it.
    pub(crate) puts: Vec<Put>,
    /// The shard's name for it.
    pub(crate) ticket: u64,
    /// Whom to tell.
    pub(crate) done: mpsc::UnboundedSender<Done>,
}

/// A step of a run.
pub(crate) struct Step {
    /// The run's durable head.
    pub(crate) head: HeadCell,
    /// What to write; its `before` is filled in here.
    pub(crate) write: RunWrite,
    /// Records that belong to it.
    pub(crate) puts: Vec<Put>,
    /// About how many bytes it has.
    pub(crate) weight: usize,
    /// What it comes to for those who count.
    pub(crate) tally: Tally,
    /// The shard's name for it.
    pub(crate) ticket: u64,
    /// Whom to tell.
    pub(crate) done: mpsc::UnboundedSender<Done>,
}

/// What became of steps, in order.
#[derive(Debug)]
pub(crate) struct Done {
    /// The steps.
    pub(crate) tickets: Vec<u64>,
    /// Whether they are durable.
    pub(crate) result: Result<(), Refused>,
}

/// Why something is not durable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    /// The disk has no room; nothing was written.
    #[error("{0}")]
    Full(String),
    /// The store refuses this write for itself; nothing was written.
    #[error("{0}")]
    Invalid(String),
    /// The disk failed: nobody knows whether it was written.
    #[error("{0}")]
    Failed(String),
}

/// The queue to the committer's thread.
#[derive(Clone)]
pub(crate) struct Committer {
    queue: Arc<Queue>,
}

struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    failed: watch::Sender<Option<String>>,
}

#[derive(Default)]
struct State {
    works: VecDeque<Work>,
    closed: bool,
}

impl Committer {
    /// Starts the thread.
    ///
    /// # Errors
    /// If the system gives no thread.
    pub(crate) fn start(
        store: Arc<dyn Store>,
        census: Ledger,
        counters: Arc<Counters>,
    ) -> std::io::Result<(Committer, JoinHandle<()>)> {
        let queue = Arc::new(Queue {
            state: Mutex::default(),
            changed: Condvar::new(),
            failed: watch::Sender::new(None),
        });
        let committer = Committer { queue: Arc::clone(&queue) };
        let thread = std::thread::Builder::new()
            .name("committer".into())
            .spawn(move || Thread { store, queue, census, counters, refusal: None }.run())?;
        Ok((committer, thread))
    }

    /// Queues something. Its bound is its callers': a shard waits when too much of it is not durable, others wait for the answer.
    pub(crate) fn queue(&self, work: Work) {
        let mut state = self.queue.lock();
        if state.closed {
            drop(state);
            return work.tell(Err(Refused::Failed("the engine is stopping".into())));
        }
        state.works.push_back(work);
        self.queue.changed.notify_one();
    }

    /// Makes records durable.
    ///
    /// # Errors
    /// [`Refused`].
    pub(crate) async fn put(&self, puts: Vec<Put>) -> Result<(), Refused> {
        let (done, result) = oneshot::channel();
        self.queue(Work::Puts { puts, done });
        result.await.unwrap_or_else(|_| Err(Refused::Failed("the committer is gone".into())))
    }

    /// Makes bytes durable under their hash.
    ///
    /// # Errors
    /// [`Refused`].
    pub(crate) async fn put_blob(&self, put: BlobPut) -> Result<(), Refused> {
        let (done, result) = oneshot::channel();
        self.queue(Work::Blob { put, done });
        result.await.unwrap_or_else(|_| Err(Refused::Failed("the committer is gone".into())))
    }

    /// Takes a portion of what deleted runs left away.
    ///
    /// # Errors
    /// [`Refused`].
    pub(crate) async fn purge(&self, after: Option<RunId>, now: Millis) -> Result<Option<Purge>, Refused> {
        let (done, result) = oneshot::channel();
        self.queue(Work::Purge { after, now, done });
        result.await.unwrap_or_else(|_| Err(Refused::Failed("the committer is gone".into())))
    }

    /// Lets the thread end when the queue is empty; takes nothing more.
    pub(crate) fn close(&self) {
        self.queue.lock().closed = true;
        self.queue.changed.notify_one();
    }

    /// Returns why the committer failed, as soon as it does.
    pub(crate) fn failed(&self) -> watch::Receiver<Option<String>> {
        self.queue.failed.subscribe()
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for work and takes one batch of it; none when closed and empty.
    fn next(&self) -> Option<Vec<Work>> {
        let mut state = self.lock();
        while state.works.is_empty() {
            if state.closed {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let (mut batch, mut bytes, mut events) = (Vec::new(), 0, 0);
        let mut ended = Vec::<RunId>::new();
        while let Some(work) = state.works.front() {
            match (work, batch.first()) {
                (Work::Step(step), None | Some(Work::Step(_) | Work::Puts { .. } | Work::Blob { .. })) => {
                    // Steps of one run are merged into one write, whose snapshot must be that of its last event.
                    let fits = bytes < limits::BATCH_BYTES && events < limits::BATCH_EVENTS;
                    if !fits || ended.contains(&step.write.run) {
                        break;
                    }
                    (bytes, events) = (bytes + step.weight, events + step.write.events.len());
                    if step.write.snapshot.is_some() {
                        ended.push(step.write.run.clone());
                    }
                }
                (Work::Puts { .. }, None | Some(Work::Step(_) | Work::Puts { .. } | Work::Blob { .. })) => {}
                (
                    Work::Blob { put, .. },
                    None | Some(Work::Step(_) | Work::Puts { .. } | Work::Blob { .. }),
                ) if bytes < limits::BATCH_BYTES => {
                    bytes += put.bytes.len();
                }
                (Work::Delete(_), None | Some(Work::Delete(_))) if batch.len() < limits::BATCH_DELETES => {}
                (Work::Purge { .. }, None) => {}
                // Deletions and purges are not mixed with anything else.
                (
                    Work::Step(_)
                    | Work::Puts { .. }
                    | Work::Blob { .. }
                    | Work::Delete(_)
                    | Work::Purge { .. },
                    _,
                ) => break,
            }
            batch.extend(state.works.pop_front());
        }
        Some(batch)
    }
}

impl Work {
    fn tell(self, result: Result<(), Refused>) {
        match self {
            Work::Step(step) => {
                let Step { ticket, done, .. } = *step;
                // A shard that is gone needs no word.
                let _ = done.send(Done { tickets: vec![ticket], result });
            }
            Work::Delete(deletion) => {
                let Deletion { ticket, done, .. } = *deletion;
                let _ = done.send(Done { tickets: vec![ticket], result });
            }
            Work::Puts { done, .. } | Work::Blob { done, .. } => {
                let _ = done.send(result);
            }
            Work::Purge { done, .. } => {
                let _ = done.send(result.map(|()| None));
            }
        }
    }

    /// Returns the shard that is told of it, and its name for it.
    fn ticket(&self) -> Option<(&mpsc::UnboundedSender<Done>, u64)> {
        match self {
            Work::Step(step) => Some((&step.done, step.ticket)),
            Work::Delete(deletion) => Some((&deletion.done, deletion.ticket)),
            Work::Puts { .. } | Work::Blob { .. } | Work::Purge { .. } => None,
        }
    }
}

struct Thread {
    store: Arc<dyn Store>,
    queue: Arc<Queue>,
    census: Ledger,
    counters: Arc<Counters>,
    /// Why the last refused step was refused: what follows it in its run is refused for the same reason.
    refusal: Option<Refused>,
}

impl Thread {
    fn run(mut self) {
        while let Some(mut batch) = self.queue.next() {
            let committed = match batch.pop() {
                Some(Work::Purge { after, now, done }) => self.purge(after.as_ref(), now, done),
                last => {
                    batch.extend(last);
                    self.commit(batch)
                }
            };
            if let Err(why) = committed {
                let mut state = self.queue.lock();
                state.closed = true;
                let left: Vec<Work> = state.works.drain(..).collect();
                drop(state);
                tell_all(left, &Err(Refused::Failed(why)));
            }
        }
    }

    /// Commits works together, or one by one if the store refuses one of them for itself. An error is fatal.
    fn commit(&mut self, works: Vec<Work>) -> Result<(), String> {
        let (works, orphans): (Vec<Work>, Vec<Work>) = self.follow_their_heads(works);
        if !orphans.is_empty() {
            let why = self.refusal.clone();
            tell_all(
                orphans,
                &Err(why.unwrap_or_else(|| Refused::Invalid("a step before it is missing".into()))),
            );
        }
        if works.is_empty() {
            return Ok(());
        }
        let mut batch = batch_of(&works);
        match self.census.commit(&*self.store, &works, &mut batch, &self.counters) {
            Ok(heads) => {
                move_heads(&works, &batch, &heads);
                tell_all(works, &Ok(()));
                Ok(())
            }
            Err(StoreError::Full { .. }) if breaks(Breakage::AcknowledgeOnFullDisk) => {
                tell_all(works, &Ok(()));
                Ok(())
            }
            // What stops a run needs less room than what comes with it.
            Err(StoreError::Full { .. }) if works.len() > 1 => self.one_by_one(works),
            Err(full @ StoreError::Full { .. }) => {
                self.counters.write_failed(WriteFailure::Full);
                self.refuse(works, Refused::Full(full.to_string()));
                Ok(())
            }
            // What cannot be read is found before anything is written.
            Err(
                error @ (StoreError::Stale { .. }
                | StoreError::Invalid { .. }
                | StoreError::Damaged { .. }
                | StoreError::Newer { .. }),
            ) => {
                if works.len() == 1 {
                    self.counters.write_failed(WriteFailure::Refused);
                    self.refuse(works, Refused::Invalid(error.to_string()));
                    return Ok(());
                }
                self.one_by_one(works)
            }
            Err(_) if breaks(Breakage::AcknowledgeFailedSync) => {
                tell_all(works, &Ok(()));
                Ok(())
            }
            Err(error) => {
                let why = self.fail(&error);
                tell_all(works, &Err(Refused::Failed(why.clone())));
                Err(why)
            }
        }
    }

    /// Commits works alone, and tells all that come after one at which the disk failed. An error is fatal.
    fn one_by_one(&mut self, works: Vec<Work>) -> Result<(), String> {
        let mut works = works.into_iter();
        while let Some(work) = works.next() {
            if let Err(why) = self.commit(vec![work]) {
                tell_all(works.collect(), &Err(Refused::Failed(why.clone())));
                return Err(why);
            }
        }
        Ok(())
    }

    /// Takes note that the disk failed: whoever is told of it finds the engine failed. Returns why.
    fn fail(&self, error: &StoreError) -> String {
        self.counters.write_failed(WriteFailure::Failed);
        let why = error.to_string();
        self.queue.failed.send_replace(Some(why.clone()));
        why
    }

    /// Takes a portion of what deleted runs left away. An error is fatal.
    fn purge(
        &self,
        after: Option<&RunId>,
        now: Millis,
        done: oneshot::Sender<Result<Option<Purge>, Refused>>,
    ) -> Result<(), String> {
        let (result, fatal) = match self.store.purge(after, now) {
            Ok(purge) => (Ok(purge), Ok(())),
            Err(full @ StoreError::Full { .. }) => (Err(Refused::Full(full.to_string())), Ok(())),
            Err(error @ StoreError::Disk { .. }) => {
                let why = self.fail(&error);
                (Err(Refused::Failed(why.clone())), Err(why))
            }
            Err(error) => (Err(Refused::Invalid(error.to_string())), Ok(())),
        };
        // Whoever asked may be gone.
        let _ = done.send(result);
        fatal
    }

    fn refuse(&mut self, works: Vec<Work>, why: Refused) {
        self.refusal = Some(why.clone());
        tell_all(works, &Err(why));
    }

    /// Parts works from steps whose run stands elsewhere, because a step before them was refused.
    fn follow_their_heads(&self, works: Vec<Work>) -> (Vec<Work>, Vec<Work>) {
        let mut ends = BTreeMap::<RunId, Seq>::new();
        works.into_iter().partition(|work| {
            let Work::Step(step) = work else { return true };
            let before = ends.get(&step.write.run).copied().unwrap_or_else(|| lock(&step.head).seq);
            let first = step.write.events.first().map(|event| event.n);
            let follows = first == Some(before.next());
            if let (true, Some(last)) = (follows, step.write.events.last()) {
                ends.insert(step.write.run.clone(), last.n);
            }
            follows
        })
    }
}

/// Tells everybody, each shard once for consecutive steps.
fn tell_all(works: Vec<Work>, result: &Result<(), Refused>) {
    let mut open: Vec<(mpsc::UnboundedSender<Done>, Vec<u64>)> = Vec::new();
    for work in works {
        match work.ticket() {
            None => work.tell(result.clone()),
            Some((done, ticket)) => match open.iter_mut().find(|(known, _)| known.same_channel(done)) {
                Some((_, tickets)) => tickets.push(ticket),
                None => open.push((done.clone(), vec![ticket])),
            },
        }
    }
    for (done, tickets) in open {
        let _ = done.send(Done { tickets, result: result.clone() });
    }
}

/// Looks at the head of a run.
fn lock(head: &HeadCell) -> MutexGuard<'_, Head> {
    head.lock().unwrap_or_else(PoisonError::into_inner)
}
