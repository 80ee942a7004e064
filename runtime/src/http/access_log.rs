//! The access log: one line of JSON for each request, also for those that were refused.
//!
//! Leaves what happened to runs to their histories. Invariant: no token, body or query stands in it, and nothing that becomes of the file
//! holds a request up: lines are written by a thread of its own, what it cannot write is lost, and that is said once.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use crate::limits::{ACCESS_LOG_CLOSE_MS_MAX, ACCESS_LOG_LINES_MAX};

/// An access log. Clones write to the same one.
#[derive(Clone, Debug)]
pub struct AccessLog {
    notes: SyncSender<Note>,
    /// Lines for which the thread had no room.
    lost: Arc<AtomicU64>,
}

#[derive(Debug)]
enum Note {
    Line(String),
    Reopen,
    Close(SyncSender<()>),
}

impl AccessLog {
    /// Opens a log, whose lines are added to those that are there. Only its owner may read it.
    ///
    /// # Errors
    /// If the file cannot be opened, or the system gives no thread.
    pub fn open(path: &Path) -> io::Result<AccessLog> {
        let file = append(path)?;
        let (notes, received) = sync_channel(ACCESS_LOG_LINES_MAX);
        let lost = Arc::new(AtomicU64::new(0));
        let writer =
            Writer { path: path.to_path_buf(), file, lost: Arc::clone(&lost), ails: false, torn: false };
        std::thread::Builder::new().name("access log".to_owned()).spawn(move || writer.write(&received))?;
        Ok(AccessLog { notes, lost })
    }

    /// Writes a line, if there is room for it.
    pub(super) fn line(&self, line: String) {
        match self.notes.try_send(Note::Line(line)) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                self.lost.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Opens the file anew, after it was moved away. If that fails, lines go where they went.
    pub fn reopen(&self) {
        // With thousands of lines before it the next signal will do.
        let _full = self.notes.try_send(Note::Reopen);
    }

    /// Waits until what was said is written, for a moment: a disk may hang.
    pub fn close(&self) {
        let (closed, wait) = sync_channel(1);
        if self.notes.try_send(Note::Close(closed)).is_ok() {
            let _late = wait.recv_timeout(Duration::from_millis(ACCESS_LOG_CLOSE_MS_MAX));
        }
    }
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

struct Writer {
    path: PathBuf,
    file: File,
    lost: Arc<AtomicU64>,
    /// Whether it was said that lines are lost, and not yet that they are written again.
    ails: bool,
    /// Whether the file ends in the middle of a line.
    torn: bool,
}

impl Writer {
    fn write(mut self, notes: &Receiver<Note>) {
        while let Ok(note) = notes.recv() {
            match note {
                Note::Line(line) => self.line(&line),
                Note::Reopen => match append(&self.path) {
                    Ok(file) => (self.file, self.torn) = (file, false),
                    Err(error) => {
                        tracing::error!("cannot reopen the access log {}: {error}", self.path.display());
                    }
                },
                Note::Close(closed) => drop(closed.try_send(())),
            }
        }
    }

    fn line(&mut self, line: &str) {
        let text = if self.torn { format!("\n{line}\n") } else { format!("{line}\n") };
        let written = self.write_all(text.as_bytes());
        let lost = self.lost.load(Ordering::Relaxed);
        match written {
            Ok(()) if lost > 0 => {
                self.lost.fetch_sub(lost, Ordering::Relaxed);
                self.ails = false;
                tracing::error!("the access log {} goes on; {lost} lines are lost", self.path.display());
            }
            Ok(()) => {}
            Err(error) => {
                self.lost.fetch_add(1, Ordering::Relaxed);
                if !std::mem::replace(&mut self.ails, true) {
                    let path = self.path.display();
                    tracing::error!(
                        "cannot write the access log {path}: {error}; requests go on, their lines are lost"
                    );
                }
            }
        }
    }

    /// Writes text, and keeps in mind whether the file ends in the middle of it.
    fn write_all(&mut self, text: &[u8]) -> io::Result<()> {
        let mut left = text;
        while !left.is_empty() {
            match self.file.write(left) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    left = &left[written..];
                    self.torn = !left.is_empty();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_added_and_go_to_a_new_file_after_a_rotation() {
        let dir = tempfile::tempdir().unwrap();
        let (path, old) = (dir.path().join("log"), dir.path().join("log.1"));
        std::fs::write(&path, "before\n").unwrap();
        let log = AccessLog::open(&path).unwrap();
        log.line("one".to_owned());
        log.close();
        std::fs::rename(&path, &old).unwrap();
        log.line("two".to_owned());
        log.reopen();
        log.line("three".to_owned());
        log.close();
        assert_eq!(std::fs::read_to_string(old).unwrap(), "before\none\ntwo\n");
        assert_eq!(std::fs::read_to_string(path).unwrap(), "three\n");
    }

    #[test]
    fn a_file_that_takes_nothing_holds_up_nobody() {
        let log = AccessLog::open(Path::new("/dev/full")).unwrap();
        for _ in 0..10 {
            log.line("x".to_owned());
        }
        log.close();
        assert_eq!(log.lost.load(Ordering::Relaxed), 10);
        assert!(AccessLog::open(Path::new("/no/such/folder/log")).is_err());
    }
}
