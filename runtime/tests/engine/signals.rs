//! Messages of many senders: bursts, the same one again, several at one moment, before the run is there (cases SIG-02, SIG-05 to SIG-08).
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;

use outlast_protocol::requests::{Fork, Send};
use outlast_protocol::{ApiError, Code};
use outlast_store::Side;
use serde_json::{Value as Json, json};

use super::world::{World, code, start};

const COUNTING: &str = r#"
edition 1
flow Sum(from: int) -> int version 1 {
  message Add { by: int }
  data sum: int = from
  start Wait
  state Wait {
    await Add, closed within 30d
    on Add { by }      set sum += by -> Wait
    on closed, timeout               -> end sum
  }
}
"#;

async fn sums() -> World {
    let world = World::new().await;
    world.deploy(COUNTING).await;
    world
}

fn add(by: u64, id: &str) -> Send {
    Send { name: "Add".into(), value: json!({ "by": by }), id: Some(id.into()) }
}

fn say(text: &str, id: Option<&str>) -> Send {
    Send { name: "Say".into(), value: json!({ "text": text }), id: id.map(str::to_owned) }
}

async fn accepted(world: &World, run: &str, message: Send) -> Result<u64, ApiError> {
    world.engine.message(run, message, "ann").await.map(|answer| answer.accepted)
}

/// What a `Chat` has logged, word by word.
async fn words(world: &World, run: &str) -> Vec<String> {
    world.say(run, "closed", json!(null)).await.unwrap();
    let log = world.value(run).await;
    log.as_str().unwrap().split(' ').skip(1).map(str::to_owned).collect()
}

/// Case SIG-02: 200 messages of one kind from eight senders, which send again what was not acknowledged; crashes in between. Each is taken
/// once, and those of one sender in their order.
#[tokio::test]
async fn a_burst_of_eight_senders_is_taken_once_each_and_in_the_order_of_each() {
    const SENDERS: usize = 8;
    const EACH: usize = 25;
    let mut world = World::new().await;
    world.start("r", "Chat", json!({ "topic": "t" })).await;
    let mut next = [0; SENDERS];
    let mut crashes: usize = 0;
    while next.iter().any(|next| *next < EACH) {
        let commits = [2, 17, 0, 9, 30, 5, 1][crashes % 7];
        world.store.crash_at(commits, [Side::BeforeSync, Side::AfterSync][crashes % 2]);
        let mut senders = tokio::task::JoinSet::new();
        for (sender, first) in next.into_iter().enumerate() {
            let engine = world.engine.clone();
            senders.spawn(async move {
                let mut at = first;
                while at < EACH {
                    let name = format!("{sender}.{at}");
                    if engine.message("r", say(&name, Some(&name)), "ann").await.is_err() {
                        break;
                    }
                    at += 1;
                }
                (sender, at)
            });
        }
        for (sender, at) in senders.join_all().await {
            next[sender] = at;
        }
        world = world.crash().await;
        crashes += 1;
    }
    assert!(crashes > 3, "{crashes} crashes");
    let mut taken: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for word in words(&world, "r").await {
        let (sender, at) = word.split_once('.').unwrap();
        taken.entry(sender.parse().unwrap()).or_default().push(at.parse().unwrap());
    }
    let expected: BTreeMap<usize, Vec<usize>> =
        (0..SENDERS).map(|sender| (sender, (0..EACH).collect())).collect();
    assert_eq!(taken, expected, "after {crashes} crashes");
}

/// Case SIG-05: the same message at once, after a restart, after the end; another one under its id; and in a fork, whose ids are its own.
#[tokio::test]
async fn the_same_message_again_counts_once_and_has_the_first_answer() {
    let world = sums().await;
    world.start("r", "Sum", json!({ "from": 0 })).await;
    let before = accepted(&world, "r", add(1, "before")).await.unwrap();
    let at_once = tokio::join!(
        accepted(&world, "r", add(5, "k")),
        accepted(&world, "r", add(5, "k")),
        accepted(&world, "r", add(5, "k"))
    );
    let first = at_once.0.unwrap();
    assert_eq!((first, at_once.1.unwrap(), at_once.2.unwrap()), (before + 1, first, first));
    let world = world.crash().await;
    assert_eq!(accepted(&world, "r", add(5, "k")).await.unwrap(), first);
    assert_eq!(code(accepted(&world, "r", add(6, "k")).await), Code::Conflict);
    let fork = Fork { at: Some(first), id: Some("f".into()), children: None };
    world.engine.fork("r", fork, "ann").await.unwrap();
    assert!(accepted(&world, "f", add(5, "k")).await.unwrap() > first, "a fork begins with no ids");
    for (run, sum) in [("r", 6), ("f", 11)] {
        world.say(run, "closed", json!(null)).await.unwrap();
        assert_eq!(world.value(run).await, json!(sum), "{run}");
    }
    let world = world.crash().await;
    assert_eq!(accepted(&world, "r", add(5, "k")).await.unwrap(), first, "it has ended since");
    assert_eq!(code(accepted(&world, "r", add(6, "k")).await), Code::Conflict);
    assert_eq!(code(accepted(&world, "r", add(5, "new")).await), Code::RunEnded);
    assert_eq!(world.value("r").await, json!(6));
}

