//! From start to end, with workers.

use outlast_protocol::Code;
use outlast_protocol::requests::Fork;
use outlast_protocol::worker::ReceiptStatus::{Accepted, Superseded, UnknownToken};
use serde_json::json;

use super::world::{World, code, done, start};

#[tokio::test]
async fn a_run_goes_from_start_to_end() {
    let world = World::new().await;
    let worker = world.worker("w").await;
    let view = world.start("r", "Two", json!({ "x": 1 })).await;
    assert_eq!((view.state.as_str(), view.flow.as_str(), view.events), ("Look", "Two", 1));
    let task = worker.task().await;
    assert_eq!((task.activity.as_str(), task.input.clone(), task.attempt), ("look", json!({ "x": 1 }), 1));
    assert_eq!((task.effect.as_str(), task.key.as_str()), ("pure", "r/1.0"));
    assert_eq!(worker.done(&task, json!(2)).await, Accepted);
    let task = worker.task().await;
    assert_eq!((task.activity.as_str(), task.input.clone()), ("put", json!({ "x": 2 })));
    assert_eq!(worker.done(&task, json!(3)).await, Accepted);
    assert_eq!(world.value("r").await, json!(3));
    assert_eq!(world.kinds("r").await, ["started", "done", "emit", "done"]);
    assert_eq!(world.view("r").await.status, "ended");
}

#[tokio::test]
async fn a_poll_that_waits_is_woken_by_new_work() {
    let world = World::new().await;
    let worker = world.worker("w").await;
    let waiting = tokio::spawn(async move { worker.task().await });
    world.settle().await;
    world.start("r", "Two", json!({ "x": 1 })).await;
    assert_eq!(waiting.await.unwrap().run, "r");
}

#[tokio::test]
async fn a_report_counts_once_and_only_with_its_token() {
    let world = World::new().await;
    let worker = world.worker("w").await;
    world.start("r", "Two", json!({ "x": 1 })).await;
    let task = worker.task().await;
    assert_eq!(worker.report_token("nonsense", done(json!(1))).await, UnknownToken);
    // All but its end says what the true one says; the end proves it.
    let mut forged = task.token.clone();
    let at = forged.len() - 8;
    forged.replace_range(at..=at, if forged[at..].starts_with('A') { "B" } else { "A" });
    assert_eq!(worker.report_token(&forged, done(json!(1))).await, UnknownToken);
    assert_eq!(worker.done(&task, json!(2)).await, Accepted);
    assert_eq!(worker.done(&task, json!(2)).await, Accepted, "the same report again");
    assert_eq!(worker.done(&task, json!(9)).await, Superseded, "another value");
    assert_eq!(world.kinds("r").await, ["started", "done", "emit"]);

    // The memory of a process is not needed for it.
    let world = world.crash().await;
    let worker = world.worker("w").await;
    assert_eq!(worker.done(&task, json!(2)).await, Accepted);
    assert_eq!(worker.done(&task, json!(9)).await, Superseded);
}

#[tokio::test]
async fn a_retry_waits_for_its_moment() {
    let world = World::new().await;
    let worker = world.worker("w").await;
    world.start("r", "Two", json!({ "x": 1 })).await;
    let first = worker.task().await;
    assert_eq!(worker.fails(&first, "Busy").await, Accepted);
    assert!(worker.tasks().await.is_empty());
    assert_eq!(world.waits_for("r").await, "retry");
    world.advance(2_000).await;
    let second = worker.task().await;
    assert_eq!((second.attempt, second.key == first.key), (2, true));
    assert_eq!(worker.fails(&first, "Busy").await, Accepted, "the same report of the first attempt");
    assert_eq!(worker.done(&second, json!(2)).await, Accepted);
    assert_eq!(worker.task().await.activity, "put");
}

#[tokio::test]
async fn a_retry_that_fell_due_during_an_outage_goes_on() {
    let world = World::new().await;
    let worker = world.worker("w").await;
    world.start("r", "Two", json!({ "x": 1 })).await;
    worker.fails(&worker.task().await, "Busy").await;
    world.clock.advance(60_000);
    let world = world.crash().await;
    world.advance(10_000).await;
    let worker = world.worker("w").await;
    assert_eq!(worker.task().await.attempt, 2);
}

