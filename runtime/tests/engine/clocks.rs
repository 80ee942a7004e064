//! What time does: outages, suspends, clocks that were set back, times that are too far (cases TMR-03, TMR-05, TMR-07 to TMR-09, RPL-05, RPL-07).
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::Arc;

use outlast_kernel::ids::Millis;
use outlast_protocol::Code;
use outlast_protocol::worker::ReceiptStatus;
use outlast_runtime::engine::ManualClock;
use outlast_store::Store as _;
use serde_json::json;

use super::world::{START, World, approve, code};

const MORE: &str = r#"
edition 1
retry Never { on problem up to 1 attempts wait 1s }
activity brief(x: int) -> int within 60s in all 60s retry Never queue "q" effect pure

flow Beat() -> text emits text version 1 {
  message Stop
  start Beating
  state Beating {
    await Stop within forever
    on Stop                -> end "stopped"
    every 5s  emit "alive" -> stay
  }
}

flow Rest(time: duration) -> text version 1 {
  start Resting
  state Resting { after time -> end "rested" }
}

flow Appointment(first: duration) -> text version 1 {
  message Move { to: duration }
  start Until(first)
  state Until(time: duration) {
    await Move within time
    on Move { to } -> Until(to)
    on timeout     -> end "now"
  }
}

flow Minute(x: int) -> text version 1 {
  start Work
  state Work { do brief(x)   on ok -> end "done"   on problem as p -> end p.kind }
}
"#;

async fn world() -> World {
    let world = World::new().await;
    world.deploy(MORE).await;
    world
}

/// When a run's timers fired, in milliseconds after [`START`], as far as they were due.
async fn fired(world: &World, run: &str) -> Vec<i64> {
    let run = outlast_kernel::ids::RunId::new(run).unwrap();
    let events = world.store.history(&run, outlast_kernel::ids::Seq(0), 1_000).unwrap();
    let mut times = Vec::new();
    for event in events {
        if let outlast_kernel::event::EventKind::TimerFired { .. } = event.kind {
            times.push(event.time.0 - START.0);
        }
    }
    times
}

/// Case TMR-03: after an outage of twelve periods what repeats fires once, and then at the next of its own times.
#[tokio::test]
async fn what_repeats_fires_once_after_an_outage_and_then_in_its_own_rhythm() {
    let world = world().await;
    world.start("r", "Beat", json!({})).await;
    world.advance(5_000).await;
    assert_eq!(fired(&world, "r").await, [5_000]);
    world.clock.advance(62_000);
    let world = world.crash().await;
    world.settle().await;
    assert_eq!(fired(&world, "r").await, [5_000, 67_000], "one for all that were missed");
    for _ in 0..8 {
        world.advance(1_000).await;
    }
    assert_eq!(fired(&world, "r").await, [5_000, 67_000, 70_000, 75_000]);
}

/// Case TMR-05: far times are shown, stay what they are over a restart, and are not due before; what no clock could show is refused.
#[tokio::test]
async fn long_waits_are_as_long_as_they_say_and_too_long_ones_are_refused() {
    let mut world = world().await;
    let day = 86_400_000_u64;
    for (run, days) in [("a", 25), ("b", 30), ("c", 3_650), ("d", 36_500)] {
        world.start(run, "Rest", json!({ "time": format!("{days}d") })).await;
    }
    let shown = |world: &World, run: &'static str| {
        let engine = world.engine.clone();
        async move { json!(engine.get(run).await.unwrap().waiting_for)["until"].as_str().unwrap().to_owned() }
    };
    let first = [shown(&world, "a").await, shown(&world, "b").await, shown(&world, "c").await];
    assert_eq!(first.each_ref().map(|time| &time[..10]), ["2027-02-09", "2027-02-14", "2037-01-12"]);
    for _ in 0..2 {
        world.advance(5_000).await;
        let again = [shown(&world, "a").await, shown(&world, "b").await, shown(&world, "c").await];
        assert_eq!(again, first);
        world = world.crash().await;
    }
    world.advance(25 * day - 10_001).await;
    assert_eq!(world.waits_for("a").await, "timer");
    world.advance(1).await;
    assert_eq!(world.value("a").await, json!("rested"));
    assert_eq!(world.waits_for("b").await, "timer");
    for time in ["36601d", "99999999999999999999d", "9223372036854775807ms", "-1d"] {
        let refused = world.try_start("x", "Rest", json!({ "time": time })).await;
        assert_eq!(code(refused), Code::Invalid, "{time}");
        let text = MORE.replace("every 5s", &format!("every {time}"));
        let files = vec![outlast_protocol::requests::FileText { name: "long.flow".into(), text }];
        let deployed = outlast_protocol::requests::Deploy { files, profile: None };
        assert!(world.engine.deploy(deployed).await.is_err(), "{time}");
    }
    assert_eq!(code(world.engine.get("x").await), Code::NotFound);
}

