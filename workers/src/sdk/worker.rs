//! Builds a worker and runs it from the first connection to the last delivered result.
//!
//! Leaves the calls to the loops. Invariant: when `serve` returns, no attempt runs, and every result was acknowledged or given up
//! after a stated time.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::time::Duration;

use outlast_protocol::worker::{Register, StoppedWhy};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use super::activity::Activity;
use super::address;
use super::client::{Client, Credentials};
use super::desk::Desk;
use super::link::Link;
use super::loops::Shared;
use super::secrets::Secrets;
use crate::limits::{DELIVER_MAX, DRAIN_MAX, HOLD_MAX, ORPHAN_AFTER, STOP_GRACE};

/// Why a worker cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// The builder was given something that cannot work. Mend it.
    #[error("cannot start the worker: {0}")]
    Configuration(String),
    /// The runtime will not have this worker. Mend what it offers.
    #[error("the runtime refuses this worker: {0}")]
    Refused(String),
    /// The system would not do its part.
    #[error("cannot run the worker")]
    System(#[from] std::io::Error),
}

/// The activities of a worker by name.
#[derive(Clone, Default)]
pub(crate) struct Activities(BTreeMap<String, Arc<dyn Activity>>);

impl std::fmt::Debug for Activities {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Activities {
    pub(crate) fn get(&self, name: &str) -> Option<Arc<dyn Activity>> {
        self.0.get(name).cloned()
    }
}

/// A worker, ready to serve.
#[derive(Debug)]
pub struct Worker {
    shared: Arc<Shared>,
    drain_max: Duration,
    orphan_after: Option<Duration>,
}

/// Collects what a worker is.
#[derive(Debug)]
pub struct WorkerBuilder {
    activities: Activities,
    twice: Option<String>,
    address: String,
    credentials: Credentials,
    drain_max: Duration,
    orphan_after: Option<Duration>,
    secrets: Secrets,
    register: Register,
}

impl Worker {
    /// Starts to describe a worker. Its name gets the process's boot id appended, so that it is unique.
    #[must_use]
    pub fn builder(name: &str) -> WorkerBuilder {
        let boot = new_boot();
        WorkerBuilder {
            activities: Activities::default(),
            twice: None,
            address: String::new(),
            credentials: Credentials::default(),
            drain_max: DRAIN_MAX,
            orphan_after: None,
            secrets: Secrets::default(),
            register: Register {
                worker: format!("{name}-{boot}"),
                boot,
                queues: vec!["default".to_owned()],
                concurrency: 1,
                pid: Some(std::process::id()),
                ..Register::default()
            },
        }
    }

    /// Serves until SIGTERM or SIGINT, then drains.
    ///
    /// # Errors
    /// [`WorkerError::Refused`] if the runtime will not have this worker; a runtime that is away is waited for.
    pub async fn serve(self) -> Result<(), WorkerError> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        self.serve_until(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        })
        .await
    }

    /// Serves until `leave` is ready, then drains.
    ///
    /// # Errors
    /// As [`Worker::serve`].
    pub async fn serve_until(self, leave: impl Future<Output = ()>) -> Result<(), WorkerError> {
        let shared = &self.shared;
        // The loops die with this future, whether it ends or is dropped.
        let mut loops = JoinSet::new();
        let mut polling = JoinSet::new();
        polling.spawn(shared.clone().poll());
        loops.spawn(shared.clone().report());
        loops.spawn(shared.clone().progress());
        loops.spawn(shared.clone().control());
        loops.spawn(shared.clone().fence());
        let _stop = StopOnDrop(shared.desk.clone());
        let refused = shared.clone().keep_registered();
        let orphaned = async {
            match self.orphan_after {
                Some(after) => shared.orphaned(after).await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(refused);
        tokio::select! {
            error = &mut refused => return Err(error),
            () = orphaned => {
                tracing::warn!("the runtime is gone and nothing is in hand: leaving");
                return Ok(());
            }
            () = leave => {}
        }
        tokio::select! {
            _ = &mut refused => {}
            () = self.drain(polling) => {}
        }
        Ok(())
    }

    async fn drain(&self, mut polling: JoinSet<()>) {
        let shared = &self.shared;
        tracing::info!(load = ?shared.desk.load(), "leaving");
        shared.leaving.send_replace(true);
        shared.say_leaving().await;
        // A poll that is under way may bring tasks until the runtime has heard that we leave.
        let _late = tokio::time::timeout(STOP_GRACE, polling.join_next()).await;
        polling.abort_all();
        let idle = || shared.desk.until(|load| load.running == 0);
        if tokio::time::timeout(self.drain_max, idle()).await.is_err() {
            shared.desk.stop_all(StoppedWhy::Leaving);
            let _late = tokio::time::timeout(STOP_GRACE * 2 + HOLD_MAX, idle()).await;
        }
        let delivered = shared.desk.until(|load| load.unacknowledged == 0);
        if tokio::time::timeout(DELIVER_MAX, delivered).await.is_err() {
            tracing::warn!(load = ?shared.desk.load(), "left with results that were not acknowledged");
        }
    }
}

/// Attempts run as tasks of their own; a worker whose future is dropped must not leave them running.
struct StopOnDrop(Arc<Desk>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop_all(StoppedWhy::Leaving);
    }
}

