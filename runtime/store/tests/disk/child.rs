//! The process that the tests of the store on disk start, kill and starve: `outlast-store-child commits|holds DIRECTORY`.
//!
//! Leaves every judgement to `processes.rs`. Invariant: it says `acknowledged N` only after the store has acknowledged N events.

use std::io::Read as _;
use std::path::Path;
use std::process::ExitCode;

use outlast_kernel::ids::Seq;
use outlast_store::conformance::samples::{commit, run, step};
use outlast_store::{FjallStore, Head, OpenOptions, Store, StoreError};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["commits", directory] => commits(Path::new(directory)),
        ["holds", directory] => holds(Path::new(directory)),
        _ => Err("expected `commits DIRECTORY` or `holds DIRECTORY`".to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn open(directory: &Path) -> Result<FjallStore, String> {
    FjallStore::open(directory, OpenOptions::default()).map(|(store, _)| store).map_err(|e| e.to_string())
}

/// Appends one event after the other until it is killed or the disk fails; then the store must say so for ever, to readers too.
fn commits(directory: &Path) -> Result<(), String> {
    let store = open(directory)?;
    let events = store.history(&run("r"), Seq(0), usize::MAX).map_err(|e| e.to_string())?;
    println!("acknowledged {}", events.len());
    while let Ok(n) = append(&store) {
        println!("acknowledged {n}");
    }
    let failed = |result: Result<(), StoreError>| matches!(result, Err(StoreError::Disk { .. }));
    let poisoned = (0..2).all(|_| failed(append(&store).map(drop)) && failed(store.stats().map(drop)));
    if !poisoned {
        return Err("the disk failed and the store goes on".to_owned());
    }
    println!("poisoned");
    Ok(())
}

fn append(store: &dyn Store) -> Result<u64, StoreError> {
    let head = store.head(&run("r"))?.map_or(Head::default(), |(head, _)| head);
    commit(store, step(&run("r"), head, 1)).map(|head| head.seq.0)
}

/// Keeps the store open until its input ends.
fn holds(directory: &Path) -> Result<(), String> {
    let _store = open(directory)?;
    println!("acknowledged 0");
    std::io::stdin().read_to_end(&mut Vec::new()).map(drop).map_err(|e| e.to_string())
}
