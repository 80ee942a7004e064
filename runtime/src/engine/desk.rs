//! What each shard works on, in a file that outlives the process, and how many processes each run has ended.
//!
//! Leaves judging the counts to `quarantine`. The file has a place for each shard, and behind them one for each run that is suspected
//! already: what it did is not forgotten when another run ends the process. Invariants: what the last process left is changed only
//! after all that follows from it is durable, and then at once; a run is a suspect until a step of it is durable.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outlast_kernel::ids::RunId;

use crate::limits::DESK_BYTES;

/// Runs on which a process worked when it ended, and how many have since a step of the run was durable.
pub(crate) type Crashes = BTreeMap<RunId, u32>;

/// What stands behind a run that is only suspected: nobody works on it.
const SUSPECT: &str = "suspect";

/// The desks of all shards as the last process left them.
pub(crate) struct Desks {
    path: Option<PathBuf>,
    crashes: Crashes,
}

impl Desks {
    /// Reads them. Without a file nothing is remembered.
    pub(crate) fn read(path: Option<&Path>) -> Desks {
        let Some(path) = path else { return Desks { path: None, crashes: Crashes::new() } };
        let crashes = match std::fs::read(path) {
            Ok(bytes) => parse(&bytes),
            Err(error) if error.kind() == ErrorKind::NotFound => Crashes::new(),
            Err(error) => {
                tracing::warn!(%error, "what runs did to the last process cannot be read");
                Crashes::new()
            }
        };
        Desks { path: Some(path.to_owned()), crashes }
    }

    /// Returns what they tell.
    pub(crate) fn crashes(&self) -> &Crashes {
        &self.crashes
    }

    /// Clears them for the shards of this process. Suspects are remembered, but for those with whom all is done that follows.
    pub(crate) fn lay_out(self, shards: usize, is_done: impl Fn(&RunId) -> bool) -> Vec<Desk> {
        let left = self.crashes.into_iter().filter(|(run, _)| !is_done(run));
        let suspects: BTreeMap<RunId, Suspect> =
            left.zip(shards..).map(|((run, count), place)| (run, Suspect { count, place })).collect();
        let file = self.path.and_then(|path| {
            write_anew(&path, shards, &suspects)
                .inspect_err(
                    |error| tracing::warn!(%error, "what runs do to this process cannot be remembered"),
                )
                .ok()
        });
        let file = file.map(Arc::new);
        let desk = |place| Desk { file: file.clone(), place, suspects: suspects.clone(), lies: None };
        (0..shards).map(desk).collect()
    }
}

/// Puts a new file in the place of the old one, in one piece.
fn write_anew(path: &Path, shards: usize, suspects: &BTreeMap<RunId, Suspect>) -> std::io::Result<File> {
    let mut bytes = line("").repeat(shards);
    for (run, Suspect { count, .. }) in suspects {
        bytes.extend(line(&format!("{count} {run} {SUSPECT}")));
    }
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)?;
    }
    let new = path.with_extension("new");
    let file = File::create(&new)?;
    file.write_all_at(&bytes, 0)?;
    std::fs::rename(&new, path)?;
    Ok(file)
}

fn line(text: &str) -> Vec<u8> {
    let mut line = format!("{text}\n").into_bytes();
    line.resize(DESK_BYTES, b' ');
    line
}

/// Reads what the last process left; each run on which it worked has one crash more than before.
fn parse(bytes: &[u8]) -> Crashes {
    let mut crashes = Crashes::new();
    for place in bytes.chunks(DESK_BYTES) {
        let text = String::from_utf8_lossy(place);
        let mut words = text.lines().next().unwrap_or_default().split(' ');
        let (Some(count), Some(run)) = (words.next(), words.next()) else { continue };
        let (Ok(count), Ok(run)) = (count.parse::<u32>(), RunId::new(run)) else { continue };
        let count = if words.next() == Some(SUSPECT) { count } else { count.saturating_add(1) };
        let known = crashes.entry(run).or_default();
        *known = count.max(*known);
    }
    crashes
}

