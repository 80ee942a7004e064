//! What workers do to the dispatch: register, take, name, stop, leave.
//!
//! Leaves waiting and durability to the engine's calls. Invariant: every call of a session renews its lease.

use std::collections::BTreeSet;

use outlast_kernel::Json;
use outlast_kernel::ids::{Attempt, Millis};
use outlast_kernel::text::time_text;
use outlast_protocol::rates::Rate;
use serde_json::json;

use super::{Coming, Dispatch, InHand, Inner, Lane, StopWhy, WorkId};
use crate::engine::adoption::Freed;
use crate::engine::session::{Record, Session};
use crate::limits;

/// A session is not known: its lease ended, or another one took its place.
#[derive(Debug)]
pub(crate) struct UnknownSession;

/// What a session lost when it was replaced or its process ended.
#[derive(Debug, Default)]
pub(crate) struct Left {
    /// Tasks that were in hand, still wanted.
    pub(crate) tasks: Vec<(WorkId, Attempt)>,
    /// What need not wait for it any more.
    pub(crate) freed: Freed,
    /// The workers' names.
    pub(crate) workers: Vec<String>,
}

/// What a worker can wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// Tasks.
    Poll,
    /// Tasks that must stop.
    Control,
}

impl Dispatch {
    /// Begins a session. Tasks of an earlier session of the same process move to it; those of an earlier process of the same worker
    /// are returned: that process is gone.
    pub(crate) fn register(
        &self,
        id: &str,
        record: Record,
        concurrency: u32,
        now: Millis,
    ) -> Vec<(WorkId, Attempt)> {
        let mut inner = self.lock();
        let mut session = Session::new(record, concurrency, now.plus(self.lease_ms));
        let mut gone = Vec::new();
        for (old, same_boot) in inner.sessions_of(&session.record) {
            let Some(old) = inner.sessions.remove(&old) else { continue };
            old.work.notify_waiters();
            old.stops.notify_waiters();
            if same_boot {
                for work in &old.hand {
                    if let Some(task) = inner.hand.get_mut(work) {
                        id.clone_into(&mut task.session);
                    }
                }
                session.hand.extend(old.hand);
            } else {
                let wanted = inner.drop_hand_of(&old);
                gone.extend(wanted.into_iter().map(|(work, task)| (work, task.attempt)));
            }
        }
        inner.sessions.insert(id.to_owned(), session);
        self.arm(&inner, Some(now.plus(self.lease_ms)));
        self.note_wanted(&inner);
        gone
    }

    /// Ends a registration, after the tokens that the worker listed were looked at: what it has in hand here but did not list never
    /// arrived. Returns that, and what need not wait for the worker any more.
    pub(crate) fn registered(
        &self,
        id: &str,
        kept: &[String],
        now: Millis,
    ) -> (Vec<(WorkId, InHand)>, Freed) {
        let mut inner = self.lock();
        let Some(session) = inner.sessions.get(id) else { return Default::default() };
        let (worker, boot) = (session.record.worker.clone(), session.record.boot.clone());
        let unlisted: Vec<WorkId> = session
            .hand
            .iter()
            .filter(|work| inner.hand.get(work).is_none_or(|task| !kept.contains(&task.token)))
            .cloned()
            .collect();
        let mut never_arrived = Vec::new();
        for work in unlisted {
            if let Some(task) = inner.drop_from_hand(&work)
                && task.stop.is_none_or(|stop| stop.why != StopWhy::Closed)
            {
                never_arrived.push((work, task));
            }
        }
        inner.adoption.registered(&worker, &boot);
        let freed = inner.adoption.free();
        if let Some(session) = inner.sessions.get_mut(id) {
            session.lease_until = now.plus(self.lease_ms);
        }
        (never_arrived, freed)
    }

    /// Takes note that a process ended.
    pub(crate) fn gone(&self, boot: &str) -> Left {
        let mut inner = self.lock();
        let ids: Vec<String> = inner
            .sessions
            .iter()
            .filter(|(_, session)| session.record.boot == boot)
            .map(|(id, _)| id.clone())
            .collect();
        let mut left = Left::default();
        for id in ids {
            let Some(session) = inner.sessions.remove(&id) else { continue };
            session.work.notify_waiters();
            session.stops.notify_waiters();
            let wanted = inner.drop_hand_of(&session);
            left.tasks.extend(wanted.into_iter().map(|(work, task)| (work, task.attempt)));
            left.workers.push(session.record.worker);
        }
        left.workers.extend(inner.adoption.gone(boot));
        left.freed = inner.adoption.free();
        self.note_wanted(&inner);
        left
    }

