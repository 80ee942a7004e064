//! What the engine counts since it was opened, and what it shows with it.
//!
//! Leaves how that is written to `metrics` and who may read it to `http`. Invariant: what is counted of a run's history is durable; no
//! name, label or help text says anything of one run.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use outlast_kernel::State;
use outlast_kernel::event::{Event, EventKind, LostWhy};
use outlast_kernel::ids::{Attempt, Millis, OpId};
use outlast_kernel::input::Report;
use outlast_kernel::operation::OperationKind;
use outlast_protocol::worker::ReceiptStatus;
use outlast_store::Summary;

use super::Engine;
use super::census::Census;
use super::committer::{Step, Work};
use super::dispatch::{Lane, WorkId};
use super::live::Live;
use crate::metrics::{Counter, Durations, Family, Kind, Labelled, Sample};
use crate::telemetry::{Begun, Counts, Note, Spans};

/// The engine's counters.
pub(crate) struct Counters {
    census: Mutex<Census>,
    spans: Option<Spans>,
    /// By kind.
    events: Labelled<1>,
    event_bytes: Counter,
    /// How long group commits took, sync included.
    pub(crate) commits: Durations,
    write_failures: Labelled<1>,
    /// Runs that could not be put back to work.
    pub(crate) recovery_failures: Counter,
    /// Runs that a fault of the kernel stopped.
    pub(crate) faults: Counter,
    /// By queue.
    handed_out: Labelled<1>,
    /// By queue and outcome.
    reported: Labelled<2>,
    dropped_reports: Labelled<1>,
    lost: Labelled<1>,
    in_doubt: Counter,
    questions_overdue: Counter,
    /// Messages that were refused because too many were unread.
    pub(crate) mailbox_refusals: Counter,
    /// Runs that schedules started.
    pub(crate) schedule_starts: Counter,
    /// Due times that were skipped, by reason.
    pub(crate) schedule_skips: Labelled<1>,
    /// Looks at a schedule that failed.
    pub(crate) schedule_failures: Counter,
}

/// What a step of a run comes to beside its events; counted when it is durable.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    /// What changes in the census.
    pub(crate) census: Census,
    /// Operations that came to be in doubt.
    pub(crate) in_doubt: u64,
    /// Questions that nobody answered in time.
    pub(crate) questions_overdue: u64,
}

impl Tally {
    /// Compares a run in memory with its state after more events.
    pub(crate) fn of(before: &Live, after: &State, events: &[Event], summary: &Summary) -> Tally {
        let doubts = after.in_doubt().filter(|op| !before.state().in_doubt().any(|known| known == *op));
        let in_doubt = doubts.count() as u64;
        let overdue = |event: &&Event| {
            let EventKind::TimerFired { op, .. } = &event.kind else { return false };
            let fired = before.state().operation(*op);
            fired.is_some_and(|operation| matches!(operation.kind, OperationKind::Question(_)))
        };
        let questions_overdue = events.iter().filter(overdue).count() as u64;
        Tally { census: Census::of(summary).minus(before.counted), in_doubt, questions_overdue }
    }
}

/// Why a group commit failed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WriteFailure {
    /// The disk is full.
    Full,
    /// The store refuses it.
    Refused,
    /// The disk failed.
    Failed,
}

impl WriteFailure {
    fn name(self) -> &'static str {
        match self {
            WriteFailure::Full => "full",
            WriteFailure::Refused => "refused",
            WriteFailure::Failed => "failed",
        }
    }
}

impl Counters {
    /// Begins at 0, with the census of the store.
    pub(crate) fn new(census: Census, spans: Option<Spans>) -> Counters {
        Counters {
            census: Mutex::new(census),
            spans,
            events: Labelled::new(["kind"]),
            event_bytes: Counter::default(),
            commits: Durations::default(),
            write_failures: Labelled::at_zero(["cause"], &[["full"], ["refused"], ["failed"]]),
            recovery_failures: Counter::default(),
            faults: Counter::default(),
            handed_out: Labelled::new(["queue"]),
            reported: Labelled::new(["queue", "outcome"]),
            dropped_reports: Labelled::at_zero(
                ["status"],
                &[["repeated"], ["superseded"], ["unknown_token"]],
            ),
            lost: Labelled::at_zero(
                ["cause"],
                &[["worker_gone"], ["lease"], ["timeout"], ["restart"], ["broken_off"]],
            ),
            in_doubt: Counter::default(),
            questions_overdue: Counter::default(),
            mailbox_refusals: Counter::default(),
            schedule_starts: Counter::default(),
            schedule_skips: Labelled::at_zero(["reason"], &[["missed"], ["overlap"]]),
            schedule_failures: Counter::default(),
        }
    }

    /// Counts works that are durable, and takes note of the census after them.
    pub(crate) fn committed(&self, works: &[Work], census: Census) {
        *self.census.lock().unwrap_or_else(PoisonError::into_inner) = census;
        for work in works {
            match work {
                Work::Step(step) => {
                    self.durable(&step.write.events, step.weight, &step.tally);
                    if let Some(spans) = &self.spans {
                        noted(spans, step);
                    }
                }
                Work::Puts { .. } | Work::Blob { .. } | Work::Delete(_) | Work::Purge { .. } => {}
            }
        }
    }

