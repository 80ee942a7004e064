//! Characters that terminals, files and other programs choke on go through a run as they are, or are refused with a word.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use outlast_protocol::Code;
use outlast_protocol::worker::ReceiptStatus::Accepted;
use outlast_protocol::worker::{OutcomeKind, TaskError};
use serde_json::{Value as Json, json};

use super::world::{World, code};

const MORE: &str = r#"
edition 1
activity tell(text: text, keys: map<int>) -> map<text> within 1m in all 1h queue "q" effect once
flow Odd(text: text) -> text emits text version 1 {
  message Say { text: text }
  start Hear
  state Hear {
    await Say within 30d
    on Say { text: said } emit said -> Tell(said)
    on timeout                      -> end "late"
  }
  state Tell(said: text) {
    do tell(said, map {said: 1}) as back
    on ok                     -> end "{text}{size(back)}"
    on unknown, problem as p  -> end p.text
  }
}
"#;

/// All control characters, a lone carriage return, separators of lines, a mark of direction, what has no glyph, and a pair beyond 16 bits.
fn odd() -> String {
    let controls = (0..0x20).chain(0x7f..0xa0).filter_map(char::from_u32);
    controls.chain("\u{2028}\u{2029}\u{202e}\u{feff}\u{fffe}\u{e000}\u{1f600}a\rb".chars()).collect()
}

async fn world() -> World {
    let world = World::new().await;
    world.deploy(MORE).await;
    world
}

async fn worker(world: &World) -> super::world::Worker {
    let mut request = super::world::register("w", "w-boot", Vec::new());
    request.activities[0].name = "tell".into();
    let session = world.engine.register(request).await.unwrap().session;
    super::world::Worker { engine: world.engine.clone(), session }
}

/// Case LIM-07: what a run is told, hands out, takes back and says comes as it was, over a crash, too.
#[tokio::test]
async fn odd_characters_go_through_a_run_as_they_are() {
    let odd = odd();
    let world = world().await;
    world.start("r", "Odd", json!({ "text": odd })).await;
    world.say("r", "Say", json!({ "text": odd })).await.unwrap();
    let world = world.crash().await;
    let worker = worker(&world).await;
    let task = worker.task().await;
    assert_eq!(task.input, json!({ "text": odd, "keys": { odd.as_str(): 1 } }));
    worker.progress(&[(&task, Some(&odd))]).await;
    let value = json!({ odd.as_str(): odd });
    assert_eq!(worker.done(&task, value.clone()).await, Accepted);
    assert_eq!(world.value("r").await, json!(format!("{odd}1")));
    let world = world.crash().await;
    let events = world.engine.events("r", 0, 100).await.unwrap().items;
    let of = |kind: &str| events.iter().find(|event| event["kind"] == kind).unwrap().clone();
    assert_eq!((&of("done")["value"], &of("emit")["value"]), (&value, &json!(odd)));
    assert_eq!(world.value("r").await, json!(format!("{odd}1")));
}

/// Case LIM-07: a failure's words come as they are, too, and ids that nobody could type or log are refused.
#[tokio::test]
async fn odd_failures_are_told_and_odd_ids_refused() {
    let odd = odd();
    let world = world().await;
    world.start("r", "Odd", json!({ "text": "t" })).await;
    world.say("r", "Say", json!({ "text": "x" })).await.unwrap();
    let worker = worker(&world).await;
    let task = worker.task().await;
    let error = TaskError { kind: "Odd".into(), text: odd.clone(), ..TaskError::default() };
    worker.report(&task, OutcomeKind::Failed { error, cost: None, usage: None }).await;
    assert_eq!(world.value("r").await, json!(odd));
    for c in odd.chars().filter(|c| *c != 'a' && *c != 'b') {
        let refused = world.try_start(&format!("a{c}b"), "Odd", json!({ "text": "t" })).await;
        assert_eq!(code(refused), Code::Invalid, "{c:?}");
    }
    // A half of a pair is no text: it is no JSON either, and never comes this far.
    assert!(serde_json::from_str::<Json>("\"\\ud83d\"").is_err());
}
