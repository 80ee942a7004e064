//! What happens to runs, as spans for an OpenTelemetry collector.
//!
//! Leaves taking note to the engine, which knows what is durable, and the shape of spans to `otlp`. Invariant: whatever the collector does, no
//! run waits for it: what there is no room for, and what it does not take, is dropped and counted. No value of a run leaves here: spans say
//! which run, operation, activity and attempt, when, and how it ended.

mod otlp;

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderName, HeaderValue};
use hyper::Method;
use outlast_kernel::ids::{Attempt, Millis, OpId, RunId};
use tokio::sync::{mpsc, oneshot};

use crate::client::Address;
use crate::client::connect;
use crate::limits::{
    TELEMETRY_CLOSE_MS_MAX, TELEMETRY_EVERY_MS, TELEMETRY_NOTES_MAX, TELEMETRY_OPEN_MAX,
    TELEMETRY_POST_MS_MAX, TELEMETRY_SPANS_MAX,
};
use crate::metrics::Counter;
use otlp::Span;

/// Where spans are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collector {
    address: Address,
    path: String,
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// Says why text is no collector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCollector {
    /// It is no address.
    #[error("{0:?} is no address of a collector: `http://HOST:PORT` is expected")]
    Address(String),
    /// It asks for TLS.
    #[error(
        "{0:?}: spans are sent to a collector over http:// only; run one on this machine, which sends them on"
    )]
    Tls(String),
    /// Headers that are none.
    #[error("headers of a collector are `NAME=VALUE,NAME=VALUE`")]
    Headers,
}

impl Collector {
    /// Reads a base address, to which `/v1/traces` is added, as `OTEL_EXPORTER_OTLP_ENDPOINT` has it.
    ///
    /// # Errors
    /// [`InvalidCollector`].
    pub fn at(endpoint: &str) -> Result<Collector, InvalidCollector> {
        Collector::exactly(&format!("{}/v1/traces", endpoint.trim_end_matches('/')))
    }

    /// Reads a whole address, as `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` has it.
    ///
    /// # Errors
    /// [`InvalidCollector`].
    pub fn exactly(endpoint: &str) -> Result<Collector, InvalidCollector> {
        if endpoint.starts_with("https://") {
            return Err(InvalidCollector::Tls(endpoint.to_owned()));
        }
        let wrong = || InvalidCollector::Address(endpoint.to_owned());
        let rest = endpoint.strip_prefix("http://").ok_or_else(wrong)?;
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let address = Address::from_str(&format!("http://{authority}")).map_err(|_| wrong())?;
        let path = format!("/{path}");
        if path.parse::<axum::http::uri::PathAndQuery>().is_err() {
            return Err(wrong());
        }
        Ok(Collector { address, path, headers: Vec::new() })
    }

    /// Adds headers, as `OTEL_EXPORTER_OTLP_HEADERS` has them: `NAME=VALUE,NAME=VALUE`.
    ///
    /// # Errors
    /// [`InvalidCollector::Headers`]; it does not tell what was given, which may be a key.
    pub fn with_headers(mut self, text: &str) -> Result<Collector, InvalidCollector> {
        for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').ok_or(InvalidCollector::Headers)?;
            let name = HeaderName::from_str(name.trim()).map_err(|_| InvalidCollector::Headers)?;
            let mut value = HeaderValue::from_str(value.trim()).map_err(|_| InvalidCollector::Headers)?;
            value.set_sensitive(true);
            self.headers.push((name, value));
        }
        Ok(self)
    }
}

/// Something that a span begins or ends with.
#[derive(Debug)]
pub(crate) enum Note {
    /// An attempt went to a worker.
    Begun(Begun),
    /// An attempt ended.
    Ended {
        run: RunId,
        op: OpId,
        attempt: Attempt,
        activity: Option<String>,
        outcome: &'static str,
        at: Millis,
    },
    /// An operation was given up, whoever has it.
    Closed { run: RunId, op: OpId, at: Millis },
    /// A run ended.
    Run { run: RunId, flow: String, outcome: String, started_at: Millis, at: Millis },
    /// All of before is to be sent now.
    Flush(oneshot::Sender<()>),
}

/// An attempt that a worker has.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) run: RunId,
    pub(crate) op: OpId,
    pub(crate) attempt: Attempt,
    pub(crate) activity: String,
    pub(crate) queue: String,
    pub(crate) at: Millis,
}

/// Where the engine takes note of what it does.
#[derive(Clone, Debug)]
pub struct Spans {
    notes: mpsc::Sender<Note>,
    counts: Arc<Counts>,
}

/// What became of spans.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// The collector took them.
    pub(crate) exported: Counter,
    /// It did not, or there was no room.
    pub(crate) dropped: Counter,
}

impl Spans {
    /// Begins; [`Exporter::run`] sends what is noted.
    #[must_use]
    pub fn to(collector: Collector) -> (Spans, Exporter) {
        let (sender, notes) = mpsc::channel(TELEMETRY_NOTES_MAX);
        let counts = Arc::new(Counts::default());
        let spans = Spans { notes: sender, counts: Arc::clone(&counts) };
        (spans, Exporter { collector, notes, counts, open: HashMap::new(), ready: Vec::new(), ails: false })
    }

    /// Takes note of something, if there is room.
    pub(crate) fn note(&self, note: Note) {
        if self.notes.try_send(note).is_err() {
            self.counts.dropped.count();
        }
    }

    /// Returns what became of spans.
    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Waits until what was noted is sent, for a moment.
    pub async fn flush(&self) {
        let (sent, wait) = oneshot::channel();
        let flushed = async {
            if self.notes.send(Note::Flush(sent)).await.is_ok() {
                let _gone = wait.await;
            }
        };
        let _late = tokio::time::timeout(Duration::from_millis(TELEMETRY_CLOSE_MS_MAX), flushed).await;
    }
}

