//! The file of results: one row for each item that has ended, each once, whatever happened to the process that wrote it.
//!
//! Invariant: a file is changed only if every line of it is a row of ours; a last line that was torn while it was written is cut off.
//! Of each row 16 bytes are remembered (about 17 to 39 in memory).

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, BufWriter, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use outlast_protocol::ApiError;
use outlast_protocol::run::OutcomeView;
use outlast_store::breakage::{Breakage, breaks};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

/// What became of an item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The item. It stands first in its line: a torn line is known by it.
    pub id: String,
    /// The line that it stood on when it was read.
    pub line: u64,
    /// `done`, `failed`, `cancelled` or `terminated` as its run ended; `invalid` if there is no run.
    pub status: String,
    /// Its run, if that is not named like the item: a later attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// How the run ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<OutcomeView>,
    /// Why there is no run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ApiError>,
    /// Why a batch cancelled the run: `item_timeout` (the history has it, too) or `asked`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// What a row means for the batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The item is done.
    Done,
    /// It failed, or could not be tried.
    Failed,
    /// Somebody cancelled it.
    Cancelled,
}

impl Row {
    /// Returns what it means for the batch.
    #[must_use]
    pub fn standing(&self) -> Standing {
        standing(&self.status, self.why.is_some())
    }
}

fn standing(status: &str, by_the_batch: bool) -> Standing {
    match status {
        "done" => Standing::Done,
        "cancelled" | "terminated" if !by_the_batch => Standing::Cancelled,
        _ => Standing::Failed,
    }
}

/// Which rows of an earlier run of the command are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// All: what ended has ended.
    All,
    /// Those that are done: the others are tried again.
    Done,
}

/// Why a file cannot take results.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResultFileError {
    /// The file is of something else: name another one.
    #[error("{}: line {line} is not a result of a batch", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The line.
        line: u64,
    },
    /// Another process writes it: wait for its end.
    #[error("{} is written by another batch", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// It cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// What a result file held when it was opened.
#[derive(Debug, Default)]
pub struct Earlier {
    done: HashSet<u128>,
    failed: HashSet<u128>,
    cancelled: HashSet<u128>,
}

impl Earlier {
    /// Returns what became of an item, if it has its row.
    #[must_use]
    pub fn standing(&self, id: &str) -> Option<Standing> {
        if breaks(Breakage::ForgetRows) { None } else { self.of(key(id)) }
    }

    fn of(&self, key: u128) -> Option<Standing> {
        let sets = [
            (&self.done, Standing::Done),
            (&self.failed, Standing::Failed),
            (&self.cancelled, Standing::Cancelled),
        ];
        sets.into_iter().find(|(set, _)| set.contains(&key)).map(|(_, standing)| standing)
    }

    fn add(&mut self, row: &Brief) -> bool {
        let key = key(&row.id);
        if self.of(key).is_some() {
            return false;
        }
        match row.standing() {
            Standing::Done => self.done.insert(key),
            Standing::Failed => self.failed.insert(key),
            Standing::Cancelled => self.cancelled.insert(key),
        }
    }
}

fn key(id: &str) -> u128 {
    let mut low = [0; 16];
    low.copy_from_slice(&blake3::hash(id.as_bytes()).as_bytes()[..16]);
    u128::from_le_bytes(low)
}

/// What is read of a row.
#[derive(Deserialize)]
struct Brief {
    id: String,
    status: String,
    why: Option<String>,
}

impl Brief {
    fn standing(&self) -> Standing {
        standing(&self.status, self.why.is_some())
    }
}

/// Opens files of results.
#[derive(Debug)]
pub struct ResultFile;

/// Adds rows to a file of results, which nobody else writes meanwhile.
#[derive(Debug)]
pub struct Appender {
    file: File,
    path: PathBuf,
}

