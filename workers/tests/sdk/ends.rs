//! Workers: how they begin, and how they leave or end by themselves.

use std::time::{Duration, Instant};

use outlast_protocol::error::Code;
use outlast_protocol::worker::ReceiptStatus;
use outlast_workers::sdk::*;
use serde_json::json;

use crate::fake::Fake;
use crate::support::{Serving, act, gated, stopped, task, through};

#[tokio::test]
async fn a_leaving_worker_finishes_what_it_has_and_takes_no_more() {
    let fake = Fake::start();
    let (gated, begun, go) = gated();
    let mut serving = Serving::start(&fake, vec![gated], |builder| builder);
    fake.world.change(|facts| facts.tasks.push_back(task("t", "gated", json!({}))));
    begun.notified().await;
    serving.leave();
    fake.world.until("it says so", |facts| facts.polls.iter().any(|poll| poll.leaving).then_some(())).await;
    fake.world.change(|facts| facts.tasks.push_back(task("late", "gated", json!({}))));
    go.notify_one();
    serving.ended().await.unwrap();
    assert_eq!(fake.world.ended("t").await, through());
    assert_eq!(fake.world.facts().tasks.len(), 1);
}

#[tokio::test]
async fn a_leaving_worker_hands_over_what_takes_too_long() {
    let fake = Fake::start();
    let (gated, begun, _go) = gated();
    let mut serving =
        Serving::start(&fake, vec![gated], |builder| builder.drain_max(Duration::from_millis(50)));
    fake.world.change(|facts| facts.tasks.push_back(task("t", "gated", json!({}))));
    begun.notified().await;
    serving.leave();
    serving.ended().await.unwrap();
    assert_eq!(fake.world.ended("t").await, stopped(StoppedWhy::Leaving));
}

#[tokio::test]
async fn an_orphan_ends_itself_when_nothing_is_in_hand() {
    let mut fake = Fake::start();
    let (gated, begun, go) = gated();
    let orphan = |builder: WorkerBuilder| builder.orphan_after(Duration::from_millis(100));
    let serving = Serving::start(&fake, vec![gated], orphan);
    fake.world.change(|facts| facts.tasks.push_back(task("t", "gated", json!({}))));
    begun.notified().await;
    fake.go_away();
    let gone = Instant::now();
    go.notify_one();
    serving.ended().await.unwrap();
    // The result that nobody took made it wait ten times as long.
    assert!(gone.elapsed() >= Duration::from_millis(500), "{:?}", gone.elapsed());
    let unsupervised =
        Serving::start(&fake, vec![act("x", |_| async { Ok(Done::new(1)) })], |builder| builder);
    fake.come_back();
    fake.world.until("the other one is still there", |facts| (facts.registers.len() > 1).then_some(())).await;
    drop(unsupervised);
}

#[tokio::test]
async fn an_orphan_does_not_stay_for_what_nobody_wants() {
    let mut fake = Fake::start();
    // Neither the word that it stopped nor a result in spite of the cancel is a reason.
    let stubborn = act("stubborn", |task| async move {
        task.heartbeat();
        task.cancelled().await;
        if task.arg("finish").is_some() { Ok(Done::new("through")) } else { Err(Failure::new("Over", "")) }
    });
    let orphan = |builder: WorkerBuilder| builder.orphan_after(Duration::from_millis(500)).concurrency(2);
    let serving = Serving::start(&fake, vec![stubborn], orphan);
    fake.world.change(|facts| {
        for token in ["a", "b"] {
            facts.receipts.insert(token.to_owned(), [ReceiptStatus::Retry; 1_000].into());
        }
        facts
            .tasks
            .extend([task("a", "stubborn", json!({})), task("b", "stubborn", json!({"finish": true}))]);
    });
    fake.world
        .until("both run", |facts| {
            let runs = |token| facts.progress.iter().any(|sign| sign.token == token);
            (runs("a") && runs("b")).then_some(())
        })
        .await;
    fake.world.change(|facts| facts.cancels.extend(["a".to_owned(), "b".to_owned()]));
    fake.world.ended("a").await;
    fake.world.ended("b").await;
    fake.go_away();
    let gone = Instant::now();
    serving.ended().await.unwrap();
    assert!(gone.elapsed() < Duration::from_millis(4_000), "{:?}", gone.elapsed());
}

#[tokio::test]
async fn a_worker_that_the_runtime_will_not_have_ends_with_the_reason() {
    let fake = Fake::start();
    fake.world.change(|facts| facts.deny_register = Some(Code::Invalid));
    let serving = Serving::start(&fake, vec![act("x", |_| async { Ok(Done::new(1)) })], |builder| builder);
    let error = serving.ended().await.unwrap_err();
    assert!(matches!(error, WorkerError::Refused(_)), "{error}");
}

#[test]
fn what_cannot_work_is_said_by_the_builder() {
    let quick = || act("x", |_| async { Ok(Done::new(1)) });
    for (builder, problem) in [
        (Worker::builder("w").connect("unix:/x"), "offers nothing"),
        (Worker::builder("w").connect("localhost:1").shared_activity(quick()), "neither http"),
        (
            Worker::builder("w").connect("unix:/x").shared_activity(quick()).shared_activity(quick()),
            "offered twice",
        ),
    ] {
        let error = builder.build().unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
}

#[tokio::test]
async fn a_profile_is_fetched_from_the_runtime() {
    use outlast_protocol::profile::Model;
    use outlast_workers::fetch_profile;
    let fake = Fake::start();
    let address = fake.address();
    let nobody = outlast_workers::sdk::Credentials::default();
    let fetch = |name: &'static str| fetch_profile(&address, &nobody, name);
    let expected = Model::Scripted { script: "{}".to_owned(), script_name: "s".to_owned() };
    let found = fetch("here").await.unwrap();
    assert_eq!(found.model, expected);
    assert!(matches!(fetch("elsewhere").await, Err(WorkerError::Refused(_))));
    assert!(matches!(fetch("../x").await, Err(WorkerError::Configuration(_))));
}
