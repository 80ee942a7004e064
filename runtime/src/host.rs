//! A data directory in use: whoever comes first hosts the engine, everybody else attaches to it through its socket.
//!
//! Leaves what to ask the engine to the drivers. Invariant: a driver talks through the socket whether it hosts or not, so both ways are one;
//! when the host dies, those attached race for the lock and the winner hosts. Start at [`Session`].

mod hosting;
mod patience;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use outlast_protocol::{ApiError, Code};
pub use outlast_store::{StoreError, group_commits};
use tokio::sync::{Mutex, watch};
use tokio::task::JoinSet;

use crate::client::{Address, Client, ClientError, Follow};
use crate::engine::Engine;
use crate::http::{AccessLog, Listener, PROTOCOL};
use crate::limits::{ATTACH_MS_MAX, ATTACH_RETRY_MS};
use crate::supervisor::{Kind, Setup, Supervisor};
use crate::telemetry::Collector;
use hosting::Hosting;
use outlast_protocol::profile::Profile;
use outlast_protocol::rates::Rate;
use patience::Patience;

/// The socket's name in the data directory.
const SOCKET: &str = "socket";

/// How a data directory is used.
#[derive(Clone, Debug)]
pub struct Options {
    /// The data directory.
    pub directory: PathBuf,
    /// The binary that has the `worker` subcommand; none: no workers are started.
    pub program: Option<PathBuf>,
    /// The environment of runs that name none, if this process hosts.
    pub profile: Option<Profile>,
    /// Where a line about each request goes, if this process hosts.
    pub access_log: Option<AccessLog>,
    /// About how many bytes the states of runs may have in memory, if this process hosts; none: [`crate::limits::MEMORY_BUDGET_BYTES`].
    pub memory_budget: Option<usize>,
    /// Whether a store whose newest event is far ahead of the clock is opened, if this process hosts: its time goes on from there.
    pub accept_clock: bool,
    /// How fast queues give out their tasks, if this process hosts, by their names.
    pub rates: BTreeMap<String, Rate>,
    /// Whether runs of schedules are started when they are due, if this process hosts: for those that are there to serve.
    pub schedules: bool,
    /// Where spans of runs are sent, if this process hosts; none: nowhere.
    pub collector: Option<Collector>,
}

