//! The `FORMAT` file: text, so that every release can tell a newer store before it touches a byte of it.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use super::files;
use crate::StoreError;

/// The format that this release writes, and the newest it reads: directory layout, keyspaces, keys, frames.
///
/// 1: the first. 2: deleted runs leave records under `x` and `p`, and a release that does not know them would give their ids, and so their
/// events, to new runs; large values of events stand under their hashes. A store of format 1 is one of format 2 in which nothing was deleted and
/// all values stand in their events. 3: tables may be packed, and rules that most runs have are written as a mark; everything of format 2 is
/// read as it is.
pub(super) const FORMAT: u32 = 3;

const NAME: &str = "FORMAT";
const PREFIX: &str = "outlast store ";

/// Returns the format of a store; none if no store was ever finished here.
///
/// # Errors
/// [`StoreError::Newer`] for a newer one, [`StoreError::Damaged`] for a file that is something else.
pub(super) fn read(directory: &Path) -> Result<Option<u32>, StoreError> {
    let path = directory.join(NAME);
    let what = || path.display().to_string();
    let text = match fs::read(&path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
        Err(e) => return Err(files::failed(directory, "read FORMAT")(e)),
    };
    let Some(found) = text.strip_prefix(PREFIX).and_then(|rest| rest.trim_end().parse().ok()) else {
        let detail = "it does not name the format of a store".into();
        return Err(StoreError::Damaged { what: what(), detail });
    };
    if found > FORMAT {
        return Err(StoreError::Newer { what: what(), found, known: FORMAT });
    }
    Ok(Some(found))
}

/// Writes the file: from now on the store counts as finished.
pub(super) fn write(directory: &Path) -> Result<(), StoreError> {
    let text = format!("{PREFIX}{FORMAT}\n");
    files::write_whole(directory, NAME, text.as_bytes()).map_err(files::failed(directory, "write FORMAT"))
}
