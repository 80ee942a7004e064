//! Spawned runs: they begin once, are stopped by whoever spawned them and nobody else, and their end arrives (cases CHD-04 to CHD-07,
//! FRK-06).
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use outlast_protocol::Code;
use outlast_protocol::requests::Fork;
use outlast_protocol::worker::ReceiptStatus::Accepted;
use outlast_store::{Side, Store as _};
use serde_json::{Value as Json, json};

use super::world::{World, code};

const FAMILY: &str = r#"
edition 1
activity look(x: int) -> int within 1m in all 1h queue "q" effect pure

flow Child(x: int) -> int version 1 {
  start Work
  state Work { do look(x) as y   on ok -> end y   on problem -> end 0 }
}

flow Parent(name: text) -> text version 1 {
  message Go
  start Begin
  state Begin {
    spawn Child(7) named name cancel as h
    on ok     -> Wait(h)
    on exists -> end "exists"
  }
  state Wait(h: handle<Child>) {
    await ended(h), Go within 1h
    on ended { outcome } -> Judge(outcome)
    on Go                -> end "left"
    on timeout           -> end "late"
  }
  state Judge(outcome: Ended<Child>) {
    choose outcome {
      Done { value } -> end "done {value}"
      Failed         -> end "failed"
      Cancelled      -> end "cancelled"
    }
  }
}

flow Last(name: text) -> text version 1 {
  start Begin
  state Begin { spawn Child(1) named name detach   on ok -> end "left"   on exists -> end "exists" }
}
"#;

pub(crate) async fn family() -> World {
    let world = World::new().await;
    world.deploy(FAMILY).await;
    world
}

async fn settle(world: &World) {
    for _ in 0..4 {
        world.settle().await;
    }
}

#[tokio::test]
async fn a_spawned_run_works_and_its_end_arrives() {
    let world = family().await;
    // Of several names some are in the parent's shard and some are not.
    for i in 0..6 {
        let (parent, child) = (format!("p{i}"), format!("c{i}"));
        world.start(&parent, "Parent", json!({ "name": child })).await;
        settle(&world).await;
        assert_eq!(world.waits_for(&parent).await, "child");
        let view = world.view(&parent).await;
        assert_eq!(serde_json::to_value(view.waiting_for).unwrap()["run"], json!(child));
        let view = world.view(&child).await;
        assert_eq!(view.parent, Some(json!({ "run": parent, "at": 1, "op": "1.0" })));
        assert_eq!((view.flow.as_str(), view.profile.as_str()), ("Child", "p"));
        let worker = world.worker("w").await;
        let task = worker.task().await;
        assert_eq!((task.run.as_str(), &task.input["x"]), (child.as_str(), &json!(7)));
        assert_eq!(worker.done(&task, json!(8)).await, Accepted);
        settle(&world).await;
        assert_eq!(world.value(&parent).await, json!("done 8"));
        assert_eq!(world.value(&child).await, json!(8));
        assert_eq!(world.kinds(&child).await, ["started", "done", "delivered"]);
        assert_eq!(world.kinds(&parent).await, ["started", "spawned", "child_ended"]);
    }
    assert_eq!(world.store.ready(None, 99).unwrap(), [], "nobody has news left");
}

#[tokio::test]
async fn a_detached_run_goes_on_after_the_end_of_its_parent() {
    let world = family().await;
    world.start("p", "Last", json!({ "name": "c" })).await;
    settle(&world).await;
    assert_eq!(world.value("p").await, json!("left"));
    let world = world.crash().await;
    settle(&world).await;
    let worker = world.worker("w").await;
    let task = worker.task().await;
    worker.done(&task, json!(2)).await;
    settle(&world).await;
    assert_eq!(world.value("c").await, json!(2));
    let delivered = world.engine.events("c", 2, 9).await.unwrap().items;
    assert_eq!(delivered[0]["receipt"], "refused", "the parent hears nothing any more: {delivered:?}");
    assert_eq!(world.store.ready(None, 99).unwrap(), []);
}

#[tokio::test]
async fn an_id_that_is_taken_is_left_alone() {
    let world = family().await;
    world.start("c", "Two", json!({ "x": 1 })).await;
    let before = world.kinds("c").await;
    for (parent, name) in [("p", "c"), ("q", "q"), ("r", "C")] {
        world.start(parent, "Parent", json!({ "name": name })).await;
        settle(&world).await;
        assert_eq!(world.value(parent).await, json!("exists"), "{parent} spawns {name}");
    }
    assert_eq!(world.kinds("c").await, before);
    // A run that was spawned is nobody else's, and no request finds it.
    world.start("s", "Parent", json!({ "name": "d" })).await;
    settle(&world).await;
    world.start("t", "Last", json!({ "name": "d" })).await;
    settle(&world).await;
    assert_eq!(world.value("t").await, json!("exists"));
    assert_eq!(code(world.try_start("d", "Child", json!({ "x": 7 })).await), Code::Conflict);
}

