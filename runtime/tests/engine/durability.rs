//! Nothing leaves before its event is durable, and every crash ends in the calm result.

use outlast_protocol::Code;
use outlast_protocol::worker::ReceiptStatus::{Accepted, Retry};
use outlast_store::{FailedSync, MemoryStore, Side};
use serde_json::{Value as Json, json};

use super::world::{FLOWS, START, World, code, in_time, start};

#[tokio::test]
async fn a_start_is_answered_when_it_is_durable() {
    let world = World::new().await;
    world.store.hold(Side::BeforeSync);
    let engine = world.engine.clone();
    let starting = tokio::spawn(async move { engine.start(start("r", "Two", json!({ "x": 1 })), "t").await });
    world.wait_until_held().await;
    world.turn().await;
    assert!(!starting.is_finished() && !world.synced("r", 1));
    world.store.release();
    starting.await.unwrap().unwrap();
    assert!(world.synced("r", 1));
}

#[tokio::test]
async fn a_once_attempt_is_handed_out_when_its_beginning_is_durable() {
    let world = World::new().await;
    let worker = world.worker("w").await;
    world.start("r", "Pay", json!({ "x": 1 })).await;
    world.store.hold(Side::BeforeSync);
    let polling = tokio::spawn(async move { (worker.task().await, worker) });
    world.wait_until_held().await;
    world.turn().await;
    assert!(!polling.is_finished(), "handed out before its beginning is durable");
    world.store.release();
    let (task, worker) = polling.await.unwrap();
    assert!(world.synced("r", 2));
    assert_eq!(task.effect, "once");
    assert_eq!(worker.done(&task, json!("paid")).await, Accepted);
    assert_eq!(world.kinds("r").await, ["started", "begun", "done"]);
}

#[tokio::test]
async fn reads_and_streams_show_nothing_that_is_not_durable() {
    let world = World::new().await;
    let worker = world.worker("w").await;
    world.start("r", "Two", json!({ "x": 1 })).await;
    let task = worker.task().await;
    let mut watch = world.engine.watch("r", Some("r/1.9")).await.unwrap();
    // A frame of the present comes after all of the past, so the stream is where the run is.
    worker.progress(&[(&task, Some("word"))]).await;
    assert_eq!(watch.next().await.unwrap().data["text"], json!("word"));
    world.store.hold(Side::BeforeSync);
    let reporting = tokio::spawn(async move { worker.done(&task, json!(2)).await });
    world.wait_until_held().await;
    let engine = world.engine.clone();
    let reading = tokio::spawn(async move { engine.get("r").await });
    let frame = tokio::spawn(async move { watch.next().await });
    world.turn().await;
    assert!(!reading.is_finished() && !frame.is_finished() && !reporting.is_finished());
    assert_eq!(world.kinds("r").await, ["started"]);
    world.store.release();
    assert_eq!(reading.await.unwrap().unwrap().state, "Put");
    assert_eq!(frame.await.unwrap().unwrap().data["value"], json!("looked"));
    assert_eq!(reporting.await.unwrap(), Accepted);
}

/// A full disk parts a batch, and the disk fails at one of its parts: who comes after it is told, too.
#[tokio::test]
async fn nobody_waits_for_ever_behind_a_step_at_which_the_disk_failed() {
    let world = World::new().await;
    world.store.hold(Side::BeforeSync);
    let start = |id: &'static str| {
        let engine = world.engine.clone();
        let starting = async move { engine.start(start(id, "Two", json!({ "x": 1 })), "test").await };
        tokio::spawn(starting)
    };
    let first = start("first");
    world.wait_until_held().await;
    let others = ["a", "b", "c", "d"].map(start);
    world.turn().await;
    world.store.refuse_at(1, 1);
    world.store.crash_at(2, Side::BeforeSync);
    world.store.release();
    assert!(first.await.unwrap().is_ok());
    let mut kept = 0;
    for other in others {
        kept += usize::from(in_time("an answer", other).await.unwrap().is_ok());
    }
    assert_eq!(kept, 1, "one was kept alone, the next one failed, and so did all that waited behind it");
}