/// Case TMR-07: the deadline of a question that was answered is nowhere any more.
#[tokio::test]
async fn the_deadline_of_an_answered_question_is_gone() {
    let world = world().await;
    world.start("r", "Ask", json!({ "x": 1 })).await;
    let far = START.plus(365 * 86_400_000);
    assert_eq!(world.store.due(None, far, 99).unwrap().len(), 1);
    world.engine.answer("r", approve(), "ann").await.unwrap();
    assert_eq!(world.value("r").await, json!("yes"));
    assert_eq!(world.store.due(None, far, 99).unwrap().len(), 0);
    let view = world.view("r").await;
    assert_eq!((json!(view.waiting_for), view.questions.len()), (json!(null), 0));
    world.advance(2 * 3_600_000).await;
    assert_eq!(world.kinds("r").await, ["started", "answered"]);
}

/// Case RPL-05: killed after 40 seconds and started after 50, what may take 60 in all ends after 60, and not after 110; so does what waits
/// for a message.
#[tokio::test]
async fn a_deadline_counts_from_the_first_start_whatever_was_down_meanwhile() {
    let world = world().await;
    let worker = world.worker("w").await;
    world.start("r", "Minute", json!({ "x": 1 })).await;
    worker.task().await;
    for _ in 0..4 {
        world.advance(10_000).await;
        worker.tasks().await;
    }
    world.clock.advance(10_000);
    let world = world.crash().await;
    world.settle().await;
    for _ in 0..9 {
        world.advance(1_000).await;
        assert!(world.view("r").await.outcome.is_none());
    }
    world.advance(1_001).await;
    assert_eq!(world.value("r").await, json!("timeout"));
    let last = world.engine.events("r", 0, 99).await.unwrap().items.pop().unwrap();
    assert!(last["time"].as_str().unwrap().starts_with("2027-01-15T08:01:0"), "{last}");
}

/// Case TMR-08: the wall clock of the next process is an hour behind, then an hour ahead. What slept ten seconds wakes when ten are over, no
/// task is given out twice, and times never go back.
#[tokio::test]
async fn a_clock_that_is_set_back_and_forth_moves_no_timer_and_repeats_no_work() {
    let world = world().await;
    let worker = world.worker("w").await;
    world.start("sleeps", "Rest", json!({ "time": "10s" })).await;
    world.start("works", "Minute", json!({ "x": 1 })).await;
    let task = worker.task().await;
    world.advance(5_000).await;
    // Behind, but by less than what is taken for a wrong clock altogether.
    let store = world.store.crash();
    let behind = Arc::new(ManualClock::new(Millis(START.0 + 5_000 - 3_599_000)));
    let world = World::over(store, Arc::clone(&behind)).await;
    let (worker, registered) = world.worker_again("w", "w-boot", vec![task.token.clone()]).await;
    assert_eq!(registered.keep, std::slice::from_ref(&task.token));
    world.advance(1_000).await;
    assert_eq!(world.waits_for("sleeps").await, "timer");
    world.advance(9_000).await;
    assert_eq!(world.value("sleeps").await, json!("rested"), "not an hour later");
    assert!(worker.tasks().await.is_empty());
    // Two hours ahead in one step, as after a suspend: the lease is not over by that alone.
    let other = world.worker("other").await;
    assert!(other.tasks().await.is_empty(), "it is in hand");
    world.start("sleeps2", "Rest", json!({ "time": "10s" })).await;
    world.advance(7_200_000).await;
    assert_eq!(world.value("sleeps2").await, json!("rested"));
    assert_ne!(worker.done(&task, json!(1)).await, ReceiptStatus::UnknownToken);
    assert_eq!(world.value("works").await, json!("timeout"), "its minute is over");
    let world = world.crash().await;
    for run in ["sleeps", "works", "sleeps2"] {
        let events = world.engine.events(run, 0, 99).await.unwrap().items;
        let times: Vec<&str> = events.iter().map(|event| event["time"].as_str().unwrap()).collect();
        assert!(times.is_sorted(), "{run}: {times:?}");
        assert!(events.iter().all(|event| event["attempt"].as_u64().is_none_or(|attempt| attempt == 1)));
    }
}

