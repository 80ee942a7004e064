//! Several processes and one directory: the lock, `kill -9`, a disk that stops taking writes.

use std::io::{BufRead, BufReader, Read};
use std::process::Child;
use std::time::Duration;

use crate::support::{append, child_command, events, fill, must, open, spawn};
use outlast_store::{FjallStore, OpenOptions, Store, StoreError};
use tempfile::TempDir;

/// Returns the numbers that a child reports, until it ends.
fn reports(child: &mut Child) -> impl Iterator<Item = u64> + use<> {
    let output = child.stdout.take().into_iter().map(BufReader::new);
    output
        .flat_map(BufRead::lines)
        .map_while(Result::ok)
        .filter_map(|line| line.strip_prefix("acknowledged ")?.parse().ok())
}

/// Ends a child as a power button does.
fn kill(mut child: Child) {
    must(child.kill());
    must(child.wait());
}

#[test]
fn what_was_acknowledged_survives_kill_9() {
    let directory = TempDir::new().unwrap();
    let mut recovered = 0;
    for acknowledged in [1, 2, 7, 40, 150] {
        let mut child = spawn(&child_command("commits"), directory.path());
        let mut reports = reports(&mut child);
        assert_eq!(reports.next(), Some(recovered));
        let seen = reports.by_ref().take(acknowledged).last().unwrap();
        kill(child);
        let last = reports.last().unwrap_or(seen); // What it said before it died, not read before.
        let (store, opened) = open(directory.path());
        recovered = events(&store);
        assert!(recovered >= last, "{last} were acknowledged, {recovered} recovered: {opened:?}");
        assert!(recovered <= last + 1, "one commit at most is under way");
    }
}

#[test]
fn a_second_process_is_refused_until_the_first_is_gone() {
    let directory = TempDir::new().unwrap();
    let mut child = spawn(&child_command("holds"), directory.path());
    assert_eq!(reports(&mut child).next(), Some(0));
    let link = directory.path().join("link");
    std::os::unix::fs::symlink(directory.path(), &link).unwrap();
    for path in [directory.path(), &link] {
        for wait in [None, Some(Duration::from_millis(1))] {
            match FjallStore::open(path, OpenOptions { wait, ..OpenOptions::default() }) {
                Err(StoreError::Locked { pid, .. }) => assert_eq!(pid, child.id()),
                Err(e) => panic!("{e}"),
                Ok(_) => panic!("it opened twice"),
            }
        }
    }
    // One that waits gets in when the owner dies, and the dead owner's lock file is no obstacle.
    let path = directory.path().to_owned();
    let waiting = std::thread::spawn(move || {
        let wait = Some(Duration::from_secs(60));
        FjallStore::open(&path, OpenOptions { wait, ..OpenOptions::default() }).map(|(store, _)| store)
    });
    kill(child);
    let store = waiting.join().unwrap().unwrap();
    assert_eq!(append(&store).unwrap(), 1);
}

#[test]
fn a_store_is_locked_against_its_own_process_too() {
    let directory = TempDir::new().unwrap();
    let (store, _) = open(directory.path());
    match FjallStore::open(directory.path(), OpenOptions::default()) {
        Err(StoreError::Locked { pid, .. }) => assert_eq!(pid, std::process::id()),
        Err(e) => panic!("{e}"),
        Ok(_) => panic!("it opened twice"),
    }
    drop(store);
    open(directory.path());
}

#[test]
fn a_failed_write_poisons_the_store_and_loses_nothing_acknowledged() {
    let directory = TempDir::new().unwrap();
    fill(directory.path(), 3);
    // The shell ignores the signal and limits file sizes to 64 KiB; both pass on to the child.
    let quoted = child_command("commits").join("' '");
    let script = format!("trap '' XFSZ; ulimit -f 128; exec '{quoted}' \"$1\"");
    let command = ["bash", "--posix", "-c", &script, "child"].map(String::from);
    let mut child = spawn(&command, directory.path());
    let mut output = String::new();
    child.stdout.take().unwrap().read_to_string(&mut output).unwrap();
    assert!(output.contains("poisoned"), "{output}");
    assert!(child.wait().unwrap().success());
    let mut acknowledged =
        output.lines().filter_map(|line| line.strip_prefix("acknowledged ")?.parse::<u64>().ok());
    let last = acknowledged.next_back().unwrap();
    assert!(last > 10, "{output}");
    let (store, opened) = open(directory.path());
    assert_eq!(events(&store), last, "{opened:?}");
    assert_eq!(append(&store).unwrap(), last + 1);
}

#[test]
fn a_nearly_full_disk_refuses_commits_and_keeps_what_is_there() {
    let directory = TempDir::new().unwrap();
    fill(directory.path(), 1);
    let full = OpenOptions { free_bytes_min: u64::MAX, ..OpenOptions::default() };
    let (store, _) = FjallStore::open(directory.path(), full).unwrap();
    assert!(matches!(append(&store), Err(StoreError::Full { .. })));
    assert!(store.stats().unwrap().nearly_full);
    assert_eq!(events(&store), 1);
    assert!(!directory.path().join("ballast").exists(), "the ballast is given back");
    drop(store);
    let (store, _) = open(directory.path());
    assert_eq!(append(&store).unwrap(), 2);
    assert!(directory.path().join("ballast").exists());
}
