//! Deletions on a real disk: the room comes back.

use std::path::Path;

use outlast_kernel::ids::Millis;
use outlast_store::conformance::samples::{message, run, step};
use outlast_store::{Batch, BlobId, Delete, Head, RunWrite, Store};
use tempfile::TempDir;

use super::support::{must, open};

/// What is deleted does not stay in tables.
#[test]
fn the_disk_has_the_room_of_deleted_runs_again() {
    const RUNS: u64 = 60;
    const TEXT_BYTES: usize = 200_000;
    let directory = must(TempDir::new());
    let (store, _) = open(directory.path());
    let mut deletes = Vec::new();
    for i in 0..RUNS {
        let id = run(&format!("r{i}"));
        let events = vec![message(1, &noise(i, TEXT_BYTES))];
        let runs = vec![RunWrite { events, ..step(&id, Head::default(), 1) }];
        let before = must(store.commit(&Batch { runs, ..Batch::default() }))[0];
        deletes.push(Delete { run: id, before });
    }
    must(store.flush());
    let expected = RUNS * TEXT_BYTES as u64 / 2;
    while tables(directory.path()) < expected {
        std::thread::yield_now();
    }
    let kept = deletes.pop();
    must(store.commit(&Batch { deletes, ..Batch::default() }));
    while must(store.purge(None, Millis(1 << 50))).is_some() {}
    must(store.reclaim());
    let left = tables(directory.path());
    assert!(left < expected / 5, "{left} bytes are left of {expected}");
    drop(store);
    let (store, _) = open(directory.path());
    let head = kept.map(|delete| store.head(&delete.run));
    assert!(matches!(head, Some(Ok(Some(_)))), "{head:?}");
    assert_eq!(must(store.check()).findings, Vec::<String>::new());
}

/// Returns text of so many bytes that cannot be packed.
fn noise(seed: u64, bytes: usize) -> String {
    let hashes =
        (0..).flat_map(|n: u64| BlobId::of(format!("{seed} {n}").as_bytes()).to_string().into_bytes());
    hashes.take(bytes).map(char::from).collect()
}

/// Returns the bytes of all files but the journals, which are bounded by themselves.
fn tables(directory: &Path) -> u64 {
    let mut bytes = 0;
    for entry in must(std::fs::read_dir(directory)) {
        let path = must(entry).path();
        if path.is_dir() {
            bytes += tables(&path);
        } else if path.extension().is_none_or(|extension| extension != "jnl") && !path.ends_with("ballast") {
            bytes += std::fs::metadata(&path).map_or(0, |data| data.len());
        }
    }
    bytes
}
