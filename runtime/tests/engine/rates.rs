//! Queues that give out so many tasks a minute, and runs that take turns.

use std::collections::BTreeMap;
use std::sync::Arc;

use outlast_protocol::worker::{OutcomeKind, Poll, Register, TaskError};
use outlast_runtime::engine::{Clock, Engine, ManualClock, Options};
use outlast_store::MemoryStore;
use serde_json::{Value as Json, json};

use super::world::{FLOWS, START, Worker, World, done, in_time, register};

/// Activities of a queue without a rate, and more of them than anybody can count.
const MORE: &str = r#"
edition 1
activity look(x: int) -> int within 1m in all 1h queue "q" effect pure
activity free(x: int) -> int within 1m in all 1h queue "free" effect pure
flow Free(x: int) -> int version 1 {
  start Work
  state Work { do free(x) as y   on ok -> end y   on problem -> end 0 }
}
flow Wide(xs: list<int>) -> text version 1 {
  start All
  state All { each x in xs at most 10000 as ys { do look(x) }   on ok -> end "all"   on problem -> end "none" }
}
"#;

async fn open(store: &MemoryStore, clock: &Arc<ManualClock>, rate: &Json) -> Engine {
    let rate = serde_json::from_value(rate.clone()).expect("it is a rate");
    let clock: Arc<dyn Clock> = clock.clone();
    let rates = BTreeMap::from([("q".to_owned(), rate)]);
    let options = Options { clock, seed: Some(1), rates, ..Options::default() };
    Engine::open(Arc::new(store.clone()), options).await.expect("the store opens")
}

async fn world(rate: Json) -> World {
    let (store, clock) = (MemoryStore::new(), Arc::new(ManualClock::new(START)));
    let engine = open(&store, &clock, &rate).await;
    let world = World { store, clock, engine };
    world.deploy(FLOWS).await;
    world.deploy(MORE).await;
    world
}

/// A worker of both queues, which runs so many tasks at once.
async fn worker(world: &World, name: &str, concurrency: u32) -> Worker {
    let offers = register(name, &format!("{name}-boot"), Vec::new());
    let mut activities = offers.activities;
    activities.push(outlast_protocol::worker::Offer { name: "free".into(), ..Default::default() });
    let queues = vec!["q".into(), "free".into()];
    let request = Register { queues, concurrency, activities, ..offers };
    let session = world.engine.register(request).await.expect("it registers").session;
    Worker { engine: world.engine.clone(), session }
}

/// How many tasks a worker gets now; it does them at once.
async fn gets(worker: &Worker) -> usize {
    let tasks = worker.tasks().await;
    for task in &tasks {
        worker.done(task, json!(1)).await;
    }
    tasks.len()
}

#[tokio::test]
async fn a_rate_is_one_for_all_workers_and_other_queues_go_on() {
    let world = world(json!({ "requests_per_minute": 60 })).await;
    let (a, b) = (worker(&world, "a", 50).await, worker(&world, "b", 50).await);
    world.start("many", "Wide", json!({ "xs": (0..200).collect::<Vec<_>>() })).await;
    world.start("free", "Free", json!({ "x": 1 })).await;
    assert_eq!(gets(&a).await, 1, "that of the other queue");
    assert_eq!(world.value("free").await, json!(1));
    let mut given = 0;
    for _ in 0..200 {
        world.advance(100).await;
        given += gets(&a).await + gets(&b).await;
    }
    assert_eq!(given, 20, "one a second, nothing saved up before");

    // After a rest a minute's worth may go at once, and no more.
    world.advance(600_000).await;
    let mut given = 0;
    for _ in 0..5 {
        given += gets(&a).await + gets(&b).await;
    }
    assert_eq!(given, 60);
}

#[tokio::test]
async fn a_run_says_that_it_waits_for_a_rate_and_until_when() {
    let world = world(json!({ "requests_per_minute": 6, "tokens_per_minute": 1_000_000 })).await;
    world.start("r", "Two", json!({ "x": 1 })).await;
    assert_eq!(world.waits_for("r").await, "worker", "first of all it needs one");
    let worker = worker(&world, "w", 1).await;
    assert!(worker.tasks().await.is_empty());
    let waiting = json!({
        "kind": "rate", "queue": "q", "activity": "look", "until": "2027-01-15T08:00:10.000Z",
    });
    assert_eq!(json!(world.view("r").await.waiting_for), waiting);
    assert_eq!(world.view("r").await.status, "waiting");
    let rates = json!([{
        "queue": "q", "requests_per_minute": 6, "tokens_per_minute": 1_000_000, "waiting": 1, "held_until": waiting["until"],
    }]);
    assert_eq!(world.engine.status()["rates"], rates);
    world.advance(10_000).await;
    assert_eq!(world.waits_for("r").await, "running", "its worker will take it now");
    let task = worker.task().await;
    assert_eq!(world.waits_for("r").await, "running");
    worker.done(&task, json!(2)).await;
}

