//! What `GET /metrics` tells: read as strictly as Prometheus would, while the things happen that its alarms are for.

use std::collections::BTreeSet;

use outlast_tests::http::Api;
use outlast_tests::ledger::Gate;
use outlast_tests::process::until;
use outlast_tests::repository;
use outlast_tests::scrape::Scrape;
use outlast_tests::world::World;
use serde_json::{Value, json};

fn scrape(api: &Api) -> Scrape {
    let answer = api.get("/metrics");
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    Scrape::read(&answer.body).unwrap_or_else(|error| panic!("{error}"))
}

fn until_it_is(api: &Api, series: &str, value: f64) {
    until(series, || scrape(api).get(series) >= value);
    assert_eq!(scrape(api).get(series), value, "{series}");
}

/// A worker dies in the middle of what must not happen twice: it is in doubt until a person settles it, also after a kill of the server.
#[test]
fn what_is_in_doubt_is_counted_across_a_kill() {
    let world = World::with_flows();
    let (mut server, api) = world.serve(&["--no-workers", "flows/held_once.flow"]);
    let mut worker = world.worker("w", 1);
    world.close("r", Gate::After);
    world.begin("HeldOnce", "r", &json!({ "name": "r" }));
    world.reached("r", Gate::After);
    let working = scrape(&api);
    let figures = ["outlast_workers", "outlast_tasks_in_hand", "outlast_runs{status=\"running\"}"];
    assert_eq!(figures.map(|series| working.get(series)), [1.0, 1.0, 1.0]);
    assert_eq!(working.get("outlast_tasks_handed_out_total{queue=\"test\"}"), 1.0);
    worker.murder();
    until_it_is(&api, "outlast_in_doubt", 1.0);
    let lost = scrape(&api);
    let moved = ["outlast_in_doubt_total", "outlast_attempts_lost_total{cause=\"worker_gone\"}"];
    assert_eq!(moved.map(|series| lost.get(series)), [1.0, 1.0]);
    server.murder();
    let (_server, api) = world.serve(&["--no-workers"]);
    let after = scrape(&api);
    let now = ["outlast_in_doubt", "outlast_runs{status=\"waiting\"}", "outlast_epoch"];
    assert_eq!(now.map(|series| after.get(series)), [1.0, 1.0, 2.0], "gauges are true after a restart");
    assert_eq!(after.get("outlast_in_doubt_total"), 0.0, "counters begin with the process");
    let op = world.history("r").iter().find_map(|event| event["op"].as_str().map(str::to_owned)).unwrap();
    let settled = world.post("/v1/runs/r/settle", &json!({ "op": op, "verdict": "happened", "result": "k" }));
    assert_eq!(settled.status, 200, "{settled:?}");
    until_it_is(&api, "outlast_runs{status=\"ended\"}", 1.0);
    assert_eq!(scrape(&api).get("outlast_in_doubt"), 0.0);
}

/// A worker reports, says it again, contradicts itself, and sends a token that nobody gave out.
#[test]
fn reports_that_change_nothing_are_counted_by_what_they_are() {
    let world = World::with_flows();
    let (_server, api) = world.serve(&["--no-workers", "flows/repeatable.flow"]);
    let offer = json!({
        "worker": "w", "boot": "b", "queues": ["test"], "concurrency": 1, "activities": [{"name": "repeatable"}],
    });
    let session = world.post("/v1/workers/register", &offer).body["session"].clone();
    world.begin("Repeatable", "r", &json!({ "name": "r" }));
    let poll = json!({ "session": session, "max": 1, "wait_ms": 10_000 });
    let token = world.post("/v1/workers/poll", &poll).body["tasks"][0]["token"].clone();
    let report = |token: &Value, value: &str| {
        let result = json!({ "token": token, "kind": "done", "value": value });
        world.post("/v1/workers/report", &json!({ "session": session, "results": [result] })).body["results"]
            [0]["status"]
            .clone()
    };
    let said = [("k", "accepted"), ("k", "accepted"), ("other", "superseded")];
    for (value, status) in said {
        assert_eq!(report(&token, value), status);
    }
    assert_eq!(report(&json!("no-token"), "k"), "unknown_token");
    assert_eq!(world.outcome("r")["value"], "k");
    let seen = scrape(&api);
    assert_eq!(seen.get("outlast_tasks_reported_total{queue=\"test\",outcome=\"done\"}"), 1.0);
    for status in ["repeated", "superseded", "unknown_token"] {
        assert_eq!(
            seen.get(&format!("outlast_reports_dropped_total{{status=\"{status}\"}}")),
            1.0,
            "{status}"
        );
    }
    let route = "outlast_http_requests_total{method=\"POST\",route=\"/v1/workers/report\",status=\"2xx\"}";
    assert_eq!(seen.get(route), 4.0);
    assert_eq!(api.get("/v1/runs/nobody").status, 404);
    assert_eq!(api.get("/nowhere").status, 404);
    let seen = scrape(&api);
    let missing = "outlast_http_requests_total{method=\"GET\",route=\"/v1/runs/{id}\",status=\"4xx\"}";
    let other = "outlast_http_requests_total{method=\"other\",route=\"other\",status=\"4xx\"}";
    let code = "outlast_http_refusals_total{code=\"not_found\"}";
    assert_eq!([missing, other, code].map(|series| seen.get(series)), [1.0, 1.0, 2.0]);
    assert!(seen.get("process_resident_memory_bytes") > 1e6 && seen.get("outlast_store_bytes") > 0.0);
    assert!(seen.series().all(|series| !series.contains("nobody") && !series.contains("\"r\"")), "{seen:?}");
}