#[tokio::test]
async fn leaving_stops_the_spawned_run_and_no_stranger() {
    let world = family().await;
    let worker = world.worker("w").await;
    world.start("p", "Parent", json!({ "name": "c" })).await;
    settle(&world).await;
    let task = worker.task().await;
    world.say("p", "Go", json!({})).await.unwrap();
    settle(&world).await;
    assert_eq!(world.value("p").await, json!("left"));
    assert_eq!(world.view("c").await.outcome.unwrap().kind, "cancelled");
    assert_eq!(worker.stops().await, [task.token]);
    assert_eq!(world.store.ready(None, 99).unwrap(), []);
    // A parent that is cancelled stops it too; a terminated one does not ask anybody.
    world.start("q", "Parent", json!({ "name": "d" })).await;
    settle(&world).await;
    world.engine.cancel("q", "ann").await.unwrap();
    settle(&world).await;
    assert_eq!(world.view("d").await.outcome.unwrap().kind, "cancelled");
    settle(&world).await;
    assert_eq!(world.view("q").await.outcome.unwrap().kind, "cancelled");
    assert_eq!(world.store.ready(None, 99).unwrap(), []);
}

#[tokio::test]
async fn a_parent_hears_of_its_child_when_the_first_event_of_the_child_is_durable() {
    let world = family().await;
    world.store.hold(Side::AfterSync);
    let engine = world.engine.clone();
    let start = super::world::start("p", "Parent", json!({ "name": "c" }));
    let starting = tokio::spawn(async move { engine.start(start, "t").await });
    world.wait_until_held().await;
    // The parent's start goes on; its child's, which nobody but this thread can decide, does not.
    world.store.release();
    world.store.hold(Side::BeforeSync);
    starting.await.unwrap().unwrap();
    world.wait_until_held().await;
    world.turn().await;
    // Whatever the parent had heard would be a step of its own, behind that of the child.
    let parent = super::world::in_time("a look at the parent", world.view("p")).await;
    assert_eq!((parent.events, parent.status.as_str()), (1, "running"));
    world.store.release();
    settle(&world).await;
    assert_eq!(world.kinds("p").await, ["started", "spawned"]);
}

#[tokio::test]
async fn a_parent_that_was_carried_away_stops_no_stranger_with_the_name_of_its_child() {
    let here = family().await;
    here.start("p", "Parent", json!({ "name": "c" })).await;
    settle(&here).await;
    let records = here.engine.export("p", None).await.unwrap().items;
    let there = family().await;
    there.start("c", "Two", json!({ "x": 1 })).await;
    there.engine.import(records).await.unwrap();
    there.engine.cancel("p", "ann").await.unwrap();
    settle(&there).await;
    let stopped = there.engine.events("p", 3, 9).await.unwrap().items;
    assert_eq!(stopped.first().map(|event| &event["receipt"]), Some(&json!("refused")), "{stopped:?}");
    assert_eq!(there.kinds("c").await, ["started"]);
}

#[tokio::test]
async fn a_full_disk_delays_news_and_loses_none() {
    let world = family().await;
    world.start("p", "Parent", json!({ "name": "c" })).await;
    world.store.fill_disk();
    settle(&world).await;
    world.store.empty_disk();
    for _ in 0..3 {
        world.advance(1_500).await;
    }
    let worker = world.worker("w").await;
    let task = worker.task().await;
    worker.done(&task, json!(8)).await;
    settle(&world).await;
    assert_eq!(world.value("p").await, json!("done 8"));
}

/// Drives parent and child to their ends over a crash; returns the parent's result and how often the child's work was done.
async fn drive(crash: Option<(u64, Side)>) -> (Json, usize) {
    let mut world = family().await;
    if let Some((commits, side)) = crash {
        world.store.crash_at(commits, side);
    }
    let mut finished = 0;
    for life in 0..20 {
        match live(&world, life, &mut finished).await {
            Some(value) => {
                settle(&world).await;
                if !world.engine.status()["failed"].is_null() {
                    // It died after the parent's end: the child has yet to hear that its news arrived.
                    world = world.crash().await;
                    settle(&world).await;
                }
                let kinds = world.kinds("c").await;
                assert_eq!(
                    kinds.iter().filter(|kind| *kind == "delivered").count(),
                    1,
                    "{crash:?} {kinds:?}"
                );
                assert_eq!(world.store.ready(None, 99).unwrap(), [], "{crash:?}");
                assert!(world.store.check().unwrap().findings.is_empty(), "{crash:?}");
                return (value, finished);
            }
            None => world = world.crash().await,
        }
    }
    panic!("the runs do not end: {crash:?}");
}

