//! What is repeated and what is not: members of a group, work that a person tries again, failures that come together, and attempts whose
//! end is seen from two sides at once.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use outlast_protocol::requests::{Fork, Release};
use outlast_protocol::worker::ReceiptStatus::Accepted;
use outlast_protocol::worker::{Offer, Outcome, OutcomeKind, Report, Task, TaskError};
use outlast_store::Side;
use serde_json::{Value as Json, json};

use super::world::{World, done, register};

const MORE: &str = r#"
edition 1
error Busy
retry Gently { on Busy up to 3 attempts wait 1s }
retry ByHand { on problem up to 1 attempts wait 1s then hold }

activity look(x: int) -> int raises Busy within 1m in all 1h retry Gently queue "q" effect pure
activity put(x: int) -> int within 1m in all 30d retry ByHand queue "q" effect idempotent
activity pay(x: int) -> text within 10m queue "q" effect once
activity brief(x: int) -> int within 1m queue "q" effect pure
activity slow(x: int) -> int within 30s in all 5m retry Timely queue "q" effect pure
retry Timely { on timeout up to 2 attempts wait 1s }

flow Group(x: int) -> text version 1 {
  start All
  state All {
    parallel {
      first: do pay(x) on unknown yield "in doubt"
      second: do brief(x)
      third: do look(x)
    } join all
    on ok      -> end "all"
    on problem -> end "failed"
  }
}

flow Cleaned(x: int) -> text version 1 {
  start Main
  state Main {
    do pay(x) as paid
    on ok              -> Clean(paid)
    on unknown, problem -> end "not paid"
  }
  state Clean(paid: text) {
    do look(x)
    on ok      -> Keep(paid)
    on problem -> end "paid, and not cleaned up"
  }
  state Keep(paid: text) {
    do put(x)
    on ok      -> end paid
    on problem -> end "paid, and not kept"
  }
}

flow Notice(xs: list<int>) -> text version 1 {
  start All
  state All {
    each x in xs at most 5 { do brief(x) }
    on ok      -> end "well"
    on problem -> Tell
  }
  state Tell {
    do pay(0) as told
    on ok               -> end told
    on unknown, problem -> end "not told"
  }
}

flow Timely(x: int) -> text version 1 {
  start Work
  state Work { do slow(x) as y   on ok -> end "done"   on problem as p -> end p.kind }
}
"#;

async fn world() -> World {
    let world = World::new().await;
    world.deploy(MORE).await;
    world
}

fn named<'a>(tasks: &'a [Task], activity: &str) -> &'a Task {
    tasks.iter().find(|task| task.activity == activity).unwrap()
}

async fn count(world: &World, run: &str, kind: &str) -> usize {
    world.kinds(run).await.iter().filter(|it| *it == kind).count()
}

/// Case RTY-06: retries belong to the activity, so what is repeated is the member that failed, and nothing beside it.
#[tokio::test]
async fn a_member_that_is_retried_repeats_no_other() {
    let world = world().await;
    let worker = world.worker("w").await;
    world.start("g", "Group", json!({ "x": 1 })).await;
    let tasks = worker.tasks().await;
    assert_eq!(tasks.len(), 3);
    worker.done(named(&tasks, "pay"), json!("paid")).await;
    worker.done(named(&tasks, "brief"), json!(1)).await;
    worker.fails(named(&tasks, "look"), "Busy").await;
    let world = world.crash().await;
    world.engine.worker_gone("w-boot").await;
    let worker = world.worker("again").await;
    for attempt in [2, 3] {
        world.advance(1_000).await;
        let task = worker.task().await;
        assert_eq!((task.activity.as_str(), task.attempt), ("look", attempt));
        if attempt == 2 {
            worker.fails(&task, "Busy").await;
        } else {
            worker.done(&task, json!(1)).await;
        }
    }
    assert_eq!(world.value("g").await, json!("all"));
    assert_eq!((count(&world, "g", "begun").await, count(&world, "g", "done").await), (1, 3));
}

