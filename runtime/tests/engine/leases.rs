//! Slow, silent and lost workers.

use outlast_protocol::Code;
use outlast_protocol::worker::ReceiptStatus::{Accepted, Superseded};
use outlast_protocol::worker::{OutcomeKind, Poll, StoppedWhy};
use serde_json::json;

use super::world::{World, code};

#[tokio::test]
async fn a_silent_worker_loses_its_tasks_after_a_whole_lease() {
    let world = World::new().await;
    let lost = world.worker("lost").await;
    world.start("r", "Two", json!({ "x": 1 })).await;
    let first = lost.task().await;
    world.advance(29_000).await;
    let worker = world.worker("w").await;
    assert!(worker.tasks().await.is_empty());
    world.advance(1_000).await;
    let second = worker.task().await;
    assert_eq!((second.attempt, &second.key), (2, &first.key));
    assert_eq!(world.kinds("r").await, ["started", "lost"]);
    assert_eq!(code(lost.poll(0).await), Code::NotFound, "its session is gone");

    // What it did nevertheless counts, because the operation is open.
    let (lost, registered) = world.worker_again("lost", "lost-boot", vec![first.token.clone()]).await;
    assert_eq!(registered.drop, std::slice::from_ref(&first.token));
    assert_eq!(lost.done(&first, json!(2)).await, Accepted);
    assert_eq!(worker.stops().await, std::slice::from_ref(&second.token), "the other one must stop");
    assert_eq!(worker.done(&second, json!(2)).await, Superseded);
}

#[tokio::test]
async fn any_call_renews_the_lease() {
    let world = World::new().await;
    let worker = world.worker("w").await;
    world.start("r", "Pay", json!({ "x": 1 })).await;
    let task = worker.task().await;
    for _ in 0..5 {
        world.advance(20_000).await;
        worker.stops().await;
    }
    assert_eq!(worker.done(&task, json!("paid")).await, Accepted);
}

#[tokio::test]
async fn a_task_that_its_worker_does_not_name_for_a_lease_is_lost() {
    let world = World::new().await;
    let worker = world.worker("w").await;
    world.start("a", "Two", json!({ "x": 1 })).await;
    world.start("b", "Two", json!({ "x": 1 })).await;
    let tasks = worker.tasks().await;
    assert_eq!(tasks.len(), 2);
    // The answer with the second one never arrived.
    for _ in 0..2 {
        world.advance(15_000).await;
        worker.progress(&[(&tasks[0], None)]).await;
    }
    world.advance(1).await;
    let again = worker.task().await;
    assert_eq!((&again.run, again.attempt), (&tasks[1].run, 2));
}

#[tokio::test]
async fn a_worker_whose_process_ended_loses_its_tasks_at_once() {
    let world = World::new().await;
    let gone = world.worker("gone").await;
    world.start("r", "Two", json!({ "x": 1 })).await;
    world.start("p", "Pay", json!({ "x": 1 })).await;
    assert_eq!(gone.tasks().await.len(), 2);
    world.engine.worker_gone("gone-boot").await;
    let worker = world.worker("w").await;
    let again = worker.task().await;
    assert_eq!((again.run.as_str(), again.attempt), ("r", 2));
    assert_eq!(world.value("p").await, json!("unknown"), "a payment is not made again blindly");
}

#[tokio::test]
async fn an_attempt_over_its_time_is_stopped_and_retried_when_its_worker_says_so() {
    let world = World::new().await;
    let worker = world.worker("w").await;
    world.start("r", "Slow", json!({ "x": 1 })).await;
    let task = worker.task().await;
    assert_eq!(task.budget_ms, Some(10_000));
    for _ in 0..3 {
        world.advance(3_000).await;
        worker.progress(&[(&task, None)]).await;
    }
    assert!(worker.stops().await.is_empty());
    world.advance(1_000).await;
    assert_eq!(worker.stops().await, std::slice::from_ref(&task.token));
    assert!(worker.tasks().await.is_empty(), "never beside the old attempt");
    let stopped = OutcomeKind::Stopped { why: StoppedWhy::Timeout };
    assert_eq!(worker.report(&task, stopped).await, Accepted);
    world.advance(2_000).await;
    assert_eq!(worker.task().await.attempt, 2);
}

