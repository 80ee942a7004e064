//! Keys: where each value stands. Leaves values to [`crate::codec`].
//!
//! ```text
//! log   run 0x00 last:u64              a step, by the number of its last event
//! view  'h' run                        the head record
//!       'l' newest-first:u64 run       the summary
//!       'r' run                        a run with work to hand out
//!       'd' due:u64 run                a run with something due
//!       'o' run                        a fork's lineage
//!       'f' parent 0x00 at:u64 fork    a fork, by where it begins
//!       'x' run                        what is left of a deleted run
//!       'p' run                        a deleted run of which something may be taken away
//! blob  's' run                        the newest snapshot
//!       'b' hash                       bytes by their hash
//!       'r' hash run 0x00 last:u64     a step that holds or names a blob
//!       'g' hash                       when a blob was brought, if not long ago
//! meta  table key                      a record beside histories
//!       0x00 "commit"                  the number of the last commit
//! ```
//! Invariant: numbers are big-endian and times are shifted to be unsigned, so bytes order as the values do; a run id has no zero
//! byte, so no run's steps lie between another's.

use outlast_kernel::ids::{Millis, RunId, Seq};

use crate::Table;
use crate::blobs::BlobId;

/// The keyspaces; a change of this list is a change of the store's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Space {
    /// Histories.
    Log,
    /// What recovery and lists read.
    View,
    /// Large values.
    Blob,
    /// Everything else.
    Meta,
}

impl Space {
    /// All of them.
    pub(crate) const ALL: [Space; 4] = [Space::Log, Space::View, Space::Blob, Space::Meta];

    /// Returns its name on disk.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Space::Log => "log",
            Space::View => "view",
            Space::Blob => "blob",
            Space::Meta => "meta",
        }
    }
}

/// The key of the last commit's number.
pub(crate) const COMMIT: &[u8] = b"\0commit";

/// The first byte of head records.
pub(crate) const HEADS: u8 = b'h';
/// The first byte of summaries.
pub(crate) const LIST: u8 = b'l';
/// The first byte of runs with work.
pub(crate) const READY: u8 = b'r';
/// The first byte of due times.
pub(crate) const DUE: u8 = b'd';

/// The first byte of lineages.
pub(crate) const LINEAGES: u8 = b'o';
/// The first byte of forks by parent.
pub(crate) const FORKS: u8 = b'f';
/// The first byte of what is left of deleted runs.
pub(crate) const REMAINS: u8 = b'x';
/// The first byte of deleted runs of which something may be taken away.
pub(crate) const PURGES: u8 = b'p';

/// Returns the key of the step that ends with an event.
pub(crate) fn step(run: &RunId, last: Seq) -> Vec<u8> {
    let mut key = Vec::with_capacity(run.as_str().len() + 9);
    key.extend(run.as_str().as_bytes());
    key.push(0);
    key.extend(last.0.to_be_bytes());
    key
}

/// Reads the key of a step.
pub(crate) fn parse_step(key: &[u8]) -> Option<(RunId, Seq)> {
    let (run, last) = key.split_last_chunk::<8>()?;
    Some((parse_run(run.strip_suffix(&[0])?)?, Seq(u64::from_be_bytes(*last))))
}

/// Returns the key of a run in a list of runs.
pub(crate) fn of_run(list: u8, run: &RunId) -> Vec<u8> {
    let mut key = Vec::with_capacity(1 + run.as_str().len());
    key.push(list);
    key.extend(run.as_str().as_bytes());
    key
}

/// Reads the run out of a key of a list of runs.
pub(crate) fn parse_of_run(key: &[u8]) -> Option<RunId> {
    parse_run(key.get(1..)?)
}

/// Returns the key of a fork in the list of its parent's.
pub(crate) fn fork(parent: &RunId, at: Seq, fork: &RunId) -> Vec<u8> {
    let mut key = forks_of(parent);
    key.extend(at.0.to_be_bytes());
    key.extend(fork.as_str().as_bytes());
    key
}

/// Returns what the keys of a run's forks begin with.
pub(crate) fn forks_of(parent: &RunId) -> Vec<u8> {
    let mut key = of_run(FORKS, parent);
    key.push(0);
    key
}

/// Reads the key of a fork: the parent, where the fork begins, the fork.
pub(crate) fn parse_fork(key: &[u8]) -> Option<(RunId, Seq, RunId)> {
    let end = key.iter().position(|byte| *byte == 0)?;
    let (at, fork) = key.get(end + 1..)?.split_first_chunk::<8>()?;
    Some((parse_run(key.get(1..end)?)?, Seq(u64::from_be_bytes(*at)), parse_run(fork)?))
}

/// Returns the key of a due time.
pub(crate) fn due(due: Millis, run: &RunId) -> Vec<u8> {
    timed(DUE, ascending(due), run)
}

/// Reads a due time.
pub(crate) fn parse_due(key: &[u8]) -> Option<(Millis, RunId)> {
    let (time, run) = parse_timed(key)?;
    Some((from_ascending(time), run))
}

/// Returns the key of a summary.
pub(crate) fn listed(started_at: Millis, run: &RunId) -> Vec<u8> {
    timed(LIST, !ascending(started_at), run)
}

/// Returns the key before all summaries of runs that started before a moment.
pub(crate) fn listed_before(moment: Millis) -> Vec<u8> {
    let mut key = vec![LIST];
    key.extend((!ascending(moment)).saturating_add(1).to_be_bytes());
    key
}

