//! Cancels: amid waits, queues, children and their clean-up, again, too late, a hundred times (cases CAN-02, CAN-04, CAN-06 to CAN-08).
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use outlast_protocol::Code;
use outlast_protocol::worker::{OutcomeKind, ReceiptStatus, StoppedWhy, Task};
use outlast_store::Store as _;
use serde_json::{Value as Json, json};

use super::world::{Worker, World, code, register};

const MORE: &str = r#"
edition 1
error Busy
retry Patient { on Busy up to 3 attempts wait 10s }

activity look(x: int) -> int raises Busy within 1m in all 1h retry Patient queue "q" effect pure
activity brief(x: int) -> int within 1m in all 1h queue "q" effect idempotent
activity slow(x: int) -> int within 1m in all 1h queue "other" effect pure
activity put(x: int) -> int within 1m in all 1h queue "q" effect idempotent undo toll
activity toll(x: int, result: int?) within 1m in all 1h queue "q" effect idempotent

flow Child(x: int) -> int version 1 {
  start Work
  state Work { do look(x) as y   on ok -> end y   on problem -> end 0 }
}

flow Parent(child: text) -> text version 1 {
  start Begin
  state Begin { spawn Child(1) named child cancel as h   on ok -> Wait(h)   on exists -> end "exists" }
  state Wait(h: handle<Child>) {
    await ended(h) within 2h
    on ended   -> end "ended"
    on timeout -> end "late"
  }
}

flow Three(child: text) -> text version 1 {
  start Begin
  state Begin { spawn Child(1) named child cancel as h   on ok -> All(h)   on exists -> end "exists" }
  state All(h: handle<Child>) {
    parallel {
      a: do slow(1)
      b: do brief(2)
    } join all
    on ok      -> end "all"
    on problem -> end "failed"
  }
}

saga flow Third(x: int) -> int version 1 {
  start Book
  state Book { do put(3)   on ok -> Rest   on problem -> end 0 }
  state Rest { after 10d -> end 3 }
}

saga flow Second(name: text) -> int version 1 {
  start Book
  state Book { do put(2)   on ok -> Begin   on problem -> end 0 }
  state Begin { spawn Third(1) named name cancel as h   on ok -> Wait(h)   on exists -> end 0 }
  state Wait(h: handle<Third>) { await ended(h) within 10d   on ended, timeout -> end 2 }
}

saga flow First(name: text, below: text) -> int version 1 {
  start Book
  state Book { do put(1)   on ok -> Begin   on problem -> end 0 }
  state Begin { spawn Second(below) named name cancel as h   on ok -> Wait(h)   on exists -> end 0 }
  state Wait(h: handle<Second>) { await ended(h) within 10d   on ended, timeout -> end 1 }
}
"#;

async fn world() -> World {
    let world = World::new().await;
    world.deploy(MORE).await;
    world
}

async fn settle(world: &World) {
    for _ in 0..4 {
        world.settle().await;
    }
}

async fn outcome(world: &World, run: &str) -> Option<String> {
    world.view(run).await.outcome.map(|outcome| outcome.kind)
}

async fn is_cancelled(world: &World, run: &str) {
    assert_eq!(outcome(world, run).await.as_deref(), Some("cancelled"), "{run}: {:?}", world.view(run).await);
}

async fn cancel(world: &World, run: &str) {
    world.engine.cancel(run, "ann").await.unwrap();
    settle(world).await;
}

async fn stop(worker: &Worker, task: &Task) {
    let stopped = OutcomeKind::Stopped { why: StoppedWhy::Cancelled };
    worker.report(task, stopped).await;
}

