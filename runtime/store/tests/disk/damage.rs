//! Damaged and foreign files: a store opens whole, or says why it does not; it is never silently shorter than what was acknowledged.

use std::fs;
use std::path::Path;

use crate::support::{append, events, files, fill, journal, journals, must, open, refused};
use outlast_store::conformance::samples::{commit, message, run, step};
use outlast_store::{Head, Mark, RunWrite, StoreError};
use tempfile::TempDir;

/// Asserts that a store is refused as damaged, its journal left as it is and copied.
fn assert_damaged(directory: &Path, what: &str) {
    let journal = journal(directory);
    let before = must(fs::read(&journal));
    let error = refused(directory);
    assert!(matches!(error, StoreError::Damaged { .. }), "{what}: {error}");
    assert!(must(fs::read(&journal)) == before, "{what}: the journal was changed");
    let copies = files(&directory.join("evidence"));
    let used = before.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    assert!(copies.len() == 8 || copies.values().any(|copy| *copy == before[..used]), "{what}: no copy");
}

#[test]
fn a_torn_tail_is_cut_at_every_byte_of_the_last_batch() {
    let directory = TempDir::new().unwrap();
    let directory = directory.path();
    fill(directory, 2);
    let mark = fs::read(directory.join("mark")).unwrap();
    let ends = fill_more(directory, 2);
    let journal = journal(directory);
    let bytes = fs::read(&journal).unwrap();
    for cut in ends[0]..ends[1] {
        let mut torn = bytes[..cut].to_vec();
        torn.resize(cut + [0, 1, 4096][cut % 3], 0);
        fs::write(&journal, &torn).unwrap();
        // The commit was never acknowledged, so the mark is that of the commit before.
        fs::write(directory.join("mark"), &mark).unwrap();
        let (store, opened) = open(directory);
        assert_eq!((opened.commit_last, opened.mark), (2, Mark::At(2)), "cut at {cut}");
        // A zero at the end of what is left looks like filling.
        let used = torn.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        assert_eq!(opened.torn_bytes, used.saturating_sub(ends[0]) as u64, "cut at {cut}");
        assert_eq!(events(&store), 2, "cut at {cut}");
    }
    let (store, _) = open(directory);
    assert_eq!(append(&store).unwrap(), 3, "it goes on after a cut");
    drop(store);
    assert_eq!(events(&open(directory).0), 3);
}

/// Adds one commit; returns where its batch begins and ends.
fn fill_more(directory: &Path, before: u64) -> [usize; 2] {
    let (store, opened) = open(directory);
    assert_eq!(opened.commit_last, before);
    must(append(&store));
    drop(store);
    let after = open(directory).1.journal_bytes;
    [opened.journal_bytes, after].map(|end| must(usize::try_from(end)))
}

#[test]
fn an_acknowledged_batch_that_is_torn_is_refused() {
    let directory = TempDir::new().unwrap();
    let directory = directory.path();
    let ends = fill(directory, 3);
    let journal = journal(directory);
    let bytes = fs::read(&journal).unwrap();
    for cut in [ends[1], ends[2] - 1, ends[2], ends[2] + 1, ends[3] - 1] {
        fs::write(&journal, &bytes[..cut]).unwrap();
        assert_damaged(directory, &format!("cut at {cut}"));
    }
    fs::write(&journal, &bytes).unwrap();
    assert_eq!(events(&open(directory).0), 3, "the whole journal opens again");
}

#[test]
fn a_flipped_byte_anywhere_is_refused() {
    let directory = TempDir::new().unwrap();
    let directory = directory.path();
    let ends = fill(directory, 4);
    let journal = journal(directory);
    let bytes = fs::read(&journal).unwrap();
    for at in ends[1]..ends[2] {
        for flip in [0x01, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] ^= flip;
            fs::write(&journal, &damaged).unwrap();
            assert_damaged(directory, &format!("byte {at} flipped by {flip:x}"));
        }
    }
    fs::write(&journal, &bytes).unwrap();
    assert_eq!(events(&open(directory).0), 4);
}