/// Makes spans of notes and sends them.
#[derive(Debug)]
pub struct Exporter {
    collector: Collector,
    notes: mpsc::Receiver<Note>,
    counts: Arc<Counts>,
    /// Attempts that workers have.
    open: HashMap<(RunId, OpId), Begun>,
    ready: Vec<Span>,
    /// Whether it was said that spans are dropped.
    ails: bool,
}

impl Exporter {
    /// Sends what is noted until nobody notes anything any more.
    pub async fn run(mut self) {
        let mut every = tokio::time::interval(Duration::from_millis(TELEMETRY_EVERY_MS));
        loop {
            tokio::select! {
                note = self.notes.recv() => match note {
                    Some(Note::Flush(sent)) => {
                        self.send().await;
                        // Whoever waited may have waited long enough.
                        let _ = sent.send(());
                    }
                    Some(note) => self.take(note),
                    None => return self.send().await,
                },
                _ = every.tick() => self.send().await,
            }
            if self.ready.len() >= TELEMETRY_SPANS_MAX {
                self.send().await;
            }
        }
    }

    fn take(&mut self, note: Note) {
        match note {
            Note::Begun(begun) => {
                if self.open.len() < TELEMETRY_OPEN_MAX {
                    self.open.insert((begun.run.clone(), begun.op), begun);
                }
            }
            Note::Ended { run, op, attempt, activity, outcome, at } => {
                let begun = self.open.remove(&(run.clone(), op)).filter(|begun| begun.attempt == attempt);
                // The process that handed it out may be gone.
                let unknown = || Begun {
                    run,
                    op,
                    attempt,
                    activity: activity.unwrap_or_default(),
                    queue: String::new(),
                    at,
                };
                self.ready.push(Span::of_attempt(&begun.unwrap_or_else(unknown), outcome, at));
            }
            Note::Closed { run, op, at } => {
                if let Some(begun) = self.open.remove(&(run, op)) {
                    self.ready.push(Span::of_attempt(&begun, "closed", at));
                }
            }
            Note::Run { run, flow, outcome, started_at, at } => {
                for (_, begun) in self.open.extract_if(|(of, _), _| *of == run) {
                    self.ready.push(Span::of_attempt(&begun, "closed", at));
                }
                self.ready.push(Span::of_run(&run, &flow, &outcome, (started_at, at)));
            }
            Note::Flush(_) => unreachable!("it is answered where it is received"),
        }
    }

    /// Sends the spans that are ready. What is not taken is dropped: the histories say it all.
    async fn send(&mut self) {
        if self.ready.is_empty() {
            return;
        }
        let spans = std::mem::take(&mut self.ready);
        let patience = Duration::from_millis(TELEMETRY_POST_MS_MAX);
        let posted = tokio::time::timeout(patience, post(&self.collector, otlp::request(&spans))).await;
        let count = spans.len() as u64;
        match posted.unwrap_or_else(|_| Err("it does not answer".to_owned())) {
            Ok(()) => {
                self.ails = false;
                self.counts.exported.add(count);
            }
            Err(why) => {
                self.counts.dropped.add(count);
                if !std::mem::replace(&mut self.ails, true) {
                    let address = &self.collector.address;
                    tracing::warn!(
                        "the collector at {address} takes no spans: {why}; they are dropped, and runs go on"
                    );
                }
            }
        }
    }
}

async fn post(collector: &Collector, body: Vec<u8>) -> Result<(), String> {
    let request = connect::request(&collector.address, Method::POST, &collector.path, Some(body));
    let mut request = request.map_err(|error| error.to_string())?;
    request.headers_mut().extend(collector.headers.iter().cloned());
    let answer = connect::send(&collector.address, request).await.map_err(|error| error.to_string())?;
    if answer.status().is_success() { Ok(()) } else { Err(format!("it says {}", answer.status())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_is_an_address_with_or_without_a_path() {
        for (text, expected) in [
            ("http://127.0.0.1:4318", Some(("http://127.0.0.1:4318", "/v1/traces"))),
            ("http://collector:4318/", Some(("http://collector:4318", "/v1/traces"))),
            ("http://collector/otlp", Some(("http://collector:80", "/otlp/v1/traces"))),
            ("https://collector", None),
            ("collector:4318", None),
            ("http://", None),
            ("http://a b", None),
        ] {
            let read = Collector::at(text).ok();
            let read = read.map(|it| (it.address.to_string(), it.path));
            assert_eq!(read.as_ref().map(|(at, path)| (at.as_str(), path.as_str())), expected, "{text}");
        }
        let told = Collector::at("https://collector").unwrap_err().to_string();
        assert!(told.contains("http:// only"), "{told}");
    }

    #[test]
    fn headers_are_pairs_and_a_wrong_one_is_not_told() {
        let collector = Collector::at("http://c:1").unwrap();
        assert_eq!(collector.clone().with_headers("api-key=k, x = y").unwrap().headers.len(), 2);
        let error = collector.with_headers("sk-123").unwrap_err();
        assert!(!error.to_string().contains("sk-123"));
    }

    #[tokio::test]
    async fn what_there_is_no_room_for_is_dropped_and_counted() {
        let (spans, _stuck) = Spans::to(Collector::at("http://127.0.0.1:1").unwrap());
        let run = RunId::new("r").unwrap();
        for _ in 0..TELEMETRY_NOTES_MAX + 7 {
            spans.note(Note::Closed {
                run: run.clone(),
                op: OpId(outlast_kernel::ids::Seq(1), 0),
                at: Millis(0),
            });
        }
        assert_eq!(spans.counts().dropped.get(), 7);
    }
}
