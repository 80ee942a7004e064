//! Runs that nobody may touch because they take the process down, and runs of which a worker's word proves nothing.
//!
//! Leaves counting to `desk`, and panics, which are caught, to `draft`. Invariants: a run that ended the process too often is not
//! touched again, and shown as it was, until a person releases it; the others go on. If a worker was told to drop a begun attempt of a
//! run that could not be looked at, then that it comes back without the attempt never counts as proof that it never had it. Each run
//! has its own records, so nobody writes back what another one has changed.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use outlast_kernel::ids::RunId;
use outlast_protocol::{ApiError, Code};
use outlast_store::{Put, Store, Table};

use super::desk::Crashes;
use super::errors;
use super::opening::unreadable;
use crate::limits::CRASHES_MAX;

/// What stands before the id of a run that is quarantined, in [`Table::Quarantine`].
const HELD: &str = "held/";

/// What stands before the id of a run whose workers' word proves nothing.
const DOUBTED: &str = "doubted/";

/// The runs that nobody may touch, and those that are in doubt.
#[derive(Debug, Default)]
pub(crate) struct Quarantine(Mutex<Marked>);

#[derive(Debug, Default)]
struct Marked {
    held: BTreeSet<RunId>,
    doubted: BTreeSet<RunId>,
}

impl Quarantine {
    /// Reads them, and adds those that have ended the process too often. Returns what makes the addition durable, too.
    ///
    /// # Errors
    /// [`Code::Internal`] if they cannot be read.
    pub(crate) fn open(store: &dyn Store, crashes: &Crashes) -> Result<(Quarantine, Vec<Put>), ApiError> {
        let mut marked = Marked::default();
        for (key, _) in store.list(Table::Quarantine).map_err(|e| errors::store(&e))? {
            let key = String::from_utf8_lossy(&key).into_owned();
            let (runs, run) = match (key.strip_prefix(HELD), key.strip_prefix(DOUBTED)) {
                (Some(run), _) => (&mut marked.held, run),
                (None, Some(run)) => (&mut marked.doubted, run),
                (None, None) => return Err(unreadable(&format!("the quarantine's record {key:?}"))),
            };
            let run = RunId::new(run).map_err(|_| unreadable(&format!("the quarantine's record {key:?}")))?;
            runs.insert(run);
        }
        let mut puts = Vec::new();
        for (run, count) in crashes.iter().filter(|(_, count)| **count >= CRASHES_MAX) {
            tracing::error!(run = %run, count, "a run is quarantined: the process ended each time that it worked on it");
            if marked.held.insert(run.clone()) {
                puts.push(put(HELD, run, true));
            }
        }
        Ok((Quarantine(Mutex::new(marked)), puts))
    }

    /// Tells whether a run is quarantined, as an error that says so.
    ///
    /// # Errors
    /// [`Code::Internal`] if it is.
    pub(crate) fn refuse(&self, run: &RunId) -> Result<(), ApiError> {
        if !self.holds(run) {
            return Ok(());
        }
        let message = format!(
            "run {run} is quarantined: {CRASHES_MAX} processes in a row ended while they worked on it"
        );
        Err(ApiError::new(Code::Internal, message)
            .of_run(run)
            .hint(format!("`outlast release {run}` lets it go on; mend the cause first")))
    }

    /// Tells whether a run is quarantined.
    pub(crate) fn holds(&self, run: &RunId) -> bool {
        self.lock().held.contains(run)
    }

    /// Returns all that are quarantined.
    pub(crate) fn runs(&self) -> Vec<RunId> {
        self.lock().held.iter().cloned().collect()
    }

    /// Returns what makes the release of a run durable; [`Quarantine::released`] comes after it.
    pub(crate) fn release(&self, run: &RunId) -> Put {
        put(HELD, run, false)
    }

    /// Lets a run go on.
    pub(crate) fn released(&self, run: &RunId) {
        self.lock().held.remove(run);
    }

    /// Returns what makes the doubt about runs durable, as far as it is not; [`Quarantine::doubted`] comes after it.
    pub(crate) fn doubt(&self, runs: &BTreeSet<RunId>) -> Vec<Put> {
        let marked = self.lock();
        runs.iter().filter(|run| !marked.doubted.contains(*run)).map(|run| put(DOUBTED, run, true)).collect()
    }

    /// Takes note that the doubt about runs is durable.
    pub(crate) fn doubted(&self, runs: BTreeSet<RunId>) {
        self.lock().doubted.extend(runs);
    }

    /// Tells whether a worker that comes back without an attempt of a run may have had it all the same.
    pub(crate) fn doubts(&self, run: &RunId) -> bool {
        self.lock().doubted.contains(run)
    }

    /// Ends the doubt about a run; returns what makes that durable, if there was any.
    pub(crate) fn trust(&self, run: &RunId) -> Option<Put> {
        self.lock().doubted.remove(run).then(|| put(DOUBTED, run, false))
    }

    fn lock(&self) -> MutexGuard<'_, Marked> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn put(mark: &str, run: &RunId, is_set: bool) -> Put {
    let key = format!("{mark}{run}").into_bytes();
    Put { table: Table::Quarantine, key, value: is_set.then(Vec::new) }
}

#[cfg(test)]
mod tests {
    use outlast_store::{Batch, MemoryStore};

    use super::*;

    fn commit(store: &MemoryStore, puts: Vec<Put>) {
        store.commit(&Batch { puts, ..Batch::default() }).unwrap();
    }

    #[test]
    fn two_releases_at_once_release_both_runs() {
        let store = MemoryStore::new();
        let runs = ["a", "b", "c"].map(|run| RunId::new(run).unwrap());
        let crashes: Crashes = runs.iter().map(|run| (run.clone(), CRASHES_MAX)).collect();
        let (quarantine, puts) = Quarantine::open(&store, &crashes).unwrap();
        commit(&store, puts);
        let (first, second) = (quarantine.release(&runs[0]), quarantine.release(&runs[1]));
        commit(&store, vec![first]);
        commit(&store, vec![second]);
        let (next, puts) = Quarantine::open(&store, &Crashes::new()).unwrap();
        assert_eq!((next.runs(), puts), (vec![runs[2].clone()], Vec::new()));
    }

    #[test]
    fn a_record_that_cannot_be_read_is_not_taken_for_none() {
        let store = MemoryStore::new();
        let record = Put { table: Table::Quarantine, key: b"held/no id".into(), value: Some(Vec::new()) };
        commit(&store, vec![record]);
        let error = Quarantine::open(&store, &Crashes::new()).unwrap_err();
        assert!(error.message.contains("held/no id"), "{error:?}");
    }

    #[test]
    fn doubt_lasts_until_it_is_ended() {
        let store = MemoryStore::new();
        let run = RunId::new("r").unwrap();
        let (quarantine, _) = Quarantine::open(&store, &Crashes::new()).unwrap();
        let runs = BTreeSet::from([run.clone()]);
        commit(&store, quarantine.doubt(&runs));
        quarantine.doubted(runs.clone());
        assert!(quarantine.doubt(&runs).is_empty(), "once is enough");
        let (next, _) = Quarantine::open(&store, &Crashes::new()).unwrap();
        assert!(next.doubts(&run) && !next.holds(&run));
        commit(&store, next.trust(&run).into_iter().collect());
        assert!(!next.doubts(&run));
        assert!(!Quarantine::open(&store, &Crashes::new()).unwrap().0.doubts(&run));
    }
}