    /// Ends a session that takes no more work and has none in hand; tells whether it did. A poll of it that waits is woken: it would
    /// wait in vain, and its worker for it.
    pub(crate) fn leave(&self, id: &str) -> Result<Option<Record>, UnknownSession> {
        let mut inner = self.lock();
        let session = inner.sessions.get_mut(id).ok_or(UnknownSession)?;
        session.leaving = true;
        session.work.notify_waiters();
        if !session.hand.is_empty() || session.coming > 0 {
            return Ok(None);
        }
        let ended = inner.sessions.remove(id).map(|session| session.record);
        self.note_wanted(&inner);
        Ok(ended)
    }

    /// Renews a session's lease.
    pub(crate) fn renew(&self, id: &str, now: Millis) -> Result<Record, UnknownSession> {
        self.lock().renew(id, now.plus(self.lease_ms)).map(|session| session.record.clone())
    }

    /// Returns what wakes a session's call. Ask for it before looking for work, so that none is missed.
    pub(crate) fn wake(
        &self,
        id: &str,
        call: Call,
    ) -> Result<std::sync::Arc<tokio::sync::Notify>, UnknownSession> {
        let inner = self.lock();
        let session = inner.sessions.get(id).ok_or(UnknownSession)?;
        Ok(match call {
            Call::Poll => session.work.clone(),
            Call::Control => session.stops.clone(),
        })
    }

    /// Tells whether a session may still be given work.
    pub(crate) fn stays(&self, id: &str) -> bool {
        self.lock().sessions.get(id).is_some_and(|session| !session.leaving)
    }

    /// Reserves at most `max` pieces of ready work for a session; each must be handed or un-come.
    pub(crate) fn take(&self, id: &str, max: usize, now: Millis) -> Result<Vec<WorkId>, UnknownSession> {
        let mut inner = self.lock();
        let inner = &mut *inner;
        inner.renew(id, now.plus(self.lease_ms))?;
        let Some(session) = inner.sessions.get_mut(id) else { return Err(UnknownSession) };
        let rates = &mut inner.rates;
        let may = |lane: &Lane| rates.take(&lane.queue, now);
        let taken = inner.lanes.take(max.min(session.room()), |lane| session.record.serves(lane), may);
        session.coming += taken.len();
        let works = taken.iter().map(|it| it.work.clone()).collect();
        for taken in taken {
            let work = taken.work.clone();
            inner.coming.insert(work, Coming { session: id.to_owned(), taken, tokens: 0 });
        }
        self.arm(inner, inner.next_open(now));
        self.note_wanted(inner);
        Ok(works)
    }

    /// Tells whether tokens of a queue count.
    pub(crate) fn counts_tokens(&self, queue: &str) -> bool {
        self.lock().rates.count_tokens(queue)
    }

    /// Takes the tokens that reserved work is thought to need; if its queue has not enough of them now, the work must be un-come.
    pub(crate) fn take_tokens(&self, work: &WorkId, tokens: u64, now: Millis) -> bool {
        let mut inner = self.lock();
        let inner = &mut *inner;
        let Some(coming) = inner.coming.get_mut(work) else { return true };
        let fits = inner.rates.take_tokens(&coming.taken.lane.queue, tokens, now);
        if fits {
            coming.tokens = tokens;
        }
        fits
    }

    /// Takes note of the tokens that an attempt took, by its worker's count.
    pub(crate) fn spent(&self, work: &WorkId, attempt: Attempt, tokens: u64) {
        let mut inner = self.lock();
        let inner = &mut *inner;
        let task = inner.hand.get_mut(work).filter(|task| task.attempt == attempt);
        if let Some(task) = task {
            inner.rates.correct(&task.lane.queue, task.tokens, tokens);
            task.tokens = tokens;
        }
    }

