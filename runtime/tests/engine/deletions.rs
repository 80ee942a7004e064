//! Deleting runs: what may be deleted, what forks keep, and that a deletion that was interrupted comes to its end (case FRK-02).
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use outlast_kernel::ids::{RunId, Seq};
use outlast_protocol::requests::{Fork, Retention};
use outlast_protocol::worker::ReceiptStatus::Accepted;
use outlast_protocol::{ApiError, Code};
use outlast_store::{Side, Store as _};
use serde_json::{Value as Json, json};

use super::world::{World, code, in_time};

async fn chat(world: &World, id: &str, said: usize) {
    world.start(id, "Chat", json!({ "topic": "t" })).await;
    for i in 0..said {
        world.say(id, "Say", json!({ "text": format!("{i}") })).await.unwrap();
    }
}

async fn fork(world: &World, run: &str, at: u64, id: &str) -> Result<(), ApiError> {
    let request = Fork { at: Some(at), id: Some(id.into()), children: None };
    world.engine.fork(run, request, "ann").await.map(drop)
}

async fn end(world: &World, id: &str) -> Result<u64, ApiError> {
    world.engine.terminate(id, "ann").await.map(|accepted| accepted.accepted)
}

/// Waits until nothing more is taken away, and these deleted runs are left.
async fn purged(world: &World, left: &[&str]) {
    let purged = async {
        loop {
            world.settle().await;
            let deleted = world.store.deleted(None, 99).unwrap();
            let shared = |run: &RunId| world.store.usage(run).unwrap().history_bytes < 2_000;
            if deleted.iter().map(RunId::as_str).eq(left.iter().copied()) && deleted.iter().all(shared) {
                return;
            }
        }
    };
    in_time("the purge", purged).await;
    assert_eq!(world.store.check().unwrap().findings, Vec::<String>::new());
}

fn bytes(world: &World, id: &str) -> u64 {
    world.store.usage(&RunId::new(id).unwrap()).unwrap().history_bytes
}

#[tokio::test]
async fn a_run_is_deleted_when_it_has_ended_and_its_id_is_free_then() {
    let world = World::new().await;
    chat(&world, "Run", 3).await;
    let refused = world.engine.delete("Run").await.unwrap_err();
    assert_eq!(refused.code, Code::Conflict);
    assert!(refused.hint.as_deref().unwrap().contains("outlast terminate Run"), "{refused:?}");
    assert_eq!(code(world.engine.delete("nobody").await), Code::NotFound);
    end(&world, "Run").await.unwrap();
    let (first, second) = tokio::join!(world.engine.delete("Run"), world.engine.delete("Run"));
    assert_eq!((first, code(second)), (Ok(()), Code::NotFound));
    assert_eq!(code(world.engine.get("Run").await), Code::NotFound);
    assert_eq!(code(world.say("Run", "Say", json!({ "text": "x" })).await), Code::NotFound);
    assert!(world.engine.list(outlast_store::Filter::default()).await.unwrap().items.is_empty());
    purged(&world, &[]).await;
    assert_eq!(bytes(&world, "Run"), 0);
    // Also in other letters: nothing of the old one is in the way.
    let (view, existing) = world.try_start("run", "Chat", json!({ "topic": "other" })).await.unwrap();
    assert_eq!((view.events, existing), (1, false));
    let world = world.crash().await;
    assert_eq!(world.view("run").await.events, 1);
}

#[tokio::test]
async fn a_run_that_takes_the_id_of_a_deleted_one_shows_its_own_events() {
    let world = World::new().await;
    chat(&world, "r", 9).await;
    end(&world, "r").await.unwrap();
    // Page by page: where one ends is remembered for the next one.
    for after in [0, 4, 8] {
        world.engine.events("r", after, 4).await.unwrap();
    }
    world.engine.delete("r").await.unwrap();
    purged(&world, &[]).await;
    world.start("r", "Chat", json!({ "topic": "other" })).await;
    for i in 0..9 {
        world.say("r", "Say", json!({ "text": format!("other {i}") })).await.unwrap();
    }
    let page = json!(world.engine.events("r", 4, 4).await.unwrap().items).to_string();
    assert!((3..=6).all(|i| page.contains(&format!("other {i}"))), "{page}");
}

