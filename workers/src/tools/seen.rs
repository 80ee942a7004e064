//! What a call rests on besides its arguments, as it is now: where it would run, with what, and the files that it names or changes.
//!
//! A flow has a call looked at before a person is asked (`tool_look`) and shows what was seen with the call; the approved call brings
//! it back, and it is compared here before anything runs. Leaves asking to the flow and showing to its drivers. Invariant: a call
//! that brings something seen runs only if exactly that is seen again. It guards against what changes while people decide, not
//! against a process that changes a file in the moment between this look and the call.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::{Map, json};

use super::command_line;
use super::definition::Tool;
use super::{Toolbox, files};
use crate::Json;
use crate::limits::{LOOK_BASES_MAX, LOOK_BYTES_MAX};

/// What a command goes by, besides the variables that the environment names.
const GONE_BY: [&str; 2] = ["HOME", "PATH"];

/// What can be seen of a call: the field, and what a change of it is called.
const PARTS: [(&str, &str); 5] = [
    ("environment", "what commands know and are held to"),
    ("directory", "the working directory"),
    ("path", "where the path leads"),
    ("lines", "the lines around the text to replace"),
    ("server", "the server's entry in the file that names it"),
];

impl Toolbox {
    /// Looks at what a call rests on. What cannot be looked at is left out: it is no obstacle before it is there.
    pub(super) fn look(&self, tool: Tool, args: &Map<String, Json>) -> Json {
        let mut seen = self.place();
        let text = |name: &str| args.get(name).and_then(Json::as_str).unwrap_or_default();
        if args.contains_key("path") {
            let target = self.jail.resolve(text("path")).ok();
            seen["path"] = json!(target.map(|target| self.jail.shown(&target)));
        }
        match tool {
            Tool::Shell => {
                let (words, mut budget) = (command_line::words(text("command")), LOOK_BYTES_MAX);
                seen["files"] = self.files_named(&words, &mut budget);
                seen["programs"] = self.programs_named(&words, &mut budget);
            }
            Tool::Write => {
                let mut budget = LOOK_BYTES_MAX;
                let target = self.jail.resolve(text("path"));
                let target = target.into_iter().filter_map(|path| self.content(path, &mut budget));
                seen["files"] = Json::Object(target.collect());
            }
            // All that an edit shows of its file: it may change elsewhere, also by other edits.
            Tool::Edit => {
                seen["lines"] = json!(files::lines_around(&self.jail, text("path"), text("old")).ok());
            }
            Tool::Read | Tool::Append | Tool::List | Tool::Find | Tool::Grep | Tool::Fetch => {}
        }
        seen
    }

    /// Looks at what a call of a server's tool rests on. What the tool is stands in the catalogue and is compared by itself.
    pub(super) fn look_at_server(&self, tool: &str) -> Json {
        let mut seen = self.place();
        seen["server"] = json!(self.servers.entry_of(tool));
        seen
    }

    /// Where and how commands run.
    fn place(&self) -> Json {
        let held_to = json!({
            "variables": self.environment,
            "values": self.values(),
            "sandbox": self.sandbox.policy(),
            "unenforced": self.sandbox.statement(),
            "guarded": self.guard.is_some(),
        });
        let environment = files::digest(held_to.to_string().as_bytes());
        // The directory may lead elsewhere since this worker has opened it.
        let root = self.jail.root();
        let directory = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        json!({"directory": directory, "environment": environment})
    }

    /// The variables whose values a command may go by. Those of a terminal or a language change nothing that it does; a secret value
    /// enters no hash that others see, for it could be guessed by that.
    fn values(&self) -> BTreeMap<&str, Option<String>> {
        let known = |name: &&str| !self.environment.secrets.iter().any(|secret| secret == name);
        let names = self.environment.variables.iter().map(String::as_str).chain(GONE_BY).filter(known);
        names.map(|name| (name, std::env::var_os(name).map(|it| it.to_string_lossy().into_owned()))).collect()
    }

    /// The files that a command line names: scripts, programs and data alike, for what a program does with a file it alone knows.
    fn files_named(&self, words: &[String], budget: &mut u64) -> Json {
        let paths: BTreeSet<PathBuf> = words.iter().filter_map(|word| at_home(word)).collect();
        // A path may stand behind a change of directory, or behind `-C` and its like.
        let root = self.jail.root();
        let mut bases = vec![root.to_owned()];
        bases.extend(paths.iter().map(|path| root.join(path)).filter(|path| path.is_dir()));
        bases.truncate(LOOK_BASES_MAX);
        let mut found = Map::new();
        for base in &bases {
            let named = paths.iter().map(|path| base.join(path));
            found.extend(named.filter_map(|path| self.content(path, budget)));
        }
        Json::Object(found)
    }

