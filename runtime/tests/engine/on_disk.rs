//! What only a real directory can show: its lock, its mark, its room, its backups; and the file of results of a batch.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use outlast_protocol::Code;
use outlast_runtime::batch::{Keep, ResultFile, Standing};
use outlast_runtime::engine::{Engine, ManualClock, Options};
use outlast_store::{FjallStore, OpenOptions, Store, StoreError};
use serde_json::json;
use tempfile::TempDir;

use super::watched::Watched;
use super::world::{FLOWS, START, Worker, code, in_time, register, start};

/// An engine over a directory.
async fn engine(directory: &Path, options: OpenOptions) -> (Arc<FjallStore>, Engine) {
    let store = Arc::new(FjallStore::open(directory, options).unwrap().0);
    let clock = Arc::new(ManualClock::new(START));
    let options = Options { clock, seed: Some(1), ..Options::default() };
    (Arc::clone(&store), Engine::open(store, options).await.unwrap())
}

async fn with_a_run(directory: &Path) -> (Arc<FjallStore>, Engine) {
    let (store, engine) = engine(directory, OpenOptions::default()).await;
    let files = vec![outlast_protocol::requests::FileText { name: "test.flow".into(), text: FLOWS.into() }];
    engine.deploy(outlast_protocol::requests::Deploy { files, profile: None }).await.unwrap();
    engine.start(start("r", "Chat", json!({ "topic": "t" })), "test").await.unwrap();
    (store, engine)
}

async fn close(store: Arc<FjallStore>, engine: Engine) {
    engine.shutdown().await;
    drop(engine);
    // What the engine's tasks hold of the store goes with them.
    let mut store = store;
    loop {
        store = match Arc::try_unwrap(store) {
            Ok(_) => return,
            Err(shared) => shared,
        };
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_directory_has_one_owner() {
    let place = TempDir::new().unwrap();
    let (_store, _engine) = with_a_run(place.path()).await;
    let second = FjallStore::open(place.path(), OpenOptions::default()).map(|_| ());
    let us = std::process::id();
    assert!(matches!(second, Err(StoreError::Locked { pid, .. }) if pid == us), "{second:?}");
}

#[tokio::test]
async fn a_poll_ends_when_the_disk_has_failed() {
    let place = TempDir::new().unwrap();
    let has_failed = Arc::new(AtomicBool::new(false));
    let fails = Arc::clone(&has_failed);
    let store = Watched::open(place.path()).on_commit(move |_, _| match fails.load(Ordering::Relaxed) {
        true => Err(StoreError::Disk { path: "here".into(), detail: "no more".into(), source: None }),
        false => Ok(()),
    });
    let options = Options { clock: Arc::new(ManualClock::new(START)), seed: Some(1), ..Options::default() };
    let engine = Engine::open(Arc::new(store), options).await.unwrap();
    let files = vec![outlast_protocol::requests::FileText { name: "test.flow".into(), text: FLOWS.into() }];
    engine.deploy(outlast_protocol::requests::Deploy { files, profile: None }).await.unwrap();
    engine.start(start("r", "Pay", json!({ "x": 1 })), "test").await.unwrap();
    let session = engine.register(register("w", "boot", Vec::new())).await.unwrap().session;
    has_failed.store(true, Ordering::Relaxed);
    // The beginning of the payment cannot be kept, so nothing is handed out, now or later.
    let worker = Worker { engine, session };
    assert_eq!(code(in_time("an answer", worker.poll(60_000)).await), Code::NotReady);
}

#[tokio::test]
async fn a_journal_that_lost_its_end_is_noticed_by_the_mark() {
    let place = TempDir::new().unwrap();
    let (store, engine) = with_a_run(place.path()).await;
    close(store, engine).await;
    let mut journals = Vec::new();
    for entry in fs::read_dir(place.path().join("db")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "jnl") {
            journals.push(path);
        }
    }
    assert_eq!(journals.len(), 1);
    let whole = fs::read(&journals[0]).unwrap();
    let used = whole.iter().rposition(|byte| *byte != 0).unwrap();
    // The last batch is torn, though it was acknowledged.
    File::options().write(true).open(&journals[0]).unwrap().set_len(used as u64 - 8).unwrap();
    let opened = FjallStore::open(place.path(), OpenOptions::default()).map(|(_, opened)| opened);
    assert!(matches!(opened, Err(StoreError::Damaged { .. })), "{opened:?}");
}

#[tokio::test]
async fn the_last_bytes_of_the_disk_are_not_taken() {
    let place = TempDir::new().unwrap();
    let (store, engine) = with_a_run(place.path()).await;
    close(store, engine).await;
    let options = OpenOptions { free_bytes_min: u64::MAX / 4, ..OpenOptions::default() };
    let store = FjallStore::open(place.path(), options).unwrap().0;
    let put = outlast_store::Put { table: outlast_store::Table::Setting, key: vec![1], value: Some(vec![2]) };
    let refused = store.commit(&outlast_store::Batch { puts: vec![put], ..Default::default() });
    assert!(matches!(refused, Err(StoreError::Full { .. })), "{refused:?}");
}

/// A small disk of its own; none where mounting is not permitted.
struct SmallDisk(TempDir);

impl SmallDisk {
    fn mount() -> Option<SmallDisk> {
        let place = TempDir::new().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=300m", "outlast-test"])
            .arg(place.path())
            .output()
            .is_ok_and(|output| output.status.success());
        mounted.then_some(SmallDisk(place))
    }

    /// Takes all bytes but so many.
    fn fill_up_to(&self, left: u64) {
        let stat = rustix::fs::statvfs(self.0.path()).unwrap();
        let taken = (stat.f_bavail * stat.f_frsize).saturating_sub(left);
        if taken == 0 {
            return;
        }
        let file = File::options().create(true).append(true).open(self.0.path().join("filling")).unwrap();
        let end = file.metadata().unwrap().len();
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), end, taken).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _gone = Command::new("umount").arg("-l").arg(self.0.path()).output();
    }
}

