//! The engine over HTTP: what drivers, clients and workers call, on a Unix socket and, if wanted, on TCP.
//!
//! Leaves every decision about runs to the engine: a handler reads a request, asks the engine and writes the answer down. Invariant:
//! no request, however broken, ends in anything else than a typed answer; nothing is read from a request before its sender passed the
//! guard. Start at [`Server`].

mod access_log;
mod blobs;
mod body;
mod fault;
mod flows;
mod guard;
mod health;
mod metrics;
mod needs;
mod note;
mod parts;
mod rpc;
mod runs;
mod schedules;
mod server;
mod stream;
mod tls;
mod tokens;
mod whole;
mod workers;

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use axum::routing::{delete, get, post};
use outlast_protocol::{ApiError, Code};
use tokio::task::JoinSet;

use crate::access::Caller;
use crate::api::Api;
use crate::engine::Engine;
use fault::Fault;
use guard::Access;

pub use access_log::AccessLog;
pub use guard::{Admission, Token};
pub use server::{Listener, Served, Server};
pub use tls::{Tls, TlsError};

/// Counts the version of the protocol: drivers and workers attach to their own version only.
pub const PROTOCOL: u32 = 1;

/// What all handlers of one listener share.
struct App {
    served: Served,
    /// Who is let in.
    access: Access,
    /// What is counted of requests.
    traffic: Arc<metrics::Traffic>,
    /// Tasks that feed streams; they end with the server.
    streams: Mutex<JoinSet<()>>,
}

/// A request that was let in: whom it reaches, and who sent it.
struct Call {
    app: Arc<App>,
    caller: Arc<Caller>,
}

impl Call {
    fn api(&self) -> Api<'_> {
        Api { served: &self.app.served, caller: &self.caller }
    }

    fn engine(&self) -> &Engine {
        &self.app.served.engine
    }

    fn by(&self) -> String {
        self.caller.by()
    }
}

impl FromRequestParts<Arc<App>> for Call {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Call, Fault> {
        // The guard writes it down before it lets a request through; without it nobody is let in.
        let caller = parts.extensions.get::<Arc<Caller>>().cloned();
        let stranger = || ApiError::new(Code::Unauthorized, "nobody knows who sent this");
        Ok(Call { app: Arc::clone(app), caller: caller.ok_or_else(stranger)? })
    }
}

/// Returns the routes of the API, guarded.
fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/v1/flows", post(flows::deploy).get(flows::list))
        .route("/v1/machines/{hash}", get(flows::machine))
        .route("/v1/profiles", post(flows::put_profile))
        .route("/v1/profiles/{name}", get(flows::profile))
        .route("/v1/runs", post(runs::start).get(runs::list))
        .route("/v1/runs/{id}", get(runs::get).delete(runs::delete))
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
        .route("/v1/runs/{id}/audit", get(runs::audit))
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
        .route("/v1/retention", get(whole::retention).put(whole::put_retention))
        .route("/v1/import", post(whole::import))
        .route("/v1/backup", post(whole::backup))
        .route("/v1/blobs/{hash}", get(blobs::get).put(blobs::put))
        .route("/v1/workers/register", post(workers::register))
        .route("/v1/workers/poll", post(workers::poll))
        .route("/v1/workers/report", post(workers::report))
        .route("/v1/workers/progress", post(workers::progress))
        .route("/v1/workers/control", get(workers::control))
        .route("/v1/tokens", post(tokens::add).get(tokens::list))
        .route("/v1/tokens/{name}", delete(tokens::revoke))
        .route("/v1/status", get(health::status))
        .route("/v1/doctor", get(health::doctor))
        .route("/v1/openapi.json", get(health::openapi))
        .route("/metrics", get(metrics::scrape))
        .route("/health/live", get(health::live))
        .route("/health/ready", get(health::ready))
        .fallback(unrouted)
        .method_not_allowed_fallback(unrouted)
        .layer(axum::middleware::from_fn_with_state(Arc::clone(&app), guard::check))
        .layer(axum::middleware::from_fn_with_state(Arc::clone(&app), note::take))
        .layer(axum::middleware::from_fn_with_state(Arc::clone(&app), metrics::count))
        .layer(axum::middleware::map_response(no_page))
        .with_state(app)
}

/// Tells browsers that an answer is data, whatever text of a run is in it.
async fn no_page(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let policy = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");
    headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    response
}

async fn unrouted(request: axum::extract::Request) -> Fault {
    nowhere(&request).into()
}

fn nowhere(request: &axum::extract::Request) -> ApiError {
    ApiError::new(Code::NotFound, format!("there is no {} {}", request.method(), request.uri().path()))
}
