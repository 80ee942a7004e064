//! Tools that read and change one file.
//!
//! Leaves paths to the jail. Invariant: a file is replaced whole or not at all (temporary file, sync, rename), and a change that
//! was interrupted and is run again ends in what one run would have made, or is refused.

use std::fs::{File, Metadata};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use super::ToolError;
use super::jail::Jail;
use super::output::{Capture, Captured, Reader};
use crate::limits::{FILE_BYTES_MAX, SHOWN_LINES};
use crate::sdk::Mask;

/// Reads a file, or `limit` lines from line `offset` (from 1).
pub(crate) fn read(
    jail: &Jail,
    path: &str,
    offset: Option<u64>,
    limit: Option<u64>,
    reader: Reader,
    mask: &Mask,
) -> Result<Captured, ToolError> {
    some_lines(open(jail, path)?.0, path, (offset, limit), Capture::new(reader, mask))
}

/// Takes in `limit` lines from line `offset` of whatever `path` names.
pub(crate) fn some_lines(
    mut from: impl Read,
    path: &str,
    (offset, limit): (Option<u64>, Option<u64>),
    mut capture: Capture,
) -> Result<Captured, ToolError> {
    let first = offset.unwrap_or(1);
    let end = limit.map(|limit| first.saturating_add(limit));
    let mut chunk = vec![0; 64 << 10];
    let mut line = 1;
    loop {
        let length = from.read(&mut chunk).map_err(|error| ToolError::io(path, &error))?;
        if length == 0 {
            break;
        }
        let mut rest = &chunk[..length];
        while !rest.is_empty() && end.is_none_or(|end| line < end) {
            let newline = rest.iter().position(|byte| *byte == b'\n');
            let piece = &rest[..newline.map_or(rest.len(), |at| at + 1)];
            if line >= first {
                capture.push(piece);
            }
            line += u64::from(newline.is_some());
            rest = &rest[piece.len()..];
        }
        if !rest.is_empty() {
            break;
        }
    }
    if line < first {
        return Err(ToolError::new("NotFound", format!("{path} has {line} lines")));
    }
    Ok(capture.finish())
}

/// Writes a whole file.
pub(crate) fn write(jail: &Jail, path: &str, text: &str) -> Result<String, ToolError> {
    let target = jail.resolve(path)?;
    let permissions = match target.metadata() {
        Ok(found) if found.is_file() => Some(found.permissions()),
        Ok(_) => return Err(ToolError::new("FileError", format!("{path} is no file"))),
        Err(_) => None,
    };
    replace(&target, text.as_bytes(), permissions).map_err(|error| ToolError::io(path, &error))?;
    Ok(format!("wrote {} bytes to {}", text.len(), jail.shown(&target)))
}

/// Whether a file has exactly this content.
pub(crate) fn has_content(jail: &Jail, path: &str, text: &str) -> Result<bool, ToolError> {
    match content(jail, path) {
        Ok(found) => Ok(found == text.as_bytes()),
        Err(error) if error.kind == "NotFound" => Ok(false),
        Err(error) => Err(error),
    }
}

/// A change of a file that was worked out but not made.
#[derive(Debug, PartialEq)]
pub(crate) struct Change {
    pub(crate) before: Vec<u8>,
    pub(crate) after: Vec<u8>,
}

/// Works out an edit: `old` must occur exactly once.
pub(crate) fn plan_edit(jail: &Jail, path: &str, old: &str, new: &str) -> Result<Change, ToolError> {
    if old.is_empty() || old == new {
        return Err(ToolError::new("BadArguments", "old must be some text, and new another"));
    }
    let before = content(jail, path)?;
    let places = occurrences(&before, old.as_bytes());
    match places[..] {
        [at] => {
            let after = [&before[..at], new.as_bytes(), &before[at + old.len()..]].concat();
            Ok(Change { before, after })
        }
        [] => Err(ToolError::new("NoMatch", format!("{path} does not contain the old text"))),
        _ => {
            let count = places.len();
            Err(ToolError::new(
                "NoMatch",
                format!("{path} contains the old text {count} times; give more of it"),
            ))
        }
    }
}

