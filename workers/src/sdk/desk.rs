//! What the worker has in hand: running attempts, and words for the runtime that it has not acknowledged.
//!
//! Leaves sending to the loops. Invariant: a token moves from running to unacknowledged under one lock, so `holding` never misses
//! it: the runtime takes a token that is not listed for one that never arrived; and no word has a secret in it.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use outlast_protocol::worker::{Outcome, OutcomeKind, Receipt, ReceiptStatus, StoppedWhy, TaskError};
use tokio::sync::{Notify, oneshot, watch};

use super::context::Hand;
use super::context::parking::Locked;
use super::secrets::Secrets;
use crate::limits::REPORT_BATCH_MAX;

/// See the module.
#[derive(Debug)]
pub(crate) struct Desk {
    secrets: Secrets,
    state: Locked<State>,
    /// Rings when there is something to report.
    pub(crate) outbox_rang: Notify,
    /// Counts changes of what is in hand, for whoever waits for room or for the end.
    pub(crate) changes: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    running: HashMap<String, Arc<Hand>>,
    outbox: VecDeque<Entry>,
    /// Tokens in hand of which the runtime has said that it wants nothing more.
    unwanted: HashSet<String>,
    next_id: u64,
}

#[derive(Debug)]
struct Entry {
    id: u64,
    outcome: Outcome,
    told: Option<oneshot::Sender<ReceiptStatus>>,
}

/// How much is in hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Load {
    pub(crate) running: usize,
    pub(crate) unacknowledged: usize,
    /// How much of what is not acknowledged would be missed: results that the runtime still wants.
    pub(crate) results: usize,
}

impl Desk {
    pub(crate) fn new(secrets: Secrets) -> Desk {
        let (state, outbox_rang) = (Locked::default(), Notify::new());
        Desk { secrets, state, outbox_rang, changes: watch::Sender::new(0) }
    }

    pub(crate) fn load(&self) -> Load {
        let state = self.state.lock();
        let would_be_missed = |entry: &&Entry| match entry.outcome.kind {
            // A runtime that never hears it comes to the same end: the attempt is not held by anybody.
            OutcomeKind::Stopped { .. } => false,
            OutcomeKind::Done { .. } | OutcomeKind::Failed { .. } | OutcomeKind::Handle { .. } => {
                !state.unwanted.contains(&entry.outcome.token)
            }
        };
        Load {
            running: state.running.len(),
            unacknowledged: state.outbox.len(),
            results: state.outbox.iter().filter(would_be_missed).count(),
        }
    }

    /// Every token that must not be taken for lost, each once.
    pub(crate) fn holding(&self) -> Vec<String> {
        let state = self.state.lock();
        let mut tokens: Vec<String> = state.running.keys().cloned().collect();
        tokens.extend(state.outbox.iter().map(|entry| entry.outcome.token.clone()));
        tokens.sort_unstable();
        tokens.dedup();
        tokens
    }

    pub(crate) fn hands(&self) -> Vec<Arc<Hand>> {
        self.state.lock().running.values().cloned().collect()
    }

    /// Takes an attempt in hand; false if its token is in hand already.
    pub(crate) fn begin(&self, hand: &Arc<Hand>) -> bool {
        let mut state = self.state.lock();
        let token = &hand.task.token;
        let known = state.knows(token);
        if !known {
            state.running.insert(token.clone(), hand.clone());
            drop(state);
            self.changed();
        }
        !known
    }

    pub(crate) fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// The attempt is over: its end waits to be acknowledged.
    pub(crate) fn finish(&self, token: &str, kind: OutcomeKind) {
        let kind = self.secrets.hide_in(kind);
        let mut state = self.state.lock();
        state.running.remove(token);
        // A handle of an attempt that has ended helps nobody, unless it was interrupted.
        if matches!(kind, OutcomeKind::Done { .. }) {
            state.outbox.retain(|entry| entry.outcome.token != token);
        }
        state.push(token, kind, None);
        drop(state);
        self.outbox_rang.notify_one();
        self.changed();
    }

    /// Says something about a running attempt and waits for the answer; `None` if it was given up.
    pub(crate) async fn tell(&self, token: &str, kind: OutcomeKind) -> Option<ReceiptStatus> {
        let (told, answer) = oneshot::channel();
        let kind = self.secrets.hide_in(kind);
        self.state.lock().push(token, kind, Some(told));
        self.outbox_rang.notify_one();
        answer.await.ok()
    }

