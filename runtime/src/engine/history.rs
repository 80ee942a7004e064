//! A run's history, folded from the store: from its newest snapshot that helps, or from the first event.
//!
//! Leaves steps in the making to `draft`. Invariants: the events of a fork's prefix are folded as the runs to which they belong, because
//! what a fork draws at random depends on them; what is shown of them belongs to the run that is read. A run that is quarantined is not
//! folded, whoever asks: that may be what ends the process.

use std::panic::{AssertUnwindSafe, catch_unwind};

use outlast_kernel::event::{Event, EventKind};
use outlast_kernel::ids::{RunId, Seq};
use outlast_kernel::operation::Effects;
use outlast_kernel::{Ready, Snapshot, State};
use outlast_protocol::run::Frame;
use outlast_protocol::{ApiError, Code};
use outlast_store::breakage::{Breakage, breaks};
use outlast_store::{Segment, Store, StoreError};

use super::context::Context;
use super::draft::panic_text;
use super::errors;
use super::frames::Fold;
use crate::limits;

/// An event of a history with what it did.
pub(crate) struct Told<'a> {
    pub(crate) event: &'a Event,
    pub(crate) effects: &'a Effects,
    pub(crate) frames: Vec<Frame>,
    /// The state after it.
    pub(crate) state: &'a State,
}

/// What a walk over a history shows each event to; it goes on while told so.
pub(crate) type Visit<'a> = dyn FnMut(Told<'_>) -> bool + 'a;

/// Folds a run's history up to an event. Returns how many events were folded for it, too.
///
/// # Errors
/// [`Code::Internal`] if it cannot be read, does not fit its machine, or is quarantined.
pub(crate) fn fold_until(ctx: &Context, run: &RunId, until: Seq) -> Result<(Fold, usize), ApiError> {
    let mut walk = Walk::begin(ctx, run)?;
    walk.begin_with_snapshot(until)?;
    walk.on(until, &mut |_| true)?;
    let folded = walk.folded;
    walk.fold.map(|fold| (fold, folded)).ok_or_else(|| broken(run, "its history is empty"))
}

/// Walks over events after one, up to another, with what they did.
///
/// # Errors
/// As [`fold_until`].
pub(crate) fn each_after(
    ctx: &Context,
    run: &RunId,
    (after, until): (Seq, Seq),
    visit: &mut Visit<'_>,
) -> Result<(), ApiError> {
    let since = ctx.walks.begin();
    let mut walk = Walk::begin(ctx, run)?;
    walk.begin_with_snapshot(after)?;
    walk.begin_with_walk(after);
    walk.on(after, &mut |_| true)?;
    walk.on(until, visit)?;
    if let Some(fold) = &walk.fold {
        ctx.walks.keep(since, fold);
    }
    Ok(())
}

/// Reads events after one, up to another, as they are stored: what they did is not known without folding them.
///
/// # Errors
/// [`Code::Internal`] if they cannot be read.
pub(crate) fn stored(
    store: &dyn Store,
    run: &RunId,
    (mut after, until): (Seq, Seq),
) -> Result<Vec<Event>, ApiError> {
    let mut all = Vec::new();
    while after < until {
        let page =
            usize::try_from(until.0 - after.0).unwrap_or(limits::HISTORY_PAGE).min(limits::HISTORY_PAGE);
        let events = store.history(run, after, page).map_err(|e| errors::store(&e).of_run(run))?;
        after = events.last().map_or(until, |event| event.n);
        all.extend(events);
    }
    Ok(all)
}

/// A history on the way from its beginning to its end.
struct Walk<'a> {
    ctx: &'a Context,
    run: &'a RunId,
    lineage: Vec<Segment>,
    fold: Option<Fold>,
    folded: usize,
}