/// Names the lines that an edit shows: those of the text to replace, and a few around it.
pub(crate) fn lines_around(jail: &Jail, path: &str, old: &str) -> Result<String, ToolError> {
    let content = content(jail, path)?;
    let [at] = occurrences(&content, old.as_bytes())[..] else {
        return Err(ToolError::new("NoMatch", format!("{path} does not contain the old text once")));
    };
    let mut lines_before = content[..at].iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
    let start = lines_before.nth(SHOWN_LINES).map_or(0, |(at, _)| at + 1);
    let rest = &content[at + old.len()..];
    let mut lines_after = rest.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
    let end = at + old.len() + lines_after.nth(SHOWN_LINES).unwrap_or(rest.len());
    Ok(digest(&content[start..end]))
}

/// Makes a change, unless the file is no longer what it was.
pub(crate) fn make_edit(jail: &Jail, path: &str, change: &Change) -> Result<String, ToolError> {
    let target = jail.resolve(path)?;
    let (file, metadata) = open(jail, path)?;
    // Keeps two edits of one file, in this worker or another, from overwriting each other.
    flock(&file, FlockOperation::LockExclusive).map_err(|error| ToolError::io(path, &error.into()))?;
    let now = content(jail, path)?;
    if now != change.before {
        return Err(changed(path));
    }
    replace(&target, &change.after, Some(metadata.permissions()))
        .map_err(|error| ToolError::io(path, &error))?;
    Ok(format!("edited {}", jail.shown(&target)))
}

/// Names a content.
pub(crate) fn digest(content: &[u8]) -> String {
    blake3::hash(content).to_hex().to_string()
}

/// Names the content of a file.
pub(crate) fn digest_of(jail: &Jail, path: &str) -> Result<String, ToolError> {
    Ok(digest(&content(jail, path)?))
}

/// The refusal of an edit whose file is neither as it was nor as it should become.
pub(crate) fn changed(path: &str) -> ToolError {
    ToolError::new("FileChanged", format!("{path} was changed meanwhile; read it again"))
}

/// What can be told of an edit that may have happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trace {
    Happened,
    NotHappened,
    CannotTell,
}

/// Looks at a file for an edit that may have been made.
pub(crate) fn trace_of_edit(jail: &Jail, path: &str, old: &str, new: &str) -> Result<Trace, ToolError> {
    let content = content(jail, path)?;
    let old_places = occurrences(&content, old.as_bytes());
    let new_places = occurrences(&content, new.as_bytes());
    // Where the new text contains the old one, its presence proves nothing about the old one's.
    Ok(match (old_places.len(), new_places.len()) {
        (1, 0) => Trace::NotHappened,
        (0, 1) if !new.is_empty() => Trace::Happened,
        _ => Trace::CannotTell,
    })
}

/// The line as it is appended: the key stands where the line says `{key}`, else in a comment at its end.
pub(crate) fn keyed_line(line: &str, key: &str) -> Result<String, ToolError> {
    if line.contains(['\n', '\r']) {
        return Err(ToolError::new("BadArguments", "the line contains a line break"));
    }
    Ok(if line.contains("{key}") { line.replace("{key}", key) } else { format!("{line}  # {key}") })
}

/// Appends one line in one write, and syncs it.
pub(crate) fn append(jail: &Jail, path: &str, line: &str, key: &str) -> Result<String, ToolError> {
    let line = keyed_line(line, key)?;
    let target = jail.resolve(path)?;
    let failed = |error: std::io::Error| ToolError::io(path, &error);
    if let Some(parent) = target.parent() {
        std::fs::create_dir_all(parent).map_err(failed)?;
    }
    let mut file = File::options().read(true).append(true).create(true).open(&target).map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(ToolError::new("FileError", format!("{path} is no file")));
    }
    flock(&file, FlockOperation::LockExclusive).map_err(|error| failed(error.into()))?;
    let newline = if ends_in_newline(&mut file).map_err(failed)? { "" } else { "\n" };
    file.write_all(format!("{newline}{line}\n").as_bytes()).map_err(failed)?;
    file.sync_data().map_err(failed)?;
    Ok(format!("appended to {}", jail.shown(&target)))
}

/// Looks for an appended line by its key.
pub(crate) fn trace_of_append(jail: &Jail, path: &str, line: &str, key: &str) -> Result<Trace, ToolError> {
    let line = keyed_line(line, key)?;
    let content = match content(jail, path) {
        Ok(content) => content,
        Err(error) if error.kind == "NotFound" => return Ok(Trace::NotHappened),
        Err(error) => return Err(error),
    };
    let whole = content.ends_with(b"\n");
    let lines: Vec<&[u8]> = content.split(|byte| *byte == b'\n').collect();
    if lines.contains(&line.as_bytes()) {
        return Ok(Trace::Happened);
    }
    // A line without an end may be ours, torn.
    let torn =
        !whole && lines.last().is_some_and(|last| !last.is_empty() && line.as_bytes().starts_with(last));
    Ok(if torn { Trace::CannotTell } else { Trace::NotHappened })
}

