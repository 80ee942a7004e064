//! Who gets which task, and when: ready work, the rates of queues, worker sessions, tasks in hand, and what workers of the last epoch may
//! still hold.
//!
//! Leaves deciding to the shards: work is *reserved* here, and in hand only when its shard said so. Invariant: one lock, never held
//! across an await; a piece of work is ready, kept for adoption, coming or in hand, never two of them.

mod hand;
mod lanes;
mod rates;
mod standing;
mod workers;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use outlast_kernel::event::LostWhy;
use outlast_kernel::ids::{Attempt, Millis, OpId, RunId};
use outlast_protocol::rates::Rate;
use outlast_store::breakage::{Breakage, breaks};
use tokio::sync::{Notify, watch};

use super::adoption::{Adoption, Begun, Freed};
use super::session::Session;
use crate::limits;

pub(crate) use hand::{InHand, StopWhy};
use hand::{Stop, Verdict};
pub(crate) use lanes::Lane;
use lanes::{Lanes, Taken};
use rates::Rates;
pub(crate) use standing::Standing;
pub(crate) use workers::Call;

/// Names an operation of a run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct WorkId {
    /// The run.
    pub(crate) run: RunId,
    /// Its operation.
    pub(crate) op: OpId,
}

/// Profiles and queues with work that nobody serves.
pub(crate) type Wanted = BTreeSet<(String, String)>;

/// The hand-out of tasks.
pub(crate) struct Dispatch {
    inner: Mutex<Inner>,
    lease_ms: u64,
    wanted: watch::Sender<Wanted>,
    /// Wakes whoever watches deadlines: an earlier one may have come.
    pub(crate) deadlines: Notify,
}

struct Inner {
    lanes: Lanes,
    rates: Rates,
    sessions: BTreeMap<String, Session>,
    coming: BTreeMap<WorkId, Coming>,
    hand: BTreeMap<WorkId, InHand>,
    /// `once` attempts that were with a worker in this epoch, until their operation is closed: what is not in hand any more is lost,
    /// whatever became of the worker's session of the last epoch.
    seen: BTreeMap<WorkId, Attempt>,
    adoption: Adoption,
    /// When [`Dispatch::tick`] is awaited; none: not before something changes.
    armed: Option<Millis>,
}

/// Work that is reserved for a session.
struct Coming {
    session: String,
    taken: Taken,
    /// The tokens that its queue counts for it.
    tokens: u64,
}

/// What time brought about.
#[derive(Debug, Default)]
pub(crate) struct Due {
    /// Attempts that will never answer.
    pub(crate) lost: Vec<(WorkId, Attempt, LostWhy)>,
    /// What need not wait for adoption any more.
    pub(crate) freed: Freed,
    /// Workers whose lease ended: their durable records go.
    pub(crate) ended: Vec<(String, String)>,
}

