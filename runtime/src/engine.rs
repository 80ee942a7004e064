//! The engine: shards that own runs, a committer that makes their steps durable, and the hand-out of tasks to workers.
//!
//! Leaves transport to `http` and `client`, and the meaning of flows to the kernel. Invariant: decide, persist, apply, act; what a
//! caller sees is durable. Start at [`Engine`]; an input's way is `runs` → `shard` → `committer` → `shard` → whoever waits.

mod adoption;
mod audit;
mod blobs;
mod census;
mod clock;
mod committer;
mod context;
mod core;
mod counters;
mod deletions;
mod deploy;
mod desk;
mod dispatch;
mod draft;
mod environments;
pub(crate) mod errors;
mod flows;
mod forks;
mod frames;
mod history;
mod hydrated;
mod keyring;
mod live;
mod message;
mod migrations;
mod opening;
mod options;
mod outbox;
mod parcel;
mod quarantine;
mod retention;
mod runs;
mod schedules;
mod seal;
mod session;
mod shard;
mod timers;
mod token;
mod transfer;
mod usage;
mod view;
mod waiting;
mod walks;
mod watch;
mod watchers;
mod way;
mod workers;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use outlast_kernel::Json;
use outlast_protocol::{ApiError, Code};
use outlast_store::Store;
use serde_json::json;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinSet;

use crate::limits;
use adoption::Adoption;
use committer::Committer;
use context::{Context, Post, Random, Shards};
use core::Core;
use counters::Counters;
use desk::Desks;
use dispatch::Dispatch;
use flows::Flows;
use hydrated::{Budget, Gauge};
use keyring::Keyring;
use message::Message;
use quarantine::Quarantine;
use schedules::Schedules;
use shard::Shard;
use walks::Walks;

pub use clock::{Clock, ManualClock, Sleep, SystemClock};
pub use deploy::DeployError;
pub(crate) use keyring::Key;
pub use options::Options;
pub use watch::Watch;

/// Runs flows over a store. Cheap to clone; all clones are the same engine, which ends with the last of them.
#[derive(Clone)]
pub struct Engine {
    core: Arc<Core>,
    inner: Arc<Inner>,
}

struct Inner {
    committer: Committer,
    schedules: mpsc::Sender<schedules::Ask>,
    starts_schedules: bool,
    tasks: Mutex<JoinSet<()>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // The tasks end with their set; the thread ends when its queue is empty.
        self.committer.close();
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("epoch", &self.core.ctx.epoch).finish_non_exhaustive()
    }
}

/// Begins what an engine does beside its shards.
fn begin_loops(core: &Arc<Core>, tasks: &mut JoinSet<()>) {
    tasks.spawn(Arc::clone(core).watch_deadlines());
    tasks.spawn(Arc::clone(core).recover());
    tasks.spawn(Arc::clone(core).purge());
    tasks.spawn(Arc::clone(core).retain());
}

impl Engine {
    /// Opens a store: raises its epoch and begins to put its runs back to work, beside which new work is served at once.
    ///
    /// # Errors
    /// [`Code::Internal`] if the store cannot be read or written, [`Code::NotReady`] if the wall clock is far behind it.
    pub async fn open(store: Arc<dyn Store>, options: Options) -> Result<Engine, ApiError> {
        let random = Arc::new(Random::new(options.seed));
        let mut opening = opening::read_aside(Arc::clone(&store), Arc::clone(&random)).await?;
        let shards = options.shards.max(1);
        let desks = Desks::read(options.desk.as_deref());
        let (quarantine, puts) = Quarantine::open(&*store, desks.crashes())?;
        opening.puts.extend(puts);
        let opened_at = opening::set_clock(&options, opening.newest)?;
        let counters = Arc::new(Counters::new(opening.census.counts(), options.spans.clone()));
        let (committer, thread) = Committer::start(Arc::clone(&store), opening.census, Arc::clone(&counters))
            .map_err(|e| ApiError::new(Code::Internal, format!("no thread for the committer: {e}")))?;
        let owed = opening::keep(&committer, &opening).await?;
        let is_kept = owed.is_empty();
        let desks = desks.lay_out(shards, |run| is_kept && quarantine.holds(run));
        let within = |ms: u64| opened_at.plus(ms.max(options.adopt_within_ms));
        let adoption = Adoption::new(opening.sessions.clone(), within(0), within(options.lease_ms));
        let (post, letters) = Post::new();
        let ctx = Arc::new(Context {
            clock: Arc::clone(&options.clock),
            dispatch: Dispatch::new(options.lease_ms, adoption, options.rates, opened_at),
            committer: committer.clone(),
            counters,
            quarantine,
            post,
            flows: Flows::open(Arc::clone(&store))?,
            keyring: Keyring::open(&*store)?,
            key: opening.key,
            epoch: opening.epoch,
            opened_at,
            lease_ms: options.lease_ms,
            random,
            store,
            walks: Walks::default(),
            hydrated: Arc::new(Gauge::default()),
            purge: Notify::new(),
            retention: Notify::new(),
        });
        let (senders, receivers): (Vec<_>, Vec<_>) =
            (0..shards).map(|_| mpsc::channel(limits::SHARD_MESSAGES)).unzip();
        let core = Arc::new(Core::new(Arc::clone(&ctx), Shards::new(senders), &opening.sessions, owed));
        let mut tasks = JoinSet::new();
        let budget = Budget {
            runs: options.live_runs_max.div_ceil(shards),
            bytes: options.memory_budget.div_ceil(shards),
            resting: limits::RESTING_RUNS_MAX.div_ceil(shards),
        };
        for ((number, messages), desk) in receivers.into_iter().enumerate().zip(desks) {
            tasks.spawn(Shard::new(Arc::clone(&ctx), (number, shards), budget, desk, messages).run());
        }
        tasks.spawn(Arc::clone(&core).carry(letters));
        begin_loops(&core, &mut tasks);
        let (schedules, asks) = mpsc::channel(limits::SCHEDULE_ASKS);
        let starts_schedules = options.schedules;
        tasks.spawn(Schedules::open(Arc::clone(&core), starts_schedules)?.run(asks));
        let (tasks, thread) = (Mutex::new(tasks), Mutex::new(Some(thread)));
        let inner = Inner { committer, schedules, starts_schedules, tasks, thread };
        Ok(Engine { core, inner: Arc::new(inner) })
    }

