//! What Tab makes of the word before the cursor: a command, what a command wants, or a file after `@`.
//!
//! Invariant: reads directories, and changes nothing but the line.

use std::fs;
use std::path::Path;

use super::slash::{Takes, command_of, words};
use crate::limits::{COMPLETIONS_READ_MAX, COMPLETIONS_SHOWN_MAX};

/// What is known that a command may want.
#[derive(Debug, Default)]
pub(super) struct Names {
    pub(super) runs: Vec<String>,
    pub(super) events: Vec<String>,
    pub(super) questions: Vec<String>,
}

/// What Tab does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Completed {
    /// The characters from this one on, up to the cursor, become this text.
    Text(usize, String),
    /// Several words fit, and nothing more is common to them.
    Several(Vec<String>),
    /// There is nothing to complete.
    Nothing,
}

/// Returns which names a line may want next: they may have to be asked for.
pub(super) fn wants(before: &str) -> Option<Takes> {
    let (word, _) = before.split_once(' ')?;
    command_of(word).map(|command| command.takes)
}

/// Completes the text before the cursor.
pub(super) fn complete(before: &str, names: &Names, directory: &Path) -> Completed {
    let start = before.rfind(char::is_whitespace).map_or(0, |at| at + 1);
    let word = &before[start..];
    let from = before[..start].chars().count();
    if let Some((at, path)) = quoted(before) {
        return mentioned(before[..at].chars().count(), path, true, directory);
    }
    if let Some(path) = word.strip_prefix('@') {
        return mentioned(from + 1, path, false, directory);
    }
    if before.starts_with('/') && start == 0 {
        return finish(0, word, fitting(words(), word));
    }
    let found = match wants(before) {
        Some(Takes::Run) => fitting(names.runs.iter().map(String::as_str), word),
        Some(Takes::Event) => fitting(names.events.iter().map(String::as_str), word),
        Some(Takes::Question) => fitting(names.questions.iter().map(String::as_str), word),
        Some(Takes::File) => {
            // Names that the line could not hold as one word are left to be typed.
            let plain = paths(word, directory).into_iter().filter(|path| !path.has_space());
            plain.map(|path| path.text + if path.is_directory { "/" } else { " " }).collect()
        }
        Some(Takes::Nothing) | None => Vec::new(),
    };
    finish(from, word, found)
}

fn fitting<'w>(words: impl Iterator<Item = &'w str>, with: &str) -> Vec<String> {
    words.filter(|word| word.starts_with(with)).map(|word| format!("{word} ")).collect()
}

/// Returns the path after the last `@"` and where its quote stands, if that is not closed yet.
fn quoted(before: &str) -> Option<(usize, &str)> {
    let at = before.rfind("@\"")?;
    let opens = at == 0 || before[..at].ends_with(char::is_whitespace);
    let path = &before[at + 2..];
    (opens && !path.contains('"')).then_some((at + 1, path))
}

/// A file or directory that a path may become.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Found {
    text: String,
    is_directory: bool,
}

impl Found {
    fn has_space(&self) -> bool {
        self.text.contains(char::is_whitespace)
    }
}

/// Returns what a path may become; what begins with a point only if it does.
fn paths(path: &str, directory: &Path) -> Vec<Found> {
    let (folder, name) = path.rfind('/').map_or(("", path), |at| path.split_at(at + 1));
    let entries = fs::read_dir(directory.join(folder)).into_iter().flatten().take(COMPLETIONS_READ_MAX);
    let mut found: Vec<Found> = entries
        .flatten()
        .filter_map(|entry| {
            let own = entry.file_name().into_string().ok()?;
            let fits = own.starts_with(name) && (!own.starts_with('.') || name.starts_with('.'));
            // Not even quotes could hold these.
            let can_be_written = !own.contains(|c: char| c.is_control() || c == '"');
            let is_directory = entry.path().is_dir();
            (fits && can_be_written).then(|| Found { text: format!("{folder}{own}"), is_directory })
        })
        .collect();
    found.sort();
    found
}

