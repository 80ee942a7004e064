//! What the access log says of a request: noted when it came, written when the last byte of its answer has left.
//!
//! Invariant: each request has one line, however it ends; one whose client left before the answer has no status.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::Extensions;
use axum::middleware::Next;
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use outlast_kernel::Json;
use outlast_kernel::ids::{Millis, RunId};
use outlast_kernel::text::time_text;
use serde_json::json;

use super::App;
use super::access_log::AccessLog;
use super::server::Peer;
use crate::access::Caller;
use crate::limits::ACCESS_LOG_PATH_CHARS_MAX;

/// The run that a request made, for its line.
#[derive(Clone, Debug)]
pub(super) struct Made(pub(super) String);

/// A line that is not yet written.
struct Line {
    log: AccessLog,
    begun: Instant,
    time: Millis,
    peer: Option<Peer>,
    method: String,
    path: String,
    run: Option<String>,
    by: Option<String>,
    status: Option<u16>,
    bytes: u64,
}

/// Notes a request, and its answer when that is sent.
pub(super) async fn take(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let Some(log) = app.served.access_log.clone() else { return next.run(request).await };
    let path: String = request.uri().path().chars().take(ACCESS_LOG_PATH_CHARS_MAX).collect();
    let mut line = Line {
        log,
        begun: Instant::now(),
        time: app.served.engine.now(),
        peer: request.extensions().get::<Peer>().copied(),
        method: request.method().to_string(),
        run: run_of(&path),
        path,
        by: None,
        status: None,
        bytes: 0,
    };
    let response = next.run(request).await;
    line.status = Some(response.status().as_u16());
    line.know(response.extensions());
    response.map(|body| Body::new(Noted { body, line }))
}

/// Returns the run that a path names.
fn run_of(path: &str) -> Option<String> {
    let run = path.strip_prefix("/v1/runs/")?.split('/').next()?;
    RunId::new(run).is_ok().then(|| run.to_owned())
}

impl Line {
    fn know(&mut self, of_answer: &Extensions) {
        self.by = of_answer.get::<Arc<Caller>>().map(|caller| caller.by());
        if let Some(Made(run)) = of_answer.get() {
            self.run = Some(run.clone());
        }
    }

    fn text(&self) -> String {
        let ms = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let peer = self.peer.map_or(Json::Null, |peer| json!(peer.to_string()));
        json!({
            "time": time_text(self.time), "peer": peer, "by": self.by, "method": self.method, "path": self.path,
            "run": self.run, "status": self.status, "ms": ms, "bytes": self.bytes,
        })
        .to_string()
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.log.line(self.text());
    }
}

/// The body of an answer, counted; its end is the end of the line.
struct Noted {
    body: Body,
    line: Line,
}

impl hyper::body::Body for Noted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &polled {
            self.line.bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_its_run_if_it_is_one() {
        for (path, run) in [
            ("/v1/runs/r-1", Some("r-1")),
            ("/v1/runs/r-1/messages", Some("r-1")),
            ("/v1/runs/", None),
            ("/v1/runs/..%2f", None),
            ("/v1/runs", None),
            ("/v2/runs/r", None),
        ] {
            assert_eq!(run_of(path).as_deref(), run, "{path}");
        }
    }
}
