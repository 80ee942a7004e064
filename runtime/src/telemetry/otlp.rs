//! Spans as OTLP over HTTP has them, in JSON.
//!
//! Source: <https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>. Invariant: the ids of a trace and its spans follow from run,
//! operation and attempt, so that spans of several processes, and of a process that was killed, belong together.

use outlast_kernel::Json;
use outlast_kernel::ids::{Attempt, Millis, OpId, RunId};
use serde_json::json;

use super::Begun;

/// `SPAN_KIND_INTERNAL`
const KIND_INTERNAL: u32 = 1;
/// `STATUS_CODE_OK` and `STATUS_CODE_ERROR`
const STATUS: [u32; 2] = [1, 2];

/// A span.
#[derive(Debug)]
pub(super) struct Span(Json);

impl Span {
    /// Makes the span of a run, which is above those of its attempts.
    pub(super) fn of_run(run: &RunId, flow: &str, outcome: &str, (from, to): (Millis, Millis)) -> Span {
        let attributes =
            [text("outlast.run", run.as_str()), text("outlast.flow", flow), text("outlast.outcome", outcome)];
        let mut span = span(run, flow, (from, to), outcome == "done");
        span["spanId"] = json!(run_span(run));
        span["attributes"] = json!(attributes);
        Span(span)
    }

    /// Makes the span of an attempt.
    pub(super) fn of_attempt(begun: &Begun, outcome: &str, at: Millis) -> Span {
        let Begun { run, op, attempt, activity, queue, at: from } = begun;
        let mut attributes = vec![
            text("outlast.run", run.as_str()),
            text("outlast.op", &op.to_string()),
            text("outlast.activity", activity),
            // Whole numbers are text in the JSON of protocol buffers.
            json!({ "key": "outlast.attempt", "value": { "intValue": attempt.0.to_string() } }),
            text("outlast.outcome", outcome),
        ];
        if !queue.is_empty() {
            attributes.push(text("outlast.queue", queue));
        }
        let mut span = span(run, activity, (*from, at), outcome == "done");
        span["spanId"] = json!(attempt_span(run, *op, *attempt));
        span["parentSpanId"] = json!(run_span(run));
        span["attributes"] = json!(attributes);
        Span(span)
    }
}

/// Writes the body of a request with spans.
pub(super) fn request(spans: &[Span]) -> Vec<u8> {
    let version = env!("CARGO_PKG_VERSION");
    let resource = [text("service.name", "outlast"), text("service.version", version)];
    let spans: Vec<&Json> = spans.iter().map(|span| &span.0).collect();
    let scope = json!({ "scope": { "name": "outlast", "version": version }, "spans": spans });
    let body =
        json!({ "resourceSpans": [{ "resource": { "attributes": resource }, "scopeSpans": [scope] }] });
    body.to_string().into_bytes()
}

fn span(run: &RunId, name: &str, (from, to): (Millis, Millis), is_done: bool) -> Json {
    json!({
        "traceId": trace(run), "name": name, "kind": KIND_INTERNAL,
        "startTimeUnixNano": nanos(from), "endTimeUnixNano": nanos(to.max(from)),
        "status": { "code": STATUS[usize::from(!is_done)] },
    })
}

fn text(key: &str, value: &str) -> Json {
    json!({ "key": key, "value": { "stringValue": value } })
}

/// Returns nanoseconds as text, for JSON numbers do not hold them.
fn nanos(at: Millis) -> String {
    format!("{}000000", at.0.max(0))
}

fn trace(run: &RunId) -> String {
    id(&format!("trace {run}"), 16)
}

fn run_span(run: &RunId) -> String {
    id(&format!("run {run}"), 8)
}

fn attempt_span(run: &RunId, op: OpId, attempt: Attempt) -> String {
    id(&format!("attempt {run} {op} {attempt}"), 8)
}

fn id(of: &str, bytes: usize) -> String {
    blake3::hash(of.as_bytes()).to_hex().chars().take(2 * bytes).collect()
}