impl WorkerBuilder {
    /// Adds an activity.
    #[must_use]
    pub fn activity(self, activity: impl Activity) -> WorkerBuilder {
        self.shared_activity(Arc::new(activity))
    }

    /// Adds an activity that others hold too.
    #[must_use]
    pub fn shared_activity(mut self, activity: Arc<dyn Activity>) -> WorkerBuilder {
        let offer = activity.offer();
        if self.activities.0.insert(offer.name.clone(), activity).is_some() {
            self.twice = Some(offer.name.clone());
        }
        self.register.activities.push(offer);
        self
    }

    /// Where the runtime is: `http://host:port`, `https://host:port` or `unix:/path/socket`. If not called, the environment says it:
    /// `OUTLAST_URL`, with `OUTLAST_TOKEN` and `OUTLAST_CA`, else it is the socket of the user's data directory (`OUTLAST_DATA`).
    #[must_use]
    pub fn connect(mut self, address: &str) -> WorkerBuilder {
        address.clone_into(&mut self.address);
        self
    }

    /// The access token, if the runtime wants one.
    #[must_use]
    pub fn bearer(mut self, token: Option<String>) -> WorkerBuilder {
        self.credentials.bearer = token;
        self
    }

    /// As whom the runtime is called, and whom to trust that it is the one.
    #[must_use]
    pub fn credentials(mut self, credentials: Credentials) -> WorkerBuilder {
        self.credentials = credentials;
        self
    }

    /// What its activities may know and nobody else: see [`Secrets::from_environment`].
    #[must_use]
    pub fn secrets(mut self, secrets: Secrets) -> WorkerBuilder {
        self.secrets = secrets;
        self
    }

    /// The queues to poll; `default` if not called.
    #[must_use]
    pub fn queues<'a>(mut self, queues: impl IntoIterator<Item = &'a str>) -> WorkerBuilder {
        self.register.queues = queues.into_iter().map(str::to_owned).collect();
        self
    }

    /// The environment profile that it serves; all if not called.
    #[must_use]
    pub fn profile(mut self, profile: Option<String>) -> WorkerBuilder {
        self.register.profile = profile;
        self
    }

    /// How many attempts run at once; 1 if not called.
    #[must_use]
    pub fn concurrency(mut self, concurrency: u32) -> WorkerBuilder {
        self.register.concurrency = concurrency;
        self
    }

    /// The boot id, if whoever starts this process wants to know it beforehand.
    #[must_use]
    pub fn boot(mut self, boot: Option<String>) -> WorkerBuilder {
        if let Some(boot) = boot {
            self.register.worker = self.register.worker.replace(&self.register.boot, &boot);
            self.register.boot = boot;
        }
        self
    }

    /// How long a leaving worker lets attempts run on.
    #[must_use]
    pub fn drain_max(mut self, drain_max: Duration) -> WorkerBuilder {
        self.drain_max = drain_max;
        self
    }

    /// The runtime started this process: it ends itself when the runtime is gone and nothing is in hand.
    #[must_use]
    pub fn supervised(self) -> WorkerBuilder {
        self.orphan_after(ORPHAN_AFTER)
    }

    /// As `supervised`, with another time.
    #[must_use]
    pub fn orphan_after(mut self, after: Duration) -> WorkerBuilder {
        self.orphan_after = Some(after);
        self
    }

    /// Where the runtime is, and as whom it is called.
    fn reach(&self) -> Result<(String, Credentials), String> {
        if !self.address.is_empty() {
            return Ok((self.address.clone(), self.credentials.clone()));
        }
        let variable = |name: &str| std::env::var_os(name);
        Ok((address::usual(&variable)?, address::credentials(self.credentials.clone(), &variable)))
    }

    /// Finishes.
    ///
    /// # Errors
    /// [`WorkerError::Configuration`] if the address is odd, there is nothing to offer, or a name is offered twice.
    pub fn build(self) -> Result<Worker, WorkerError> {
        if let Some(name) = self.twice {
            return Err(WorkerError::Configuration(format!("{name} is offered twice")));
        }
        if self.activities.0.is_empty() || self.register.concurrency == 0 {
            return Err(WorkerError::Configuration("it offers nothing".to_owned()));
        }
        let (address, credentials) = self.reach().map_err(WorkerError::Configuration)?;
        let client = Client::new(&address, credentials).map_err(WorkerError::Configuration)?;
        self.secrets.hide_in_log();
        let shared = Shared {
            link: Link::new(client),
            desk: Arc::new(Desk::new(self.secrets)),
            activities: self.activities,
            register: self.register,
            leaving: watch::Sender::new(false),
            signs: Arc::new(Notify::new()),
        };
        Ok(Worker { shared: Arc::new(shared), drain_max: self.drain_max, orphan_after: self.orphan_after })
    }
}

/// An id that no other process has: the process id and the hasher's random keys.
fn new_boot() -> String {
    let random = std::collections::hash_map::RandomState::new().build_hasher().finish();
    format!("{:x}-{random:016x}", std::process::id())
}
