//! Outages: a runtime that goes away, comes back, forgets and refuses; what is delivered in spite of it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use outlast_protocol::error::Code;
use outlast_protocol::worker::{OutcomeKind, ReceiptStatus};
use outlast_workers::sdk::*;
use serde_json::json;
use tokio::sync::Notify;

use crate::fake::Fake;
use crate::support::{Serving, act, gated, stopped, task, through};

#[tokio::test]
async fn a_result_of_an_outage_is_delivered_to_the_next_runtime() {
    let mut fake = Fake::start();
    let (gated, begun, go) = gated();
    let _serving = Serving::start(&fake, vec![gated], |builder| builder);
    fake.world.change(|facts| facts.tasks.push_back(task("t", "gated", json!({}))));
    begun.notified().await;
    fake.go_away();
    go.notify_one();
    fake.come_back();
    assert_eq!(fake.world.ended("t").await, through());
    let facts = fake.world.facts();
    assert_eq!(facts.registers[0].holding, Vec::<String>::new());
    assert_eq!(facts.registers[1].holding, ["t"], "it says what it holds");
    assert_eq!(facts.registers[0].boot, facts.registers[1].boot);
}

#[tokio::test]
async fn an_attempt_goes_on_through_a_restart_and_is_named() {
    let mut fake = Fake::start();
    let (gated, begun, go) = gated();
    let _serving = Serving::start(&fake, vec![gated], |builder| builder);
    fake.world.change(|facts| facts.tasks.push_back(task("t", "gated", json!({}))));
    begun.notified().await;
    fake.go_away();
    fake.come_back();
    let again = |facts: &crate::fake::Facts| facts.registers.get(1).map(|register| register.holding.clone());
    assert_eq!(fake.world.until("it registers again", again).await, ["t"]);
    go.notify_one();
    assert_eq!(fake.world.ended("t").await, through());
}

/// Polls that are answered do not say what is in hand: a runtime that takes no signs of life would believe that nothing is.
#[tokio::test]
async fn a_worker_whose_signs_of_life_are_not_taken_names_what_it_has_by_registering() {
    let fake = Fake::start();
    let (gated, begun, go) = gated();
    fake.world.change(|facts| {
        facts.lease_ms = 600;
        facts.deny_progress = Some(Code::Overloaded);
        facts.tasks.push_back(task("t", "gated", json!({})));
    });
    let _serving = Serving::start(&fake, vec![gated], |builder| builder);
    begun.notified().await;
    let again = |facts: &crate::fake::Facts| facts.registers.get(1).map(|register| register.holding.clone());
    assert_eq!(fake.world.until("it registers again", again).await, ["t"]);
    fake.world.change(|facts| facts.deny_progress = None);
    go.notify_one();
    assert_eq!(fake.world.ended("t").await, through());
}

#[tokio::test]
async fn an_unknown_session_is_replaced() {
    let fake = Fake::start();
    let (gated, begun, go) = gated();
    let _serving = Serving::start(&fake, vec![gated], |builder| builder);
    fake.world.until("it registers", |facts| (!facts.polls.is_empty()).then_some(())).await;
    fake.world.change(|facts| {
        facts.first_session = 2;
        facts.tasks.push_back(task("t", "gated", json!({})));
    });
    begun.notified().await;
    go.notify_one();
    assert_eq!(fake.world.ended("t").await, through());
    assert_eq!(fake.world.facts().registers.len(), 2);
}

#[tokio::test]
async fn what_the_runtime_drops_is_stopped_and_said() {
    let mut fake = Fake::start();
    let (gated, begun, _go) = gated();
    let _serving = Serving::start(&fake, vec![gated], |builder| builder);
    fake.world.change(|facts| facts.tasks.push_back(task("t", "gated", json!({}))));
    begun.notified().await;
    fake.go_away();
    fake.world.change(|facts| facts.drop.push("t".to_owned()));
    fake.come_back();
    assert_eq!(fake.world.ended("t").await, stopped(StoppedWhy::Cancelled));
}

#[tokio::test]
async fn reports_are_repeated_until_they_are_taken_or_no_longer_count() {
    let fake = Fake::start();
    let quick = act("quick", |_| async { Ok(Done::new("through")) });
    let mut serving = Serving::start(&fake, vec![quick], |builder| builder);
    fake.world.change(|facts| {
        use ReceiptStatus::{Retry, Superseded, UnknownToken};
        facts.receipts.insert("a".to_owned(), [Retry, Retry].into());
        facts.receipts.insert("b".to_owned(), [Superseded].into());
        facts.receipts.insert("c".to_owned(), [UnknownToken].into());
        facts.tasks.extend(["a", "b", "c"].map(|token| task(token, "quick", json!({}))));
    });
    let count =
        |facts: &crate::fake::Facts, token: &str| facts.outcomes.iter().filter(|o| o.token == token).count();
    fake.world.until("a came three times", |facts| (count(facts, "a") == 3).then_some(())).await;
    serving.leave();
    serving.ended().await.unwrap();
    assert_eq!(["a", "b", "c"].map(|token| count(&fake.world.facts(), token)), [3, 1, 1]);
}

#[tokio::test]
async fn a_result_that_the_runtime_will_not_take_becomes_a_failure() {
    let fake = Fake::start();
    let quick = act("quick", |_| async { Ok(Done::new("through")) });
    let _serving = Serving::start(&fake, vec![quick], |builder| builder);
    fake.world.change(|facts| {
        facts.deny_done = Some(Code::TooLarge);
        facts.tasks.extend(["a", "b"].map(|token| task(token, "quick", json!({}))));
    });
    for token in ["a", "b"] {
        let OutcomeKind::Failed { error, .. } = fake.world.ended(token).await else { panic!("a failure") };
        assert_eq!((error.kind.as_str(), error.retryable), ("BadResult", false));
    }
}

#[tokio::test]
async fn attempts_end_before_the_lease_when_the_runtime_is_away() {
    let mut fake = Fake::start();
    fake.world.change(|facts| facts.lease_ms = 600);
    let dropped = Arc::new(Notify::new());
    struct Falls(Arc<Notify>);
    impl Drop for Falls {
        fn drop(&mut self) {
            self.0.notify_one();
        }
    }
    let falling = dropped.clone();
    let endless = act("endless", move |_| {
        let falls = Falls(falling.clone());
        async move {
            std::future::pending::<()>().await;
            drop(falls);
            Ok(Done::new("never"))
        }
    });
    let _serving = Serving::start(&fake, vec![endless], |builder| builder);
    fake.world.change(|facts| facts.tasks.push_back(task("t", "endless", json!({}))));
    fake.world.until("it runs", |facts| facts.progress.first().cloned()).await;
    let before = Instant::now();
    // Three leases long the runtime is there, and nothing is ended.
    fake.world.until("signs come", |facts| (facts.progress.len() > 18).then_some(())).await;
    assert!(before.elapsed() > Duration::from_millis(600));
    assert!(fake.world.facts().outcomes.is_empty());
    let away = Instant::now();
    fake.go_away();
    tokio::time::timeout(Duration::from_secs(5), dropped.notified()).await.expect("it is ended");
    assert!(away.elapsed() < Duration::from_millis(590), "{:?}", away.elapsed());
    fake.come_back();
    assert_eq!(fake.world.ended("t").await, stopped(StoppedWhy::Leaving));
    assert_eq!(fake.world.facts().registers.last().unwrap().holding, ["t"], "it did arrive");
}