#[test]
fn a_zeroed_page_is_refused_wherever_it_is() {
    let directory = TempDir::new().unwrap();
    let directory = directory.path();
    fill(directory, 60);
    let journal = journal(directory);
    let bytes = fs::read(&journal).unwrap();
    assert!(bytes.len() > 5 * 4096);
    for at in (0..bytes.len()).step_by(4096) {
        let mut damaged = bytes.clone();
        let end = bytes.len().min(at + 4096);
        damaged[at..end].fill(0);
        fs::write(&journal, &damaged).unwrap();
        assert_damaged(directory, &format!("page at {at} zeroed"));
    }
    fs::write(&journal, &bytes).unwrap();
    assert_eq!(events(&open(directory).0), 60);
}

#[test]
fn swapped_doubled_and_missing_batches_are_refused() {
    let directory = TempDir::new().unwrap();
    let directory = directory.path();
    let ends = fill(directory, 4);
    let journal = journal(directory);
    let bytes = fs::read(&journal).unwrap();
    let batch = |i: usize| &bytes[ends[i]..ends[i + 1]];
    for order in [vec![0, 2, 1, 3], vec![0, 1, 1, 2, 3], vec![0, 1, 3], vec![0, 1, 2]] {
        let mixed: Vec<u8> = order.iter().flat_map(|i| batch(*i)).copied().collect();
        fs::write(&journal, mixed).unwrap();
        assert_damaged(directory, &format!("batches {order:?}"));
    }
}

/// Case STO-08.
#[test]
fn a_vanished_journal_is_noticed() {
    for with_mark in [true, false] {
        let directory = TempDir::new().unwrap();
        let directory = directory.path();
        fill(directory, 2);
        fs::remove_file(journal(directory)).unwrap();
        if !with_mark {
            fs::remove_file(directory.join("mark")).unwrap();
        }
        let error = refused(directory);
        assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
    }
}

/// Case STO-08: without one of its tables a store is refused, each time, and with it everything is there.
#[test]
fn a_vanished_table_is_noticed() {
    let directory = TempDir::new().unwrap();
    let aside = TempDir::new().unwrap();
    let aside = aside.path().join("table");
    let directory = directory.path();
    let commits = fill_two_journals(directory);
    let mut tables = Vec::new();
    for keyspace in fs::read_dir(directory.join("db/keyspaces")).unwrap().flatten() {
        let of_it = fs::read_dir(keyspace.path().join("tables"));
        tables.extend(of_it.into_iter().flatten().flatten().map(|entry| entry.path()));
    }
    assert!(!tables.is_empty());
    for table in tables {
        fs::copy(&table, &aside).unwrap();
        fs::remove_file(&table).unwrap();
        for again in 0..2 {
            let error = refused(directory);
            assert!(matches!(error, StoreError::Damaged { .. }), "{}, {again}: {error}", table.display());
        }
        fs::copy(&aside, &table).unwrap();
    }
    let (store, _) = open(directory);
    assert_eq!(events(&store), commits);
    assert_eq!(outlast_store::Store::check(&store).unwrap().findings, Vec::<String>::new());
}

#[test]
fn an_emptied_journal_is_noticed_by_the_mark() {
    let directory = TempDir::new().unwrap();
    let directory = directory.path();
    fill(directory, 2);
    fs::write(journal(directory), b"").unwrap();
    assert!(matches!(refused(directory), StoreError::Damaged { .. }));
    // Removing the mark is how a person says: go on with what is left.
    fs::remove_file(directory.join("mark")).unwrap();
    let (store, opened) = open(directory);
    assert_eq!((opened.commit_last, opened.mark), (0, Mark::Missing));
    assert_eq!(events(&store), 0);
}

#[test]
fn missing_files_are_noticed() {
    for name in ["FORMAT", "db/version", "db"] {
        let directory = TempDir::new().unwrap();
        let directory = directory.path();
        fill(directory, 1);
        let path = directory.join(name);
        if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) }.unwrap();
        let error = refused(directory);
        assert!(matches!(error, StoreError::Damaged { .. }), "{name}: {error}");
        let error = refused(directory);
        assert!(matches!(error, StoreError::Damaged { .. }), "{name}, again: {error}");
    }
}

#[test]
fn an_unreadable_mark_or_format_is_refused() {
    for (name, bytes) in [
        ("mark", &b"\0\0\0\0"[..]),
        ("mark", b""),
        ("mark", b"00000000000000000001 00000000\n"),
        ("FORMAT", b"cake"),
    ] {
        let directory = TempDir::new().unwrap();
        fill(directory.path(), 1);
        fs::write(directory.path().join(name), bytes).unwrap();
        let error = refused(directory.path());
        assert!(matches!(error, StoreError::Damaged { .. }), "{name}: {error}");
    }
}

