//! Starts the stock workers that runs need and starts them again when they die.
//!
//! Leaves what workers do to themselves and which tasks are lost to the engine. Invariant: at most one worker of a kind serves a profile; a
//! worker outlives the runtime that started it and is taken over by the next one, so work in hand is not lost with the runtime.
//! Start at [`Supervisor`].

mod backoff;
mod process;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use outlast_kernel::Json;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinSet;

use crate::engine::Engine;
use crate::limits::{SUPERVISED_MAX, SUPERVISOR_LOOK_MS, WORKER_STOP_MS_MAX};
use backoff::Backoff;
use outlast_protocol::profile::Profile;
use process::{Process, Running, Survivor};

/// How workers are started.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The binary that has the `worker` subcommand.
    pub program: PathBuf,
    /// The runtime's socket.
    pub socket: PathBuf,
    /// Where workers write what they have to say.
    pub logs: PathBuf,
}

/// A stock worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Answers queue `model`.
    Model,
    /// Answers queue `tool`.
    Tool,
}

impl Kind {
    /// Returns the name of the subcommand, which is also that of its own queue.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Model => "model",
            Kind::Tool => "tool",
        }
    }

    /// Returns the stock workers that answer a queue; none for queues of other workers.
    #[must_use]
    pub fn of_queue(queue: &str) -> &'static [Kind] {
        match queue {
            "model" => &[Kind::Model],
            "tool" => &[Kind::Tool],
            "default" => &[Kind::Model, Kind::Tool],
            _ => &[],
        }
    }

    /// Returns the worker of a subcommand.
    #[must_use]
    pub fn named(name: &str) -> Option<Kind> {
        [Kind::Model, Kind::Tool].into_iter().find(|kind| kind.name() == name)
    }
}

/// For whom a worker is kept.
#[derive(Clone)]
enum Employer {
    /// The engine of this process, which knows the profiles and wants to know of deaths.
    Engine(Engine),
    /// A driver whose profile works in this directory.
    Driver(PathBuf),
}

impl Employer {
    /// Returns the directory of a profile whose workers can be started here.
    fn directory(&self, post: &Post) -> Option<PathBuf> {
        match self {
            Employer::Engine(engine) => can_serve(engine, post),
            Employer::Driver(directory) => directory.is_dir().then(|| directory.clone()),
        }
    }
}

/// Who is kept: a profile's name and a kind.
type Post = (String, Kind);

/// Keeps workers alive until it is stopped.
#[derive(Debug)]
pub struct Supervisor {
    tasks: JoinSet<()>,
    staff: Arc<Staff>,
}

/// The processes in charge.
#[derive(Debug, Default)]
struct Staff(Mutex<BTreeMap<Post, Option<Process>>>);

impl Staff {
    fn posts(&self) -> MutexGuard<'_, BTreeMap<Post, Option<Process>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Supervisor {
    /// Takes over the workers that a former runtime left behind, and starts one for each profile and queue that has work and no worker.
    #[must_use]
    pub fn start(engine: Engine, setup: Setup) -> Supervisor {
        let staff = Arc::<Staff>::default();
        let mut tasks = JoinSet::new();
        tasks.spawn(watch(engine, setup, Arc::clone(&staff)));
        Supervisor { tasks, staff }
    }

    /// Keeps one worker alive for a driver that only attached: the host has none of the driver's keys, so it cannot start that worker.
    #[must_use]
    pub fn bring(setup: Setup, profile: &str, kind: Kind, directory: PathBuf) -> Supervisor {
        let staff = Arc::<Staff>::default();
        let mut tasks = JoinSet::new();
        let post = (profile.to_owned(), kind);
        hire(&staff, &post);
        tasks.spawn(keep(Employer::Driver(directory), setup, Arc::clone(&staff), post, None));
        Supervisor { tasks, staff }
    }

    /// Stops idle workers and waits for their end. Workers with a task in hand are left to finish it: they deliver to the next runtime,
    /// or end themselves when none comes.
    pub async fn stop(mut self, status: &Json) {
        self.tasks.shutdown().await;
        let processes: Vec<Process> = self.staff.posts().values().flatten().cloned().collect();
        let idle: Vec<Process> =
            processes.into_iter().filter(|worker| !is_busy(status, &worker.boot)).collect();
        for worker in &idle {
            worker.terminate();
        }
        let end = Instant::now() + Duration::from_millis(WORKER_STOP_MS_MAX);
        for worker in &idle {
            worker.ended_by(end).await;
            worker.kill();
        }
    }
}

/// Whether the engine's figures say that a worker has something in hand.
fn is_busy(status: &Json, boot: &str) -> bool {
    let sessions = status.get("sessions").and_then(Json::as_array).into_iter().flatten();
    let of_worker = |session: &&Json| session.get("boot").and_then(Json::as_str) == Some(boot);
    sessions.filter(of_worker).any(|s| s.get("in_hand").and_then(Json::as_u64).unwrap_or(0) > 0)
}