async fn live(world: &World, life: usize, finished: &mut usize) -> Option<Json> {
    let dead = world.engine.failed();
    let driving = async {
        world.try_start("p", "Parent", json!({ "name": "c" })).await.ok()?;
        let worker = world.try_worker(&format!("w{life}"), "boot").await?;
        // A run that does not end in so many rounds never will.
        for _ in 0..100 {
            if let Some(outcome) = world.engine.get("p").await.ok()?.outcome {
                return outcome.value;
            }
            for task in worker.poll(0).await.ok()? {
                if worker.try_done(&task, json!(8)).await == Some(Accepted) {
                    *finished += 1;
                }
            }
            world.advance(100).await;
        }
        panic!("the run does not end; it waits for {:?}", world.view("p").await.waiting_for)
    };
    tokio::select! {
        value = driving => value,
        _ = dead => None,
    }
}

#[tokio::test]
async fn every_crash_point_ends_in_the_calm_result() {
    assert_eq!(drive(None).await, (json!("done 8"), 1));
    for commits in 0..12 {
        for side in [Side::BeforeSync, Side::AfterSync] {
            let (value, finished) = drive(Some((commits, side))).await;
            assert_eq!(value, json!("done 8"), "{commits} {side:?}");
            assert!(finished <= 1, "the work was accepted {finished} times: {commits} {side:?}");
        }
    }
}

#[tokio::test]
async fn a_fork_leaves_the_spawned_runs_of_its_parent_alone_or_shares_their_end_or_spawns_its_own() {
    let world = family().await;
    let worker = world.worker("w").await;
    world.start("p", "Parent", json!({ "name": "c" })).await;
    settle(&world).await;
    let task = worker.task().await;
    let fork =
        |id: &str, children: &str| Fork { at: Some(2), id: Some(id.into()), children: Some(children.into()) };
    assert_eq!(code(world.engine.fork("p", fork("x", "many"), "t").await), Code::Invalid);
    for children in ["unknown", "share", "again"] {
        world.engine.fork("p", fork(children, children), "t").await.unwrap();
    }
    settle(&world).await;
    assert!(world.view("c").await.outcome.is_none(), "nobody stopped it");
    // The name is taken, so the one that spawns again is told so; a derived name would be another one.
    let mut world = world.crash().await;
    settle(&world).await;
    world.engine.cancel("share", "ann").await.unwrap();
    world.engine.fork("p", fork("share2", "share"), "t").await.unwrap();
    settle(&world).await;
    assert!(world.view("c").await.outcome.is_none(), "a fork that shares it does not stop it");
    let worker = world.worker_again("w", "w-boot", vec![task.token.clone()]).await.0;
    assert_eq!(worker.done(&task, json!(8)).await, Accepted);
    settle(&world).await;
    assert_eq!(world.value("p").await, json!("done 8"));
    assert_eq!(world.value("share2").await, json!("done 8"));
    // It has ended already when the fork begins: the fork sees it at once, and no second one is spawned.
    world.engine.fork("p", fork("late", "share"), "t").await.unwrap();
    world = world.crash().await;
    settle(&world).await;
    assert_eq!(world.value("late").await, json!("done 8"));
    let worker = world.worker("w2").await;
    assert!(worker.tasks().await.is_empty());
}

/// Case CHD-04: a run that is spawned as the last act of another works to its end, whenever the process dies; and its name is taken for good.
#[tokio::test]
async fn a_run_that_was_spawned_as_the_last_act_works_to_its_end_at_every_crash_point() {
    for commits in 0..12 {
        for side in [Side::BeforeSync, Side::AfterSync] {
            let mut world = family().await;
            world.store.crash_at(commits, side);
            let mut value = None;
            for life in 0..20 {
                let lives = async {
                    world.try_start("p", "Last", json!({ "name": "c" })).await.ok()?;
                    settle(&world).await;
                    let worker = world.try_worker(&format!("w{life}"), "boot").await?;
                    for task in worker.poll(0).await.ok()? {
                        worker.try_done(&task, json!(8)).await?;
                    }
                    settle(&world).await;
                    world.engine.get("c").await.ok()?.outcome?.value
                };
                value = lives.await;
                if value.is_some() {
                    break;
                }
                world = world.crash().await;
                world.advance(6_000).await;
            }
            assert_eq!(value, Some(json!(8)), "{commits} {side:?}");
            world = world.crash().await;
            settle(&world).await;
            assert_eq!(world.value("p").await, json!("left"), "{commits} {side:?}");
            let kinds = world.kinds("c").await;
            assert_eq!(
                kinds.iter().filter(|kind| *kind == "done").count(),
                1,
                "{commits} {side:?}: {kinds:?}"
            );
            world.start("q", "Last", json!({ "name": "c" })).await;
            settle(&world).await;
            assert_eq!(world.value("q").await, json!("exists"), "{commits} {side:?}");
        }
    }
}
