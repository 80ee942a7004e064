//! A run that takes the process down, three times in a row, is left alone; the others go on (with real processes that abort).
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use outlast_protocol::Code;
use outlast_protocol::requests::{Deploy, FileText, Release};
use outlast_runtime::engine::{Engine, ManualClock, Options};
use outlast_store::{Filter, FjallStore, OpenOptions};
use serde_json::{Value as Json, json};
use tempfile::TempDir;

use super::watched::Watched;
use super::world::{FLOWS, START, code, start};

/// The variable that makes a process of this program the one that dies, in this directory.
const DIES_IN: &str = "OUTLAST_TEST_DIES_IN";

async fn engine(directory: &Path, is_deadly: bool) -> Engine {
    let store = Arc::new(Watched::open(directory).on_read(move |run| {
        if is_deadly && run.as_str() == "bad" {
            std::process::abort();
        }
    }));
    let desk = Some(directory.join("scratch/desk"));
    let clock = Arc::new(ManualClock::new(START));
    Engine::open(store, Options { desk, clock, seed: Some(1), ..Options::default() }).await.unwrap()
}

async fn recovered(engine: &Engine) {
    while engine.status()["recovering"] == json!(true) {
        tokio::task::yield_now().await;
    }
}

/// The other process: it puts all runs back to work, and says what it sees if it outlives that. An argument of `release` lets the run
/// that killed it go on.
#[tokio::test]
async fn a_process_puts_its_runs_back_to_work() {
    let Some(directory) = std::env::var_os(DIES_IN).map(PathBuf::from) else { return };
    let engine = engine(&directory, true).await;
    recovered(&engine).await;
    let (bad, good) = (engine.get("bad").await.unwrap(), engine.get("good").await.unwrap());
    let blocked = Filter { statuses: vec![outlast_store::Status::Blocked], ..Filter::default() };
    let seen = json!({
        "bad": bad.status,
        "why": bad.waiting_for,
        "good": good.status,
        "cancel": code(engine.cancel("bad", "ann").await) == Code::Internal,
        "blocked": engine.list(blocked).await.unwrap().items.len(),
        "quarantined": engine.status()["quarantined"],
    });
    println!("seen {seen}");
    if directory.join("release").exists() {
        engine.release("bad", Release::default(), "ann").await.unwrap();
    }
}

fn process(directory: &Path) -> Output {
    let mut test = Command::new(std::env::current_exe().unwrap());
    test.args(["--exact", "quarantined::a_process_puts_its_runs_back_to_work", "--nocapture"]);
    test.env(DIES_IN, directory).output().unwrap()
}

fn seen(output: &Output) -> Option<Json> {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find_map(|line| line.split_once("seen ").map(|(_, seen)| seen.to_owned()))?;
    serde_json::from_str(&line).ok()
}

#[tokio::test]
async fn a_run_that_ends_three_processes_in_a_row_is_left_alone_until_a_person_releases_it() {
    let place = TempDir::new().unwrap();
    let first = engine(place.path(), false).await;
    let files = vec![FileText { name: "test.flow".into(), text: FLOWS.into() }];
    first.deploy(Deploy { files, profile: None }).await.unwrap();
    for run in ["bad", "good"] {
        first.start(start(run, "Two", json!({ "x": 1 })), "test").await.unwrap();
    }
    first.shutdown().await;
    drop(first);
    // Its tasks end with it, and with them their hold on the directory.
    while FjallStore::open(place.path(), OpenOptions::default()).is_err() {
        tokio::task::yield_now().await;
    }
    for life in 0..3 {
        let output = process(place.path());
        assert!(!output.status.success() && seen(&output).is_none(), "{life}: {output:?}");
    }
    for _ in 0..2 {
        let output = process(place.path());
        let seen = seen(&output).unwrap_or_else(|| panic!("{output:?}"));
        let expected = json!({
            "bad": "blocked", "good": "waiting", "cancel": true, "blocked": 1, "quarantined": ["bad"],
            "why": seen["why"],
        });
        assert_eq!(seen, expected);
        assert!(seen["why"]["cause"].as_str().is_some_and(|why| why.contains("quarantined")), "{seen}");
    }
    // It goes on, and takes the process down again, before it is left alone once more.
    std::fs::write(place.path().join("release"), "").unwrap();
    assert!(!process(place.path()).status.success());
    std::fs::remove_file(place.path().join("release")).unwrap();
    for _ in 0..2 {
        assert!(seen(&process(place.path())).is_none());
    }
    assert_eq!(seen(&process(place.path())).unwrap()["quarantined"], json!(["bad"]));
    // When the cause is mended, it is released and goes on to its end.
    let last = engine(place.path(), false).await;
    last.release("bad", Release::default(), "ann").await.unwrap();
    recovered(&last).await;
    assert_eq!(last.get("bad").await.unwrap().status, "waiting");
    assert_eq!(last.status()["quarantined"], json!([]));
}