/// A question is open, then nobody has answered it in time; and the commits that made it so are spread over their buckets.
#[test]
fn an_open_question_becomes_an_overdue_one() {
    let world = World::with_flows();
    let (_server, api) = world.serve(&["--no-workers", "flows/overdue.flow", "flows/desk.flow"]);
    world.begin("Desk", "d", &json!({ "topic": "tea" }));
    world.begin("Overdue", "r", &json!({ "name": "r" }));
    until("nobody to have answered", || world.get("/v1/runs/r")["outcome"]["value"] == "overdue");
    until_it_is(&api, "outlast_questions_overdue_total", 1.0);
    let seen = scrape(&api);
    assert_eq!(
        seen.get("outlast_questions_open"),
        world.get("/v1/runs/d")["questions"].as_array().unwrap().len() as f64
    );
    assert_eq!(seen.get("outlast_events_total{kind=\"started\"}"), 2.0);
    assert_eq!(seen.get("outlast_events_total{kind=\"timer_fired\"}"), 1.0);
    assert!(seen.get("outlast_event_bytes_total") > 100.0);
    let (all, count) = ("outlast_commit_seconds_bucket{le=\"+Inf\"}", "outlast_commit_seconds_count");
    assert!(seen.get(count) >= 3.0 && seen.get(all) == seen.get(count), "{seen:?}");
}

/// What three processes leave that ended while they worked on a run.
#[test]
fn a_quarantined_run_is_counted() {
    let world = World::with_flows();
    let (mut server, _) = world.serve(&["--no-workers", "flows/repeatable.flow"]);
    world.begin("Repeatable", "r", &json!({ "name": "r" }));
    server.murder();
    let desk = world.data().join("scratch/desk");
    let place = std::fs::metadata(&desk).unwrap().len() as usize;
    std::fs::write(&desk, format!("{:width$}", "2 r work\n", width = place.min(160))).unwrap();
    let (_server, api) = world.serve(&["--no-workers"]);
    until_it_is(&api, "outlast_runs_quarantined", 1.0);
    assert_eq!(world.run(&["release", "r"]).code, Some(0));
    until("the release", || scrape(&api).get("outlast_runs_quarantined") == 0.0);
}

/// Sums over all runs are for those who may read all runs.
#[test]
fn whoever_may_read_all_runs_may_scrape() {
    let world = World::with_flows();
    let token = |name: &str, rights: &[&str]| {
        let made = world.json(&[&["token", "add", name, "--json"], rights].concat());
        made["token"].as_str().unwrap().to_owned()
    };
    let (_server, api) = world.serve(&["--tokens", "--no-workers", "flows/desk.flow"]);
    let scraper = api.with_token(&token("prometheus", &["--scope", "read"]));
    assert!(scrape(&scraper).families().contains("outlast_runs"));
    let limited = api.with_token(&token("limited", &["--scope", "read", "--flow", "Desk"]));
    let starter = api.with_token(&token("starter", &["--scope", "start"]));
    assert_eq!([&api, &limited, &starter].map(|who| who.get("/metrics").status), [401, 403, 403]);
}

/// The guide names every metric, and the alarms and the guide name no other.
#[test]
fn the_guide_and_its_alarms_name_what_a_scrape_has() {
    let world = World::with_flows();
    let (_server, api) = world.serve(&["--no-workers"]);
    let scraped = scrape(&api);
    let families = scraped.families();
    let read = |path: &str| std::fs::read_to_string(repository::root().join(path)).unwrap();
    let guide = read("runtime/OPERATING.md");
    let rows = guide.lines().filter_map(|line| line.strip_prefix("| `")?.split(['`', '{']).next());
    let named: BTreeSet<&str> =
        rows.filter(|name| name.starts_with("outlast_") || name.starts_with("process_")).collect();
    assert_eq!(named, families);
    let alerts = read("examples/alerts.yml");
    let words = alerts.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    let watched: BTreeSet<&str> = words.filter(|word| word.starts_with("outlast_")).collect();
    let of_family = |word: &&str| {
        let bare = ["_bucket", "_sum", "_count"].iter().find_map(|end| word.strip_suffix(end));
        families.contains(*word) || bare.is_some_and(|bare| families.contains(bare))
    };
    let unknown: Vec<&&str> = watched.iter().filter(|word| !of_family(word)).collect();
    assert!(unknown.is_empty() && watched.len() > 8, "{unknown:?} of {watched:?}");
}
