//! Deleted runs: what goes at once, what stays for forks, what is taken away later.
//!
//! A deletion is one small commit: head, summary and snapshot go, and a record of the remains comes. From then on there is no such run. Its
//! steps are taken away by purges, a bounded portion each, as far as no living fork shares them; the record of the remains goes last, so a
//! purge that was interrupted is found and goes on. While forks are there, also deleted ones that have forks themselves, the record stays,
//! and with it the id: steps stand under it. Invariants: a step that a living run shares is never taken away; no new run gets an id under
//! which steps stand.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use outlast_kernel::event::EventKind;
use outlast_kernel::ids::{Millis, OpId, RunId, Seq};
use serde::{Deserialize, Serialize};

use crate::blobs::{self, BlobId};
use crate::breakage::{Breakage, breaks};
use crate::codec::record;
use crate::keys::{self, Space};
use crate::limits;
use crate::lineage;
use crate::plan::Plan;
use crate::view::{self, View};
use crate::{Delete, StoreError};

/// What is left of a deleted run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remains {
    /// The run and event that it was forked from: it stands in that run's list of forks.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<(RunId, Seq)>,
    /// The operations that its forks may have open and that it had begun: a fork must not run them, though the events are gone.
    #[serde(rename = "b", default, skip_serializing_if = "Vec::is_empty")]
    pub begun: Vec<OpId>,
}

/// A portion of a purge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Purge {
    /// The run after which the next portion goes on; none: from the beginning.
    pub after: Option<RunId>,
    /// Bytes that were taken away.
    pub bytes: u64,
}

/// Returns what is left of a deleted run; none if nothing is, or it was never deleted.
pub(crate) fn remains(view: &impl View, run: &RunId) -> Result<Option<Remains>, StoreError> {
    let Some(bytes) = view.get(Space::View, &keys::of_run(keys::REMAINS, run))? else { return Ok(None) };
    record::decode_remains(&bytes).map(Some).map_err(|e| e.at(format!("the remains of run {run}")))
}

/// Returns deleted runs of which something is left, in the order of ids.
pub(crate) fn deleted(
    view: &impl View,
    after: Option<&RunId>,
    limit: usize,
) -> Result<Vec<RunId>, StoreError> {
    runs_in(view, keys::REMAINS, after, limit.min(limits::READ_MAX))
}

/// Plans the deletion of a run; `purges` collects the deleted runs of which something may be taken away then.
pub(crate) fn plan_delete(
    view: &impl View,
    plan: &mut Plan,
    purges: &mut BTreeSet<RunId>,
    delete: &Delete,
) -> Result<(), StoreError> {
    let Delete { run, before } = delete;
    let record = view::head(view, run)?;
    let Some(record) = record.filter(|record| record.head == *before) else {
        let found = record.map_or(Seq(0), |record| record.head.seq);
        return Err(StoreError::Stale { run: run.clone(), expected: before.seq, found });
    };
    let remains = Remains { parent: parent(view, run)?, begun: begun(view, run)? };
    let bytes = record::encode_remains(&remains).map_err(|e| e.at(format!("the remains of run {run}")))?;
    plan.put(Space::View, keys::of_run(keys::REMAINS, run), Some(bytes));
    plan.put(Space::View, keys::of_run(keys::HEADS, run), None);
    plan.put(Space::View, keys::listed(record.started_at, run), None);
    if record.index.ready {
        plan.put(Space::View, keys::of_run(keys::READY, run), None);
    }
    if let Some(due) = record.index.due {
        plan.put(Space::View, keys::due(due, run), None);
    }
    let snapshot = keys::snapshot(run);
    if view.has(Space::Blob, &snapshot)? {
        plan.put(Space::Blob, snapshot, None);
    }
    purges.insert(run.clone());
    for segment in lineage::lineage(view, run)? {
        if remains_of(view, &segment.held_by)? {
            purges.insert(segment.held_by);
        }
    }
    Ok(())
}

