//! What is in memory: runs that wait cost none, and those that are there stay within their budget.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::Arc;

use outlast_runtime::engine::{Clock, Engine, ManualClock, Options};
use outlast_store::MemoryStore;
use serde_json::json;

use super::world::{START, World};

/// How many runs the test has waiting: far more than may be in memory.
const WAITING: usize = 3_000;

async fn open(store: &MemoryStore, clock: &Arc<ManualClock>, runs: usize, bytes: usize) -> World {
    let clock = Arc::clone(clock);
    let options = Options {
        clock: Arc::<ManualClock>::clone(&clock) as Arc<dyn Clock>,
        seed: Some(1),
        live_runs_max: runs,
        memory_budget: bytes,
        ..Options::default()
    };
    let engine = Engine::open(Arc::new(store.clone()), options).await.unwrap();
    World { store: store.clone(), clock, engine }
}

fn figure(world: &World, name: &str) -> u64 {
    world.engine.status()["hydrated"][name].as_u64().unwrap()
}

#[tokio::test]
async fn runs_that_wait_are_not_in_memory_and_a_restart_reads_those_that_have_work_only() {
    const READY: u64 = 20;
    let clock = Arc::new(ManualClock::new(START));
    let world = open(&MemoryStore::new(), &clock, 100, 1 << 30).await;
    world.deploy(super::world::FLOWS).await;
    for i in 0..WAITING {
        world.start(&format!("w{i}"), "Chat", json!({ "topic": "t" })).await;
        assert!(figure(&world, "runs") <= 100, "after {i}");
    }
    for i in 0..READY {
        world.start(&format!("r{i}"), "Two", json!({ "x": 1 })).await;
    }
    world.settle().await;
    let store = world.store.crash();
    drop(world);
    let world = open(&store, &clock, 100, 1 << 30).await;
    world.settle().await;
    assert_eq!((figure(&world, "runs"), figure(&world, "read")), (READY, READY));
    // Whoever is needed comes, and nobody else.
    world.say("w7", "Say", json!({ "text": "x" })).await.unwrap();
    assert_eq!(world.view("w7").await.events, 2);
    assert_eq!(figure(&world, "read"), READY + 1);
    // A month later all of them are due: still no more are there at once, and each comes to its end.
    world.advance(31 * 86_400_000).await;
    let mut ended = 0;
    while ended < WAITING {
        world.settle().await;
        assert!(figure(&world, "runs") <= 110, "{}", figure(&world, "runs"));
        let mut filter = outlast_store::Filter { limit: 1_000, ..Default::default() };
        ended = 0;
        loop {
            let page = outlast_store::Store::summaries(&world.store, &filter).unwrap();
            ended += page.items.iter().filter(|run| run.status == outlast_store::Status::Ended).count();
            filter.after = page.next;
            if filter.after.is_none() {
                break;
            }
        }
    }
}

#[tokio::test]
async fn of_runs_in_which_nothing_goes_on_few_stay_in_memory() {
    const RESTING: u64 = 1_000;
    let clock = Arc::new(ManualClock::new(START));
    let world = open(&MemoryStore::new(), &clock, 10_000, 1 << 30).await;
    world.deploy(super::world::FLOWS).await;
    for i in 0..WAITING {
        world.start(&format!("w{i}"), "Chat", json!({ "topic": "t" })).await;
    }
    // Those with work for a worker are kept, however many rest.
    for i in 0..WAITING / 2 {
        world.start(&format!("r{i}"), "Two", json!({ "x": 1 })).await;
    }
    world.settle().await;
    let (runs, at_work) = (figure(&world, "runs"), WAITING as u64 / 2);
    assert!((at_work..=at_work + RESTING * 11 / 10).contains(&runs), "{runs}");
}

#[tokio::test]
async fn large_states_stay_within_the_budget_of_bytes() {
    const BUDGET: u64 = 1 << 20;
    const TEXT: usize = 50_000;
    let clock = Arc::new(ManualClock::new(START));
    let world = open(&MemoryStore::new(), &clock, 10_000, BUDGET as usize).await;
    world.deploy(super::world::FLOWS).await;
    let text = "x".repeat(TEXT);
    for round in 0..3 {
        for i in 0..60 {
            let id = format!("r{i}");
            if round == 0 {
                world.start(&id, "Chat", json!({ "topic": text })).await;
            } else {
                world.say(&id, "Say", json!({ "text": text })).await.unwrap();
            }
            world.settle().await;
            let (bytes, runs) = (figure(&world, "bytes"), figure(&world, "runs"));
            // Each shard may have one run more than fits, while a step of it is on its way.
            assert!(bytes <= BUDGET + 2 * 3 * TEXT as u64 * 2 && runs < 30, "{bytes} bytes of {runs} runs");
        }
    }
    world.say("r0", "closed", serde_json::Value::Null).await.unwrap();
    assert_eq!(world.value("r0").await, json!([text.as_str(); 3].join(" ")));
}
