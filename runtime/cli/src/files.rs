//! Text files of bounded size: read whole, replaced whole.
//!
//! Leaves what the text means to its callers. Invariant: a file is replaced as a whole or not at all.

use std::fs::{self, File};
use std::io::{self, Read, Write as _};
use std::path::Path;

use crate::failure::Failure;
use crate::limits::FILE_BYTES_MAX;

/// Reads a text file of bounded size.
pub(crate) fn read_text(path: &Path) -> Result<String, Failure> {
    let name = path.display().to_string();
    let file = File::open(path).map_err(|error| unreadable(&name, &error))?;
    text_of(&name, file)
}

/// Reads all of stdin, as bounded as a file.
pub(crate) fn read_stdin() -> Result<String, Failure> {
    text_of("stdin", io::stdin().lock())
}

fn text_of(name: &str, from: impl Read) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    from.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|error| unreadable(name, &error))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(Failure::usage(format!("{name} is over {FILE_BYTES_MAX} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| Failure::usage(format!("{name} is not UTF-8 text")))
}

fn unreadable(name: &str, error: &io::Error) -> Failure {
    Failure::usage(format!("cannot read {name}: {error}"))
}

/// Writes a new file beside the old one and puts it in its place, so that nobody ever sees half of it.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    // A link stays a link: the file that it leads to is replaced.
    let path = fs::canonicalize(path)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let fresh = path.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
    let written = write_new(&fresh, text, &fs::metadata(&path)?.permissions());
    written.and_then(|()| fs::rename(&fresh, &path)).inspect_err(|_| {
        // What went wrong is told; that the rest of it could not be removed helps nobody.
        let _left = fs::remove_file(&fresh);
    })
}

fn write_new(path: &Path, text: &str, permissions: &fs::Permissions) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    file.write_all(text.as_bytes())?;
    file.set_permissions(permissions.clone())?;
    file.sync_all()
}
