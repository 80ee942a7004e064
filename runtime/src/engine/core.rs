//! The engine's tasks beside its shards: leases, recovery, and the durable records of worker sessions.
//!
//! Leaves decisions to the shards. Invariant: every task sits in the engine's `JoinSet` and ends with it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outlast_kernel::event::LostWhy;
use outlast_kernel::ids::RunId;
use outlast_protocol::ApiError;
use outlast_store::breakage::{Breakage, breaks};
use outlast_store::{Put, Table};
use tokio::sync::{broadcast, mpsc, oneshot, watch};

use super::adoption::Freed;
use super::committer::{Refused, Work};
use super::context::{Context, Shards};
use super::dispatch::Due;
use super::environments::LastProfile;
use super::errors;
use super::message::{Message, Reply};
use super::session::Record;
use crate::limits;

/// What the engine's calls and tasks share.
pub(crate) struct Core {
    pub(crate) ctx: Arc<Context>,
    pub(crate) shards: Shards,
    /// The session records that are durable, or on their way, by worker.
    records: Mutex<BTreeMap<String, Record>>,
    /// What made this epoch and found no room: durable before the first worker is taken in.
    owed: Mutex<Vec<Put>>,
    /// Whether runs of the last epoch are still being put back to work.
    pub(crate) recovering: watch::Sender<bool>,
    /// The environment of the run that started last.
    pub(crate) last_profile: LastProfile,
    /// Tells which workers were given up, by boot id.
    pub(crate) given_up: broadcast::Sender<String>,
}

impl Core {
    /// Begins with the session records of the last epoch.
    pub(crate) fn new(ctx: Arc<Context>, shards: Shards, records: &[Record], owed: Vec<Put>) -> Core {
        let records = records.iter().map(|record| (record.worker.clone(), record.clone())).collect();
        Core {
            ctx,
            shards,
            records: Mutex::new(records),
            owed: Mutex::new(owed),
            recovering: watch::Sender::new(true),
            last_profile: LastProfile::default(),
            given_up: broadcast::Sender::new(limits::GIVEN_UP_KEPT),
        }
    }

    /// Asks a shard and waits for its answer.
    ///
    /// # Errors
    /// What the shard says; [`outlast_protocol::Code::NotReady`] if the engine is stopping.
    pub(crate) async fn ask<T>(
        &self,
        run: &RunId,
        message: impl FnOnce(Reply<T>) -> Message,
    ) -> Result<T, ApiError> {
        let (reply, answer) = oneshot::channel();
        self.shards.send(run, message(reply)).await?;
        answer.await.unwrap_or_else(|_| Err(errors::stopping()))
    }

    /// Makes a session's record durable, if it is not.
    ///
    /// # Errors
    /// [`Refused`].
    pub(crate) async fn keep_record(&self, record: &Record) -> Result<(), Refused> {
        let done = {
            let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
            // A worker that comes back unchanged needs no write, and so no room on a full disk.
            if records.get(&record.worker) == Some(record) && self.owed().is_empty() {
                return Ok(());
            }
            records.insert(record.worker.clone(), record.clone());
            let value = serde_json::to_vec(record).map_err(|e| Refused::Invalid(e.to_string()))?;
            self.queue_record(&record.worker, Some(value))
        };
        let kept = done.await.unwrap_or_else(|_| Err(Refused::Failed("the committer is gone".into())));
        if kept.is_ok() {
            self.owed().clear();
        } else {
            let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
            if records.get(&record.worker) == Some(record) {
                records.remove(&record.worker);
            }
        }
        kept
    }

    /// Removes a session's record, unless a later session of the worker has taken its place.
    pub(crate) fn drop_record(&self, worker: &str, boot: &str) {
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        if records.get(worker).is_some_and(|known| known.boot == boot) {
            records.remove(worker);
            // If the removal is lost, the next epoch waits for this worker in vain, for a moment.
            drop(self.queue_record(worker, None));
        }
    }

    /// Makes a put durable, and one of the same key that may be owed never.
    ///
    /// # Errors
    /// [`Refused`].
    pub(crate) async fn put_instead(&self, put: Put) -> Result<(), Refused> {
        let (done, result) = oneshot::channel();
        {
            let mut owed = self.owed();
            owed.retain(|owed| (owed.table, &owed.key) != (put.table, &put.key));
            self.ctx.committer.queue(Work::Puts { puts: vec![put], done });
        }
        result.await.unwrap_or_else(|_| Err(Refused::Failed("the committer is gone".into())))
    }

