//! Works as one batch of the store, and what its commit does to the heads of runs.
//!
//! Leaves it to the committer which works go together. Invariant: a batch has one write for each run, of consecutive events.

use std::collections::BTreeMap;
use std::sync::Arc;

use outlast_kernel::ids::{Millis, RunId};
use outlast_store::{Batch, Head, Put, RunWrite, Table};

use super::{TIME_KEY, Work, lock};

/// Makes one batch: the steps of a run become one write.
pub(super) fn batch_of(works: &[Work]) -> Batch {
    let mut batch = Batch::default();
    let mut places = BTreeMap::<&RunId, usize>::new();
    let mut time: Option<Millis> = None;
    for work in works {
        match work {
            Work::Puts { puts, .. } => batch.puts.extend(puts.iter().cloned()),
            Work::Blob { put, .. } => batch.blobs.push(put.clone()),
            Work::Delete(deletion) => {
                batch.puts.extend(deletion.puts.iter().cloned());
                batch.deletes.push(deletion.delete.clone());
            }
            Work::Purge { .. } => unreachable!("a purge is never taken together with anything else"),
            Work::Step(step) => {
                batch.puts.extend(step.puts.iter().cloned());
                time = time.max(step.write.events.last().map(|event| event.time));
                if let Some(at) = places.get(&step.write.run) {
                    let write: &mut RunWrite = &mut batch.runs[*at];
                    write.events.extend(step.write.events.iter().cloned());
                    write.index = step.write.index;
                    write.summary = Arc::clone(&step.write.summary);
                    write.snapshot = step.write.snapshot.clone();
                } else {
                    places.insert(&step.write.run, batch.runs.len());
                    batch.runs.push(RunWrite { before: *lock(&step.head), ..step.write.clone() });
                }
            }
        }
    }
    if let Some(time) = time {
        let value = Some(time.0.to_be_bytes().to_vec());
        batch.puts.push(Put { table: Table::Setting, key: TIME_KEY.to_vec(), value });
    }
    batch
}

/// Moves the heads of runs to where their writes ended, in the order of the writes.
pub(super) fn move_heads(works: &[Work], batch: &Batch, heads: &[Head]) {
    let heads: BTreeMap<&RunId, Head> =
        batch.runs.iter().map(|write| &write.run).zip(heads.iter().copied()).collect();
    for work in works {
        if let Work::Step(step) = work
            && let Some(head) = heads.get(&step.write.run)
        {
            *lock(&step.head) = *head;
        }
    }
}