impl Options {
    /// The directory as it is (made if it is not there), without workers of its own, leaving schedules alone.
    #[must_use]
    pub fn new(directory: impl Into<PathBuf>) -> Options {
        let directory = directory.into();
        let (program, profile, access_log, memory_budget) = (None, None, None, None);
        Options {
            directory,
            program,
            profile,
            access_log,
            memory_budget,
            accept_clock: false,
            rates: BTreeMap::new(),
            schedules: false,
            collector: None,
        }
    }
}

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Somebody else has it and does not answer: wait, or look at that process.
    #[error("{} is in use by process {pid}, which does not answer at its socket ({detail})", directory.display())]
    Busy {
        /// The data directory.
        directory: PathBuf,
        /// The owner's process id; 0 if unknown.
        pid: u32,
        /// What was tried last.
        detail: String,
    },
    /// The host speaks another version of the protocol: use the same release.
    #[error("process {pid} hosts {} with protocol {found}, this release speaks {PROTOCOL}", directory.display())]
    Skew {
        /// The data directory.
        directory: PathBuf,
        /// The host.
        pid: u64,
        /// Its protocol version.
        found: u64,
    },
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The engine cannot be opened.
    #[error(transparent)]
    Engine(#[from] ApiError),
    /// The socket cannot be made.
    #[error("cannot listen at {}: {source}", path.display())]
    Socket {
        /// The socket.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
}

/// Why a call through a session gave no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The runtime answered with an error, or not as it should.
    #[error(transparent)]
    Call(#[from] ClientError),
    /// The runtime went away, and the data directory cannot be opened again.
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// A data directory in use.
pub struct Session {
    options: Options,
    client: Client,
    hosting: Arc<Mutex<Option<Hosting>>>,
    /// The engine hosted here, for those who only watch: they must not wait for the lock, see [`Session::failed`].
    hosted: watch::Sender<Option<Engine>>,
    /// Workers that this process brought although it only attached.
    brought: Mutex<Vec<Supervisor>>,
}

impl Session {
    /// Hosts the directory, or attaches to its host.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn open(options: Options) -> Result<Session, OpenError> {
        let client = Client::new(Address::Unix(socket(&options.directory)), None);
        let hosting = match host_or_attach(&options, &client).await? {
            Host::Here(hosting) => Some(*hosting),
            Host::There(_) => None,
        };
        Ok(Session::with(options, client, hosting))
    }

    fn with(options: Options, client: Client, hosting: Option<Hosting>) -> Session {
        let hosted = watch::Sender::new(hosting.as_ref().map(Hosting::engine));
        Session { options, client, hosting: Arc::new(Mutex::new(hosting)), hosted, brought: Mutex::default() }
    }

    /// Returns where workers connect, such as `unix:data/socket`.
    #[must_use]
    pub fn address(&self) -> String {
        format!("unix:{}", socket(&self.options.directory).display())
    }

    /// Hosts the directory; does not attach. An owner that does not answer may be one that was killed and
    /// is not quite gone, so it is waited for.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn host(options: Options) -> Result<Session, OpenError> {
        let client = Client::new(Address::Unix(socket(&options.directory)), None);
        let end = Instant::now() + Duration::from_millis(ATTACH_MS_MAX);
        let hosting = loop {
            match Hosting::open(&options).await {
                Ok(hosting) => break hosting,
                Err(OpenError::Store(StoreError::Locked { .. }))
                    if client.status().await.is_err() && Instant::now() < end =>
                {
                    pause().await;
                }
                Err(error) => return Err(error),
            }
        };
        Ok(Session::with(options, client, Some(hosting)))
    }

    /// Can be reached on these listeners too, from now on, if it hosts. Who has flows to deploy does that before.
    pub async fn listen(&self, listeners: Vec<Listener>) {
        if let Some(hosting) = self.hosting.lock().await.as_mut() {
            hosting.listen(listeners);
        }
    }

    /// Returns the client of the directory's runtime. After [`ClientError::Unreachable`], [`Session::reopen`] and go on.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Returns the data directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.options.directory
    }

    /// Whether this process hosts the engine.
    #[must_use]
    pub fn is_host(&self) -> bool {
        self.hosted.borrow().is_some()
    }

    /// Makes a call that may be repeated; when the host is lost on the way, hosts or attaches anew and makes it again.
    ///
    /// # Errors
    /// [`SessionError`].
    pub async fn call<T>(
        &self,
        call: impl AsyncFn(&Client) -> Result<T, ClientError>,
    ) -> Result<T, SessionError> {
        let mut patience = Patience::default();
        loop {
            match call(&self.client).await {
                Ok(value) => return Ok(value),
                Err(error) => self.come_back(error, &mut patience).await?,
            }
        }
    }

    /// Follows a run from the frame after `last_event_id` on, as [`Session::call`] does.
    ///
    /// # Errors
    /// [`SessionError`].
    pub async fn follow(&self, run: &str, last_event_id: Option<&str>) -> Result<Follow, SessionError> {
        let mut patience = Patience::default();
        loop {
            match self.client.follow(run, last_event_id).await {
                Ok(follow) => return Ok(follow),
                Err(error) => self.come_back(error, &mut patience).await?,
            }
        }
    }

    /// Hosts or attaches anew if a call failed because the host is gone and there is patience left; else gives the error back.
    async fn come_back(&self, error: ClientError, patience: &mut Patience) -> Result<(), SessionError> {
        if !is_lost(&error) || !patience.lost(Instant::now()) {
            return Err(error.into());
        }
        pause().await;
        patience.found(self.find().await?);
        Ok(())
    }

    /// Makes sure that the directory has a host: attaches, or hosts it.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn reopen(&self) -> Result<(), OpenError> {
        self.find().await.map(|_| ())
    }

    /// Makes sure that there is a host, and returns its process id.
    ///
    /// The lock is taken by a task of its own: a caller may stand in a `select!` that does not poll it while another arm comes here
    /// too, and a future that holds the lock, or is next in its queue, and is not polled would stop them both for ever.
    async fn find(&self) -> Result<u64, OpenError> {
        let (options, client) = (self.options.clone(), self.client.clone());
        let (place, hosted) = (Arc::clone(&self.hosting), self.hosted.clone());
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut place = place.lock().await;
            if place.is_some() {
                return Ok(own_pid());
            }
            match host_or_attach(&options, &client).await? {
                Host::There(pid) => Ok(pid),
                Host::Here(hosting) => {
                    hosted.send_replace(Some(hosting.engine()));
                    *place = Some(*hosting);
                    Ok(own_pid())
                }
            }
        });
        match task.join_next().await {
            Some(Ok(found)) => found,
            Some(Err(error)) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            // Only the end of the async runtime stops the task while it is waited for, and it stops this caller too.
            Some(Err(_)) | None => std::future::pending().await,
        }
    }

    /// Brings a model worker for a kept profile whose key only this process has, unless it hosts: a host starts what is needed.
    pub async fn bring_model(&self, name: &str, profile: &Profile) {
        let Some(program) = self.options.program.clone() else { return };
        if self.is_host() || profile.model.key_envs().is_empty() {
            return;
        }
        let setup = setup(&self.options.directory, program);
        self.brought.lock().await.push(Supervisor::bring(
            setup,
            name,
            Kind::Model,
            profile.directory.clone(),
        ));
    }

    /// Waits until the engine hosted here cannot go on, and returns why; waits for ever while this process hosts none. Holds and
    /// awaits no lock, so it may stand unpolled.
    pub async fn failed(&self) -> String {
        let mut hosted = self.hosted.subscribe();
        let engine = hosted.wait_for(Option::is_some).await.ok().and_then(|engine| engine.clone());
        match engine {
            Some(engine) => engine.failed().await,
            None => std::future::pending().await,
        }
    }

    /// Leaves: a host stops taking work, makes what it took durable and stops its idle workers. No run ends by it.
    pub async fn close(self) {
        let brought = self.brought.into_inner();
        if !brought.is_empty() {
            // Without figures every worker looks idle; then the runtime is gone, and with it whoever wants results.
            let status = self.client.status().await.unwrap_or_default();
            for supervisor in brought {
                supervisor.stop(&status["engine"]).await;
            }
        }
        let hosting = self.hosting.lock().await.take();
        if let Some(hosting) = hosting {
            hosting.close().await;
        }
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("options", &self.options).finish_non_exhaustive()
    }
}