impl Dispatch {
    /// Begins with what may be in hand from the last epoch, and the rates of queues as if they had been used up by it.
    pub(crate) fn new(
        lease_ms: u64,
        adoption: Adoption,
        rates: BTreeMap<String, Rate>,
        now: Millis,
    ) -> Dispatch {
        let inner = Inner {
            lanes: Lanes::default(),
            rates: Rates::new(rates, now),
            sessions: BTreeMap::new(),
            coming: BTreeMap::new(),
            hand: BTreeMap::new(),
            seen: BTreeMap::new(),
            adoption,
            armed: None,
        };
        let wanted = watch::Sender::new(Wanted::new());
        let lease_ms = if breaks(Breakage::EndLeasesEarly) { lease_ms / 2 } else { lease_ms };
        Dispatch { inner: Mutex::new(inner), lease_ms, wanted, deadlines: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing in here panics half-way through a change that others rely on.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes work ready. `old`: it was open before this epoch, so a worker may have it in hand.
    pub(crate) fn offer(&self, work: WorkId, lane: Lane, old: bool) {
        let mut inner = self.lock();
        if inner.coming.contains_key(&work) || inner.hand.contains_key(&work) {
            return;
        }
        // A `once` attempt that a worker has was begun; a ready one is with nobody.
        let old = old && !breaks(Breakage::SkipAdoption);
        if old && lane.promise > 0 && inner.adoption.hold(&work, &lane) {
            return;
        }
        inner.add(work, lane);
        self.note_wanted(&inner);
    }

    /// Judges an operation that state says was begun: nothing to do if it is in hand.
    pub(crate) fn begun(&self, work: &WorkId, attempt: Attempt, holder: &str) -> Begun {
        let mut inner = self.lock();
        if inner.hand.contains_key(work) || inner.coming.contains_key(work) {
            return Begun::Wait;
        }
        if inner.seen.get(work) == Some(&attempt) {
            return Begun::Lost;
        }
        inner.adoption.begun(work, attempt, holder)
    }

    /// Tells whether a worker of the last epoch may have an operation in hand: its deadlines wait for the adoption window.
    pub(crate) fn may_be_held(&self, work: &WorkId, now: Millis) -> bool {
        let inner = self.lock();
        let adopted = || inner.hand.get(work).is_some_and(|task| task.adopted);
        now < inner.adoption.until && (inner.adoption.keeps(work) || adopted())
    }

    /// Returns the end of the adoption window.
    pub(crate) fn adoption_until(&self) -> Millis {
        self.lock().adoption.until
    }

    /// Takes back work that was closed: ready work vanishes, a worker that has it in hand is told to stop.
    pub(crate) fn close(&self, work: &WorkId, now: Millis) {
        let mut inner = self.lock();
        inner.lanes.remove(work);
        inner.adoption.forget(work);
        inner.seen.remove(work);
        if inner.stop(work, StopWhy::Closed, now) {
            self.arm(&inner, Some(now.plus(self.lease_ms)));
        }
        self.note_wanted(&inner);
    }

    /// Puts work that came to nobody back into its lane, or drops it if it is not wanted any more.
    pub(crate) fn uncome(&self, work: &WorkId, again: bool) {
        let mut inner = self.lock();
        let Some(Coming { session, taken, tokens }) = inner.coming.remove(work) else { return };
        if let Some(session) = inner.sessions.get_mut(&session) {
            session.coming -= 1;
        }
        inner.rates.give_back(&taken.lane.queue, tokens);
        if again {
            inner.lanes.put_back(taken);
        }
        inner.wake_with_room();
        self.note_wanted(&inner);
    }

    /// Turns work that was coming into a task in hand; none if the session is gone meanwhile.
    pub(crate) fn hand(&self, work: &WorkId, mut task: InHand) -> Option<()> {
        let mut inner = self.lock();
        if let Some(coming) = inner.coming.remove(work) {
            task.tokens = coming.tokens;
            if let Some(session) = inner.sessions.get_mut(&coming.session) {
                session.coming -= 1;
            }
        }
        inner.sessions.get_mut(&task.session)?.hand.insert(work.clone());
        inner.adoption.forget(work);
        inner.lanes.remove(work);
        let names_tasks = inner.sessions.get(&task.session).is_some_and(|s| s.names_tasks);
        let judge_at = task.judge_at(self.lease_ms, names_tasks);
        let look_at = inner.sessions.get(&task.session)?.look_at(task.named_at);
        if task.lane.promise == 0 {
            inner.seen.insert(work.clone(), task.attempt);
        }
        inner.hand.insert(work.clone(), task);
        self.arm(&inner, judge_at.into_iter().chain(look_at).min());
        Some(())
    }

    /// Frees the worker of a task, because it answered. Tells whether it had it in hand.
    pub(crate) fn unhand(&self, work: &WorkId, attempt: Attempt) -> bool {
        let mut inner = self.lock();
        if inner.hand.get(work).is_none_or(|task| task.attempt != attempt) {
            return false;
        }
        inner.drop_from_hand(work);
        inner.wake_with_room();
        true
    }

    /// Returns a task in hand.
    pub(crate) fn held_by(&self, work: &WorkId) -> Option<InHand> {
        self.lock().hand.get(work).cloned()
    }

    /// Tells whether an attempt was told to stop because its time is over.
    pub(crate) fn is_over_time(&self, work: &WorkId, attempt: Attempt) -> bool {
        self.lock().hand.get(work).is_some_and(|task| task.attempt == attempt && task.is_over_time())
    }

    /// Does what time demands.
    pub(crate) fn tick(&self, now: Millis) -> Due {
        let mut inner = self.lock();
        let mut due = Due::default();
        let late = inner.armed.is_some_and(|armed| armed.plus(self.lease_ms / 2) < now);
        if late {
            inner.give_grace(now, self.lease_ms);
        }
        inner.end_leases(now, &mut due);
        inner.judge_tasks(now, self.lease_ms, &mut due);
        if inner.adoption.waits() {
            inner.adoption.look_at_processes();
            inner.adoption.end(now);
            due.freed = inner.adoption.free();
        }
        due.ended.extend(inner.adoption.take_gone());
        inner.wake_with_room();
        self.note_wanted(&inner);
        due
    }

    /// Returns when [`Dispatch::tick`] is needed next.
    pub(crate) fn next_tick(&self, now: Millis) -> Option<Millis> {
        let mut inner = self.lock();
        let leases = inner.sessions.values().map(|session| session.lease_until);
        let tasks = inner.hand.values().filter_map(|task| {
            task.judge_at(self.lease_ms, inner.sessions.get(&task.session).is_some_and(|s| s.names_tasks))
        });
        let adoption = inner.adoption.waits().then(|| {
            // Whether a process lives can only be asked, so ask often while somebody waits for the answer.
            now.plus(limits::PROCESS_LOOK_MS).min(inner.adoption.until)
        });
        let looks = inner.sessions.values().filter_map(|session| session.look_at(now));
        let next = leases.chain(tasks).chain(adoption).chain(looks).chain(inner.next_open(now)).min();
        inner.armed = next;
        next
    }

    /// Wakes whoever watches deadlines, if this one comes before the one that is awaited.
    fn arm(&self, inner: &Inner, at: Option<Millis>) {
        if at.is_some_and(|at| inner.armed.is_none_or(|armed| at < armed)) {
            self.deadlines.notify_one();
        }
    }

    /// Returns profiles and queues with work that nobody serves, as it changes.
    pub(crate) fn wanted(&self) -> watch::Receiver<Wanted> {
        self.wanted.subscribe()
    }

    fn note_wanted(&self, inner: &Inner) {
        let polled = |lane: &Lane| {
            inner.sessions.values().any(|session| session.record.polls(&lane.queue, &lane.profile))
        };
        let wanted: Wanted = inner
            .lanes
            .waiting()
            .filter(|lane| !polled(lane))
            .map(|lane| (lane.profile.clone(), lane.queue.clone()))
            .collect();
        self.wanted.send_if_modified(|old| {
            let changed = *old != wanted;
            if changed {
                *old = wanted;
            }
            changed
        });
    }
}

impl Inner {
    fn add(&mut self, work: WorkId, lane: Lane) {
        for session in self.sessions.values().filter(|s| s.room() > 0 && s.record.serves(&lane)) {
            session.work.notify_waiters();
        }
        self.lanes.add(work, lane);
    }

    /// Wakes polls of sessions that have room and work.
    fn wake_with_room(&self) {
        for session in self.sessions.values().filter(|session| session.room() > 0) {
            if self.lanes.waiting().any(|lane| session.record.serves(lane)) {
                session.work.notify_waiters();
            }
        }
    }

    /// Returns when the first queue that a rate holds gives out work which somebody has room for.
    fn next_open(&self, now: Millis) -> Option<Millis> {
        let with_room = || self.sessions.values().filter(|session| session.room() > 0);
        let wanted = self.lanes.waiting().filter(|lane| with_room().any(|it| it.record.serves(lane)));
        wanted.filter_map(|lane| self.rates.held_until(&lane.queue, now)).min()
    }

    fn stop(&mut self, work: &WorkId, why: StopWhy, now: Millis) -> bool {
        let Some(task) = self.hand.get_mut(work) else { return false };
        let told_at = task.stop.and_then(|stop| stop.told_at);
        task.stop = Some(Stop { why, since: now, told_at });
        if let Some(session) = self.sessions.get(&task.session) {
            session.stops.notify_waiters();
        }
        true
    }

    fn drop_from_hand(&mut self, work: &WorkId) -> Option<InHand> {
        let task = self.hand.remove(work)?;
        if let Some(session) = self.sessions.get_mut(&task.session) {
            session.hand.remove(work);
        }
        Some(task)
    }

    /// Drops all that a session has in hand and returns what is still wanted of it.
    fn drop_hand_of(&mut self, session: &Session) -> Vec<(WorkId, InHand)> {
        let mut wanted = Vec::new();
        for work in &session.hand {
            if let Some(task) = self.hand.remove(work)
                && task.stop.is_none_or(|stop| stop.why != StopWhy::Closed)
            {
                wanted.push((work.clone(), task));
            }
        }
        wanted
    }

    /// Gives workers the time of a sign of life: this computer was suspended, and so perhaps were they.
    fn give_grace(&mut self, now: Millis, lease_ms: u64) {
        for session in self.sessions.values_mut() {
            session.lease_until = session.lease_until.max(now.plus(lease_ms / 3));
        }
        for task in self.hand.values_mut() {
            task.named_at = now;
        }
    }

    /// Ends the sessions whose lease is over, and those whose process is gone: nobody has to wait for the lease of the dead.
    fn end_leases(&mut self, now: Millis, due: &mut Due) {
        let why = |session: &Session| match session.lease_until <= now {
            true => Some(LostWhy::Lease),
            false => session.is_gone().then_some(LostWhy::WorkerGone),
        };
        let ended: Vec<(String, LostWhy)> =
            self.sessions.iter().filter_map(|(id, session)| Some((id.clone(), why(session)?))).collect();
        for (id, why) in ended {
            let Some(session) = self.sessions.remove(&id) else { continue };
            session.work.notify_waiters();
            session.stops.notify_waiters();
            let wanted = self.drop_hand_of(&session);
            due.lost.extend(wanted.into_iter().map(|(work, task)| {
                // Its end was decided before its worker's.
                let why = if task.is_over_time() { LostWhy::Timeout } else { why };
                (work, task.attempt, why)
            }));
            due.ended.push((session.record.worker, session.record.boot));
        }
    }

    fn judge_tasks(&mut self, now: Millis, lease_ms: u64, due: &mut Due) {
        let verdicts: Vec<(WorkId, Verdict)> = self
            .hand
            .iter()
            .map(|(work, task)| {
                let names_tasks = self.sessions.get(&task.session).is_some_and(|s| s.names_tasks);
                (work.clone(), task.judge(now, lease_ms, names_tasks))
            })
            .filter(|(_, verdict)| *verdict != Verdict::Keep)
            .collect();
        for (work, verdict) in verdicts {
            match verdict {
                Verdict::Keep => {}
                Verdict::Stop => {
                    self.stop(&work, StopWhy::TimeOver, now);
                }
                Verdict::Forget => {
                    self.drop_from_hand(&work);
                }
                Verdict::Lost(why) => {
                    if let Some(task) = self.drop_from_hand(&work) {
                        due.lost.push((work, task.attempt, why));
                    }
                }
            }
        }
    }
}
