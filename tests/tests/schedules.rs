//! `outlast schedule` and `/v1/schedules` from outside. What is due when, and what becomes of it, is tested under a clock of its own.

use outlast_tests::world::World;
use serde_json::{Value, json};

const ADD: &[&str] = &[
    "schedule",
    "add",
    "nightly",
    "flows/graded.flow",
    "--cron",
    "30 2 * * *",
    "--time-zone",
    "Europe/Berlin",
    "--overlap",
    "queue-one",
    "--input",
    "{\"name\": \"a\"}",
];

#[test]
fn schedules_are_kept_shown_run_paused_and_removed() {
    let world = World::with_flows();
    let added = world.run(ADD);
    assert_eq!(added.code, Some(0), "{added:?}");
    assert!(
        added.stdout.contains("nightly is added; next at ") && added.stderr.contains("outlast serve"),
        "{added:?}"
    );
    assert!(world.run(ADD).stdout.contains("is as it was"));
    let listed = world.run(&["schedule", "list"]);
    assert!(listed.stdout.contains("30 2 * * * Europe/Berlin"), "{listed:?}");
    let shown = world.json(&["schedule", "show", "nightly", "--json"]);
    assert_eq!(shown["definition"]["overlap"], "queue_one");
    assert_eq!(shown["next"].as_array().unwrap().len(), 5);

    let _host = world.host(&[]);
    let run = world.run(&["schedule", "run-now", "nightly"]).stdout.trim().to_owned();
    assert_eq!(world.outcome(&run)["value"], "a");
    assert_eq!(world.json(&["schedule", "pause", "nightly", "--json"])["paused"], true);
    assert!(world.run(&["schedule", "show", "nightly"]).stdout.contains("nightly (paused)"));
    assert_eq!(world.json(&["schedule", "resume", "nightly", "--json"])["paused"], false);
    assert_eq!(world.run(&["schedule", "remove", "nightly"]).code, Some(0));
    assert_eq!(world.run(&["schedule", "show", "nightly"]).code, Some(2));
}

/// Only who is there to serve starts what is due: not a command that opens the data directory to look, nor one that waits for its own run.
#[test]
fn what_is_due_is_started_by_serve_and_by_nobody_else() {
    let world = World::with_flows();
    assert_eq!(world.json(&["doctor", "--json"])["host"]["engine"]["schedules"], false);
    let _server = world.host(&["--no-workers"]);
    assert_eq!(world.json(&["doctor", "--json"])["host"]["engine"]["schedules"], true);
    assert_eq!(world.get("/v1/status")["engine"]["schedules"], true);
}

/// Case CRN-03: what can never be due is refused at once, with what was expected.
#[test]
fn rules_that_cannot_be_are_refused() {
    let world = World::with_flows();
    for (rule, zone, fault) in [
        ("0 0 30 2 *", "UTC", "never due"),
        ("0 0 31 2,4,6 *", "UTC", "never due"),
        ("hourly", "UTC", "five are expected"),
        ("0 0 * * *", "Mars/Olympus", "not a time zone"),
    ] {
        let arguments = ["schedule", "add", "x", "flows/graded.flow", "--cron", rule, "--time-zone", zone];
        let refused = world.run(&[&arguments[..], &["--input", "{\"name\": \"a\"}"]].concat());
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains(fault), "{refused:?}");
    }
}

#[test]
fn schedules_are_there_over_http() {
    let world = World::with_flows();
    let (_host, api) = world.serve(&["flows/graded.flow"]);
    let schedule =
        json!({"flow": "Graded", "input": {"name": "a"}, "cron": ["@daily"], "catch_up": {"all": 3}});
    let put = |body: &Value| {
        api.send("PUT", "/v1/schedules/s", &[("content-type", "application/json")], &body.to_string())
    };
    let created = put(&schedule);
    assert_eq!((created.status, &created.json()["kept"]), (201, &json!("created")), "{created:?}");
    assert_eq!(put(&schedule).json()["kept"], "unchanged");
    let other = json!({"flow": "Graded", "input": {"name": "b"}, "cron": ["@daily"]});
    let changed = put(&other);
    assert_eq!((changed.status, &changed.json()["kept"]), (200, &json!("changed")));
    assert_eq!(put(&json!({"flow": "Graded", "cron": ["@daily"], "crom": 1})).status, 422);
    assert_eq!(api.get("/v1/schedules").json()["items"][0]["name"], "s");
    let run = api.post("/v1/schedules/s/run-now", &json!({}));
    assert_eq!(run.status, 201, "{run:?}");
    let result = format!("/v1/runs/{}/result?wait=30s", run.json()["id"].as_str().unwrap());
    assert_eq!(api.get(&result).json()["outcome"]["value"], "b");
    assert_eq!(api.post("/v1/schedules/s/pause", &json!({})).json()["paused"], true);
    assert_eq!(api.post("/v1/schedules/s/resume", &json!({})).json()["paused"], false);
    assert_eq!(api.send("DELETE", "/v1/schedules/s", &[], "").status, 200);
    assert_eq!(api.get("/v1/schedules/s").status, 404);
}
