//! How many runs there are, as the store keeps it: what counting them all gives, whatever happened.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;

use outlast_protocol::requests::Fork;
use outlast_store::{Batch, Filter, Put, Status, Store as _, Table};
use serde_json::{Value as Json, json};

use super::world::{World, approve};

type Counts = BTreeMap<String, u64>;

fn kept(world: &World) -> Counts {
    let bytes = world.store.get(Table::Setting, b"census").unwrap().unwrap();
    let kept: Json = serde_json::from_slice(&bytes).unwrap();
    serde_json::from_value(kept["counts"].clone()).unwrap()
}

/// Counts all that the store has.
fn counted(world: &World) -> Counts {
    let mut counts: Counts =
        ["running", "waiting", "blocked", "ended", "questions"].map(|name| (name.to_owned(), 0)).into();
    let mut count = |name: &str, n: usize| *counts.get_mut(name).unwrap() += n as u64;
    for summary in world.store.summaries(&Filter { limit: 99, ..Filter::default() }).unwrap().items {
        let status = match summary.status {
            Status::Running => "running",
            Status::Waiting => "waiting",
            Status::Blocked => "blocked",
            Status::Ended => "ended",
        };
        count(status, 1);
        count("questions", summary.view["questions"].as_array().map_or(0, Vec::len));
    }
    counts
}

async fn check(world: &World) {
    world.settle().await;
    let mut kept = kept(world);
    assert_eq!(kept.remove("in_doubt"), Some(0));
    assert_eq!(kept, counted(world));
}

#[tokio::test]
async fn the_census_is_what_counting_gives_after_all_that_happens_to_runs() {
    let world = World::new().await;
    check(&world).await;
    for (id, flow) in [("two", "Two"), ("ask", "Ask"), ("other", "Ask"), ("pay", "Pay"), ("end", "Brief")] {
        world.start(id, flow, json!({ "x": 1 })).await;
    }
    check(&world).await;
    let worker = world.worker("w").await;
    worker.tasks().await;
    world.engine.answer("ask", approve(), "ann").await.unwrap();
    world.engine.cancel("end", "ann").await.unwrap();
    world.engine.terminate("two", "ann").await.unwrap();
    let fork = Fork { at: Some(1), id: Some("fork".into()), children: None };
    world.engine.fork("other", fork, "ann").await.unwrap();
    check(&world).await;
    world.engine.delete("two").await.unwrap();
    check(&world).await;
    let world = world.crash().await;
    check(&world).await;
    assert_eq!(counted(&world)["questions"], 2, "of the run that nobody answered, and its fork");
}

/// A release that keeps no census, or wrote nothing of it, has opened the store meanwhile.
#[tokio::test]
async fn a_census_of_another_epoch_is_counted_anew() {
    let mut world = World::new().await;
    world.start("ask", "Ask", json!({ "x": 1 })).await;
    for old in [Some(r#"{"epoch": 0, "counts": {}}"#), Some("no census"), None] {
        let value = old.map(|text| text.as_bytes().to_vec());
        let put = Put { table: Table::Setting, key: b"census".to_vec(), value };
        world.store.commit(&Batch { puts: vec![put], ..Batch::default() }).unwrap();
        world = world.crash().await;
        check(&world).await;
        assert_eq!(kept(&world)["questions"], 1);
    }
}