    fn durable(&self, events: &[Event], bytes: usize, tally: &Tally) {
        for event in events {
            self.events.count([event.kind.name()]);
            if let EventKind::Lost { why, .. } = &event.kind {
                self.lost.count([cause(*why)]);
            }
        }
        self.event_bytes.add(bytes as u64);
        self.in_doubt.add(tally.in_doubt);
        self.questions_overdue.add(tally.questions_overdue);
    }

    /// Counts a group commit that failed.
    pub(crate) fn write_failed(&self, why: WriteFailure) {
        self.write_failures.count([why.name()]);
    }

    /// Counts a task that went to a worker.
    pub(crate) fn handed_out(&self, work: &WorkId, attempt: Attempt, lane: &Lane, at: Millis) {
        self.handed_out.count([&lane.queue]);
        if let Some(spans) = &self.spans {
            spans.note(Note::Begun(Begun {
                run: work.run.clone(),
                op: work.op,
                attempt,
                activity: lane.activity.clone(),
                queue: lane.queue.clone(),
                at,
            }));
        }
    }

    /// Counts a report that was taken, or was not: `queue` is none if its attempt is no longer open.
    pub(crate) fn reported(&self, queue: Option<&str>, report: &Report, status: ReceiptStatus) {
        let outcome = match report {
            Report::Done { .. } => "done",
            Report::Failed { .. } => "failed",
            Report::Handle(_) => "handle",
            Report::Stopped(_) => "stopped",
        };
        match (queue, status) {
            (Some(queue), ReceiptStatus::Accepted) => self.reported.count([queue, outcome]),
            // That a closed attempt stopped is what was asked of it.
            (None, ReceiptStatus::Accepted) if outcome == "stopped" => {}
            (None, ReceiptStatus::Accepted) => self.dropped_reports.count(["repeated"]),
            (_, ReceiptStatus::Superseded) => self.dropped_reports.count(["superseded"]),
            (_, ReceiptStatus::UnknownToken) => self.dropped_reports.count(["unknown_token"]),
            // It comes again.
            (_, ReceiptStatus::Retry) => {}
        }
    }

    /// Counts a report whose token nobody knows.
    pub(crate) fn unknown_token(&self) {
        self.dropped_reports.count(["unknown_token"]);
    }
}

/// Notes what a step that is durable began or ended, for its spans.
fn noted(spans: &Spans, step: &Step) {
    let summary = &step.write.summary;
    let run = || summary.run.clone();
    for Event { time, kind, .. } in &step.write.events {
        let at = *time;
        let ended = |op: OpId, attempt: Attempt, activity: Option<&String>, outcome: &'static str| {
            let activity = activity.cloned();
            spans.note(Note::Ended { run: run(), op, attempt, activity, outcome, at });
        };
        if let EventKind::Done { op, attempt, activity, .. } = kind {
            ended(*op, *attempt, Some(activity), "done");
        } else if let EventKind::Failed { op, attempt, activity, .. } = kind {
            ended(*op, *attempt, Some(activity), "failed");
        } else if let EventKind::Lost { op, attempt, why } = kind {
            ended(*op, *attempt, None, cause(*why));
        } else if let EventKind::Void { op, .. } | EventKind::TimerFired { op, .. } = kind {
            spans.note(Note::Closed { run: run(), op: *op, at });
        }
    }
    if step.tally.census.ended > 0 {
        let outcome = summary.view["outcome"]["kind"].as_str().unwrap_or_default().to_owned();
        let (flow, started_at, at) = (summary.flow.clone(), summary.started_at, summary.updated_at);
        spans.note(Note::Run { run: run(), flow, outcome, started_at, at });
    }
}

fn cause(why: LostWhy) -> &'static str {
    match why {
        LostWhy::WorkerGone => "worker_gone",
        LostWhy::Lease => "lease",
        LostWhy::Timeout => "timeout",
        LostWhy::Restart => "restart",
        LostWhy::BrokenOff => "broken_off",
    }
}

impl Engine {
    /// Returns all that the engine counts, and how it stands now.
    pub(crate) fn metrics(&self) -> Vec<Family> {
        let counters = &self.core.ctx.counters;
        let now = self.runs().into_iter().chain(self.work());
        now.chain(counters.of_histories()).chain(counters.of_work()).chain(counters.of_people()).collect()
    }