/// Case RTY-07: whoever tries a step again by hand, once or twice, repeats nothing that was done before it: by a release where the flow
/// holds it, by a fork before it where the run has ended.
#[tokio::test]
async fn what_is_tried_again_by_hand_is_the_step_that_failed_alone() {
    let world = world().await;
    let worker = world.worker("w").await;
    world.start("r", "Cleaned", json!({ "x": 1 })).await;
    worker.done(&worker.task().await, json!("receipt 7")).await;
    worker.done(&worker.task().await, json!(1)).await;
    for _ in 0..2 {
        worker.fails(&worker.task().await, "Broken").await;
        world.settle().await;
        assert_eq!(world.waits_for("r").await, "held");
        let Json::Object(held) = json!(world.view("r").await.waiting_for) else { unreachable!("it is held") };
        let request = Release { op: held["op"].as_str().unwrap().to_owned() };
        world.engine.release("r", request, "ann").await.unwrap();
    }
    let last = worker.task().await;
    assert_eq!(last.activity, "put");
    worker.done(&last, json!(1)).await;
    assert_eq!(world.value("r").await, json!("receipt 7"), "the first step's result is what it was");
    assert_eq!(count(&world, "r", "begun").await, 1);

    world.start("e", "Cleaned", json!({ "x": 1 })).await;
    worker.done(&worker.task().await, json!("receipt 8")).await;
    let paid = world.view("e").await.events;
    worker.fails(&worker.task().await, "Broken").await;
    assert_eq!(world.value("e").await, json!("paid, and not cleaned up"));
    for (fork, well) in [("e2", false), ("e3", true)] {
        let request = Fork { at: Some(paid), id: Some(fork.into()), children: None };
        world.engine.fork("e", request, "ann").await.unwrap();
        let task = worker.task().await;
        assert_eq!((task.run.as_str(), task.activity.as_str()), (fork, "look"));
        if well {
            worker.done(&task, json!(1)).await;
            worker.done(&worker.task().await, json!(1)).await;
            assert_eq!(world.value(fork).await, json!("receipt 8"));
        } else {
            worker.fails(&task, "Broken").await;
            assert_eq!(world.value(fork).await, json!("paid, and not cleaned up"));
        }
        assert_eq!(count(&world, fork, "begun").await, 1, "that of its parent");
    }
}

/// Case RTY-11: five members fail in one call, and the flow hears of it once.
#[tokio::test]
async fn failures_that_come_together_are_told_once() {
    let world = world().await;
    let (one, two) = (world.worker("one").await, world.worker("two").await);
    world.start("n", "Notice", json!({ "xs": [1, 2, 3, 4, 5] })).await;
    let taken = [one.tasks().await, two.tasks().await];
    assert_eq!(taken.each_ref().map(Vec::len), [4, 1]);
    for (worker, tasks) in [&one, &two].into_iter().zip(taken) {
        let error = TaskError { kind: "Broken".into(), text: "no".into(), ..TaskError::default() };
        let failed = OutcomeKind::Failed { error, cost: None, usage: None };
        let results = tasks.into_iter().map(|task| Outcome { token: task.token, kind: failed.clone() });
        let report = Report { session: worker.session.clone(), results: results.collect() };
        world.engine.report(report).await.unwrap();
    }
    let notices = [one.tasks().await, two.tasks().await].concat();
    assert_eq!(notices.iter().map(|task| task.activity.as_str()).collect::<Vec<_>>(), ["pay"]);
    one.done(&notices[0], json!("told")).await;
    assert_eq!(world.value("n").await, json!("told"));
    assert_eq!(count(&world, "n", "begun").await, 1);
}

