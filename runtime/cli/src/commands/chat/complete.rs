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
    if let Some(path) = word.strip_prefix('@') {
        return finish(from + 1, path, paths(path, directory));
    }
    if before.starts_with('/') && start == 0 {
        return finish(0, word, fitting(words(), word));
    }
    let found = match wants(before) {
        Some(Takes::Run) => fitting(names.runs.iter().map(String::as_str), word),
        Some(Takes::Event) => fitting(names.events.iter().map(String::as_str), word),
        Some(Takes::Question) => fitting(names.questions.iter().map(String::as_str), word),
        Some(Takes::File) => paths(word, directory),
        Some(Takes::Nothing) | None => Vec::new(),
    };
    finish(from, word, found)
}

fn fitting<'w>(words: impl Iterator<Item = &'w str>, with: &str) -> Vec<String> {
    words.filter(|word| word.starts_with(with)).map(|word| format!("{word} ")).collect()
}

/// Returns the files that a path may become; those that begin with a point only if it does.
fn paths(path: &str, directory: &Path) -> Vec<String> {
    let (folder, name) = path.rfind('/').map_or(("", path), |at| path.split_at(at + 1));
    let entries = fs::read_dir(directory.join(folder)).into_iter().flatten().take(COMPLETIONS_READ_MAX);
    let mut found: Vec<String> = entries
        .flatten()
        .filter_map(|entry| {
            let own = entry.file_name().into_string().ok()?;
            let fits = own.starts_with(name) && (!own.starts_with('.') || name.starts_with('.'));
            // Names that the line could not hold as one word are left to be typed.
            let plain = !own.contains(|c: char| c.is_whitespace() || c.is_control() || c == '"');
            let end = if entry.path().is_dir() { "/" } else { " " };
            (fits && plain).then(|| format!("{folder}{own}{end}"))
        })
        .collect();
    found.sort();
    found
}

fn finish(from: usize, word: &str, mut found: Vec<String>) -> Completed {
    let common = match found.as_slice() {
        [] => return Completed::Nothing,
        [first, rest @ ..] => rest.iter().fold(first.as_str(), |common, other| {
            let same = common.char_indices().zip(other.chars()).find(|((_, a), b)| a != b);
            let shorter =
                if common.len() < other.len() { common } else { &common[..other.len().min(common.len())] };
            same.map_or(shorter, |((at, _), _)| &common[..at])
        }),
    };
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
        fs::create_dir(dir.path().join("src")).unwrap();
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
            ("see @two", Completed::Nothing),
            ("plain", Completed::Nothing),
        ] {
            assert_eq!(complete(before, &names, dir.path()), expected, "{before:?}");
        }
    }
}
