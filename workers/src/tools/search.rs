//! Tools that look around: list, find, grep.
//!
//! Leaves paths to the jail. Invariant: results are sorted and bounded, links are not followed, and a search ends when its attempt
//! does.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use ignore::WalkBuilder;
use regex::Regex;

use super::ToolError;
use super::jail::Jail;
use super::output::{cut_line, decode};
use crate::limits::{GREP_FILE_BYTES_MAX, WALK_FILES_MAX};
use crate::sdk::Mask;

/// Says whether a search should end.
pub(crate) type Ended<'a> = &'a dyn Fn() -> bool;

/// The names in a directory.
pub(crate) fn list(jail: &Jail, path: &str, most: usize) -> Result<Vec<String>, ToolError> {
    let directory = jail.resolve(path)?;
    let entries = std::fs::read_dir(directory).map_err(|error| ToolError::io(path, &error))?;
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| ToolError::io(path, &error))?;
        let slash = if entry.path().is_dir() { "/" } else { "" };
        names.push(format!("{}{slash}", entry.file_name().to_string_lossy()));
    }
    names.sort_unstable();
    Ok(bounded(names, most))
}

/// The files whose names fit a glob.
pub(crate) fn find(
    jail: &Jail,
    pattern: &str,
    path: &str,
    most: usize,
    ended: Ended,
) -> Result<Vec<String>, ToolError> {
    let glob = glob(pattern)?;
    let from = jail.resolve(path)?;
    let mut found = Vec::new();
    for file in walk(jail, &from, ended)? {
        if fits(&glob, pattern, &from, &file) {
            found.push(jail.shown(&file));
        }
    }
    Ok(bounded(found, most))
}

/// Where `grep` looks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look<'a> {
    pub(crate) path: &'a str,
    /// Only in files that fit.
    pub(crate) glob: Option<&'a str>,
    /// At most this many lines.
    pub(crate) most: usize,
    /// What of their text cannot be found.
    pub(crate) mask: &'a Mask,
}

/// The lines that fit a regular expression.
pub(crate) fn grep(jail: &Jail, pattern: &str, look: Look, ended: Ended) -> Result<Vec<String>, ToolError> {
    let Look { path, glob: only, most, mask } = look;
    let regex = Regex::new(pattern).map_err(|error| ToolError::new("BadArguments", error.to_string()))?;
    let only = only.map(|only| Ok((glob(only)?, only))).transpose()?;
    let from = jail.resolve(path)?;
    let mut found = Vec::new();
    for file in walk(jail, &from, ended)? {
        if only.as_ref().is_some_and(|(glob, only)| !fits(glob, only, &from, &file)) {
            continue;
        }
        let Some(text) = text_of(&file) else { continue };
        // Before it is searched: what fits would tell a secret letter by letter.
        let text = mask.text(text);
        for (number, line) in text.lines().enumerate().filter(|(_, line)| regex.is_match(line)) {
            found.push(format!("{}:{}: {}", jail.shown(&file), number + 1, cut_line(line)));
        }
        if found.len() > most || ended() {
            break;
        }
    }
    Ok(bounded(found, most))
}

fn bounded(mut entries: Vec<String>, most: usize) -> Vec<String> {
    if entries.len() > most {
        entries.truncate(most);
        entries.push(format!("[… only the first {most} are shown …]"));
    }
    entries
}

fn glob(pattern: &str) -> Result<GlobMatcher, ToolError> {
    let glob = GlobBuilder::new(pattern.trim_start_matches("./")).literal_separator(true).build();
    glob.map(|glob| glob.compile_matcher()).map_err(|error| ToolError::new("BadArguments", error.to_string()))
}

fn fits(glob: &GlobMatcher, pattern: &str, from: &Path, file: &Path) -> bool {
    if pattern.contains('/') {
        glob.is_match(file.strip_prefix(from).unwrap_or(file))
    } else {
        file.file_name().is_some_and(|name| glob.is_match(name))
    }
}

