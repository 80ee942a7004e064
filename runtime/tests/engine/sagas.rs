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