/// Case SIG-06: a hundred messages within one moment are taken in the order of their numbers, and stay so.
#[tokio::test]
async fn messages_of_one_moment_are_taken_in_the_order_of_their_acceptance() {
    let world = World::new().await;
    world.start("r", "Chat", json!({ "topic": "t" })).await;
    let mut sending = tokio::task::JoinSet::new();
    for number in 0..100 {
        let engine = world.engine.clone();
        sending.spawn(async move {
            let sent = engine.message("r", say(&number.to_string(), None), "ann").await;
            (sent.unwrap().accepted, number.to_string())
        });
    }
    let mut sent = sending.join_all().await;
    sent.sort_unstable();
    let expected: Vec<String> = sent.into_iter().map(|(_, number)| number).collect();
    assert_eq!(expected, (0..100).map(|number| number.to_string()).collect::<Vec<_>>(), "as they were sent");
    let times = |events: &[Json]| {
        let mut times: Vec<String> =
            events.iter().filter_map(|event| Some(event["time"].as_str()?.to_owned())).collect();
        times.dedup();
        times.len()
    };
    assert_eq!(times(&world.engine.events("r", 0, 1_000).await.unwrap().items), 1, "the clock stood still");
    let world = world.crash().await;
    assert_eq!(words(&world, "r").await, expected);
}

/// Case SIG-07: no history has to roll over here; a run to which messages come all the time takes them all, and no more of it is in
/// memory than of one that is left in peace.
#[tokio::test]
async fn a_run_to_which_messages_come_all_the_time_takes_them_all_and_stays_light() {
    let world = sums().await;
    world.start("r", "Sum", json!({ "from": 0 })).await;
    let weight = |world: &World| world.engine.status()["hydrated"]["bytes"].as_u64().unwrap();
    let mut light = 0;
    for number in 0..3_000_u64 {
        world.clock.advance(20);
        world.say("r", "Add", json!({ "by": 1 })).await.unwrap();
        if number == 100 {
            light = weight(&world);
        }
    }
    assert!(weight(&world) <= 2 * light, "{light} bytes became {}", weight(&world));
    assert_eq!(world.view("r").await.unread, Vec::<Json>::new());
    world.say("r", "closed", json!(null)).await.unwrap();
    assert_eq!(world.value("r").await, json!(3_000));
}

/// Case SIG-08: two start the same run at one moment, each with a message of its own. There is one run, and it has both; who repeats the
/// start brings nothing twice. A message alone starts nothing.
#[tokio::test]
async fn two_who_start_a_run_with_a_message_each_share_it_and_both_are_heard() {
    let world = World::new().await;
    let begin = |text: &'static str, id: Option<&'static str>| {
        let mut request = start("r", "Chat", json!({ "topic": "t" }));
        request.messages = vec![say(text, id)];
        let engine = world.engine.clone();
        async move { engine.start(request, "ann").await }
    };
    let (one, two) = tokio::join!(begin("one", Some("1")), begin("two", Some("2")));
    let existing = [one.unwrap().1, two.unwrap().1];
    assert_eq!(existing.iter().filter(|existing| **existing).count(), 1, "{existing:?}");
    for (text, id) in [("one", "1"), ("two", "2")] {
        let (view, existing) = begin(text, Some(id)).await.unwrap();
        assert_eq!((existing, view.events), (true, 3));
    }
    assert_eq!(code(begin("three", Some("1")).await), Code::Conflict);
    // Without an id it belongs to the request that began the run: nobody could tell a repetition from another one.
    assert_eq!(begin("four", None).await.unwrap().0.events, 3);
    assert_eq!(code(world.say("nobody", "Say", json!({ "text": "x" })).await), Code::NotFound);
    assert_eq!(code(world.engine.get("nobody").await), Code::NotFound);
    let world = world.crash().await;
    let mut heard = words(&world, "r").await;
    heard.sort_unstable();
    assert_eq!(heard, ["one", "two"]);
    let mut again = start("r", "Chat", json!({ "topic": "t" }));
    again.messages = vec![say("one", Some("1"))];
    let (view, existing) = world.engine.start(again, "ann").await.unwrap();
    assert_eq!(
        (existing, view.status.as_str()),
        (true, "ended"),
        "a lost answer is repeated after the end, too"
    );
}
