//! Reports of workers: which count, and which were counted before.

use std::collections::{HashMap, VecDeque};

use outlast_kernel::event::EventKind;
use outlast_kernel::ids::{Attempt, OpId, RunId, Seq};
use outlast_kernel::input::{Input, Refusal, Report};
use outlast_kernel::json::canonical_text;
use outlast_protocol::ApiError;
use outlast_protocol::worker::ReceiptStatus;

use super::Shard;
use crate::engine::dispatch::WorkId;
use crate::engine::draft::{Draft, Failure};
use crate::engine::errors;
use crate::engine::live::{Live, activity_of};
use crate::engine::message::{Consequence, Reply, Reported};
use crate::limits;

/// Names an attempt.
type AttemptId = (RunId, OpId, Attempt);

/// The last reports that were accepted: the same report again is accepted again.
#[derive(Default)]
pub(super) struct Remembered {
    said: HashMap<AttemptId, [u8; 32]>,
    order: VecDeque<AttemptId>,
}

impl Remembered {
    fn keep(&mut self, attempt: AttemptId, digest: [u8; 32]) {
        if self.said.insert(attempt.clone(), digest).is_none() {
            self.order.push_back(attempt);
        }
        if self.order.len() > limits::REPORTS_REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.said.remove(&oldest);
        }
    }

    /// Forgets what was said of a run: it did not become durable.
    pub(super) fn forget(&mut self, run: &RunId) {
        self.said.retain(|(of, ..), _| of != run);
        self.order.retain(|(of, ..)| of != run);
    }

    fn said(&self, attempt: &AttemptId) -> Option<[u8; 32]> {
        self.said.get(attempt).copied()
    }
}

impl Shard {
    /// Takes a report.
    pub(super) fn report(&mut self, reported: &Reported, reply: Reply<ReceiptStatus>) {
        let claim = &reported.claim;
        let _span = tracing::info_span!("report", run = %claim.run, op = %claim.op, attempt = %claim.attempt)
            .entered();
        let work = WorkId { run: claim.run.clone(), op: claim.op };
        match self.try_report(reported) {
            Ok((draft, status)) => {
                let state = self.live.get(&claim.run).filter(|_| draft.is_some()).map(Live::state);
                let operation = state.and_then(|state| state.operation(claim.op));
                let queue = operation.and_then(activity_of).map(|activity| activity.queue.as_str());
                self.ctx.counters.reported(queue, &reported.report, status);
                tracing::debug!(?status, "judged");
                let mut consequences = Vec::new();
                if !matches!(reported.report, Report::Handle(_)) {
                    consequences.push(Consequence::Unhand(work.clone(), claim.attempt));
                    if draft.is_none() {
                        consequences.push(Consequence::OfferAgain(work));
                    }
                }
                consequences.push(Consequence::Receipt(reply, status));
                match draft {
                    Some(draft) => self.keep(&claim.run, draft, Vec::new(), consequences),
                    None => consequences.into_iter().for_each(|it| self.after(&claim.run, it)),
                }
            }
            Err(error) => {
                // Whoever reported may be gone; it will report again.
                let _ = reply.send(Err(error));
            }
        }
    }

    fn try_report(&mut self, reported: &Reported) -> Result<(Option<Draft>, ReceiptStatus), ApiError> {
        let Reported { claim, report, digest } = reported;
        let now = self.ctx.clock.now();
        if self.refuse_if_full(now).is_err() {
            return Ok((None, ReceiptStatus::Retry));
        }
        let attempt = (claim.run.clone(), claim.op, claim.attempt);
        if let Some(before) = self.reports.said(&attempt)
            && !matches!(report, Report::Handle(_))
        {
            let same = before == *digest;
            return Ok((None, if same { ReceiptStatus::Accepted } else { ReceiptStatus::Superseded }));
        }
        self.ready_for_input(&claim.run, now)?;
        let random = self.random.number();
        let mut draft = Draft::new(&self.hydrate(&claim.run)?.fold, now, random);
        let (op, attempt_n) = (claim.op, claim.attempt);
        match draft.input(&Input::Reported { op, attempt: attempt_n, report: report.clone() }) {
            Ok(_) => {
                if !matches!(report, Report::Handle(_)) {
                    self.reports.keep(attempt, *digest);
                }
                Ok(((!draft.events.is_empty()).then_some(draft), ReceiptStatus::Accepted))
            }
            Err(Failure::Refused(Refusal::Repeated)) => Ok((None, ReceiptStatus::Accepted)),
            Err(Failure::Refused(_)) => Ok((None, self.judge_late(reported)?)),
            Err(failure @ Failure::Broken(_)) => Err(self.failure(&claim.run, failure)),
        }
    }

    /// Judges a report whose attempt no longer counts: it is accepted if it is what the history says of this attempt.
    fn judge_late(&self, reported: &Reported) -> Result<ReceiptStatus, ApiError> {
        let Reported { claim, report, .. } = reported;
        let same = match report {
            // That a closed attempt stopped is what was asked of it.
            Report::Stopped(_) => true,
            Report::Handle(_) => false,
            Report::Done { .. } | Report::Failed { .. } => self
                .recorded(&claim.run, claim.op, claim.attempt)?
                .is_some_and(|kind| says_the_same(&kind, report)),
        };
        if !same {
            tracing::info!("a late report is dropped");
        }
        Ok(if same { ReceiptStatus::Accepted } else { ReceiptStatus::Superseded })
    }

    /// Finds what the history says of an attempt's end.
    fn recorded(&self, run: &RunId, of: OpId, which: Attempt) -> Result<Option<EventKind>, ApiError> {
        let mut after = of.0;
        loop {
            let page = self.ctx.store.history(run, after, limits::HISTORY_PAGE);
            let page = page.map_err(|e| errors::store(&e).of_run(run))?;
            let Some(last) = page.last().map(|event| event.n) else { return Ok(None) };
            for event in page {
                let (EventKind::Done { op, attempt, .. } | EventKind::Failed { op, attempt, .. }) =
                    &event.kind
                else {
                    continue;
                };
                if (*op, *attempt) == (of, which) {
                    return Ok(Some(event.kind));
                }
            }
            after = Seq(last.0);
        }
    }
}

fn says_the_same(kind: &EventKind, report: &Report) -> bool {
    match (kind, report) {
        (EventKind::Done { value, .. }, Report::Done { value: said, .. }) => {
            canonical_text(value) == canonical_text(said)
        }
        (EventKind::Failed { error, .. }, Report::Failed { error: said, .. }) => {
            (&error.kind, &error.text) == (&said.kind, &said.text)
        }
        _ => false,
    }
}
