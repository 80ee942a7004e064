//! What a batch writes: the same keys and values for every store.
//!
//! Leaves making them durable to the stores. Invariant: a batch that does not fit the stored heads gives no plan at all, and a plan
//! names every key once, because two writes of one key in one commit have no order.

use std::collections::{BTreeMap, BTreeSet};

use outlast_kernel::ids::{Millis, RunId, Seq};

use crate::blobs::{self, BlobId};
use crate::breakage::{Breakage, breaks};
use crate::codec::{record, record::HeadRecord, step};
use crate::keys::{self, Space};
use crate::limits;
use crate::lineage;
use crate::remains;
use crate::view::{self, View};
use crate::{Batch, Head, Origin, Purge, Put, RunWrite, Segment, StoreError, Summary};

/// What a batch writes.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// The keys and their values; none removes the key.
    pub(crate) writes: Vec<Write>,
    /// The heads after it, in the order of the batch's runs.
    pub(crate) heads: Vec<Head>,
    /// Bytes of all keys and values.
    pub(crate) bytes: u64,
    /// Blobs that it has looked after.
    pub(crate) blobs: BTreeSet<BlobId>,
}

/// One key and its value.
#[derive(Debug)]
pub(crate) struct Write {
    pub(crate) space: Space,
    pub(crate) key: Vec<u8>,
    pub(crate) value: Option<Vec<u8>>,
}

/// A run within the batch: where it stood in the store, and where it stands now.
struct RunNow<'a> {
    stored: Option<HeadRecord>,
    now: HeadRecord,
    summary: &'a Summary,
    snapshot: Option<(Seq, &'a [u8])>,
}

/// Plans a portion of a purge as the commit with this number; none if there is nothing to take away.
pub(crate) fn plan_purge(
    view: &impl View,
    (after, now): (Option<&RunId>, Millis),
    number: u64,
) -> Result<Option<(Plan, Purge)>, StoreError> {
    let planned = match remains::plan_purge(view, after, now)? {
        None if after.is_none() => blobs::plan_sweep(view, now)?,
        planned => planned,
    };
    let Some((mut plan, purge)) = planned else { return Ok(None) };
    plan.put(Space::Meta, keys::COMMIT.to_vec(), Some(record::encode_commit(number)));
    Ok(Some((plan, purge)))
}

/// Plans a batch as the commit with this number.
pub(crate) fn plan(view: &impl View, batch: &Batch, number: u64) -> Result<Plan, StoreError> {
    let mut plan = Plan::default();
    let mut runs = BTreeMap::<&RunId, RunNow<'_>>::new();
    for write in &batch.runs {
        plan_step(view, &mut plan, &mut runs, (write, batch))?;
    }
    for (run, now) in &runs {
        plan_views(&mut plan, run, now)?;
    }
    let mut purges = BTreeSet::new();
    for delete in &batch.deletes {
        if runs.contains_key(&delete.run) {
            return Err(invalid(&delete.run, "a deletion beside a step".into()));
        }
        remains::plan_delete(view, &mut plan, &mut purges, delete)?;
    }
    remains::plan_purges(&mut plan, purges);
    blobs::plan_puts(view, &mut plan, &batch.blobs)?;
    plan_puts(&mut plan, &batch.puts)?;
    plan.put(Space::Meta, keys::COMMIT.to_vec(), Some(record::encode_commit(number)));
    Ok(plan)
}

