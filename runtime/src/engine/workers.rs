//! The calls of workers: register, poll, report, progress, control.
//!
//! Leaves sessions and queues to the dispatch, judging to the shards. Invariant: a task that did not reach its worker is put back, or
//! voided if it was begun; a call that is dropped half-way leaves nothing behind.

use std::collections::BTreeSet;

use outlast_kernel::Json;
use outlast_kernel::event::{Failure, LostWhy, Tokens};
use outlast_kernel::ids::RunId;
use outlast_kernel::input::{Report, Stopped};
use outlast_kernel::operation::Class;
use outlast_kernel::text::parse_duration;
use outlast_protocol::worker::{
    self, Control, OutcomeKind, Polled, Receipt, ReceiptStatus, Registered, Reported, StoppedWhy, Task,
    TaskError,
};
use outlast_protocol::{ApiError, Code};
use outlast_store::breakage::{Breakage, breaks};
use tokio::sync::oneshot;

use super::core::Core;
use super::dispatch::{Call, WorkId};
use super::message::{self, Listed, Message, Taker};
use super::session::Record;
use super::token::Claim;
use super::{Engine, errors};
use crate::limits;

impl Engine {
    /// Takes in a worker: a session begins, and what it still holds is judged.
    ///
    /// # Errors
    /// [`Code::Invalid`], [`Code::NotReady`], [`Code::DiskFull`].
    pub async fn register(&self, request: worker::Register) -> Result<Registered, ApiError> {
        let core = &self.core;
        let ctx = &core.ctx;
        let record = Record::new(&request)?;
        check_items(request.holding.len())?;
        let session = ctx.random.id(ctx.clock.now());
        let (worker, boot) = (record.worker.clone(), record.boot.clone());
        let taker = Taker { session: session.clone(), worker, boot };
        let gone = ctx.dispatch.register(&session, record.clone(), request.concurrency, ctx.clock.now());
        for (work, attempt) in gone {
            core.tell(&work.run.clone(), Message::Lost(work, attempt, LostWhy::WorkerGone)).await;
        }
        let Judged { keep, drop, doubted } = judge_held(core, request.holding, &taker).await?;
        // Before the worker throws away what it listed: that it comes back without it then says nothing.
        let doubts = ctx.quarantine.doubt(&doubted);
        if !doubts.is_empty() {
            ctx.committer.put(doubts).await.map_err(|refused| errors::refused(&refused))?;
            ctx.quarantine.doubted(doubted);
        }
        // What was handed out from now on must be known to the next epoch.
        core.keep_record(&record).await.map_err(|refused| errors::refused(&refused))?;
        let (never_arrived, freed) = ctx.dispatch.registered(&session, &keep, ctx.clock.now());
        for (work, task) in never_arrived {
            if task.lane.promise == 0 {
                core.tell(&work.run.clone(), Message::Void(work, task.attempt)).await;
            } else {
                ctx.dispatch.put_back(work, task.lane);
            }
        }
        core.follow_freed(freed).await;
        Ok(Registered { session, lease_ms: ctx.lease_ms, keep, drop })
    }