/// Case VER-06.
#[test]
fn a_newer_format_is_refused_and_every_byte_stays() {
    let directory = TempDir::new().unwrap();
    let directory = directory.path();
    fill(directory, 2);
    fs::write(directory.join("FORMAT"), "outlast store 4\n").unwrap();
    let before = files(directory);
    match refused(directory) {
        StoreError::Newer { found: 4, known: 3, .. } => {}
        other => panic!("{other}"),
    }
    assert!(files(directory) == before);
}

#[test]
fn a_directory_that_may_not_be_written_gives_one_clear_error() {
    // No user may make a directory there, not even root.
    let error = refused(Path::new("/sys/outlast-store"));
    let text = error.to_string();
    assert!(text.contains("/sys/outlast-store") && text.contains("may not write there"), "{text}");
}

#[test]
fn an_interrupted_first_open_is_made_anew() {
    let directory = TempDir::new().unwrap();
    let directory = directory.path();
    drop(open(directory));
    for missing in [&[][..], &["db/version"], &["db/version", "db/0.jnl"], &["db/keyspaces/1/current"]] {
        for name in ["FORMAT", "mark"].iter().chain(missing) {
            fs::remove_file(directory.join(name)).unwrap();
        }
        let (store, opened) = open(directory);
        assert!(opened.created, "without {missing:?}");
        assert_eq!(append(&store).unwrap(), 1);
        drop(store);
        assert_eq!(events(&open(directory).0), 1);
        // For the next round: a store without commits.
        fs::remove_dir_all(directory.join("db")).unwrap();
        fs::remove_file(directory.join("FORMAT")).unwrap();
        fs::remove_file(directory.join("mark")).unwrap();
        drop(open(directory));
    }
}

/// Fills a store until it has two journals; returns how many commits that took, each of one event.
fn fill_two_journals(directory: &Path) -> u64 {
    let (store, _) = open(directory);
    let mut head = Head::default();
    while journals(directory).len() < 2 {
        assert!(head.seq.0 < 400, "fjall begins a new journal at 64 MB");
        // The same text again would stand there once.
        let text = format!("{} {}", head.seq, "x".repeat(1 << 20));
        let write = RunWrite { events: vec![message(head.seq.0 + 1, &text)], ..step(&run("r"), head, 1) };
        head = must(commit(&store, write));
        if head.seq.0 % 70 == 0 {
            must(store.flush());
        }
    }
    must(append(&store))
}

#[test]
fn several_journals_are_read_as_one() {
    let directory = TempDir::new().unwrap();
    let directory = directory.path();
    let commits = fill_two_journals(directory);
    let (store, opened) = open(directory);
    assert_eq!(opened.commit_last, commits);
    assert_eq!(events(&store), commits);
}

#[test]
fn a_journal_that_is_not_the_last_must_be_whole() {
    let directory = TempDir::new().unwrap();
    let directory = directory.path();
    let commits = fill_two_journals(directory);
    let journals = journals(directory);
    let [first, last] = &journals[..] else { return }; // fjall may have flushed and removed the first.
    let bytes = fs::read(first).unwrap();
    let used = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    let flip = |at: usize| {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        damaged
    };
    let mut zeroed = bytes.clone();
    zeroed[used - 4096..].fill(0);
    for damaged in [flip(used), flip(used / 2), zeroed, bytes[..used / 2].to_vec(), Vec::new()] {
        fs::write(first, &damaged).unwrap();
        let before = fs::read(last).unwrap();
        let error = refused(directory);
        assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
        assert!(fs::read(first).unwrap() == damaged && fs::read(last).unwrap() == before);
    }
    fs::write(first, &bytes).unwrap();
    assert_eq!(events(&open(directory).0), commits);
}

#[test]
fn damage_inside_a_history_is_found_by_the_check() {
    let directory = TempDir::new().unwrap();
    let (store, _) = open(directory.path());
    append(&store).unwrap();
    let report = outlast_store::Store::check(&store).unwrap();
    assert_eq!((report.runs, report.events, report.findings), (1, 1, vec![]));
}
