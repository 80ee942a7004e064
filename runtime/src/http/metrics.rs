//! `GET /metrics`: what is counted, for Prometheus; and the counting of requests.
//!
//! Leaves the engine's own counters to the engine. Invariant: whoever may not read all runs is shown no sum over them; labels are routes,
//! methods and codes, never what a request says.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::extract::{MatchedPath, Request, State};
use axum::http::header;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use outlast_protocol::{ApiError, Code};
use outlast_store::Stats;

use super::fault::Refused;
use super::{App, Call, Fault, needs};
use crate::metrics::{Family, Kind, Labelled, Sample, Value, written};

/// The format, and its version.
const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What stands for requests that are none of ours.
const OTHER: &str = "other";

/// What is counted of requests.
#[derive(Debug)]
pub(super) struct Traffic {
    started_at: SystemTime,
    /// By method, route and class of status.
    requests: Labelled<3>,
    /// By code.
    refusals: Labelled<1>,
}

impl Traffic {
    /// Begins at 0.
    pub(super) fn new() -> Traffic {
        Traffic {
            started_at: SystemTime::now(),
            requests: Labelled::new(["method", "route", "status"]),
            refusals: Labelled::at_zero(
                ["code"],
                &[["overloaded"], ["mailbox_full"], ["disk_full"], ["not_ready"], ["unauthorized"]],
            ),
        }
    }

    fn families(&self) -> Vec<Family> {
        vec![
            Family::counters(
                "outlast_http_requests_total",
                "Requests, by method, route and class of status.",
                &self.requests,
            ),
            Family::counters(
                "outlast_http_refusals_total",
                "Requests that were refused, by code.",
                &self.refusals,
            ),
        ]
    }

    /// Returns what is known of the process, by the names that other programs give it too.
    fn process(&self) -> Vec<Family> {
        let started_at = self.started_at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let started_at = [Sample::bare(Value::Real(started_at))];
        let mut families = vec![Family::new(
            "process_start_time_seconds",
            "When the process began to serve, in seconds since 1970.",
            Kind::Gauge,
            started_at,
        )];
        if let Some(bytes) = resident_bytes() {
            families.push(Family::gauge("process_resident_memory_bytes", "Memory of the process.", bytes));
        }
        if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
            families.push(Family::gauge("process_open_fds", "Open file descriptors.", open.count() as u64));
        }
        families
    }
}

/// Returns the memory of this process; none where the system does not tell in this way.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
}

/// Counts a request when its answer begins.
pub(super) async fn count(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().cloned();
    let route = route.filter(|route| needs::need(request.method(), route.as_str()).is_some());
    let method = route.as_ref().map_or(OTHER.to_owned(), |_| request.method().to_string());
    let response = next.run(request).await;
    let class = match response.status().as_u16() {
        ..200 => "1xx",
        200..300 => "2xx",
        300..400 => "3xx",
        400..500 => "4xx",
        500.. => "5xx",
    };
    app.traffic.requests.count([&method, route.as_ref().map_or(OTHER, MatchedPath::as_str), class]);
    if let Some(Refused(code)) = response.extensions().get() {
        // A code is its name.
        let name = serde_json::to_value(code).unwrap_or_default();
        app.traffic.refusals.count([name.as_str().unwrap_or(OTHER)]);
    }
    response
}

/// `GET /metrics`.
pub(super) async fn scrape(call: Call) -> Result<impl IntoResponse, Fault> {
    if call.caller.flows().is_some() {
        let error = ApiError::new(Code::Forbidden, "these are sums over the runs of all flows");
        return Err(error.hint("use a token that is not limited to some flows").into());
    }
    let mut families = call.engine().metrics();
    families.extend(call.app.traffic.families());
    families.extend(call.app.traffic.process());
    families.push(Family::new(
        "outlast_build_info",
        "The version, as a label.",
        Kind::Gauge,
        [Sample::with("version", env!("CARGO_PKG_VERSION"), 1)],
    ));
    let store = Arc::clone(&call.app.served.store);
    // A store that cannot be read shows no size; what it did to commits is counted.
    if let Ok(Ok(stats)) = tokio::task::spawn_blocking(move || store.stats()).await {
        families.extend(stored(&stats));
    }
    Ok(([(header::CONTENT_TYPE, CONTENT_TYPE)], written(&families)))
}

fn stored(stats: &Stats) -> [Family; 3] {
    [
        Family::gauge("outlast_store_bytes", "Bytes of the files of the store.", stats.bytes),
        Family::gauge(
            "outlast_store_free_bytes",
            "Bytes that the disk has left for the store.",
            stats.free_bytes,
        ),
        Family::gauge(
            "outlast_store_nearly_full",
            "1 if the disk has too little room for new runs.",
            u64::from(stats.nearly_full),
        ),
    ]
}
