//! Messages, questions, cancels, and what time does to them.

use std::time::Duration;

use outlast_protocol::Code;
use outlast_protocol::requests::{Answer, Send, Withdraw};
use serde_json::json;

use super::world::{World, approve, code};

#[tokio::test]
async fn a_question_is_answered_once() {
    let world = World::new().await;
    world.start("r", "Ask", json!({ "x": 7 })).await;
    let view = world.engine.result("r", Duration::from_secs(60)).await.unwrap();
    assert_eq!((view.status.as_str(), view.questions.len()), ("waiting", 1));
    assert_eq!(view.questions[0].text, "Pay 7?");
    assert_eq!(view.questions[0].to, ["owner"]);
    let question = Some(view.questions[0].id.clone());
    let answer = Answer { question: question.clone(), ..approve() };
    assert_eq!(world.engine.answer("r", answer.clone(), "ann").await.unwrap().accepted, 2);
    assert_eq!(world.value("r").await, json!("yes"));
    let late = code(world.engine.answer("r", answer, "bob").await);
    assert!(matches!(late, Code::AlreadyDecided | Code::RunEnded), "{late:?}");
}

/// Case RPL-05: what was due is due at its moment, whatever happened to the process meanwhile.
#[tokio::test]
async fn an_expired_question_is_expired_before_a_late_answer_is_looked_at() {
    let world = World::new().await;
    world.start("r", "Ask", json!({ "x": 7 })).await;
    // The answer comes before the timer is noticed.
    world.settle().await;
    world.clock.slip(3_600_001);
    let late = code(world.engine.answer("r", approve(), "ann").await);
    assert!(matches!(late, Code::NotFound | Code::RunEnded), "{late:?}");
    assert_eq!(world.value("r").await, json!("expired"));

    // The same after an outage.
    world.start("s", "Ask", json!({ "x": 7 })).await;
    world.start("t", "Ask", json!({ "x": 7 })).await;
    world.clock.advance(3_600_001);
    let world = world.crash().await;
    assert!(world.engine.answer("s", approve(), "ann").await.is_err());
    assert_eq!(world.value("s").await, json!("expired"));
    world.settle().await;
    assert_eq!(world.value("t").await, json!("expired"), "nobody has to touch it");
}

#[tokio::test]
async fn what_came_in_time_beats_its_deadline() {
    let world = World::new().await;
    world.start("r", "Ask", json!({ "x": 7 })).await;
    let engine = world.engine.clone();
    let answering = tokio::spawn(async move { engine.answer("r", approve(), "ann").await });
    // Taken at its very moment: the input goes first.
    world.settle().await;
    answering.await.unwrap().unwrap();
    assert_eq!(world.value("r").await, json!("yes"));

    world.start("s", "Ask", json!({ "x": 7 })).await;
    world.clock.advance(3_599_999);
    world.engine.answer("s", approve(), "ann").await.unwrap();
    assert_eq!(world.value("s").await, json!("yes"), "at the last moment");
}

/// Case APR-14: around the very moment of expiry one of the two counts; who answered is told which, and replay agrees.
#[tokio::test]
async fn an_answer_around_the_moment_of_expiry_counts_or_is_refused() {
    let mut world = World::new().await;
    for around in 0..=10 {
        // Whether the engine notices the time before the answer or with it.
        for noticed in [false, true] {
            let run = format!("r{around}-{noticed}");
            world.start(&run, "Ask", json!({ "x": 7 })).await;
            world.settle().await;
            let wait = 3_600_000 - 5 + around;
            if noticed {
                world.advance(wait).await;
            } else {
                world.clock.slip(wait);
            }
            let answered = world.engine.answer(&run, approve(), "ann").await;
            let told = if answered.is_ok() { "yes" } else { "expired" };
            assert_eq!(world.value(&run).await, json!(told), "{around} {noticed}: {answered:?}");
            world = world.crash().await;
            assert_eq!(world.value(&run).await, json!(told), "{around} {noticed}, after a crash");
            let kinds = world.kinds(&run).await;
            assert_eq!(kinds.len(), 2, "one of the two was recorded: {kinds:?}");
        }
    }
}

