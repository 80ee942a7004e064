//! What is true of a run while it is quarantined, and when it is released: of its tasks, its news, its readers and its record.
//!
//! Leaves processes that really end to `quarantined`: here the file that counts them is written by hand.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::Path;
use std::sync::Arc;

use outlast_protocol::requests::{Fork, Release};
use outlast_protocol::worker::ReceiptStatus::Accepted;
use outlast_protocol::{ApiError, Code};
use outlast_runtime::engine::{Engine, ManualClock, Options};
use outlast_runtime::limits::{DESK_BYTES, LEASE_MS};
use outlast_store::{FailedSync, MemoryStore, Store as _, Table};
use serde_json::{Value as Json, json};
use tempfile::TempDir;

use super::sagas::{it_happened_and_is_undone, trips};
use super::spawned::family;
use super::world::{World, code};

/// The file says that the process worked on these runs when it ended, and that two did before.
fn blame(desk: &Path, runs: &[&str]) {
    blame_for(desk, 2, runs);
}

/// The file says that the process worked on these runs when it ended, and how many did before.
pub(crate) fn blame_for(desk: &Path, before: u32, runs: &[&str]) {
    let places = runs.iter().map(|run| format!("{:DESK_BYTES$}", format!("{before} {run}\n")));
    std::fs::write(desk, places.collect::<String>()).unwrap();
}

async fn open(store: &MemoryStore, clock: &Arc<ManualClock>, desk: &Path) -> Result<Engine, ApiError> {
    let desk = Some(desk.to_owned());
    let options = Options { desk, clock: clock.clone(), seed: Some(1), ..Options::default() };
    Engine::open(Arc::new(store.clone()), options).await
}

/// The process ends; the next one opens what is left.
pub(crate) async fn crash(world: World, desk: &Path) -> World {
    let (store, clock) = end(world);
    let engine = open(&store, &clock, desk).await.unwrap();
    let world = World { store, clock, engine };
    world.settle().await;
    world
}

/// The process ends; returns what it leaves.
fn end(world: World) -> (MemoryStore, Arc<ManualClock>) {
    let store = world.store.crash();
    (store, world.clock)
}

/// The process ends, and is blamed on a run; the next one finds no room to write that down.
async fn quarantine_without_room(desk: &Path) -> World {
    let (store, clock) = end(blamed(desk).await);
    store.fill_disk();
    let engine = open(&store, &clock, desk).await.unwrap();
    let world = World { store, clock, engine };
    assert_eq!(quarantined(&world), json!(["r"]));
    world
}

/// A process that is about to end over its run.
async fn blamed(desk: &Path) -> World {
    let world = World::new().await;
    world.start("r", "Two", json!({ "x": 1 })).await;
    world.settle().await;
    blame(desk, &["r"]);
    world
}

/// The process ends, as it did twice before, when it works on some runs: the next one leaves them alone.
async fn quarantine(world: World, desk: &Path, runs: &[&str]) -> World {
    blame(desk, runs);
    let world = crash(world, desk).await;
    assert_eq!(quarantined(&world), json!(runs));
    world
}

fn quarantined(world: &World) -> Json {
    world.engine.status()["quarantined"].clone()
}

async fn release(world: &World, run: &str) {
    world.engine.release(run, Release::default(), "ann").await.unwrap();
    world.settle().await;
}

pub(crate) fn desk() -> (TempDir, std::path::PathBuf) {
    let place = TempDir::new().unwrap();
    let desk = place.path().join("desk");
    (place, desk)
}

#[tokio::test]
async fn a_begun_payment_that_a_worker_was_told_to_drop_is_in_doubt_and_not_begun_again() {
    let (_place, desk) = desk();
    let world = World::new().await;
    let worker = world.worker("w").await;
    world.start("r", "Pay", json!({ "x": 1 })).await;
    let task = worker.task().await;
    let world = quarantine(world, &desk, &["r"]).await;
    let (worker, registered) = world.worker_again("w", "w-boot", vec![task.token.clone()]).await;
    assert_eq!((registered.keep, registered.drop), (Vec::new(), vec![task.token]));
    release(&world, "r").await;
    assert!(worker.tasks().await.is_empty());
    assert_eq!(world.value("r").await, json!("unknown"));
    assert_eq!(world.kinds("r").await, ["started", "begun", "lost"]);
    // Nothing of it is begun any more, which shows as soon as it is read again.
    let world = crash(world, &desk).await;
    assert!(world.engine.cancel("r", "ann").await.is_err());
    world.settle().await;
    assert_eq!(world.store.list(Table::Quarantine).unwrap(), []);
}