    /// The programs that words of a command line lead to through `PATH`: where each is, and the hash of its content.
    fn programs_named(&self, words: &[String], budget: &mut u64) -> Json {
        let places = std::env::var_os("PATH").unwrap_or_default();
        let places: Vec<PathBuf> =
            std::env::split_paths(&places).map(|place| self.jail.root().join(place)).collect();
        let names: BTreeSet<&String> = words.iter().filter(|word| is_plain(word)).collect();
        let program = |name: &String| {
            let found = places.iter().map(|place| place.join(name)).find(|path| can_run(path))?;
            let (path, seen) = self.content(found, budget)?;
            Some((name.clone(), json!({"path": path, "hash": seen["hash"]})))
        };
        Json::Object(names.into_iter().filter_map(program).collect())
    }

    /// A file by where it really is, with its length, the hash of its content, and whether it can be run; none if there is no such
    /// file.
    fn content(&self, path: PathBuf, budget: &mut u64) -> Option<(String, Json)> {
        let path = path.canonicalize().ok().filter(|path| path.is_file())?;
        let seen = match read(&path, budget) {
            Ok((bytes, hash)) => json!({"bytes": bytes, "hash": hash, "runs": can_run(&path)}),
            // A command of the same user cannot read it either, until that changes.
            Err(error) => json!({"unreadable": error.kind().to_string()}),
        };
        Some((self.jail.shown(&path), seen))
    }
}

/// Whether a word can be the name of a program that is looked for in `PATH`.
fn is_plain(word: &str) -> bool {
    !word.is_empty() && word != "." && word != ".." && !word.contains(['/', '\0'])
}

/// Whether a path leads to a file that this user may run.
fn can_run(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

/// A word as a path, if it can be one.
fn at_home(word: &str) -> Option<PathBuf> {
    let fits = !word.is_empty() && !word.contains('\0');
    match word.strip_prefix("~/") {
        Some(rest) => Some(Path::new(&std::env::var_os("HOME")?).join(rest)),
        None => fits.then(|| PathBuf::from(word)),
    }
}

/// Reads a file; of one that is too large for this look, length and time of change stand for the content.
fn read(path: &Path, budget: &mut u64) -> std::io::Result<(u64, String)> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    let bytes = metadata.len();
    if bytes > *budget {
        let changed = metadata.modified()?.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        return Ok((bytes, format!("changed at {}", changed.as_nanos())));
    }
    *budget -= bytes;
    let mut hasher = blake3::Hasher::new();
    std::io::copy(&mut file.take(bytes.saturating_add(1)), &mut HashWriter(&mut hasher))?;
    Ok((bytes, hasher.finalize().to_hex().to_string()))
}

/// Lets bytes be copied into a hash.
struct HashWriter<'a>(&'a mut blake3::Hasher);

impl std::io::Write for HashWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Names what is not as it was: files by their paths, the rest in words.
pub(super) fn changes(then: &Json, now: &Json) -> Vec<String> {
    let changed_in = |part: &str| {
        let no_files = Map::new();
        let of = |seen: &Json| seen[part].as_object().cloned().unwrap_or_else(|| no_files.clone());
        let (before, after) = (of(then), of(now));
        let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        let changed = names.into_iter().filter(|name| before.get(*name) != after.get(*name)).cloned();
        changed.collect::<Vec<String>>()
    };
    let mut changed = changed_in("files");
    changed.extend(changed_in("programs").into_iter().map(|name| format!("the program {name}")));
    let parts = PARTS.iter().filter(|(part, _)| then[*part] != now[*part]);
    changed.extend(parts.map(|(_, words)| (*words).to_owned()));
    // Seen by another version of this program, perhaps: what is not understood does not bind to what is here.
    if changed.is_empty() && then != now {
        changed.push("what was looked at".to_owned());
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_is_named() {
        let seen = |text: &str| serde_json::from_str::<Json>(text).unwrap();
        let then =
            seen(r#"{"directory": "/d", "environment": "e", "files": {"a": {"bytes": 1, "hash": "h"}}}"#);
        for (now, names) in [
            (then.clone(), vec![]),
            (seen(r#"{"directory": "/d", "environment": "e", "files": {}}"#), vec!["a"]),
            (
                seen(
                    r#"{"directory": "/d", "environment": "f", "files": {"a": {"bytes": 1, "hash": "i"}, "b": {}}}"#,
                ),
                vec!["a", "b", "what commands know and are held to"],
            ),
            (
                seen(
                    r#"{"directory": "/d", "environment": "e", "files": {"a": {"bytes": 1, "hash": "h"}}, "new": 1}"#,
                ),
                vec!["what was looked at"],
            ),
            (
                seen(
                    r#"{"directory": "/d", "environment": "e", "files": {"a": {"bytes": 1, "hash": "h"}}, "programs": {"p": {}}}"#,
                ),
                vec!["the program p"],
            ),
            (seen(r#""odd""#), vec!["a", "what commands know and are held to", "the working directory"]),
        ] {
            assert_eq!(changes(&then, &now), names, "{now}");
        }
    }
}