/// Plans that deleted runs are looked at by the next purge.
pub(crate) fn plan_purges(plan: &mut Plan, purges: BTreeSet<RunId>) {
    for run in purges {
        plan.put(Space::View, keys::of_run(keys::PURGES, &run), Some(Vec::new()));
    }
}

/// Plans a portion of what is to be taken away, of runs after one; none if there is nothing.
pub(crate) fn plan_purge(
    view: &impl View,
    after: Option<&RunId>,
    now: Millis,
) -> Result<Option<(Plan, Purge)>, StoreError> {
    let runs = runs_in(view, keys::PURGES, after, limits::PURGE_RUNS)?;
    if runs.is_empty() {
        return Ok(None);
    }
    let (mut plan, mut purge) = (Plan::default(), Purge { after: after.cloned(), bytes: 0 });
    let mut gone = Vec::new();
    for run in runs {
        let kin = Kin::of(view, &run)?;
        // What relatives write of each other must not meet in one portion.
        if kin.any() && !plan.writes.is_empty() {
            break;
        }
        if !purge_run(view, &mut plan, (&mut purge, &mut gone), &run, &kin)? {
            break;
        }
        purge.after = Some(run);
        if kin.any() {
            break;
        }
    }
    blobs::plan_gone(view, &mut plan, &mut purge, &gone, now)?;
    Ok(Some((plan, purge)))
}

/// The relatives of a deleted run.
struct Kin {
    parent: Option<(RunId, Seq)>,
    is_fork: bool,
    has_forks: bool,
}

impl Kin {
    fn of(view: &impl View, run: &RunId) -> Result<Kin, StoreError> {
        let parent = remains(view, run)?.and_then(|remains| remains.parent);
        let is_fork = view.has(Space::View, &keys::of_run(keys::LINEAGES, run))?;
        let has_forks = !lineage::forks(view, run, None, 1)?.is_empty();
        Ok(Kin { parent, is_fork, has_forks })
    }

    fn any(&self) -> bool {
        self.parent.is_some() || self.is_fork || self.has_forks
    }
}

/// Plans what is taken away of one run; tells whether that is all.
fn purge_run(
    view: &impl View,
    plan: &mut Plan,
    (purge, gone): (&mut Purge, &mut Vec<(BlobId, Vec<u8>)>),
    run: &RunId,
    kin: &Kin,
) -> Result<bool, StoreError> {
    let shared = if kin.has_forks { shared(view, run)? } else { Seq(0) };
    let shared = if breaks(Breakage::PurgeWhatForksShare) { Seq(0) } else { shared };
    let (from, to) = (keys::step(run, shared.next()), keys::after(keys::step(run, Seq(u64::MAX))));
    let mut all = true;
    view.scan(Space::Log, &from, &to, &mut |key, value| {
        let step = view::step_at(run, key, value);
        // What cannot be read and nobody shares goes all the same; the check tells what it held.
        let step = match step {
            Ok(step) if step.first <= shared => return Ok(ControlFlow::Continue(())), // A fork begins within it.
            Ok(step) => Some(step),
            Err(StoreError::Damaged { .. } | StoreError::Newer { .. }) if !kin.has_forks => None,
            Err(error) => return Err(error),
        };
        if plan.writes.len() + gone.len() >= limits::PURGE_KEYS {
            all = false;
            return Ok(ControlFlow::Break(()));
        }
        purge.bytes += (key.len() + value.len()) as u64;
        let held = step.and_then(|step| step.blobs().ok()).unwrap_or_default();
        gone.extend(held.into_iter().map(|id| (id, key.to_vec())));
        plan.put(Space::Log, key.to_vec(), None);
        Ok(ControlFlow::Continue(()))
    })?;
    if !all {
        return Ok(false);
    }
    plan.put(Space::View, keys::of_run(keys::PURGES, run), None);
    if kin.has_forks {
        return Ok(true);
    }
    plan.put(Space::View, keys::of_run(keys::REMAINS, run), None);
    if kin.is_fork {
        plan.put(Space::View, keys::of_run(keys::LINEAGES, run), None);
    }
    if let Some((parent, at)) = &kin.parent {
        plan.put(Space::View, keys::fork(parent, *at, run), None);
        if remains_of(view, parent)? {
            // It may have stood there for this one only.
            plan_purges(plan, BTreeSet::from([parent.clone()]));
        }
    }
    Ok(true)
}