#[tokio::test]
async fn a_payment_stays_in_doubt_over_a_crash_after_its_worker_dropped_it() {
    let (_place, desk) = desk();
    let world = World::new().await;
    let worker = world.worker("w").await;
    world.start("r", "Pay", json!({ "x": 1 })).await;
    let task = worker.task().await;
    let world = quarantine(world, &desk, &["r"]).await;
    world.worker_again("w", "w-boot", vec![task.token]).await;
    let world = crash(world, &desk).await;
    release(&world, "r").await;
    assert_eq!(world.kinds("r").await, ["started", "begun"], "its worker may come back");
    let (worker, _) = world.worker_again("w", "w-boot", Vec::new()).await;
    world.settle().await;
    assert!(worker.tasks().await.is_empty());
    assert_eq!(world.value("r").await, json!("unknown"));
}

#[tokio::test]
async fn a_payment_that_was_cut_off_before_is_in_doubt_after_the_release_too() {
    let (_place, desk) = desk();
    let world = trips().await;
    let worker = world.worker("w").await;
    world.start("r", "Trip", json!({ "x": 1 })).await;
    worker.task().await;
    world.engine.cancel("r", "ann").await.unwrap();
    world.settle().await;
    let world = quarantine(world, &desk, &["r"]).await;
    // Nobody comes back with it in time.
    world.advance(LEASE_MS + 1).await;
    release(&world, "r").await;
    assert_eq!(world.kinds("r").await, ["started", "begun", "cancelled", "lost"]);
    let (worker, _) = world.worker_again("w", "next-boot", Vec::new()).await;
    it_happened_and_is_undone(&world, &worker).await;
}

#[tokio::test]
async fn a_run_whose_first_step_ends_the_process_is_not_begun_until_it_is_released() {
    let (_place, desk) = desk();
    let world = family().await;
    let world = quarantine(world, &desk, &["c"]).await;
    world.start("p", "Parent", json!({ "name": "c" })).await;
    world.advance(1_500).await;
    assert_eq!(code(world.engine.get("c").await), Code::NotFound);
    let refused = world.try_start("c", "Two", json!({ "x": 1 })).await.unwrap_err();
    assert!(refused.message.contains("quarantined"), "{refused:?}");
    let fork = Fork { id: Some("c".into()), children: Some("share".into()), ..Fork::default() };
    assert_eq!(code(world.engine.fork("p", fork, "ann").await), Code::Internal);
    let accepted = world.engine.release("c", Release::default(), "ann").await.unwrap();
    assert_eq!((accepted.accepted, quarantined(&world)), (0, json!([])));
    for _ in 0..2 {
        world.advance(1_500).await;
    }
    assert_eq!(world.waits_for("p").await, "child");
    assert_eq!(world.view("c").await.flow, "Child");
}

#[tokio::test]
async fn a_worker_that_comes_back_after_the_release_keeps_its_payment() {
    let (_place, desk) = desk();
    let world = World::new().await;
    let worker = world.worker("w").await;
    world.start("r", "Pay", json!({ "x": 1 })).await;
    let task = worker.task().await;
    let world = quarantine(world, &desk, &["r"]).await;
    release(&world, "r").await;
    let (worker, registered) = world.worker_again("w", "w-boot", vec![task.token.clone()]).await;
    assert_eq!(registered.keep, std::slice::from_ref(&task.token));
    assert_eq!(worker.done(&task, json!("paid")).await, Accepted);
    assert_eq!(world.value("r").await, json!("paid"));
}

#[tokio::test]
async fn the_events_of_a_quarantined_run_can_be_read_and_nobody_folds_them() {
    let (_place, desk) = desk();
    let world = World::new().await;
    let worker = world.worker("w").await;
    world.start("r", "Two", json!({ "x": 1 })).await;
    let task = worker.task().await;
    worker.done(&task, json!(2)).await;
    let world = quarantine(world, &desk, &["r"]).await;
    assert_eq!(world.kinds("r").await, ["started", "done"], "what it emitted is told by folding only");
    let second = world.engine.events("r", 1, 1).await.unwrap();
    assert_eq!((&second.items[0]["n"], second.next), (&json!(2), None));
    let fork = |at| world.engine.fork("r", Fork { at, ..Fork::default() }, "ann");
    let refusals = [
        world.engine.way("r").await.unwrap_err(),
        fork(None).await.unwrap_err(),
        fork(Some(1)).await.unwrap_err(),
        world.engine.watch("r", None).await.unwrap_err(),
        world.engine.watch("r", Some("r/1.0")).await.unwrap_err(),
    ];
    for error in refusals {
        assert_eq!(error.code, Code::Internal);
        assert!(error.message.contains("quarantined"), "{error:?}");
    }
    release(&world, "r").await;
    assert_eq!(world.kinds("r").await, ["started", "done", "emit"]);
    assert_eq!(world.engine.way("r").await.unwrap().items.len(), 2);
}

