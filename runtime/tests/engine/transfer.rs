//! Runs carried from one store to another: the same records there and back, nothing that is not whole, nothing twice.

use std::sync::Arc;

use outlast_protocol::Code;
use outlast_protocol::requests::Fork;
use outlast_runtime::engine::ManualClock;
use outlast_store::{MemoryStore, Side, Store as _};
use serde_json::{Value as Json, json};

use super::world::{START, World, code};

/// A world whose store has never seen a flow.
async fn elsewhere() -> World {
    World::over(MemoryStore::new(), Arc::new(ManualClock::new(START))).await
}

async fn export(world: &World, run: &str) -> Vec<Json> {
    let (mut records, mut cursor) = (Vec::new(), None);
    loop {
        let page = world.engine.export(run, cursor).await.expect("the run is there");
        records.extend(page.items);
        cursor = page.next;
        if cursor.is_none() {
            return records;
        }
    }
}

fn text(records: &[Json]) -> String {
    records.iter().map(|record| record.to_string() + "\n").collect()
}

async fn talk(world: &World, run: &str) {
    world.start(run, "Chat", json!({ "topic": "t" })).await;
    for said in ["1", "0.1", "\u{1f600} \u{0}"] {
        world.say(run, "Say", json!({ "text": said })).await.expect("it is taken");
    }
}

#[tokio::test]
async fn a_run_is_the_same_there_and_back_and_goes_on_there() {
    let here = World::new().await;
    here.engine.put_profile("p", json!({ "name": "p", "directory": "/d" })).await.unwrap();
    talk(&here, "a").await;
    let records = export(&here, "a").await;
    let kinds: Vec<&str> = records.iter().filter_map(|record| record["record"].as_str()).collect();
    assert_eq!(
        kinds,
        ["run", "machine", "source", "profile", "event", "event", "event", "event", "end"],
        "{records:?}"
    );
    for pair in records.windows(2) {
        assert!(pair[1]["id"].is_string() && pair[1]["parent"].is_string(), "{pair:?}");
    }
    let there = elsewhere().await;
    let (view, existing) = there.engine.import(records.clone()).await.unwrap();
    assert!(!existing);
    let mut as_it_was = here.view("a").await;
    assert_eq!(view, as_it_was);
    assert_eq!(text(&export(&there, "a").await), text(&records));
    let there = there.crash().await;
    assert_eq!(text(&export(&there, "a").await), text(&records));
    // It needs nothing but what was carried.
    there.say("a", "closed", Json::Null).await.unwrap();
    assert_eq!(there.value("a").await, json!("t 1 0.1 \u{1f600} \u{0}"));
    assert_eq!(there.engine.profile("p").unwrap(), Some(json!({ "name": "p", "directory": "/d" })));
    // The same again finds it, also now that it has gone on.
    let (view, existing) = there.engine.import(records.clone()).await.unwrap();
    assert!(existing && view.status == "ended");
    let (view, existing) = here.engine.import(records).await.unwrap();
    as_it_was.updated_at.clone_from(&view.updated_at);
    assert_eq!((view, existing), (as_it_was, true));
    assert!(there.store.check().unwrap().findings.is_empty());
}

#[tokio::test]
async fn a_fork_is_carried_without_the_runs_that_it_came_from() {
    let here = World::new().await;
    talk(&here, "a").await;
    let fork = |at, id: &str| Fork { at: Some(at), id: Some(id.into()), children: None };
    here.engine.fork("a", fork(2, "b"), "t").await.unwrap();
    here.say("b", "Say", json!({ "text": "b" })).await.unwrap();
    here.engine.fork("b", fork(4, "c"), "t").await.unwrap();
    let records = export(&here, "c").await;
    let there = elsewhere().await;
    there.engine.import(records.clone()).await.unwrap();
    let there = there.crash().await;
    assert_eq!(text(&export(&there, "c").await), text(&records));
    assert_eq!(there.view("c").await, here.view("c").await);
    // It is forked there like any other, and its parents may follow.
    there.engine.fork("c", fork(3, "d"), "t").await.unwrap();
    for (id, value) in [("c", "t 1 b"), ("d", "t 1")] {
        there.say(id, "closed", Json::Null).await.unwrap();
        assert_eq!(there.value(id).await, json!(value), "{id}");
    }
    there.engine.import(export(&here, "a").await).await.unwrap();
    there.engine.import(export(&here, "b").await).await.unwrap();
    let tree = there.engine.tree("c").await.unwrap().items;
    assert_eq!(tree.iter().map(|run| run.id.as_str()).collect::<Vec<_>>(), ["a", "b", "c", "d"]);
    assert!(there.store.check().unwrap().findings.is_empty());
}

