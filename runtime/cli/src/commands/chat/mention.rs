//! Files that a message names: `@path` puts the file's text behind the message.
//!
//! Invariant: a message goes with all the files that it names, or not at all; and what was typed can be told from what was sent.

use std::fs;
use std::path::{Path, PathBuf};

use crate::files;
use crate::limits::MENTION_BYTES_MAX;

/// Marks that may stand behind a path and belong to the sentence.
const MARKS: [char; 8] = ['.', ',', ';', ':', '!', '?', ')', ']'];

/// What stands before a file behind a message, and before its name.
const HEADING: &str = "\n\nThe file ";

/// Returns the message with the text of the files that it names, or why it cannot be sent.
pub(super) fn expand(message: &str, directory: &Path) -> Result<String, String> {
    let (mut whole, mut files) = (String::new(), Vec::<(String, String)>::new());
    let mut rest = message;
    while let Some(at) = rest.find('@') {
        let before = &rest[..at];
        whole.push_str(before);
        rest = &rest[at + 1..];
        if before.ends_with('\\') {
            whole.pop();
        } else if whole.is_empty() || whole.ends_with(char::is_whitespace) {
            let (name, length) = named(rest, directory);
            if !name.is_empty() {
                add(&mut files, &name, directory)?;
                whole = whole + "@" + &rest[..length];
                rest = &rest[length..];
                continue;
            }
        }
        whole.push('@');
    }
    whole.push_str(rest);
    let size: usize = files.iter().map(|(_, text)| text.len()).sum();
    if size > MENTION_BYTES_MAX {
        return Err(format!("the files of a message may have {MENTION_BYTES_MAX} bytes, these have {size}"));
    }
    for (name, text) in files {
        let fence = fence(&text);
        let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        whole = format!("{whole}{HEADING}{name}:\n{fence}\n{text}{end}{fence}");
    }
    Ok(whole)
}

/// Returns the path at the beginning of a text, and how long it is there: to the next space, or in quotes.
fn named(text: &str, directory: &Path) -> (String, usize) {
    if let Some(quoted) = text.strip_prefix('"')
        && let Some(end) = quoted.find('"')
    {
        return (quoted[..end].to_owned(), end + 2);
    }
    let word = text.split(char::is_whitespace).next().unwrap_or_default();
    let bare = word.trim_end_matches(MARKS);
    let name = if is_file(&directory.join(word)) { word } else { bare };
    (name.to_owned(), name.len())
}

fn is_file(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file())
}

fn add(files: &mut Vec<(String, String)>, name: &str, directory: &Path) -> Result<(), String> {
    if files.iter().any(|(known, _)| known == name) {
        return Ok(());
    }
    let path: PathBuf = directory.join(name);
    let told = |why: &str| format!("@{name}: {why}; \\@ writes a plain @");
    match fs::metadata(&path) {
        Err(error) => return Err(told(&error.to_string())),
        // What is no file may have no end.
        Ok(found) if !found.is_file() => return Err(told("not a file")),
        Ok(_) => {}
    }
    let text = files::read_text(&path).map_err(|failure| {
        told(failure.error().map_or("it cannot be read", |error| error.message.as_str()))
    })?;
    if text.contains('\0') {
        return Err(told("not a text file"));
    }
    files.push((name.to_owned(), text));
    Ok(())
}

/// Returns a fence that is longer than any in the text.
fn fence(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    "`".repeat(longest.max(2) + 1)
}

/// Returns what a person types to say this message: without the files, and with its other @ as plain ones.
pub(super) fn typed(message: &str) -> String {
    let (mut rest, files) = parts(message);
    let mut typed = String::new();
    while let Some((before, after)) = rest.split_once('@') {
        typed.push_str(before);
        let begins = typed.is_empty() || typed.ends_with(char::is_whitespace);
        let names_one = files.iter().any(|(name, _)| after.trim_start_matches('"').starts_with(name));
        if begins && !names_one && !after.is_empty() && !after.starts_with(char::is_whitespace) {
            typed.push('\\');
        }
        typed.push('@');
        rest = after;
    }
    typed + rest
}

/// Returns what is shown of a message: each file by its name and size.
pub(super) fn shown(message: &str) -> String {
    let (said, files) = parts(message);
    files.iter().fold(said.to_owned(), |said, (name, bytes)| match mention_of(&said, name) {
        Some(end) => format!("{} ({}){}", &said[..end], size(*bytes), &said[end..]),
        None => said,
    })
}

