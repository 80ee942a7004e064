//! The engine: shards that own runs, a committer that makes their steps durable, and the hand-out of tasks to workers.
//!
//! Leaves transport to `http` and `client`, and the meaning of flows to the kernel. Invariant: decide, persist, apply, act; what a
//! caller sees is durable. Start at [`Engine`].

mod clock;
mod options;
mod watch;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use outlast_kernel::Json;
use outlast_protocol::requests::{self, Accepted, FlowView, List};
use outlast_protocol::run::RunView;
use outlast_protocol::{ApiError, Code, worker};
use outlast_store::{Filter, Store};

pub use clock::{Clock, ManualClock, Sleep, SystemClock};
pub use options::Options;
pub use watch::Watch;

/// Runs flows over a store. Cheap to clone; all clones are the same engine.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

struct Inner {
    wanted: tokio::sync::watch::Sender<BTreeSet<(String, String)>>,
}

/// Why flows are not deployed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeployError {
    /// Something else than their text.
    #[error(transparent)]
    Other(#[from] ApiError),
}

fn later<T>() -> Result<T, ApiError> {
    Err(ApiError::new(Code::NotReady, "the engine is not built yet"))
}

impl Engine {
    /// Opens a store: raises its epoch and puts its runs back to work.
    ///
    /// # Errors
    /// [`Code::Internal`] if the store cannot be read or written.
    pub async fn open(store: Arc<dyn Store>, options: Options) -> Result<Engine, ApiError> {
        let _ = (store, options);
        Ok(Engine { inner: Arc::new(Inner { wanted: tokio::sync::watch::Sender::new(BTreeSet::new()) }) })
    }

    /// Checks and deploys flows; what is deployed stays in the store.
    ///
    /// # Errors
    /// The diagnostics of the text, or what else went wrong.
    pub async fn deploy(&self, request: requests::Deploy) -> Result<Vec<FlowView>, DeployError> {
        let _ = request;
        Ok(later()?)
    }

    /// Returns the deployed flows by name.
    ///
    /// # Errors
    /// [`Code::Internal`].
    pub fn flows(&self) -> Result<Vec<FlowView>, ApiError> {
        later()
    }

    /// Starts a run, or finds the one that the same request started before (`true`).
    ///
    /// # Errors
    /// [`Code::Invalid`], [`Code::NotFound`] (flow), [`Code::Conflict`], [`Code::DiskFull`].
    pub async fn start(&self, request: requests::Start, by: &str) -> Result<(RunView, bool), ApiError> {
        let _ = (request, by);
        later()
    }

    /// Returns a run.
    ///
    /// # Errors
    /// [`Code::NotFound`].
    pub async fn get(&self, run: &str) -> Result<RunView, ApiError> {
        let _ = run;
        later()
    }

    /// Returns runs, newest first.
    ///
    /// # Errors
    /// [`Code::InvalidCursor`].
    pub async fn list(&self, filter: Filter) -> Result<List<RunView>, ApiError> {
        let _ = filter;
        later()
    }

    /// Returns a run when it ended, when only people can move it, or after `wait`.
    ///
    /// # Errors
    /// [`Code::NotFound`].
    pub async fn result(&self, run: &str, wait: Duration) -> Result<RunView, ApiError> {
        let _ = (run, wait);
        later()
    }

    /// Sends a message; type `closed` says that no more will come.
    ///
    /// # Errors
    /// [`Code::NotFound`], [`Code::Invalid`], [`Code::RunEnded`], [`Code::NotListening`], [`Code::MailboxFull`], [`Code::Conflict`].
    pub async fn message(&self, run: &str, request: requests::Send, by: &str) -> Result<Accepted, ApiError> {
        let _ = (run, request, by);
        later()
    }

    /// Sends a message and waits until the run took it: `{"handled": n}`, or `{"unread_at_end": true}`.
    ///
    /// # Errors
    /// As [`Engine::message`].
    pub async fn message_handled(
        &self,
        run: &str,
        request: requests::Send,
        by: &str,
    ) -> Result<Json, ApiError> {
        let _ = (run, request, by);
        later()
    }

    /// Pulls an unread message back.
    ///
    /// # Errors
    /// [`Code::NotFound`] if it is not unread.
    pub async fn withdraw(
        &self,
        run: &str,
        request: requests::Withdraw,
        by: &str,
    ) -> Result<Accepted, ApiError> {
        let _ = (run, request, by);
        later()
    }

    /// Answers a question.
    ///
    /// # Errors
    /// [`Code::NotFound`], [`Code::Invalid`], [`Code::AlreadyDecided`], [`Code::Conflict`], [`Code::Forbidden`], [`Code::RunEnded`].
    pub async fn answer(&self, run: &str, request: requests::Answer, by: &str) -> Result<Accepted, ApiError> {
        let _ = (run, request, by);
        later()
    }

