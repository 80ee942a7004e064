//! The lines that a person typed, over conversations: a file of the user's state directory, one line a JSON text.
//!
//! Invariant: several conversations add to it at once, each line in one write; a file that is damaged, locked or away costs lines and
//! nothing else. It never lies in the data directory: what was typed belongs to the person, not to a run.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::files;
use crate::limits::{HISTORY_BYTES_MAX, HISTORY_LINE_BYTES_MAX, HISTORY_LINES_MAX};

/// Lines, the newest last.
#[derive(Debug, Default)]
pub(super) struct History {
    lines: Vec<String>,
    /// None: they are forgotten with the conversation.
    file: Option<PathBuf>,
}

impl History {
    /// Returns the lines of the user of this process.
    pub(super) fn of_user() -> History {
        match file_of(std::env::var_os("XDG_STATE_HOME"), std::env::var_os("HOME")) {
            Some(file) => History::open(file),
            None => History::default(),
        }
    }

    fn open(file: PathBuf) -> History {
        if let Some(directory) = file.parent() {
            // If it cannot be made, no file in it can be opened, and lines are kept for this conversation only.
            let _away = fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
        }
        let Some((lines, length)) = read(&file) else {
            return History { lines: Vec::new(), file: Some(file) };
        };
        if length > HISTORY_BYTES_MAX {
            shorten(&file);
        }
        History { lines, file: Some(file) }
    }

    /// Adds a line that was typed. Not kept: repetitions, and lines that begin with a space.
    pub(super) fn add(&mut self, line: &str) {
        if line.starts_with(' ') || !self.remember(line) {
            return;
        }
        if let Some(file) = self.file.as_ref().filter(|_| line.len() <= HISTORY_LINE_BYTES_MAX) {
            // A line that cannot be kept is still there in this conversation.
            let _lost = append(file, line);
        }
    }

    /// Adds a line for this conversation only; returns whether it is a new one.
    pub(super) fn remember(&mut self, line: &str) -> bool {
        if line.trim().is_empty() || self.lines.last().is_some_and(|last| last == line) {
            return false;
        }
        self.lines.push(line.to_owned());
        if self.lines.len() > HISTORY_LINES_MAX {
            self.lines.remove(0);
        }
        true
    }

    /// Returns the next older line that begins with some text, and its number, counted from the newest.
    pub(super) fn older(&self, back: usize, with: &str) -> Option<(usize, &str)> {
        let mut older = (back + 1..=self.lines.len()).map(|back| (back, self.line(back)));
        older.find(|(_, line)| line.starts_with(with) && *line != with)
    }

    /// Returns the next newer line that begins with some text, and its number.
    pub(super) fn newer(&self, back: usize, with: &str) -> Option<(usize, &str)> {
        let mut newer = (1..back).rev().map(|back| (back, self.line(back)));
        newer.find(|(_, line)| line.starts_with(with) && *line != with)
    }

    fn line(&self, back: usize) -> &str {
        &self.lines[self.lines.len() - back]
    }
}

fn file_of(state: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let set = |value: Option<OsString>| value.map(PathBuf::from).filter(|path| path.is_absolute());
    let state = set(state).or_else(|| set(home).map(|home| home.join(".local").join("state")))?;
    Some(state.join("outlast").join("history"))
}

/// Returns the newest lines of the file, and how long it is.
fn read(path: &Path) -> Option<(Vec<String>, u64)> {
    let mut file = File::open(path).ok().filter(|file| file.metadata().is_ok_and(|found| found.is_file()))?;
    let length = file.metadata().ok()?.len();
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(length.saturating_sub(HISTORY_BYTES_MAX))).ok()?;
    file.take(HISTORY_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    // Half a line, at a cut or after a kill, is no JSON text.
    let text = String::from_utf8_lossy(&bytes);
    let mut lines: Vec<String> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    lines.drain(..lines.len().saturating_sub(HISTORY_LINES_MAX));
    Some((lines, length))
}

