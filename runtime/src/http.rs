//! The engine over HTTP: what drivers, clients and workers call, on a Unix socket and, if wanted, on TCP.
//!
//! Leaves every decision about runs to the engine: a handler reads a request, asks the engine and writes the answer down. Invariant:
//! no request, however broken, ends in anything else than a typed answer; nothing is read from a request before its sender passed the
//! guard. Start at [`Server`].

mod body;
mod fault;
mod flows;
mod guard;
mod health;
mod parts;
mod rpc;
mod runs;
mod schedules;
mod server;
mod stream;
mod whole;
mod workers;

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::routing::{get, post};
use outlast_protocol::{ApiError, Code};
use tokio::task::JoinSet;

use crate::api::Api;
use fault::Fault;
use guard::Access;

pub use guard::Token;
pub use server::{Listener, Served, Server};

/// Counts the version of the protocol: drivers and workers attach to their own version only.
pub const PROTOCOL: u32 = 1;

/// What all handlers of one listener share.
struct App {
    served: Served,
    /// Who may call.
    access: Access,
    /// Tasks that feed streams; they end with the server.
    streams: Mutex<JoinSet<()>>,
}

impl App {
    /// Returns the calls of whoever comes through this listener.
    fn api(&self) -> Api<'_> {
        let is_owner = matches!(self.access, Access::Owner);
        Api { served: &self.served, by: self.access.principal(), is_owner }
    }
}

type Shared = State<Arc<App>>;

/// Returns the routes of the API, guarded.
fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/v1/flows", post(flows::deploy).get(flows::list))
        .route("/v1/profiles", post(flows::put_profile))
        .route("/v1/profiles/{name}", get(flows::profile))
        .route("/v1/runs", post(runs::start).get(runs::list))
        .route("/v1/runs/{id}", get(runs::get))
        .route("/v1/runs/{id}/result", get(runs::result))
        .route("/v1/runs/{id}/messages", post(runs::message))
        .route("/v1/runs/{id}/withdraw", post(runs::withdraw))
        .route("/v1/runs/{id}/answers", post(runs::answer))
        .route("/v1/runs/{id}/cancel", post(runs::cancel))
        .route("/v1/runs/{id}/terminate", post(runs::terminate))
        .route("/v1/runs/{id}/settle", post(runs::settle))
        .route("/v1/runs/{id}/release", post(runs::release))
        .route("/v1/runs/{id}/fork", post(runs::fork))
        .route("/v1/runs/{id}/tree", get(runs::tree))
        .route("/v1/runs/{id}/way", get(runs::way))
        .route("/v1/runs/{id}/events", get(runs::events))
        .route("/v1/runs/{id}/stream", get(stream::stream))
        .route("/v1/schedules", get(schedules::list))
        .route("/v1/schedules/{name}", get(schedules::get).put(schedules::put).delete(schedules::remove))
        .route("/v1/schedules/{name}/pause", post(schedules::pause))
        .route("/v1/schedules/{name}/resume", post(schedules::resume))
        .route("/v1/schedules/{name}/run-now", post(schedules::run_now))
        .route("/v1/rpc", post(rpc::call))
        .route("/v1/runs/{id}/migrate", post(whole::migrate))
        .route("/v1/runs/{id}/compatibility", post(whole::compatibility))
        .route("/v1/runs/{id}/export", get(whole::export))
        .route("/v1/runs/{id}/usage", get(whole::usage))
        .route("/v1/usage", get(whole::usages))
        .route("/v1/import", post(whole::import))
        .route("/v1/backup", post(whole::backup))
        .route("/v1/workers/register", post(workers::register))
        .route("/v1/workers/poll", post(workers::poll))
        .route("/v1/workers/report", post(workers::report))
        .route("/v1/workers/progress", post(workers::progress))
        .route("/v1/workers/control", get(workers::control))
        .route("/v1/status", get(health::status))
        .route("/v1/doctor", get(health::doctor))
        .route("/v1/openapi.json", get(health::openapi))
        .route("/health/live", get(health::live))
        .route("/health/ready", get(health::ready))
        .fallback(nowhere)
        .method_not_allowed_fallback(nowhere)
        .layer(axum::middleware::from_fn_with_state(Arc::clone(&app), guard::check))
        .with_state(app)
}

async fn nowhere(request: axum::extract::Request) -> Fault {
    let what = format!("there is no {} {}", request.method(), request.uri().path());
    Fault::from(ApiError::new(Code::NotFound, what))
}
