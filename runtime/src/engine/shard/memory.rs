//! Runs come into memory when they are needed and leave it when nobody needs them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use outlast_kernel::Json;
use outlast_kernel::ids::RunId;
use outlast_kernel::input::Refusal;
use outlast_kernel::operation::Phase;
use outlast_protocol::{ApiError, Code};
use outlast_store::breakage::{Breakage, breaks};
use tokio::sync::oneshot;

use super::Shard;
use crate::engine::adoption::Begun;
use crate::engine::committer::Work;
use crate::engine::dispatch::WorkId;
use crate::engine::draft::Failure;
use crate::engine::errors;
use crate::engine::live::{Changes, Live, activities};
use crate::engine::message::{Gone, Message, Reply};
use crate::engine::parcel;

impl Shard {
    /// Brings a run into memory.
    ///
    /// # Errors
    /// [`Code::NotFound`], or [`Code::Internal`] if it cannot be read.
    pub(super) fn hydrate(&mut self, run: &RunId) -> Result<&mut Live, ApiError> {
        self.used += 1;
        let used = self.used;
        self.ctx.quarantine.refuse(run)?;
        self.refuse_if_deleting(run)?;
        if let Some(why) = self.broken.get(run) {
            return Err(ApiError::new(Code::Internal, format!("run {run} is blocked: {why}")).of_run(run));
        }
        if !self.live.contains_key(run) {
            let Some(live) = Live::read(&self.ctx, run)? else {
                return Err(errors::no_run(run));
            };
            self.ctx.hydrated.read.fetch_add(1, Ordering::Relaxed);
            self.live.insert(run.clone(), live);
            self.put_to_work(run);
        }
        let Some(live) = self.live.get_mut(run) else {
            unreachable!("a run that was just read is in memory")
        };
        live.used = used;
        Ok(live)
    }

    /// Tells the dispatch what a run that was just read has open, and the timers when it is due.
    fn put_to_work(&mut self, run: &RunId) {
        let now = self.ctx.clock.now();
        // First of all, before anything is concluded from what nobody has in hand.
        for Gone { work, attempt, why } in self.unkept.remove(run).unwrap_or_default() {
            self.todo.push_back(match why {
                Some(why) => Message::Lost(work, attempt, why),
                None => Message::Void(work, attempt),
            });
        }
        let Some(live) = self.live.get_mut(run) else { return };
        if let Some(due) = live.index.due {
            self.timers.note(due, run);
        }
        let opened_at = self.ctx.opened_at;
        let Changes { offered, settling, news, closed: _ } = live.changes(now);
        for (work, lane) in offered {
            let old = live.state().operation(work.op).is_some_and(|op| op.opened_at < opened_at);
            self.ctx.dispatch.offer(work, lane, old);
        }
        for op in news {
            match parcel::of(live.state(), op) {
                Some(parcel) => self.ctx.post.send(parcel.to.clone(), Message::News(Box::new(parcel))),
                None => tracing::error!(run = %run, %op, "news for another run cannot be told"),
            }
        }
        self.judge_begun(run);
        self.trust(run);
        for (work, attempt) in settling {
            self.settle(&work, attempt, now);
        }
    }

    /// Judges attempts that were begun: somebody has them, may come back with them, or never will.
    pub(super) fn judge_begun(&mut self, run: &RunId) {
        let Some(live) = self.live.get(run) else { return };
        for (op, activity) in activities(live.state()) {
            let Phase::Begun { worker } = &activity.phase else { continue };
            let work = WorkId { run: run.clone(), op };
            match self.ctx.dispatch.begun(&work, activity.attempt, worker) {
                Begun::Wait => {}
                Begun::Lost if breaks(Breakage::RunBegunAgain) => {
                    self.todo.push_back(Message::Void(work, activity.attempt));
                }
                Begun::Void if !self.ctx.quarantine.doubts(run) => {
                    self.todo.push_back(Message::Void(work, activity.attempt));
                }
                Begun::Void | Begun::Lost => {
                    let why = outlast_kernel::event::LostWhy::Restart;
                    self.todo.push_back(Message::Lost(work, activity.attempt, why));
                }
            }
        }
    }

    /// Ends the doubt about a run that was just read, if nothing of it is begun: no worker's word is needed any more.
    fn trust(&mut self, run: &RunId) {
        let Some(live) = self.live.get(run) else { return };
        let is_begun = activities(live.state()).any(|(_, it)| matches!(it.phase, Phase::Begun { .. }));
        if !is_begun && let Some(put) = self.ctx.quarantine.trust(run) {
            // If the removal is lost, the next epoch doubts for nothing, which harms nobody.
            let (done, _) = oneshot::channel();
            self.ctx.committer.queue(Work::Puts { puts: vec![put], done });
        }
    }

    /// Puts a run back to work after a restart.
    pub(super) fn recover(&mut self, run: &RunId, reply: Reply<()>) {
        let known = self.live.contains_key(run);
        let result = self.hydrate(run).map(|_| ());
        if let Err(error) = &result {
            self.ctx.counters.recovery_failures.count();
            tracing::error!(run = %run, %error, "a run cannot be put back to work");
        }
        if result.is_ok() && !known {
            self.due(run, self.ctx.clock.now());
        }
        // Recovery may have been given up meanwhile.
        let _ = reply.send(result);
    }

    /// Blocks a run that the kernel cannot go on with; the others go on.
    pub(super) fn break_run(&mut self, run: &RunId, why: &str) -> ApiError {
        self.ctx.counters.faults.count();
        tracing::error!(run = %run, why, "a run is blocked by a fault of the kernel");
        self.live.remove(run);
        self.broken.insert(run.clone(), why.to_owned());
        ApiError::new(Code::Internal, format!("run {run} is blocked: {why}")).of_run(run)
    }

    /// Turns a failure into what the caller is told; a broken run is blocked.
    pub(super) fn failure(&mut self, run: &RunId, failure: Failure) -> ApiError {
        match failure {
            Failure::Refused(refusal) => {
                if matches!(refusal, Refusal::MailboxFull { .. }) {
                    self.ctx.counters.mailbox_refusals.count();
                }
                errors::refusal(run, &refusal)
            }
            Failure::Broken(why) => self.break_run(run, &why),
        }
    }

    /// Returns the arguments that a run was started with.
    ///
    /// # Errors
    /// [`Code::Internal`] if its history cannot be read.
    pub(super) fn started_with(&self, run: &RunId) -> Result<Json, ApiError> {
        let store = Arc::clone(&self.ctx.store);
        let first = store.history(run, outlast_kernel::ids::Seq(0), 1).map_err(|e| errors::store(&e))?;
        match first.into_iter().next().map(|event| event.kind) {
            Some(outlast_kernel::event::EventKind::Started(started)) => Ok(started.input),
            Some(_) | None => Err(errors::no_run(run)),
        }
    }
}
