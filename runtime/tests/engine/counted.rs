//! Counters of what goes wrong or is left out: each moves by what it counts, and by nothing else, as `GET /metrics` shows it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::Arc;

use outlast_kernel::event::{Event, EventKind};
use outlast_kernel::ids::{Millis, RunId};
use outlast_protocol::Code;
use outlast_protocol::schedule::{CatchUp, Overlap, Schedule};
use outlast_runtime::http::{Listener, Served, Server};
use outlast_store::{Batch, FailedSync, RunWrite, Store as _};
use serde_json::{Value as Json, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use super::world::{START, World, code, in_time};

const MINUTE_MS: u64 = 60_000;

/// What is watched; each test says which of them move.
const WATCHED: [&str; 10] = [
    "outlast_write_failures_total{cause=\"full\"}",
    "outlast_write_failures_total{cause=\"refused\"}",
    "outlast_write_failures_total{cause=\"failed\"}",
    "outlast_recovery_failures_total",
    "outlast_run_faults_total",
    "outlast_mailbox_refusals_total",
    "outlast_schedule_starts_total",
    "outlast_schedule_skips_total{reason=\"missed\"}",
    "outlast_schedule_skips_total{reason=\"overlap\"}",
    "outlast_schedule_failures_total",
];

/// Serves the engine of a world and reads what it shows.
async fn metrics(world: &World) -> String {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("socket");
    let (engine, store) = (world.engine.clone(), Arc::new(world.store.clone()));
    let (opened, profile, scripted, access_log) = (Json::Null, None, false, None);
    let served = Served { engine, store, opened, profile, scripted, access_log };
    let server = Server::start(served, vec![Listener::unix(&socket).unwrap()]);
    let mut stream = UnixStream::connect(&socket).await.unwrap();
    let request = b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    server.stop().await;
    answer
}

/// Expects these values, and 0 for all others that are watched.
async fn expect(world: &World, moved: &[(&str, u64)]) {
    let text = metrics(world).await;
    for series in WATCHED {
        let value = text.lines().find_map(|line| line.strip_prefix(series)?.trim().parse::<u64>().ok());
        let expected = moved.iter().find(|(name, _)| series.contains(name)).map_or(0, |(_, count)| *count);
        assert_eq!(value, Some(expected), "{series} in {text}");
    }
}

async fn chat(world: &World, id: &str) {
    world.start(id, "Chat", json!({ "topic": "t" })).await;
}

async fn say(world: &World, id: &str) -> Result<u64, outlast_protocol::ApiError> {
    world.say(id, "Say", json!({ "text": "x" })).await
}

/// Adds an event to a history behind the engine's back: one that no machine takes.
fn spoil(store: &outlast_store::MemoryStore, run: &str) {
    let run = RunId::new(run).unwrap();
    let (head, index) = store.head(&run).unwrap().unwrap();
    let event = Event { n: head.seq.next(), time: Millis(START.0 + 1), digest: 7, kind: EventKind::Closed };
    let write = RunWrite {
        summary: store.summary(&run).unwrap().unwrap().into(),
        run,
        before: head,
        events: vec![event],
        index_before: index,
        index,
        snapshot: None,
        origin: None,
    };
    store.commit(&Batch { runs: vec![write], ..Batch::default() }).unwrap();
}

fn every_minute(overlap: Overlap, catch_up: CatchUp) -> Schedule {
    Schedule {
        flow: "Chat".into(),
        input: json!({ "topic": "x" }),
        cron: vec!["* * * * *".into()],
        time_zone: "UTC".into(),
        overlap,
        catch_up,
        profile: Some("p".into()),
        permissions: None,
    }
}

#[tokio::test]
async fn a_commit_that_finds_no_room_is_counted() {
    let world = World::new().await;
    chat(&world, "r").await;
    expect(&world, &[]).await;
    world.store.fill_disk();
    assert_eq!(code(say(&world, "r").await), Code::DiskFull);
    expect(&world, &[("cause=\"full\"", 1)]).await;
    world.store.empty_disk();
    world.advance(2_000).await;
    say(&world, "r").await.unwrap();
    expect(&world, &[("cause=\"full\"", 1)]).await;
}

#[tokio::test]
async fn a_commit_that_the_store_refuses_is_counted_and_so_is_the_run_that_it_stops() {
    let world = World::new().await;
    chat(&world, "r").await;
    chat(&world, "other").await;
    spoil(&world.store, "r");
    say(&world, "r").await.unwrap_err();
    say(&world, "other").await.unwrap();
    expect(&world, &[("cause=\"refused\"", 1), ("run_faults", 1)]).await;
}

#[tokio::test]
async fn a_disk_that_fails_is_counted_once() {
    let world = World::new().await;
    world.store.fail_next_sync(FailedSync::Lost);
    for id in ["a", "b"] {
        world.try_start(id, "Chat", json!({ "topic": "t" })).await.unwrap_err();
    }
    expect(&world, &[("cause=\"failed\"", 1)]).await;
}

#[tokio::test]
async fn a_run_that_cannot_be_put_back_to_work_is_counted() {
    let world = World::new().await;
    for id in ["bad", "good"] {
        world.start(id, "Two", json!({ "x": 1 })).await;
    }
    let world = world.crash().await;
    let store = world.store.clone();
    world.engine.shutdown().await;
    spoil(&store, "bad");
    let world = world.crash().await;
    world.settle().await;
    expect(&world, &[("recovery_failures", 1)]).await;
    assert_eq!(world.view("good").await.events, 1);
}

#[tokio::test]
async fn a_message_for_which_a_mailbox_has_no_room_is_counted() {
    let world = World::new().await;
    world
        .deploy(
            r#"flow Late() -> text version 1 {
              message Go
              message Say { text: text }
              start Wait
              state Wait { await Go within 30d   on Go -> Then   on timeout -> end "late" }
              state Then { await Say within 30d   on Say { text: said } -> end said   on timeout -> end "late" }
            }"#,
        )
        .await;
    world.start("r", "Late", json!({})).await;
    let long = json!({ "text": "x".repeat(5 << 20) });
    world.say("r", "Say", long.clone()).await.unwrap();
    expect(&world, &[]).await;
    assert_eq!(code(world.say("r", "Say", long).await), Code::MailboxFull);
    expect(&world, &[("mailbox_refusals", 1)]).await;
}