    /// Gives a worker tasks, waiting for the first one.
    ///
    /// # Errors
    /// [`Code::NotFound`] if the session is not known (any more): register again.
    pub async fn poll(&self, request: worker::Poll) -> Result<Polled, ApiError> {
        let ctx = &self.core.ctx;
        let session = &request.session;
        if request.leaving {
            if let Some(record) = ctx.dispatch.leave(session).map_err(|_| errors::no_session())? {
                self.core.drop_record(&record.worker, &record.boot);
            }
            return Ok(Polled::default());
        }
        let record = ctx.dispatch.renew(session, ctx.clock.now()).map_err(|_| errors::no_session())?;
        let taker = Taker { session: session.clone(), worker: record.worker, boot: record.boot };
        let until = ctx.clock.now().plus(request.wait_ms.min(limits::WAIT_MS_MAX));
        let max = (request.max as usize).min(limits::POLL_TASKS_MAX);
        loop {
            let wake = ctx.dispatch.wake(session, Call::Poll).map_err(|_| errors::no_session())?;
            let mut woken = std::pin::pin!(wake.notified());
            woken.as_mut().enable();
            let taken = ctx.dispatch.take(session, max, ctx.clock.now()).map_err(|_| errors::no_session())?;
            if !taken.is_empty() {
                let tasks = hand_out(&self.core, &taker, taken).await;
                if !tasks.is_empty() {
                    return Ok(Polled { tasks });
                }
                // An engine that stops, or whose disk failed, gives no more tasks, however often it is asked.
                let has_failed = ctx.committer.failed().borrow().is_some();
                if has_failed || self.core.shards.all().iter().any(tokio::sync::mpsc::Sender::is_closed) {
                    return Err(errors::stopping());
                }
                tokio::task::yield_now().await;
                continue;
            }
            tokio::select! {
                () = woken => {}
                () = ctx.clock.sleep_until(until) => return Ok(Polled::default()),
            }
            if !ctx.dispatch.stays(session) {
                return Ok(Polled::default());
            }
        }
    }

    /// Takes results.
    ///
    /// # Errors
    /// [`Code::NotFound`] if the session is not known (any more): register again.
    pub async fn report(&self, request: worker::Report) -> Result<Reported, ApiError> {
        let ctx = &self.core.ctx;
        check_items(request.results.len())?;
        ctx.dispatch.renew(&request.session, ctx.clock.now()).map_err(|_| errors::no_session())?;
        let mut answers = Vec::new();
        for result in request.results {
            let Some(claim) = ctx.key.verify(&result.token) else {
                answers.push((result.token, None));
                continue;
            };
            let digest = digest(&result.kind);
            let (reply, answer) = oneshot::channel();
            let run = claim.run.clone();
            let report = self.why_it_stopped(&claim, report(result.kind));
            self.count_tokens(&claim, &report);
            let reported = message::Reported { claim, report, digest };
            self.core.shards.send(&run, Message::Report(Box::new(reported), reply)).await?;
            answers.push((result.token, Some(answer)));
        }
        let mut results = Vec::new();
        for (token, answer) in answers {
            let status = match answer {
                None => {
                    ctx.counters.unknown_token();
                    ReceiptStatus::UnknownToken
                }
                Some(answer) => judged(answer.await),
            };
            results.push(Receipt { token, status });
        }
        Ok(Reported { results })
    }

    /// Puts right why an attempt stopped. Its worker knows only that it was told to; that its time was over was judged here, and it
    /// must count as that: an attempt that is cancelled otherwise is repeated at once.
    fn why_it_stopped(&self, claim: &Claim, report: Report) -> Report {
        let work = WorkId { run: claim.run.clone(), op: claim.op };
        match report {
            Report::Stopped(_) if self.core.ctx.dispatch.is_over_time(&work, claim.attempt) => {
                Report::Stopped(Stopped::Timeout)
            }
            Report::Done { .. } | Report::Failed { .. } | Report::Handle(_) | Report::Stopped(_) => report,
        }
    }

    /// Puts right what the rate of a queue counts for an attempt. One that tells nothing took what was thought.
    fn count_tokens(&self, claim: &Claim, report: &Report) {
        let Tokens { input, output } = match report {
            Report::Done { tokens, .. } | Report::Failed { tokens, .. } => *tokens,
            Report::Handle(_) | Report::Stopped(_) => return,
        };
        let work = WorkId { run: claim.run.clone(), op: claim.op };
        match input.saturating_add(output) {
            0 => {}
            tokens => self.core.ctx.dispatch.spent(&work, claim.attempt, tokens),
        }
    }