/// Whether an error says that the runtime is gone, or going.
#[must_use]
pub fn is_lost(error: &ClientError) -> bool {
    match error {
        ClientError::Unreachable { .. } => true,
        ClientError::Refused(refused) => refused.code == Code::NotReady,
        ClientError::Garbled { .. } => false,
    }
}

/// Returns how workers of a data directory are started.
fn setup(directory: &Path, program: PathBuf) -> Setup {
    Setup { program, socket: socket(directory), logs: directory.join("scratch").join("log") }
}

fn socket(directory: &Path) -> PathBuf {
    directory.join(SOCKET)
}

/// Who hosts a directory.
enum Host {
    /// This process.
    Here(Box<Hosting>),
    /// The process with this id.
    There(u64),
}

fn own_pid() -> u64 {
    u64::from(std::process::id())
}

/// Opens the store, or attaches to the one who has it.
async fn host_or_attach(options: &Options, client: &Client) -> Result<Host, OpenError> {
    let end = Instant::now() + Duration::from_millis(ATTACH_MS_MAX);
    loop {
        let owner = match Hosting::open(options).await {
            Ok(hosting) => return Ok(Host::Here(Box::new(hosting))),
            Err(OpenError::Store(StoreError::Locked { pid, .. })) => pid,
            Err(error) => return Err(error),
        };
        match client.status().await {
            Ok(status) => return check_protocol(options, &status).map(Host::There),
            Err(error) if Instant::now() >= end => {
                let (directory, detail) = (options.directory.clone(), error.to_string());
                return Err(OpenError::Busy { directory, pid: owner, detail });
            }
            Err(_) => pause().await,
        }
    }
}

/// Returns the host's process id if it speaks as we do.
fn check_protocol(options: &Options, status: &outlast_kernel::Json) -> Result<u64, OpenError> {
    let number = |name: &str| status.get(name).and_then(outlast_kernel::Json::as_u64).unwrap_or(0);
    let (found, pid) = (number("protocol"), number("pid"));
    if found == u64::from(PROTOCOL) {
        return Ok(pid);
    }
    Err(OpenError::Skew { directory: options.directory.clone(), pid, found })
}

/// Waits for a moment of random length.
async fn pause() {
    let mut byte = [0_u8; 1];
    // Without random numbers those who race may go in step for longer; nothing else depends on it.
    let _unjittered = rustix::rand::getrandom(&mut byte, rustix::rand::GetRandomFlags::empty());
    let (min, max) = ATTACH_RETRY_MS;
    let ms = min + (max - min) * u64::from(byte[0]) / 255;
    tokio::time::sleep(Duration::from_millis(ms)).await;
}
