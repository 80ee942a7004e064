//! The store in memory: crashes at every point, failed syncs, the log of sync points.

use std::thread;

use outlast_kernel::ids::Seq;
use outlast_store::conformance::samples::{commit, messages, run, step};
use outlast_store::{Batch, FailedSync, Head, MemoryStore, Put, Side, Store, StoreError, SyncPoint, Table};

const RUNS: [&str; 3] = ["a", "b", "c"];

fn must<T>(result: Result<T, StoreError>) -> T {
    result.unwrap_or_else(|e| panic!("{e}"))
}

/// Commits in turn to three runs until the store fails; returns the heads that were acknowledged.
fn work(store: &MemoryStore, commits: u64) -> Vec<Head> {
    let mut heads = vec![Head::default(); RUNS.len()];
    for i in 0..commits {
        // Two runs in each commit, so that half a commit would show.
        let pair = [i as usize % 3, (i as usize + 1) % 3];
        let runs = pair.iter().map(|at| step(&run(RUNS[*at]), heads[*at], 1 + i % 3)).collect();
        match store.commit(&Batch { runs, ..Batch::default() }) {
            Ok(new) => pair.iter().zip(new).for_each(|(at, head)| heads[*at] = head),
            Err(_) => break,
        }
    }
    heads
}

/// Asserts that acknowledged heads are in what was recovered, and that each run is a prefix of the calm history.
fn assert_recovered(store: &MemoryStore, acknowledged: &[Head], what: &str) {
    for (id, head) in RUNS.iter().zip(acknowledged) {
        let id = run(id);
        let found = must(store.head(&id)).map_or(Head::default(), |(head, _)| head);
        assert!(found.seq >= head.seq, "{what}: run {id} is at {}, {} was acknowledged", found.seq, head.seq);
        let events = must(store.history(&id, Seq(0), usize::MAX));
        assert_eq!(events, messages(&Head::default(), found.seq.0), "{what}: run {id}");
    }
    assert_eq!(must(store.check()).findings, Vec::<String>::new(), "{what}");
}

#[test]
fn a_crash_at_any_point_keeps_what_was_acknowledged_and_a_prefix_of_each_run() {
    for at in 0..12 {
        for side in [Side::BeforeSync, Side::AfterSync] {
            let store = MemoryStore::new();
            store.crash_at(at, side);
            let acknowledged = work(&store, 20);
            assert!(matches!(store.stats(), Err(StoreError::Disk { .. })), "a dead process reads nothing");
            let next = store.crash();
            assert_eq!(next.stats().unwrap().commit_last, at + u64::from(side == Side::AfterSync));
            assert_recovered(&next, &acknowledged, &format!("crash {side:?} of commit {at}"));
            assert!(matches!(store.head(&run("a")), Err(StoreError::Disk { .. })), "the old handle is dead");
        }
    }
}

#[test]
fn a_failed_sync_poisons_the_store_whatever_became_of_the_batch() {
    for (outcome, expected) in [(FailedSync::Lost, 1), (FailedSync::Written, 2)] {
        let store = MemoryStore::new();
        let head = commit(&store, step(&run("a"), Head::default(), 1)).unwrap();
        store.fail_next_sync(outcome);
        for _ in 0..2 {
            let failed = commit(&store, step(&run("a"), head, 1));
            assert!(matches!(failed, Err(StoreError::Disk { .. })), "{outcome:?}");
            assert!(matches!(store.head(&run("a")), Err(StoreError::Disk { .. })), "{outcome:?}");
        }
        let next = store.crash();
        assert_eq!(next.head(&run("a")).unwrap().unwrap().0.seq, Seq(expected), "{outcome:?}");
    }
}

#[test]
fn nothing_is_visible_before_its_sync() {
    let store = MemoryStore::new();
    store.hold(Side::BeforeSync);
    thread::scope(|scope| {
        let writer = scope.spawn(|| commit(&store, step(&run("a"), Head::default(), 1)));
        store.wait_until_held();
        let seen = (store.head(&run("a")), store.syncs());
        store.release(); // Before any assertion: a failed one would wait for the writer.
        writer.join().unwrap().unwrap();
        assert_eq!((seen.0.unwrap(), seen.1), (None, Vec::new()));
    });
    assert_eq!(store.head(&run("a")).unwrap().unwrap().0.seq, Seq(1));
}

#[test]
fn a_crash_takes_held_commits_with_it() {
    for (side, expected) in [(Side::BeforeSync, 0), (Side::AfterSync, 1)] {
        let store = MemoryStore::new();
        store.hold(side);
        let next = thread::scope(|scope| {
            let writer = scope.spawn(|| commit(&store, step(&run("a"), Head::default(), 1)));
            store.wait_until_held();
            let next = store.crash();
            assert!(matches!(writer.join().unwrap(), Err(StoreError::Disk { .. })));
            next
        });
        assert_eq!(next.history(&run("a"), Seq(0), 9).unwrap().len(), expected, "{side:?}");
        assert_recovered(&next, &[Head::default(); 3], &format!("{side:?}"));
    }
}

#[test]
fn a_full_disk_refuses_and_goes_on_when_there_is_room() {
    let store = MemoryStore::new();
    store.fill_disk();
    let refused = commit(&store, step(&run("a"), Head::default(), 1));
    assert!(matches!(refused, Err(StoreError::Full { .. })));
    assert!(store.stats().unwrap().nearly_full);
    store.empty_disk();
    commit(&store, step(&run("a"), Head::default(), 1)).unwrap();
}

#[test]
fn the_log_of_syncs_names_what_became_durable() {
    let store = MemoryStore::new();
    let put = Put { table: Table::Setting, key: b"epoch".to_vec(), value: Some(vec![1]) };
    let runs = vec![step(&run("a"), Head::default(), 2), step(&run("b"), Head::default(), 1)];
    store.commit(&Batch { runs, puts: vec![put], ..Batch::default() }).unwrap();
    let steps = vec![(run("a"), Seq(2)), (run("b"), Seq(1))];
    let puts = vec![(Table::Setting, b"epoch".to_vec())];
    assert_eq!(store.syncs(), [SyncPoint { commit: 1, steps, puts }]);
    assert_eq!(store.crash().syncs().len(), 1, "the log outlives a crash");
}