#[tokio::test]
async fn an_attempt_that_was_stopped_for_its_time_is_a_timeout_whatever_its_worker_calls_it() {
    for (flow, end, kind) in [("Brief", "timeout", "failed"), ("Toll", "unknown", "lost")] {
        for why in [StoppedWhy::Cancelled, StoppedWhy::Leaving] {
            let world = World::new().await;
            let worker = world.worker("w").await;
            world.start("r", flow, json!({ "x": 1 })).await;
            let task = worker.task().await;
            for _ in 0..2 {
                world.advance(5_000).await;
                worker.progress(&[(&task, None)]).await;
            }
            assert_eq!(worker.stops().await, std::slice::from_ref(&task.token));
            assert_eq!(worker.report(&task, OutcomeKind::Stopped { why }).await, Accepted);
            world.settle().await;
            assert!(worker.tasks().await.is_empty(), "it is not repeated");
            let kinds = world.kinds("r").await;
            assert_eq!(kinds.iter().filter(|it| *it == kind).count(), 1, "exactly one attempt: {kinds:?}");
            assert_eq!(world.value("r").await, json!(end), "{flow} {why:?}");
        }
    }
}

#[tokio::test]
async fn silence_counts_as_a_timeout() {
    let world = World::new().await;
    let worker = world.worker("w").await;
    world.start("r", "Slow", json!({ "x": 1 })).await;
    let task = worker.task().await;
    assert!(task.heartbeat_ms <= 2_000, "{}", task.heartbeat_ms);
    world.advance(4_000).await;
    assert_eq!(worker.stops().await, std::slice::from_ref(&task.token));
    // It never says that it stopped: the attempt counts as lost a lease later.
    for _ in 0..3 {
        world.advance(10_000).await;
        worker.stops().await;
    }
    world.advance(2_000).await;
    assert_eq!(worker.task().await.attempt, 2);
}

/// A poll is dropped at a moment at which it has reserved a task and waits for the disk: what it waits for is held there.
#[tokio::test]
async fn a_poll_that_is_dropped_leaves_no_task_behind() {
    for (flow, input, kinds) in [
        ("Many", json!({ "xs": [1, 2] }), vec!["started", "done"]),
        ("Pay", json!({ "x": 1 }), vec!["started", "begun", "void"]),
    ] {
        let world = World::new().await;
        let worker = world.worker("w").await;
        let poll = || {
            let (engine, session) = (world.engine.clone(), worker.session.clone());
            async move { engine.poll(Poll { session, max: 1, wait_ms: 60_000, leaving: false }).await }
        };
        world.start(flow, flow, input).await;
        // What may be repeated needs no event of its own; it goes out behind those that come before it in its run.
        let first = if flow == "Many" { poll().await.unwrap().tasks.pop() } else { None };
        world.store.hold(outlast_store::Side::BeforeSync);
        let reporting = first.map(|task| {
            let worker =
                super::world::Worker { engine: world.engine.clone(), session: worker.session.clone() };
            tokio::spawn(async move { worker.done(&task, json!(1)).await })
        });
        if reporting.is_some() {
            world.wait_until_held().await;
        }
        let polling = tokio::spawn(poll());
        world.wait_until_held().await;
        world.turn().await;
        assert!(!polling.is_finished(), "{flow}: it waits for the disk");
        polling.abort();
        let _ = polling.await;
        world.store.release();
        if let Some(reporting) = reporting {
            assert_eq!(reporting.await.unwrap(), Accepted);
        }
        world.settle().await;
        assert_eq!(world.kinds(flow).await, kinds);
        let again = worker.tasks().await;
        assert_eq!(again.len(), 1, "{flow}: {again:?}");
        assert_eq!(
            worker.done(&again[0], json!(if flow == "Many" { json!(2) } else { json!("x") })).await,
            Accepted
        );
        world.value(flow).await;
    }
}

