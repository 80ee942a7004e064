//! Forks: what is shared, what is not, and that the parent stays as it is (cases FRK-01, FRK-02, FRK-04, RPL-07).
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use outlast_kernel::ids::{RunId, Seq};
use outlast_protocol::requests::Fork;
use outlast_protocol::run::{FrameKind, RunView};
use outlast_protocol::worker::ReceiptStatus::Accepted;
use outlast_protocol::{ApiError, Code};
use outlast_store::{Side, Store as _};
use serde_json::{Value as Json, json};

use super::world::{World, approve, code, frames};

const MORE: &str = r#"
edition 1
activity look(x: int) -> int within 1m in all 1h queue "q" effect pure
activity pay(x: int) -> text within 10m queue "q" effect once

flow Then(x: int) -> text version 1 {
  start Look
  state Look { do look(x) as y   on ok -> Work(y)   on problem -> end "none" }
  state Work(y: int) { do pay(y) as t   on ok -> end t   on unknown -> end "unknown"   on problem as p -> end p.text }
}
"#;

async fn fork(world: &World, run: &str, at: Option<u64>, id: &str) -> Result<(RunView, bool), ApiError> {
    world.engine.fork(run, Fork { at, id: Some(id.into()), children: None }, "ann").await
}

async fn say(world: &World, run: &str, text: &str) {
    world.say(run, "Say", json!({ "text": text })).await.expect("it is taken");
}

/// Everything that the store holds of a run.
fn stored(world: &World, run: &str) -> String {
    let run = RunId::new(run).unwrap();
    let store = &world.store;
    let history = store.history(&run, Seq(0), 10_000).unwrap();
    format!("{history:?} {:?} {:?}", store.head(&run).unwrap(), store.summary(&run).unwrap())
}