    /// Stops one attempt that the runtime no longer wants, if it is in hand; what it has said or will say is not missed.
    pub(crate) fn cancel(&self, token: &str) {
        let mut state = self.state.lock();
        if state.knows(token) {
            state.unwanted.insert(token.to_owned());
        }
        let hand = state.running.get(token).cloned();
        drop(state);
        if let Some(hand) = hand {
            tracing::info!(run = hand.task.run, op = hand.task.op, "stopping an attempt");
            hand.stop(StoppedWhy::Cancelled);
        }
    }

    pub(crate) fn stop_all(&self, why: StoppedWhy) {
        for hand in self.hands() {
            hand.stop(why);
        }
    }

    /// The oldest unacknowledged words, at most `most`.
    pub(crate) fn batch(&self, most: usize) -> Vec<(u64, Outcome)> {
        let state = self.state.lock();
        let entries = state.outbox.iter().take(most.min(REPORT_BATCH_MAX));
        entries.map(|entry| (entry.id, entry.outcome.clone())).collect()
    }

    /// Drops what was acknowledged; true if something is to be sent again.
    pub(crate) fn acknowledged(&self, sent: &[(u64, Outcome)], receipts: &[Receipt]) -> bool {
        let mut again = receipts.len() < sent.len();
        let mut state = self.state.lock();
        for ((id, outcome), receipt) in sent.iter().zip(receipts) {
            match receipt.status {
                ReceiptStatus::Accepted => {}
                ReceiptStatus::Superseded | ReceiptStatus::UnknownToken => {
                    tracing::info!(token = outcome.token, status = ?receipt.status, "a report no longer counts");
                }
                ReceiptStatus::Retry => {
                    again = true;
                    continue;
                }
            }
            state.remove(*id, receipt.status);
        }
        drop(state);
        self.changed();
        again
    }

    /// Replaces a word that the runtime refuses as such by one that it can take; gives up what is refused even so.
    pub(crate) fn refused(&self, id: u64, text: &str) {
        let mut state = self.state.lock();
        let Some(entry) = state.outbox.iter_mut().find(|entry| entry.id == id) else { return };
        let replaceable = match &entry.outcome.kind {
            OutcomeKind::Done { .. } => true,
            OutcomeKind::Failed { error, .. } => error.kind != BAD_RESULT,
            OutcomeKind::Handle { .. } | OutcomeKind::Stopped { .. } => false,
        };
        if replaceable {
            entry.outcome.kind = bad_result(text);
            drop(state);
            self.outbox_rang.notify_one();
        } else {
            tracing::error!(token = entry.outcome.token, text, "the runtime refuses a report");
            state.remove(id, ReceiptStatus::Superseded);
            drop(state);
            self.changed();
        }
    }

    fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// Waits until `reached` says so.
    pub(crate) async fn until(&self, reached: impl Fn(Load) -> bool) {
        let mut changes = self.changes.subscribe();
        while !reached(self.load()) {
            // The sender lives in `self`, so the channel cannot close here.
            if changes.changed().await.is_err() {
                return;
            }
        }
    }
}

const BAD_RESULT: &str = "BadResult";

/// The end of an attempt whose result cannot be reported.
pub(crate) fn bad_result(text: &str) -> OutcomeKind {
    let error = TaskError { kind: BAD_RESULT.to_owned(), text: text.to_owned(), ..TaskError::default() };
    OutcomeKind::Failed { error, cost: None, usage: None }
}

impl State {
    fn knows(&self, token: &str) -> bool {
        self.running.contains_key(token) || self.outbox.iter().any(|entry| entry.outcome.token == token)
    }

    fn push(&mut self, token: &str, kind: OutcomeKind, told: Option<oneshot::Sender<ReceiptStatus>>) {
        let id = self.next_id;
        self.next_id += 1;
        self.outbox.push_back(Entry { id, outcome: Outcome { token: token.to_owned(), kind }, told });
    }

    fn remove(&mut self, id: u64, status: ReceiptStatus) {
        let Some(at) = self.outbox.iter().position(|entry| entry.id == id) else { return };
        let Some(entry) = self.outbox.remove(at) else { return };
        if !self.knows(&entry.outcome.token) {
            self.unwanted.remove(&entry.outcome.token);
        }
        if let Some(told) = entry.told {
            // Whoever asked may be gone: its attempt was stopped.
            let _gone = told.send(status);
        }
    }
}