    /// Stops a run with its clean-up.
    ///
    /// # Errors
    /// [`Code::NotFound`], [`Code::AlreadyEnding`], [`Code::RunEnded`].
    pub async fn cancel(&self, run: &str, by: &str) -> Result<Accepted, ApiError> {
        let _ = (run, by);
        later()
    }

    /// Stops a run at once.
    ///
    /// # Errors
    /// [`Code::NotFound`], [`Code::RunEnded`].
    pub async fn terminate(&self, run: &str, by: &str) -> Result<Accepted, ApiError> {
        let _ = (run, by);
        later()
    }

    /// Settles an operation in doubt.
    ///
    /// # Errors
    /// [`Code::NotFound`], [`Code::Invalid`].
    pub async fn settle(&self, run: &str, request: requests::Settle, by: &str) -> Result<Accepted, ApiError> {
        let _ = (run, request, by);
        later()
    }

    /// Gives a held operation fresh attempts.
    ///
    /// # Errors
    /// [`Code::NotFound`].
    pub async fn release(
        &self,
        run: &str,
        request: requests::Release,
        by: &str,
    ) -> Result<Accepted, ApiError> {
        let _ = (run, request, by);
        later()
    }

    /// Returns stored events after `after` as the contract shows them, emits after the event that caused them.
    ///
    /// # Errors
    /// [`Code::NotFound`].
    pub async fn events(&self, run: &str, after: u64, limit: usize) -> Result<List<Json>, ApiError> {
        let _ = (run, after, limit);
        later()
    }

    /// Follows a run: the frames after `last_event_id` (`RUN/n.k`), all of them if there is none.
    ///
    /// # Errors
    /// [`Code::NotFound`], [`Code::InvalidCursor`].
    pub async fn watch(&self, run: &str, last_event_id: Option<&str>) -> Result<Watch, ApiError> {
        let _ = (run, last_event_id);
        later()
    }

    /// Takes in a worker.
    ///
    /// # Errors
    /// [`Code::Invalid`], [`Code::NotReady`].
    pub async fn register(&self, request: worker::Register) -> Result<worker::Registered, ApiError> {
        let _ = request;
        later()
    }

    /// Gives a worker tasks, waiting for the first one.
    ///
    /// # Errors
    /// [`Code::NotFound`] if the session is not known (any more): register again.
    pub async fn poll(&self, request: worker::Poll) -> Result<worker::Polled, ApiError> {
        let _ = request;
        later()
    }

    /// Takes results.
    ///
    /// # Errors
    /// [`Code::NotFound`] if the session is not known (any more): register again.
    pub async fn report(&self, request: worker::Report) -> Result<worker::Reported, ApiError> {
        let _ = request;
        later()
    }

    /// Takes signs of life and partial output.
    ///
    /// # Errors
    /// [`Code::NotFound`] if the session is not known (any more): register again.
    pub async fn progress(&self, request: worker::Progress) -> Result<(), ApiError> {
        let _ = request;
        later()
    }

    /// Waits for attempts that a worker must stop.
    ///
    /// # Errors
    /// [`Code::NotFound`] if the session is not known (any more): register again.
    pub async fn control(&self, session: &str, wait_ms: u64) -> Result<worker::Control, ApiError> {
        let _ = (session, wait_ms);
        later()
    }

    /// Takes note that a worker's process ended: its tasks are lost at once.
    pub async fn worker_gone(&self, boot: &str) {
        let _ = boot;
    }

    /// Returns profiles and queues with work that no session serves, as it changes.
    #[must_use]
    pub fn profiles_wanted(&self) -> tokio::sync::watch::Receiver<BTreeSet<(String, String)>> {
        self.inner.wanted.subscribe()
    }

    /// Keeps an environment profile.
    ///
    /// # Errors
    /// [`Code::Internal`], [`Code::DiskFull`].
    pub async fn put_profile(&self, name: &str, record: Json) -> Result<(), ApiError> {
        let _ = (name, record);
        later()
    }

    /// Returns an environment profile.
    ///
    /// # Errors
    /// [`Code::Internal`].
    pub fn profile(&self, name: &str) -> Result<Option<Json>, ApiError> {
        let _ = name;
        later()
    }

    /// Waits until the engine cannot go on, and returns why. The process should exit then, non-zero.
    pub async fn failed(&self) -> String {
        std::future::pending().await
    }

    /// Returns figures for `doctor` and health checks.
    #[must_use]
    pub fn status(&self) -> Json {
        Json::Null
    }

    /// Takes no more work and makes what was taken durable. Writes no event of any run.
    pub async fn shutdown(&self) {}
}