    /// Takes signs of life and partial output. A task in hand that is left out for a whole lease counts as lost.
    ///
    /// # Errors
    /// [`Code::NotFound`] if the session is not known (any more): register again.
    pub async fn progress(&self, request: worker::Progress) -> Result<(), ApiError> {
        let ctx = &self.core.ctx;
        check_items(request.tasks.len())?;
        let mut named = Vec::new();
        let mut said = Vec::new();
        for task in request.tasks {
            let Some(Claim { run, op, attempt, .. }) = ctx.key.verify(&task.token) else { continue };
            let work = WorkId { run, op };
            named.push((work.clone(), task.token));
            if task.text.is_some() || task.percent.is_some() {
                let (text, percent) = (task.text.unwrap_or_default(), task.percent);
                said.push(message::Partial { work, attempt, offset: task.offset, text, percent });
            }
        }
        let with_it = ctx.dispatch.named(&request.session, &named, ctx.clock.now());
        let with_it = with_it.map_err(|_| errors::no_session())?;
        for partial in said.into_iter().filter(|partial| with_it.contains(&partial.work)) {
            self.core.tell(&partial.work.run.clone(), Message::Partial(Box::new(partial))).await;
        }
        Ok(())
    }

    /// Waits for attempts that a worker must stop.
    ///
    /// # Errors
    /// [`Code::NotFound`] if the session is not known (any more): register again.
    pub async fn control(&self, session: &str, wait_ms: u64) -> Result<Control, ApiError> {
        let ctx = &self.core.ctx;
        let until = ctx.clock.now().plus(wait_ms.min(limits::WAIT_MS_MAX));
        let stops = |all| ctx.dispatch.stops(session, ctx.clock.now(), all).map_err(|_| errors::no_session());
        loop {
            let wake = ctx.dispatch.wake(session, Call::Control).map_err(|_| errors::no_session())?;
            let mut woken = std::pin::pin!(wake.notified());
            woken.as_mut().enable();
            let cancel = stops(false)?;
            if !cancel.is_empty() {
                return Ok(Control { cancel });
            }
            tokio::select! {
                () = woken => {}
                () = ctx.clock.sleep_until(until) => return Ok(Control { cancel: stops(true)? }),
            }
        }
    }

    /// Takes note that a worker's process ended: its tasks are lost at once.
    pub async fn worker_gone(&self, boot: &str) {
        if breaks(Breakage::KeepTasksOfTheDead) {
            return;
        }
        let left = self.core.ctx.dispatch.gone(boot);
        for worker in left.workers {
            self.core.drop_record(&worker, boot);
        }
        for (work, attempt) in left.tasks {
            self.core.tell(&work.run.clone(), Message::Lost(work, attempt, LostWhy::WorkerGone)).await;
        }
        self.core.follow_freed(left.freed).await;
    }
}

/// What became of the tokens that a worker listed.
#[derive(Default)]
struct Judged {
    keep: Vec<String>,
    drop: Vec<String>,
    /// Runs with begun work that the worker is told to drop although it may be wanted.
    doubted: BTreeSet<RunId>,
}

/// Asks the shards about the tokens that a worker lists.
async fn judge_held(core: &Core, holding: Vec<String>, taker: &Taker) -> Result<Judged, ApiError> {
    let mut judged = Judged::default();
    for token in holding {
        let Some(claim) = core.ctx.key.verify(&token).filter(|claim| claim.boot == taker.boot) else {
            judged.drop.push(token);
            continue;
        };
        let (run, class) = (claim.run.clone(), claim.class);
        let adopt = |reply| Message::Adopt(claim, token.clone(), taker.clone(), reply);
        match core.ask(&run, adopt).await? {
            Listed::Kept => judged.keep.push(token),
            Listed::Dropped => judged.drop.push(token),
            Listed::Unseen => {
                judged.drop.push(token);
                if class == Class::Once {
                    judged.doubted.insert(run);
                }
            }
        }
    }
    Ok(judged)
}