/// Case CAN-02: a parent is cancelled while its child waits for its next attempt: neither does anything any more, also after a restart.
#[tokio::test]
async fn a_cancel_during_the_wait_for_a_retry_leaves_no_further_attempt() {
    for restarts in [false, true] {
        let mut world = world().await;
        let mut worker = world.worker("w").await;
        world.start("p", "Parent", json!({ "child": "c" })).await;
        settle(&world).await;
        worker.fails(&worker.task().await, "Busy").await;
        assert_eq!(world.waits_for("c").await, "retry");
        world.advance(5_000).await;
        if restarts {
            world = world.crash().await;
            worker = world.worker("w").await;
        }
        cancel(&world, "p").await;
        if restarts {
            world = world.crash().await;
            worker = world.worker("w").await;
            settle(&world).await;
        }
        // The clock stands still: at once.
        is_cancelled(&world, "p").await;
        is_cancelled(&world, "c").await;
        world.advance(60_000).await;
        assert!(worker.tasks().await.is_empty(), "no further attempt");
        assert_eq!(world.store.ready(None, 99).unwrap(), []);
    }
}

/// Case CAN-04: one activity has no worker, one is in hand, a child runs. What waits never starts, the others are told, and the run ends.
#[tokio::test]
async fn a_cancel_drops_what_is_queued_tells_what_is_in_hand_and_reaches_the_child() {
    for restarts in [false, true] {
        let mut world = world().await;
        let mut worker = world.worker("w").await;
        world.start("r", "Three", json!({ "child": "c" })).await;
        settle(&world).await;
        let tasks = worker.tasks().await;
        let mut names: Vec<&str> = tasks.iter().map(|task| task.activity.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["brief", "look"]);
        if restarts {
            world = world.crash().await;
            let holding = tasks.iter().map(|task| task.token.clone()).collect();
            worker = world.worker_again("w", "w-boot", holding).await.0;
        }
        cancel(&world, "r").await;
        let mut told = worker.stops().await;
        told.sort_unstable();
        let mut held: Vec<String> = tasks.iter().map(|task| task.token.clone()).collect();
        held.sort_unstable();
        assert_eq!(told, held);
        for task in &tasks {
            stop(&worker, task).await;
        }
        settle(&world).await;
        is_cancelled(&world, "r").await;
        is_cancelled(&world, "c").await;
        let mut late = register("late", "late-boot", Vec::new());
        late.queues = vec!["other".into()];
        let session = world.engine.register(late).await.unwrap().session;
        let late = Worker { engine: world.engine.clone(), session };
        assert!(late.tasks().await.is_empty(), "what was queued never starts");
        assert_eq!(world.engine.status()["in_hand"], 0);
    }
}

/// Case CAN-06: who cancels again hears that it is so, and nothing is written; what has ended otherwise says how; what is not there, is not.
#[tokio::test]
async fn a_cancel_again_is_accepted_and_one_that_comes_too_late_says_so() {
    let world = world().await;
    let worker = world.worker("w").await;
    world.start("cancelled", "Chat", json!({ "topic": "t" })).await;
    let accepted = world.engine.cancel("cancelled", "ann").await.unwrap().accepted;
    world.start("done", "Chat", json!({ "topic": "t" })).await;
    world.say("done", "closed", json!(null)).await.unwrap();
    world.start("stopped", "Chat", json!({ "topic": "t" })).await;
    world.engine.terminate("stopped", "ann").await.unwrap();
    // One is on its way: its undo has yet to be done.
    world.start("undoes", "Third", json!({ "x": 1 })).await;
    worker.done(&worker.task().await, json!(1)).await;
    cancel(&world, "undoes").await;
    let undo = worker.task().await;
    let kinds = world.kinds("undoes").await;
    let mut world = world;
    for again in 0..2 {
        assert_eq!(world.engine.cancel("cancelled", "bob").await.unwrap().accepted, accepted, "{again}");
        assert_eq!(world.kinds("cancelled").await, ["started", "cancelled"]);
        world.engine.cancel("undoes", "bob").await.unwrap();
        assert_eq!(world.kinds("undoes").await, kinds);
        for (run, how) in [("done", "done"), ("stopped", "terminated")] {
            let refused = world.engine.cancel(run, "bob").await.unwrap_err();
            assert!(refused.code == Code::RunEnded && refused.message.contains(how), "{refused:?}");
        }
        assert_eq!(code(world.engine.cancel("nobody", "bob").await), Code::NotFound);
        world = world.crash().await;
    }
    let worker = world.worker_again("w", "w-boot", vec![undo.token.clone()]).await.0;
    assert_eq!(worker.done(&undo, Json::Null).await, ReceiptStatus::Accepted);
    settle(&world).await;
    is_cancelled(&world, "undoes").await;
}

