//! Spans of runs at a collector of OpenTelemetry: what comes there, what never does, and what becomes of runs if it takes nothing.

use std::collections::BTreeSet;
use std::net::TcpListener;

use outlast_tests::certificates::certify;
use outlast_tests::collector::Collector;
use outlast_tests::ledger::Gate;
use outlast_tests::process::until;
use outlast_tests::scrape::Scrape;
use outlast_tests::world::World;
use serde_json::{Value, json};

const PRIVATE: &str = "what-nobody-must-see";

fn attribute<'a>(span: &'a Value, key: &str) -> &'a Value {
    let attributes = span["attributes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let found = attributes.iter().find(|attribute| attribute["key"] == key);
    found.map_or(&Value::Null, |attribute| &attribute["value"])
}

/// The span of an attempt of a run, and that of the run.
fn of_run<'a>(spans: &'a [Value], run: &str) -> Vec<&'a Value> {
    let mut found: Vec<&Value> =
        spans.iter().filter(|span| attribute(span, "outlast.run")["stringValue"] == run).collect();
    found.sort_by_key(|span| span["parentSpanId"].is_null());
    found
}

/// A run that is killed and goes on is one trace, with a span for each attempt below that of the run.
#[test]
fn a_run_is_one_trace_across_a_kill() {
    let collector = Collector::start();
    let world = World::with_flows();
    world.write("outlast.toml", &format!("[telemetry]\nendpoint = \"{}\"\n", collector.url()));
    let mut server = world.host(&["--no-workers", "flows/held_once.flow", "flows/repeatable.flow"]);
    let mut worker = world.worker("w", 1);
    world.begin("Repeatable", "first", &json!({ "name": PRIVATE }));
    assert_eq!(world.outcome("first")["kind"], "done");
    until("the spans of the first", || of_run(&collector.spans(), "first").len() == 2);
    world.close("r", Gate::After);
    world.begin("HeldOnce", "r", &json!({ "name": "r" }));
    world.reached("r", Gate::After);
    server.murder();
    worker.murder();
    world.open("r", Gate::After);
    let _server = world.host(&["--no-workers"]);
    until("the loss", || world.history("r").iter().any(|event| event["kind"] == "lost"));
    let op = world.get("/v1/runs/r")["waiting_for"]["op"].clone();
    let settle = json!({ "op": op, "verdict": "happened", "result": "k" });
    assert_eq!(world.post("/v1/runs/r/settle", &settle).status, 200);
    until("the spans of the second", || of_run(&collector.spans(), "r").len() == 2);
    let spans = collector.spans();
    for (run, flow, outcome) in [("first", "Repeatable", "done"), ("r", "HeldOnce", "restart")] {
        let [attempt, whole] = of_run(&spans, run)[..] else { panic!("{spans:?}") };
        assert_eq!((&whole["name"], &attempt["parentSpanId"]), (&json!(flow), &whole["spanId"]), "{run}");
        assert_eq!(attempt["traceId"], whole["traceId"], "{run}");
        let lengths = ["traceId", "spanId"].map(|key| whole[key].as_str().map(str::len));
        assert_eq!(lengths, [Some(32), Some(16)], "{whole}");
        assert_eq!(attribute(attempt, "outlast.outcome")["stringValue"], outcome, "{attempt}");
        assert_eq!(attribute(attempt, "outlast.attempt")["intValue"], "1");
        assert_eq!(attribute(whole, "outlast.outcome")["stringValue"], "done");
        let at = |key: &str| attempt[key].as_str().and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
        let (from, to) = (at("startTimeUnixNano"), at("endTimeUnixNano"));
        assert!(from > 1_700_000_000_000_000_000 && to >= from, "{attempt}");
    }
    let traces: BTreeSet<&str> = spans.iter().filter_map(|span| span["traceId"].as_str()).collect();
    assert_eq!(traces.len(), 2, "{spans:?}");
    for (path, body) in collector.bodies() {
        assert_eq!(path, "/v1/traces");
        assert!(!body.to_string().contains(PRIVATE), "{body}");
    }
}

/// A collector that takes connections and says nothing holds up nobody; what it did not take is counted.
#[test]
fn a_collector_that_hangs_holds_up_no_run() {
    let hanging = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", hanging.local_addr().unwrap());
    let world = World::with_flows().with_variable("OTEL_EXPORTER_OTLP_ENDPOINT", &url);
    let (mut server, api) = world.serve(&["--no-workers", "flows/repeatable.flow"]);
    let _worker = world.worker("w", 4);
    let dropped = || {
        let scrape = Scrape::read(&api.get("/metrics").body).unwrap();
        assert_eq!(scrape.get("outlast_spans_exported_total"), 0.0);
        scrape.get("outlast_spans_dropped_total")
    };
    for n in 0..20 {
        let run = format!("r-{n}");
        world.begin("Repeatable", &run, &json!({ "name": run }));
        assert_eq!(world.outcome(&run)["kind"], "done");
    }
    until("spans to be dropped", || dropped() > 0.0);
    server.signal("TERM");
    assert_eq!(server.finish().code, Some(0), "it ends although its last spans go nowhere");
}

/// Over TLS, with a header that proves who sends: the key comes to the collector, and into no log.
#[test]
fn a_collector_behind_tls_is_trusted_if_this_machine_trusts_its_authority() {
    for trusted in ["a", "b"] {
        let world = World::with_flows();
        ["a", "b"].iter().for_each(|name| certify(&world, name));
        let at = |name: &str| world.work().join(name);
        let collector = Collector::with_tls(&at("a.pem"), &at("a.key"));
        let authority = at(&format!("{trusted}-ca.pem")).display().to_string();
        let header = format!("Authorization=Basic%20{PRIVATE}, x-tenant=t");
        let world = world
            .with_variable("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url())
            .with_variable("OTEL_EXPORTER_OTLP_HEADERS", &header)
            .with_variable("SSL_CERT_FILE", &authority)
            .with_variable("OUTLAST_LOG", "trace");
        let (mut server, api) = world.serve(&["--no-workers", "flows/repeatable.flow"]);
        let _worker = world.worker("w", 1);
        world.begin("Repeatable", "r", &json!({ "name": "r" }));
        assert_eq!(world.outcome("r")["kind"], "done");
        let count = |name: &str| Scrape::read(&api.get("/metrics").body).unwrap().get(name);
        if trusted == "a" {
            until("the spans", || of_run(&collector.spans(), "r").len() == 2);
            let proof = format!("authorization: Basic {PRIVATE}");
            assert!(collector.headers().contains(&proof), "{:?}", collector.headers());
        } else {
            until("spans to be dropped", || count("outlast_spans_dropped_total") >= 2.0);
            assert!(collector.bodies().is_empty() && collector.headers().is_empty());
        }
        server.signal("TERM");
        let end = server.finish();
        let why = format!("the collector at {} takes no spans: no TLS: ", collector.url());
        assert_eq!(end.stderr.contains(&why), trusted == "b", "{}", end.stderr);
        assert!(!end.stderr.contains(PRIVATE), "the key is in the log: {}", end.stderr);
    }
}

/// What is set wrongly in a file is said, with what would be right.
#[test]
fn a_collector_that_cannot_be_one_is_refused() {
    let world = World::with_flows();
    world.write("outlast.toml", "[telemetry]\nendpoint = \"grpc://collector.example\"\n");
    let refused = world.run(&["run", "flows/told.flow"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    let said = &refused.stderr;
    assert!(said.contains("[telemetry] endpoint") && said.contains("http://"), "{refused:?}");
}
