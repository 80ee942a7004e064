//! Reads, the same for every store: over a view, a consistent picture of all keyspaces.
//!
//! Leaves making a view to the stores. Invariant: the work of one call is bounded by its limit (see [`crate::limits`]).

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use outlast_kernel::event::Event;
use outlast_kernel::ids::{Millis, RunId, Seq};

use crate::blobs;
use crate::codec::{record, record::HeadRecord, step};
use crate::keys::{self, Space};
use crate::limits;
use crate::lineage;
use crate::{Filter, Page, Record, StoreError, Summary, Table, Usage};

/// A consistent picture of all keyspaces.
pub(crate) trait View {
    /// Returns a value.
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError>;

    /// Returns the bytes that a value has, without reading it; none if there is none.
    fn size(&self, space: Space, key: &[u8]) -> Result<Option<u64>, StoreError>;

    /// Tells whether there is a value, without reading it.
    fn has(&self, space: Space, key: &[u8]) -> Result<bool, StoreError> {
        Ok(self.size(space, key)?.is_some())
    }

    /// Visits keys in `from..to` in their order until told to stop.
    fn scan(&self, space: Space, from: &[u8], to: &[u8], visit: &mut Visit<'_>) -> Result<(), StoreError>;
}

/// What a scan calls with each key and value.
pub(crate) type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> Result<ControlFlow<()>, StoreError> + 'a;

pub(crate) fn head(view: &impl View, run: &RunId) -> Result<Option<HeadRecord>, StoreError> {
    let Some(bytes) = view.get(Space::View, &keys::of_run(keys::HEADS, run))? else { return Ok(None) };
    record::decode_head(&bytes).map(Some).map_err(|e| e.at(format!("the head of run {run}")))
}

pub(crate) fn history(
    view: &impl View,
    run: &RunId,
    after: Seq,
    limit: usize,
) -> Result<Vec<Event>, StoreError> {
    let limit = limit.min(limits::READ_MAX);
    let (mut events, mut after) = (Vec::new(), after);
    if limit == 0 || after.0 == u64::MAX {
        return Ok(events);
    }
    for segment in lineage::lineage(view, run)? {
        if after < segment.to && events.len() < limit {
            own_history(view, &segment.held_by, (after, segment.to), limit, &mut events)?;
            let last = events.last().map_or(after, |event: &Event| event.n);
            if last < segment.to && events.len() < limit {
                let missing = format!("event {} is missing, which fork {run} shares", last.next());
                return Err(damaged(&segment.held_by, missing));
            }
            after = segment.to;
        }
    }
    if events.len() < limit {
        own_history(view, run, (after, Seq(u64::MAX)), limit, &mut events)?;
    }
    Ok(events)
}

/// Reads events that stand under a run's own id: those after one, up to another.
fn own_history(
    view: &impl View,
    run: &RunId,
    (after, until): (Seq, Seq),
    limit: usize,
    events: &mut Vec<Event>,
) -> Result<(), StoreError> {
    let mut next = None;
    let (from, to) = (keys::step(run, after.next()), keys::after(keys::step(run, Seq(u64::MAX))));
    view.scan(Space::Log, &from, &to, &mut |key, value| {
        let step = step_at(run, key, value)?;
        let gap = next.map_or(step.first > after.next(), |next| next != step.first);
        if gap {
            return Err(damaged(run, format!("events are missing before event {}", step.first)));
        }
        next = Some(step.last().next());
        let found = step.events_after(after, limit - events.len());
        let (mut found, filling) = found.map_err(|e| e.at(place(run, step.first)))?;
        blobs::fill(view, run, &mut found, filling)?;
        events.extend(found.into_iter().take_while(|event| event.n <= until));
        let more = events.len() < limit && step.last() < until;
        Ok(if more { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })
}

/// Reads a step and checks that it stands where its header says.
pub(crate) fn step_at<'a>(run: &RunId, key: &[u8], value: &'a [u8]) -> Result<step::Step<'a>, StoreError> {
    let Some((of, last)) = keys::parse_step(key) else {
        return Err(damaged(run, "a key of its history cannot be read".into()));
    };
    let step = step::decode(value).map_err(|e| e.at(format!("run {of}, the step up to event {last}")))?;
    if &of == run && step.last() == last {
        return Ok(step);
    }
    Err(damaged(run, format!("the step of events {} to {} stands at event {last}", step.first, step.last())))
}

pub(crate) fn summary(view: &impl View, run: &RunId) -> Result<Option<Summary>, StoreError> {
    let Some(record) = head(view, run)? else { return Ok(None) };
    match view.get(Space::View, &keys::listed(record.started_at, run))? {
        Some(bytes) => summary_in(run, &bytes).map(Some),
        None => Err(damaged(run, "it has no summary".into())),
    }
}

fn summary_in(run: &RunId, bytes: &[u8]) -> Result<Summary, StoreError> {
    record::decode_summary(bytes).map_err(|e| e.at(format!("the summary of run {run}")))
}

pub(crate) fn summaries(view: &impl View, filter: &Filter) -> Result<Page, StoreError> {
    let limit = if filter.limit == 0 { limits::PAGE_DEFAULT } else { filter.limit.min(limits::PAGE_MAX) };
    let from = match &filter.after {
        Some(cursor) => keys::after(parse_cursor(cursor)?),
        None => filter.started_before.map_or(vec![keys::LIST], keys::listed_before),
    };
    let mut page = Page::default();
    let mut looked_at = 0;
    let mut last = None;
    view.scan(Space::View, &from, &[keys::LIST + 1], &mut |key, value| {
        if page.items.len() == limit || looked_at == limits::PAGE_SCAN_MAX {
            page.next = last.as_ref().map(|(time, run): &(Millis, RunId)| format!("{}_{run}", time.0));
            return Ok(ControlFlow::Break(()));
        }
        looked_at += 1;
        let (time, run) = keys::parse_listed(key).ok_or_else(|| unreadable("the list of runs"))?;
        let summary = summary_in(&run, value)?;
        last = Some((time, run));
        if fits(filter, &summary) {
            page.items.push(summary);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(page)
}

fn fits(filter: &Filter, summary: &Summary) -> bool {
    (filter.statuses.is_empty()
        || filter.statuses.contains(&summary.status)
        || filter.besides.contains(&summary.run))
        && filter.flow.as_ref().is_none_or(|flow| *flow == summary.flow)
        && filter.profile.as_ref().is_none_or(|profile| *profile == summary.profile)
}

fn parse_cursor(cursor: &str) -> Result<Vec<u8>, StoreError> {
    let parse = || {
        let (time, run) = cursor.split_once('_')?;
        Some(keys::listed(Millis(time.parse().ok()?), &RunId::new(run).ok()?))
    };
    parse().ok_or_else(|| {
        let shown: String = cursor.chars().take(40).collect();
        StoreError::Invalid { what: format!("the cursor {shown:?}"), detail: "no page gave it".into() }
    })
}

pub(crate) fn snapshot(view: &impl View, run: &RunId) -> Result<Option<(Seq, Vec<u8>)>, StoreError> {
    let Some(bytes) = view.get(Space::Blob, &keys::snapshot(run))? else { return Ok(None) };
    record::decode_snapshot(&bytes).map(Some).map_err(|e| e.at(format!("the snapshot of run {run}")))
}

pub(crate) fn ready(view: &impl View, after: Option<&RunId>, limit: usize) -> Result<Vec<RunId>, StoreError> {
    let limit = limit.min(limits::READ_MAX);
    let from = after.map_or(vec![keys::READY], |run| keys::after(keys::of_run(keys::READY, run)));
    let mut runs = Vec::new();
    view.scan(Space::View, &from, &[keys::READY + 1], &mut |key, _| {
        if runs.len() >= limit {
            return Ok(ControlFlow::Break(()));
        }
        runs.push(keys::parse_of_run(key).ok_or_else(|| unreadable("the list of ready runs"))?);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(runs)
}

pub(crate) fn due(
    view: &impl View,
    after: Option<&(Millis, RunId)>,
    before: Millis,
    limit: usize,
) -> Result<Vec<(Millis, RunId)>, StoreError> {
    let limit = limit.min(limits::READ_MAX);
    let from = after.map_or(vec![keys::DUE], |(time, run)| keys::after(keys::due(*time, run)));
    let to = keys::due_end(before);
    let mut found = Vec::new();
    if from >= to {
        return Ok(found);
    }
    view.scan(Space::View, &from, &to, &mut |key, _| {
        if found.len() >= limit {
            return Ok(ControlFlow::Break(()));
        }
        found.push(keys::parse_due(key).ok_or_else(|| unreadable("the list of due times"))?);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}

pub(crate) fn get(view: &impl View, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
    view.get(Space::Meta, &keys::record(table, key))
}

pub(crate) fn list(view: &impl View, table: Table) -> Result<Vec<Record>, StoreError> {
    let from = keys::record(table, &[]);
    let to = [from[0] + 1];
    let mut found = Vec::new();
    view.scan(Space::Meta, &from, &to, &mut |key, value| {
        found.push((key[1..].to_vec(), value.to_vec()));
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}

/// Counts the bytes that a run has for itself.
pub(crate) fn usage(view: &impl View, run: &RunId) -> Result<Usage, StoreError> {
    let mut usage = Usage::default();
    let mut blobs = BTreeSet::new();
    let (from, to) = (keys::step(run, Seq(0)), keys::after(keys::step(run, Seq(u64::MAX))));
    view.scan(Space::Log, &from, &to, &mut |key, value| {
        usage.history_bytes += weight(key, value);
        blobs.extend(
            step_at(run, key, value)?.blobs().map_err(|e| e.at(format!("the history of run {run}")))?,
        );
        Ok(ControlFlow::Continue(()))
    })?;
    for id in blobs {
        usage.blob_bytes += view.size(Space::Blob, &keys::blob(&id))?.unwrap_or_default();
    }
    let snapshot = keys::snapshot(run);
    if let Some(value) = view.get(Space::Blob, &snapshot)? {
        usage.snapshot_bytes = weight(&snapshot, &value);
    }
    if let Some(record) = head(view, run)? {
        for key in [
            keys::of_run(keys::HEADS, run),
            keys::of_run(keys::LINEAGES, run),
            keys::listed(record.started_at, run),
        ] {
            usage.index_bytes += view.get(Space::View, &key)?.map_or(0, |value| weight(&key, &value));
        }
    }
    Ok(usage)
}

fn weight(key: &[u8], value: &[u8]) -> u64 {
    (key.len() + value.len()) as u64
}

/// Returns the number of the last commit; 0 before the first.
pub(crate) fn commit_number(view: &impl View) -> Result<u64, StoreError> {
    let Some(bytes) = view.get(Space::Meta, keys::COMMIT)? else { return Ok(0) };
    record::decode_commit(&bytes).map_err(|e| e.at("the number of the last commit".into()))
}

fn place(run: &RunId, first: Seq) -> String {
    format!("run {run}, the step from event {first} on")
}

fn damaged(run: &RunId, detail: String) -> StoreError {
    StoreError::Damaged { what: format!("run {run}"), detail }
}

fn unreadable(list: &str) -> StoreError {
    StoreError::Damaged { what: list.into(), detail: "a key cannot be read".into() }
}