/// Case CAN-07: a cancel walks down a tree, and what was done is undone from below, whatever crashes half-way.
#[tokio::test]
async fn a_tree_is_cancelled_from_below_and_each_undoes_its_own() {
    // After how many undos the process dies; 9: never.
    for crash_after in [0, 1, 2, 9] {
        let mut world = world().await;
        let mut worker = world.worker("w").await;
        world.start("first", "First", json!({ "name": "second", "below": "third" })).await;
        for x in 1..=3 {
            settle(&world).await;
            let task = worker.task().await;
            assert_eq!(task.input["x"], x);
            worker.done(&task, json!(x)).await;
        }
        settle(&world).await;
        world.engine.cancel("first", "ann").await.unwrap();
        let (mut undone, mut ended) = (Vec::new(), Vec::new());
        for count in 0..3 {
            settle(&world).await;
            if count == crash_after {
                world = world.crash().await;
                world.engine.worker_gone("w-boot").await;
                worker = world.worker("w").await;
                settle(&world).await;
            }
            let task = worker.task().await;
            assert_eq!((task.activity.as_str(), &task.input["result"]), ("toll", &task.input["x"]));
            undone.push(task.input["x"].as_u64().unwrap());
            assert_eq!(worker.done(&task, Json::Null).await, ReceiptStatus::Accepted);
            settle(&world).await;
            for run in ["first", "second", "third"] {
                if !ended.contains(&run) && outcome(&world, run).await.is_some() {
                    ended.push(run);
                }
            }
        }
        assert_eq!((undone, ended), (vec![3, 2, 1], vec!["third", "second", "first"]), "{crash_after}");
        for run in ["first", "second", "third"] {
            is_cancelled(&world, run).await;
        }
        assert_eq!(world.store.ready(None, 99).unwrap(), [], "{crash_after}");
    }
}

/// Case CAN-08: with room for one, the cancel of what hangs, of what waits, and the end of what waited too long give the place back, a
/// hundred times.
#[tokio::test]
async fn a_cancel_gives_its_place_back() {
    let world = world().await;
    let mut one = register("w", "b", Vec::new());
    one.concurrency = 1;
    let session = world.engine.register(one).await.unwrap().session;
    let worker = Worker { engine: world.engine.clone(), session };
    for round in 0..100 {
        let [hangs, queued, next] = ["hangs", "queued", "next"].map(|name| format!("{name}-{round}"));
        world.start(&hangs, "Child", json!({ "x": 1 })).await;
        let hanging = worker.task().await;
        world.start(&queued, "Child", json!({ "x": 2 })).await;
        world.start(&next, "Child", json!({ "x": 3 })).await;
        assert!(worker.tasks().await.is_empty(), "its only place is taken");
        if round % 2 == 0 {
            world.engine.cancel(&queued, "ann").await.unwrap();
        }
        world.engine.cancel(&hangs, "ann").await.unwrap();
        assert_eq!(worker.stops().await, std::slice::from_ref(&hanging.token));
        stop(&worker, &hanging).await;
        // The clock stands still: the next one begins at once.
        for expected in [(round % 2 != 0).then_some(&queued), Some(&next)].into_iter().flatten() {
            let task = worker.task().await;
            assert_eq!(&task.run, expected);
            worker.done(&task, json!(1)).await;
            assert_eq!(world.value(expected).await, json!(1));
        }
        let status = world.engine.status();
        assert_eq!((&status["in_hand"], &status["waiting"]), (&json!(0), &json!(0)), "{round}");
    }
    // One whose time to begin is over while it waits leaves the queue, too.
    world.start("hangs", "Child", json!({ "x": 1 })).await;
    let hanging = worker.task().await;
    world.start("expires", "Brief", json!({ "x": 2 })).await;
    for _ in 0..32 {
        world.advance(10_000).await;
        worker.progress(&[(&hanging, None)]).await;
    }
    assert_eq!(world.value("expires").await, json!("timeout"));
    assert_eq!(world.engine.status()["waiting"], 0);
}
