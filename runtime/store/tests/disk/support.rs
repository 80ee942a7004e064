//! What the tests of the store on disk share: filled directories, copies of their files, child processes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use outlast_kernel::ids::Seq;
use outlast_store::conformance::samples::{commit, run, step};
use outlast_store::{FjallStore, Head, OpenOptions, Opened, Store, StoreError};

/// Returns what must not fail here.
pub(crate) fn must<T, E: std::fmt::Display>(result: Result<T, E>) -> T {
    result.unwrap_or_else(|e| panic!("{e}"))
}

/// Opens a store that must open.
pub(crate) fn open(directory: &Path) -> (FjallStore, Opened) {
    must(FjallStore::open(directory, OpenOptions::default()))
}

/// Opens a store that must be refused, and returns why.
pub(crate) fn refused(directory: &Path) -> StoreError {
    match FjallStore::open(directory, OpenOptions::default()) {
        Ok((_, opened)) => panic!("it opened: {opened:?}"),
        Err(e) => e,
    }
}

/// Appends one event to the run `r`, in one commit; returns how many it has now.
pub(crate) fn append(store: &dyn Store) -> Result<u64, StoreError> {
    let head = store.head(&run("r"))?.map_or(Head::default(), |(head, _)| head);
    commit(store, step(&run("r"), head, 1)).map(|head| head.seq.0)
}

/// Returns how many events the run `r` has, checked to be whole.
pub(crate) fn events(store: &dyn Store) -> u64 {
    let all = must(store.history(&run("r"), Seq(0), usize::MAX));
    let findings = must(store.check()).findings;
    assert!(findings.is_empty(), "{findings:?}");
    all.len() as u64
}

/// Fills a store with commits of one event, closes it, and returns where each batch ends in its journal, from no batch on.
pub(crate) fn fill(directory: &Path, commits: u64) -> Vec<usize> {
    let mut ends = Vec::new();
    for expected in 0..=commits {
        let (store, opened) = open(directory);
        assert_eq!(opened.commit_last, expected);
        ends.push(usize::try_from(opened.journal_bytes).unwrap_or(usize::MAX));
        if expected < commits {
            must(append(&store));
        }
    }
    ends
}

/// Returns the only journal.
pub(crate) fn journal(directory: &Path) -> PathBuf {
    let mut found = journals(directory);
    assert_eq!(found.len(), 1);
    found.remove(0)
}

/// Returns the journals, oldest first.
pub(crate) fn journals(directory: &Path) -> Vec<PathBuf> {
    let entries = must(fs::read_dir(directory.join("db")));
    let mut found: Vec<_> = entries
        .map(|entry| must(entry).path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jnl"))
        .collect();
    found.sort();
    found
}

/// Returns every file below a directory with its bytes.
pub(crate) fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in must(fs::read_dir(directory)) {
        let path = must(entry).path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            let bytes = must(fs::read(&path));
            found.insert(path, bytes);
        }
    }
    found
}

/// Returns the command of a child process (see `child.rs`): what it does; the directory comes last.
pub(crate) fn child_command(does: &str) -> Vec<String> {
    vec![env!("CARGO_BIN_EXE_outlast-store-child").to_owned(), does.to_owned()]
}

/// Starts a child process with piped input and output.
pub(crate) fn spawn(command: &[String], directory: &Path) -> Child {
    Command::new(&command[0])
        .args(&command[1..])
        .arg(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|e| panic!("{e}"))
}