    /// Returns profiles and queues with work that no session serves, as it changes.
    #[must_use]
    pub fn profiles_wanted(&self) -> tokio::sync::watch::Receiver<BTreeSet<(String, String)>> {
        self.core.ctx.dispatch.wanted()
    }

    /// Tells, by boot id, which workers are given up from now on: their leases ended, whether their processes live or not.
    #[must_use]
    pub fn given_up(&self) -> tokio::sync::broadcast::Receiver<String> {
        self.core.given_up.subscribe()
    }

    /// Returns the engine's time.
    pub(crate) fn now(&self) -> outlast_kernel::ids::Millis {
        self.core.ctx.clock.now()
    }

    /// Seals text so that only this store's engines can read it.
    pub(crate) fn seal(&self, text: &str) -> String {
        self.core.ctx.key.seal(text)
    }

    /// Opens sealed text; none if it was not sealed here.
    pub(crate) fn unseal(&self, sealed: &str) -> Option<String> {
        self.core.ctx.key.open(sealed)
    }

    /// Waits until the engine cannot go on, and returns why. The process should exit then, non-zero.
    pub async fn failed(&self) -> String {
        let mut failed = self.core.ctx.committer.failed();
        let why = failed.wait_for(Option::is_some).await.ok().and_then(|why| why.clone());
        match why {
            Some(why) => why,
            // The committer ended without a failure: the engine was shut down.
            None => std::future::pending().await,
        }
    }

    /// Returns figures for `doctor` and health checks.
    #[must_use]
    pub fn status(&self) -> Json {
        let ctx = &self.core.ctx;
        let failed = ctx.committer.failed().borrow().clone();
        let mut status = ctx.dispatch.figures(ctx.clock.now());
        status["ready"] =
            json!(failed.is_none() && !self.core.shards.all().iter().any(mpsc::Sender::is_closed));
        status["recovering"] = json!(*self.core.recovering.borrow());
        status["failed"] = json!(failed);
        status["quarantined"] = json!(ctx.quarantine.runs());
        let hydrated = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
        status["hydrated"] = json!({
            "runs": hydrated(&ctx.hydrated.runs), "bytes": hydrated(&ctx.hydrated.bytes), "read": hydrated(&ctx.hydrated.read),
        });
        status["schedules"] = json!(self.inner.starts_schedules);
        status["epoch"] = json!(ctx.epoch);
        status["shards"] = json!(self.core.shards.all().len());
        status
    }

    /// Takes no more work and makes what was taken durable. Writes no event of any run.
    pub async fn shutdown(&self) {
        let mut waits = Vec::new();
        for shard in self.core.shards.all() {
            let (stopped, wait) = oneshot::channel();
            if shard.send(Message::Stop(stopped)).await.is_ok() {
                waits.push(wait);
            }
        }
        for wait in waits {
            // A shard that ended otherwise has nothing more to make durable.
            let _ = wait.await;
        }
        self.inner.committer.close();
        let thread = self.inner.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let joined = tokio::task::spawn_blocking(move || thread.join()).await;
            if !matches!(joined, Ok(Ok(()))) {
                tracing::error!("the committer did not end as it should");
            }
        }
        self.inner.tasks.lock().unwrap_or_else(PoisonError::into_inner).abort_all();
    }
}