impl<'a> Walk<'a> {
    fn begin(ctx: &'a Context, run: &'a RunId) -> Result<Walk<'a>, ApiError> {
        ctx.quarantine.refuse(run)?;
        let lineage = ctx.store.lineage(run).map_err(|e| errors::store(&e).of_run(run))?;
        Ok(Walk { ctx, run, lineage, fold: None, folded: 0 })
    }

    /// Begins with the newest snapshot that is not after an event: the run's own, or one of those whose history it shares.
    fn begin_with_snapshot(&mut self, until: Seq) -> Result<(), ApiError> {
        let ancestors = self.lineage.iter().rev().map(|segment| (&segment.run, segment.to.min(until)));
        for (of, newest) in std::iter::once((self.run, until)).chain(ancestors) {
            let snapshot = self.ctx.store.snapshot(of).map_err(|e| self.unreadable(&e))?;
            let Some((_, bytes)) = snapshot.filter(|(after, _)| *after <= newest) else { continue };
            // A snapshot only saves time: one that cannot be used is as good as none.
            match self.restore(&bytes) {
                Ok(state) => {
                    self.fold = Some(Fold::of(self.run.clone(), state));
                    return Ok(());
                }
                Err(why) => tracing::warn!(run = %of, why, "a snapshot cannot be used; folding the history"),
            }
        }
        Ok(())
    }

    /// Begins where an earlier walk ended, if that is nearer.
    fn begin_with_walk(&mut self, until: Seq) {
        let here = self.fold.as_ref().map_or(Seq(0), |fold| fold.state.last());
        if let Some(fold) = self.ctx.walks.furthest(self.run, until).filter(|fold| fold.state.last() > here) {
            self.fold = Some(fold);
        }
    }

    fn restore(&self, bytes: &[u8]) -> Result<State, String> {
        let snapshot: Snapshot = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
        let machine = self.ctx.flows.ready(snapshot.machine()).map_err(|e| e.message)?;
        State::restore(machine, snapshot).map_err(|e| e.to_string())
    }

    /// Goes on up to an event.
    fn on(&mut self, until: Seq, visit: &mut Visit<'_>) -> Result<(), ApiError> {
        loop {
            let after = self.fold.as_ref().map_or(Seq(0), |fold| fold.state.last());
            if after >= until {
                return Ok(());
            }
            let page = (until.0 - after.0).min(limits::HISTORY_PAGE as u64);
            let page = usize::try_from(page).unwrap_or(limits::HISTORY_PAGE);
            let events = self.ctx.store.history(self.run, after, page).map_err(|e| self.unreadable(&e))?;
            if events.is_empty() {
                let why = format!("its history ends at event {after}, its head is {until}");
                return Err(broken(self.run, &why));
            }
            let folded = catch_unwind(AssertUnwindSafe(|| self.page(&events, visit)));
            if !folded.map_err(|panic| broken(self.run, &panic_text(&*panic)))?? {
                return Ok(());
            }
        }
    }

    /// Folds events; tells whether to go on.
    fn page(&mut self, events: &[Event], visit: &mut Visit<'_>) -> Result<bool, ApiError> {
        for event in events {
            let (effects, frames) = self.apply(event)?;
            self.folded += 1;
            let Some(fold) = &self.fold else { unreachable!("an event was applied to it") };
            if !visit(Told { event, effects: &effects, frames, state: &fold.state }) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn apply(&mut self, event: &Event) -> Result<(Effects, Vec<Frame>), ApiError> {
        let owner = self.lineage.iter().find(|segment| event.n <= segment.to).map(|segment| &segment.run);
        let owner = owner.unwrap_or(self.run);
        let machine = |hash: &str| self.ctx.flows.ready(hash);
        let (fold, effects, frames) = apply(self.fold.take(), self.run, owner, event, &machine)?;
        self.fold = Some(fold);
        Ok((effects, frames))
    }

    fn unreadable(&self, error: &StoreError) -> ApiError {
        errors::store(error).of_run(self.run)
    }
}

/// Applies one event of a run's history, which belongs to `owner`: to the run itself, or to one whose history it shares.
///
/// # Errors
/// [`Code::Internal`] if the event does not fit, and what `machine` says.
pub(crate) fn apply(
    fold: Option<Fold>,
    run: &RunId,
    owner: &RunId,
    event: &Event,
    machine: &dyn Fn(&str) -> Result<Ready, ApiError>,
) -> Result<(Fold, Effects, Vec<Frame>), ApiError> {
    let diverged = |e: outlast_kernel::Diverged| broken(run, &e.to_string());
    let Some(mut fold) = fold else {
        let EventKind::Started(started) = &event.kind else {
            return Err(broken(run, "its first event starts no run"));
        };
        let machine = machine(&started.machine)?;
        let (state, effects) = State::start(machine, owner.clone(), event).map_err(diverged)?;
        let (fold, frames) = Fold::started(run.clone(), state, event, &effects);
        return Ok((fold, effects, frames));
    };
    if matches!(event.kind, EventKind::Forked { .. }) {
        fold.state = fold.state.for_fork(owner.clone());
    }
    let applied = match &event.kind {
        EventKind::Migrated(_) if breaks(Breakage::ReplayWithOldMachine) => {
            let old = fold.state.machine().clone();
            fold.migrate(event, &old)
        }
        EventKind::Migrated(migrated) => fold.migrate(event, &*machine(&migrated.to)?),
        EventKind::Started(_)
        | EventKind::Forked { .. }
        | EventKind::Configured { .. }
        | EventKind::Done { .. }
        | EventKind::Failed { .. }
        | EventKind::Begun { .. }
        | EventKind::Lost { .. }
        | EventKind::Void { .. }
        | EventKind::Handle { .. }
        | EventKind::Settled { .. }
        | EventKind::Released { .. }
        | EventKind::TimerFired { .. }
        | EventKind::Message { .. }
        | EventKind::Withdrawn { .. }
        | EventKind::Closed
        | EventKind::Answered { .. }
        | EventKind::Spawned { .. }
        | EventKind::ChildEnded { .. }
        | EventKind::Delivered { .. }
        | EventKind::Cancelled { .. }
        | EventKind::Terminated { .. } => fold.apply(event),
    };
    let (effects, frames) = applied.map_err(diverged)?;
    Ok((fold, effects, frames))
}

/// Says that a run's history is not what it should be.
pub(crate) fn broken(run: &RunId, why: &str) -> ApiError {
    ApiError::new(Code::Internal, format!("run {run} cannot be read: {why}")).of_run(run)
}