/// Case STO-04.
#[tokio::test]
async fn on_a_full_disk_runs_are_shown_and_stopped_and_go_on_when_there_is_room() {
    let Some(disk) = SmallDisk::mount() else {
        return println!("skipped: a small disk cannot be mounted here; that takes root");
    };
    let data = disk.0.path().join("data");
    let (store, first) = with_a_run(&data).await;
    first.start(start("s", "Chat", json!({ "topic": "t" })), "test").await.unwrap();
    first.start(start("t", "Chat", json!({ "topic": "t" })), "test").await.unwrap();
    disk.fill_up_to(1 << 20);
    let say =
        || outlast_protocol::requests::Send { name: "Say".into(), value: json!({ "text": "1" }), id: None };
    let refused = first.start(start("u", "Chat", json!({ "topic": "t" })), "test").await;
    assert_eq!(code(refused), Code::DiskFull);
    assert_eq!(code(first.message("r", say(), "ann").await), Code::DiskFull);
    first.cancel("s", "ann").await.unwrap();
    assert_eq!(first.get("s").await.unwrap().outcome.unwrap().kind, "cancelled");
    assert_eq!(first.get("r").await.unwrap().events, 1);
    close(store, first).await;
    // Others take all that is left, and nobody has the store open: the ballast is spent.
    for round in 0..3 {
        disk.fill_up_to(0);
        let (store, engine) = engine(&data, OpenOptions::default()).await;
        assert_eq!(engine.list(outlast_store::Filter::default()).await.unwrap().items.len(), 3, "{round}");
        assert_eq!(engine.get("r").await.unwrap().events, 1);
        assert!(store.check().unwrap().findings.is_empty());
        assert_eq!(code(engine.message("r", say(), "ann").await), Code::DiskFull);
        close(store, engine).await;
    }
    fs::remove_file(disk.0.path().join("filling")).unwrap();
    let (_store, last) = engine(&data, OpenOptions::default()).await;
    last.message("r", say(), "ann").await.unwrap();
    assert_eq!(last.get("r").await.unwrap().events, 2);
}

#[tokio::test]
async fn a_backup_holds_what_was_acknowledged_before_it() {
    let place = TempDir::new().unwrap();
    let (_store, here) = with_a_run(&place.path().join("data")).await;
    for said in ["1", "2"] {
        let message =
            outlast_protocol::requests::Send { name: "Say".into(), value: json!({ "text": said }), id: None };
        here.message("r", message, "ann").await.unwrap();
    }
    let copy = place.path().join("copy");
    _store.backup(&copy).unwrap();
    let (store, there) = engine(&copy, OpenOptions::default()).await;
    assert!(store.check().unwrap().findings.is_empty(), "{:?}", store.check());
    assert_eq!(there.get("r").await.unwrap(), here.get("r").await.unwrap());
    let (there, here) = (there.events("r", 0, 99).await.unwrap(), here.events("r", 0, 99).await.unwrap());
    assert_eq!(there.items, here.items);
}

#[tokio::test]
async fn a_write_that_does_not_know_the_end_of_the_history_is_refused() {
    let place = TempDir::new().unwrap();
    let (store, engine) = with_a_run(place.path()).await;
    // Another writer of the same run: it read the run's end, and was late.
    let run = outlast_kernel::ids::RunId::new("r").unwrap();
    let (before, index) = store.head(&run).unwrap().unwrap();
    let message =
        outlast_protocol::requests::Send { name: "Say".into(), value: json!({ "text": "1" }), id: None };
    engine.message("r", message, "ann").await.unwrap();
    let kind = outlast_kernel::event::EventKind::Closed;
    let event = outlast_kernel::event::Event { n: before.seq.next(), time: START, digest: 7, kind };
    let summary = store.summary(&run).unwrap().unwrap();
    let events = vec![event];
    let write = outlast_store::RunWrite {
        run,
        before,
        events,
        index_before: index,
        index,
        summary: summary.into(),
        snapshot: None,
        origin: None,
    };
    let late = store.commit(&outlast_store::Batch { runs: vec![write], ..Default::default() });
    assert!(matches!(late, Err(StoreError::Stale { .. })), "{late:?}");
    assert_eq!(code(engine.get("nobody").await), Code::NotFound);
}

#[test]
fn an_item_of_a_batch_that_has_its_row_is_known() {
    let place = TempDir::new().unwrap();
    let path = place.path().join("out.jsonl");
    let (earlier, mut rows) = ResultFile::open(&path, Keep::All).unwrap();
    assert_eq!(earlier.standing("a"), None);
    rows.append(b"{\"id\":\"a\",\"line\":1,\"status\":\"done\"}\n").unwrap();
    drop(rows);
    let (earlier, _rows) = ResultFile::open(&path, Keep::All).unwrap();
    assert_eq!(["a", "b"].map(|id| earlier.standing(id)), [Some(Standing::Done), None]);
}
