//! A run in memory: its state ahead of the disk, and what the outside has been told of it.
//!
//! Leaves deciding to the shard. Invariant: the state is the fold of the history plus the steps that wait for the committer; the head
//! cell says where the disk is.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use outlast_kernel::State;
use outlast_kernel::ids::{Attempt, Millis, OpId, RunId};
use outlast_kernel::operation::{ActivityOp, Operation, OperationKind, Phase};
use outlast_protocol::ApiError;
use outlast_store::breakage::{Breakage, breaks};
use outlast_store::{Head, Index, Origin};

use super::census::Census;
use super::committer::HeadCell;
use super::context::Context;
use super::dispatch::{Lane, WorkId};
use super::errors;
use super::frames::Fold;
use super::history::{broken, fold_until};
use super::message::Consequence;
use super::parcel::{self, Kind};
use super::view::Facts;
use super::waiting::lane_of;
use crate::limits;

/// A run in memory.
#[derive(Debug)]
pub(crate) struct Live {
    /// Its state, with its open questions.
    pub(crate) fold: Fold,
    /// Where its history stands on disk.
    pub(crate) head: HeadCell,
    /// How many of its steps are not durable.
    pub(crate) pending: usize,
    /// Its place in the views that recovery reads, after the last step.
    pub(crate) index: Index,
    /// What is true of it from the start on.
    pub(crate) facts: Facts,
    /// What the census counts for it, after the last step.
    pub(crate) counted: Census,
    /// Whose history it goes on from; until its first step is queued.
    pub(crate) origin: Option<Origin>,
    /// What it was started with, until that is durable.
    pub(crate) input: Option<outlast_kernel::Json>,
    /// What the dispatch was told of its activities.
    pub(crate) told: BTreeMap<OpId, Told>,
    /// Events since the last snapshot, and about how many bytes they have.
    pub(crate) since_snapshot: (usize, usize),
    /// When it was used last, in the shard's own count.
    pub(crate) used: u64,
}

/// What the dispatch was told of an activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// This attempt may be handed out.
    Ready(Attempt),
    /// Not yet, not now or not any more.
    Not,
    /// Only the end of what is in hand is awaited.
    Settling,
    /// It is this news for another run, and on its way.
    Sent(Kind),
}

/// What changed for the dispatch.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// Work that may be handed out now.
    pub(crate) offered: Vec<(WorkId, Lane)>,
    /// Work that is closed.
    pub(crate) closed: Vec<WorkId>,
    /// Work of which only the end of what is in hand is awaited.
    pub(crate) settling: Vec<(WorkId, Attempt)>,
    /// News for other runs.
    pub(crate) news: Vec<OpId>,
}

impl Changes {
    /// Returns what to do about them when they are durable.
    pub(crate) fn consequences(self) -> impl Iterator<Item = Consequence> {
        let closed = self.closed.into_iter().map(Consequence::Close);
        let settling = self.settling.into_iter().map(|(work, attempt)| Consequence::Settle(work, attempt));
        let offered = self.offered.into_iter().map(|(work, lane)| Consequence::Offer(work, lane));
        closed.chain(settling).chain(offered).chain(self.news.into_iter().map(Consequence::Send))
    }
}

impl Live {
    /// Begins a run that has no history yet.
    pub(crate) fn new(fold: Fold, facts: Facts) -> Live {
        Live {
            fold,
            head: Arc::default(),
            pending: 0,
            index: Index::default(),
            facts,
            counted: Census::default(),
            origin: None,
            input: None,
            told: BTreeMap::new(),
            since_snapshot: (0, 0),
            used: 0,
        }
    }

    /// Begins a fork, whose history goes on from a head of its parent's.
    pub(crate) fn forked(fold: Fold, facts: Facts, origin: Origin, head: Head) -> Live {
        let head = Arc::new(Mutex::new(head));
        Live { head, origin: Some(origin), ..Live::new(fold, facts) }
    }

    /// Reads a run from the store: its newest snapshot and the events after it, or all of them. None if there is no such run.
    ///
    /// # Errors
    /// [`outlast_protocol::Code::Internal`] if it cannot be read, its history does not fit its machine, or it is quarantined.
    pub(crate) fn read(ctx: &Context, run: &RunId) -> Result<Option<Live>, ApiError> {
        let store = &*ctx.store;
        let read = |e| errors::store(&e).of_run(run);
        let Some((head, index)) = store.head(run).map_err(read)? else { return Ok(None) };
        let summary = store.summary(run).map_err(read)?;
        let summary = summary.ok_or_else(|| broken(run, "it has no summary"))?;
        let (fold, events) = fold_until(ctx, run, head.seq)?;
        let counted = Census::of(&summary);
        let mut live = Live::new(fold, Facts::of(summary));
        live.counted = counted;
        live.head = Arc::new(Mutex::new(head));
        live.index = index;
        live.since_snapshot = (events, 0);
        Ok(Some(live))
    }

    /// Returns the state.
    pub(crate) fn state(&self) -> &State {
        &self.fold.state
    }

