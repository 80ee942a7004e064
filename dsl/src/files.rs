//! Source files and where the paths in them lead.
//!
//! A path in a `use` is relative to the file that it stands in. Leaves reading files to the callers. Invariant: where a path leads
//! follows from the two texts alone, so a program means the same on a disk and in a request.

use std::collections::{BTreeMap, BTreeSet};

use crate::diag::FileId;
use crate::syntax::parse;

/// A source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// As people know it: its path. What it uses is looked for beside it.
    pub name: String,
    /// All of it.
    pub text: String,
}

/// Why a path leads nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathFault {
    Empty,
    /// It ends in `.`, `..` or `/`.
    Folder,
    Absolute,
    Backslash,
}

/// Returns the files that a source file uses, flows and catalogues, by their paths as the caller knows them: in the order of the
/// text, each once. What leads nowhere is left to [`check`](crate::check), which says so.
#[must_use]
pub fn used_files(source: &SourceFile) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for (path, _) in uses(source) {
        if !all.contains(&path) {
            all.push(path);
        }
    }
    all
}

/// Returns the texts of all files that `roots` use, directly or through others, by their paths; `read` gives the text of one. What
/// cannot be read is left to [`check`](crate::check), which says where it is used.
pub fn gather(
    roots: &[SourceFile],
    mut read: impl FnMut(&str) -> Option<String>,
) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let known: Vec<String> = roots.iter().map(|root| normal(&root.name)).collect();
    let mut pending: Vec<SourceFile> = roots.to_vec();
    while let Some(source) = pending.pop() {
        for (path, is_flow) in uses(&source) {
            if found.contains_key(&path) || known.contains(&path) {
                continue;
            }
            let Some(text) = read(&path) else { continue };
            if is_flow {
                pending.push(SourceFile { name: path.clone(), text: text.clone() });
            }
            found.insert(path, text);
        }
    }
    found
}

/// Parts files into those to check, which no other one uses, and the texts of the rest by their paths.
#[must_use]
pub fn part(files: Vec<SourceFile>) -> (Vec<SourceFile>, BTreeMap<String, String>) {
    let is_flow = |file: &SourceFile| !file.name.ends_with(".json");
    let used: BTreeSet<String> = files.iter().filter(|file| is_flow(file)).flat_map(used_files).collect();
    let (mut roots, mut rest): (Vec<SourceFile>, Vec<SourceFile>) =
        files.into_iter().partition(|file| is_flow(file) && !used.contains(&normal(&file.name)));
    // Files that all use each other have no beginning; the checker says so of any of them.
    if let (true, Some(at)) = (roots.is_empty(), rest.iter().position(is_flow)) {
        roots.push(rest.remove(at));
    }
    (roots, rest.into_iter().map(|file| (file.name, file.text)).collect())
}

/// The files that a source file uses, and whether they are flow files.
fn uses(source: &SourceFile) -> Vec<(String, bool)> {
    let tree = parse(FileId(0), &source.text).file();
    let catalogues = tree.uses().filter_map(|one| Some((one.path()?.plain()?, false)));
    let flows = tree.imports().filter(|one| !one.is_std());
    let flows = flows.filter_map(|one| Some((one.path()?.plain()?, true)));
    let resolved = |(path, is_flow): (String, bool)| Some((resolve(&source.name, &path).ok()?, is_flow));
    catalogues.chain(flows).filter_map(resolved).collect()
}

/// Where the path `written` in the file `from` leads.
pub(crate) fn resolve(from: &str, written: &str) -> Result<String, PathFault> {
    if written.trim().is_empty() {
        return Err(PathFault::Empty);
    }
    if written.contains('\\') {
        return Err(PathFault::Backslash);
    }
    if written.starts_with('/') {
        return Err(PathFault::Absolute);
    }
    if matches!(written.rsplit('/').next(), Some("" | "." | "..")) {
        return Err(PathFault::Folder);
    }
    Ok(match from.rsplit_once('/') {
        Some((folder, _)) => normal(&format!("{folder}/{written}")),
        None => normal(written),
    })
}