/// Asks the shards for the tasks of reserved work.
async fn hand_out(core: &Core, taker: &Taker, taken: Vec<WorkId>) -> Vec<Task> {
    let mut handed = Handed { core, reserved: taken, tasks: Vec::new() };
    let mut answers = Vec::new();
    while let Some(work) = handed.reserved.first().cloned() {
        let (reply, answer) = oneshot::channel();
        let message = Message::HandOut(work.clone(), taker.clone(), reply);
        if core.shards.send(&work.run, message).await.is_err() {
            break;
        }
        handed.reserved.remove(0);
        answers.push((work, answer));
    }
    for (work, answer) in answers {
        if let Ok(Ok(Some(task))) = answer.await {
            handed.tasks.push((work, task));
        }
    }
    std::mem::take(&mut handed.tasks).into_iter().map(|(_, task)| task).collect()
}

/// What a poll took so far: put back if the poll is dropped before it could answer.
struct Handed<'a> {
    core: &'a Core,
    /// Reserved, its shard was not asked yet.
    reserved: Vec<WorkId>,
    /// In hand.
    tasks: Vec<(WorkId, Task)>,
}

impl Drop for Handed<'_> {
    fn drop(&mut self) {
        let dispatch = &self.core.ctx.dispatch;
        for work in self.reserved.drain(..) {
            dispatch.uncome(&work, true);
        }
        for (work, task) in self.tasks.drain(..) {
            let Some(claim) = self.core.ctx.key.verify(&task.token) else { continue };
            let Some(in_hand) = dispatch.held_by(&work) else { continue };
            if !dispatch.unhand(&work, claim.attempt) {
                continue;
            }
            if claim.class == Class::Once {
                // If the shard has no room for this word, the attempt stays begun and in doubt, which is true as well.
                self.core.shards.try_send(&work.run.clone(), Message::Void(work, claim.attempt));
            } else {
                dispatch.put_back(work, in_hand.lane);
            }
        }
    }
}

fn judged(answer: Result<Result<ReceiptStatus, ApiError>, oneshot::error::RecvError>) -> ReceiptStatus {
    match answer {
        Ok(Ok(status)) => status,
        Ok(Err(error)) if error.code == Code::NotFound => ReceiptStatus::Superseded,
        Ok(Err(_)) | Err(_) => ReceiptStatus::Retry,
    }
}

fn check_items(count: usize) -> Result<(), ApiError> {
    if count > limits::CALL_ITEMS_MAX {
        let message = format!("{count} items in one call, {} at most", limits::CALL_ITEMS_MAX);
        return Err(ApiError::new(Code::TooLarge, message));
    }
    Ok(())
}

/// Returns a hash of what was said, to know it again.
fn digest(kind: &OutcomeKind) -> [u8; 32] {
    let said = serde_json::to_value(kind).unwrap_or_default();
    *blake3::hash(outlast_kernel::json::canonical_text(&said).as_bytes()).as_bytes()
}

fn report(kind: OutcomeKind) -> Report {
    match kind {
        OutcomeKind::Done { value, cost, usage } => {
            Report::Done { value, cost, tokens: tokens(usage.as_ref()) }
        }
        OutcomeKind::Failed { error, cost, usage } => {
            Report::Failed { error: failure(error), cost, tokens: tokens(usage.as_ref()) }
        }
        OutcomeKind::Handle { handle } => Report::Handle(handle),
        OutcomeKind::Stopped { why } => Report::Stopped(match why {
            StoppedWhy::Timeout => Stopped::Timeout,
            StoppedWhy::Cancelled => Stopped::Cancelled,
            StoppedWhy::Leaving => Stopped::Leaving,
            StoppedWhy::BrokenOff => Stopped::BrokenOff,
        }),
    }
}

/// Returns the tokens that a worker tells of; what is no count is none.
fn tokens(usage: Option<&Json>) -> Tokens {
    let count = |name| usage.and_then(|usage| usage.get(name)?.as_u64()).unwrap_or_default();
    Tokens { input: count("input_tokens"), output: count("output_tokens") }
}

fn failure(error: TaskError) -> Failure {
    let TaskError { kind, text, retryable, retry_after, fields } = error;
    let retry_after_ms = retry_after.as_deref().and_then(parse_duration);
    Failure { kind, text, retryable, retry_after_ms, fields }
}