    /// Returns what another run hears of an operation.
    pub(crate) fn news_of(&self, operation: &Operation) -> Option<Kind> {
        // A child that was spawned before the fork began tells the parent of its end, so the fork asks.
        parcel::kind(operation, self.facts.forked_at().is_some_and(|at| operation.id.0 <= at))
    }

    /// Returns where it stands in the views that recovery reads.
    pub(crate) fn index_of(&self) -> Index {
        let state = self.state();
        // A run with news for others is put back to work until they have it, also when it has ended.
        let news = state.operations().any(|operation| self.news_of(operation).is_some());
        let news = news && !breaks(Breakage::ForgetNews);
        if state.outcome().is_some() || state.blocked().is_some() {
            return Index { ready: news, due: None };
        }
        let mut index = Index { ready: news, due: state.next_due() };
        for (_, activity) in activities(state) {
            match activity.phase {
                Phase::Ready | Phase::Begun { .. } => index.ready = true,
                Phase::RetryAt(at) => index.due = Some(index.due.map_or(at, |due| due.min(at))),
                Phase::Verifying(_) | Phase::Held(_) | Phase::Budget => {}
            }
        }
        index
    }

    /// Returns when something is due next, after a moment.
    pub(crate) fn due_after(&self, now: Millis) -> Option<Millis> {
        let retries = activities(self.state()).filter_map(|(_, activity)| {
            if let Phase::RetryAt(at) = activity.phase { Some(at) } else { None }
        });
        retries.chain(self.state().next_due()).filter(|due| *due > now).min()
    }

    /// Compares its activities with what the dispatch was told, and returns what to tell now.
    pub(crate) fn changes(&mut self, now: Millis) -> Changes {
        let run = self.state().run().clone();
        let profile = self.state().config().profile.clone();
        let still = self.state().outcome().is_some() || self.state().blocked().is_some();
        let mut changes = Changes::default();
        let mut told = BTreeMap::new();
        for (op, activity) in activities(self.state()).filter(|_| !still) {
            let work = WorkId { run: run.clone(), op };
            let tell = match may_be_handed_out(activity, now) {
                true => Told::Ready(activity.attempt),
                false if ends_in_nobodys_hand(activity) => Told::Settling,
                false => Told::Not,
            };
            let before = self.told.get(&op).copied();
            match tell {
                Told::Ready(_) | Told::Settling if before == Some(tell) => {}
                Told::Ready(_) => changes.offered.push((work, lane_of(activity, &profile))),
                Told::Settling => changes.settling.push((work, activity.attempt)),
                Told::Not | Told::Sent(_) => {}
            }
            told.insert(op, tell);
        }
        for operation in self.state().operations() {
            let Some(kind) = self.news_of(operation) else { continue };
            if self.told.get(&operation.id) != Some(&Told::Sent(kind)) {
                changes.news.push(operation.id);
            }
            told.insert(operation.id, Told::Sent(kind));
        }
        let work = self.told.iter().filter(|(_, before)| !matches!(before, Told::Sent(_)));
        let gone = work.filter(|(op, _)| !told.contains_key(op));
        changes.closed.extend(gone.map(|(op, _)| WorkId { run: run.clone(), op: *op }));
        self.told = told;
        changes
    }

    /// Tells whether nothing of it is for a worker or another run: it has ended, or waits for people, messages or a timer.
    pub(crate) fn rests(&self) -> bool {
        !self.index.ready && self.told.is_empty()
    }

    /// Tells whether it is time for a snapshot: the events since the last one weigh more than it would.
    pub(crate) fn wants_snapshot(&self) -> bool {
        let (events, bytes) = self.since_snapshot;
        events >= limits::SNAPSHOT_EVENTS_MIN && bytes >= self.state().weight()
    }
}

/// Tells whether an attempt of an activity may be handed out.
pub(crate) fn may_be_handed_out(activity: &ActivityOp, now: Millis) -> bool {
    match activity.phase {
        _ if activity.settling => false,
        Phase::Ready => true,
        Phase::RetryAt(at) => at <= now,
        Phase::Begun { .. } | Phase::Verifying(_) | Phase::Held(_) | Phase::Budget => false,
    }
}

/// Tells whether an activity ends as soon as nobody has it in hand. What was begun, or is in doubt, does not: it may have happened, and
/// its worker's end or whoever knows decides.
fn ends_in_nobodys_hand(activity: &ActivityOp) -> bool {
    match activity.phase {
        Phase::Ready | Phase::RetryAt(_) | Phase::Budget => activity.settling,
        Phase::Begun { .. } | Phase::Verifying(_) | Phase::Held(_) => false,
    }
}

/// Walks over the open activities of a state.
pub(crate) fn activities(state: &State) -> impl Iterator<Item = (OpId, &ActivityOp)> {
    state.operations().filter_map(|operation| Some((operation.id, activity_of(operation)?)))
}

/// Returns the activity that an operation is.
pub(crate) fn activity_of(operation: &Operation) -> Option<&ActivityOp> {
    if let OperationKind::Activity(activity) = &operation.kind { Some(activity) } else { None }
}