/// Returns the last of a run's own events that a living run shares.
fn shared(view: &impl View, run: &RunId) -> Result<Seq, StoreError> {
    let (mut open, mut seen) = (vec![run.clone()], BTreeSet::from([run.clone()]));
    let mut last = Seq(0);
    while let Some(of) = open.pop() {
        each_fork(view, &of, &mut |_, fork| {
            if !seen.insert(fork.clone()) {
                return Ok(());
            }
            if view::head(view, &fork)?.is_some() {
                let segments = lineage::lineage(view, &fork)?;
                let own = segments.iter().filter(|segment| segment.held_by == *run);
                last = own.map(|segment| segment.to).fold(last, Seq::max);
            }
            open.push(fork);
            Ok(())
        })?;
    }
    Ok(last)
}

fn each_fork(
    view: &impl View,
    run: &RunId,
    visit: &mut dyn FnMut(Seq, RunId) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut after = None;
    loop {
        let page = lineage::forks(view, run, after.as_ref(), limits::READ_MAX)?;
        after = page.last().cloned();
        if after.is_none() {
            return Ok(());
        }
        for (at, fork) in page {
            visit(at, fork)?;
        }
    }
}

/// Returns the run in whose list of forks a fork stands, and where it begins.
fn parent(view: &impl View, run: &RunId) -> Result<Option<(RunId, Seq)>, StoreError> {
    let segments = lineage::lineage(view, run)?;
    let Some(at) = segments.last().map(|segment| segment.to) else { return Ok(None) };
    for segment in segments.into_iter().rev() {
        if view.has(Space::View, &keys::fork(&segment.run, at, run))? {
            return Ok(Some((segment.run, at)));
        }
    }
    // A fork that begins within what its parent shares itself has no event of its parent, so the lineage does not name it.
    let mut found = None;
    view.scan(Space::View, &[keys::FORKS], &[keys::FORKS + 1], &mut |key, _| {
        found = keys::parse_fork(key).filter(|(_, _, fork)| fork == run);
        Ok(if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    Ok(found.map(|(parent, at, _)| (parent, at)))
}

/// Returns the operations that a run with forks had begun, of those that its forks may have open.
fn begun(view: &impl View, run: &RunId) -> Result<Vec<OpId>, StoreError> {
    let mut begun = BTreeSet::new();
    if lineage::forks(view, run, None, 1)?.is_empty() || breaks(Breakage::ForgetBegunOfDeleted) {
        return Ok(Vec::new());
    }
    let shared = shared(view, run)?;
    let (from, to) = (keys::step(run, Seq(0)), keys::after(keys::step(run, Seq(u64::MAX))));
    view.scan(Space::Log, &from, &to, &mut |key, value| {
        let events = view::step_at(run, key, value)?.events_after(Seq(0), usize::MAX);
        for event in events.map_err(|e| e.at(format!("the history of run {run}")))?.0 {
            if let EventKind::Begun { op, .. } = event.kind
                && op.0 <= shared
            {
                begun.insert(op);
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(begun.into_iter().collect())
}

fn remains_of(view: &impl View, run: &RunId) -> Result<bool, StoreError> {
    view.has(Space::View, &keys::of_run(keys::REMAINS, run))
}

fn runs_in(
    view: &impl View,
    list: u8,
    after: Option<&RunId>,
    limit: usize,
) -> Result<Vec<RunId>, StoreError> {
    let from = after.map_or(vec![list], |run| keys::after(keys::of_run(list, run)));
    let mut runs = Vec::new();
    view.scan(Space::View, &from, &[list + 1], &mut |key, _| {
        if runs.len() >= limit {
            return Ok(ControlFlow::Break(()));
        }
        runs.push(keys::parse_of_run(key).ok_or_else(|| StoreError::Damaged {
            what: "a list of deleted runs".into(),
            detail: "a key cannot be read".into(),
        })?);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(runs)
}
