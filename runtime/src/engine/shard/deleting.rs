//! Deleting runs that have ended.
//!
//! Leaves taking away what they left to the store. Invariant: a run is deleted only when nothing of it is on its way to the disk and
//! nobody has to hear of its end; from then on until that is durable, nothing else is done with it.

use outlast_kernel::ids::RunId;
use outlast_protocol::{ApiError, Code};
use outlast_store::{Delete, Put, Status};

use super::Shard;
use super::starting::alias;
use crate::engine::errors;
use crate::engine::message::{Consequence, Reply};

impl Shard {
    /// Deletes a run as soon as nothing of it is on its way.
    pub(super) fn delete(&mut self, run: &RunId, reply: Reply<()>) {
        // What waited with this one for an earlier step may have been followed by another one.
        let Some(Consequence::Delete(reply)) = self.outbox.wait(run, Consequence::Delete(reply)) else {
            return;
        };
        match self.may_be_deleted(run) {
            Ok(delete) => {
                self.deleting.insert(run.clone());
                let mut puts: Vec<Put> =
                    alias(run).into_iter().map(|put| Put { value: None, ..put }).collect();
                puts.extend(self.ctx.quarantine.trust(run));
                self.outbox.delete(delete, puts, vec![Consequence::Deleted(reply)]);
            }
            // Whoever asked may be gone.
            Err(error) => drop(reply.send(Err(error))),
        }
    }

    fn may_be_deleted(&self, run: &RunId) -> Result<Delete, ApiError> {
        self.ctx.quarantine.refuse(run)?;
        let told = |e| errors::store(&e).of_run(run);
        let store = &self.ctx.store;
        let (head, index) = store.head(run).map_err(told)?.ok_or_else(|| errors::no_run(run))?;
        let status = store.summary(run).map_err(told)?.map(|summary| summary.status);
        if status != Some(Status::Ended) {
            let message = format!("run {run} has not ended, so it is not deleted");
            let hint = format!("`outlast cancel {run}` or `outlast terminate {run}` ends it");
            return Err(ApiError::new(Code::Conflict, message).of_run(run).hint(hint));
        }
        if index.ready {
            let message = format!("run {run} has ended, but a run that has to hear of it does not know yet");
            return Err(ApiError::new(Code::Conflict, message).of_run(run).hint("try again in a moment"));
        }
        Ok(Delete { run: run.clone(), before: head })
    }

    /// Forgets a run whose deletion is durable.
    pub(super) fn deleted(&mut self, run: &RunId, reply: Reply<()>) {
        self.deleting.remove(run);
        self.live.remove(run);
        self.broken.remove(run);
        self.awaited.remove(run);
        self.revive.remove(run);
        self.reports.forget(run);
        self.watchers.forget(run);
        self.ctx.walks.forget(run);
        self.ctx.purge.notify_one();
        tracing::info!(run = %run, "a run is deleted");
        drop(reply.send(Ok(())));
    }

    /// Says that a deletion is not durable.
    pub(super) fn not_deleted(&mut self, run: &RunId, reply: Reply<()>, error: ApiError) {
        self.deleting.remove(run);
        drop(reply.send(Err(error)));
    }

    /// Refuses whatever is asked of a run that is about to be gone.
    ///
    /// # Errors
    /// [`Code::Overloaded`]: the next answer may be another one.
    pub(super) fn refuse_if_deleting(&self, run: &RunId) -> Result<(), ApiError> {
        if self.deleting.contains(run) { Err(being_deleted(run)) } else { Ok(()) }
    }

    /// Refuses to begin a run under the id of one that was deleted, while something is left of that.
    ///
    /// # Errors
    /// [`Code::Conflict`] if forks use its events, [`Code::Overloaded`] if it is being taken away.
    pub(super) fn refuse_remains(&self, run: &RunId) -> Result<(), ApiError> {
        let told = |e| errors::store(&e).of_run(run);
        let store = &self.ctx.store;
        if store.remains(run).map_err(told)?.is_none() {
            return Ok(());
        }
        if store.forks(run, None, 1).map_err(told)?.is_empty() {
            return Err(being_deleted(run));
        }
        let message = format!("run {run} was deleted, but runs that were forked from it are there");
        let hint = "give another id, or delete the forks first";
        Err(ApiError::new(Code::Conflict, message).of_run(run).hint(hint))
    }
}

fn being_deleted(run: &RunId) -> ApiError {
    ApiError::new(Code::Overloaded, format!("run {run} is being deleted"))
        .of_run(run)
        .hint("try again in a moment")
}
