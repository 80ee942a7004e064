//! Steps of a saga that are cut off while nobody knows whether they happened: they are not taken for undone.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use outlast_protocol::worker::ReceiptStatus::Accepted;
use serde_json::{Value as Json, json};

use super::world::{Worker, World};

const TRIP: &str = r#"
edition 1
activity pay(x: int) -> text within 10m queue "q" effect once verify look undo put
activity look(x: int) -> Verdict<text> within 1m in all 1h queue "q" effect pure
activity put(x: int, result: text?) within 1m in all 1h queue "q" effect idempotent

saga flow Trip(x: int) -> text version 1 {
  start Pay
  state Pay { do pay(x) as t   on ok -> end t   on unknown, problem -> end "no" }
}
"#;

pub(crate) async fn trips() -> World {
    let world = World::new().await;
    world.deploy(TRIP).await;
    world
}

/// The verifier of run `r` says that it happened; so it is undone, and then the run is cancelled as it was asked to be.
pub(crate) async fn it_happened_and_is_undone(world: &World, worker: &Worker) {
    let look = worker.task().await;
    assert_eq!(look.activity, "look");
    assert_eq!(worker.done(&look, json!({ "type": "Happened", "result": "paid" })).await, Accepted);
    let undo = worker.task().await;
    assert_eq!((undo.activity.as_str(), &undo.input["result"]), ("put", &json!("paid")));
    assert_eq!(worker.done(&undo, Json::Null).await, Accepted);
    world.settle().await;
    assert_eq!(world.view("r").await.outcome.unwrap().kind, "cancelled");
}

#[tokio::test]
async fn a_payment_that_is_cut_off_while_its_verifier_looks_is_undone_if_it_happened() {
    let world = trips().await;
    let worker = world.worker("w").await;
    world.start("r", "Trip", json!({ "x": 1 })).await;
    worker.task().await;
    // The process of the worker is another one now.
    let (worker, _) = world.worker_again("w", "next-boot", Vec::new()).await;
    world.settle().await;
    assert_eq!(world.kinds("r").await, ["started", "begun", "lost"]);
    world.engine.cancel("r", "ann").await.unwrap();
    world.settle().await;
    assert_eq!(world.kinds("r").await, ["started", "begun", "lost", "cancelled"]);
    it_happened_and_is_undone(&world, &worker).await;
}

const STAY: &str = r#"
edition 1
activity put(x: int) -> int within 1m in all 2h queue "q" effect idempotent undo toll
activity toll(x: int, result: int?) within 1m in all 2h queue "q" effect idempotent

saga flow Stay(x: int) -> int version 1 {
  start Put
  state Put { do put(x) as y   on ok -> end y   on problem -> end 0 }
}
"#;

/// A worker that is given step `put` of run `r` and never heard of again.
async fn stays() -> World {
    let world = World::new().await;
    world.deploy(STAY).await;
    let worker = world.worker("w").await;
    world.start("r", "Stay", json!({ "x": 1 })).await;
    assert_eq!(worker.task().await.activity, "put");
    world
}

/// It may have happened, so it is undone, and then the run is cancelled as it was asked to be.
async fn it_is_undone(world: &World, worker: &Worker) {
    let undo = worker.task().await;
    assert_eq!((undo.activity.as_str(), &undo.input["result"]), ("toll", &Json::Null));
    assert_eq!(worker.done(&undo, Json::Null).await, Accepted);
    world.settle().await;
    assert_eq!(world.view("r").await.outcome.unwrap().kind, "cancelled");
}

#[tokio::test]
async fn a_step_whose_worker_was_lost_while_the_disk_was_full_is_undone() {
    let world = stays().await;
    world.store.fill_disk();
    world.engine.cancel("r", "ann").await.unwrap();
    // The process of the worker is another one now; that it lost its task finds no room.
    world.engine.register(super::world::register("w", "next-boot", Vec::new())).await.unwrap_err();
    world.advance(3_000).await;
    assert_eq!(world.kinds("r").await, ["started", "cancelled"]);
    world.store.empty_disk();
    world.advance(3_000).await;
    assert_eq!(world.kinds("r").await, ["started", "cancelled", "lost"]);
    let (worker, _) = world.worker_again("w", "next-boot", Vec::new()).await;
    it_is_undone(&world, &worker).await;
}

#[tokio::test]
async fn a_step_whose_worker_does_not_come_back_after_a_restart_is_undone() {
    let world = stays().await.crash().await;
    world.settle().await;
    world.engine.cancel("r", "ann").await.unwrap();
    world.advance(40_000).await;
    assert_eq!(world.kinds("r").await, ["started", "cancelled", "lost"]);
    let worker = world.worker("other").await;
    it_is_undone(&world, &worker).await;
}

#[tokio::test]
async fn a_step_that_was_never_handed_out_is_not_undone() {
    let world = World::new().await;
    world.deploy(STAY).await;
    world.start("r", "Stay", json!({ "x": 1 })).await;
    world.engine.cancel("r", "ann").await.unwrap();
    world.settle().await;
    assert_eq!(world.kinds("r").await, ["started", "cancelled", "void"]);
    assert_eq!(world.view("r").await.outcome.unwrap().kind, "cancelled");
}

#[tokio::test]
async fn a_worker_that_is_back_before_the_disk_has_room_for_its_loss_keeps_its_task() {
    let world = World::new().await;
    let worker = world.worker("w").await;
    world.start("r", "Two", json!({ "x": 1 })).await;
    let task = worker.task().await;
    world.store.fill_disk();
    world.advance(40_000).await;
    world.store.empty_disk();
    let (worker, registered) = world.worker_again("w", "w-boot", vec![task.token.clone()]).await;
    assert_eq!(registered.keep, std::slice::from_ref(&task.token));
    world.advance(2_000).await;
    assert_eq!(world.kinds("r").await, ["started"]);
    assert_eq!(worker.done(&task, json!(2)).await, Accepted);
}