fn plan_step<'a>(
    view: &impl View,
    plan: &mut Plan,
    runs: &mut BTreeMap<&'a RunId, RunNow<'a>>,
    (write, batch): (&'a RunWrite, &Batch),
) -> Result<(), StoreError> {
    check(write)?;
    let (stored, found) = match runs.get(&write.run) {
        Some(earlier) => (earlier.stored, earlier.now.head),
        None => {
            let stored = view::head(view, &write.run)?;
            if stored.is_none() && remains::remains(view, &write.run)?.is_some() {
                return Err(invalid(
                    &write.run,
                    "its id is that of a deleted run of which something is left".into(),
                ));
            }
            let found = match (stored, &write.origin) {
                (None, Some(Origin::Fork { parent, at })) => {
                    plan_fork(view, plan, &write.run, (parent, *at))?
                }
                (None, Some(Origin::Copy { lineage, parent })) => {
                    plan_copy(plan, &write.run, lineage, parent)?;
                    Head::default()
                }
                (stored, _) => stored.map(|record| record.head).unwrap_or_default(),
            };
            (stored, found)
        }
    };
    if found != write.before && !breaks(Breakage::AcceptStaleWrite) {
        return Err(StoreError::Stale {
            run: write.run.clone(),
            expected: write.before.seq,
            found: found.seq,
        });
    }
    let link = if breaks(Breakage::UnlinkChain) { Head { seq: found.seq, ..Head::default() } } else { found };
    let there = blobs::there(view, batch, &write.events)?;
    let (bytes, head, held) =
        step::encode(&link, &write.events, &there).map_err(|e| invalid(&write.run, format!("{e:?}")))?;
    if bytes.len() > limits::VALUE_BYTES_MAX {
        return Err(invalid(&write.run, format!("a step of {} bytes", bytes.len())));
    }
    let key = keys::step(&write.run, head.seq);
    blobs::plan_held(view, plan, &key, held)?;
    plan.put(Space::Log, key, Some(bytes));
    plan.heads.push(head);
    let earlier = runs.get(&write.run).and_then(|earlier| earlier.snapshot);
    let now = HeadRecord { head, index: write.index, started_at: write.summary.started_at };
    let snapshot = write.snapshot.as_deref().map(|state| (head.seq, state)).or(earlier);
    runs.insert(&write.run, RunNow { stored, now, summary: &write.summary, snapshot });
    Ok(())
}

/// Plans what makes a new run a fork, and returns the head that it begins with.
fn plan_fork(
    view: &impl View,
    plan: &mut Plan,
    run: &RunId,
    (parent, at): (&RunId, Seq),
) -> Result<Head, StoreError> {
    let Some(head) = lineage::head_at(view, parent, at)? else {
        return Err(invalid(run, format!("a fork of run {parent} at event {at}, which it has not")));
    };
    plan_lineage(plan, run, &lineage::of_fork(view, parent, at)?, (parent, at))?;
    Ok(head)
}

/// Plans what makes a new run a fork whose shared events are among its own.
fn plan_copy(
    plan: &mut Plan,
    run: &RunId,
    lineage: &[(RunId, Seq)],
    (parent, at): &(RunId, Seq),
) -> Result<(), StoreError> {
    let rises = lineage.windows(2).all(|pair| pair[0].1 < pair[1].1);
    if !rises || lineage.last().map(|(_, to)| to) != Some(at) {
        return Err(invalid(run, "a lineage that does not rise to where it was forked".into()));
    }
    let held = |(of, to): &(RunId, Seq)| Segment { run: of.clone(), to: *to, held_by: run.clone() };
    plan_lineage(plan, run, &lineage.iter().map(held).collect::<Vec<_>>(), (parent, *at))
}

fn plan_lineage(
    plan: &mut Plan,
    run: &RunId,
    segments: &[Segment],
    (parent, at): (&RunId, Seq),
) -> Result<(), StoreError> {
    if parent == run {
        return Err(invalid(run, "a fork of itself".into()));
    }
    if segments.len() > limits::SEGMENTS_MAX {
        return Err(invalid(run, format!("a fork of more than {} segments", limits::SEGMENTS_MAX)));
    }
    let bytes = record::encode_lineage(segments).map_err(|e| invalid(run, format!("its lineage: {e:?}")))?;
    if !breaks(Breakage::ForgetLineage) {
        plan.put(Space::View, keys::of_run(keys::LINEAGES, run), Some(bytes));
    }
    if !breaks(Breakage::ForgetForkReference) {
        plan.put(Space::View, keys::fork(parent, at, run), Some(Vec::new()));
    }
    Ok(())
}

