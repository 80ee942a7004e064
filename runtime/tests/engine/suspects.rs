//! What is written down of runs in hand while the engine works: who is a suspect, and until when.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use outlast_kernel::ids::Millis;
use outlast_protocol::requests::{Deploy, FileText};
use outlast_runtime::engine::{Clock, Engine, ManualClock, Options, Sleep};
use outlast_runtime::limits::DESK_BYTES;
use outlast_store::{MemoryStore, Side};
use serde_json::json;

use super::released::{blame_for, crash, desk};
use super::world::{FLOWS, START, World, start};

/// What the file says, for each place that says something.
fn lines(desk: &Path) -> Vec<String> {
    let bytes = std::fs::read(desk).unwrap();
    let line =
        |place: &[u8]| String::from_utf8_lossy(place).lines().next().unwrap_or_default().trim().to_owned();
    bytes.chunks(DESK_BYTES).map(line).filter(|line| !line.is_empty()).collect()
}

/// A clock that reads the desk whenever somebody asks it for the time.
struct Watching {
    clock: ManualClock,
    desk: PathBuf,
    seen: Mutex<Vec<Vec<String>>>,
}

impl Watching {
    fn take_seen(&self) -> Vec<Vec<String>> {
        std::mem::take(&mut self.seen.lock().unwrap())
    }
}

impl Clock for Watching {
    fn now(&self) -> Millis {
        if self.desk.exists() {
            self.seen.lock().unwrap().push(lines(&self.desk));
        }
        self.clock.now()
    }

    fn wall(&self) -> Millis {
        self.clock.wall()
    }

    fn raise(&self, at_least: Millis) {
        self.clock.raise(at_least);
    }

    fn sleep_until(&self, at: Millis) -> Sleep {
        self.clock.sleep_until(at)
    }
}

#[tokio::test]
async fn a_run_is_in_hand_also_while_what_follows_from_a_durable_step_is_done() {
    let (_place, desk) = desk();
    let seen = Mutex::new(Vec::new());
    let clock = Arc::new(Watching { clock: ManualClock::new(START), desk: desk.clone(), seen });
    let store = MemoryStore::new();
    let options = Options {
        desk: Some(desk.clone()),
        clock: clock.clone(),
        seed: Some(1),
        shards: 1,
        ..Options::default()
    };
    let engine = Engine::open(Arc::new(store.clone()), options).await.unwrap();
    let files = vec![FileText { name: "test.flow".into(), text: FLOWS.into() }];
    engine.deploy(Deploy { files, profile: None }).await.unwrap();
    store.hold(Side::BeforeSync);
    let starting = tokio::spawn({
        let engine = engine.clone();
        async move { engine.start(start("r", "Two", json!({ "x": 1 })), "test").await }
    });
    let held = store.clone();
    tokio::task::spawn_blocking(move || held.wait_until_held()).await.unwrap();
    assert!(clock.take_seen().contains(&vec!["0 r".to_owned()]), "it is in hand when it is started");
    assert_eq!(lines(&desk), [""; 0]);
    store.release();
    starting.await.unwrap().unwrap();
    assert!(clock.take_seen().contains(&vec!["0 r".to_owned()]), "and when its start is durable");
    assert_eq!(lines(&desk), [""; 0]);
}

#[tokio::test]
async fn a_run_that_was_only_read_well_stays_a_suspect_until_a_step_of_it_is_durable() {
    let (_place, desk) = desk();
    let world = World::new().await;
    world.start("r", "Two", json!({ "x": 1 })).await;
    world.settle().await;
    blame_for(&desk, 1, &["r"]);
    let world = crash(world, &desk).await;
    world.view("r").await;
    assert_eq!(lines(&desk), ["2 r suspect"]);
    let world = crash(world, &desk).await;
    assert_eq!(lines(&desk), ["2 r suspect"], "this crash was not its own");
    let worker = world.worker("w").await;
    let task = worker.task().await;
    worker.done(&task, json!(2)).await;
    assert_eq!(lines(&desk), [""; 0]);
}
