//! Forks: whose history a run goes on from.
//!
//! A fork stores its own events only. Its lineage names the segments of other runs that come before them, and each parent has a
//! list of its forks. Leaves writing both to `plan`. Invariant: nothing here changes a byte of the parent.

use std::ops::ControlFlow;

use outlast_kernel::ids::{RunId, Seq};

use crate::codec::record;
use crate::keys::{self, Space};
use crate::limits;
use crate::view::{self, View};
use crate::{Head, Segment, StoreError};

/// Returns the parts of a fork's history that stand in other runs, oldest first.
pub(crate) fn lineage(view: &impl View, run: &RunId) -> Result<Vec<Segment>, StoreError> {
    match view.get(Space::View, &keys::of_run(keys::LINEAGES, run))? {
        Some(bytes) => record::decode_lineage(&bytes).map_err(|e| e.at(format!("the lineage of run {run}"))),
        None => Ok(Vec::new()),
    }
}

/// Returns the lineage of a fork of a run at an event.
pub(crate) fn of_fork(view: &impl View, parent: &RunId, at: Seq) -> Result<Vec<Segment>, StoreError> {
    let mut segments = lineage(view, parent)?;
    segments.push(Segment { run: parent.clone(), to: Seq(u64::MAX), held_by: parent.clone() });
    let cut = segments.iter().position(|segment| at <= segment.to).unwrap_or_default();
    segments.truncate(cut + 1);
    if let Some(last) = segments.last_mut() {
        last.to = at;
    }
    Ok(segments)
}

/// Returns the head that a fork of a run at an event begins with: the chain goes on from the step that holds the event.
pub(crate) fn head_at(view: &impl View, run: &RunId, at: Seq) -> Result<Option<Head>, StoreError> {
    let Some(record) = view::head(view, run)? else { return Ok(None) };
    if at == Seq(0) || at > record.head.seq {
        return Ok(None);
    }
    match of_fork(view, run, at)?.last() {
        Some(segment) => head_in(view, &segment.held_by, at).map(Some),
        None => Ok(None),
    }
}

/// Returns the head that a run's own events begin with.
pub(crate) fn begins(view: &impl View, run: &RunId) -> Result<Head, StoreError> {
    match lineage(view, run)?.last() {
        Some(segment) if segment.held_by != *run => head_in(view, &segment.held_by, segment.to),
        Some(_) | None => Ok(Head::default()),
    }
}

fn head_in(view: &impl View, run: &RunId, at: Seq) -> Result<Head, StoreError> {
    let mut found = None;
    let (from, to) = (keys::step(run, at), keys::after(keys::step(run, Seq(u64::MAX))));
    view.scan(Space::Log, &from, &to, &mut |key, value| {
        let step = view::step_at(run, key, value)?;
        found = (step.first <= at).then_some(Head { seq: at, chain: step.chain });
        Ok(ControlFlow::Break(()))
    })?;
    found.ok_or_else(|| StoreError::Damaged {
        what: format!("run {run}"),
        detail: format!("event {at} is missing, from which a fork goes on"),
    })
}

/// Returns a run's forks by where they begin.
pub(crate) fn forks(
    view: &impl View,
    run: &RunId,
    after: Option<&(Seq, RunId)>,
    limit: usize,
) -> Result<Vec<(Seq, RunId)>, StoreError> {
    let limit = limit.min(limits::READ_MAX);
    let all = keys::forks_of(run);
    let from = after.map_or_else(|| all.clone(), |(at, fork)| keys::after(keys::fork(run, *at, fork)));
    let to = [all.as_slice(), &[0xff; 9]].concat();
    let mut forks = Vec::new();
    view.scan(Space::View, &from, &to, &mut |key, _| {
        if forks.len() >= limit {
            return Ok(ControlFlow::Break(()));
        }
        let (_, at, fork) = keys::parse_fork(key).ok_or_else(|| StoreError::Damaged {
            what: format!("the list of forks of run {run}"),
            detail: "a key cannot be read".into(),
        })?;
        forks.push((at, fork));
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(forks)
}