#[tokio::test]
async fn what_was_in_hand_there_is_in_doubt_here() {
    let here = World::new().await;
    let worker = here.worker("w").await;
    here.start("a", "Pay", json!({ "x": 1 })).await;
    let task = worker.task().await;
    let there = elsewhere().await;
    there.engine.import(export(&here, "a").await).await.unwrap();
    assert_eq!(there.value("a").await, json!("unknown"));
    let worker = there.worker("w").await;
    assert!(worker.tasks().await.is_empty(), "{task:?}");
}

#[tokio::test]
async fn records_that_are_not_whole_or_were_changed_are_refused() {
    let here = World::new().await;
    talk(&here, "a").await;
    let records = export(&here, "a").await;
    let there = elsewhere().await;
    let without = |kind: &str| {
        let mut records = records.clone();
        let at = records.iter().position(|record| record["record"] == kind).expect("there is one");
        records.remove(at);
        records
    };
    let with = |line: usize, pointer: &str, value: Json| {
        let mut records = records.clone();
        *records[line].pointer_mut(pointer).expect("it is there") = value;
        records
    };
    assert_eq!(records[4]["record"], "event");
    for (what, records) in [
        ("nothing", Vec::new()),
        ("no run", without("run")),
        ("no end", without("end")),
        ("no machine", without("machine")),
        ("an event less", without("event")),
        ("a swap", [&records[..4], &[records[5].clone(), records[4].clone()], &records[6..]].concat()),
        ("a newer format", with(0, "/format", json!(2))),
        ("another machine", with(1, "/machine", json!("{}"))),
        ("another digest", with(4, "/event/g", json!(7))),
        ("another time", with(4, "/event/t", json!(0))),
        ("a time to come", with(6, "/event/t", json!(START.0 + 100 * 3_600_000))),
        ("a field less", with(4, "/event/k", json!({ "message": {} }))),
        ("a parent", with(0, "/parent", json!(["b", 2]))),
        ("something else", with(5, "/record", json!("song"))),
        ("another text in the last message", with(6, "/event/k/message/v/text", json!("edited"))),
        ("another sender of the last message", with(6, "/event/k/message/y", json!("eve"))),
        ("another seal", with(7, "/seal", json!("00"))),
    ] {
        let refused = there.engine.import(records).await;
        assert_eq!(code(refused), Code::Invalid, "{what}");
        assert_eq!(code(there.engine.get("a").await), Code::NotFound, "{what}");
    }
    there.engine.import(records).await.unwrap();
    assert_eq!(code(there.engine.export("a", Some("9-12".into())).await), Code::InvalidCursor);
    assert_eq!(code(there.engine.export("b", None).await), Code::NotFound);
}

#[tokio::test]
async fn a_run_is_never_replaced() {
    let here = World::new().await;
    talk(&here, "a").await;
    let early = export(&here, "a").await;
    here.say("a", "Say", json!({ "text": "more" })).await.unwrap();
    let late = export(&here, "a").await;
    let there = World::new().await;
    there.engine.import(early).await.unwrap();
    let refused = there.engine.import(late.clone()).await.unwrap_err();
    assert_eq!(refused.code, Code::Conflict);
    assert!(refused.message.contains("only its first 4 events"), "{refused:?}");
    there.say("a", "Say", json!({ "text": "other" })).await.unwrap();
    let refused = there.engine.import(late).await.unwrap_err();
    assert!(refused.message.contains("another one from event 5 on"), "{refused:?}");
}

#[tokio::test]
async fn a_crash_at_any_commit_of_an_import_leaves_the_whole_run_or_nothing() {
    let here = World::new().await;
    talk(&here, "a").await;
    let records = export(&here, "a").await;
    for commits in 0..3 {
        for side in [Side::BeforeSync, Side::AfterSync] {
            let mut there = elsewhere().await;
            there.store.crash_at(commits, side);
            for _ in 0..4 {
                if there.engine.import(records.clone()).await.is_ok() {
                    break;
                }
                there = there.crash().await;
                match there.engine.get("a").await {
                    Ok(view) => assert_eq!(view.events, 4, "{commits} {side:?}"),
                    Err(error) => assert_eq!(error.code, Code::NotFound, "{commits} {side:?}"),
                }
            }
            assert_eq!(text(&export(&there, "a").await), text(&records), "{commits} {side:?}");
        }
    }
}

#[tokio::test]
async fn runs_are_weighed() {
    let world = World::new().await;
    talk(&world, "a").await;
    world.engine.fork("a", Fork { at: Some(2), id: Some("b".into()), children: None }, "t").await.unwrap();
    let usage = world.engine.usage("b").await.unwrap();
    assert_eq!((&usage["events"], &usage["shared_events"]), (&json!(3), &json!(2)));
    let all = world.engine.usages(None).await.unwrap().items;
    assert_eq!(all.len(), 2);
    assert!(all.contains(&usage) && all.contains(&world.engine.usage("a").await.unwrap()), "{all:?}");
    assert_eq!(code(world.engine.usage("c").await), Code::NotFound);
}