    fn owed(&self) -> MutexGuard<'_, Vec<Put>> {
        self.owed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn queue_record(&self, worker: &str, value: Option<Vec<u8>>) -> oneshot::Receiver<Result<(), Refused>> {
        let (done, result) = oneshot::channel();
        // Under one lock with its queueing: nothing that is owed may come after what was put in its place.
        let owed = self.owed();
        let mut puts = owed.clone();
        puts.push(Put { table: Table::Session, key: worker.as_bytes().to_vec(), value });
        self.ctx.committer.queue(Work::Puts { puts, done });
        result
    }

    /// Does what follows from the end of waits and leases.
    pub(crate) async fn follow(&self, due: Due) {
        for (worker, boot) in &due.ended {
            self.drop_record(worker, boot);
            // Nobody may be there who wants to know.
            let _ = self.given_up.send(boot.clone());
        }
        for (work, attempt, why) in due.lost {
            self.tell(&work.run.clone(), Message::Lost(work, attempt, why)).await;
        }
        self.follow_freed(due.freed).await;
    }

    /// Does what need not wait for workers of the last epoch any more.
    pub(crate) async fn follow_freed(&self, freed: Freed) {
        for (work, lane) in freed.offer {
            self.ctx.dispatch.offer(work, lane, false);
        }
        for (work, attempt) in freed.void {
            let message = if self.ctx.quarantine.doubts(&work.run) {
                Message::Lost(work.clone(), attempt, LostWhy::Restart)
            } else {
                Message::Void(work.clone(), attempt)
            };
            self.tell(&work.run, message).await;
        }
        for (work, attempt) in freed.lost {
            self.tell(&work.run.clone(), Message::Lost(work, attempt, LostWhy::Restart)).await;
        }
    }

    /// Tells a shard something; an engine that is stopping needs no word.
    pub(crate) async fn tell(&self, run: &RunId, message: Message) {
        let _ = self.shards.send(run, message).await;
    }

    /// Carries what shards tell each other, for ever.
    pub(crate) async fn carry(self: Arc<Core>, mut letters: mpsc::UnboundedReceiver<(RunId, Message)>) {
        while let Some((run, message)) = letters.recv().await {
            self.tell(&run, message).await;
        }
    }

    /// Watches leases and deadlines of tasks, for ever.
    pub(crate) async fn watch_deadlines(self: Arc<Core>) {
        let ctx = &self.ctx;
        loop {
            let earlier = ctx.dispatch.deadlines.notified();
            match ctx.dispatch.next_tick(ctx.clock.now()) {
                Some(next) => tokio::select! {
                    () = ctx.clock.sleep_until(next) => {}
                    () = earlier => continue,
                },
                None => {
                    earlier.await;
                    continue;
                }
            }
            let due = ctx.dispatch.tick(ctx.clock.now());
            self.follow(due).await;
        }
    }

    /// Puts the runs that have work back to work, page by page; new work goes on beside it.
    pub(crate) async fn recover(self: Arc<Core>) {
        let mut after: Option<RunId> = None;
        loop {
            let store = Arc::clone(&self.ctx.store);
            let from = after.clone();
            let read = move || store.ready(from.as_ref(), limits::RECOVERY_PAGE);
            let page = match tokio::task::spawn_blocking(read).await {
                Ok(Ok(page)) => page,
                Ok(Err(error)) => {
                    tracing::error!(%error, "runs with work cannot be read; trying again");
                    let again = self.ctx.clock.now().plus(limits::STORE_RETRY_MS);
                    self.ctx.clock.sleep_until(again).await;
                    continue;
                }
                Err(_) => return,
            };
            let Some(last) = page.last().filter(|_| !breaks(Breakage::SkipRecovery)) else { break };
            after = Some(last.clone());
            let mut answers = Vec::new();
            for run in page {
                let (reply, answer) = oneshot::channel();
                if self.shards.send(&run, Message::Recover(run.clone(), reply)).await.is_err() {
                    return;
                }
                answers.push(answer);
            }
            for answer in answers {
                // The shard logs what it cannot put back; the others go on.
                let _ = answer.await;
            }
        }
        self.recovering.send_replace(false);
    }
}
