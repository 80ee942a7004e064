//! What an attempt knows and can say while it runs.
//!
//! Leaves sending to the loops: everything here is put down and picked up by them. Invariant: `set_handle` returns only after the
//! runtime has said that the handle is durable.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use outlast_protocol::worker::{OutcomeKind, ReceiptStatus, StoppedWhy, Task};
use parking::Locked;
use tokio::sync::{Notify, mpsc, watch};

use super::activity::Failure;
use super::client::Client;
use super::desk::Desk;
use super::mask::Mask;
use super::progress::Partial;
use super::secrets::Secrets;
use crate::Json;

pub(crate) mod parking {
    //! A mutex whose poison is ignored: what it guards is replaced whole, never left half-changed.

    use std::sync::{Mutex, MutexGuard, PoisonError};

    /// See the module.
    #[derive(Debug, Default)]
    pub(crate) struct Locked<T>(Mutex<T>);

    impl<T> Locked<T> {
        pub(crate) const fn new(value: T) -> Locked<T> {
            Locked(Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }
}

/// Keeps an attempt from being reported as ended: held by whatever must be gone first, such as a child process.
#[derive(Debug)]
pub struct Hold {
    _open: mpsc::Sender<()>,
}

/// The runtime no longer wants this attempt.
#[derive(Debug, thiserror::Error)]
#[error("the runtime no longer wants this attempt")]
pub struct NoLongerWanted;

impl From<NoLongerWanted> for Failure {
    fn from(error: NoLongerWanted) -> Failure {
        Failure::new("Superseded", error.to_string())
    }
}

/// An attempt in hand, as its task and the loops share it.
#[derive(Debug)]
pub(crate) struct Hand {
    pub(crate) task: Task,
    stop: watch::Sender<Option<StoppedWhy>>,
    listens: AtomicBool,
    holds: Locked<Option<mpsc::Sender<()>>>,
    pub(crate) partial: Locked<Partial>,
    pub(crate) ends_at: Option<Instant>,
    secrets: Secrets,
    signs: Arc<Notify>,
}

impl Hand {
    pub(crate) fn new(task: Task, secrets: Secrets, signs: Arc<Notify>) -> (Arc<Hand>, mpsc::Receiver<()>) {
        let (open, all_gone) = mpsc::channel(1);
        let ends_at = task.budget_ms.map(|ms| Instant::now() + Duration::from_millis(ms));
        let hand = Hand {
            task,
            stop: watch::Sender::new(None),
            listens: AtomicBool::new(false),
            holds: Locked::new(Some(open)),
            partial: Locked::new(Partial::new(secrets.mask().clone())),
            ends_at,
            secrets,
            signs,
        };
        (Arc::new(hand), all_gone)
    }

    /// Asks the attempt to end; the first reason counts.
    pub(crate) fn stop(&self, why: StoppedWhy) {
        self.stop.send_if_modified(|now| {
            let first = now.is_none();
            if first {
                *now = Some(why);
            }
            first
        });
    }

    /// Why it was asked to end, if it was.
    pub(crate) fn why(&self) -> Option<StoppedWhy> {
        *self.stop.borrow()
    }

