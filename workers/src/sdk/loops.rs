//! The loops that keep a worker and its runtime in touch: register, poll, report, progress, control, fence.
//!
//! Leaves what is in hand to the desk. Invariant: each loop waits for a session, calls, and on a broken session waits for the next
//! one; none of them ends by itself but the poll of a leaving worker, and registering when the runtime will not have this worker.

use std::sync::Arc;
use std::time::{Duration, Instant};

use outlast_protocol::Code;
use outlast_protocol::worker::{
    Control, Poll, Polled, Progress, Register, Registered, Report, Reported, StoppedWhy, Task, TaskProgress,
};
use tokio::sync::{Notify, watch};

use super::attempt;
use super::client::CallError;
use super::context::{Hand, Home};
use super::fence::boot_ms;
use super::link::{Broken, Link, Reaction, reaction};
use super::worker::{Activities, WorkerError};
use crate::Json;
use crate::limits::{
    CALL_SLACK, LONG_POLL_WAIT, PROGRESS_EVERY, RECONNECT_WAIT_MAX, RECONNECT_WAIT_MIN, REPORT_BATCH_MAX,
};

use super::desk::Desk;

/// What the loops share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) link: Link,
    pub(crate) desk: Arc<Desk>,
    pub(crate) activities: Activities,
    pub(crate) register: Register,
    pub(crate) leaving: watch::Sender<bool>,
    pub(crate) signs: Arc<Notify>,
}

/// Waits that double, from the first to the longest.
pub(crate) struct Backoff(Duration);

impl Backoff {
    pub(crate) fn new() -> Backoff {
        Backoff(RECONNECT_WAIT_MIN)
    }

    pub(crate) async fn wait(&mut self) {
        tokio::time::sleep(self.0).await;
        self.0 = (self.0 * 2).min(RECONNECT_WAIT_MAX);
    }
}

impl Shared {
    /// Registers whenever there is no session.
    pub(crate) async fn keep_registered(self: Arc<Self>) -> WorkerError {
        let mut backoff = Backoff::new();
        let mut told = String::new();
        loop {
            let request = Register { holding: self.desk.holding(), ..self.register.clone() };
            let sent_ms = boot_ms();
            match self.link.client.post("/v1/workers/register", &request, self.link.short()).await {
                Ok(answer) => {
                    self.registered(&answer, sent_ms);
                    self.link.broken().await;
                    if self.link.was_proved() {
                        backoff = Backoff::new();
                    }
                }
                Err(error) => {
                    self.link.fence.failed();
                    if let CallError::Refused(refusal) = &error {
                        match reaction(refusal.code) {
                            Reaction::GiveUp => return WorkerError::Refused(refusal.message.clone()),
                            // It may be let in again, but not by waiting alone: a person should hear of it, once.
                            Reaction::Register
                                if refusal.code == Code::Unauthorized && refusal.message != told =>
                            {
                                told.clone_from(&refusal.message);
                                tracing::error!(
                                    "the runtime does not let this worker in, which goes on trying: {told}"
                                );
                            }
                            Reaction::Register | Reaction::Wait => {}
                        }
                    }
                    tracing::debug!(%error, "cannot register yet");
                }
            }
            backoff.wait().await;
        }
    }

    fn registered(&self, answer: &Registered, sent_ms: u64) {
        tracing::info!(session = answer.session, lease_ms = answer.lease_ms, "registered");
        if answer.lease_ms > 0 {
            self.link.fence.set_lease(answer.lease_ms);
        }
        self.link.fence.renewed(sent_ms);
        for token in &answer.drop {
            self.desk.cancel(token);
        }
        self.link.opened(&answer.session);
        self.desk.outbox_rang.notify_one();
    }

