//! Migration: a run goes on with another version wholly or not at all (cases VER-01, VER-02, VER-03).

use outlast_protocol::Code;
use outlast_protocol::requests::{Compatibility, Fork, Migrate};
use outlast_store::{Side, Store as _};
use serde_json::{Value as Json, json};

use super::world::{World, code};

/// A version of a flow that waits in a state of this name, and ends with this text after so many steps.
fn version(number: u32, state: &str, text: &str) -> String {
    format!(
        r#"
edition 1
activity look(x: int) -> int within 1m in all 1h queue "q" effect pure
flow Pinned(x: int) -> text version {number} {{
  message Go
  start {state}
  // A comment makes no difference.
  state {state} {{ await Go within 30d   on Go -> Then   on timeout -> end "late" }}
  state Then {{ do look(x) as y   on ok -> end "{text} {{y}}"   on problem -> end "none" }}
}}
"#
    )
}

fn hash(world: &World) -> String {
    world.engine.flow("Pinned").expect("it is deployed").machine
}

async fn migrate(world: &World, run: &str, machine: &str) -> Json {
    let request = Migrate { machine: machine.into(), open: None };
    world.engine.migrate(run, request, "ann").await.expect("it is looked at")
}

async fn finish(world: &World, run: &str) -> Json {
    world.say(run, "Go", json!({})).await.expect("it is taken");
    let worker = world.worker("w").await;
    let task = worker.task().await;
    worker.done(&task, json!(5)).await;
    world.value(run).await
}

#[tokio::test]
async fn runs_stay_with_their_version_until_they_are_migrated() {
    let world = World::new().await;
    world.deploy(&version(1, "Wait", "old")).await;
    let old = hash(&world);
    for run in ["a", "b", "c"] {
        world.start(run, "Pinned", json!({ "x": 1 })).await;
    }
    world.deploy(&version(2, "Wait", "new")).await;
    let new = hash(&world);
    assert_ne!(old, new);
    let fit = migrate(&world, "a", &new).await;
    assert_eq!(fit, json!({ "run": "a", "fit": "done", "accepted": 2 }));
    assert_eq!(migrate(&world, "a", &new).await["fit"], "same");
    assert_eq!(world.view("a").await.machine, new);
    assert_eq!(world.view("b").await.machine, old);
    let world = world.crash().await;
    assert_eq!(world.view("a").await.machine, new);
    assert_eq!(world.kinds("a").await, ["started", "migrated"]);
    // What was before is explained by the old version, also for a fork.
    let fork = Fork { at: Some(1), id: Some("f".into()), children: None };
    world.engine.fork("a", fork, "ann").await.unwrap();
    let fork = Fork { at: Some(2), id: Some("g".into()), children: None };
    world.engine.fork("a", fork, "ann").await.unwrap();
    for (run, expected) in [("a", "new 5"), ("b", "old 5"), ("f", "old 5"), ("g", "new 5")] {
        assert_eq!(finish(&world, run).await, json!(expected), "{run}");
    }
    assert_eq!(migrate(&world, "b", &new).await["fit"], "ended");
    let frames = super::world::frames(&world.engine, "a", Some("a/0.0")).await;
    assert!(frames.iter().any(|frame| frame.id.as_deref().is_some_and(|id| id.starts_with("a/3."))));
    assert!(world.store.check().unwrap().findings.is_empty());
}

#[tokio::test]
async fn a_run_that_does_not_fit_stays_as_it_is_and_says_why() {
    let world = World::new().await;
    world.deploy(&version(1, "Wait", "old")).await;
    world.start("a", "Pinned", json!({ "x": 1 })).await;
    let before = (world.view("a").await, world.kinds("a").await);
    world.deploy(&version(2, "Elsewhere", "new")).await;
    let new = hash(&world);
    let fit = migrate(&world, "a", &new).await;
    assert_eq!(fit["fit"], "needs_migrate", "{fit}");
    assert!(fit["needs"][0].as_str().is_some_and(|why| !why.is_empty()), "{fit}");
    assert_eq!((world.view("a").await, world.kinds("a").await), before);
    let wrong = Migrate { machine: new, open: Some("perhaps".into()) };
    assert_eq!(code(world.engine.migrate("a", wrong, "ann").await), Code::Invalid);
    let unknown = Migrate { machine: "c0ffee".into(), open: None };
    assert_eq!(code(world.engine.migrate("a", unknown, "ann").await), Code::NotFound);
    let garbage = Compatibility { machine: "{}".into() };
    assert_eq!(code(world.engine.compatibility("a", garbage).await), Code::Invalid);
    assert_eq!(finish(&world, "a").await, json!("old 5"));
}

#[tokio::test]
async fn a_crash_at_any_commit_of_a_migration_leaves_one_version_or_the_other() {
    for commits in 0..2 {
        for side in [Side::BeforeSync, Side::AfterSync] {
            let mut world = World::new().await;
            world.deploy(&version(1, "Wait", "old")).await;
            let old = hash(&world);
            world.start("a", "Pinned", json!({ "x": 1 })).await;
            world.deploy(&version(2, "Wait", "new")).await;
            let new = hash(&world);
            world.store.crash_at(commits, side);
            let request = Migrate { machine: new.clone(), open: None };
            let told = world.engine.migrate("a", request, "ann").await;
            world = world.crash().await;
            let view = world.view("a").await;
            assert!(view.machine == old || view.machine == new, "{commits} {side:?}");
            assert_eq!(view.events, if view.machine == new { 2 } else { 1 }, "{commits} {side:?}");
            assert!(
                told.is_err() || view.machine == new,
                "an acknowledged migration is gone: {commits} {side:?}"
            );
            let fit = migrate(&world, "a", &new).await;
            assert!(matches!(fit["fit"].as_str(), Some("done" | "same")), "{fit}");
            assert_eq!(finish(&world, "a").await, json!("new 5"), "{commits} {side:?}");
        }
    }
}
