//! Copies of a store in use: whole, of one moment, and a store like any other.

use std::fs;

use outlast_kernel::ids::Seq;
use outlast_store::conformance::samples::{commit, run, step};
use outlast_store::{Head, MemoryStore, Origin, Put, RunWrite, Store, StoreError, Table};

use super::support::{append, events, must, open};

#[test]
fn a_backup_of_a_store_in_use_is_a_store_of_one_moment() {
    let place = must(tempfile::tempdir());
    let (store, _) = open(&place.path().join("data"));
    for _ in 0..50 {
        must(append(&store));
    }
    let before = must(store.head(&run("r"))).map(|(head, _)| head);
    let origin = Some(Origin::Fork { parent: run("r"), at: Seq(7) });
    let head = must(store.head_at(&run("r"), Seq(7))).unwrap_or_default();
    must(commit(&store, RunWrite { origin, ..step(&run("fork"), head, 3) }));
    let put = Put { table: Table::Setting, key: vec![0xff; 1_024], value: Some(vec![1]) };
    must(store.commit(&outlast_store::Batch { puts: vec![put], ..Default::default() }));
    let copy = place.path().join("copy");
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| {
            for _ in 0..50 {
                must(append(&store));
            }
        });
        must(store.backup(&copy));
        assert!(writing.join().is_ok());
    });
    assert_eq!(events(&store), 100);
    let (copied, opened) = open(&copy);
    assert!(!opened.created);
    let there = events(&copied);
    assert!((50..=100).contains(&there), "{there}");
    assert_eq!(opened.commit_last, there + 2);
    assert_eq!(must(copied.history(&run("fork"), Seq(0), 99)).len(), 10);
    assert_eq!(must(copied.get(Table::Setting, &[0xff; 1_024])), Some(vec![1]));
    // It goes on by itself, from where it was.
    must(append(&copied));
    drop(copied);
    let (copied, _) = open(&copy);
    assert_eq!(events(&copied), there + 1);
    let same = must(store.history(&run("r"), Seq(0), 50)) == must(copied.history(&run("r"), Seq(0), 50));
    assert!(same && before.is_some_and(|head| head.seq == Seq(50)));
}

#[test]
fn a_backup_replaces_nothing_but_its_own_unfinished_one() {
    let place = must(tempfile::tempdir());
    let (store, _) = open(&place.path().join("data"));
    must(append(&store));
    let copy = place.path().join("copy");
    let unfinished = place.path().join("copy.unfinished");
    must(fs::create_dir_all(unfinished.join("db")));
    must(fs::write(unfinished.join("db/junk"), "x"));
    must(store.backup(&copy));
    assert!(!unfinished.exists());
    assert!(matches!(store.backup(&copy), Err(StoreError::Invalid { .. })), "a backup is there already");
    assert!(matches!(store.backup(&place.path().join("data")), Err(StoreError::Invalid { .. })));
    must(fs::create_dir(place.path().join("empty")));
    must(store.backup(&place.path().join("empty")));
    assert_eq!(events(&open(&place.path().join("empty")).0), 1);
    assert_eq!(events(&store), 1);
}

#[test]
fn a_store_in_memory_is_backed_up_to_disk() {
    let place = must(tempfile::tempdir());
    let store = MemoryStore::new();
    must(commit(&store, step(&run("r"), Head::default(), 4)));
    must(store.backup(&place.path().join("copy")));
    assert_eq!(events(&open(&place.path().join("copy")).0), 4);
}