#[tokio::test]
async fn a_parent_that_is_released_hears_of_the_end_of_its_child() {
    let (_place, desk) = desk();
    let world = family().await;
    world.start("p", "Parent", json!({ "name": "c" })).await;
    world.settle().await;
    world.settle().await;
    let world = quarantine(world, &desk, &["p"]).await;
    let worker = world.worker("w").await;
    let task = worker.task().await;
    assert_eq!(worker.done(&task, json!(8)).await, Accepted);
    for _ in 0..3 {
        world.advance(1_500).await;
    }
    release(&world, "p").await;
    for _ in 0..3 {
        world.advance(1_500).await;
    }
    assert_eq!(world.value("p").await, json!("done 8"));
    assert_eq!(world.store.ready(None, 99).unwrap(), [], "nobody has news left");
}

#[tokio::test]
async fn who_awaits_a_quarantined_run_hears_of_its_end_when_it_is_released() {
    let (_place, desk) = desk();
    let world = family().await;
    world.start("p", "Parent", json!({ "name": "c" })).await;
    world.settle().await;
    world.settle().await;
    let world = quarantine(world, &desk, &["c"]).await;
    let fork = Fork { at: Some(2), id: Some("f".into()), children: Some("share".into()) };
    world.engine.fork("p", fork, "ann").await.unwrap();
    world.advance(1_500).await;
    release(&world, "c").await;
    let worker = world.worker("w").await;
    let task = worker.task().await;
    assert_eq!(worker.done(&task, json!(8)).await, Accepted);
    for _ in 0..3 {
        world.advance(1_500).await;
    }
    assert_eq!(world.value("f").await, json!("done 8"));
}

#[tokio::test]
async fn a_quarantine_that_found_no_room_does_not_come_back_after_the_release() {
    let (_place, desk) = desk();
    let world = quarantine_without_room(&desk).await;
    let refused = world.engine.release("r", Release::default(), "ann").await.unwrap_err();
    assert_eq!(refused.code, Code::DiskFull);
    assert_eq!(quarantined(&world), json!(["r"]), "it was not released");
    world.store.empty_disk();
    release(&world, "r").await;
    world.worker("w").await;
    let world = crash(world, &desk).await;
    assert_eq!(quarantined(&world), json!([]));
}

#[tokio::test]
async fn a_quarantine_that_found_no_room_is_kept_by_the_next_process_too() {
    let (_place, desk) = desk();
    let world = quarantine_without_room(&desk).await;
    assert_eq!(world.view("r").await.status, "blocked");
    let world = crash(world, &desk).await;
    assert_eq!(quarantined(&world), json!(["r"]));
}

#[tokio::test]
async fn two_runs_that_are_released_at_once_are_both_released() {
    let (_place, desk) = desk();
    let world = World::new().await;
    for run in ["a", "b"] {
        world.start(run, "Two", json!({ "x": 1 })).await;
    }
    let world = quarantine(world, &desk, &["a", "b"]).await;
    let release = |run| world.engine.release(run, Release::default(), "ann");
    let (a, b) = tokio::join!(release("a"), release("b"));
    assert!(a.is_ok() && b.is_ok());
    let world = crash(world, &desk).await;
    assert_eq!(quarantined(&world), json!([]));
}

#[tokio::test]
async fn an_opening_that_fails_forgets_no_crash() {
    let (_place, desk) = desk();
    let (store, clock) = end(blamed(&desk).await);
    store.fail_next_sync(FailedSync::Lost);
    assert!(open(&store, &clock, &desk).await.is_err());
    let store = store.crash();
    let engine = open(&store, &clock, &desk).await.unwrap();
    assert_eq!(engine.status()["quarantined"], json!(["r"]));
}