async fn watch(engine: Engine, setup: Setup, staff: Arc<Staff>) {
    let mut keepers = JoinSet::new();
    for survivor in process::survivors(&setup) {
        let post = (survivor.profile.clone(), survivor.kind);
        tracing::info!(pid = survivor.process.pid, kind = post.1.name(), "took over a worker");
        if hire(&staff, &post) {
            keepers.spawn(keep(
                Employer::Engine(engine.clone()),
                setup.clone(),
                Arc::clone(&staff),
                post,
                Some(survivor),
            ));
        }
    }
    let mut wanted = engine.profiles_wanted();
    loop {
        let now: BTreeSet<(String, String)> = wanted.borrow_and_update().clone();
        for (profile, queue) in now {
            for kind in Kind::of_queue(&queue) {
                let post = (profile.clone(), *kind);
                if can_serve(&engine, &post).is_some() && hire(&staff, &post) {
                    keepers.spawn(keep(
                        Employer::Engine(engine.clone()),
                        setup.clone(),
                        Arc::clone(&staff),
                        post,
                        None,
                    ));
                }
            }
        }
        while keepers.try_join_next().is_some() {}
        // A directory may come back without any news from the engine, so look now and then.
        let look = tokio::time::timeout(Duration::from_millis(SUPERVISOR_LOOK_MS), wanted.changed()).await;
        if matches!(look, Ok(Err(_))) {
            return;
        }
    }
}

/// Takes a post if it is free and there is room for one more process.
fn hire(staff: &Staff, post: &Post) -> bool {
    let mut posts = staff.posts();
    let free = !posts.contains_key(post) && posts.len() < SUPERVISED_MAX;
    if free {
        posts.insert(post.clone(), None);
    }
    free
}

/// Returns the directory of a profile whose workers can be started here.
fn can_serve(engine: &Engine, (profile, kind): &Post) -> Option<PathBuf> {
    let record = engine.profile(profile).ok()??;
    let profile: Profile = serde_json::from_value(record).ok()?;
    // Keys are not handed around: whoever started the run brings a worker of its own if we have none.
    let has_key = profile.model.key_envs().into_iter().all(|name| std::env::var_os(name).is_some());
    let fits = match kind {
        Kind::Model => has_key,
        Kind::Tool => true,
    };
    (fits && profile.directory.is_dir()).then_some(profile.directory)
}

/// Keeps one post filled for as long as it can be served.
async fn keep(
    employer: Employer,
    setup: Setup,
    staff: Arc<Staff>,
    post: Post,
    mut survivor: Option<Survivor>,
) {
    let mut backoff = Backoff::default();
    loop {
        let since = Instant::now();
        // From before its start on, so that no word of it is missed.
        let mut given_up = match &employer {
            Employer::Engine(engine) => Some(engine.given_up()),
            Employer::Driver(_) => None,
        };
        let started = match survivor.take() {
            Some(survivor) => Ok(Running::Survivor(survivor.process)),
            None => match employer.directory(&post) {
                Some(directory) => process::start(&setup, &post.0, post.1, &directory),
                None => break,
            },
        };
        match started {
            Ok(running) => {
                let process = running.process().clone();
                staff.posts().insert(post.clone(), Some(process.clone()));
                let how = match &mut given_up {
                    Some(given_up) => end_of(&process, running, given_up).await,
                    None => running.ended().await,
                };
                staff.posts().insert(post.clone(), None);
                tracing::warn!(pid = process.pid, kind = post.1.name(), "a worker ended: {how}");
                if let Employer::Engine(engine) = &employer {
                    engine.worker_gone(&process.boot).await;
                }
            }
            Err(error) => tracing::error!(kind = post.1.name(), "cannot start a worker: {error}"),
        }
        tokio::time::sleep(backoff.after_life_of(since.elapsed())).await;
    }
    staff.posts().remove(&post);
}

/// Waits for the end of a worker. One that was given up is stopped or stuck: it is ended, so that another one can take its post.
async fn end_of(process: &Process, running: Running, given_up: &mut Receiver<String>) -> String {
    let mut ended = std::pin::pin!(running.ended());
    loop {
        tokio::select! {
            how = &mut ended => return how,
            boot = given_up.recv() => match boot {
                Ok(boot) if boot == process.boot => {
                    tracing::warn!(pid = process.pid, "a worker gave no sign of life for a lease, and is ended");
                    process.kill();
                }
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return ended.await,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_worker_with_a_task_in_hand_is_busy() {
        let status = json!({ "sessions": [{ "boot": "a", "in_hand": 0 }, { "boot": "b", "in_hand": 2 }] });
        for (boot, busy) in [("a", false), ("b", true), ("c", false)] {
            assert_eq!(is_busy(&status, boot), busy, "{boot}");
        }
        assert!(!is_busy(&Json::Null, "a"));
    }

    #[test]
    fn queues_of_others_have_no_stock_worker() {
        assert_eq!(Kind::of_queue("model"), [Kind::Model]);
        assert_eq!(Kind::of_queue("default"), [Kind::Model, Kind::Tool]);
        assert_eq!(Kind::of_queue("gpu"), []);
    }
}
