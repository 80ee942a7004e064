//! What workers that outlived the engine still hold.

use std::sync::Arc;

use outlast_protocol::worker::ReceiptStatus::{Accepted, Superseded};
use outlast_runtime::engine::ManualClock;
use serde_json::json;

use super::world::{START, World};

#[tokio::test]
async fn a_worker_that_comes_back_keeps_its_tasks() {
    let world = World::new().await;
    let worker = world.worker("w").await;
    world.start("r", "Two", json!({ "x": 1 })).await;
    world.start("p", "Pay", json!({ "x": 1 })).await;
    let tasks = worker.tasks().await;
    assert_eq!(tasks.len(), 2);
    let world = world.crash().await;
    world.settle().await;
    let other = world.worker("other").await;
    assert!(other.tasks().await.is_empty(), "it may be in the hand of the first worker");
    world.start("new", "Two", json!({ "x": 1 })).await;
    assert_eq!(other.task().await.run, "new", "new work does not wait");

    let holding: Vec<String> = tasks.iter().map(|task| task.token.clone()).collect();
    let (worker, registered) = world.worker_again("w", "w-boot", holding.clone()).await;
    assert_eq!((registered.keep, registered.drop), (holding, Vec::<String>::new()));
    for task in &tasks {
        let value = if task.run == "p" { json!("paid") } else { json!(2) };
        assert_eq!(worker.done(task, value).await, Accepted);
    }
    assert_eq!(world.value("p").await, json!("paid"));
    assert_eq!(world.kinds("p").await, ["started", "begun", "done"]);
    assert_eq!(world.kinds("r").await, ["started", "done", "emit"]);
}

#[tokio::test]
async fn what_a_returning_worker_does_not_list_never_arrived() {
    let world = World::new().await;
    let worker = world.worker("w").await;
    world.start("r", "Two", json!({ "x": 1 })).await;
    world.start("p", "Pay", json!({ "x": 1 })).await;
    assert_eq!(worker.tasks().await.len(), 2);
    let world = world.crash().await;
    world.settle().await;
    let (worker, _) = world.worker_again("w", "w-boot", Vec::new()).await;
    world.settle().await;
    let mut again = worker.tasks().await;
    again.sort_by(|a, b| a.run.cmp(&b.run));
    let attempts: Vec<_> = again.iter().map(|task| (task.run.as_str(), task.attempt)).collect();
    assert_eq!(attempts, [("p", 2), ("r", 1)]);
    assert_eq!(world.kinds("p").await, ["started", "begun", "void", "begun"]);
}

/// That a worker came back after the restart says nothing of what it was given since.
#[tokio::test]
async fn what_a_worker_was_given_after_it_came_back_stays_its_own_while_the_disk_is_full() {
    let world = World::new().await;
    let worker = world.worker("w").await;
    world.start("p", "Pay", json!({ "x": 1 })).await;
    worker.task().await;
    let world = world.crash().await;
    world.settle().await;
    let (worker, _) = world.worker_again("w", "w-boot", Vec::new()).await;
    world.settle().await;
    let task = worker.task().await;
    assert_eq!(task.attempt, 2, "the first one never arrived");
    world.store.fill_disk();
    // Its lease ends, which cannot be kept.
    for _ in 0..40 {
        world.advance(1_000).await;
    }
    world.store.empty_disk();
    let (worker, registered) = world.worker_again("w", "w-boot", vec![task.token.clone()]).await;
    assert_eq!(registered.keep, std::slice::from_ref(&task.token));
    for _ in 0..3 {
        world.advance(1_000).await;
    }
    assert!(worker.tasks().await.is_empty(), "{:?}", world.kinds("p").await);
    assert_eq!(worker.done(&task, json!("paid")).await, Accepted);
    assert_eq!(world.kinds("p").await, ["started", "begun", "void", "begun", "done"]);
}