impl ResultFile {
    /// Opens a file, or makes it; cuts a torn last line off and, if so wanted, all rows that are not done.
    ///
    /// # Errors
    /// [`ResultFileError`]; then nothing of the file was changed.
    pub fn open(path: &Path, keep: Keep) -> Result<(Earlier, Appender), ResultFileError> {
        let failed = |source| ResultFileError::Io { path: path.to_path_buf(), source };
        let mut file = lock(path)?;
        let whole = scan(path, &file)?;
        file.set_len(whole).map_err(failed)?;
        let mut earlier = Earlier::default();
        match keep {
            Keep::All => {
                let note = |row: &Brief, _: &[u8]| {
                    earlier.add(row);
                    Ok(())
                };
                each(&file, note).map_err(failed)?;
            }
            Keep::Done => file = rewrite(path, &file, &mut earlier).map_err(failed)?,
        }
        file.seek(SeekFrom::End(0)).map_err(failed)?;
        Ok((earlier, Appender { file, path: path.to_path_buf() }))
    }
}

impl Appender {
    /// Adds whole lines and makes them durable.
    ///
    /// # Errors
    /// [`ResultFileError::Io`]; what was written of them is cut off or found whole when the file is opened again.
    pub fn append(&mut self, lines: &[u8]) -> Result<(), ResultFileError> {
        let written = self.file.write_all(lines).and_then(|()| self.file.sync_data());
        written.map_err(|source| ResultFileError::Io { path: self.path.clone(), source })
    }
}

/// Opens a file that nobody else writes. It may be replaced by its owner at any moment, so the lock counts only if the name still
/// means the same file afterwards.
fn lock(path: &Path) -> Result<File, ResultFileError> {
    let failed = |source| ResultFileError::Io { path: path.to_path_buf(), source };
    loop {
        let file = open(path).map_err(failed)?;
        let found = file.metadata().map_err(failed)?;
        if !found.is_file() {
            return Err(failed(io::Error::other("not a file; - means stdout")));
        }
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(ResultFileError::Busy { path: path.to_path_buf() });
            }
            Err(error) => return Err(failed(error.into())),
        }
        match std::fs::metadata(path) {
            Ok(named) if (named.dev(), named.ino()) == (found.dev(), found.ino()) => return Ok(file),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
}

/// Returns how many bytes of whole rows the file has; what follows is a torn row.
fn scan(path: &Path, file: &File) -> Result<u64, ResultFileError> {
    let failed = |source| ResultFileError::Io { path: path.to_path_buf(), source };
    let mut reader = from_start(file).map_err(failed)?;
    let (mut whole, mut number, mut line) = (0, 0, Vec::new());
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line).map_err(failed)? == 0 {
            return Ok(whole);
        }
        number += 1;
        let complete = line.last() == Some(&b'\n');
        if complete && serde_json::from_slice::<Brief>(&line).is_ok() {
            whole += line.len() as u64;
        } else if !complete && is_torn(&line) {
            return Ok(whole);
        } else {
            return Err(ResultFileError::Foreign { path: path.to_path_buf(), line: number });
        }
    }
}

/// Whether a line without an end is the beginning of a row, perhaps with bytes that the disk never got.
fn is_torn(line: &[u8]) -> bool {
    const START: &[u8] = b"{\"id\":\"";
    let text = line.split(|byte| *byte == 0).next().unwrap_or_default();
    text.starts_with(START) || START.starts_with(text)
}

fn from_start(file: &File) -> io::Result<BufReader<File>> {
    let mut file = file.try_clone()?;
    file.seek(SeekFrom::Start(0))?;
    Ok(BufReader::new(file))
}

/// Calls with each row and its line.
fn each(file: &File, mut visit: impl FnMut(&Brief, &[u8]) -> io::Result<()>) -> io::Result<()> {
    let (mut reader, mut line) = (from_start(file)?, Vec::new());
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        visit(&serde_json::from_slice(&line)?, &line)?;
    }
}