#[tokio::test]
async fn forks_go_on_when_the_runs_that_they_share_events_with_are_deleted() {
    let world = World::new().await;
    chat(&world, "a", 40).await;
    fork(&world, "a", 3, "b").await.unwrap();
    fork(&world, "b", 2, "c").await.unwrap();
    for id in ["a", "b"] {
        end(&world, id).await.unwrap();
    }
    let whole = bytes(&world, "a");
    world.engine.delete("a").await.unwrap();
    world.engine.delete("b").await.unwrap();
    purged(&world, &["a", "b"]).await;
    assert!(bytes(&world, "a") * 4 < whole, "{} of {whole}", bytes(&world, "a"));
    let taken = world.try_start("a", "Chat", json!({ "topic": "t" })).await.unwrap_err();
    assert!(taken.code == Code::Conflict && taken.message.contains("forked from it"), "{taken:?}");
    assert_eq!(code(fork(&world, "a", 1, "x").await), Code::NotFound);
    let world = world.crash().await;
    let tree = world.engine.tree("c").await.unwrap().items;
    assert_eq!(tree.iter().map(|run| run.id.as_str()).collect::<Vec<_>>(), ["c"]);
    let weighed = world.engine.usages(None).await.unwrap().items;
    let deleted: Vec<_> = weighed.iter().filter(|item| item["deleted"] == true).collect();
    assert_eq!(deleted.iter().map(|item| &item["run"]).collect::<Vec<_>>(), ["a", "b"]);
    fork(&world, "c", 2, "d").await.unwrap();
    for id in ["c", "d"] {
        world.say(id, "Say", json!({ "text": id })).await.unwrap();
        world.say(id, "closed", Json::Null).await.unwrap();
        assert_eq!(world.value(id).await, json!(format!("t 0 {id}")));
    }
    // Carried elsewhere it needs nobody.
    let records = world.engine.export("c", None).await.unwrap().items;
    let elsewhere = World::new().await;
    elsewhere.engine.import(records).await.unwrap();
    assert_eq!(elsewhere.value("c").await, json!("t 0 c"));
    for id in ["c", "d"] {
        world.engine.delete(id).await.unwrap();
    }
    purged(&world, &[]).await;
    assert_eq!((bytes(&world, "a"), bytes(&world, "b"), bytes(&world, "c")), (0, 0, 0));
    world.start("a", "Chat", json!({ "topic": "t" })).await;
}

#[tokio::test]
async fn what_a_deleted_run_had_begun_is_in_doubt_in_later_forks() {
    let world = World::new().await;
    world.start("a", "Pay", json!({ "x": 1 })).await;
    fork(&world, "a", 1, "b").await.unwrap();
    end(&world, "b").await.unwrap();
    let worker = world.worker("w").await;
    let task = worker.task().await;
    assert_eq!(worker.done(&task, json!("paid")).await, Accepted);
    world.engine.delete("a").await.unwrap();
    purged(&world, &["a"]).await;
    // When `b` was forked nobody had begun it.
    fork(&world, "b", 1, "c").await.unwrap();
    assert_eq!(world.value("c").await, json!("unknown"));
    assert!(worker.tasks().await.is_empty());
}

#[tokio::test]
async fn a_deletion_that_a_crash_interrupts_is_whole_or_not_and_comes_to_its_end() {
    for side in [Side::BeforeSync, Side::AfterSync] {
        for commits in 0..5 {
            let world = World::new().await;
            chat(&world, "r", 40).await;
            fork(&world, "r", 3, "f").await.unwrap();
            end(&world, "r").await.unwrap();
            world.store.crash_at(commits, side);
            let deleted = world.engine.delete("r").await;
            world.settle().await;
            let world = world.crash().await;
            world.settle().await;
            let what = format!("{commits} commits, {side:?}: {deleted:?}");
            let run = RunId::new("r").unwrap();
            if world.store.head(&run).unwrap().is_some() {
                assert!(deleted.is_err(), "{what}");
                assert_eq!(world.store.history(&run, Seq(0), 99).unwrap().len(), 42, "{what}");
                world.engine.delete("r").await.unwrap();
            }
            purged(&world, &["r"]).await;
            world.say("f", "closed", Json::Null).await.unwrap();
            assert_eq!(world.value("f").await, json!("t 0 1"), "{what}");
            world.engine.delete("f").await.unwrap();
            purged(&world, &[]).await;
        }
    }
}

#[tokio::test]
async fn what_a_killed_process_had_not_taken_away_the_next_one_takes() {
    let world = World::new().await;
    chat(&world, "r", 3).await;
    end(&world, "r").await.unwrap();
    // The deletion is durable, and nothing after it.
    world.store.crash_at(0, Side::AfterSync);
    assert!(world.engine.delete("r").await.is_err());
    let world = world.crash().await;
    purged(&world, &[]).await;
    assert_eq!(bytes(&world, "r"), 0);
}

#[tokio::test]
async fn ended_runs_are_kept_as_long_as_was_said() {
    const DAY: u64 = 86_400_000;
    let world = World::new().await;
    world.start("waits", "Chat", json!({ "topic": "t" })).await;
    world.start("asks", "Ask", json!({ "x": 1 })).await;
    chat(&world, "first", 1).await;
    end(&world, "first").await.unwrap();
    end(&world, "asks").await.unwrap();
    for wrong in ["10s", "soon", "-1d"] {
        let retention = Retention { keep: Some(wrong.into()), ..Retention::default() };
        let refused = world.engine.put_retention(&retention).await.unwrap_err();
        assert_eq!((refused.code, refused.at.as_deref()), (Code::Invalid, Some("keep")), "{wrong}");
    }
    let flows = [("Ask".to_owned(), None)].into();
    let retention = Retention { keep: Some("2d".into()), flows };
    world.engine.put_retention(&retention).await.unwrap();
    world.advance(DAY).await;
    chat(&world, "second", 1).await;
    end(&world, "second").await.unwrap();
    assert_eq!(world.view("first").await.status, "ended");
    let world = world.crash().await;
    assert_eq!(world.engine.retention().unwrap(), retention);
    world.advance(DAY + 700_000).await;
    in_time("the deletion", async {
        while world.engine.get("first").await.is_ok() {
            world.settle().await;
        }
    })
    .await;
    purged(&world, &[]).await;
    for (id, status) in [("waits", "waiting"), ("asks", "ended"), ("second", "ended")] {
        assert_eq!(world.view(id).await.status, status, "{id}");
    }
}
