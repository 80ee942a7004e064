//! Attempts: how they end, how many there are, how they are stopped, what they say on the way.

use std::sync::Arc;
use std::time::{Duration, Instant};

use outlast_protocol::worker::{OutcomeKind, ReceiptStatus};
use outlast_workers::sdk::*;
use serde_json::json;
use tokio::sync::Notify;

use crate::fake::Fake;
use crate::support::{Serving, act, gated, stopped, task, through};

#[tokio::test]
async fn attempts_end_with_results_failures_and_panics() {
    let fake = Fake::start();
    let activities = vec![
        act("echo", |task| async move {
            Ok(Done { cost: Some("0.10".into()), ..Done::new(task.input().clone()) })
        }),
        act("fail", |_| async {
            let failure =
                Failure::new("RateLimited", "slow").retryable().field("kind", "no").field("limit", 3);
            Err(Failure { retry_after: Some(Duration::from_millis(1_500)), ..failure })
        }),
        act("panic", |_| async { panic!("at the disco") }),
    ];
    let _serving = Serving::start(&fake, activities, |builder| builder);
    let once = Task { effect: "once".to_owned(), ..task("o", "panic", json!({})) };
    fake.world.change(|facts| {
        facts.tasks.extend([
            task("e", "echo", json!({"a": 1})),
            task("f", "fail", json!({})),
            task("p", "panic", json!({})),
            once,
            task("u", "unheard", json!({})),
        ]);
    });
    let done = OutcomeKind::Done { value: json!({"a": 1}), cost: Some("0.10".into()), usage: None };
    assert_eq!(fake.world.ended("e").await, done);
    let OutcomeKind::Failed { error, .. } = fake.world.ended("f").await else { panic!("a failure") };
    let expected = json!({"kind": "RateLimited", "text": "slow", "retryable": true, "retry_after": "1500ms", "limit": 3});
    assert_eq!(serde_json::to_value(error).unwrap(), expected);
    for (token, kind, text) in [("p", "Panicked", "at the disco"), ("u", "UnknownActivity", "unheard")] {
        let OutcomeKind::Failed { error, .. } = fake.world.ended(token).await else { panic!("a failure") };
        assert_eq!(error.kind, kind);
        assert!(error.text.contains(text), "{}", error.text);
    }
    // Nobody knows whether it has happened.
    assert_eq!(fake.world.ended("o").await, stopped(StoppedWhy::BrokenOff));
}

#[tokio::test]
async fn no_more_than_the_concurrency_is_taken() {
    let fake = Fake::start();
    let (gated, begun, go) = gated();
    let _serving = Serving::start(&fake, vec![gated], |builder| builder.concurrency(2));
    fake.world
        .change(|facts| facts.tasks.extend(["a", "b", "c"].map(|token| task(token, "gated", json!({})))));
    begun.notified().await;
    fake.world.until("two are taken", |facts| (facts.tasks.len() == 1).then_some(())).await;
    go.notify_one();
    fake.world.until("the third is taken", |facts| facts.tasks.is_empty().then_some(())).await;
    assert!(fake.world.facts().polls.iter().all(|poll| poll.max <= 2));
}

#[tokio::test]
async fn a_cancel_acts_at_once() {
    let fake = Fake::start();
    let (gated, begun, _go) = gated();
    let _serving = Serving::start(&fake, vec![gated], |builder| builder);
    fake.world.change(|facts| facts.tasks.push_back(task("t", "gated", json!({}))));
    begun.notified().await;
    let asked = Instant::now();
    fake.world.change(|facts| facts.cancels.push("t".to_owned()));
    assert_eq!(fake.world.ended("t").await, stopped(StoppedWhy::Cancelled));
    assert!(asked.elapsed() < Duration::from_millis(500), "{:?}", asked.elapsed());
}

#[tokio::test]
async fn an_attempt_that_listens_may_tidy_up_and_even_finish() {
    let fake = Fake::start();
    let tidy = act("tidy", |task| async move {
        task.heartbeat();
        let why = task.cancelled().await;
        if task.arg("finish").is_some() {
            Ok(Done::new("through"))
        } else {
            Err(Failure::new("Over", format!("{why:?}")))
        }
    });
    let _serving = Serving::start(&fake, vec![tidy], |builder| builder);
    fake.world.change(|facts| {
        facts.tasks.extend([task("a", "tidy", json!({})), task("b", "tidy", json!({"finish": true}))]);
    });
    fake.world
        .until("both run", |facts| {
            ["a", "b"]
                .iter()
                .all(|token| facts.progress.iter().any(|sign| sign.token == *token))
                .then_some(())
        })
        .await;
    fake.world.change(|facts| facts.cancels.extend(["a".to_owned(), "b".to_owned()]));
    assert_eq!(fake.world.ended("a").await, stopped(StoppedWhy::Cancelled));
    assert_eq!(fake.world.ended("b").await, through());
}