/// Writes the rows that are done into a new file, which takes the place of the old one when it is durable.
fn rewrite(path: &Path, file: &File, earlier: &mut Earlier) -> io::Result<File> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let fresh = open(Path::new(&name))?;
    flock(&fresh, FlockOperation::NonBlockingLockExclusive)?;
    fresh.set_len(0)?;
    let mut writer = BufWriter::new(fresh.try_clone()?);
    each(file, |row, line| match row.standing() {
        Standing::Done if earlier.add(row) => writer.write_all(line),
        Standing::Done | Standing::Failed | Standing::Cancelled => Ok(()),
    })?;
    writer.flush()?;
    fresh.sync_all()?;
    std::fs::rename(&name, path)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or_else(|| Path::new(".")))?.sync_all()?;
    Ok(fresh)
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "{\"id\":\"a\",\"line\":1,\"status\":\"done\"}\n";
    const B: &str = "{\"id\":\"b\",\"line\":2,\"status\":\"failed\"}\n";
    const C: &str = "{\"id\":\"c\",\"line\":3,\"status\":\"cancelled\"}\n";
    const D: &str = "{\"id\":\"d\",\"line\":4,\"status\":\"cancelled\",\"why\":\"item_timeout\"}\n";

    /// Opens a file with this text and adds a row; returns what was found and what is there then.
    fn check(text: &str, keep: Keep) -> Result<(Earlier, String), ResultFileError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out.jsonl");
        std::fs::write(&path, text).unwrap();
        let opened = ResultFile::open(&path, keep);
        if opened.is_err() {
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "a refused file is as it was");
        }
        let (earlier, mut appender) = opened?;
        assert!(matches!(ResultFile::open(&path, keep), Err(ResultFileError::Busy { .. })));
        appender.append(b"{}\n").unwrap();
        Ok((earlier, std::fs::read_to_string(&path).unwrap()))
    }

    #[test]
    fn rows_are_found_and_a_torn_one_is_cut() {
        for torn in ["", "{", "{\"id", "{\"id\":\"x\",\"li", "{\"id\":\"x\"\0\0\0", "\0\0"] {
            let (earlier, text) = check(&format!("{A}{B}{C}{D}{torn}"), Keep::All).unwrap();
            let found = ["a", "b", "c", "d", "x"].map(|id| earlier.standing(id));
            let (done, failed, cancelled) = (Standing::Done, Standing::Failed, Standing::Cancelled);
            assert_eq!(found, [Some(done), Some(failed), Some(cancelled), Some(failed), None], "{torn:?}");
            assert_eq!(text, format!("{A}{B}{C}{D}{{}}\n"), "{torn:?}");
        }
    }

    #[test]
    fn what_is_not_done_can_be_dropped() {
        let (earlier, text) = check(&format!("{B}{A}{A}{C}{D}"), Keep::Done).unwrap();
        assert_eq!(["a", "b", "c"].map(|id| earlier.standing(id)), [Some(Standing::Done), None, None]);
        assert_eq!(text, format!("{A}{{}}\n"));
    }

    #[test]
    fn files_of_others_are_refused_and_left_alone() {
        for (text, at) in [
            ("hello\n".to_owned(), 1),
            ("hello".to_owned(), 1),
            (format!("{A}{{\"id\":\"x\"}}\n{A}"), 2),
            (format!("{A}\n{A}"), 2),
            (format!("{A}{{\"id\":\"torn{A}"), 2),
        ] {
            match check(&text, Keep::Done) {
                Err(ResultFileError::Foreign { line, .. }) => assert_eq!(line, at, "{text:?}"),
                other => panic!("{text:?}: {other:?}"),
            }
        }
    }

    #[test]
    fn rows_begin_with_their_id() {
        let row = Row {
            id: "a".into(),
            line: 1,
            status: "done".into(),
            run: None,
            outcome: None,
            error: None,
            why: None,
        };
        assert_eq!(serde_json::to_string(&row).unwrap() + "\n", A);
    }
}