/// All files below a directory in order of their names, without ignored ones and version control's own; or the file itself.
fn walk(jail: &Jail, from: &Path, ended: Ended) -> Result<Vec<PathBuf>, ToolError> {
    if !from.exists() {
        return Err(ToolError::new("NotFound", format!("{}: no such file or directory", from.display())));
    }
    let mut walk = WalkBuilder::new(from);
    // Ignore files count also outside a repository; those above the directory and the user's own do not, so that the result
    // depends on the directory alone.
    walk.hidden(false)
        .require_git(false)
        .parents(false)
        .git_global(false)
        .git_exclude(false)
        .follow_links(false);
    let closed = jail.clone();
    walk.filter_entry(move |entry| entry.file_name() != ".git" && !closed.is_closed(entry.path()));
    walk.sort_by_file_name(Ord::cmp);
    let mut files = Vec::new();
    for entry in walk.build() {
        // A directory that cannot be read is left out, as by other tools of the kind.
        let Ok(entry) = entry else { continue };
        if entry.file_type().is_some_and(|kind| kind.is_file()) {
            files.push(entry.into_path());
        }
        if files.len() >= WALK_FILES_MAX {
            return Err(ToolError::new(
                "TooLarge",
                format!("more than {WALK_FILES_MAX} files; look in a part of it"),
            ));
        }
        if ended() {
            break;
        }
    }
    Ok(files)
}

/// A file's text, unless it is large or binary.
fn text_of(file: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    let open = File::open(file).ok()?;
    if open.metadata().ok()?.len() > GREP_FILE_BYTES_MAX {
        return None;
    }
    open.take(GREP_FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    (!bytes.contains(&0)).then(|| decode(&bytes).0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 100;

    fn tree() -> (tempfile::TempDir, Jail) {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("README.md", "Outlast\nneedle here\n"),
            ("src/a.rs", "fn a() {}\n// Needle 日本\n"),
            ("src/deep/b.rs", "needle\n"),
            ("target/c.rs", "needle\n"),
            (".gitignore", "target\n"),
            (".git/config.rs", "needle\n"),
            ("bin", "needle\0\n"),
        ] {
            let file = dir.path().join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        let jail = Jail::new(dir.path()).unwrap();
        (dir, jail)
    }

    #[test]
    fn listing_shows_directories_as_such() {
        let (_dir, jail) = tree();
        assert_eq!(
            list(&jail, ".", MOST).unwrap(),
            [".git/", ".gitignore", "README.md", "bin", "src/", "target/"]
        );
        assert!(list(&jail, "README.md", MOST).is_err());
    }

    #[test]
    fn finding_goes_by_name_or_by_path() {
        let (_dir, jail) = tree();
        for (pattern, path, found) in [
            ("*.rs", ".", vec!["src/a.rs", "src/deep/b.rs"]),
            ("src/*.rs", ".", vec!["src/a.rs"]),
            ("**/*.rs", "src", vec!["src/a.rs", "src/deep/b.rs"]),
            ("b.rs", "src/deep", vec!["src/deep/b.rs"]),
            ("*.py", ".", vec![]),
        ] {
            assert_eq!(find(&jail, pattern, path, MOST, &|| false).unwrap(), found, "{pattern} in {path}");
        }
        assert!(find(&jail, "[", ".", MOST, &|| false).is_err());
        assert!(find(&jail, "*", "nowhere", MOST, &|| false).is_err());
    }

    #[test]
    fn grep_names_file_and_line_and_skips_what_is_no_text() {
        let (_dir, jail) = tree();
        let all = ["README.md:2: needle here", "src/a.rs:2: // Needle 日本", "src/deep/b.rs:1: needle"];
        let mask = Mask::default();
        let grep = |pattern: &str, path, glob| {
            grep(&jail, pattern, Look { path, glob, most: MOST, mask: &mask }, &|| false)
        };
        assert_eq!(grep("(?i)needle", ".", None).unwrap(), all);
        assert_eq!(grep("(?i)needle", ".", Some("*.rs")).unwrap(), all[1..]);
        assert_eq!(grep("needle", "README.md", None).unwrap(), all[..1]);
        assert!(grep("(", ".", None).is_err());
    }

    #[test]
    fn what_a_secret_is_cannot_be_searched_for() {
        let (dir, jail) = tree();
        std::fs::write(dir.path().join("config"), "key = hunter-42!\n").unwrap();
        let mask = Mask::new([("KEY", "hunter-42!")]);
        for (pattern, found) in
            [("hunt", vec![]), ("key = [a-m]", vec![]), ("^key", vec!["config:1: key = [secret KEY]"])]
        {
            let look = Look { path: ".", glob: None, most: MOST, mask: &mask };
            assert_eq!(super::grep(&jail, pattern, look, &|| false).unwrap(), found, "{pattern}");
        }
    }
}
