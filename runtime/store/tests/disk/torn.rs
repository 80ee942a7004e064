//! The last batch, damaged at every byte in every way that a disk may leave it: the store opens with all of it or with none, or is refused.

use std::fs;
use std::path::Path;

use outlast_kernel::ids::Seq;
use outlast_store::conformance::samples::{run, step};
use outlast_store::{Batch, FjallStore, Head, OpenOptions, Put, Store, StoreError, Table};
use tempfile::TempDir;

use super::support::{append, events, fill, journal, must, open};

/// Bytes between two places that are tried, if not each of them is.
const STRIDE: usize = 13;

/// Makes of bytes what a disk does, from a place on.
type Damage = fn(&[u8], usize) -> Vec<u8>;

/// What a disk makes of bytes from a place on.
const DAMAGES: [(&str, Damage); 6] = [
    ("cut", |bytes, at| bytes[..at].to_vec()),
    ("cut and filled with zeros", |bytes, at| changed(bytes, at, bytes.len(), |_| 0)),
    ("flipped in one bit", |bytes, at| changed(bytes, at, at + 1, |byte| byte ^ 1)),
    ("flipped in all bits", |bytes, at| changed(bytes, at, at + 1, |byte| !byte)),
    ("zero for some bytes", |bytes, at| changed(bytes, at, at + 16, |_| 0)),
    ("filled with what was there before", |bytes, at| changed(bytes, at, bytes.len(), |_| 0xa5)),
];

fn changed(bytes: &[u8], from: usize, to: usize, how: fn(u8) -> u8) -> Vec<u8> {
    let mut all = bytes.to_vec();
    all.iter_mut().take(to).skip(from).for_each(|byte| *byte = how(*byte));
    all
}

/// Adds a commit of many parts: steps of two runs, and a record.
fn add_parts(store: &dyn Store) {
    let head = must(store.head(&run("r"))).map_or(Head::default(), |(head, _)| head);
    let puts =
        vec![Put { table: Table::Schedule, key: b"nightly".to_vec(), value: Some(b"at two".to_vec()) }];
    let runs = vec![step(&run("r"), head, 2), step(&run("s"), Head::default(), 3)];
    must(store.commit(&Batch { runs, puts, ..Batch::default() }));
}

#[test]
fn a_last_batch_that_is_damaged_is_there_as_a_whole_or_not_at_all() {
    let stride = if std::env::var_os("OUTLAST_WHOLE").is_some() { 1 } else { STRIDE };
    let directory = must(TempDir::new());
    let directory = directory.path();
    fill(directory, 2);
    let mark = directory.join("mark");
    let marks = [must(fs::read(&mark))];
    let (store, opened) = open(directory);
    let begin = must(usize::try_from(opened.journal_bytes));
    add_parts(&store);
    drop(store);
    let end = must(usize::try_from(open(directory).1.journal_bytes));
    let marks = [&marks[0], &must(fs::read(&mark))];
    let whole = must(fs::read(journal(directory)))[..end].to_vec();
    for at in (begin..end).step_by(stride).chain([end - 1]) {
        for (what, damage) in DAMAGES {
            let damaged = damage(&whole, at);
            if damaged == whole {
                continue;
            }
            for (acknowledged, mark_then) in [false, true].into_iter().zip(marks) {
                must(fs::write(journal(directory), &damaged));
                must(fs::write(&mark, mark_then));
                let what =
                    format!("{what} from byte {at} on ({begin} to {end}), acknowledged: {acknowledged}");
                check(directory, acknowledged, &what);
            }
        }
    }
    must(fs::write(journal(directory), &whole));
    must(fs::write(&mark, marks[1]));
    let (store, _) = open(directory);
    assert_eq!((events(&store), must(append(&store))), (4, 5), "undamaged, it opens and goes on");
}

fn check(directory: &Path, acknowledged: bool, what: &str) {
    match FjallStore::open(directory, OpenOptions::default()) {
        Ok((store, opened)) => {
            let of_s = must(store.history(&run("s"), Seq(0), 9)).len();
            let is_kept = must(store.get(Table::Schedule, b"nightly")).is_some();
            let parts = (opened.commit_last, events(&store), of_s, is_kept);
            // The number that fjall gives a batch has no checksum; what it holds has.
            let all = (3, 4, 3, true);
            let none = (2, 2, 0, false);
            assert!(
                parts == all || (parts == none && !acknowledged),
                "{what}: {parts:?} with {:?}",
                opened.mark
            );
        }
        // What nobody was told of may be refused, too: a person then decides.
        Err(StoreError::Damaged { .. }) => {}
        Err(other) => panic!("{what}: {other}"),
    }
}