/// Refuses what no correct caller sends.
fn check(write: &RunWrite) -> Result<(), StoreError> {
    let refuse = |detail: &str| Err(invalid(&write.run, detail.into()));
    if write.events.is_empty() {
        return refuse("a step without events");
    }
    if write.events.len() > limits::STEP_EVENTS_MAX {
        return refuse("a step with too many events");
    }
    let numbers = write.events.iter().map(|event| event.n.0);
    if !numbers.eq((1..=write.events.len() as u64).map(|i| write.before.seq.0.saturating_add(i))) {
        return refuse("events whose numbers do not follow its head");
    }
    if write.summary.run != write.run {
        return refuse("the summary of another run");
    }
    if write.snapshot.as_ref().is_some_and(|state| state.len() > limits::VALUE_BYTES_MAX) {
        return refuse("a snapshot that is too large");
    }
    Ok(())
}

/// Plans what is kept once per run. What the store holds decides what is removed, so that views cannot drift from heads.
fn plan_views(plan: &mut Plan, run: &RunId, run_now: &RunNow<'_>) -> Result<(), StoreError> {
    let RunNow { stored, now, summary, snapshot } = run_now;
    let before = stored.map(|record| record.index).unwrap_or_default();
    plan.put(Space::View, keys::of_run(keys::HEADS, run), Some(record::encode_head(now)));
    if before.ready != now.index.ready && !breaks(Breakage::DropReadyView) {
        let value = now.index.ready.then(Vec::new);
        plan.put(Space::View, keys::of_run(keys::READY, run), value);
    }
    if before.due != now.index.due {
        if let Some(due) = before.due.filter(|_| !breaks(Breakage::KeepOldDueView)) {
            plan.put(Space::View, keys::due(due, run), None);
        }
        if let Some(due) = now.index.due.filter(|_| !breaks(Breakage::DropDueView)) {
            plan.put(Space::View, keys::due(due, run), Some(Vec::new()));
        }
    }
    if let Some(stored) = stored
        && stored.started_at != now.started_at
    {
        plan.put(Space::View, keys::listed(stored.started_at, run), None);
    }
    let bytes = record::encode_summary(summary).map_err(|e| invalid(run, format!("its summary: {e:?}")))?;
    plan.put(Space::View, keys::listed(now.started_at, run), Some(bytes));
    if let Some((after, state)) = snapshot {
        plan.put(Space::Blob, keys::snapshot(run), Some(record::encode_snapshot(*after, state)));
    }
    Ok(())
}

fn plan_puts(plan: &mut Plan, puts: &[Put]) -> Result<(), StoreError> {
    let mut last = BTreeMap::new();
    for put in puts {
        let refuse = |detail: String| {
            Err(StoreError::Invalid { what: format!("a record of table {:?}", put.table), detail })
        };
        if put.key.is_empty() || put.key.len() > limits::TABLE_KEY_BYTES_MAX {
            return refuse(format!("a key of {} bytes", put.key.len()));
        }
        if put.value.as_ref().is_some_and(|value| value.len() > limits::VALUE_BYTES_MAX) {
            return refuse("its value is too large".into());
        }
        last.insert(keys::record(put.table, &put.key), put.value.clone());
    }
    for (key, value) in last {
        plan.put(Space::Meta, key, value);
    }
    Ok(())
}

impl Plan {
    /// Plans a commit of nothing but its number.
    pub(crate) fn of_nothing(number: u64) -> Plan {
        let mut plan = Plan::default();
        plan.put(Space::Meta, keys::COMMIT.to_vec(), Some(record::encode_commit(number)));
        plan
    }

    pub(crate) fn put(&mut self, space: Space, key: Vec<u8>, value: Option<Vec<u8>>) {
        self.bytes += (key.len() + value.as_ref().map_or(0, Vec::len)) as u64;
        self.writes.push(Write { space, key, value });
    }
}

fn invalid(run: &RunId, detail: String) -> StoreError {
    StoreError::Invalid { what: format!("a write to run {run}"), detail }
}