/// Case WRK-05: a process that dies between taking work out of its lane and giving it to a worker loses none of it, and keeps no place
/// of a group or a worker; random kills do the same in the simulator.
#[tokio::test]
async fn work_that_was_taken_and_not_handed_out_is_handed_out_by_the_next_process() {
    let mut world = World::new().await;
    world.start("m", "Many", json!({ "xs": (0..12).collect::<Vec<_>>() })).await;
    world.start("p", "Pay", json!({ "x": 1 })).await;
    for round in 0..5 {
        let taker = world.worker(&format!("w{round}")).await;
        // That of the payment is on its way to the disk, the others are on their way to the worker.
        world.store.hold(Side::BeforeSync);
        let polling = tokio::spawn(async move { taker.poll(60_000).await });
        world.wait_until_held().await;
        polling.abort();
        let held = world.store.clone();
        world = world.crash().await;
        held.release();
        world.engine.worker_gone(&format!("w{round}-boot")).await;
        world.settle().await;
    }
    let worker = world.worker("last").await;
    let mut given = 0;
    while given < 13 {
        let tasks = worker.tasks().await;
        assert!(!tasks.is_empty() && tasks.len() <= 4, "{given} were given out");
        for task in &tasks {
            assert_eq!(task.attempt, 1, "none of them ever arrived: {task:?}");
            let value = if task.activity == "pay" { json!("paid") } else { json!(1) };
            assert_eq!(worker.done(task, value).await, Accepted);
        }
        given += tasks.len();
    }
    assert_eq!((world.value("p").await, world.value("m").await), (json!("paid"), json!(vec![1; 12])));
    let status = world.engine.status();
    assert_eq!((&status["in_hand"], &status["waiting"]), (&json!(0), &json!(0)));
}

/// Case WRK-07: a run says that nobody offers its activity until somebody does. A worker whose types are others gets no say in what the
/// flow believes: what does not fit is a failure that says where.
#[tokio::test]
async fn a_run_waits_for_a_worker_that_offers_its_activity_and_a_wrong_result_is_told() {
    let world = World::new().await;
    let mut poor = register("poor", "poor-boot", Vec::new());
    poor.activities.retain(|offer| offer.name != "brief");
    world.engine.register(poor).await.unwrap();
    world.start("r", "Brief", json!({ "x": 1 })).await;
    let nobody = json!({ "kind": "activity", "queue": "q", "activity": "brief" });
    for _ in 0..2 {
        assert_eq!(json!(world.view("r").await.waiting_for), nobody);
        world.advance(60_000).await;
    }
    let mut other = register("other", "other-boot", Vec::new());
    let output = json!({ "type": "string" });
    other.activities = vec![Offer { name: "brief".into(), output, ..Offer::default() }];
    let session = world.engine.register(other).await.unwrap().session;
    let other = super::world::Worker { engine: world.engine.clone(), session };
    let task = other.task().await;
    assert_eq!(other.report(&task, done(json!("seven"))).await, Accepted);
    world.settle().await;
    let events = world.engine.events("r", 0, 100).await.unwrap().items;
    let failed = events.iter().find(|event| event["kind"] == "failed").unwrap();
    let text = failed["error"]["text"].as_str().unwrap();
    assert!(text.contains("a whole number") && text.contains("\"seven\""), "{failed}");
}

/// Case WRK-08: an attempt whose time is over in the moment in which its worker is given up ends once, is repeated once, and frees its
/// place once.
#[tokio::test]
async fn a_timeout_and_a_loss_in_the_same_moment_are_one_end() {
    let world = world().await;
    for round in 0..300 {
        let run = format!("r{round}");
        let worker = world.worker(&format!("w{round}")).await;
        world.start(&run, "Timely", json!({ "x": 1 })).await;
        let task = worker.task().await;
        // Its lease and the attempt's time end together; in every second round its process is noticed to be gone just then, too.
        if round % 2 == 0 {
            world.advance(30_000).await;
        } else {
            world.clock.advance(30_000);
            world.engine.worker_gone(&format!("w{round}-boot")).await;
            world.settle().await;
        }
        world.advance(1_000).await;
        let next = world.worker(&format!("n{round}")).await;
        let again = next.task().await;
        assert_eq!((again.run.as_str(), again.attempt), (run.as_str(), 2));
        let kinds = world.kinds(&run).await;
        assert_eq!(kinds.len(), 2, "{kinds:?}");
        assert!(worker.poll(0).await.is_err(), "nothing of it is left");
        assert_eq!(world.engine.status()["in_hand"], 1);
        assert_ne!(again.token, task.token);
        next.done(&again, json!(8)).await;
        world.engine.worker_gone(&format!("n{round}-boot")).await;
    }
    assert_eq!(world.engine.status()["sessions"], json!([]));
}