#[tokio::test]
async fn a_start_is_idempotent_by_its_id() {
    let world = World::new().await;
    let mut starts = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let engine = world.engine.clone();
        starts.spawn(async move { engine.start(start("r", "Two", json!({ "x": 1 })), "test").await });
    }
    let all = starts.join_all().await;
    let new = all.into_iter().map(|one| one.unwrap().1).filter(|existing| !existing).count();
    assert_eq!(new, 1);
    assert_eq!(world.kinds("r").await, ["started"]);

    assert!(world.try_start("r", "Two", json!({ "x": 1 })).await.unwrap().1);
    assert_eq!(code(world.try_start("r", "Two", json!({ "x": 2 })).await), Code::Conflict);
    assert_eq!(code(world.try_start("r", "Pay", json!({ "x": 1 })).await), Code::Conflict);
    assert_eq!(code(world.try_start("R", "Two", json!({ "x": 1 })).await), Code::Conflict, "case");
    assert_eq!(code(world.try_start("s", "Two", json!({ "y": 1 })).await), Code::Invalid);
    assert_eq!(code(world.try_start("s", "Nope", json!({})).await), Code::NotFound);
    assert_eq!(code(world.try_start("a b", "Two", json!({})).await), Code::Invalid);

    world.start("Big", "Two", json!({ "x": 1 })).await;
    let world = world.crash().await;
    assert!(world.try_start("r", "Two", json!({ "x": 1 })).await.unwrap().1);
    assert_eq!(code(world.try_start("big", "Two", json!({ "x": 1 })).await), Code::Conflict);
    assert!(world.try_start("Big", "Two", json!({ "x": 1 })).await.unwrap().1);
}

#[tokio::test]
async fn what_a_run_waits_for_is_true() {
    let world = World::new().await;
    world.start("r", "Two", json!({ "x": 1 })).await;
    assert_eq!(world.waits_for("r").await, "worker", "nobody polls the queue");
    let wanted = world.engine.profiles_wanted();
    assert!(wanted.borrow().contains(&("p".into(), "q".into())));

    let mut other = super::world::register("other", "b1", Vec::new());
    other.profile = Some("elsewhere".into());
    world.engine.register(other).await.unwrap();
    assert_eq!(world.waits_for("r").await, "environment");

    let mut poor = super::world::register("poor", "b2", Vec::new());
    poor.activities.clear();
    world.engine.register(poor).await.unwrap();
    assert_eq!(world.waits_for("r").await, "activity");
    assert!(wanted.borrow().is_empty());

    let worker = world.worker("w").await;
    assert_eq!(world.waits_for("r").await, "running", "a free worker will take it");
    let task = worker.task().await;
    assert_eq!(world.waits_for("r").await, "running");
    for i in 0..4 {
        world.start(&format!("r{i}"), "Two", json!({ "x": 1 })).await;
    }
    assert_eq!(worker.tasks().await.len(), 3, "no more than its concurrency");
    assert_eq!(world.waits_for("r3").await, "worker", "the only worker is busy");
    worker.done(&task, json!(1)).await;
    let running =
        outlast_store::Filter { statuses: vec![outlast_store::Status::Running], ..Default::default() };
    assert_eq!(world.engine.list(running).await.unwrap().items.len(), 5);
}

#[tokio::test]
async fn large_runs_leave_room_for_small_ones() {
    let world = World::new().await;
    let worker = world.worker("w").await;
    world.start("large", "Many", json!({ "xs": [1, 2, 3, 4, 5, 6, 7, 8] })).await;
    world.start("small", "Two", json!({ "x": 1 })).await;
    let tasks = worker.tasks().await;
    assert!(tasks.iter().any(|task| task.run == "small"), "{tasks:?}");
}

