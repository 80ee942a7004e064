//! The mark: the number of the last durable commit, in a file outside fjall, so that a vanished journal is noticed.
//!
//! Written after every commit, never synced: it may be behind (a power cut), but never ahead of what was durable.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::files;
use crate::StoreError;
use crate::breakage::{Breakage, breaks};

const NAME: &str = "mark";
const DIGITS: usize = 20;

/// The open mark file.
#[derive(Debug)]
pub(super) struct MarkFile(File);

/// Returns the number in the mark; none if there is no mark.
///
/// # Errors
/// [`StoreError::Damaged`] if it holds anything else: it is written in place, so no crash does that.
pub(super) fn read(directory: &Path) -> Result<Option<u64>, StoreError> {
    let path = directory.join(NAME);
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(files::failed(directory, "read the mark")(e)),
    };
    let parse = || {
        let (number, check) = std::str::from_utf8(&bytes).ok()?.trim_end().split_once(' ')?;
        (check == self::check(number) && number.len() == DIGITS).then_some(())?;
        number.parse().ok()
    };
    let damaged = || StoreError::Damaged {
        what: path.display().to_string(),
        detail: "it does not name a commit; if the histories are known to be whole, remove this file".into(),
    };
    parse().map(Some).ok_or_else(damaged)
}

impl MarkFile {
    /// Opens the mark and brings it up to this number: it may be missing, or behind after a power cut.
    pub(super) fn open(directory: &Path, number: u64) -> Result<MarkFile, StoreError> {
        let path = directory.join(NAME);
        let open = || {
            if !path.exists() {
                files::write_whole(directory, NAME, line(number).as_bytes())?;
            }
            let mut mark = MarkFile(File::options().write(true).open(&path)?);
            mark.write(number)?;
            Ok(mark)
        };
        open().map_err(files::failed(directory, "open the mark"))
    }

    /// Writes the number in place; the line always has the same length.
    pub(super) fn write(&mut self, number: u64) -> io::Result<()> {
        if breaks(Breakage::SkipMark) {
            return Ok(());
        }
        self.0.write_all_at(line(number).as_bytes(), 0)
    }
}

fn line(number: u64) -> String {
    let number = format!("{number:0DIGITS$}");
    format!("{number} {}\n", check(&number))
}

fn check(number: &str) -> String {
    blake3::hash(number.as_bytes()).to_hex()[..8].to_string()
}
