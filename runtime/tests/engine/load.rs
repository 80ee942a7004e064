//! Many runs at once, on the real disk.

use std::sync::Arc;

use outlast_protocol::worker::{Outcome, Poll, Report};
use outlast_runtime::engine::{Engine, Options};
use outlast_store::{FjallStore, OpenOptions};
use serde_json::json;

use super::world::{FLOWS, done, register, start};

/// Runs `runs` small runs with four pollers, and returns how long it took.
async fn drive(engine: Engine, runs: usize) -> std::time::Duration {
    let began = std::time::Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for i in 0..runs {
        let engine = engine.clone();
        tasks.spawn(async move {
            engine.start(start(&format!("r{i}"), "Two", json!({ "x": 1 })), "t").await.map(|_| ())
        });
    }
    let mut workers = tokio::task::JoinSet::new();
    for w in 0..4 {
        let engine = engine.clone();
        let mut request = register(&format!("w{w}"), &format!("b{w}"), Vec::new());
        request.concurrency = 64;
        workers.spawn(async move {
            let session = engine.register(request).await.expect("it registers").session;
            loop {
                let poll = Poll { session: session.clone(), max: 64, wait_ms: 10_000, leaving: false };
                let Ok(polled) = engine.poll(poll).await else { return };
                let results =
                    polled.tasks.into_iter().map(|task| Outcome { token: task.token, kind: done(json!(2)) });
                let report = Report { session: session.clone(), results: results.collect() };
                if engine.report(report).await.is_err() {
                    return;
                }
            }
        });
    }
    while let Some(started) = tasks.join_next().await {
        started.expect("no panic").expect("it starts");
    }
    for i in 0..runs {
        let wait = std::time::Duration::from_secs(60);
        let view = engine.result(&format!("r{i}"), wait).await.expect("it is there");
        assert_eq!(view.status, "ended", "{view:?}");
    }
    began.elapsed()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hundreds_of_runs_end_and_are_whole_after_reopening() {
    const RUNS: usize = 500;
    let directory = tempfile::tempdir().unwrap();
    let opened = FjallStore::open(directory.path(), OpenOptions::default()).unwrap();
    let store = Arc::new(opened.0);
    let engine = Engine::open(store.clone(), Options::default()).await.unwrap();
    let files = vec![outlast_protocol::requests::FileText { name: "test.flow".into(), text: FLOWS.into() }];
    assert!(engine.deploy(outlast_protocol::requests::Deploy { files, ..Default::default() }).await.is_ok());
    let took = drive(engine.clone(), RUNS).await;
    println!("{RUNS} runs of two activities in {took:?}");
    engine.shutdown().await;
    drop(engine);
    use outlast_store::Store as _;
    let report = store.check().unwrap();
    assert!(report.findings.is_empty(), "{report:?}");
}