#[tokio::test]
async fn a_fork_holds_the_history_up_to_its_point_and_leaves_its_parent_as_it_was() {
    let world = World::new().await;
    world.start("a", "Chat", json!({ "topic": "t" })).await;
    for text in ["1", "2", "3", "4"] {
        say(&world, "a", text).await;
    }
    let before = stored(&world, "a");
    let (view, existing) = fork(&world, "a", Some(3), "b").await.unwrap();
    assert!(!existing);
    assert_eq!(view.parent, Some(json!({ "run": "a", "at": 3 })));
    assert_eq!((view.flow.as_str(), view.events, view.profile.as_str()), ("Chat", 4, "p"));
    assert_eq!(stored(&world, "a"), before, "the parent's records are untouched");
    assert_eq!(world.kinds("b").await, ["started", "message", "emit", "message", "emit", "forked"]);
    let world = world.crash().await;
    say(&world, "b", "b").await;
    say(&world, "a", "5").await;
    world.say("b", "closed", Json::Null).await.unwrap();
    world.say("a", "closed", Json::Null).await.unwrap();
    assert_eq!(world.value("a").await, json!("t 1 2 3 4 5"));
    assert_eq!(world.value("b").await, json!("t 1 2 b"));
    let tree = world.engine.tree("b").await.unwrap().items;
    assert_eq!(tree.iter().map(|run| run.id.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert!(world.store.check().unwrap().findings.is_empty());
}

#[tokio::test]
async fn a_fork_of_a_fork_reads_through_to_the_first_and_survives_crashes() {
    let mut world = World::new().await;
    world.start("a", "Chat", json!({ "topic": "t" })).await;
    let long = "x".repeat(200);
    for _ in 0..150 {
        say(&world, "a", &long).await;
    }
    // Within and after what the snapshot of the parent holds.
    let run = RunId::new("a").unwrap();
    assert!(world.store.snapshot(&run).unwrap().is_some());
    for (id, parent, at) in [("b", "a", 2), ("c", "a", 140), ("d", "c", 141), ("e", "d", 3), ("f", "d", 142)]
    {
        fork(&world, parent, Some(at), id).await.unwrap();
        say(&world, id, id).await;
        world = world.crash().await;
    }
    let said = |n: usize| " ".to_owned() + &[long.as_str()].repeat(n).join(" ");
    for (id, expected) in [
        ("b", format!("t{} b", said(1))),
        ("c", format!("t{} c", said(139))),
        ("d", format!("t{} d", said(139))),
        ("e", format!("t{} e", said(2))),
        ("f", format!("t{} f", said(139))),
    ] {
        world.say(id, "closed", Json::Null).await.unwrap();
        assert_eq!(world.value(id).await, json!(expected), "{id}");
    }
    let tree = world.engine.tree("e").await.unwrap().items;
    assert_eq!(tree.iter().map(|run| run.id.as_str()).collect::<Vec<_>>(), ["a", "b", "c", "d", "e", "f"]);
    assert!(world.store.check().unwrap().findings.is_empty());
}

#[tokio::test]
async fn the_stream_of_a_fork_shows_the_whole_history_under_its_own_name() {
    let world = World::new().await;
    world.start("a", "Chat", json!({ "topic": "t" })).await;
    say(&world, "a", "1").await;
    fork(&world, "a", None, "b").await.unwrap();
    fork(&world, "b", Some(2), "c").await.unwrap();
    world.say("c", "closed", Json::Null).await.unwrap();
    let all = frames(&world.engine, "c", Some("c/0.0")).await;
    assert!(all.iter().all(|frame| frame.id.as_deref().is_some_and(|id| id.starts_with("c/"))), "{all:?}");
    assert!(all.iter().all(|frame| frame.data["run"] == "c"), "{all:?}");
    assert_eq!(all.iter().filter(|frame| frame.event == FrameKind::Emit).count(), 1);
    let rest = frames(&world.engine, "c", all[1].id.as_deref()).await;
    assert_eq!(rest, all[2..]);
}

#[tokio::test]
async fn what_the_parent_has_begun_is_in_doubt_in_the_fork_and_never_run() {
    let world = World::new().await;
    let worker = world.worker("w").await;
    world.start("a", "Pay", json!({ "x": 1 })).await;
    let refused = fork(&world, "a", None, "b").await.unwrap_err();
    assert_eq!((refused.code, refused.at.as_deref()), (Code::Invalid, Some("at")), "{refused:?}");
    let task = worker.task().await;
    let (view, _) = fork(&world, "a", Some(1), "b").await.unwrap();
    assert_eq!(view.status, "ended");
    assert_eq!(world.value("b").await, json!("unknown"));
    // Also if the run that began it is not the parent, but the one that the parent was forked from.
    fork(&world, "b", Some(1), "c").await.unwrap();
    assert_eq!(world.value("c").await, json!("unknown"));
    assert!(worker.tasks().await.is_empty());
    assert_eq!(worker.done(&task, json!("paid")).await, Accepted);
    assert_eq!(world.value("a").await, json!("paid"));
    // The result that the parent has is no reason to run it in a fork.
    fork(&world, "a", Some(1), "d").await.unwrap();
    assert_eq!(world.value("d").await, json!("unknown"));
    assert!(worker.tasks().await.is_empty());
}

#[tokio::test]
async fn what_was_not_begun_runs_in_the_fork_under_a_key_of_its_own() {
    let world = World::new().await;
    world.start("a", "Pay", json!({ "x": 1 })).await;
    fork(&world, "a", Some(1), "b").await.unwrap();
    let worker = world.worker("w").await;
    let tasks = worker.tasks().await;
    assert_eq!(tasks.len(), 2);
    assert_ne!(tasks[0].key, tasks[1].key);
    for task in &tasks {
        assert_eq!(worker.done(task, json!(task.run)).await, Accepted);
    }
    assert_eq!((world.value("a").await, world.value("b").await), (json!("a"), json!("b")));
}

#[tokio::test]
async fn without_an_event_a_fork_begins_at_the_newest_without_an_open_once_operation() {
    let world = World::new().await;
    world.deploy(MORE).await;
    let worker = world.worker("w").await;
    world.start("a", "Then", json!({ "x": 1 })).await;
    let task = worker.task().await;
    worker.done(&task, json!(2)).await;
    let task = worker.task().await;
    let (view, _) = fork(&world, "a", None, "b").await.unwrap();
    assert_eq!(view.parent, Some(json!({ "run": "a", "at": 1 })));
    assert_eq!(worker.done(&task, json!("paid")).await, Accepted);
    // A run that has ended is forked where it still went on; what would be done once more must be meant.
    let unmeant = fork(&world, "a", None, "c").await.unwrap_err();
    assert!(unmeant.message.contains("would do again what it began at event 3"), "{unmeant:?}");
    assert_eq!(unmeant.hint.as_deref(), Some("name the event, 1 if that is meant"));
    let (view, _) = fork(&world, "a", Some(1), "c").await.unwrap();
    assert_eq!(view.parent, Some(json!({ "run": "a", "at": 1 })));
    let ended = fork(&world, "a", Some(4), "d").await.unwrap_err();
    assert_eq!(ended.code, Code::Invalid);
    assert!(ended.message.contains("has ended with event 4"), "{ended:?}");
    for at in [0, 5] {
        assert_eq!(code(fork(&world, "a", Some(at), "d").await), Code::Invalid, "at {at}");
    }
    assert_eq!(code(fork(&world, "nobody", None, "d").await), Code::NotFound);
    assert_eq!(code(world.engine.tree("nobody").await), Code::NotFound);
}

#[tokio::test]
async fn questions_are_asked_anew_and_have_the_time_that_was_left() {
    let world = World::new().await;
    world.start("a", "Ask", json!({ "x": 1 })).await;
    world.advance(40 * 60_000).await;
    let (view, _) = fork(&world, "a", None, "b").await.unwrap();
    let (old, new) = (world.view("a").await.questions[0].clone(), view.questions[0].clone());
    assert_ne!(old.id, new.id);
    let stale = outlast_protocol::requests::Answer { question: Some(old.id), ..approve() };
    assert_eq!(code(world.engine.answer("b", stale, "ann").await), Code::NotFound);
    world.advance(50 * 60_000).await;
    assert_eq!(world.value("a").await, json!("expired"));
    let world = world.crash().await;
    assert_eq!(world.waits_for("b").await, "question");
    world.advance(11 * 60_000).await;
    assert_eq!(world.value("b").await, json!("expired"));
}

#[tokio::test]
async fn a_fork_id_is_used_once() {
    let world = World::new().await;
    world.start("a", "Chat", json!({ "topic": "t" })).await;
    say(&world, "a", "1").await;
    world.start("other", "Chat", json!({ "topic": "t" })).await;
    let (first, existing) = fork(&world, "a", Some(2), "Fork").await.unwrap();
    assert!(!existing);
    for at in [Some(2), None] {
        let (again, existing) = fork(&world, "a", at, "Fork").await.unwrap();
        assert!(existing);
        assert_eq!(again, first);
    }
    for (parent, at, id) in
        [("a", Some(1), "Fork"), ("other", None, "Fork"), ("a", None, "other"), ("a", None, "FORK")]
    {
        let refused = fork(&world, parent, at, id).await.unwrap_err();
        assert_eq!(refused.code, Code::Conflict, "{parent} {at:?} {id}: {refused:?}");
    }
    let refused = world.try_start("Fork", "Chat", json!({ "topic": "t" })).await.unwrap_err();
    assert_eq!(refused.code, Code::Conflict);
    assert!(refused.message.contains("came from run a"), "{refused:?}");
    assert_eq!(world.engine.tree("a").await.unwrap().items.len(), 2);
}

#[tokio::test]
async fn a_crash_at_any_commit_of_a_fork_leaves_one_fork_or_none() {
    for commits in 0..4 {
        for side in [Side::BeforeSync, Side::AfterSync] {
            let mut world = World::new().await;
            world.start("a", "Chat", json!({ "topic": "t" })).await;
            say(&world, "a", "1").await;
            world.store.crash_at(commits, side);
            let mut acknowledged = false;
            for _ in 0..5 {
                if let Ok((_, existing)) = fork(&world, "a", Some(2), "b").await {
                    assert!(existing || !acknowledged, "an acknowledged fork is gone: {commits} {side:?}");
                    acknowledged = true;
                    if world.say("b", "closed", Json::Null).await.is_ok() {
                        break;
                    }
                }
                world = world.crash().await;
                if acknowledged {
                    let parent = world.view("b").await.parent;
                    assert_eq!(parent, Some(json!({ "run": "a", "at": 2 })), "{commits} {side:?}");
                }
            }
            assert_eq!(world.value("b").await, json!("t 1"), "{commits} {side:?}");
            assert_eq!(world.kinds("a").await, ["started", "message", "emit"], "{commits} {side:?}");
            assert_eq!(world.engine.tree("a").await.unwrap().items.len(), 2, "{commits} {side:?}");
            assert!(world.store.check().unwrap().findings.is_empty(), "{commits} {side:?}");
        }
    }
}
