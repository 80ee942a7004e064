//! Schedules under a clock that is moved by hand: each due time once, whatever happens to the process.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use outlast_protocol::Code;
use outlast_protocol::schedule::{CatchUp, Kept, Overlap, Schedule};
use outlast_store::Side;
use serde_json::json;

use super::world::{World, code, open_to_look};

const MINUTE: u64 = 60_000;

/// A chat that goes on until it is cancelled, every minute.
fn chat(overlap: Overlap, catch_up: CatchUp) -> Schedule {
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

/// The run that is due so many minutes after the start.
fn run(minutes: u64) -> String {
    format!("s@2027-01-15T08:{minutes:02}Z")
}

async fn runs(world: &World) -> Vec<String> {
    let list = world.engine.list(outlast_store::Filter::default()).await.unwrap();
    let mut runs: Vec<String> = list.items.into_iter().map(|view| view.id).collect();
    runs.sort();
    runs
}

async fn reasons(world: &World) -> Vec<(u64, String)> {
    let schedule = world.engine.schedule("s").await.unwrap();
    schedule.skipped.into_iter().map(|skipped| (skipped.count, skipped.reason)).collect()
}

#[tokio::test]
async fn each_due_time_starts_its_run_once_across_crashes() {
    let mut world = World::new().await;
    let kept = world.engine.put_schedule("s", chat(Overlap::Allow, CatchUp::Last)).await.unwrap();
    assert_eq!((kept.kept, kept.schedule.next[0].as_str()), (Kept::Created, "2027-01-15T08:01:00.000Z"));
    assert_eq!(runs(&world).await, Vec::<String>::new());
    for minutes in 1..=3 {
        world.advance(MINUTE).await;
        let expected: Vec<String> = (1..=minutes).map(run).collect();
        assert_eq!(runs(&world).await, expected);
        world = world.crash().await;
        world.settle().await;
        assert_eq!(runs(&world).await, expected, "after a crash");
    }
}

#[tokio::test]
async fn a_crash_at_any_commit_of_a_due_time_starts_its_run_once_all_the_same() {
    for commits in 0..3 {
        for side in [Side::BeforeSync, Side::AfterSync] {
            let mut world = World::new().await;
            world.engine.put_schedule("s", chat(Overlap::Allow, CatchUp::Last)).await.unwrap();
            world.store.crash_at(commits, side);
            world.advance(MINUTE).await;
            world = world.crash().await;
            world.settle().await;
            assert_eq!(runs(&world).await, [run(1)], "{commits} {side:?}");
        }
    }
}

/// Case CRN-05: five minutes without an engine, under each policy.
#[tokio::test]
async fn what_was_missed_while_nothing_ran_follows_the_policy_and_is_recorded() {
    for (catch_up, expected, missed) in [
        (CatchUp::None, vec![], 5),
        (CatchUp::Last, vec![run(5)], 4),
        (CatchUp::All(2), vec![run(4), run(5)], 3),
    ] {
        let world = World::new().await;
        world.engine.put_schedule("s", chat(Overlap::Allow, catch_up)).await.unwrap();
        let (store, clock) = (world.store.crash(), world.clock.clone());
        drop(world);
        clock.advance(5 * MINUTE + 45_000);
        let world = World::over(store, clock).await;
        world.settle().await;
        assert_eq!(runs(&world).await, expected, "{catch_up:?}");
        assert_eq!(reasons(&world).await, [(missed, "missed".to_owned())], "{catch_up:?}");
        world.advance(15_000).await;
        assert_eq!(runs(&world).await.last(), Some(&run(6)), "{catch_up:?}");
    }
}

/// A command that has the store for a moment starts nothing; what was due stays due, except what a person paused.
#[tokio::test]
async fn an_engine_that_is_there_to_look_starts_nothing_and_leaves_it_due() {
    let world = World::new().await;
    for name in ["s", "t"] {
        world.engine.put_schedule(name, chat(Overlap::QueueAll, CatchUp::Last)).await.unwrap();
    }
    world.engine.pause_schedule("t", true).await.unwrap();
    let (store, clock) = (world.store.crash(), world.clock.clone());
    drop(world);
    clock.advance(5 * MINUTE + 45_000);
    let engine = open_to_look(&store, &clock).await.unwrap();
    let looking = World { store, clock, engine };
    looking.settle().await;
    looking.advance(MINUTE).await;
    assert_eq!(looking.engine.status()["schedules"], false);
    assert_eq!((runs(&looking).await, reasons(&looking).await), (vec![], vec![]));
    looking.engine.pause_schedule("t", false).await.unwrap();
    assert_eq!(looking.engine.schedule("t").await.unwrap().skipped[0].reason, "paused");
    let world = looking.crash().await;
    world.settle().await;
    assert_eq!((runs(&world).await, world.engine.status()["schedules"] == true), (vec![run(6)], true));
}

/// Case CRN-07: a queued due time keeps its own time, also over a restart.
#[tokio::test]
async fn a_queued_due_time_is_started_under_its_own_name_when_the_run_before_has_ended() {
    let world = World::new().await;
    world.engine.put_schedule("s", chat(Overlap::QueueOne, CatchUp::Last)).await.unwrap();
    for _ in 0..3 {
        world.advance(MINUTE).await;
    }
    assert_eq!(runs(&world).await, [run(1)]);
    assert_eq!(reasons(&world).await, [(1, "overlap".to_owned())]);
    let world = world.crash().await;
    world.settle().await;
    assert_eq!(world.engine.schedule("s").await.unwrap().queue, ["2027-01-15T08:02:00.000Z"]);
    world.engine.cancel(&run(1), "ann").await.unwrap();
    world.settle().await;
    world.settle().await;
    assert_eq!(runs(&world).await, [run(1), run(2)]);
}

#[tokio::test]
async fn the_run_before_can_be_cancelled() {
    let world = World::new().await;
    world.engine.put_schedule("s", chat(Overlap::CancelPrevious, CatchUp::Last)).await.unwrap();
    world.advance(MINUTE).await;
    world.advance(MINUTE).await;
    world.settle().await;
    assert_eq!(runs(&world).await, [run(1), run(2)]);
    assert_eq!(world.view(&run(1)).await.outcome.unwrap().kind, "cancelled");
    assert_eq!(world.view(&run(2)).await.status, "waiting");
}

#[tokio::test]
async fn pauses_changes_and_removals_are_durable() {
    let world = World::new().await;
    let schedule = chat(Overlap::Allow, CatchUp::All(9));
    world.engine.put_schedule("s", schedule.clone()).await.unwrap();
    world.engine.pause_schedule("s", true).await.unwrap();
    let world = world.crash().await;
    world.advance(2 * MINUTE).await;
    world.engine.pause_schedule("s", false).await.unwrap();
    assert_eq!(reasons(&world).await, [(2, "paused".to_owned())]);
    let again = world.engine.put_schedule("s", schedule.clone()).await.unwrap();
    assert_eq!(again.kept, Kept::Unchanged);
    let changed = Schedule { cron: vec!["*/5 * * * *".into()], ..schedule };
    assert_eq!(world.engine.put_schedule("s", changed).await.unwrap().kept, Kept::Changed);
    let now = world.engine.run_schedule_now("s").await.unwrap();
    assert!(now.id.starts_with("s~"), "{}", now.id);
    world.advance(4 * MINUTE).await;
    assert_eq!(runs(&world).await, [run(5), now.id.clone()]);
    world.engine.remove_schedule("s").await.unwrap();
    let world = world.crash().await;
    assert_eq!(code(world.engine.schedule("s").await), Code::NotFound);
    world.advance(10 * MINUTE).await;
    assert_eq!(runs(&world).await.len(), 2);
}

#[tokio::test]
async fn definitions_that_cannot_work_are_refused() {
    let world = World::new().await;
    let fits = chat(Overlap::Skip, CatchUp::Last);
    for (name, schedule, expected) in [
        ("a@b", fits.clone(), Code::Invalid),
        ("", fits.clone(), Code::Invalid),
        ("s", Schedule { cron: vec![], ..fits.clone() }, Code::Invalid),
        ("s", Schedule { cron: vec!["0 0 30 2 *".into()], ..fits.clone() }, Code::Invalid),
        ("s", Schedule { time_zone: "Nowhere".into(), ..fits.clone() }, Code::Invalid),
        ("s", Schedule { input: json!({ "topic": 1 }), ..fits.clone() }, Code::Invalid),
        ("s", Schedule { flow: "None".into(), ..fits }, Code::NotFound),
    ] {
        assert_eq!(code(world.engine.put_schedule(name, schedule).await), expected, "{name:?}");
    }
}