#[tokio::test]
async fn an_attempt_is_over_only_when_its_processes_are() {
    let fake = Fake::start();
    let holds = Arc::new(std::sync::Mutex::new(Vec::new()));
    let kept = holds.clone();
    let holder = act("holder", move |task| {
        kept.lock().unwrap().push(task.hold());
        async { std::future::pending().await }
    });
    let quick = act("quick", |_| async { Ok(Done::new("through")) });
    let _serving = Serving::start(&fake, vec![holder, quick], |builder| builder);
    fake.world.change(|facts| facts.tasks.push_back(task("t", "holder", json!({}))));
    fake.world.until("it runs", |facts| facts.progress.iter().find(|sign| sign.token == "t").cloned()).await;
    fake.world.change(|facts| {
        facts.cancels.push("t".to_owned());
        facts.tasks.push_back(task("q", "quick", json!({})));
    });
    fake.world.ended("q").await;
    assert!(fake.world.facts().outcomes.iter().all(|outcome| outcome.token == "q"), "not over yet");
    holds.lock().unwrap().clear();
    assert_eq!(fake.world.ended("t").await, stopped(StoppedWhy::Cancelled));
}

#[tokio::test]
async fn the_time_of_an_attempt_is_enforced() {
    let fake = Fake::start();
    let (gated, _begun, _go) = gated();
    let _serving = Serving::start(&fake, vec![gated], |builder| builder);
    let short = Task { budget_ms: Some(50), ..task("t", "gated", json!({})) };
    fake.world.change(|facts| facts.tasks.push_back(short));
    assert_eq!(fake.world.ended("t").await, stopped(StoppedWhy::Timeout));
}

#[tokio::test]
async fn a_handle_is_durable_when_it_is_set() {
    let mut fake = Fake::start();
    let (set, was_set) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (go, say) = (set.clone(), was_set.clone());
    let job = act("job", move |task| {
        let (go, say) = (go.clone(), say.clone());
        async move {
            go.notified().await;
            task.set_handle(json!({"job": 7})).await?;
            say.notify_one();
            task.set_handle(json!({"job": 8})).await?;
            Ok(Done::new("through"))
        }
    });
    let _serving = Serving::start(&fake, vec![job], |builder| builder);
    fake.world.change(|facts| facts.tasks.push_back(task("t", "job", json!({}))));
    fake.world.until("it runs", |facts| facts.progress.first().cloned()).await;
    fake.go_away();
    set.notify_one();
    // The second handle comes after the operation was closed.
    fake.world.change(|facts| {
        facts.receipts.insert("t".to_owned(), [ReceiptStatus::Accepted, ReceiptStatus::Superseded].into());
    });
    fake.come_back();
    was_set.notified().await;
    assert_eq!(fake.world.facts().outcomes[0].kind, OutcomeKind::Handle { handle: json!({"job": 7}) });
    let OutcomeKind::Failed { error, .. } = fake.world.ended("t").await else { panic!("a failure") };
    assert_eq!(error.kind, "Superseded");
}

#[tokio::test]
async fn partial_output_comes_in_order_and_coalesced() {
    let fake = Fake::start();
    let (go, wait) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let end = go.clone();
    let writer = act("writer", move |task| {
        let end = end.clone();
        async move {
            for _ in 0..1_000 {
                task.progress("日本");
            }
            task.percent(50.0);
            end.notified().await;
            Ok(Done::new("through"))
        }
    });
    let _serving = Serving::start(&fake, vec![writer], |builder| builder);
    fake.world.change(|facts| facts.tasks.push_back(task("t", "writer", json!({}))));
    let chars = |facts: &crate::fake::Facts| -> u64 {
        facts
            .progress
            .iter()
            .filter_map(|sign| sign.text.as_ref())
            .map(|text| text.chars().count() as u64)
            .sum()
    };
    fake.world.until("all has come", |facts| (chars(facts) == 2_000).then_some(())).await;
    {
        let facts = fake.world.facts();
        let mut at = 0;
        for sign in facts.progress.iter().filter(|sign| sign.text.is_some()) {
            assert_eq!(sign.offset, Some(at));
            at += sign.text.as_ref().unwrap().chars().count() as u64;
        }
        assert!(facts.progress.len() < 10, "{} calls for 1,000 pieces", facts.progress.len());
        assert!(facts.progress.iter().any(|sign| sign.percent == Some(50.0)));
    }
    drop(wait);
    go.notify_one();
    fake.world.ended("t").await;
}