#[tokio::test]
async fn who_does_not_come_back_loses_its_tasks_when_the_window_closes() {
    let world = World::new().await;
    let worker = world.worker("w").await;
    world.start("r", "Two", json!({ "x": 1 })).await;
    world.start("p", "Pay", json!({ "x": 1 })).await;
    let tasks = worker.tasks().await;
    let world = world.crash().await;
    world.settle().await;
    let other = world.worker("other").await;
    world.advance(4_900).await;
    assert!(other.tasks().await.is_empty());
    world.advance(100).await;
    let again = other.task().await;
    assert_eq!(again.run, "r");
    assert_eq!(world.kinds("p").await, ["started", "begun"], "it may be at it until its lease has ended");
    world.advance(25_000).await;
    assert_eq!(world.value("p").await, json!("unknown"));
    assert_eq!(world.kinds("p").await, ["started", "begun", "lost"]);

    // The first worker was only slow: its result of an open operation counts, that of a payment in doubt comes too late.
    let (worker, registered) =
        world.worker_again("w", "w-boot", tasks.iter().map(|task| task.token.clone()).collect()).await;
    assert!(registered.keep.is_empty());
    for task in &tasks {
        let expected = if task.run == "p" { Superseded } else { Accepted };
        let value = if task.run == "p" { json!("paid") } else { json!(2) };
        assert_eq!(worker.done(task, value).await, expected, "{}", task.run);
    }
}

#[tokio::test]
async fn who_comes_back_late_keeps_what_must_not_be_done_twice() {
    let world = World::new().await;
    let worker = world.worker("w").await;
    world.start("p", "Pay", json!({ "x": 1 })).await;
    let task = worker.task().await;
    let world = world.crash().await;
    world.settle().await;
    world.advance(20_000).await;
    let (worker, registered) = world.worker_again("w", "w-boot", vec![task.token.clone()]).await;
    assert_eq!(registered.keep, std::slice::from_ref(&task.token));
    assert_eq!(worker.done(&task, json!("paid")).await, Accepted);
    assert_eq!(world.value("p").await, json!("paid"));
    assert_eq!(world.kinds("p").await, ["started", "begun", "done"]);
}

#[tokio::test]
async fn with_all_workers_dead_work_goes_on_at_once() {
    let world = World::new().await;
    let mut dying = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let mut register = super::world::register("w", "b", Vec::new());
    register.pid = Some(dying.id());
    let session = world.engine.register(register).await.unwrap().session;
    let worker = super::world::Worker { engine: world.engine.clone(), session };
    world.start("r", "Two", json!({ "x": 1 })).await;
    let _task = worker.task().await;
    dying.kill().unwrap();
    dying.wait().unwrap();
    let world = world.crash().await;
    world.settle().await;
    let other = world.worker("other").await;
    assert_eq!(other.task().await.run, "r");
}

#[tokio::test]
async fn a_worker_that_dies_within_the_window_is_not_waited_for() {
    let world = World::new().await;
    let mut dying = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let mut register = super::world::register("w", "b", Vec::new());
    register.pid = Some(dying.id());
    let session = world.engine.register(register).await.unwrap().session;
    let worker = super::world::Worker { engine: world.engine.clone(), session };
    world.start("r", "Two", json!({ "x": 1 })).await;
    let _task = worker.task().await;
    let world = world.crash().await;
    world.settle().await;
    let other = world.worker("other").await;
    assert!(other.tasks().await.is_empty());
    dying.kill().unwrap();
    dying.wait().unwrap();
    world.advance(100).await;
    assert_eq!(other.task().await.run, "r");
}

#[tokio::test]
async fn a_worker_that_dies_with_a_task_in_hand_is_noticed_before_its_lease_ends() {
    let world = World::new().await;
    let mut dying = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let mut register = super::world::register("w", "b", Vec::new());
    register.pid = Some(dying.id());
    let session = world.engine.register(register).await.unwrap().session;
    let worker = super::world::Worker { engine: world.engine.clone(), session };
    world.start("r", "Two", json!({ "x": 1 })).await;
    let _task = worker.task().await;
    let other = world.worker("other").await;
    world.advance(1_000).await;
    assert!(other.tasks().await.is_empty());
    dying.kill().unwrap();
    dying.wait().unwrap();
    world.advance(1_000).await;
    assert_eq!(other.task().await.run, "r");
}