    fn runs(&self) -> Vec<Family> {
        let ctx = &self.core.ctx;
        let census = *ctx.counters.census.lock().unwrap_or_else(PoisonError::into_inner);
        let now = |count: i64| u64::try_from(count).unwrap_or_default();
        let runs = [
            ("running", census.running),
            ("waiting", census.waiting),
            ("blocked", census.blocked),
            ("ended", census.ended),
        ];
        let runs = runs.map(|(status, count)| Sample::with("status", status, now(count)));
        let hydrated = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
        vec![
            Family::new("outlast_runs", "Runs in the store, by status.", Kind::Gauge, runs),
            Family::gauge(
                "outlast_runs_quarantined",
                "Runs that are left alone because processes ended while they worked on them.",
                ctx.quarantine.runs().len() as u64,
            ),
            Family::gauge("outlast_runs_in_memory", "Runs in memory.", hydrated(&ctx.hydrated.runs)),
            Family::gauge(
                "outlast_runs_in_memory_bytes",
                "About how many bytes the runs in memory have.",
                hydrated(&ctx.hydrated.bytes),
            ),
            Family::gauge(
                "outlast_questions_open",
                "Questions that wait for a person.",
                now(census.questions),
            ),
            Family::gauge(
                "outlast_in_doubt",
                "Operations of effect class once of which nobody knows whether they happened.",
                now(census.in_doubt),
            ),
        ]
    }

    fn work(&self) -> Vec<Family> {
        let ctx = &self.core.ctx;
        let load = ctx.dispatch.load();
        let waiting: Vec<Sample> =
            load.waiting.into_iter().map(|(queue, count)| Sample::with("queue", queue, count)).collect();
        let failed = ctx.committer.failed().borrow().is_some();
        let recovering = *self.core.recovering.borrow();
        vec![
            Family::gauge("outlast_workers", "Workers with a session.", load.workers),
            Family::gauge("outlast_tasks_in_hand", "Tasks that workers have in hand.", load.in_hand),
            Family::new(
                "outlast_tasks_waiting",
                "Tasks that wait for a worker, by queue.",
                Kind::Gauge,
                waiting,
            ),
            Family::gauge(
                "outlast_engine_failed",
                "1 if a disk failed and the engine writes no more.",
                u64::from(failed),
            ),
            Family::gauge(
                "outlast_engine_recovering",
                "1 while runs of the last process are put back to work.",
                u64::from(recovering),
            ),
            Family::gauge("outlast_epoch", "How often the store was opened.", ctx.epoch),
        ]
    }
}

impl Counters {
    fn of_histories(&self) -> Vec<Family> {
        let commits = [Sample::bare(self.commits.value())];
        vec![
            Family::counters("outlast_events_total", "Events that became durable, by kind.", &self.events),
            Family::counter(
                "outlast_event_bytes_total",
                "About how many bytes the events had that became durable.",
                &self.event_bytes,
            ),
            Family::new(
                "outlast_commit_seconds",
                "How long group commits took, sync included.",
                Kind::Histogram,
                commits,
            ),
            Family::counters(
                "outlast_write_failures_total",
                "Group commits that failed, by cause.",
                &self.write_failures,
            ),
            Family::counter(
                "outlast_recovery_failures_total",
                "Runs that could not be put back to work after a restart.",
                &self.recovery_failures,
            ),
            Family::counter(
                "outlast_run_faults_total",
                "Runs that a fault of the engine or of their history stopped.",
                &self.faults,
            ),
        ]
    }

    fn of_work(&self) -> Vec<Family> {
        vec![
            Family::counters(
                "outlast_tasks_handed_out_total",
                "Tasks that went to workers, by queue.",
                &self.handed_out,
            ),
            Family::counters(
                "outlast_tasks_reported_total",
                "Reports of workers that were taken, by queue and outcome.",
                &self.reported,
            ),
            Family::counters(
                "outlast_reports_dropped_total",
                "Reports of workers that changed nothing: said before, of an attempt that no longer counts, or with a token that nobody knows.",
                &self.dropped_reports,
            ),
            Family::counters(
                "outlast_attempts_lost_total",
                "Attempts that will never answer, by cause.",
                &self.lost,
            ),
            Family::counter(
                "outlast_in_doubt_total",
                "Operations of effect class once that came to be in doubt.",
                &self.in_doubt,
            ),
        ]
    }

    fn of_people(&self) -> Vec<Family> {
        let none = Counts::default();
        let spans = self.spans.as_ref().map_or(&none, Spans::counts);
        vec![
            Family::counter(
                "outlast_questions_overdue_total",
                "Questions that nobody answered in time.",
                &self.questions_overdue,
            ),
            Family::counter(
                "outlast_mailbox_refusals_total",
                "Messages that were refused because a run had too many unread.",
                &self.mailbox_refusals,
            ),
            Family::counter(
                "outlast_spans_exported_total",
                "Spans that the collector took.",
                &spans.exported,
            ),
            Family::counter(
                "outlast_spans_dropped_total",
                "Spans that the collector did not take, or for which there was no room.",
                &spans.dropped,
            ),
            Family::counter(
                "outlast_schedule_starts_total",
                "Due times of schedules whose run was started.",
                &self.schedule_starts,
            ),
            Family::counters(
                "outlast_schedule_skips_total",
                "Due times of schedules that were skipped, by reason.",
                &self.schedule_skips,
            ),
            Family::counter(
                "outlast_schedule_failures_total",
                "Looks at a schedule that failed and are repeated.",
                &self.schedule_failures,
            ),
        ]
    }
}