    /// Asks for work whenever there is room; ends when the worker leaves.
    pub(crate) async fn poll(self: Arc<Self>) {
        let mut backoff = Backoff::new();
        let mut leaving = self.leaving.subscribe();
        loop {
            tokio::select! {
                biased;
                _ = leaving.wait_for(|leaving| *leaving) => return,
                () = self.desk.until(|load| load.running < self.register.concurrency as usize) => {}
            }
            let session = tokio::select! {
                biased;
                _ = leaving.wait_for(|leaving| *leaving) => return,
                session = self.link.session() => session,
            };
            let wait = LONG_POLL_WAIT.min(Duration::from_millis(self.link.fence.lease_ms() / 3));
            let room = self.register.concurrency as usize - self.desk.load().running;
            let poll = Poll {
                session: session.to_string(),
                max: u32::try_from(room).unwrap_or(u32::MAX),
                wait_ms: millis(wait),
                leaving: false,
            };
            // Not cut short when leaving: its answer may carry tasks, which the runtime believes are here.
            match self.link.post::<Polled>(&session, "/v1/workers/poll", &poll, wait + CALL_SLACK).await {
                Ok(polled) => {
                    backoff = Backoff::new();
                    // Of a session that is gone nothing is begun: these tasks were not listed to the next one, and are handed out again.
                    let began = self.link.lasting(&session, || {
                        polled.tasks.into_iter().for_each(|task| self.begin(task));
                    });
                    if !began {
                        tracing::info!("tasks came in a session that is gone; they are left alone");
                    }
                }
                Err(Broken::Session) => {}
                Err(Broken::Busy | Broken::Refused(_)) => backoff.wait().await,
            }
        }
    }

    fn begin(self: &Arc<Self>, task: Task) {
        let activity = self.activities.get(&task.activity);
        tracing::debug!(
            run = task.run,
            op = task.op,
            activity = task.activity,
            attempt = task.attempt,
            "begun"
        );
        let (hand, all_gone) = Hand::new(task, self.desk.secrets().clone(), self.signs.clone());
        if self.desk.begin(&hand) {
            let home = Home { desk: self.desk.clone(), client: self.link.client.clone() };
            tokio::spawn(attempt::run(activity, hand, all_gone, home));
            self.signs.notify_one();
        }
    }

    /// Says that the worker takes no more tasks.
    pub(crate) async fn say_leaving(&self) {
        if !self.link.is_connected() {
            return;
        }
        let session = self.link.session().await;
        let poll = Poll { session: session.to_string(), max: 0, wait_ms: 0, leaving: true };
        // Whatever the answer: a runtime that does not hear it finds out by the lease.
        let _answer = self.link.post::<Polled>(&session, "/v1/workers/poll", &poll, self.link.short()).await;
    }

    /// Delivers what is on the desk until it is acknowledged.
    pub(crate) async fn report(self: Arc<Self>) {
        let mut backoff = Backoff::new();
        let mut most = REPORT_BATCH_MAX;
        loop {
            let batch = self.desk.batch(most);
            if batch.is_empty() {
                most = REPORT_BATCH_MAX;
                self.desk.outbox_rang.notified().await;
                continue;
            }
            let session = self.link.session().await;
            let results = batch.iter().map(|(_, outcome)| outcome.clone()).collect();
            let report = Report { session: session.to_string(), results };
            // Syncing the disk is part of the answer, so this one may take its time.
            match self.link.post::<Reported>(&session, "/v1/workers/report", &report, CALL_SLACK * 2).await {
                Ok(answer) => {
                    if self.desk.acknowledged(&batch, &answer.results) {
                        backoff.wait().await;
                    } else {
                        backoff = Backoff::new();
                    }
                }
                Err(Broken::Session) => {}
                Err(Broken::Busy) => backoff.wait().await,
                // One of them is not acceptable: find it by sending each alone.
                Err(Broken::Refused(_)) if batch.len() > 1 => most = 1,
                Err(Broken::Refused(text)) => {
                    for (id, _) in &batch {
                        self.desk.refused(*id, &text);
                    }
                }
            }
        }
    }

