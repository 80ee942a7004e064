//! Hosting: store, engine, server and supervisor of one data directory, opened and closed in this order.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use outlast_kernel::Json;
use outlast_store::{FjallStore, Mark, OpenOptions, Opened, StoreError};
use serde_json::json;
use tokio::task::JoinSet;

use super::{OpenError, Options, setup, socket};
use crate::engine::{self, Engine};
use crate::http::{Listener, Served, Server};
use crate::limits::FLUSH_EVERY_MS;
use crate::supervisor::Supervisor;
use crate::telemetry::Spans;
use outlast_protocol::profile::{Model, Profile};

/// What a host has open.
pub(super) struct Hosting {
    engine: Engine,
    server: Server,
    supervisor: Option<Supervisor>,
    spans: Option<Spans>,
    tasks: JoinSet<()>,
}

impl Hosting {
    /// Opens everything, reachable through the directory's socket.
    pub(super) async fn open(options: &Options) -> Result<Hosting, OpenError> {
        let (store, opened) = open_store(&options.directory).await?;
        let store = Arc::new(store);
        let (spans, exporter) = options.collector.clone().map(Spans::to).unzip();
        let engine_options = engine::Options { spans: spans.clone(), ..options_of(options) };
        let engine = Engine::open(Arc::<FjallStore>::clone(&store), engine_options).await?;
        let profile = match &options.profile {
            None => None,
            Some(profile) => {
                engine.put_profile(&profile.name(), profile.record()).await?;
                Some(profile.name())
            }
        };
        let path = socket(&options.directory);
        let unix =
            Listener::unix(&path).map_err(|source| OpenError::Socket { path: path.clone(), source })?;
        let served = Served {
            engine: engine.clone(),
            store: Arc::<FjallStore>::clone(&store),
            opened: describe(&options.directory, &opened),
            profile,
            access_log: options.access_log.clone(),
            scripted: matches!(&options.profile, Some(Profile { model: Model::Scripted { .. }, .. })),
        };
        let server = Server::start(served, vec![unix]);
        let supervisor = options.program.clone();
        let supervisor =
            supervisor.map(|program| Supervisor::start(engine.clone(), setup(&options.directory, program)));
        let mut tasks = JoinSet::new();
        tasks.spawn(flush(store));
        if let Some(exporter) = exporter {
            tasks.spawn(exporter.run());
        }
        Ok(Hosting { engine, server, supervisor, spans, tasks })
    }

    /// Can be reached on these, too.
    pub(super) fn listen(&mut self, listeners: Vec<Listener>) {
        self.server.listen(listeners);
    }

    pub(super) fn engine(&self) -> Engine {
        self.engine.clone()
    }

    pub(super) async fn close(mut self) {
        let status = self.engine.status();
        if let Some(supervisor) = self.supervisor.take() {
            supervisor.stop(&status).await;
        }
        // The server first: whoever waits is told at once to look for another host, and nobody asks an engine that has stopped.
        self.server.stop().await;
        self.engine.shutdown().await;
        if let Some(spans) = &self.spans {
            spans.flush().await;
        }
        self.tasks.shutdown().await;
    }
}

fn options_of(options: &Options) -> engine::Options {
    let desk = Some(options.directory.join("scratch").join("desk"));
    let usual = engine::Options::default();
    let memory_budget = options.memory_budget.unwrap_or(usual.memory_budget);
    let rates = options.rates.clone();
    let (accept_clock, schedules) = (options.accept_clock, options.schedules);
    engine::Options { desk, memory_budget, accept_clock, rates, schedules, ..usual }
}

async fn open_store(directory: &Path) -> Result<(FjallStore, Opened), OpenError> {
    let path = directory.to_path_buf();
    let opened = tokio::task::spawn_blocking(move || FjallStore::open(&path, OpenOptions::default())).await;
    match opened {
        Ok(opened) => Ok(opened?),
        Err(error) => {
            let (path, detail) = (directory.to_path_buf(), format!("opening it failed: {error}"));
            Err(StoreError::Disk { path, detail, source: None }.into())
        }
    }
}

/// Writes down for the doctor what opening found.
fn describe(directory: &Path, opened: &Opened) -> Json {
    let mark = match opened.mark {
        Mark::At(commit) => json!(commit),
        Mark::Missing => Json::Null,
    };
    json!({
        "directory": directory,
        "created": opened.created,
        "journal_bytes": opened.journal_bytes,
        "torn_bytes": opened.torn_bytes,
        "commit_last": opened.commit_last,
        "mark": mark,
        "free_bytes": opened.free_bytes,
    })
}

async fn flush(store: Arc<FjallStore>) {
    loop {
        tokio::time::sleep(Duration::from_millis(FLUSH_EVERY_MS)).await;
        let store = Arc::clone(&store);
        // A failed flush poisons the store; the next commit says so.
        let flushed = tokio::task::spawn_blocking(move || store.flush()).await;
        if let Ok(Err(error)) = flushed {
            tracing::error!("cannot flush the store: {error}");
        }
    }
}
