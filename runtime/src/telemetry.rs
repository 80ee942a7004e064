//! What happens to runs, as spans for an OpenTelemetry collector.
//!
//! Leaves taking note to the engine, which knows what is durable, and the shape of spans to `otlp`. Invariant: whatever the collector does, no
//! run waits for it: what there is no room for, and what it does not take, is dropped and counted. No value of a run leaves here: spans say
//! which run, operation, activity and attempt, when, and how it ended.

mod otlp;
mod tls;

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use axum::http::uri::Authority;
use axum::http::{HeaderName, HeaderValue};
use hyper::Method;
use outlast_kernel::ids::{Attempt, Millis, OpId, RunId};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::sync::{mpsc, oneshot};

use crate::client::connect;
use crate::client::{Address, ClientError};
use crate::limits::{
    TELEMETRY_CLOSE_MS_MAX, TELEMETRY_EVERY_MS, TELEMETRY_NOTES_MAX, TELEMETRY_OPEN_MAX,
    TELEMETRY_POST_MS_MAX, TELEMETRY_SPANS_MAX,
};
use crate::metrics::Counter;
use otlp::Span;

/// The port of an address with TLS that names none.
const HTTPS_PORT: u16 = 443;

/// Where spans are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collector {
    address: Address,
    /// Whose certificate it has to show; none: it speaks no TLS.
    host: Option<ServerName<'static>>,
    path: String,
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// Says why text is no collector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCollector {
    /// It is no address.
    #[error("{0:?} is no address of a collector: `http://HOST:PORT` or `https://HOST:PORT` is expected")]
    Address(String),
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
        let wrong = || InvalidCollector::Address(endpoint.to_owned());
        let (rest, is_secure) = match endpoint.strip_prefix("https://") {
            Some(rest) => (rest, true),
            None => (endpoint.strip_prefix("http://").ok_or_else(wrong)?, false),
        };
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let mut authority: Authority = authority.parse().map_err(|_| wrong())?;
        let mut host = None;
        if is_secure {
            let name = authority.host().trim_start_matches('[').trim_end_matches(']');
            host = Some(ServerName::try_from(name.to_owned()).map_err(|_| wrong())?);
            if authority.port().is_none() {
                authority = format!("{authority}:{HTTPS_PORT}").parse().map_err(|_| wrong())?;
            }
        }
        let address = Address::from_str(&format!("http://{authority}")).map_err(|_| wrong())?;
        let path = format!("/{path}");
        if path.parse::<axum::http::uri::PathAndQuery>().is_err() {
            return Err(wrong());
        }
        Ok(Collector { address, host, path, headers: Vec::new() })
    }

    /// Adds headers, as `OTEL_EXPORTER_OTLP_HEADERS` has them: `NAME=VALUE,NAME=VALUE`, where `%20` stands for a blank and so on.
    ///
    /// # Errors
    /// [`InvalidCollector::Headers`]; it does not tell what was given, which may be a key.
    pub fn with_headers(mut self, text: &str) -> Result<Collector, InvalidCollector> {
        for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').ok_or(InvalidCollector::Headers)?;
            let name = HeaderName::from_str(name.trim()).map_err(|_| InvalidCollector::Headers)?;
            let value = without_percents(value.trim());
            let mut value = HeaderValue::from_bytes(&value).map_err(|_| InvalidCollector::Headers)?;
            value.set_sensitive(true);
            self.headers.push((name, value));
        }
        Ok(self)
    }
}

impl fmt::Display for Collector {
    /// Without headers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = self.address.to_string();
        match (&self.host, address.strip_prefix("http://")) {
            (Some(_), Some(authority)) => write!(f, "https://{authority}"),
            (_, _) => f.write_str(&address),
        }
    }
}

/// Puts the bytes in that `%XX` stands for; what is no such sign stays.
fn without_percents(text: &str) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        let digits =
            after.get(..2).filter(|digits| *first == b'%' && digits.iter().all(u8::is_ascii_hexdigit));
        let byte = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    bytes
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
        let (open, ready) = (HashMap::new(), Vec::new());
        (spans, Exporter { collector, trust: None, notes, counts, open, ready, ails: false })
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
    /// Whom this machine trusts, when it was needed.
    trust: Option<Arc<ClientConfig>>,
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
        let posted = tokio::time::timeout(patience, self.post(otlp::request(&spans))).await;
        let count = spans.len() as u64;
        match posted.unwrap_or_else(|_| Err("it does not answer".to_owned())) {
            Ok(()) => {
                self.ails = false;
                self.counts.exported.add(count);
            }
            Err(why) => {
                self.counts.dropped.add(count);
                if !std::mem::replace(&mut self.ails, true) {
                    let collector = &self.collector;
                    tracing::warn!(
                        "the collector at {collector} takes no spans: {why}; they are dropped, and runs go on"
                    );
                }
            }
        }
    }

    async fn post(&mut self, body: Vec<u8>) -> Result<(), String> {
        let Collector { address, host, path, headers } = &self.collector;
        let request = connect::request(address, Method::POST, path, Some(body));
        let mut request = request.map_err(|error| error.to_string())?;
        request.headers_mut().extend(headers.iter().cloned());
        let stream = connect::reach(address).await.map_err(detail)?;
        let answer = match host {
            None => connect::exchange(address, stream, request).await,
            Some(host) => {
                let trust = match &self.trust {
                    Some(trust) => Arc::clone(trust),
                    None => tls::trusted().await?,
                };
                self.trust = Some(Arc::clone(&trust));
                connect::exchange(address, tls::shake(trust, host, stream).await?, request).await
            }
        };
        let status = answer.map_err(detail)?.status();
        if status.is_success() { Ok(()) } else { Err(format!("it says {status}")) }
    }
}

/// Says why the collector is not there, without its address.
fn detail(error: ClientError) -> String {
    match error {
        ClientError::Unreachable { detail, .. } => detail,
        other => other.to_string(),
    }
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
            ("https://collector", Some(("https://collector:443", "/v1/traces"))),
            ("https://10.0.0.7:4318/otlp", Some(("https://10.0.0.7:4318", "/otlp/v1/traces"))),
            ("https://[::1]", Some(("https://[::1]:443", "/v1/traces"))),
            ("https://", None),
            ("https://a@b", None),
            ("collector:4318", None),
            ("http://", None),
            ("http://a b", None),
        ] {
            let read = Collector::at(text).ok();
            let read = read.map(|it| (it.to_string(), it.path));
            assert_eq!(read.as_ref().map(|(at, path)| (at.as_str(), path.as_str())), expected, "{text}");
        }
    }

    #[test]
    fn headers_are_pairs_and_a_wrong_one_is_not_told() {
        let collector = Collector::at("http://c:1").unwrap();
        assert_eq!(collector.clone().with_headers("api-key=k, x = y").unwrap().headers.len(), 2);
        let basic =
            collector.clone().with_headers("Authorization=Basic%20YTpi%3D%3D,odd=100%,more=%zz").unwrap();
        let values: Vec<&[u8]> = basic.headers.iter().map(|(_, value)| value.as_bytes()).collect();
        assert_eq!(values, [&b"Basic YTpi=="[..], b"100%", b"%zz"]);
        assert!(!format!("{basic:?} {basic}").contains("YTpi"), "a value is in no text");
        assert!(collector.clone().with_headers("a=x%0d%0ay").is_err(), "no header holds a line's end");
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