#[tokio::test]
async fn a_cancel_drops_what_is_queued_and_stops_what_is_in_hand() {
    let world = World::new().await;
    let mut one = super::world::register("w", "b", Vec::new());
    one.concurrency = 1;
    let session = world.engine.register(one).await.unwrap().session;
    let worker = super::world::Worker { engine: world.engine.clone(), session };
    world.start("r", "Many", json!({ "xs": [1, 2] })).await;
    let task = worker.task().await;
    let engine = world.engine.clone();
    let control = {
        let session = worker.session.clone();
        tokio::spawn(async move { engine.control(&session, 60_000).await })
    };
    world.settle().await;
    world.engine.cancel("r", "ann").await.unwrap();
    assert_eq!(control.await.unwrap().unwrap().cancel, std::slice::from_ref(&task.token));
    assert_eq!(world.view("r").await.outcome.unwrap().kind, "cancelled");
    let stopped = OutcomeKind::Stopped { why: StoppedWhy::Cancelled };
    assert_eq!(worker.report(&task, stopped).await, Accepted);
    assert!(worker.tasks().await.is_empty(), "nothing of it is left in the queue");
    assert_eq!(world.engine.status()["waiting"], json!(0));
    assert_eq!(world.engine.status()["in_hand"], json!(0));
}

#[tokio::test]
async fn a_worker_that_leaves_gets_nothing_more_and_is_forgotten() {
    let world = World::new().await;
    let worker = world.worker("w").await;
    let leave = || Poll { session: worker.session.clone(), max: 1, wait_ms: 0, leaving: true };
    world.start("r", "Two", json!({ "x": 1 })).await;
    let task = worker.task().await;
    assert!(world.engine.poll(leave()).await.unwrap().tasks.is_empty());
    assert_eq!(worker.done(&task, json!(2)).await, Accepted);
    assert!(world.engine.poll(leave()).await.unwrap().tasks.is_empty());
    assert_eq!(code(worker.poll(0).await), Code::NotFound);
    assert_eq!(world.waits_for("r").await, "worker");
}

#[tokio::test]
async fn a_poll_that_waits_ends_when_its_worker_leaves() {
    for busy in [false, true] {
        let world = World::new().await;
        let worker = world.worker("w").await;
        if busy {
            world.start("r", "Two", json!({ "x": 1 })).await;
            worker.task().await;
        }
        let poll = |wait_ms, leaving| Poll { session: worker.session.clone(), max: 1, wait_ms, leaving };
        let polling = {
            let (engine, poll) = (world.engine.clone(), poll(60_000, false));
            tokio::spawn(async move { engine.poll(poll).await })
        };
        world.settle().await;
        assert!(world.engine.poll(poll(0, true)).await.unwrap().tasks.is_empty());
        assert!(polling.await.unwrap().unwrap().tasks.is_empty());
    }
}

#[tokio::test]
async fn after_a_suspend_workers_get_the_time_of_a_sign_of_life() {
    let world = World::new().await;
    let worker = world.worker("w").await;
    world.start("r", "Two", json!({ "x": 1 })).await;
    let task = worker.task().await;
    world.settle().await;
    world.advance(8 * 3_600_000).await;
    assert!(worker.poll(0).await.is_ok(), "its lease ended while everybody slept");
    // The time of the operation itself went on.
    assert_ne!(worker.done(&task, json!(2)).await, Accepted);
}

#[tokio::test]
async fn a_worker_that_comes_back_unchanged_needs_no_room_on_the_disk() {
    let world = World::new().await;
    let worker = world.worker("w").await;
    world.start("r", "Two", json!({ "x": 1 })).await;
    let task = worker.task().await;
    world.store.fill_disk();
    let (_, registered) = world.worker_again("w", "w-boot", vec![task.token.clone()]).await;
    assert_eq!(registered.keep, [task.token]);
}
