//! A run's frames as server-sent events.
//!
//! Invariant: what waits for a reader is bounded. A reader that leaves its buffer full for too long is dropped and comes back with
//! `Last-Event-ID`; it misses nothing, because frames with an id are read from the history.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use http_body_util::channel::{Channel, Sender};
use outlast_protocol::run::Frame;
use outlast_protocol::{ApiError, Code};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::parts::Run;
use super::{Call, Fault};
use crate::access::Caller;
use crate::engine::Watch;
use crate::limits::{STREAM_BYTES_MAX, STREAM_FRAMES_MAX, STREAM_PING_MS, STREAM_STALL_MS_MAX};

/// `GET /v1/runs/{id}/stream`
pub(super) async fn stream(call: Call, Run(run): Run, headers: HeaderMap) -> Result<Response, Fault> {
    let last = headers.get("last-event-id").map(HeaderValue::to_str).transpose();
    let last =
        last.map_err(|_| ApiError::new(Code::InvalidCursor, "Last-Event-ID is not text").of_run(&run))?;
    let watch = call.engine().watch(run.as_str(), last).await?;
    let (sender, body) = Channel::<Bytes, Infallible>::new(STREAM_FRAMES_MAX);
    {
        let mut streams = call.app.streams.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        while streams.try_join_next().is_some() {}
        let (app, caller) = (Arc::clone(&call.app), Arc::clone(&call.caller));
        streams.spawn(async move {
            let feed = feed(watch, sender);
            match &*caller {
                // Its reader comes back with its last event id, and hears then why it is not let in.
                Caller::Token(key) => tokio::select! {
                    () = feed => {}
                    _why = app.served.engine.key_ended(key) => {}
                },
                Caller::Owner | Caller::Loopback | Caller::Environment | Caller::Nobody => feed.await,
            }
        });
    }
    let kind = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    Ok((kind, Body::new(body)).into_response())
}

/// Sends frames until the run has ended, the reader has gone or stalls.
async fn feed(mut watch: Watch, mut sender: Sender<Bytes, Infallible>) {
    // The head of the answer leaves with its first bytes; a silent run must not look like a silent server.
    let mut text = ":\n\n".to_owned();
    let room = Arc::new(Semaphore::new(STREAM_BYTES_MAX as usize));
    loop {
        let sent = async {
            let Some(counted) = Counted::new(text, &room).await else { return Ok(()) };
            sender.send_data(Bytes::from_owner(counted)).await
        };
        match tokio::time::timeout(Duration::from_millis(STREAM_STALL_MS_MAX), sent).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) | Err(_) => return,
        }
        text = match tokio::time::timeout(Duration::from_millis(STREAM_PING_MS), watch.next()).await {
            Ok(Some(frame)) => event(&frame),
            Ok(None) => return,
            Err(_) => ":\n\n".to_owned(),
        };
    }
}

/// Text that takes up a reader's room until it was written to the connection.
struct Counted {
    text: String,
    _room: OwnedSemaphorePermit,
}

impl Counted {
    /// Waits for room. What is larger than all room goes alone. None only if the room was closed, which nobody does.
    async fn new(text: String, room: &Arc<Semaphore>) -> Option<Counted> {
        let bytes = u32::try_from(text.len()).unwrap_or(u32::MAX).min(STREAM_BYTES_MAX);
        let _room = Arc::clone(room).acquire_many_owned(bytes).await.ok()?;
        Some(Counted { text, _room })
    }
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        self.text.as_bytes()
    }
}

/// Writes a frame down. JSON holds no raw line ends, so one `data:` line is enough.
fn event(frame: &Frame) -> String {
    let mut text = String::new();
    if let Some(id) = &frame.id {
        let _infallible = writeln!(text, "id: {id}");
    }
    let _infallible = write!(text, "event: {}\ndata: {}\n\n", frame.event.name(), frame.data);
    text
}

#[cfg(test)]
mod tests {
    use outlast_protocol::run::FrameKind;
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn what_waits_for_a_reader_is_bounded_in_bytes() {
        let room = Arc::new(Semaphore::new(STREAM_BYTES_MAX as usize));
        let large = Counted::new("x".repeat(STREAM_BYTES_MAX as usize + 1), &room).await.unwrap();
        let large = Bytes::from_owner(large);
        let next = Counted::new("y".to_owned(), &room);
        tokio::pin!(next);
        assert!(tokio::time::timeout(Duration::ZERO, &mut next).await.is_err());
        drop(large);
        assert_eq!(next.await.unwrap().as_ref(), b"y");
    }

    #[test]
    fn frames_are_one_line_each() {
        let emit = Frame {
            id: Some("r/3.0".to_owned()),
            event: FrameKind::Emit,
            data: json!({ "value": "two\nlines" }),
        };
        assert_eq!(event(&emit), "id: r/3.0\nevent: emit\ndata: {\"value\":\"two\\nlines\"}\n\n");
        let partial = Frame { id: None, event: FrameKind::Partial, data: json!({ "text": "a" }) };
        assert_eq!(event(&partial), "event: partial\ndata: {\"text\":\"a\"}\n\n");
    }
}