#[tokio::test]
async fn timers_fire_by_themselves_however_far_they_are() {
    let world = World::new().await;
    world.start("r", "Chat", json!({ "topic": "a" })).await;
    assert_eq!(world.waits_for("r").await, "message");
    world.advance(30 * 86_400_000 - 1).await;
    assert_eq!(world.waits_for("r").await, "message");
    let world = world.crash().await;
    world.settle().await;
    world.advance(2).await;
    assert_eq!(world.value("r").await, json!("a"));
}

#[tokio::test]
async fn messages_are_taken_in_order_and_repeated_ones_count_once() {
    let world = World::new().await;
    world.start("r", "Chat", json!({ "topic": "a" })).await;
    let send =
        |text: &str| Send { name: "Say".into(), value: json!({ "text": text }), id: Some("m1".into()) };
    assert_eq!(world.engine.message("r", send("b"), "ann").await.unwrap().accepted, 2);
    assert_eq!(world.engine.message("r", send("b"), "ann").await.unwrap().accepted, 2);
    assert_eq!(code(world.engine.message("r", send("c"), "ann").await), Code::Conflict);
    let say = Send { name: "Say".into(), value: json!({ "text": "d" }), id: None };
    assert_eq!(world.engine.message_handled("r", say, "ann").await.unwrap(), json!({ "handled": 3 }));
    assert_eq!(code(world.say("r", "Nope", json!({})).await), Code::Invalid);
    let withdraw = Withdraw { id: "m1".into() };
    assert_eq!(code(world.engine.withdraw("r", withdraw, "ann").await), Code::NotFound, "it was taken");
    world.say("r", "closed", json!(null)).await.unwrap();
    assert_eq!(world.value("r").await, json!("a b d"));
    assert_eq!(code(world.say("r", "Say", json!({ "text": "x" })).await), Code::RunEnded);
    assert_eq!(code(world.say("nobody", "Say", json!({ "text": "x" })).await), Code::NotFound);
}

#[tokio::test]
async fn a_cancel_is_final() {
    let world = World::new().await;
    let worker = world.worker("w").await;
    world.start("r", "Two", json!({ "x": 1 })).await;
    let task = worker.task().await;
    world.engine.cancel("r", "ann").await.unwrap();
    assert_eq!(worker.done(&task, json!(2)).await, outlast_protocol::worker::ReceiptStatus::Superseded);
    let world = world.crash().await;
    assert_eq!(world.view("r").await.outcome.unwrap().kind, "cancelled");
    assert_eq!(code(world.engine.terminate("r", "ann").await), Code::RunEnded);
}

#[tokio::test]
async fn a_wait_for_a_result_ends_with_its_time() {
    let world = World::new().await;
    world.start("r", "Two", json!({ "x": 1 })).await;
    let engine = world.engine.clone();
    let waiting = tokio::spawn(async move { engine.result("r", Duration::from_secs(5)).await });
    world.settle().await;
    assert!(!waiting.is_finished());
    world.advance(5_000).await;
    assert_eq!(waiting.await.unwrap().unwrap().status, "waiting");
}

#[tokio::test]
async fn a_clock_far_behind_the_store_is_refused() {
    let world = World::new().await;
    world.start("r", "Ask", json!({ "x": 1 })).await;
    let store = world.store.crash();
    let behind = |ms: i64| {
        let at = outlast_kernel::ids::Millis(super::world::START.0 - ms);
        std::sync::Arc::new(outlast_runtime::engine::ManualClock::new(at))
    };
    let refused = super::world::open(&store, &behind(3_700_000)).await;
    assert_eq!(code(refused.map(|_| ())), Code::NotReady);
    let world = World::over(store, behind(60_000)).await;
    world.engine.cancel("r", "ann").await.unwrap();
    let events = world.engine.events("r", 0, 10).await.unwrap().items;
    assert!(events[0]["time"].as_str() <= events[1]["time"].as_str(), "{events:?}");
}