#[tokio::test]
async fn a_start_may_carry_messages_and_is_one_step() {
    let world = World::new().await;
    let mut request = start("r", "Chat", json!({ "topic": "hi" }));
    let say = |name: &str, value| outlast_protocol::requests::Send { name: name.into(), value, id: None };
    request.messages = vec![say("Say", json!({ "text": "there" })), say("closed", json!(null))];
    let (view, _) = world.engine.start(request, "ann").await.unwrap();
    assert_eq!((view.status.as_str(), view.events), ("ended", 3));
    assert_eq!(world.value("r").await, json!("hi there"));

    let mut bad = start("s", "Chat", json!({ "topic": "hi" }));
    bad.messages = vec![say("Say", json!({ "text": 1 }))];
    assert_eq!(code(world.engine.start(bad, "ann").await), Code::Invalid);
    assert_eq!(code(world.engine.get("s").await), Code::NotFound, "nothing of it was kept");
}

const HANDLED: &str = r#"
edition 1
activity look(x: int) -> int within 1m in all 1h queue "q" effect pure
activity put(x: int) -> int within 1m in all 1h queue "q" effect idempotent
activity pay(x: int) -> text within 10m queue "q" effect once

flow Handled(x: int) -> text version 1 {
  start Fail
  state Fail { do look(x) as y   on ok -> end "{y}"   on problem -> Handle }
  state Handle { do put(x) as z   on ok -> Last(z)   on problem -> end "not handled" }
  state Last(z: int) { do pay(z) as t   on ok -> end t   on unknown, problem -> end "unknown" }
}
"#;

/// Case RPL-04.
#[tokio::test]
async fn a_handler_that_was_done_is_not_done_again_after_a_crash() {
    let world = World::new().await;
    world.deploy(HANDLED).await;
    let worker = world.worker("w").await;
    world.start("r", "Handled", json!({ "x": 1 })).await;
    let failing = worker.task().await;
    assert_eq!(worker.fails(&failing, "Odd").await, Accepted);
    let handler = worker.task().await;
    assert_eq!((handler.activity.as_str(), worker.done(&handler, json!(5)).await), ("put", Accepted));
    let world = world.crash().await;
    world.settle().await;
    let worker = world.worker("w").await;
    let last = worker.task().await;
    assert_eq!((last.activity.as_str(), &last.input["x"]), ("pay", &json!(5)));
    worker.done(&last, json!("paid")).await;
    assert_eq!(world.value("r").await, json!("paid"));
    assert_eq!(world.kinds("r").await, ["started", "failed", "done", "begun", "done"]);
    assert!(worker.tasks().await.is_empty());
}

const NOTED: &str = r#"
flow Noted() -> text version 1 {
  message Note { text: text }
  start Ask
  state Ask { ask "Well?" to "owner" within 1h   on approve -> end "yes"   on reject, timeout -> end "no" }
}
"#;

/// Lists come from what is stored with each step, a look from the state.
#[tokio::test]
async fn a_list_shows_what_a_look_at_each_run_shows() {
    let world = World::new().await;
    world.deploy(NOTED).await;
    world.start("asks", "Noted", json!({})).await;
    world.say("asks", "Note", json!({ "text": "psst" })).await.unwrap();
    world.start("ended", "Ask", json!({ "x": 7 })).await;
    world.engine.answer("ended", super::world::approve(), "ann").await.unwrap();
    world.start("talks", "Chat", json!({ "topic": "hi" })).await;
    let fork = Fork { at: None, id: Some("forked".into()), children: None };
    world.engine.fork("asks", fork, "ann").await.unwrap();
    let worker = world.worker("w").await;
    world.start("failed", "Two", json!({ "x": 1 })).await;
    worker.fails(&worker.task().await, "failed").await;
    world.settle().await;
    let listed = world.engine.list(outlast_store::Filter::default()).await.unwrap().items;
    assert_eq!(listed.len(), 5);
    assert!(listed.iter().any(|view| !view.unread.is_empty() && view.parent.is_some()));
    for view in listed {
        assert_eq!(view, world.engine.get(&view.id).await.unwrap());
    }
}
