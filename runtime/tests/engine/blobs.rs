//! Values by hash: large ones stand once, what results name stays as long as the run, and a turn costs what is new (invariants 19 and 31).
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use outlast_protocol::Code;
use outlast_protocol::worker::ReceiptStatus::Accepted;
use outlast_store::{BlobId, Store as _};
use serde_json::{Value as Json, json};

use super::world::{World, code, in_time};

const HOUR_MS: u64 = 3_600_000;

async fn put(world: &World, bytes: &[u8]) -> String {
    let hash = BlobId::of(bytes).to_string();
    world.engine.put_blob(&hash, bytes.to_vec()).await.unwrap();
    hash
}

fn there(world: &World, hash: &str) -> bool {
    world.store.blob(&BlobId::parse(hash).unwrap()).unwrap().is_some()
}

/// Lets time pass until what nobody names is gone.
async fn hours_later(world: &World, lost: &str) {
    world.advance(2 * HOUR_MS).await;
    in_time("the sweep", async {
        while there(world, lost) {
            world.settle().await;
        }
    })
    .await;
    assert_eq!(world.store.check().unwrap().findings, Vec::<String>::new());
}

#[tokio::test]
async fn what_a_result_names_stays_with_its_run_and_goes_with_it() {
    let world = World::new().await;
    let worker = world.worker("w").await;
    let wrong = BlobId::of(b"other").to_string();
    assert_eq!(code(world.engine.put_blob(&wrong, b"whole".to_vec()).await), Code::Invalid);
    assert_eq!(code(world.engine.put_blob("zz", b"whole".to_vec()).await), Code::Invalid);
    world.start("a", "Pay", json!({ "x": 1 })).await;
    let task = worker.task().await;
    let (kept, lost) = (put(&world, b"the whole output").await, put(&world, b"of a worker that died").await);
    assert_eq!(worker.done(&task, json!(format!("cut; the whole is blob:{kept}"))).await, Accepted);
    assert_eq!(world.value("a").await, json!(format!("cut; the whole is blob:{kept}")));
    // Also through a crash.
    let world = world.crash().await;
    assert!(there(&world, &kept) && there(&world, &lost));
    hours_later(&world, &lost).await;
    assert!(there(&world, &kept));
    let records = world.engine.export("a", None).await.unwrap().items;
    let elsewhere = World::new().await;
    elsewhere.engine.import(records.clone()).await.unwrap();
    let lost_there = put(&elsewhere, b"x").await;
    hours_later(&elsewhere, &lost_there).await;
    assert!(there(&elsewhere, &kept));
    assert_eq!(elsewhere.engine.export("a", None).await.unwrap().items, records);
    let mut changed = records;
    for record in &mut changed {
        if record["record"] == "blob" {
            record["text"] = json!("another output");
        }
    }
    let refused = World::new().await.engine.import(changed).await.unwrap_err();
    assert!(refused.message.contains("do not have its hash"), "{refused:?}");
    world.engine.delete("a").await.unwrap();
    in_time("the purge", async {
        while there(&world, &kept) {
            world.settle().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_large_value_stands_once_for_all_runs_that_have_it() {
    let world = World::new().await;
    let topic = "t".repeat(20_000);
    for id in ["a", "b"] {
        world.start(id, "Chat", json!({ "topic": topic })).await;
    }
    let weighed = world.engine.usages(None).await.unwrap().items;
    for item in &weighed {
        let bytes = |name: &str| item[name].as_u64().unwrap();
        assert!(bytes("blob_bytes") > 20_000 && bytes("history_bytes") < 2_000, "{item}");
    }
    world.engine.terminate("a", "ann").await.unwrap();
    world.engine.delete("a").await.unwrap();
    in_time("the purge", async {
        while !world.store.deleted(None, 9).unwrap().is_empty() {
            world.settle().await;
        }
    })
    .await;
    let world = world.crash().await;
    world.say("b", "closed", Json::Null).await.unwrap();
    assert_eq!(world.value("b").await, json!(topic));
    assert_eq!(world.store.check().unwrap().findings, Vec::<String>::new());
}

/// Invariant 31: what is written for a turn of a conversation is what is new in it, however long the conversation is.
#[tokio::test]
async fn a_turn_of_a_long_conversation_writes_what_is_new_in_it() {
    const TURNS: u64 = 240;
    const NEW: u64 = 1_000;
    let world = World::new().await;
    world.start("a", "Chat", json!({ "topic": "t" })).await;
    let mut written = vec![world.store.written_bytes()];
    for turn in 0..TURNS {
        let text = format!("{turn:04}").repeat(usize::try_from(NEW).unwrap() / 4);
        world.say("a", "Say", json!({ "text": text })).await.unwrap();
        written.push(world.store.written_bytes());
    }
    let between = |from: usize, to: usize| written[to] - written[from];
    // Nearly all turns write their own event, a summary and a head.
    let median = {
        let mut turns: Vec<u64> = written.windows(2).map(|pair| pair[1] - pair[0]).collect();
        turns.sort_unstable();
        turns[turns.len() / 2]
    };
    assert!(median < 3 * NEW, "{median} bytes a turn");
    // With snapshots, which come the less often the larger they are, all of it is still a small multiple of what is new.
    assert!(between(0, 240) < 5 * TURNS * NEW, "{} bytes", between(0, 240));
    assert!(between(120, 240) < 3 * between(0, 120), "{} after {}", between(120, 240), between(0, 120));
}
