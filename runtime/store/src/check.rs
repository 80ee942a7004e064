//! The check that `doctor` runs: every history whole, every view as its head says.
//!
//! Leaves repairing to people. Invariant: reads only; a finding names the run, so that the others can go on.

use std::ops::ControlFlow;

use outlast_kernel::ids::{RunId, Seq};

use crate::blobs::{self, BlobId};
use crate::codec::record::{self, HeadRecord};
use crate::keys::{self, Space};
use crate::limits;
use crate::lineage;
use crate::remains;
use crate::view::{self, View};
use crate::{Head, StoreError};

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Runs looked at.
    pub runs: u64,
    /// Events decoded, with their chain verified.
    pub events: u64,
    /// What is wrong, at most 100 lines; empty if all is well.
    pub findings: Vec<String>,
}

impl Report {
    fn find(&mut self, finding: String) {
        if self.findings.len() < limits::FINDINGS_MAX {
            self.findings.push(finding);
        }
    }
}

pub(crate) fn check(view: &impl View) -> Result<Report, StoreError> {
    let mut report = Report::default();
    view.scan(Space::View, &[keys::HEADS], &[keys::HEADS + 1], &mut |key, value| {
        report.runs += 1;
        let Some(run) = keys::parse_of_run(key) else {
            report.find("a key of the heads cannot be read".into());
            return Ok(ControlFlow::Continue(()));
        };
        match record::decode_head(value) {
            Ok(record) => check_run(view, &run, &record, &mut report)?,
            Err(e) => report.find(e.at(format!("the head of run {run}")).to_string()),
        }
        Ok(ControlFlow::Continue(()))
    })?;
    check_lists(view, &mut report)?;
    check_remains(view, &mut report)?;
    check_blobs(view, &mut report)?;
    Ok(report)
}