/// Case TMR-09: everything sleeps for two minutes across a timer, a lease and an attempt. The timer fires once, the worker goes on, and
/// what it has in hand counts.
#[tokio::test]
async fn after_a_suspend_of_everything_timers_fire_once_and_work_goes_on() {
    let world = world().await;
    let worker = world.worker("w").await;
    world.start("beats", "Beat", json!({})).await;
    world.start("rests", "Rest", json!({ "time": "60s" })).await;
    world.start("works", "Pay", json!({ "x": 1 })).await;
    let task = worker.task().await;
    world.advance(120_000).await;
    assert_eq!(fired(&world, "rests").await, [120_000]);
    assert_eq!(fired(&world, "beats").await, [120_000]);
    assert!(worker.poll(0).await.is_ok(), "its lease has the time of a sign of life");
    world.advance(3_000).await;
    assert_eq!(worker.done(&task, json!("paid")).await, ReceiptStatus::Accepted);
    assert_eq!(world.value("works").await, json!("paid"));
    assert_eq!(world.kinds("works").await, ["started", "begun", "done"]);
}

/// Case RPL-07: waits of nothing, of a millisecond and of a second, with a crash after each: the run goes on in one step, and a fork in which
/// the wait becomes nothing goes on at once, too. Less than nothing is no duration.
#[tokio::test]
async fn waits_of_nothing_go_on_at_once_and_are_the_same_after_a_crash() {
    let mut world = world().await;
    for (run, time, ms) in [("zero", "0ms", 0), ("one", "1ms", 1), ("second", "1s", 1_000)] {
        world.start(run, "Appointment", json!({ "first": time })).await;
        world = world.crash().await;
        world.settle().await;
        if ms > 1 {
            assert_eq!(world.waits_for(run).await, "message");
            // The clock of a process that opens a store is behind no event in it: it may have moved on by a little.
            world.advance(ms - 10).await;
            assert_eq!(world.waits_for(run).await, "message", "{time}: too early");
        }
        world.advance(10).await;
        assert_eq!(world.value(run).await, json!("now"), "{time}");
        world = world.crash().await;
        assert_eq!(world.kinds(run).await, ["started", "timer_fired"], "{time}: no further step");
    }
    world.start("r", "Appointment", json!({ "first": "1h" })).await;
    let fork = outlast_protocol::requests::Fork { at: Some(1), id: Some("f".into()), children: None };
    world.engine.fork("r", fork, "ann").await.unwrap();
    world.say("f", "Move", json!({ "to": "0ms" })).await.unwrap();
    world.settle().await;
    world.advance(1).await;
    assert_eq!(world.value("f").await, json!("now"));
    assert_eq!(world.waits_for("r").await, "message", "the first one waits on");
    assert_eq!(code(world.say("r", "Move", json!({ "to": "-5s" })).await), Code::Invalid);
    assert_eq!(world.kinds("r").await, ["started"]);
}