#[tokio::test]
async fn a_poll_is_woken_when_its_queue_gives_out_the_next_task_and_not_before() {
    let world = world(json!({ "requests_per_minute": 60 })).await;
    let worker = worker(&world, "w", 4).await;
    world.start("r", "Two", json!({ "x": 1 })).await;
    let (engine, session) = (world.engine.clone(), worker.session.clone());
    let poll = Poll { session, max: 4, wait_ms: 60_000, leaving: false };
    let mut polling = tokio::spawn(async move { engine.poll(poll).await });
    world.advance(999).await;
    assert!(!polling.is_finished());
    world.advance(1).await;
    let polled = in_time("the task", &mut polling).await.unwrap().unwrap();
    assert_eq!(polled.tasks.len(), 1);
}

#[tokio::test]
async fn tokens_are_counted_as_workers_report_them() {
    let world = world(json!({ "tokens_per_minute": 600 })).await;
    let worker = worker(&world, "w", 1).await;
    world.start("many", "Wide", json!({ "xs": [1, 2, 3, 4, 5] })).await;
    assert!(worker.tasks().await.is_empty(), "nothing is saved up");
    world.advance(1_000).await;
    let usage = |input: u64, output: u64| Some(json!({ "input_tokens": input, "output_tokens": output }));
    let task = worker.task().await;
    let kind = OutcomeKind::Done { value: json!(1), cost: None, usage: usage(250, 50) };
    worker.report(&task, kind.clone()).await;
    // Said twice, counted once: half a minute's worth.
    worker.report(&task, kind).await;
    world.advance(28_000).await;
    assert!(worker.tasks().await.is_empty());
    assert_eq!(world.waits_for("many").await, "rate");
    world.advance(2_000).await;
    let task = worker.task().await;
    // A failure says what it took, too.
    let error = TaskError { kind: "Cut".into(), text: "no".into(), ..TaskError::default() };
    worker.report(&task, OutcomeKind::Failed { error, cost: None, usage: usage(100, 0) }).await;
    world.settle().await;
    world.start("next", "Two", json!({ "x": 1 })).await;
    assert!(worker.tasks().await.is_empty());
    world.advance(10_500).await;
    assert_eq!(worker.task().await.run, "next");
}

#[tokio::test]
async fn a_task_with_much_to_read_waits_until_it_fits_and_small_ones_do_not_pass_it_for_ever() {
    let world = world(json!({ "tokens_per_minute": 600 })).await;
    world
        .deploy(
            "edition 1\nactivity pay(x: text) -> text within 10m queue \"q\" effect once\n\
             flow Long(x: text) -> text version 1 { start W state W { do pay(x) as t  on ok -> end t  \
             on unknown -> end \"unknown\"  on problem -> end \"no\" } }",
        )
        .await;
    let worker = worker(&world, "w", 1).await;
    world.start("small", "Wide", json!({ "xs": (0..500).collect::<Vec<_>>() })).await;
    world.start("large", "Long", json!({ "x": "x".repeat(800) })).await;
    let mut seconds = 0;
    let large = loop {
        world.advance(1_000).await;
        seconds += 1;
        assert!(seconds < 40, "passed by for ever");
        let Some(task) = worker.tasks().await.pop() else { continue };
        if task.run == "large" {
            break task;
        }
        worker.done(&task, json!(1)).await;
    };
    assert!(seconds >= 20, "200 tokens at 10 a second, and it came after {seconds} s");
    assert_eq!(world.kinds("large").await, ["started", "begun"], "begun once, when it went out");
    worker.done(&large, json!("paid")).await;
    assert_eq!(world.value("large").await, json!("paid"));
}

#[tokio::test]
async fn a_host_that_was_killed_leaves_nothing_saved_up_to_the_next() {
    let rate = json!({ "requests_per_minute": 60 });
    let world = world(rate.clone()).await;
    let first = worker(&world, "w", 50).await;
    world.start("many", "Wide", json!({ "xs": (0..200).collect::<Vec<_>>() })).await;
    world.settle().await;
    world.advance(60_000).await;
    assert_eq!(gets(&first).await + gets(&first).await + gets(&first).await + gets(&first).await, 40);
    let World { store, clock, engine } = world;
    let next = store.crash();
    drop(engine);
    let engine = open(&next, &clock, &rate).await;
    let world = World { store: next, clock, engine };
    world.settle().await;
    // The worker comes back with nothing in hand.
    let again = worker(&world, "w", 50).await;
    assert_eq!(gets(&again).await, 0);
    world.advance(2_000).await;
    assert_eq!(gets(&again).await, 2);
}

#[tokio::test]
async fn a_run_with_thousands_of_tasks_starves_no_other() {
    let world = world(json!({})).await;
    let (a, b) = (worker(&world, "a", 1).await, worker(&world, "b", 1).await);
    world.start("wide", "Wide", json!({ "xs": (0..10_000).collect::<Vec<_>>() })).await;
    world.settle().await;
    let wide = a.task().await;
    for id in ["one", "two"] {
        world.start(id, "Two", json!({ "x": 1 })).await;
    }
    world.settle().await;
    // Of the next tasks, whoever takes them, each run has its own.
    let mut runs = Vec::new();
    for _ in 0..2 {
        let task = b.task().await;
        runs.push(task.run.clone());
        b.done(&task, json!(1)).await;
    }
    a.report(&wide, done(json!(1))).await;
    runs.push(a.task().await.run);
    runs.sort();
    assert_eq!(runs, ["one", "two", "wide"]);
}