/// Looks for blobs and references that no step explains.
fn check_blobs(view: &impl View, report: &mut Report) -> Result<(), StoreError> {
    view.scan(Space::Blob, &[keys::BLOBS], &[keys::BLOBS + 1], &mut |key, value| {
        let Some(id) = keys::parse_blob(key) else {
            report.find("a key of the blobs cannot be read".into());
            return Ok(ControlFlow::Continue(()));
        };
        if BlobId::of(value) != id {
            report.find(format!("blob {id}: its bytes have another hash"));
        }
        if blobs::users(view, &id, 1)?.is_empty() && !view.has(Space::Blob, &keys::waiting(&id))? {
            report.find(format!("blob {id}: nobody names it, and it will not be taken away"));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    view.scan(Space::Blob, &[keys::REFERENCES], &[keys::REFERENCES + 1], &mut |key, _| {
        let there = keys::parse_reference(key).map(|(_, step)| view.has(Space::Log, step)).transpose()?;
        if there != Some(true) {
            report.find("a reference to a blob is of a step that is not there".into());
        }
        Ok(ControlFlow::Continue(()))
    })
}

/// Looks for remains of deleted runs that nothing needs and nothing will take away.
fn check_remains(view: &impl View, report: &mut Report) -> Result<(), StoreError> {
    view.scan(Space::View, &[keys::REMAINS], &[keys::REMAINS + 1], &mut |key, value| {
        let Some(run) = keys::parse_of_run(key) else {
            report.find("a key of the deleted runs cannot be read".into());
            return Ok(ControlFlow::Continue(()));
        };
        if let Err(e) = record::decode_remains(value) {
            report.find(e.at(format!("the remains of run {run}")).to_string());
        }
        let is_due = view.has(Space::View, &keys::of_run(keys::PURGES, &run))?;
        if !is_due && lineage::forks(view, &run, None, 1)?.is_empty() {
            report.find(format!("run {run}: it was deleted, and what is left of it will not be taken away"));
        }
        if view.has(Space::View, &keys::of_run(keys::HEADS, &run))? {
            report.find(format!("run {run}: it is there, and was deleted"));
        }
        Ok(ControlFlow::Continue(()))
    })
}

fn check_run(
    view: &impl View,
    run: &RunId,
    record: &HeadRecord,
    report: &mut Report,
) -> Result<(), StoreError> {
    let begins = match lineage::begins(view, run) {
        Ok(head) => head,
        Err(e @ (StoreError::Damaged { .. } | StoreError::Newer { .. })) => {
            report.find(e.to_string());
            return Ok(());
        }
        Err(e) => return Err(e),
    };
    match walk(view, run, begins, &mut report.events) {
        Ok(head) if head == record.head => {}
        Ok(head) => report.find(format!(
            "run {run}: its history ends at event {}, its head says event {} or another chain",
            head.seq, record.head.seq
        )),
        Err(e @ (StoreError::Damaged { .. } | StoreError::Newer { .. })) => report.find(e.to_string()),
        Err(e) => return Err(e),
    }
    let ready = view.get(Space::View, &keys::of_run(keys::READY, run))?.is_some();
    if ready != record.index.ready {
        report.find(format!("run {run}: listed as ready: {ready}; its head says {}", record.index.ready));
    }
    if let Some(due) = record.index.due
        && view.get(Space::View, &keys::due(due, run))?.is_none()
    {
        report.find(format!("run {run}: due at {}, but not listed", due.0));
    }
    match view::summary(view, run) {
        Ok(Some(summary)) if summary.run == *run => {}
        Ok(_) => report.find(format!("run {run}: its summary is another run's")),
        Err(e) => report.find(e.to_string()),
    }
    match view::snapshot(view, run) {
        Ok(Some((after, _))) if after > record.head.seq => {
            report.find(format!("run {run}: its snapshot is of event {after}, after its last"));
        }
        Ok(_) => {}
        Err(e) => report.find(e.to_string()),
    }
    Ok(())
}

/// Reads a run's own part of its history: numbers without a gap, every event decoded, every link of the chain.
fn walk(view: &impl View, run: &RunId, begins: Head, events: &mut u64) -> Result<Head, StoreError> {
    let mut head = begins;
    let damaged = |detail: String| StoreError::Damaged { what: format!("run {run}"), detail };
    let (from, to) = (keys::step(run, Seq(0)), keys::after(keys::step(run, Seq(u64::MAX))));
    view.scan(Space::Log, &from, &to, &mut |key, value| {
        let step = view::step_at(run, key, value)?;
        if step.first != head.seq.next() {
            return Err(damaged(format!("event {} follows event {}", step.first, head.seq)));
        }
        if !step.follows(&head.chain) {
            return Err(damaged(format!("the chain breaks at event {}", step.first)));
        }
        let place = || format!("run {run}, the step from event {} on", step.first);
        let (mut found, filling) = step.events_after(Seq(0), usize::MAX).map_err(|e| e.at(place()))?;
        *events += found.len() as u64;
        blobs::fill(view, run, &mut found, filling)?;
        for id in step.blobs().map_err(|e| e.at(place()))? {
            let is_referred = view.has(Space::Blob, &keys::reference(&id, key))?;
            if !is_referred || !view.has(Space::Blob, &keys::blob(&id))? {
                return Err(damaged(format!(
                    "event {} and on need blob {id}, which is not kept for them",
                    step.first
                )));
            }
        }
        head = Head { seq: step.last(), chain: step.chain };
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(head)
}

/// Looks for entries of lists, and steps, that no head explains.
fn check_lists(view: &impl View, report: &mut Report) -> Result<(), StoreError> {
    let ready = Fits {
        list: "the list of ready runs",
        parse: keys::parse_of_run,
        also_deleted: false,
        explained: &|head, _| head.index.ready,
        once_per_run: false,
    };
    explain(view, report, Space::View, keys::READY, &ready)?;
    let due = Fits {
        list: "the list of due times",
        parse: |key| keys::parse_due(key).map(|(_, run)| run),
        explained: &|head, key| head.index.due == keys::parse_due(key).map(|(due, _)| due),
        ..ready
    };
    explain(view, report, Space::View, keys::DUE, &due)?;
    let listed = Fits {
        list: "the list of runs",
        parse: |key| keys::parse_listed(key).map(|(_, run)| run),
        explained: &|head, key| Some(head.started_at) == keys::parse_listed(key).map(|(start, _)| start),
        ..ready
    };
    explain(view, report, Space::View, keys::LIST, &listed)?;
    let lineages =
        Fits { list: "the list of lineages", also_deleted: true, explained: &|_, _| true, ..ready };
    explain(view, report, Space::View, keys::LINEAGES, &lineages)?;
    let forks = Fits {
        list: "the list of forks",
        parse: |key| keys::parse_fork(key).map(|(_, _, fork)| fork),
        ..lineages
    };
    explain(view, report, Space::View, keys::FORKS, &forks)?;
    let steps = Fits {
        list: "the histories",
        parse: |key| keys::parse_step(key).map(|(run, _)| run),
        once_per_run: true,
        ..lineages
    };
    explain_range(view, report, Space::Log, (&[0], &[0xff]), &steps)
}

fn explain(
    view: &impl View,
    report: &mut Report,
    space: Space,
    list: u8,
    fits: &Fits<'_>,
) -> Result<(), StoreError> {
    explain_range(view, report, space, (&[list], &[list + 1]), fits)
}

fn explain_range(
    view: &impl View,
    report: &mut Report,
    space: Space,
    (from, to): (&[u8], &[u8]),
    fits: &Fits<'_>,
) -> Result<(), StoreError> {
    let list = fits.list;
    let mut seen = None;
    view.scan(space, from, to, &mut |key, _| {
        let Some(run) = (fits.parse)(key) else {
            report.find(format!("a key of {list} cannot be read"));
            return Ok(ControlFlow::Continue(()));
        };
        if fits.once_per_run && seen.as_ref() == Some(&run) {
            return Ok(ControlFlow::Continue(()));
        }
        let explained = match view::head(view, &run) {
            Ok(Some(head)) => (fits.explained)(&head, key),
            Ok(None) => fits.also_deleted && remains::remains(view, &run)?.is_some(),
            Err(StoreError::Damaged { .. } | StoreError::Newer { .. }) => true, // Found already.
            Err(e) => return Err(e),
        };
        if !explained {
            report.find(format!("run {run}: it is in {list}, but its head does not say so"));
        }
        seen = Some(run);
        Ok(ControlFlow::Continue(()))
    })
}

/// How the entries of one list are explained by heads.
struct Fits<'a> {
    list: &'a str,
    parse: fn(&[u8]) -> Option<RunId>,
    /// Whether a deleted run may stand there.
    also_deleted: bool,
    explained: &'a dyn Fn(&HeadRecord, &[u8]) -> bool,
    once_per_run: bool,
}