/// How many processes a run has ended, and the place in the file that remembers it.
#[derive(Clone, Copy)]
struct Suspect {
    count: u32,
    place: usize,
}

/// What one shard works on, written where the next process finds it.
pub(crate) struct Desk {
    file: Option<Arc<File>>,
    place: usize,
    suspects: BTreeMap<RunId, Suspect>,
    /// The run that lies there.
    lies: Option<RunId>,
}

impl Desk {
    /// Takes note that work on a run begins, and that on the one before it has ended.
    pub(crate) fn take(&mut self, run: &RunId) {
        if self.lies.as_ref() == Some(run) {
            return;
        }
        self.lies = Some(run.clone());
        let count = self.suspects.get(run).map_or(0, |suspect| suspect.count);
        self.write(self.place, &line(&format!("{count} {run}")));
    }

    /// Takes note that work is done.
    pub(crate) fn clear(&mut self) {
        if self.lies.take().is_some() {
            self.write(self.place, b"\n");
        }
    }

    /// Takes note that a step of a run is durable: whatever it did, it got over it.
    pub(crate) fn trust(&mut self, run: &RunId) {
        if let Some(suspect) = self.suspects.remove(run) {
            self.write(suspect.place, b"\n");
            // What lies there says how many processes it has ended.
            if self.lies.take_if(|lies| lies == run).is_some() {
                self.take(run);
            }
        }
    }

    fn write(&self, place: usize, bytes: &[u8]) {
        let at = place as u64 * DESK_BYTES as u64;
        if let Some(file) = &self.file
            && let Err(error) = file.write_all_at(bytes, at)
        {
            tracing::debug!(%error, "what a shard works on cannot be written down");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> RunId {
        RunId::new(text).unwrap()
    }

    fn counts(path: &Path) -> Vec<(String, u32)> {
        let crashes = Desks::read(Some(path)).crashes;
        crashes.into_iter().map(|(run, count)| (run.to_string(), count)).collect()
    }

    #[test]
    fn crashes_are_counted_until_a_step_is_durable() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("scratch/desk");
        let (bad, good) = (id("bad"), id(&"a".repeat(128)));
        for life in 0..3 {
            let before = if life == 0 { Vec::new() } else { vec![("bad".to_owned(), life)] };
            assert_eq!(counts(&path), before);
            let mut desks = Desks::read(Some(&path)).lay_out(2, |_| false);
            desks[1].take(&good);
            desks[1].clear();
            desks[0].take(&bad);
            desks[0].clear();
            desks[0].take(&bad); // It was read well, and ends the process by the next thing that is done with it.
        }
        let mut desks = Desks::read(Some(&path)).lay_out(1, |_| false);
        assert_eq!(counts(&path), [("bad".to_owned(), 3)]);
        desks[0].take(&bad);
        desks[0].trust(&bad);
        // It still lies there, but what it did before counts no more.
        assert_eq!(counts(&path), [("bad".to_owned(), 1)]);
        desks[0].clear();
        assert_eq!(counts(&path), []);
        desks[0].take(&bad);
        assert_eq!(counts(&path), [("bad".to_owned(), 1)]);
    }

    #[test]
    fn what_a_run_did_is_remembered_when_another_one_ends_the_process() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("desk");
        Desks::read(Some(&path)).lay_out(3, |_| false)[2].take(&id("a"));
        // The store cannot be opened now; nothing is changed.
        assert_eq!(counts(&path), [("a".to_owned(), 1)]);
        Desks::read(Some(&path)).lay_out(1, |_| false)[0].take(&id("b"));
        assert_eq!(counts(&path), [("a".to_owned(), 1), ("b".to_owned(), 1)]);
        Desks::read(Some(&path)).lay_out(2, |_| false)[0].take(&id("a"));
        assert_eq!(counts(&path), [("a".to_owned(), 2), ("b".to_owned(), 1)]);
        // One of them is dealt with.
        Desks::read(Some(&path)).lay_out(2, |run| *run == id("a"));
        assert_eq!(counts(&path), [("b".to_owned(), 1)]);
    }
}