/// Reads the key of a summary.
pub(crate) fn parse_listed(key: &[u8]) -> Option<(Millis, RunId)> {
    let (time, run) = parse_timed(key)?;
    Some((from_ascending(!time), run))
}

/// Returns the key before all due times at or after a moment.
pub(crate) fn due_end(before: Millis) -> Vec<u8> {
    let mut key = vec![DUE];
    key.extend(ascending(before).to_be_bytes());
    key
}

/// Returns the key of a snapshot.
pub(crate) fn snapshot(run: &RunId) -> Vec<u8> {
    of_run(b's', run)
}

/// The first byte of blobs.
pub(crate) const BLOBS: u8 = b'b';
/// The first byte of references to blobs.
pub(crate) const REFERENCES: u8 = b'r';
/// The first byte of the times at which blobs were brought.
pub(crate) const WAITING: u8 = b'g';

/// Returns the key of a blob.
pub(crate) fn blob(id: &BlobId) -> Vec<u8> {
    of_blob(BLOBS, id)
}

/// Reads the key of a blob.
pub(crate) fn parse_blob(key: &[u8]) -> Option<BlobId> {
    parse_of_blob(key).filter(|(_, rest)| rest.is_empty()).map(|(id, _)| id)
}

/// Returns the key of a step's reference to a blob.
pub(crate) fn reference(id: &BlobId, step: &[u8]) -> Vec<u8> {
    let mut key = of_blob(REFERENCES, id);
    key.extend(step);
    key
}

/// Reads the key of a reference: the blob, and the key of the step.
pub(crate) fn parse_reference(key: &[u8]) -> Option<(BlobId, &[u8])> {
    parse_of_blob(key)
}

/// Returns the key of the time at which a blob was brought.
pub(crate) fn waiting(id: &BlobId) -> Vec<u8> {
    of_blob(WAITING, id)
}

/// Reads the key of the time at which a blob was brought.
pub(crate) fn parse_waiting(key: &[u8]) -> Option<BlobId> {
    parse_blob(key)
}

fn of_blob(list: u8, id: &BlobId) -> Vec<u8> {
    let mut key = Vec::with_capacity(33);
    key.push(list);
    key.extend(id.0);
    key
}

fn parse_of_blob(key: &[u8]) -> Option<(BlobId, &[u8])> {
    let (hash, rest) = key.get(1..)?.split_first_chunk::<32>()?;
    Some((BlobId(*hash), rest))
}

/// Returns the key of a record beside histories; an empty key gives the table's prefix.
pub(crate) fn record(table: Table, key: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(1 + key.len());
    bytes.push(table_byte(table));
    bytes.extend(key);
    bytes
}

/// Returns the least key that is after `key`, for a range that excludes it.
pub(crate) fn after(mut key: Vec<u8>) -> Vec<u8> {
    key.push(0);
    key
}

const fn table_byte(table: Table) -> u8 {
    match table {
        Table::Machine => 1,
        Table::Source => 2,
        Table::Flow => 3,
        Table::Session => 4,
        Table::Profile => 5,
        Table::Setting => 6,
        Table::Schedule => 7,
        Table::Quarantine => 8,
        Table::Token => 9,
    }
}

fn timed(list: u8, time: u64, run: &RunId) -> Vec<u8> {
    let mut key = Vec::with_capacity(9 + run.as_str().len());
    key.push(list);
    key.extend(time.to_be_bytes());
    key.extend(run.as_str().as_bytes());
    key
}

fn parse_timed(key: &[u8]) -> Option<(u64, RunId)> {
    let (time, run) = key.get(1..)?.split_first_chunk::<8>()?;
    Some((u64::from_be_bytes(*time), parse_run(run)?))
}

fn parse_run(bytes: &[u8]) -> Option<RunId> {
    RunId::new(std::str::from_utf8(bytes).ok()?).ok()
}

const fn ascending(time: Millis) -> u64 {
    time.0.cast_unsigned() ^ (1 << 63)
}

const fn from_ascending(time: u64) -> Millis {
    Millis((time ^ (1 << 63)).cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_order_as_times_do() {
        let run = RunId::new("a").unwrap();
        let times = [i64::MIN, -1, 0, 1, 255, 256, i64::MAX].map(Millis);
        for pair in times.windows(2) {
            assert!(due(pair[0], &run) < due(pair[1], &run), "{pair:?}");
            assert!(listed(pair[0], &run) > listed(pair[1], &run), "{pair:?}");
        }
        for time in times {
            assert_eq!(parse_due(&due(time, &run)), Some((time, run.clone())));
            assert_eq!(parse_listed(&listed(time, &run)), Some((time, run.clone())));
        }
    }

    #[test]
    fn forks_are_ordered_by_where_they_begin() {
        let [a, b, c] = ["a", "b", "a-c"].map(|id| RunId::new(id).unwrap());
        assert!(fork(&a, Seq(2), &c) < fork(&a, Seq(300), &b));
        assert!(!fork(&c, Seq(1), &b).starts_with(&forks_of(&a)));
        assert_eq!(parse_fork(&fork(&c, Seq(256), &a)), Some((c, Seq(256), a)));
    }

    #[test]
    fn no_run_lies_between_the_steps_of_another() {
        let (short, long) = (RunId::new("a").unwrap(), RunId::new("a-b").unwrap());
        assert!(step(&short, Seq(u64::MAX)) < step(&long, Seq(1)));
        assert_eq!(parse_step(&step(&long, Seq(7))), Some((long, Seq(7))));
    }
}