fn ends_in_newline(file: &mut File) -> std::io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(true);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

/// Opens a regular file; a pipe or a device would block the worker.
fn open(jail: &Jail, path: &str) -> Result<(File, Metadata), ToolError> {
    let target = jail.resolve(path)?;
    let metadata = target.metadata().map_err(|error| ToolError::io(path, &error))?;
    if metadata.is_dir() {
        return Err(ToolError::new("FileError", format!("{path} is a directory; use list")));
    }
    if !metadata.is_file() {
        return Err(ToolError::new("FileError", format!("{path} is no regular file")));
    }
    let file = File::open(&target).map_err(|error| ToolError::io(path, &error))?;
    Ok((file, metadata))
}

fn content(jail: &Jail, path: &str) -> Result<Vec<u8>, ToolError> {
    let (file, metadata) = open(jail, path)?;
    if metadata.len() > FILE_BYTES_MAX {
        return Err(ToolError::new("TooLarge", format!("{path} has more than {FILE_BYTES_MAX} bytes")));
    }
    let mut content = Vec::new();
    file.take(FILE_BYTES_MAX).read_to_end(&mut content).map_err(|error| ToolError::io(path, &error))?;
    Ok(content)
}

/// Puts a file in the place of another, so that a reader, or a crash, finds one or the other.
fn replace(target: &Path, bytes: &[u8], permissions: Option<std::fs::Permissions>) -> std::io::Result<()> {
    let parent = target.parent().unwrap_or(Path::new("/"));
    std::fs::create_dir_all(parent)?;
    let mut builder = tempfile::Builder::new();
    builder.prefix(".outlast-");
    // A new file gets what the user's mask leaves of this, as from any other program.
    let new_file = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    let mut temporary = builder.permissions(new_file).tempfile_in(parent)?;
    temporary.write_all(bytes)?;
    if let Some(permissions) = permissions {
        temporary.as_file().set_permissions(permissions)?;
    }
    temporary.as_file().sync_all()?;
    temporary.persist(target).map_err(|error| error.error)?;
    File::open(parent)?.sync_all()
}

