//! Runs that take the process down: what each shard works on stands in a file that outlives the process, so that the next one knows.
//!
//! Leaves panics, which are caught, to `draft`. Invariant: a run is quarantined when so many processes in a row ended while they worked
//! on it; it is not touched again, and shown as it was, until a person releases it. The others go on.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outlast_kernel::ids::RunId;
use outlast_store::{Put, Store, Table};

use super::errors;
use crate::limits::{CRASHES_MAX, DESK_BYTES};
use outlast_protocol::ApiError;

/// The key in [`Table::Setting`] of the runs that are quarantined.
const KEY: &[u8] = b"quarantine";

/// The runs that nobody may touch.
#[derive(Debug, Default)]
pub(crate) struct Quarantine(Mutex<BTreeSet<RunId>>);

impl Quarantine {
    /// Reads them, and adds those that have ended the process too often. Returns what makes the addition durable, too.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub(crate) fn open(store: &dyn Store, crashes: &Crashes) -> Result<(Quarantine, Option<Put>), ApiError> {
        let bytes = store.get(Table::Setting, KEY).map_err(|e| errors::store(&e))?;
        let kept: BTreeSet<RunId> =
            bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        let mut runs = kept.clone();
        for (run, count) in crashes.iter().filter(|(_, count)| **count >= CRASHES_MAX) {
            tracing::error!(run = %run, count, "a run is quarantined: the process ended each time that it worked on it");
            runs.insert(run.clone());
        }
        let put = (runs != kept).then(|| put(&runs));
        Ok((Quarantine(Mutex::new(runs)), put))
    }

    /// Tells whether a run is quarantined, as an error that says so.
    ///
    /// # Errors
    /// [`outlast_protocol::Code::Internal`] if it is.
    pub(crate) fn refuse(&self, run: &RunId) -> Result<(), ApiError> {
        if !self.holds(run) {
            return Ok(());
        }
        let message = format!(
            "run {run} is quarantined: {CRASHES_MAX} processes in a row ended while they worked on it"
        );
        Err(ApiError::new(outlast_protocol::Code::Internal, message)
            .of_run(run)
            .hint(format!("`outlast release {run}` lets it go on; mend the cause first")))
    }

    /// Tells whether a run is quarantined.
    pub(crate) fn holds(&self, run: &RunId) -> bool {
        self.lock().contains(run)
    }

    /// Returns all of them.
    pub(crate) fn runs(&self) -> Vec<RunId> {
        self.lock().iter().cloned().collect()
    }

    /// Returns what makes the release of a run durable; [`Quarantine::released`] comes after it.
    pub(crate) fn release(&self, run: &RunId) -> Put {
        let mut runs = self.lock().clone();
        runs.remove(run);
        put(&runs)
    }

    /// Lets a run go on.
    pub(crate) fn released(&self, run: &RunId) {
        self.lock().remove(run);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<RunId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn put(runs: &BTreeSet<RunId>) -> Put {
    let value = serde_json::to_vec(runs).unwrap_or_default();
    Put { table: Table::Setting, key: KEY.to_vec(), value: Some(value) }
}

/// Runs on which a process worked when it ended, and how many in a row.
pub(crate) type Crashes = BTreeMap<RunId, u32>;

/// What one shard works on, written where the next process finds it.
pub(crate) struct Desk {
    file: Option<Arc<File>>,
    at: u64,
    suspects: Crashes,
}

impl Desk {
    /// Makes the desks of all shards, and tells on what the last process worked when it ended. Without a file nothing is remembered.
    pub(crate) fn all(path: Option<&Path>, shards: usize) -> (Vec<Desk>, Crashes) {
        let opened = path.map(|path| {
            let crashes = std::fs::read(path).map(|bytes| read(&bytes)).unwrap_or_default();
            let file =
                path.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| File::create(path));
            (file, crashes)
        });
        let (file, crashes) = match opened {
            None => (None, Crashes::new()),
            Some((Ok(file), crashes)) => (Some(Arc::new(file)), crashes),
            Some((Err(error), crashes)) => {
                tracing::warn!(%error, "what runs do to this process cannot be remembered");
                (None, crashes)
            }
        };
        let desk = |number: usize| Desk {
            file: file.clone(),
            at: number as u64 * DESK_BYTES as u64,
            suspects: crashes.clone(),
        };
        ((0..shards).map(desk).collect(), crashes)
    }

    /// Takes note that work on a run begins.
    pub(crate) fn take(&self, run: &RunId) {
        let count = self.suspects.get(run).copied().unwrap_or(0);
        let mut line = format!("{count} {run}\n").into_bytes();
        line.resize(DESK_BYTES, b' ');
        self.write(&line);
    }

    /// Takes note that work on a run is done: it did no harm.
    pub(crate) fn clear(&mut self, run: &RunId) {
        self.suspects.remove(run);
        self.write(b"\n");
    }

    fn write(&self, bytes: &[u8]) {
        if let Some(file) = &self.file
            && let Err(error) = file.write_all_at(bytes, self.at)
        {
            tracing::debug!(%error, "what a shard works on cannot be written down");
        }
    }
}

/// Reads on what a process worked; each run has one crash more than before.
fn read(bytes: &[u8]) -> Crashes {
    let desk = |desk: &[u8]| {
        let text = String::from_utf8_lossy(desk);
        let (count, run) = text.lines().next()?.split_once(' ')?;
        Some((RunId::new(run).ok()?, count.parse::<u32>().ok()?.saturating_add(1)))
    };
    bytes.chunks(DESK_BYTES).filter_map(desk).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crashes_in_a_row_are_counted_and_work_that_ends_well_clears_them() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("scratch/desk");
        let (bad, good) = (RunId::new("bad").unwrap(), RunId::new("a".repeat(128).as_str()).unwrap());
        for count in 0..3 {
            let (mut desks, crashes) = Desk::all(Some(&path), 2);
            assert_eq!(crashes.get(&bad).copied().unwrap_or(0), count);
            assert_eq!(crashes.get(&good), None);
            desks[1].take(&good);
            desks[1].clear(&good);
            desks[0].take(&bad); // The process ends here.
        }
        let (mut desks, crashes) = Desk::all(Some(&path), 1);
        assert_eq!(crashes, Crashes::from([(bad.clone(), 3)]));
        desks[0].take(&bad);
        desks[0].clear(&bad);
        desks[0].take(&bad);
        assert_eq!(Desk::all(Some(&path), 1).1, Crashes::from([(bad, 1)]));
    }
}
