//! A runtime that does as a test says: hands out tasks, keeps what it is told, goes away and comes back.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use axum::{Json, Router};
use outlast_protocol::error::{ApiError, Code, ErrorBody};
use outlast_protocol::worker::*;
use tokio::sync::watch;

pub(crate) struct Fake {
    pub(crate) world: Arc<World>,
    dir: tempfile::TempDir,
    server: Option<tokio::runtime::Runtime>,
}

/// What outlives a restart of the fake runtime, and what tests look at.
pub(crate) struct World {
    facts: Mutex<Facts>,
    changes: watch::Sender<u64>,
}

#[derive(Default)]
pub(crate) struct Facts {
    pub(crate) lease_ms: u64,
    pub(crate) tasks: VecDeque<Task>,
    pub(crate) registers: Vec<Register>,
    pub(crate) polls: Vec<Poll>,
    pub(crate) outcomes: Vec<Outcome>,
    pub(crate) progress: Vec<TaskProgress>,
    pub(crate) cancels: Vec<String>,
    pub(crate) drop: Vec<String>,
    pub(crate) blobs: BTreeMap<String, Vec<u8>>,
    /// What the next receipts for a token say, before they say `accepted`.
    pub(crate) receipts: BTreeMap<String, VecDeque<ReceiptStatus>>,
    pub(crate) deny_register: Option<Code>,
    /// Signs of life are answered so.
    pub(crate) deny_progress: Option<Code>,
    /// The next report with a result is answered so.
    pub(crate) deny_done: Option<Code>,
    /// Sessions before this one are unknown.
    pub(crate) first_session: usize,
}

impl World {
    pub(crate) fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap()
    }

    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Facts) -> T) -> T {
        let result = change(&mut self.facts());
        self.changes.send_modify(|count| *count += 1);
        result
    }

    /// Waits until the facts show it; panics after ten seconds.
    pub(crate) async fn until<T>(&self, what: &str, seen: impl Fn(&Facts) -> Option<T>) -> T {
        let mut changes = self.changes.subscribe();
        let wait = async {
            loop {
                changes.borrow_and_update();
                if let Some(found) = seen(&self.facts()) {
                    return found;
                }
                changes.changed().await.unwrap();
            }
        };
        match tokio::time::timeout(Duration::from_secs(10), wait).await {
            Ok(found) => found,
            Err(_) => panic!("waited in vain until {what}"),
        }
    }

    /// Waits for the end of an attempt.
    pub(crate) async fn ended(&self, token: &str) -> OutcomeKind {
        let is_end = |outcome: &&Outcome| {
            outcome.token == token && !matches!(outcome.kind, OutcomeKind::Handle { .. })
        };
        self.until(&format!("{token} ended"), |facts| facts.outcomes.iter().find(is_end).cloned()).await.kind
    }

    fn known(&self, session: &str) -> Result<(), Refusal> {
        self.facts().known(session)
    }
}

impl Facts {
    fn known(&self, session: &str) -> Result<(), Refusal> {
        let number: usize = session.trim_start_matches('s').parse().unwrap();
        if number < self.first_session { Err(Refusal(Code::NotFound)) } else { Ok(()) }
    }
}

struct Refusal(Code);

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let body = ErrorBody { error: ApiError::new(self.0, "the test says so") };
        (StatusCode::from_u16(self.0.status()).unwrap(), Json(body)).into_response()
    }
}

impl Fake {
    pub(crate) fn start() -> Fake {
        let facts = Facts { lease_ms: 30_000, ..Facts::default() };
        let world = World { facts: Mutex::new(facts), changes: watch::Sender::new(0) };
        let mut fake = Fake { world: Arc::new(world), dir: tempfile::tempdir().unwrap(), server: None };
        fake.come_back();
        fake
    }

    fn socket(&self) -> PathBuf {
        self.dir.path().join("socket")
    }

    pub(crate) fn address(&self) -> String {
        format!("unix:{}", self.socket().display())
    }

    /// Ends as a killed process does: all connections break.
    pub(crate) fn go_away(&mut self) {
        if let Some(server) = self.server.take() {
            server.shutdown_background();
        }
        std::fs::remove_file(self.socket()).unwrap();
        self.world.change(|facts| facts.first_session = facts.registers.len() + 1);
    }

    pub(crate) fn come_back(&mut self) {
        let server =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let router = Router::new()
            .route("/v1/workers/register", post(register))
            .route("/v1/workers/poll", post(poll))
            .route("/v1/workers/report", post(report))
            .route("/v1/workers/progress", post(progress))
            .route("/v1/workers/control", get(control))
            .route("/v1/profiles/{name}", get(profile))
            .route("/v1/blobs/{hash}", put(put_blob).get(blob))
            .with_state(self.world.clone());
        let socket = self.socket();
        let (ready, is_ready) = std::sync::mpsc::channel();
        server.spawn(async move {
            let listener = tokio::net::UnixListener::bind(socket).unwrap();
            ready.send(()).unwrap();
            axum::serve(listener, router).await.unwrap();
        });
        is_ready.recv().unwrap();
        self.server = Some(server);
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            server.shutdown_background();
        }
    }
}