#[tokio::test]
async fn a_reconnect_without_a_restart_keeps_tasks_too() {
    let world = World::new().await;
    let worker = world.worker("w").await;
    world.start("a", "Two", json!({ "x": 1 })).await;
    world.start("b", "Two", json!({ "x": 1 })).await;
    let tasks = worker.tasks().await;
    let (worker, registered) = world.worker_again("w", "w-boot", vec![tasks[0].token.clone()]).await;
    assert_eq!(registered.keep, std::slice::from_ref(&tasks[0].token));
    let again = worker.task().await;
    assert_eq!((&again.run, again.attempt), (&tasks[1].run, 1), "the one that it did not list");
    assert_eq!(worker.done(&tasks[0], json!(2)).await, Accepted);
}

#[tokio::test]
async fn another_process_of_the_same_worker_means_that_the_old_one_is_gone() {
    let world = World::new().await;
    let worker = world.worker("w").await;
    world.start("r", "Two", json!({ "x": 1 })).await;
    let task = worker.task().await;
    let (worker, registered) = world.worker_again("w", "new-boot", vec![task.token.clone()]).await;
    assert_eq!(registered.drop, std::slice::from_ref(&task.token));
    assert_eq!(worker.task().await.attempt, 2);
}

#[tokio::test]
async fn a_deadline_that_fell_due_during_the_outage_waits_for_the_adoption_window() {
    let world = World::new().await;
    let worker = world.worker("w").await;
    world.start("late", "Slow", json!({ "x": 1 })).await;
    world.start("in-time", "Slow", json!({ "x": 1 })).await;
    let tasks = worker.tasks().await;
    assert_eq!(tasks.len(), 2);
    world.clock.advance(301_000);
    let world = world.crash().await;
    world.settle().await;
    assert_eq!(world.kinds("in-time").await, ["started"]);
    let tokens = tasks.iter().map(|task| task.token.clone()).collect();
    let (worker, registered) = world.worker_again("w", "w-boot", tokens).await;
    assert_eq!(registered.keep.len(), 2);
    let in_time = tasks.iter().find(|task| task.run == "in-time").unwrap();
    assert_eq!(worker.done(in_time, json!(2)).await, Accepted);
    assert_eq!(world.value("in-time").await, json!("done"));
    world.advance(5_001).await;
    assert_eq!(world.value("late").await, json!("timeout"));
}

#[tokio::test]
async fn a_worker_that_comes_back_with_an_attempt_that_was_given_up_must_drop_it() {
    let world = World::new().await;
    let worker = world.worker("w").await;
    world.start("r", "Two", json!({ "x": 1 })).await;
    let first = worker.task().await;
    world.advance(30_000).await;
    assert_eq!(world.kinds("r").await, ["started", "lost"]);
    let (worker, registered) = world.worker_again("w", "w-boot", vec![first.token.clone()]).await;
    assert_eq!((registered.keep, registered.drop), (Vec::new(), vec![first.token]));
    let second = worker.task().await;
    assert_eq!((second.attempt, second.key), (2, first.key));
}

#[tokio::test]
async fn a_clock_that_was_set_back_hides_nothing_that_is_in_hand() {
    let world = World::new().await;
    world.advance(600_000).await;
    let worker = world.worker("w").await;
    world.start("r", "Two", json!({ "x": 1 })).await;
    let task = worker.task().await;
    let store = world.store.crash();
    let behind = Arc::new(ManualClock::new(START));
    let world = World::over(store, behind).await;
    world.settle().await;
    let other = world.worker("other").await;
    assert!(other.tasks().await.is_empty(), "the first worker may have it in hand");
    let (worker, _) = world.worker_again("w", "w-boot", vec![task.token.clone()]).await;
    assert_eq!(worker.done(&task, json!(2)).await, Accepted);
}