/// What a small run leaves behind: its result, and how often each activity was carried out to its end.
async fn drive(mut world: World, crash: Option<(u64, Side)>) -> (Json, Vec<String>) {
    let mut finished: Vec<String> = Vec::new();
    if let Some((commits, side)) = crash {
        world.store.crash_at(commits, side);
    }
    for _ in 0..20 {
        match step(&world, &mut finished).await {
            Some(value) => return (value, finished),
            None => world = world.crash().await,
        }
    }
    panic!("the run does not end");
}

/// Drives the run as far as the process lives; none when it died.
async fn step(world: &World, finished: &mut Vec<String>) -> Option<Json> {
    let dead = world.engine.failed();
    let driving = async {
        world.try_start("r", "Two", json!({ "x": 1 })).await.ok()?;
        // Each life has workers of its own; those of the last one died with it.
        let worker = world.try_worker(&format!("w{}", finished.len()), "boot").await?;
        loop {
            let view = world.engine.get("r").await.ok()?;
            if let Some(outcome) = view.outcome {
                return outcome.value;
            }
            for task in worker.poll(0).await.ok()? {
                let (value, name) = (task.input["x"].as_i64().unwrap_or(0) + 1, task.activity.clone());
                if worker.try_done(&task, json!(value)).await == Some(Accepted) {
                    finished.push(name);
                }
            }
            world.advance(100).await;
        }
    };
    tokio::select! {
        value = driving => value,
        _ = dead => None,
    }
}

#[tokio::test]
async fn every_crash_point_ends_in_the_calm_result() {
    let calm = drive(World::new().await, None).await;
    assert_eq!(calm, (json!(3), vec!["look".to_owned(), "put".to_owned()]));
    for commits in 0..8 {
        for side in [Side::BeforeSync, Side::AfterSync] {
            let (value, finished) = drive(World::new().await, Some((commits, side))).await;
            assert_eq!(value, calm.0, "{commits} {side:?}");
            for name in ["look", "put"] {
                let count = finished.iter().filter(|done| *done == name).count();
                assert!(count <= 1, "{name} was accepted {count} times: {commits} {side:?}");
            }
        }
    }
}

/// Case STO-06.
#[tokio::test]
async fn a_failed_sync_is_fatal_and_acknowledges_nothing() {
    for outcome in [FailedSync::Lost, FailedSync::Written] {
        let world = World::new().await;
        world.store.fail_next_sync(outcome);
        assert_eq!(code(world.try_start("r", "Two", json!({ "x": 1 })).await), Code::Internal);
        assert!(world.engine.failed().await.contains("sync"));
        assert!(world.try_start("s", "Two", json!({ "x": 1 })).await.is_err());
        assert_eq!(world.engine.status()["ready"], json!(false));
        let world = world.crash().await;
        let existing = world.try_start("r", "Two", json!({ "x": 1 })).await.unwrap().1;
        assert_eq!(existing, outcome == FailedSync::Written);
    }
}

#[tokio::test]
async fn a_full_disk_refuses_and_keeps_what_is_there() {
    let world = World::new().await;
    let worker = world.worker("w").await;
    world.start("r", "Two", json!({ "x": 1 })).await;
    let task = worker.task().await;
    world.store.fill_disk();
    assert_eq!(code(world.try_start("s", "Two", json!({ "x": 1 })).await), Code::DiskFull);
    assert_eq!(worker.done(&task, json!(2)).await, Retry);
    assert_eq!(world.view("r").await.events, 1);
    world.store.empty_disk();
    world.advance(2_000).await;
    assert_eq!(worker.done(&task, json!(2)).await, Accepted);
    let task = worker.task().await;
    assert_eq!(worker.done(&task, json!(3)).await, Accepted);
    assert_eq!(world.value("r").await, json!(3));
    world.start("s", "Two", json!({ "x": 1 })).await;
}

