//! Wide groups: thousands of members, results in the order of their items, crashes in the middle (cases FAN-02, FAN-03).
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use outlast_protocol::worker::{Outcome, OutcomeKind, Report, Task, TaskError};
use serde_json::{Value as Json, json};

use super::world::{Worker, World, done};

const MORE: &str = r#"
edition 1
activity look(x: int) -> int within 1h in all 2h queue "q" effect pure

flow Wide(xs: list<int>) -> list<int> version 1 {
  start All
  state All { each x in xs at most 64 as ys { do look(x) }   on ok -> end ys   on problem -> end [] }
}

flow Marked(xs: list<int>) -> list<text> version 1 {
  start All
  state All { each x in xs at most 50 keep going as ys { do look(x) }   on ok -> end [mark(y) for y in ys] }
}

flow Outer(groups: list<int>) -> list<int> version 1 {
  start All
  state All { each group in groups at most 3 as sums { run Inner(group) }   on ok -> end sums }
}

flow Inner(group: int) -> int version 1 {
  start All
  state All { each i in range(0, 4) at most 2 as ys { do look(10 * group + i) }   on ok -> end size(ys)   on problem -> end 0 }
}

fn mark(slot: Slot<int>) -> text =
  match slot { Done { value } => "{value}", Failed => "failed", Cut => "cut", NotStarted => "not started" }
"#;

async fn world() -> World {
    let world = World::new().await;
    world.deploy(MORE).await;
    world
}

/// A worker with room for many tasks.
async fn wide(world: &World, name: &str) -> Worker {
    let mut request = super::world::register(name, &format!("{name}-boot"), Vec::new());
    request.concurrency = 64;
    let session = world.engine.register(request).await.unwrap().session;
    Worker { engine: world.engine.clone(), session }
}

async fn report(worker: &Worker, results: Vec<(&Task, OutcomeKind)>) {
    let results =
        results.into_iter().map(|(task, kind)| Outcome { token: task.token.clone(), kind }).collect();
    worker.engine.report(Report { session: worker.session.clone(), results }).await.unwrap();
}

fn item(task: &Task) -> u64 {
    task.input["x"].as_u64().unwrap()
}

/// Case FAN-02: of 6,000 members half are done when the process dies; the join comes after the last one, with all results.
#[tokio::test]
async fn a_join_of_six_thousand_members_waits_for_the_last_one_over_a_crash() {
    const ITEMS: u64 = 6_000;
    let mut world = world().await;
    let mut worker = wide(&world, "w").await;
    world.start("r", "Wide", json!({ "xs": (0..ITEMS).collect::<Vec<_>>() })).await;
    let mut count = 0;
    while count < ITEMS {
        let tasks = worker.tasks().await;
        assert!(!tasks.is_empty(), "{count}: {:?}", world.view("r").await.waiting_for);
        assert!(world.view("r").await.outcome.is_none(), "after {count}");
        count += tasks.len() as u64;
        report(&worker, tasks.iter().map(|task| (task, done(json!(2 * item(task))))).collect()).await;
        if (ITEMS / 2..ITEMS / 2 + 10).contains(&count) {
            world = world.crash().await;
            world.engine.worker_gone("w-boot").await;
            worker = wide(&world, "w").await;
            world.settle().await;
        }
    }
    assert_eq!(world.value("r").await, json!((0..ITEMS).map(|x| 2 * x).collect::<Vec<_>>()));
    assert_eq!(world.view("r").await.events, 1 + ITEMS, "nothing was done twice");
}

/// Case FAN-03: fifty members end in reverse order, one fails, and the process dies after 25; each result stands where its item stands.
#[tokio::test]
async fn results_that_come_in_reverse_order_stand_where_their_items_stand() {
    let mut world = world().await;
    let mut worker = wide(&world, "w").await;
    world.start("r", "Marked", json!({ "xs": (0..50).collect::<Vec<_>>() })).await;
    let mut tasks = Vec::new();
    while tasks.len() < 50 {
        tasks.extend(worker.tasks().await);
    }
    tasks.sort_by_key(|task| std::cmp::Reverse(item(task)));
    for (count, task) in tasks.iter().enumerate() {
        if count == 25 {
            world = world.crash().await;
            let mut again = super::world::register("w", "w-boot", Vec::new());
            again.concurrency = 64;
            again.holding = tasks[count..].iter().map(|task| task.token.clone()).collect();
            let session = world.engine.register(again).await.unwrap().session;
            worker = Worker { engine: world.engine.clone(), session };
        }
        let kind = if item(task) == 7 {
            let error = TaskError { kind: "Odd".into(), text: "no".into(), ..TaskError::default() };
            OutcomeKind::Failed { error, cost: None, usage: None }
        } else {
            done(json!(item(task)))
        };
        report(&worker, vec![(task, kind)]).await;
    }
    let expected: Vec<Json> =
        (0..50).map(|x| if x == 7 { json!("failed") } else { json!(x.to_string()) }).collect();
    assert_eq!(world.value("r").await, json!(expected));
    let world = world.crash().await;
    assert_eq!(world.value("r").await, json!(expected));
}

/// Case FAN-10: a group inside a group, in two runs at once. Each group keeps to its own limit, is as wide as that allows, and knows nothing of
/// the other run.
#[tokio::test]
async fn nested_limits_hold_for_each_group_of_each_run() {
    const GROUPS: u64 = 5;
    let world = world().await;
    let worker = wide(&world, "w").await;
    for run in ["a", "b"] {
        world.start(run, "Outer", json!({ "groups": (0..GROUPS).collect::<Vec<_>>() })).await;
    }
    let (mut open, mut widest, mut count) = (Vec::<Task>::new(), (0, 0), 0);
    while count < 2 * GROUPS * 4 {
        world.settle().await;
        // The worker has room for all that may go on, so what it has is what goes on.
        open.extend(worker.poll(0).await.unwrap());
        for run in ["a", "b"] {
            let of = |task: &&Task| task.run == run;
            let groups: Vec<u64> = open.iter().filter(of).map(|task| item(task) / 10).collect();
            let inner = |group: &u64| groups.iter().filter(|other| *other == group).count();
            let begun = groups.iter().collect::<std::collections::BTreeSet<_>>().len();
            let most = groups.iter().map(inner).max().unwrap_or(0);
            assert!(begun <= 3 && most <= 2, "{run}: {groups:?}");
            widest = (widest.0.max(begun), widest.1.max(groups.len()));
        }
        let task = open.remove(0);
        report(&worker, vec![(&task, done(json!(1)))]).await;
        count += 1;
    }
    assert_eq!(widest, (3, 6), "no fewer than the limits allow");
    for run in ["a", "b"] {
        assert_eq!(world.value(run).await, json!([4, 4, 4, 4, 4]));
    }
}
