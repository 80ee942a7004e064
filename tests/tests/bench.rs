//! `outlast bench`, each workload small: it ends, says everything that it should, and leaves nothing behind. Times are not judged.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::time::Duration;

use outlast_tests::process::until;
use outlast_tests::world::World;
use serde_json::{Value, json};

/// What each workload tells.
const FIGURES: [(&str, &[&str]); 6] = [
    ("steps", &["2 in flight", "3 in flight", "10 in flight"]),
    ("latency", &["step p50", "step p99", "flow of 10 steps p50"]),
    (
        "conversation",
        &[
            "the run in the store",
            "written to the disk",
            "a turn",
            "last third of the turns, in first thirds",
        ],
    ),
    (
        "recovery",
        &[
            "the runtime answers after",
            "a new run is taken after",
            "a new run has done a step after",
            "20 runs half way have ended after",
            "finished activities done again",
            "unfinished activities done again",
        ],
    ),
    (
        "idle",
        &[
            "starts",
            "memory over an empty engine",
            "memory after a restart, over an empty engine",
            "disk, without journals",
        ],
    ),
    (
        "history",
        &[
            "open",
            "memory of opening",
            "last 500 events",
            "500 events in the middle",
            "memory after that",
            "making it",
        ],
    ),
];

fn bench(world: &World, workload: &str) -> Value {
    let finished = world.run(&["bench", workload, "--scale", "0.01", "--json"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    serde_json::from_str(&finished.stdout).unwrap()
}

/// Returns what is in the directory in which the workloads have their stores.
fn left(world: &World) -> Vec<String> {
    let around = world.data().parent().unwrap().to_path_buf();
    let names = std::fs::read_dir(around).unwrap().map(|entry| entry.unwrap().file_name());
    names.map(|name| name.to_string_lossy().into_owned()).filter(|name| name.contains("bench")).collect()
}

#[test]
fn each_workload_tells_its_figures_and_leaves_nothing_behind() {
    let world = World::new();
    for (workload, figures) in FIGURES {
        let report = bench(&world, workload);
        for field in ["version", "build", "cores", "directory", "fdatasync_p50_ms", "fdatasync_p99_ms"] {
            assert!(!report["machine"][field].is_null(), "{workload}: {field} in {report}");
        }
        assert_eq!(report["scale"], json!(0.01));
        let rows = report["figures"].as_array().unwrap();
        for row in rows {
            let mut fields: Vec<&str> = row.as_object().unwrap().keys().map(String::as_str).collect();
            fields.sort_unstable();
            let all = ["figure", "floor", "met", "ratio", "target", "unit", "value", "workload"];
            assert_eq!((fields.as_slice(), &row["workload"]), (&all[..], &json!(workload)), "{row}");
            assert_eq!(row["met"], Value::Null, "nothing is said of a part of a workload");
        }
        let named = |name: &str| rows.iter().find(|row| row["figure"] == name);
        for name in figures {
            let row = named(name).unwrap_or_else(|| panic!("{workload}: {name} is missing in {report}"));
            assert!(row["value"].is_number(), "{row}");
        }
        if workload == "recovery" {
            assert_eq!(named("finished activities done again").unwrap()["value"], json!(0.0));
            assert_eq!(named("unfinished activities done again").unwrap()["value"], json!(20.0));
        }
        assert_eq!(left(&world), Vec::<String>::new(), "{workload}");
    }
}

#[test]
fn a_table_is_for_people_and_a_store_is_not_touched() {
    let world = World::new();
    let finished = world.run(&["bench", "latency", "--scale", "0.01"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    for expected in ["fdatasync of 4 KiB in ", "targets are for 1", "workload ", "step p50", "<= "] {
        assert!(finished.stdout.contains(expected), "{expected}: {finished:?}");
    }
    assert!(!world.data().exists());
}

#[test]
fn an_interrupted_bench_leaves_nothing_behind() {
    let world = World::new();
    let mut bench = world.start(&["bench", "steps", "--json"]);
    until("its store", || {
        let around = world.data().parent().unwrap().to_path_buf();
        left(&world).iter().any(|name| around.join(name).join("data/socket").exists())
    });
    bench.work_for(Duration::from_millis(50));
    bench.signal("INT");
    let finished = bench.finish();
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(130), ""), "{finished:?}");
    assert_eq!(left(&world), Vec::<String>::new());
}
