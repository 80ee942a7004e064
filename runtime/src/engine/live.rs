//! A run in memory: its state ahead of the disk, and what the outside has been told of it.
//!
//! Leaves deciding to the shard. Invariant: the state is the fold of the history plus the steps that wait for the committer; the head
//! cell says where the disk is.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use outlast_kernel::event::Event;
use outlast_kernel::ids::{Attempt, Millis, OpId, RunId, Seq};
use outlast_kernel::operation::{ActivityOp, Effects, Operation, OperationKind, Phase};
use outlast_kernel::{Snapshot, State};
use outlast_protocol::run::Frame;
use outlast_protocol::{ApiError, Code};
use outlast_store::{Index, Store};

use super::committer::HeadCell;
use super::dispatch::{Lane, WorkId};
use super::draft::panic_text;
use super::errors;
use super::flows::Flows;
use super::frames::Fold;
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
}

/// What changed for the dispatch.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// Work that may be handed out now.
    pub(crate) offered: Vec<(WorkId, Lane)>,
    /// Work that is closed.
    pub(crate) closed: Vec<WorkId>,
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
            input: None,
            told: BTreeMap::new(),
            since_snapshot: (0, 0),
            used: 0,
        }
    }

    /// Reads a run from the store: its newest snapshot and the events after it, or all of them. None if there is no such run.
    ///
    /// # Errors
    /// [`Code::Internal`] if it cannot be read, or its history does not fit its machine.
    pub(crate) fn read(store: &dyn Store, flows: &Flows, run: &RunId) -> Result<Option<Live>, ApiError> {
        let read = |e| errors::store(&e).of_run(run);
        let Some((head, index)) = store.head(run).map_err(read)? else { return Ok(None) };
        let summary = store.summary(run).map_err(read)?;
        let summary = summary.ok_or_else(|| broken(run, "it has no summary"))?;
        let mut events = 0;
        let fold = fold_until(store, flows, run, &summary.machine, head.seq, &mut events)?;
        let facts = Facts {
            flow: summary.flow,
            machine: summary.machine,
            started_at: summary.started_at,
            parent: summary.view.get("parent").cloned(),
        };
        let mut live = Live::new(fold, facts);
        live.head = Arc::new(Mutex::new(head));
        live.index = index;
        live.since_snapshot = (events, 0);
        Ok(Some(live))
    }

    /// Returns the state.
    pub(crate) fn state(&self) -> &State {
        &self.fold.state
    }

    /// Returns where it stands in the views that recovery reads.
    pub(crate) fn index_of(&self) -> Index {
        let state = self.state();
        if state.outcome().is_some() || state.blocked().is_some() {
            return Index::default();
        }
        let mut index = Index { ready: false, due: state.next_due() };
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
            let ready = may_be_handed_out(activity, now);
            let tell = if ready { Told::Ready(activity.attempt) } else { Told::Not };
            if ready && self.told.get(&op) != Some(&tell) {
                changes.offered.push((WorkId { run: run.clone(), op }, lane_of(activity, &profile)));
            }
            told.insert(op, tell);
        }
        for op in self.told.keys().filter(|op| !told.contains_key(op)) {
            changes.closed.push(WorkId { run: run.clone(), op: *op });
        }
        self.told = told;
        changes
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
        Phase::Ready => true,
        Phase::RetryAt(at) => at <= now,
        Phase::Begun { .. } | Phase::Verifying(_) | Phase::Held(_) | Phase::Budget => false,
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

/// Folds a run's history up to an event, from the newest snapshot that helps.
pub(crate) fn fold_until(
    store: &dyn Store,
    flows: &Flows,
    run: &RunId,
    machine: &str,
    until: Seq,
    folded: &mut usize,
) -> Result<Fold, ApiError> {
    let read = |e| errors::store(&e).of_run(run);
    let machine = flows.machine(machine)?;
    let snapshot = store.snapshot(run).map_err(read)?.filter(|(after, _)| *after <= until);
    let mut fold = match snapshot {
        Some((_, bytes)) => {
            // A snapshot only saves time: one that cannot be used is as good as none.
            let state = serde_json::from_slice::<Snapshot>(&bytes)
                .map_err(|e| e.to_string())
                .and_then(|snapshot| State::restore(machine.clone(), snapshot).map_err(|e| e.to_string()));
            if let Err(why) = &state {
                tracing::warn!(run = %run, why, "a snapshot cannot be used; folding the whole history");
            }
            state.ok().map(Fold::new)
        }
        None => None,
    };
    loop {
        let after = fold.as_ref().map_or(Seq(0), |fold| fold.state.last());
        if after >= until {
            break;
        }
        let page = (until.0 - after.0).min(limits::HISTORY_PAGE as u64);
        let events = store.history(run, after, usize::try_from(page).unwrap_or(limits::HISTORY_PAGE));
        let events = events.map_err(read)?;
        if events.is_empty() {
            return Err(broken(run, &format!("its history ends at event {after}, its head is {until}")));
        }
        *folded += events.len();
        let machine = machine.clone();
        let (run, so_far) = (run.clone(), fold.take());
        let next = catch_unwind(AssertUnwindSafe(|| fold_page(machine, &run, so_far, &events)));
        fold = Some(next.map_err(|panic| broken(&run, &panic_text(&*panic)))??);
    }
    fold.ok_or_else(|| broken(run, "its history is empty"))
}

fn fold_page(
    machine: Arc<outlast_dsl::machine::Machine>,
    run: &RunId,
    fold: Option<Fold>,
    events: &[outlast_kernel::event::Event],
) -> Result<Fold, ApiError> {
    let diverged = |e: outlast_kernel::Diverged| broken(run, &e.to_string());
    let (mut fold, rest) = match (fold, events.split_first()) {
        (Some(fold), _) => (fold, events),
        (None, Some((first, rest))) => {
            let (state, _) = State::start(machine, run.clone(), first).map_err(diverged)?;
            (Fold::new(state), rest)
        }
        (None, None) => return Err(broken(run, "its history is empty")),
    };
    for event in rest {
        fold.apply(event).map_err(diverged)?;
    }
    Ok(fold)
}

/// Folds one event and returns what it did and what watchers are shown of it.
pub(crate) fn fold_one(
    flows: &Flows,
    run: &RunId,
    machine: &str,
    fold: Option<Fold>,
    event: &Event,
) -> Result<(Fold, Effects, Vec<Frame>), ApiError> {
    let machine = flows.machine(machine)?;
    let folded = catch_unwind(AssertUnwindSafe(|| match fold {
        Some(mut fold) => fold.apply(event).map(|(effects, frames)| (fold, effects, frames)),
        None => State::start(machine, run.clone(), event).map(|(state, effects)| {
            let (fold, frames) = Fold::started(state, event, &effects);
            (fold, effects, frames)
        }),
    }));
    let folded = folded.map_err(|panic| broken(run, &panic_text(&*panic)))?;
    folded.map_err(|e| broken(run, &e.to_string()))
}

fn broken(run: &RunId, why: &str) -> ApiError {
    ApiError::new(Code::Internal, format!("run {run} cannot be read: {why}")).of_run(run)
}