#[tokio::test]
async fn a_store_that_is_opened_on_a_full_disk_can_be_looked_at_and_its_runs_can_be_stopped() {
    let world = World::new().await;
    let worker = world.worker("w").await;
    world.start("r", "Two", json!({ "x": 1 })).await;
    world.start("a", "Ask", json!({ "x": 1 })).await;
    let epoch = world.engine.status()["epoch"].clone();
    let (store, clock) = (world.store.crash(), world.clock.clone());
    drop((worker, world));
    store.fill_disk();
    let world = World::over(store, clock).await;
    world.settle().await;
    assert_eq!(world.view("r").await.events, 1);
    assert_eq!(world.engine.list(outlast_store::Filter::default()).await.unwrap().items.len(), 2);
    assert_eq!(world.kinds("a").await, ["started"]);
    let refused = world.engine.register(super::world::register("w2", "b", Vec::new())).await;
    assert_eq!(code(refused), Code::DiskFull, "nothing is handed out in an epoch that is not durable");
    assert_eq!(code(world.engine.answer("a", super::world::approve(), "ann").await), Code::DiskFull);
    world.engine.cancel("a", "ann").await.unwrap();
    assert_eq!(world.view("a").await.outcome.unwrap().kind, "cancelled");
    world.engine.terminate("r", "ann").await.unwrap();
    world.store.empty_disk();
    world.advance(2_000).await;
    let world = world.crash().await;
    for (run, kind) in [("a", "cancelled"), ("r", "terminated")] {
        assert_eq!(world.view(run).await.outcome.unwrap().kind, kind);
    }
    let _worker = world.worker("w3").await;
    assert!(world.engine.status()["epoch"].as_u64() > epoch.as_u64());
}

#[tokio::test]
async fn a_result_outlives_the_process() {
    let world = World::new().await;
    let worker = world.worker("w").await;
    world.start("r", "Two", json!({ "x": 1 })).await;
    let task = worker.task().await;
    worker.done(&task, json!(2)).await;
    let task = worker.task().await;
    worker.done(&task, json!(3)).await;
    let before = world.view("r").await;
    let world = world.crash().await;
    assert_eq!(world.view("r").await, before);
    assert_eq!(world.engine.list(outlast_store::Filter::default()).await.unwrap().items, [before]);
    assert_eq!(world.engine.flows().unwrap().len(), 8, "flows need no second deployment");
}

#[tokio::test]
async fn a_run_is_read_back_from_its_snapshot() {
    let world = World::over(
        MemoryStore::new(),
        std::sync::Arc::new(outlast_runtime::engine::ManualClock::new(START)),
    )
    .await;
    world.deploy(FLOWS).await;
    world.start("r", "Chat", json!({ "topic": "a" })).await;
    let long = "x".repeat(200);
    for _ in 0..200 {
        world.say("r", "Say", json!({ "text": long })).await.unwrap();
    }
    use outlast_store::Store as _;
    let run = outlast_kernel::ids::RunId::new("r").unwrap();
    let (after, _) = world.store.snapshot(&run).unwrap().expect("there is a snapshot");
    assert!(after.0 >= 64, "{after}");
    let world = world.crash().await;
    world.say("r", "closed", Json::Null).await.unwrap();
    assert_eq!(world.value("r").await.as_str().unwrap().len(), 1 + 200 * 201);
    let all = super::world::frames(&world.engine, "r", Some("r/0.0")).await;
    let emits = all.iter().filter(|frame| frame.event == outlast_protocol::run::FrameKind::Emit);
    assert_eq!(emits.count(), 200);
}