    /// Sends partial output and signs of life.
    pub(crate) async fn progress(self: Arc<Self>) {
        let mut last = Instant::now();
        let mut backoff = Backoff::new();
        loop {
            self.wait_for_signs(last).await;
            let session = self.link.session().await;
            let every = self.sign_every();
            let hands = self.desk.hands();
            let due: Vec<(&Arc<Hand>, TaskProgress)> = hands
                .iter()
                .filter_map(|hand| Some((hand, hand.partial.lock().due(&hand.task.token, every)?)))
                .collect();
            last = Instant::now();
            if due.is_empty() {
                continue;
            }
            let tasks = due.iter().map(|(_, sign)| sign.clone()).collect();
            let progress = Progress { session: session.to_string(), tasks };
            let answer =
                self.link.post::<Json>(&session, "/v1/workers/progress", &progress, self.link.short()).await;
            match answer {
                // What is refused as such is given up: it is only for show.
                Ok(_) | Err(Broken::Refused(_)) => {
                    for (hand, sign) in due {
                        hand.partial.lock().was_sent(&sign);
                    }
                    backoff = Backoff::new();
                }
                Err(Broken::Session) => backoff.wait().await,
                // Other calls may be answered meanwhile, but none of them says what is in hand here; registering does.
                Err(Broken::Busy) => {
                    self.link.lost(&session);
                    backoff.wait().await;
                }
            }
        }
    }

    async fn wait_for_signs(&self, last: Instant) {
        let hands = self.desk.hands();
        let dirty = hands.iter().any(|hand| hand.partial.lock().is_dirty());
        let urgent = || self.desk.hands().iter().any(|hand| hand.partial.lock().is_urgent());
        // Several small pieces become one call; the first one, and a full buffer, go at once; silence lasts until a sign of life is due.
        let wait = if hands.is_empty() {
            LONG_POLL_WAIT
        } else if dirty {
            PROGRESS_EVERY
        } else {
            self.sign_every()
        };
        let mut until = last + wait;
        while !urgent() {
            tokio::select! {
                () = tokio::time::sleep_until(until.into()) => return,
                () = self.signs.notified() => until = until.min(last + PROGRESS_EVERY),
            }
        }
    }

    /// Signs of life come twice as often as wanted, and often enough to keep the lease.
    fn sign_every(&self) -> Duration {
        let lease = self.link.fence.lease_ms() / 6;
        let wanted =
            self.desk.hands().iter().map(|hand| hand.task.heartbeat_ms / 2).filter(|ms| *ms > 0).min();
        Duration::from_millis(wanted.unwrap_or(lease).min(lease).max(1))
    }

    /// Hears cancels at once.
    pub(crate) async fn control(self: Arc<Self>) {
        let mut backoff = Backoff::new();
        loop {
            let session = self.link.session().await;
            let wait = LONG_POLL_WAIT.min(Duration::from_millis(self.link.fence.lease_ms() / 3));
            let path = format!("/v1/workers/control?session={}&wait_ms={}", query(&session), millis(wait));
            match self.link.get::<Control>(&session, &path, wait + CALL_SLACK).await {
                Ok(control) => {
                    backoff = Backoff::new();
                    for token in &control.cancel {
                        self.desk.cancel(token);
                    }
                }
                Err(Broken::Session) => {}
                Err(Broken::Busy | Broken::Refused(_)) => backoff.wait().await,
            }
        }
    }

    /// Ends attempts before the runtime takes them for lost.
    pub(crate) async fn fence(self: Arc<Self>) {
        loop {
            let tick = Duration::from_millis((self.link.fence.lease_ms() / 64).clamp(5, 500));
            tokio::time::sleep(tick).await;
            if self.link.fence.is_over(boot_ms()) && self.desk.load().running > 0 {
                tracing::warn!(
                    "the runtime has not answered for three quarters of the lease: ending all attempts"
                );
                self.desk.stop_all(StoppedWhy::Leaving);
            }
        }
    }

    /// Waits until the runtime has been away for so long that nobody will come back for this worker.
    pub(crate) async fn orphaned(&self, after: Duration) {
        use crate::limits::ORPHAN_FACTOR_WITH_RESULTS;
        let mut alone_since = Instant::now();
        loop {
            tokio::time::sleep((after / 20).clamp(Duration::from_millis(5), Duration::from_secs(1))).await;
            let load = self.desk.load();
            if self.link.is_connected() || load.running > 0 {
                alone_since = Instant::now();
                continue;
            }
            let patience = if load.results > 0 { after * ORPHAN_FACTOR_WITH_RESULTS } else { after };
            if alone_since.elapsed() >= patience {
                return;
            }
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Session ids are the runtime's own; whatever is not plain is escaped.
fn query(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}
