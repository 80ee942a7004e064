//! Stores of earlier formats, found in the middle of things: each opens, and every run in it comes to the end that it would have had.
//!
//! `fixtures/store-N` was written by a release of format N that was killed: a run waits for the clock, one for its next attempt, one for the run
//! that it spawned, one for a person, one for a message (with an argument that would be stored by its hash today), one is its fork, and of one a
//! step was begun. A new format gets a fixture of the last one before it; none is ever written again.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outlast_kernel::ids::Millis;
use outlast_protocol::requests::Send;
use outlast_protocol::worker::{Offer, Outcome, Poll, Register, Report, Task};
use outlast_runtime::engine::{Engine, ManualClock, Options};
use outlast_runtime::limits::ADOPT_WITHIN_MS;
use outlast_store::{Filter, FjallStore, OpenOptions, Store as _};
use serde_json::{Value as Json, json};
use tempfile::TempDir;

use super::world::{approve, done};

/// Copies a fixture, with the directories that are empty and so in no repository.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (from, name) = (entry.as_ref().unwrap().path(), entry.unwrap().file_name());
        if from.is_dir() {
            copy(&from, &to.join(name));
        } else {
            fs::copy(&from, to.join(name)).unwrap();
        }
    }
    if to.join("current").exists() {
        fs::create_dir_all(to.join("tables")).unwrap();
    }
}

struct Opened {
    engine: Engine,
    store: Arc<FjallStore>,
    clock: Arc<ManualClock>,
    _place: TempDir,
}

async fn open(format: u32) -> Opened {
    let place = TempDir::new().unwrap();
    let fixture = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/store-{format}"));
    copy(&fixture, place.path());
    let (store, _) = FjallStore::open(place.path(), OpenOptions::default()).unwrap();
    let store = Arc::new(store);
    // A second after it was killed.
    let newest = store.summaries(&Filter::default()).unwrap().items;
    let newest = newest.iter().map(|summary| summary.updated_at).max().unwrap();
    let clock = Arc::new(ManualClock::new(Millis(newest.0 + 1_000)));
    let options = Options { clock: Arc::<ManualClock>::clone(&clock), ..Options::default() };
    let engine = Engine::open(Arc::<FjallStore>::clone(&store) as _, options).await.unwrap();
    Opened { engine, store, clock, _place: place }
}

/// Does whatever there is to do until all runs have ended.
async fn finish(opened: &Opened) {
    let Opened { engine, clock, .. } = opened;
    let activities =
        ["flaky", "repeatable", "ledger"].map(|name| Offer { name: name.into(), ..Offer::default() });
    let register = Register {
        worker: "later".into(),
        boot: "later".into(),
        queues: vec!["test".into()],
        profile: None,
        concurrency: 9,
        activities: activities.into(),
        holding: Vec::new(),
        pid: None,
    };
    let session = engine.register(register).await.unwrap().session;
    for _ in 0..100 {
        let poll = Poll { session: session.clone(), max: 9, wait_ms: 0, leaving: false };
        let tasks = engine.poll(poll).await.unwrap().tasks;
        let ended = |task: &Task| Outcome { token: task.token.clone(), kind: done(json!(task.key)) };
        let results: Vec<Outcome> = tasks.iter().map(ended).collect();
        engine.report(Report { session: session.clone(), results }).await.unwrap();
        clock.advance(ADOPT_WITHIN_MS / 5);
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
        let runs = engine.list(Filter::default()).await.unwrap().items;
        if runs.iter().all(|run| run.status == "ended") {
            return;
        }
    }
    let runs = engine.list(Filter::default()).await.unwrap().items;
    panic!("{:?}", runs.iter().map(|run| (&run.id, &run.status, &run.waiting_for)).collect::<Vec<_>>());
}

/// Case VER-04: an older store is opened, everything in it goes on, and ends as it would have.
#[tokio::test]
async fn every_run_of_an_older_store_comes_to_its_end() {
    let opened = open(1).await;
    let engine = &opened.engine;
    assert_eq!(opened.store.check().unwrap().findings, Vec::<String>::new());
    let waits = |kind: &'static str, run: &'static str| async move {
        let view = engine.get(run).await.unwrap();
        let waiting_for = serde_json::to_value(&view.waiting_for).unwrap();
        assert_eq!(waiting_for["kind"], kind, "{run}: {waiting_for}");
    };
    waits("question", "approval").await;
    waits("message", "timer").await;
    waits("retry", "retry").await;
    let answer = outlast_protocol::requests::Answer { question: Some("1.0".into()), ..approve() };
    engine.answer("approval", answer, "ann").await.unwrap();
    for run in ["message", "fork"] {
        engine.message(run, Send { name: "Go".into(), value: json!({}), id: None }, "ann").await.unwrap();
    }
    finish(&opened).await;
    let key = |run: &str, op: &str| format!("{run}/{op}");
    let expected = [
        ("timer", json!("timer in time")),
        ("retry", json!(key("retry", "1.0"))),
        ("child", json!(key("child", "1.0"))),
        ("parent", json!(format!("done {}", key("child", "1.0")))),
        ("approval", json!({ "type": "Happened", "key": key("approval", "2.0") })),
        ("steps", json!({ "type": "InDoubt", "name": "steps" })),
        ("message", json!("old")),
        ("fork", json!("old")),
    ];
    let runs = engine.list(Filter::default()).await.unwrap().items;
    assert_eq!(runs.len(), expected.len());
    for (run, value) in expected {
        let outcome = engine.get(run).await.unwrap().outcome.unwrap();
        assert_eq!((outcome.kind.as_str(), outcome.value), ("done", Some(value)), "{run}");
    }
    // What was stored before is read as it was, what is stored now stands beside it.
    let started: Vec<Json> = engine.events("message", 0, 1).await.unwrap().items;
    assert_eq!(started[0]["input"]["name"].as_str().map(str::len), Some(6_000), "{started:?}");
    assert_eq!(opened.store.check().unwrap().findings, Vec::<String>::new());
}