#[tokio::test]
async fn shutting_down_keeps_what_was_taken_and_writes_no_event() {
    let world = World::new().await;
    let worker = world.worker("w").await;
    world.start("r", "Two", json!({ "x": 1 })).await;
    let _task = worker.task().await;
    world.engine.shutdown().await;
    assert_eq!(code(world.try_start("s", "Two", json!({ "x": 1 })).await), Code::NotReady);
    let world = world.crash().await;
    assert_eq!(world.kinds("r").await, ["started"]);
}

/// The timer that was due before the cancel comes with it: alone it would find no room.
#[tokio::test]
async fn a_run_that_is_behind_its_timers_can_be_cancelled_on_a_full_disk() {
    let world = World::new().await;
    let state = |name: &str, within: &str, late: &str| {
        format!(
            "state {name} {{ ask \"Well?\" to \"owner\" within {within} on approve, reject -> end \"said\" on timeout -> {late} }}"
        )
    };
    let states = [state("First", "1h", "Second"), state("Second", "30d", "end \"late\"")].concat();
    world.deploy(&format!("flow Remind() -> text version 1 {{ start First {states} }}")).await;
    world.start("r", "Remind", json!({})).await;
    world.store.fill_disk();
    world.advance(2 * 3_600_000).await;
    world.engine.cancel("r", "ann").await.unwrap();
    assert_eq!(world.kinds("r").await, ["started", "timer_fired", "cancelled"]);
    let world = world.crash().await;
    assert_eq!(world.view("r").await.outcome.unwrap().kind, "cancelled");
}

#[tokio::test]
async fn work_that_a_full_disk_kept_back_goes_on_when_there_is_room() {
    let world = World::new().await;
    let worker = world.worker("w").await;
    world.start("p", "Pay", json!({ "x": 1 })).await;
    world.store.fill_disk();
    assert!(worker.tasks().await.is_empty(), "its beginning cannot be kept");
    world.advance(1_500).await;
    assert!(worker.tasks().await.is_empty());
    world.store.empty_disk();
    for _ in 0..3 {
        world.advance(1_000).await;
    }
    let task = worker.task().await;
    world.store.fill_disk();
    world.engine.worker_gone("w-boot").await;
    world.settle().await;
    world.store.empty_disk();
    for _ in 0..3 {
        world.advance(1_000).await;
    }
    assert_eq!(world.value("p").await, json!("unknown"), "{}", task.token);
}

#[tokio::test]
async fn a_run_with_a_history_that_does_not_fit_is_shown_and_harms_no_other() {
    use outlast_kernel::ids::{Millis, RunId, Seq};
    use outlast_store::Store as _;
    let world = World::new().await;
    let run = RunId::new("bad").unwrap();
    world.start("bad", "Two", json!({ "x": 1 })).await;
    world.start("good", "Two", json!({ "x": 1 })).await;
    let world = world.crash().await;
    let store = world.store.clone();
    world.engine.shutdown().await;
    let (head, index) = store.head(&run).unwrap().unwrap();
    let kind = outlast_kernel::event::EventKind::Closed;
    let event = outlast_kernel::event::Event { n: Seq(2), time: Millis(START.0 + 1), digest: 7, kind };
    let summary = store.summary(&run).unwrap().unwrap();
    let write = outlast_store::RunWrite {
        run,
        before: head,
        events: vec![event],
        index_before: index,
        index,
        summary: summary.into(),
        snapshot: None,
        origin: None,
    };
    store.commit(&outlast_store::Batch { runs: vec![write], ..Default::default() }).unwrap();
    let world = world.crash().await;
    world.settle().await;
    let view = world.view("bad").await;
    assert_eq!(view.status, "blocked");
    assert_eq!(world.waits_for("bad").await, "blocked");
    assert_eq!(code(world.engine.cancel("bad", "ann").await), Code::Internal);
    let worker = world.worker("w").await;
    assert_eq!(worker.task().await.run, "good");
    assert_eq!(world.engine.list(outlast_store::Filter::default()).await.unwrap().items.len(), 2);
}