    /// Takes note that a worker named the tasks that it has in hand. Returns those that are indeed with it, by token.
    pub(crate) fn named(
        &self,
        id: &str,
        tasks: &[(WorkId, String)],
        now: Millis,
    ) -> Result<Vec<WorkId>, UnknownSession> {
        let mut inner = self.lock();
        let inner = &mut *inner;
        inner.renew(id, now.plus(self.lease_ms))?;
        let Some(session) = inner.sessions.get_mut(id) else { return Err(UnknownSession) };
        session.names_tasks = true;
        let mut with_it = Vec::new();
        for (work, token) in tasks {
            match inner.hand.get_mut(work).filter(|task| task.token == *token && task.session == id) {
                Some(task) => {
                    task.named_at = now;
                    with_it.push(work.clone());
                }
                None => {
                    // It works on something that nobody waits for: tell it.
                    if session.unwanted.len() < limits::UNWANTED_MAX {
                        session.unwanted.insert(token.clone());
                        session.stops.notify_waiters();
                    }
                }
            }
        }
        Ok(with_it)
    }

    /// Returns the tokens of tasks that a session must stop: those that it was not told of lately, or all of them.
    pub(crate) fn stops(&self, id: &str, now: Millis, all: bool) -> Result<Vec<String>, UnknownSession> {
        let mut inner = self.lock();
        let inner = &mut *inner;
        inner.renew(id, now.plus(self.lease_ms))?;
        let Some(session) = inner.sessions.get_mut(id) else { return Err(UnknownSession) };
        let mut tokens: Vec<String> = std::mem::take(&mut session.unwanted).into_iter().collect();
        for work in &session.hand {
            let Some(task) = inner.hand.get_mut(work) else { continue };
            let Some(stop) = &mut task.stop else { continue };
            let due = stop.told_at.is_none_or(|at| at.plus(limits::STOP_AGAIN_MS) <= now);
            if all || due {
                stop.told_at = Some(now);
                tokens.push(task.token.clone());
            }
        }
        Ok(tokens)
    }

    /// Puts a task that never arrived back into its lane.
    pub(crate) fn put_back(&self, work: WorkId, lane: Lane) {
        let mut inner = self.lock();
        inner.add(work, lane);
        self.note_wanted(&inner);
    }

    /// Returns how much there is to do, and for how many.
    pub(crate) fn load(&self) -> Load {
        let inner = self.lock();
        let queues: BTreeSet<&str> = inner.lanes.waiting().map(|lane| lane.queue.as_str()).collect();
        let waiting = queues.into_iter().take(limits::METRIC_LABELS_MAX);
        Load {
            workers: inner.sessions.len() as u64,
            in_hand: inner.hand.len() as u64,
            waiting: waiting.map(|queue| (queue.to_owned(), inner.lanes.len_of(queue) as u64)).collect(),
        }
    }

    /// Returns the sessions, tasks in hand, ready work and the rates of queues, as figures for people.
    pub(crate) fn figures(&self, now: Millis) -> Json {
        let inner = self.lock();
        let session = |session: &Session| {
            let Record { worker, boot, queues, profile, .. } = &session.record;
            json!({ "worker": worker, "boot": boot, "queues": queues, "profile": profile,
                    "in_hand": session.hand.len(), "concurrency": session.concurrency })
        };
        let rate = |(queue, rate): (&str, Rate)| {
            let Rate { requests_per_minute, tokens_per_minute } = rate;
            let waiting = inner.lanes.len_of(queue);
            let held_until = inner.rates.held_until(queue, now).filter(|_| waiting > 0).map(time_text);
            json!({ "queue": queue, "requests_per_minute": requests_per_minute,
                    "tokens_per_minute": tokens_per_minute, "waiting": waiting, "held_until": held_until })
        };
        json!({
            "sessions": inner.sessions.values().map(session).collect::<Vec<_>>(),
            "in_hand": inner.hand.len(),
            "waiting": inner.lanes.len(),
            "rates": inner.rates.iter().map(rate).collect::<Vec<_>>(),
        })
    }
}

/// How much there is to do, and for how many.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    /// Sessions.
    pub(crate) workers: u64,
    /// Tasks in hand.
    pub(crate) in_hand: u64,
    /// Work that waits, by queue.
    pub(crate) waiting: Vec<(String, u64)>,
}

impl Inner {
    /// Returns the sessions of a worker, and whether each is of the same process.
    fn sessions_of(&self, record: &Record) -> Vec<(String, bool)> {
        let same_name = self.sessions.iter().filter(|(_, old)| old.record.worker == record.worker);
        same_name.map(|(id, old)| (id.clone(), old.record.boot == record.boot)).collect()
    }

    fn renew(&mut self, id: &str, until: Millis) -> Result<&mut Session, UnknownSession> {
        let session = self.sessions.get_mut(id).ok_or(UnknownSession)?;
        session.lease_until = session.lease_until.max(until);
        Ok(session)
    }
}