/// Completes a path after `@`, in quotes if it is in quotes already or has spaces.
fn mentioned(from: usize, path: &str, is_quoted: bool, directory: &Path) -> Completed {
    let found = paths(path, directory);
    let open = |text: &str| match is_quoted || text.contains(char::is_whitespace) {
        true => format!("\"{text}"),
        false => text.to_owned(),
    };
    if let [only] = found.as_slice() {
        let end = match (only.is_directory, is_quoted || only.has_space()) {
            (true, _) => "/",
            (false, true) => "\" ",
            (false, false) => " ",
        };
        return Completed::Text(from, open(&only.text) + end);
    }
    let names: Vec<String> = found.into_iter().map(|found| found.text).collect();
    match finish(from, path, names) {
        Completed::Text(from, text) => Completed::Text(from, open(&text)),
        other => other,
    }
}

/// Returns what all words have in common at their beginning.
fn common(words: &[String]) -> &str {
    let Some((first, rest)) = words.split_first() else { return "" };
    rest.iter().fold(first, |common, other| {
        let same = common.chars().zip(other.chars()).take_while(|(a, b)| a == b);
        &common[..same.map(|(c, _)| c.len_utf8()).sum()]
    })
}

fn finish(from: usize, word: &str, mut found: Vec<String>) -> Completed {
    if found.is_empty() {
        return Completed::Nothing;
    }
    let common = common(&found);
    if common.len() > word.len() {
        return Completed::Text(from, common.to_owned());
    }
    found.truncate(COMPLETIONS_SHOWN_MAX);
    Completed::Several(found.into_iter().map(|word| word.trim_end().to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_completed_as_far_as_they_are_sure() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["notes.txt", "notes.md", ".hidden", "two words", "ünder"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        for name in ["z1", "zé"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        fs::create_dir(dir.path().join("src")).unwrap();
        fs::create_dir(dir.path().join("far away")).unwrap();
        fs::write(dir.path().join("far away/deep.txt"), "").unwrap();
        fs::write(dir.path().join("far off.txt"), "").unwrap();
        fs::write(dir.path().join("src/main.rs"), "").unwrap();
        let list = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let names = Names {
            runs: list(&["agent-1", "agent-2"]),
            events: list(&["1", "14"]),
            questions: list(&["5.0"]),
        };
        let text = |from, text: &str| Completed::Text(from, text.to_owned());
        for (before, expected) in [
            ("/he", text(0, "/help ")),
            ("/re", text(0, "/resume ")),
            ("/nothing", Completed::Nothing),
            ("/resume a", text(8, "agent-")),
            ("/resume agent-", Completed::Several(list(&["agent-1", "agent-2"]))),
            ("/fork 14", text(6, "14 ")),
            ("/approve no 5", text(12, "5.0 ")),
            ("/export no", text(8, "notes.")),
            ("/help ", Completed::Nothing),
            ("see @no", text(5, "notes.")),
            ("see @notes.t", text(5, "notes.txt ")),
            ("see @sr", text(5, "src/")),
            ("see @src/", text(5, "src/main.rs ")),
            ("see @.h", text(5, ".hidden ")),
            ("é @ün", text(3, "ünder ")),
            ("see @two", text(5, "\"two words\" ")),
            ("see @\"two w", text(5, "\"two words\" ")),
            ("see @\"no", text(5, "\"notes.")),
            ("see @\"notes.md\" @sr", text(17, "src/")),
            ("see @z", Completed::Several(list(&["z1", "zé"]))),
            ("see @far", text(5, "\"far ")),
            ("see @\"far a", text(5, "\"far away/")),
            ("see @\"far away/", text(5, "\"far away/deep.txt\" ")),
            ("/export two", Completed::Nothing),
            ("plain", Completed::Nothing),
        ] {
            assert_eq!(complete(before, &names, dir.path()), expected, "{before:?}");
        }
    }
}