async fn profile(Path(name): Path<String>) -> Result<Json<serde_json::Value>, Refusal> {
    if name != "here" {
        return Err(Refusal(Code::NotFound));
    }
    let model = serde_json::json!({"kind": "scripted", "script": "{}", "script_name": "s"});
    Ok(Json(serde_json::json!({"name": name, "directory": "/d", "model": model})))
}

async fn put_blob(State(world): State<Arc<World>>, Path(hash): Path<String>, bytes: axum::body::Bytes) {
    world.change(|facts| facts.blobs.insert(hash, bytes.into()));
}

async fn blob(State(world): State<Arc<World>>, Path(hash): Path<String>) -> Result<Vec<u8>, Refusal> {
    world.facts().blobs.get(&hash).cloned().ok_or(Refusal(Code::NotFound))
}

async fn register(
    State(world): State<Arc<World>>,
    Json(call): Json<Register>,
) -> Result<Json<Registered>, Refusal> {
    world.change(|facts| {
        if let Some(code) = facts.deny_register {
            return Err(Refusal(code));
        }
        facts.registers.push(call.clone());
        let (drop, keep) = call.holding.into_iter().partition(|token| facts.drop.contains(token));
        let session = format!("s{}", facts.registers.len());
        Ok(Json(Registered { session, lease_ms: facts.lease_ms, keep, drop }))
    })
}

async fn poll(State(world): State<Arc<World>>, Json(call): Json<Poll>) -> Result<Json<Polled>, Refusal> {
    world.known(&call.session)?;
    world.change(|facts| facts.polls.push(call.clone()));
    let mut changes = world.changes.subscribe();
    let take = async {
        loop {
            changes.borrow_and_update();
            let tasks: Vec<Task> = {
                let mut facts = world.facts();
                // Nothing is handed out in a session that was given up meanwhile.
                facts.known(&call.session)?;
                let left = facts.polls.iter().any(|poll| poll.session == call.session && poll.leaving);
                let count = facts.tasks.len().min(call.max as usize);
                if left {
                    return Ok(Vec::new());
                }
                facts.tasks.drain(..count).collect()
            };
            if !tasks.is_empty() {
                return Ok(tasks);
            }
            changes.changed().await.unwrap();
        }
    };
    let tasks = tokio::time::timeout(Duration::from_millis(call.wait_ms), take).await;
    let tasks = tasks.unwrap_or(Ok(Vec::new()))?;
    Ok(Json(Polled { tasks }))
}

async fn report(
    State(world): State<Arc<World>>,
    Json(call): Json<Report>,
) -> Result<Json<Reported>, Refusal> {
    world.known(&call.session)?;
    world.change(|facts| {
        let has_done = call.results.iter().any(|outcome| matches!(outcome.kind, OutcomeKind::Done { .. }));
        if let Some(code) = facts.deny_done
            && has_done
        {
            return Err(Refusal(code));
        }
        let mut results = Vec::new();
        for outcome in call.results {
            let next = facts.receipts.get_mut(&outcome.token).and_then(VecDeque::pop_front);
            let status = next.unwrap_or(ReceiptStatus::Accepted);
            results.push(Receipt { token: outcome.token.clone(), status });
            facts.outcomes.push(outcome);
        }
        Ok(Json(Reported { results }))
    })
}

async fn progress(State(world): State<Arc<World>>, Json(call): Json<Progress>) -> Result<(), Refusal> {
    world.known(&call.session)?;
    world.change(|facts| {
        facts.progress.extend(call.tasks);
        facts.deny_progress.map_or(Ok(()), |code| Err(Refusal(code)))
    })
}

async fn control(
    State(world): State<Arc<World>>,
    Query(query): Query<BTreeMap<String, String>>,
) -> Result<Json<Control>, Refusal> {
    world.known(&query["session"])?;
    let mut changes = world.changes.subscribe();
    let hear = async {
        loop {
            changes.borrow_and_update();
            let cancel = std::mem::take(&mut world.facts().cancels);
            if !cancel.is_empty() {
                return cancel;
            }
            changes.changed().await.unwrap();
        }
    };
    let wait = Duration::from_millis(query["wait_ms"].parse().unwrap());
    let cancel = tokio::time::timeout(wait, hear).await.unwrap_or_default();
    Ok(Json(Control { cancel }))
}
