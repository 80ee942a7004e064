//! Small work on files: errors with a path, directories made durable, bytes counted.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::StoreError;

/// Makes an error about the data directory.
pub(super) fn disk(directory: &Path, detail: String, source: Option<io::Error>) -> StoreError {
    StoreError::Disk { path: directory.to_path_buf(), detail, source }
}

/// Returns a closure that says what was tried when the system refuses.
pub(super) fn failed<'a>(directory: &'a Path, doing: &'a str) -> impl Fn(io::Error) -> StoreError + 'a {
    move |source| {
        let detail = match source.kind() {
            ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied => {
                format!(
                    "{doing}: this process may not write there ({source}); give it the right, or name another directory"
                )
            }
            _ => format!("{doing}: {source}"),
        };
        disk(directory, detail, Some(source))
    }
}

/// Writes a small file that is whole or absent, whenever the power goes.
pub(super) fn write_whole(directory: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let unfinished = directory.join(format!("{name}.new"));
    let mut file = File::create(&unfinished)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&unfinished, directory.join(name))?;
    sync_directory(directory)
}

/// Makes the entries of a directory durable.
pub(super) fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Returns the bytes that a directory's files take on disk; a file that vanishes meanwhile counts nothing.
pub(super) fn bytes(directory: &Path) -> Result<u64, StoreError> {
    fn walk(directory: &Path) -> io::Result<u64> {
        let mut sum = 0;
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            sum += match entry.metadata() {
                Ok(meta) if meta.is_dir() => walk(&entry.path())?,
                Ok(meta) => meta.blocks() * 512,
                Err(e) if e.kind() == ErrorKind::NotFound => 0,
                Err(e) => return Err(e),
            };
        }
        Ok(sum)
    }
    match walk(directory) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(0),
        other => other.map_err(failed(directory, "count its bytes")),
    }
}
