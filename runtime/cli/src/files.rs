//! Text files of bounded size: read whole, replaced whole.
//!
//! Leaves what the text means to its callers. Invariant: a file is replaced as a whole or not at all.

use std::fs::{self, File};
use std::io::{self, Read, Write as _};
use std::path::Path;

use crate::failure::{Exit, Failure};
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

/// Makes the failure of a file that cannot be written: what was named wrongly is mended on the command line.
pub(crate) fn unwritable(path: &Path, error: &io::Error) -> Failure {
    use io::ErrorKind::{InvalidInput, IsADirectory, NotADirectory, NotFound, PermissionDenied};
    let message = format!("{} cannot be written: {error}", path.display());
    match error.kind() {
        IsADirectory | NotADirectory | NotFound | PermissionDenied | InvalidInput => Failure::usage(message),
        _ => Failure::new(Exit::Failed, message),
    }
}

/// Tells whether there is something at a path, be it a link that leads nowhere or a file that may not be read.
pub(crate) fn is_there(path: &Path) -> bool {
    !fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Puts bytes in a file, new or not, so that nobody ever sees half of them. A link stays a link: the file that it leads to is replaced.
/// What is no regular file, such as a pipe or a terminal, is written to.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let path = if is_there(path) { fs::canonicalize(path)? } else { path.to_path_buf() };
    let known = if is_there(&path) { Some(fs::metadata(&path)?) } else { None };
    if known.as_ref().is_some_and(|known| !known.is_file()) {
        return File::options().write(true).open(&path)?.write_all(bytes);
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let fresh = path.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
    let written = write_new(&fresh, bytes, known.map(|known| known.permissions()));
    written.and_then(|()| fs::rename(&fresh, &path)).inspect_err(|_| {
        // What went wrong is told; that the rest of it could not be removed helps nobody.
        let _left = fs::remove_file(&fresh);
    })
}

fn write_new(path: &Path, bytes: &[u8], permissions: Option<fs::Permissions>) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    file.write_all(bytes)?;
    if let Some(permissions) = permissions {
        file.set_permissions(permissions)?;
    }
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_file_is_replaced_whole_where_a_link_leads_and_nothing_else_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        replace(&at("new"), b"one").unwrap();
        symlink("new", at("link")).unwrap();
        replace(&at("link"), b"two").unwrap();
        assert_eq!(
            (fs::read(at("new")).unwrap().as_slice(), at("link").is_symlink()),
            (b"two".as_slice(), true)
        );
        symlink("nowhere", at("lost")).unwrap();
        assert!(replace(&at("lost"), b"x").is_err() && replace(dir.path(), b"x").is_err());
        replace(Path::new("/dev/null"), b"x").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3, "nothing unfinished is left");
    }
}