/// Where a piece begins, overlapping places included.
fn occurrences(content: &[u8], piece: &[u8]) -> Vec<usize> {
    if piece.is_empty() || piece.len() > content.len() {
        return Vec::new();
    }
    let first = piece[0];
    let starts = content[..=content.len() - piece.len()].iter().enumerate();
    starts
        .filter(|(at, byte)| **byte == first && content[*at..].starts_with(piece))
        .map(|(at, _)| at)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jail() -> (tempfile::TempDir, Jail) {
        let dir = tempfile::tempdir().unwrap();
        let jail = Jail::new(dir.path()).unwrap();
        (dir, jail)
    }

    #[test]
    fn reading_gives_the_lines_asked_for() {
        let (dir, jail) = jail();
        std::fs::write(dir.path().join("f"), "1\n2\n3\n4").unwrap();
        for (offset, limit, text) in [
            (None, None, "1\n2\n3\n4"),
            (Some(2), None, "2\n3\n4"),
            (Some(2), Some(2), "2\n3\n"),
            (Some(4), Some(9), "4"),
            (None, Some(1), "1\n"),
        ] {
            assert_eq!(
                read(&jail, "f", offset, limit, Reader::Flow, &Mask::default()).unwrap().cut(),
                text,
                "{offset:?} {limit:?}"
            );
        }
        assert_eq!(
            read(&jail, "f", Some(5), None, Reader::Flow, &Mask::default()).unwrap_err().text,
            "f has 4 lines"
        );
    }

    #[test]
    fn what_is_no_file_is_not_opened() {
        let (dir, jail) = jail();
        std::fs::create_dir(dir.path().join("d")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, dir.path().join("pipe"), 0o600.into()).unwrap();
        for path in ["d", "pipe", "missing"] {
            assert!(read(&jail, path, None, None, Reader::Flow, &Mask::default()).is_err(), "{path}");
        }
    }

    #[test]
    fn writing_replaces_whole_and_keeps_the_mode() {
        use std::os::unix::fs::PermissionsExt;
        let (dir, jail) = jail();
        write(&jail, "new/dir/f", "one").unwrap();
        let file = dir.path().join("new/dir/f");
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o750)).unwrap();
        write(&jail, "new/dir/f", "two\n").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "two\n");
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o750);
        assert_eq!(
            std::fs::read_dir(dir.path().join("new/dir")).unwrap().count(),
            1,
            "no temporary file is left"
        );
        assert!(has_content(&jail, "new/dir/f", "two\n").unwrap());
        assert!(!has_content(&jail, "missing", "two\n").unwrap());
    }

    #[test]
    fn an_edit_needs_one_place_and_an_unchanged_file() {
        let (dir, jail) = jail();
        let file = dir.path().join("f");
        std::fs::write(&file, "aXbXc").unwrap();
        for (old, problem) in [("X", "2 times"), ("Y", "does not contain"), ("", "old must be")] {
            let error = plan_edit(&jail, "f", old, "Z").unwrap_err();
            assert!(error.text.contains(problem), "{old}: {error}");
        }
        let change = plan_edit(&jail, "f", "Xb", "日").unwrap();
        assert_eq!(change.after, "a日Xc".as_bytes());
        std::fs::write(&file, "aXbXc!").unwrap();
        assert_eq!(make_edit(&jail, "f", &change).unwrap_err().kind, "FileChanged");
        std::fs::write(&file, "aXbXc").unwrap();
        make_edit(&jail, "f", &change).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "a日Xc");
    }

    #[test]
    fn an_edit_shows_the_lines_around_it_and_no_others() {
        let (dir, jail) = jail();
        let lines = |text: &str| {
            std::fs::write(dir.path().join("f"), text).unwrap();
            lines_around(&jail, "f", "X").ok()
        };
        let shown = lines("0\n1\n2\n3\nX\n4\n5\n6\n7\n");
        assert!(shown.is_some());
        for (text, same) in [
            ("new\n0\n1\n2\n3\nX\n4\n5\n6\n7\nnew\n", true),
            ("0\n1 new\n2\n3\nX\n4\n5\n6\n7\n", false),
            ("0\n1\n2\n3\nX\n4\n5\n6 new\n7\n", false),
            ("0\n1\n2\n3\nX new\n4\n5\n6\n7\n", false),
            ("X\nX\n", false),
        ] {
            assert_eq!(lines(text) == shown, same, "{text:?}");
        }
        assert!(lines("X").is_some() && lines("none").is_none());
    }

    #[test]
    fn traces_of_edits_are_told_only_where_they_prove_something() {
        let (dir, jail) = jail();
        for (content, old, new, trace) in [
            ("a old b", "old", "new", Trace::NotHappened),
            ("a new b", "old", "new", Trace::Happened),
            ("a old new b", "old", "new", Trace::CannotTell),
            ("neither", "old", "new", Trace::CannotTell),
            ("a older b", "old", "older", Trace::CannotTell),
            ("gone", "old", "", Trace::CannotTell),
        ] {
            std::fs::write(dir.path().join("f"), content).unwrap();
            assert_eq!(trace_of_edit(&jail, "f", old, new).unwrap(), trace, "{content}");
        }
    }

    #[test]
    fn an_appended_line_is_found_by_its_key() {
        let (dir, jail) = jail();
        let file = dir.path().join("log/f");
        assert_eq!(trace_of_append(&jail, "log/f", "paid", "r/1.0").unwrap(), Trace::NotHappened);
        append(&jail, "log/f", "paid", "r/1.0").unwrap();
        append(&jail, "log/f", "[{key}] sent", "r/2.0").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "paid  # r/1.0\n[r/2.0] sent\n");
        assert_eq!(trace_of_append(&jail, "log/f", "paid", "r/1.0").unwrap(), Trace::Happened);
        assert_eq!(trace_of_append(&jail, "log/f", "[{key}] sent", "r/2.0").unwrap(), Trace::Happened);
        assert_eq!(trace_of_append(&jail, "log/f", "paid", "r/1.1").unwrap(), Trace::NotHappened);
        std::fs::write(&file, "paid  # r/").unwrap();
        assert_eq!(trace_of_append(&jail, "log/f", "paid", "r/1.0").unwrap(), Trace::CannotTell);
        append(&jail, "log/f", "next", "k").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "paid  # r/\nnext  # k\n");
        assert!(append(&jail, "log/f", "two\nlines", "k").is_err());
    }
}