/// Adds one line in one write, so that lines of several conversations are never mixed.
fn append(path: &Path, line: &str) -> std::io::Result<()> {
    let lock = lock_of(path)?;
    // Somebody who shortens the file at this moment may drop the line; waiting for them could be for ever.
    let _shared = lock.try_lock_shared();
    let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    // The line end stands before the line, so that half a line of somebody who was killed stays alone.
    file.write_all(format!("\n{}", serde_json::to_string(line)?).as_bytes())
}

/// Leaves the newest lines only, unless somebody else adds to the file now.
fn shorten(path: &Path) {
    let Ok(lock) = lock_of(path) else { return };
    if lock.try_lock().is_err() {
        return;
    }
    let Some((lines, _)) = read(path) else { return };
    let texts = lines.iter().filter_map(|line| serde_json::to_string(line).ok());
    let text: String = texts.map(|text| text + "\n").collect();
    // It stays as long as it is, and is shortened another time.
    let _as_it_was = files::replace(path, text.as_bytes());
}

fn lock_of(path: &Path) -> std::io::Result<File> {
    let lock = path.with_extension("lock");
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(lock)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn shown(history: &History) -> Vec<&str> {
        history.lines.iter().map(String::as_str).collect()
    }

    #[test]
    fn lines_of_several_conversations_are_kept_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("state/outlast/history");
        let (mut one, mut other) = (History::open(file.clone()), History::open(file.clone()));
        one.add("first\nof two");
        other.add("second");
        for line in ["first\nof two", " secret", ""] {
            one.add(line);
        }
        one.remember("/nothing");
        one.add("third");
        assert_eq!(shown(&History::open(file.clone())), ["first\nof two", "second", "third"]);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(file.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_damaged_file_costs_its_damaged_lines() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("history");
        fs::write(&file, "\"one\"\n\u{0}garbage\n\"half of a li").unwrap();
        let mut history = History::open(file.clone());
        history.add("two");
        assert_eq!(shown(&History::open(file)), ["one", "two"]);
        let mut away = History::open(dir.path().join("history/in/a/file"));
        away.add("kept for now");
        assert_eq!(shown(&away), ["kept for now"]);
    }

    #[test]
    fn a_long_file_is_shortened_to_its_newest_lines() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("history");
        let line = "x".repeat(1000);
        let text: String = (0..2000).map(|n| format!("\"{n} {line}\"\n")).collect();
        fs::write(&file, &text).unwrap();
        let newest = History::open(file.clone());
        assert!(fs::metadata(&file).unwrap().len() <= HISTORY_BYTES_MAX);
        assert_eq!(shown(&History::open(file)), shown(&newest));
        assert!(newest.lines.last().unwrap().starts_with("1999 ") && newest.lines.len() <= HISTORY_LINES_MAX);
    }

    #[test]
    fn older_and_newer_lines_are_those_that_begin_alike() {
        let lines = ["ab", "x", "ac"].map(str::to_owned).to_vec();
        let history = History { lines, file: None };
        assert_eq!(history.older(0, "a"), Some((1, "ac")));
        assert_eq!(history.older(1, "a"), Some((3, "ab")));
        assert_eq!((history.older(3, "a"), history.newer(1, "a")), (None, None));
        assert_eq!((history.newer(3, "a"), history.older(0, "ac")), (Some((1, "ac")), None));
        assert_eq!(history.older(0, ""), Some((1, "ac")));
    }

    #[test]
    fn the_file_lies_in_the_state_directory() {
        let os = |text: &str| Some(OsString::from(text));
        for (state, home, expected) in [
            (os("/s"), os("/h"), Some("/s/outlast/history")),
            (os("s"), os("/h"), Some("/h/.local/state/outlast/history")),
            (None, os("/h"), Some("/h/.local/state/outlast/history")),
            (None, None, None),
        ] {
            assert_eq!(file_of(state, home), expected.map(PathBuf::from));
        }
    }
}