/// A path without `.`, without `..` behind a folder, and without doubled separators.
pub(crate) fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            // Above the root there is only the root.
            ".." if path.starts_with('/') => {}
            part => parts.push(part),
        }
    }
    let root = if path.starts_with('/') { "/" } else { "" };
    format!("{root}{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_to_the_file_that_they_stand_in() {
        for (from, written, found) in [
            ("a.flow", "b.flow", Ok("b.flow")),
            ("x/a.flow", "b.flow", Ok("x/b.flow")),
            ("x/a.flow", "./y//b.flow", Ok("x/y/b.flow")),
            ("x/a.flow", "../b.flow", Ok("b.flow")),
            ("./x/a.flow", "../../b.flow", Ok("../b.flow")),
            ("../a.flow", "../b.flow", Ok("../../b.flow")),
            ("/srv/a.flow", "../../b.flow", Ok("/b.flow")),
            ("a.flow", "/b.flow", Err(PathFault::Absolute)),
            ("a.flow", "x\\b.flow", Err(PathFault::Backslash)),
            ("a.flow", " ", Err(PathFault::Empty)),
            ("a.flow", ".", Err(PathFault::Folder)),
            ("a.flow", "x/..", Err(PathFault::Folder)),
            ("a.flow", "x/", Err(PathFault::Folder)),
        ] {
            assert_eq!(resolve(from, written), found.map(str::to_owned), "{written} in {from}");
        }
    }

    #[test]
    fn files_that_others_use_are_not_checked_for_themselves() {
        let names = |files: &[(&str, &str)]| {
            let file =
                |(name, text): &(&str, &str)| SourceFile { name: (*name).into(), text: (*text).into() };
            let (roots, rest) = part(files.iter().map(file).collect());
            let roots: Vec<String> = roots.into_iter().map(|file| file.name).collect();
            format!("{} | {}", roots.join(" "), rest.into_keys().collect::<Vec<String>>().join(" "))
        };
        let uses = |path: &str| format!("use \"{path}\" {{ X }}");
        let (b, c) = (uses("b.flow"), uses("../c.flow"));
        assert_eq!(names(&[("a.flow", &b), ("./b.flow", ""), ("t.json", "{}")]), "a.flow | ./b.flow t.json");
        assert_eq!(
            names(&[("lib/a.flow", &c), ("c.flow", ""), ("d.flow", "")]),
            "lib/a.flow d.flow | c.flow"
        );
        assert_eq!(names(&[("a.flow", &b), ("b.flow", &uses("a.flow"))]), "a.flow | b.flow");
        assert_eq!(names(&[("t.json", "{}")]), " | t.json");
    }

    #[test]
    fn all_that_is_used_is_gathered_once() {
        let files = BTreeMap::from([
            ("lib/a.flow", "use \"b.flow\" { B }\nuse tools \"../t.json\" as t\n"),
            (
                "lib/b.flow",
                "use \"../main.flow\" { M }\nuse \"a.flow\" { A }\nuse std \"agents\" { Agent }\n",
            ),
            ("t.json", "use \"not-a-flow\" { A }"),
        ]);
        let root = SourceFile {
            name: "main.flow".to_owned(),
            text: "use \"lib/a.flow\" { A }\nuse \"missing.flow\" { X }\n".to_owned(),
        };
        let mut asked = Vec::new();
        let found = gather(std::slice::from_ref(&root), |path| {
            asked.push(path.to_owned());
            files.get(path).map(|text| (*text).to_owned())
        });
        assert_eq!(found.keys().collect::<Vec<_>>(), ["lib/a.flow", "lib/b.flow", "t.json"]);
        assert_eq!(asked, ["lib/a.flow", "missing.flow", "t.json", "lib/b.flow"]);
        assert_eq!(used_files(&root), ["lib/a.flow", "missing.flow"]);
    }
}