    /// Waits until the attempt is asked to end.
    pub(crate) async fn stopped(&self) -> StoppedWhy {
        let mut stop = self.stop.subscribe();
        loop {
            if let Some(why) = *stop.borrow_and_update() {
                return why;
            }
            // The sender lives in `self`, so the channel cannot close here.
            if stop.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    pub(crate) fn listens(&self) -> bool {
        self.listens.load(Ordering::Acquire)
    }

    /// Gives out no more holds, so that the receiver ends with the last one.
    pub(crate) fn close_holds(&self) {
        self.holds.lock().take();
    }
}

/// One attempt: its input, and what it can say while it runs. Clones name the same attempt.
#[derive(Clone, Debug)]
pub struct TaskContext {
    hand: Arc<Hand>,
    home: Option<Home>,
}

/// Where an attempt speaks to its runtime.
#[derive(Clone, Debug)]
pub(crate) struct Home {
    pub(crate) desk: Arc<Desk>,
    pub(crate) client: Client,
}

impl TaskContext {
    pub(crate) fn new(hand: Arc<Hand>, home: Home) -> TaskContext {
        TaskContext { hand, home: Some(home) }
    }

    /// The connection to its runtime, for what is no word about the attempt; none if nobody listens.
    pub(super) fn client(&self) -> Option<&Client> {
        self.home.as_ref().map(|home| &home.client)
    }

    /// Makes a context that no runtime listens to, to try an activity by itself; handles count as durable at once.
    #[must_use]
    pub fn alone(task: Task) -> TaskContext {
        TaskContext::alone_with(task, Secrets::default())
    }

    /// As `alone`, with the secrets of a worker.
    #[must_use]
    pub fn alone_with(task: Task, secrets: Secrets) -> TaskContext {
        let (hand, _) = Hand::new(task, secrets, Arc::new(Notify::new()));
        TaskContext { hand, home: None }
    }

    /// The whole task.
    #[must_use]
    pub fn task(&self) -> &Task {
        &self.hand.task
    }

    /// The arguments by parameter name.
    #[must_use]
    pub fn input(&self) -> &Json {
        &self.hand.task.input
    }

    /// One argument; `None` if it is left out or null.
    #[must_use]
    pub fn arg(&self, name: &str) -> Option<&Json> {
        self.input().get(name).filter(|value| !value.is_null())
    }

    /// A text argument.
    ///
    /// # Errors
    /// `BadInput` if it is missing or no text.
    pub fn text(&self, name: &str) -> Result<&str, Failure> {
        self.arg(name)
            .and_then(Json::as_str)
            .ok_or_else(|| Failure::bad_input(format!("{name} must be given as text")))
    }

    /// The value of an argument of type `secret`. It is taken out of whatever this worker says, results and errors included.
    ///
    /// # Errors
    /// `BadInput` if it is missing or no secret, `NoSecret` if the worker was not given the secret of this name.
    pub fn secret(&self, name: &str) -> Result<&str, Failure> {
        let named = self.arg(name).and_then(|value| value.get("$secret")).and_then(Json::as_str);
        let named = named.ok_or_else(|| Failure::bad_input(format!("{name} must be given as a secret")))?;
        self.hand.secrets.value(named)
    }

    /// What takes the worker's secrets out of a text. What an activity returns and shows needs no help; what it cuts does, before the
    /// cut.
    #[must_use]
    pub fn mask(&self) -> &Mask {
        self.hand.secrets.mask()
    }

    /// The secrets of the worker.
    #[must_use]
    pub fn secrets(&self) -> &Secrets {
        &self.hand.secrets
    }

    /// The idempotency key: the same for every attempt of the operation.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.hand.task.key
    }

    /// The run.
    #[must_use]
    pub fn run(&self) -> &str {
        &self.hand.task.run
    }

    /// The operation, `n.k`.
    #[must_use]
    pub fn op(&self) -> &str {
        &self.hand.task.op
    }

    /// 1, 2, 3 …
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.hand.task.attempt
    }

    /// What an earlier attempt left to resume with.
    #[must_use]
    pub fn handle(&self) -> Option<&Json> {
        self.hand.task.handle.as_ref()
    }

    /// The time that is left, if bounded.
    #[must_use]
    pub fn remaining(&self) -> Option<Duration> {
        self.hand.ends_at.map(|end| end.saturating_duration_since(Instant::now()))
    }

    /// Waits until the attempt is asked to end. Whoever has called this gets a moment to tidy up instead of being dropped.
    pub async fn cancelled(&self) -> StoppedWhy {
        self.hand.listens.store(true, Ordering::Release);
        self.hand.stopped().await
    }

    /// Whether the attempt was asked to end: for loops that do not wait.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.hand.why().is_some()
    }

    /// Shows partial output to whoever watches the run. It is never history.
    pub fn progress(&self, text: &str) {
        if !text.is_empty() {
            self.hand.partial.lock().push(text);
            self.hand.signs.notify_one();
        }
    }

    /// Says how far the attempt is, 0 to 100.
    pub fn percent(&self, percent: f64) {
        self.hand.partial.lock().set_percent(percent);
        self.hand.signs.notify_one();
    }

    /// Gives a sign of life now; the worker also gives them by itself as long as the attempt runs.
    pub fn heartbeat(&self) {
        self.hand.partial.lock().want_sign();
        self.hand.signs.notify_one();
    }

    /// Leaves something for a later attempt to resume with. Durable when this returns.
    ///
    /// # Errors
    /// [`NoLongerWanted`] if the runtime has closed the operation; end the attempt.
    pub async fn set_handle(&self, handle: Json) -> Result<(), NoLongerWanted> {
        let Some(home) = &self.home else { return Ok(()) };
        match home.desk.tell(&self.hand.task.token, OutcomeKind::Handle { handle }).await {
            Some(ReceiptStatus::Accepted) => Ok(()),
            Some(ReceiptStatus::Superseded | ReceiptStatus::UnknownToken | ReceiptStatus::Retry) | None => {
                Err(NoLongerWanted)
            }
        }
    }

    /// Keeps the attempt from being reported as ended until the hold is dropped.
    #[must_use]
    pub fn hold(&self) -> Option<Hold> {
        self.hand.holds.lock().clone().map(|open| Hold { _open: open })
    }

    /// Asks the attempt to end, as the runtime would.
    pub fn stop(&self, why: StoppedWhy) {
        self.hand.stop(why);
    }

    /// Ends the attempt without an answer, because nobody knows how far it came: it counts as broken off, and an effect of class
    /// `once` is in doubt. Never returns; whoever called it is dropped.
    pub async fn break_off<T>(&self) -> T {
        self.hand.stop(StoppedWhy::BrokenOff);
        std::future::pending().await
    }

    /// The partial output that was not sent yet: for tests of an activity.
    #[must_use]
    pub fn unsent(&self) -> String {
        self.hand.partial.lock().text().to_owned()
    }
}
