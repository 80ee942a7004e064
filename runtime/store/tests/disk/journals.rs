//! Journals: bounded whatever is written where.

use std::fs;
use std::path::Path;

use outlast_store::conformance::samples::{commit, message, run, step};
use outlast_store::{Batch, Head, Put, RunWrite, Store, Table, limits};
use tempfile::TempDir;

use super::support::{must, open};

/// Bytes of one journal, which is begun anew when it is full.
const ONE_JOURNAL_BYTES: u64 = 64 << 20;

/// Case STO-07: what was written once into a keyspace, and never again, keeps no journal alive: with several times as many bytes of events as
/// journals may have, they stay within their bound, and so does what is read to open the store, each time that it is opened meanwhile.
#[test]
fn a_keyspace_that_is_seldom_written_keeps_no_journal_alive() {
    // Just small enough to stand in its event.
    let text = "x".repeat(limits::BLOB_BYTES_MIN - 200);
    let events = 3 * limits::JOURNAL_BYTES_MAX / text.len() as u64;
    soak(&text, events, 3);
    // As a whole: a million events, as `tests/night` has it.
    if std::env::var_os("OUTLAST_WHOLE").is_some() {
        soak(&"x".repeat(200), 1_000_000, 10);
    }
}

/// Writes so many events with this text, and opens the store so often meanwhile.
fn soak(text: &str, events_max: u64, opens: u64) {
    const EVENTS: u64 = 500;
    let directory = must(TempDir::new());
    let (store, _) = open(directory.path());
    let put = |value: Option<Vec<u8>>| {
        let puts = vec![Put { table: Table::Schedule, key: b"nightly".to_vec(), value }];
        must(store.commit(&Batch { puts, ..Batch::default() }));
    };
    put(Some(b"once".to_vec()));
    put(None);
    let bound = limits::JOURNAL_BYTES_MAX + 2 * ONE_JOURNAL_BYTES;
    let (mut head, mut store) = (Head::default(), Some(store));
    for part in 1..=opens {
        while head.seq.0 < events_max * part / opens {
            let events = (1..=EVENTS).map(|i| message(head.seq.0 + i, text)).collect();
            let Some(store) = &store else { unreachable!("it is open") };
            head = must(commit(store, RunWrite { events, ..step(&run("r"), head, 1) }));
            let there = journals(directory.path());
            assert!(there <= bound, "{there} bytes of journals after {} events, {bound} at most", head.seq);
        }
        drop(store.take());
        let (again, opened) = open(directory.path());
        assert!(opened.journal_bytes <= bound, "{opened:?}");
        assert_eq!(must(again.head(&run("r"))).map(|(found, _)| found), Some(head));
        store = Some(again);
    }
}

/// What is in tables need not be read from journals when the store is opened, and is not kept in memory.
#[test]
fn memtables_become_tables_by_bytes_without_being_told() {
    let text = "x".repeat(limits::BLOB_BYTES_MIN - 200);
    let directory = must(TempDir::new());
    let (store, _) = open(directory.path());
    let (mut head, mut written) = (Head::default(), 0);
    let place = directory.path().join("db/keyspaces");
    let before = tables(&place);
    while written < limits::UNFLUSHED_BYTES {
        let events = (1..=500).map(|i| message(head.seq.0 + i, &text)).collect();
        head = must(commit(&store, RunWrite { events, ..step(&run("r"), head, 1) }));
        written += 500 * text.len() as u64;
    }
    // Others write them; a test that never sees one is ended from outside.
    while tables(&place) == before {
        std::thread::yield_now();
    }
}

/// Counts the tables below a directory.
fn tables(directory: &Path) -> usize {
    let Ok(entries) = fs::read_dir(directory) else { return 0 };
    let paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    let here = directory.ends_with("tables");
    paths.iter().map(|path| if path.is_dir() { tables(path) } else { usize::from(here) }).sum()
}

fn journals(directory: &Path) -> u64 {
    let mut bytes = 0;
    for entry in must(fs::read_dir(directory.join("db"))) {
        let path = must(entry).path();
        if path.extension().is_some_and(|extension| extension == "jnl") {
            // It may be gone by now.
            bytes += fs::metadata(&path).map_or(0, |data| data.len());
        }
    }
    bytes
}