/// Splits a message into what was said, and the names and sizes of the files behind it.
fn parts(message: &str) -> (&str, Vec<(&str, usize)>) {
    for (at, _) in message.match_indices(HEADING) {
        let (said, rest) = message.split_at(at);
        let is_named = |(name, _): &(&str, usize)| mention_of(said, name).is_some();
        if let Some(files) = blocks(rest).filter(|files| files.iter().all(is_named)) {
            return (said, files);
        }
    }
    (message, Vec::new())
}

/// Reads files that stand behind a message, to its end.
fn blocks(mut rest: &str) -> Option<Vec<(&str, usize)>> {
    let mut files = Vec::new();
    while !rest.is_empty() {
        let (name, block) = rest.strip_prefix(HEADING)?.split_once(":\n")?;
        let (fence, text) = block.split_once('\n').filter(|(fence, _)| fence.starts_with("```"))?;
        // No run of backquotes in the text is as long as its fence.
        let end = text.find(fence)?;
        files.push((name, end));
        rest = &text[end + fence.len()..];
    }
    Some(files)
}

/// Returns where the first mention of a file ends.
fn mention_of(text: &str, name: &str) -> Option<usize> {
    let find = |mention: String| {
        text.match_indices(mention.as_str()).map(|(at, _)| at + mention.len()).find(|end| {
            let rest = text[*end..].trim_start_matches(MARKS);
            rest.is_empty() || rest.starts_with(char::is_whitespace)
        })
    };
    find(format!("@{name}")).or_else(|| find(format!("@\"{name}\"")))
}

fn size(bytes: usize) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        _ => format!("{} KiB", bytes.div_ceil(1024)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_go_with_the_message_that_names_them() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a.txt"), "one\n").unwrap();
        fs::write(dir.path().join("b c"), "```\ntwo").unwrap();
        let file = "\n\nThe file a.txt:\n```\none\n```";
        for (message, expected) in [
            ("no file, me@example.org", "no file, me@example.org".to_owned()),
            ("look at @a.txt, please", format!("look at @a.txt, please{file}")),
            ("@a.txt and @a.txt", format!("@a.txt and @a.txt{file}")),
            ("see @\"b c\".", "see @\"b c\".\n\nThe file b c:\n````\n```\ntwo\n````".to_owned()),
            ("a plain \\@a.txt", "a plain @a.txt".to_owned()),
            ("at @ noon", "at @ noon".to_owned()),
        ] {
            assert_eq!(expand(message, dir.path()), Ok(expected), "{message}");
        }
    }

    #[test]
    fn what_was_typed_is_told_from_what_was_sent() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a.txt"), "one\n\nThe file b:\n```\n").unwrap();
        fs::write(dir.path().join("a"), "").unwrap();
        fs::write(dir.path().join("b c"), "x".repeat(39 * 1024 - 1)).unwrap();
        for (message, expected) in [
            ("no file, me@example.org", "no file, me@example.org"),
            ("look at @a.txt, please", "look at @a.txt (21 bytes), please"),
            ("@a.txt and @a, and @a", "@a.txt (21 bytes) and @a (0 bytes), and @a"),
            ("see @\"b c\".", "see @\"b c\" (39 KiB)."),
            ("a plain \\@you and @a", "a plain @you and @a (0 bytes)"),
            ("two\nlines of @a", "two\nlines of @a (0 bytes)"),
            ("at @ noon", "at @ noon"),
        ] {
            let sent = expand(message, dir.path()).unwrap();
            assert_eq!(typed(&sent), message);
            assert_eq!(shown(&sent), expected, "{message}");
        }
        let foreign = "a text\n\nThe file x:\n```\none\n```";
        assert_eq!((typed(foreign), shown(foreign)), (foreign.to_owned(), foreign.to_owned()));
    }

    #[test]
    fn a_file_that_cannot_go_along_holds_the_message_back() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("bytes"), [0xff, 0xfe]).unwrap();
        fs::write(dir.path().join("zeros"), [0, 0]).unwrap();
        fs::create_dir(dir.path().join("sub")).unwrap();
        fs::write(dir.path().join("large"), "x".repeat(MENTION_BYTES_MAX + 1)).unwrap();
        for (message, why) in [
            ("@nothing.txt", "@nothing.txt: No such file"),
            ("@bytes", "is not UTF-8 text"),
            ("@zeros", "not a text file"),
            ("@sub", "not a file"),
            ("@large", "bytes"),
        ] {
            let found = expand(message, dir.path()).unwrap_err();
            assert!(found.contains(why), "{message}: {found}");
        }
    }
}