#[tokio::test]
async fn due_times_are_counted_by_what_becomes_of_them() {
    let world = World::new().await;
    world.engine.put_schedule("s", every_minute(Overlap::Skip, CatchUp::None)).await.unwrap();
    world.advance(MINUTE_MS).await;
    expect(&world, &[("schedule_starts", 1)]).await;
    world.advance(MINUTE_MS).await;
    expect(&world, &[("schedule_starts", 1), ("overlap", 1)]).await;
    let (store, clock) = (world.store.crash(), world.clock.clone());
    drop(world);
    clock.advance(5 * MINUTE_MS + 45_000);
    let world = World::over(store, clock).await;
    world.settle().await;
    expect(&world, &[("missed", 5)]).await;
}

#[tokio::test]
async fn a_look_at_a_schedule_that_fails_is_counted_and_the_due_time_is_not_lost() {
    let world = World::new().await;
    world.engine.put_schedule("s", every_minute(Overlap::Allow, CatchUp::Last)).await.unwrap();
    world.settle().await;
    world.store.refuse_at(0, 1);
    world.clock.advance(MINUTE_MS);
    // Nothing else may be committed meanwhile: it could be what finds no room.
    let failed = async { while !metrics(&world).await.contains("outlast_schedule_failures_total 1\n") {} };
    in_time("the failure", failed).await;
    expect(&world, &[("schedule_failures", 1), ("cause=\"full\"", 1)]).await;
    world.advance(2_000).await;
    expect(&world, &[("schedule_failures", 1), ("cause=\"full\"", 1), ("schedule_starts", 1)]).await;
    assert_eq!(world.view("s@2027-01-15T08:01Z").await.events, 1);
}
