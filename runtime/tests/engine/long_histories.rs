//! A run that goes round and round for weeks: its next round, a look at it and a restart cost what they cost at the beginning.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use serde_json::json;

use super::world::World;

const ROUNDS: u64 = 20_000;

const MORE: &str = r#"
edition 1
flow Rounds() -> int emits int version 1 {
  message Tick
  data rounds: int = 0
  start Wait
  state Wait {
    await Tick, closed within 30d
    on Tick            set rounds += 1  emit rounds  emit -rounds -> Wait
    on closed, timeout -> end rounds
  }
}
"#;

async fn rounds(world: &World, count: u64) {
    for _ in 0..count {
        world.say("r", "Tick", json!({})).await.unwrap();
    }
}

/// Bytes of what is in memory: of one run.
fn weight(world: &World) -> u64 {
    let hydrated = &world.engine.status()["hydrated"];
    assert_eq!(hydrated["runs"], 1);
    hydrated["bytes"].as_u64().unwrap()
}

/// Case LIM-06, of as many rounds as there: there is no length at which a history ends, so none at which a run has to begin anew; what a round costs does not grow
/// with the rounds before it, and of what a restart reads only the newest part is replayed.
#[tokio::test]
async fn a_run_of_twenty_thousand_rounds_is_as_light_as_a_young_one() {
    let world = World::new().await;
    world.deploy(MORE).await;
    world.start("r", "Rounds", json!({})).await;
    rounds(&world, 100).await;
    let young = weight(&world);
    rounds(&world, ROUNDS - 100).await;
    let view = world.view("r").await;
    assert_eq!((view.events, view.status.as_str()), (1 + ROUNDS, "waiting"));
    assert!(weight(&world) <= 2 * young, "{young} bytes became {}", weight(&world));

    let world = world.crash().await;
    world.settle().await;
    assert_eq!(world.engine.status()["hydrated"]["runs"], 0, "a run that waits is not read at a restart");
    rounds(&world, 1).await;
    assert!(weight(&world) <= 2 * young, "{young} bytes became {}", weight(&world));
    // A page of its history is a page, wherever it lies.
    for after in [0, ROUNDS - 10] {
        let page = world.engine.events("r", after, 10).await.unwrap();
        // What it emits stands under the number of the event that made it.
        let mut numbers: Vec<u64> = page.items.iter().map(|event| event["n"].as_u64().unwrap()).collect();
        numbers.dedup();
        assert_eq!(numbers, (after + 1..=after + 10).collect::<Vec<_>>());
    }
    world.say("r", "closed", json!(null)).await.unwrap();
    assert_eq!(world.value("r").await, json!(ROUNDS + 1));
}
