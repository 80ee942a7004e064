//! The working directory that file tools do not leave.
//!
//! Leaves what happens to a file to the tools; shell commands are not bound by it. Invariant: a resolved path has no symbolic link
//! and no `..` in it and lies in the root. It guards against mistakes of a model, not against another process that changes the
//! directory meanwhile.

use std::path::{Component, Path, PathBuf};

use super::ToolError;

/// The root of what tools may touch.
#[derive(Clone, Debug)]
pub(crate) struct Jail {
    root: PathBuf,
    /// A directory that no tool touches, wherever it is.
    closed: Option<PathBuf>,
}

impl Jail {
    /// Opens the directory.
    pub(crate) fn new(root: &Path) -> std::io::Result<Jail> {
        Ok(Jail { root: root.canonicalize()?, closed: None })
    }

    /// The same without one directory, which need not exist yet.
    pub(crate) fn without(self, closed: Option<&Path>) -> Jail {
        let whole = |path: &Path| {
            let there = path.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
            let (above, whole) = there?;
            Some(whole.join(path.strip_prefix(above).ok()?).components().collect())
        };
        Jail { closed: closed.and_then(whole), ..self }
    }

    /// Whether a path leads to what no tool touches.
    pub(crate) fn is_closed(&self, whole: &Path) -> bool {
        self.closed.as_ref().is_some_and(|closed| whole.starts_with(closed))
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Where a path leads; the file itself need not exist.
    pub(crate) fn resolve(&self, path: &str) -> Result<PathBuf, ToolError> {
        if path.is_empty() || path.contains('\0') {
            return Err(ToolError::new("BadPath", format!("{path:?} is no path")));
        }
        let asked = Path::new(path);
        if asked.components().any(|part| part == Component::ParentDir) {
            return Err(outside(path));
        }
        let mut found = self.root.join(asked);
        let mut missing = Vec::new();
        let whole = loop {
            match found.canonicalize() {
                Ok(whole) => break whole,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    // A link to nowhere would become a file wherever it points to.
                    if found.is_symlink() {
                        return Err(outside(path));
                    }
                    let Some(name) = found.file_name() else { return Err(outside(path)) };
                    missing.push(name.to_owned());
                    found.pop();
                }
                Err(error) => return Err(ToolError::io(path, &error)),
            }
        };
        if !whole.starts_with(&self.root) {
            return Err(outside(path));
        }
        let whole = missing.iter().rev().fold(whole, |whole, name| whole.join(name));
        if self.is_closed(&whole) {
            let text = format!("{path} belongs to the runtime; no tool touches it");
            return Err(ToolError::new("OutsideDirectory", text));
        }
        Ok(whole)
    }

    /// The path as tools show it: relative to the root.
    pub(crate) fn shown(&self, path: &Path) -> String {
        let relative = path.strip_prefix(&self.root).unwrap_or(path);
        if relative.as_os_str().is_empty() { ".".to_owned() } else { relative.to_string_lossy().into_owned() }
    }
}

fn outside(path: &str) -> ToolError {
    ToolError::new("OutsideDirectory", format!("{path} leads out of the working directory"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_is_closed_is_not_reached_by_any_name() {
        let root = tempfile::tempdir().unwrap();
        let closed = root.path().join("data/logins");
        let jail = Jail::new(root.path()).unwrap().without(Some(&closed));
        std::fs::create_dir_all(&closed).unwrap();
        symlink("data/logins", root.path().join("link")).unwrap();
        for (path, ok) in
            [("data", true), ("data/logins", false), ("data/logins/s.json", false), ("link/s.json", false)]
        {
            assert_eq!(jail.resolve(path).is_ok(), ok, "{path}");
        }
    }

    #[test]
    fn paths_stay_in_the_directory() {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("root");
        std::fs::create_dir_all(root.join("sub")).unwrap();
        std::fs::write(outer.path().join("secret"), "s").unwrap();
        std::fs::write(root.join("file"), "f").unwrap();
        symlink(outer.path(), root.join("up")).unwrap();
        symlink(outer.path().join("new"), root.join("nowhere")).unwrap();
        symlink("sub", root.join("inner")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        let jail = Jail::new(&root).unwrap();
        let absolute = jail.root().join("file");
        let absolute = absolute.to_str().unwrap();
        for (path, ok) in [
            ("file", true),
            (".", true),
            ("./sub/new/deeper", true),
            ("inner/new", true),
            (absolute, true),
            ("", false),
            ("a\0b", false),
            ("../secret", false),
            ("sub/../../secret", false),
            ("sub/../file", false),
            ("up/secret", false),
            ("up/new", false),
            ("nowhere", false),
            ("nowhere/x", false),
            ("loop", false),
            ("/etc/passwd", false),
            ("file/x", false),
        ] {
            assert_eq!(jail.resolve(path).is_ok(), ok, "{path:?}");
        }
        assert_eq!(jail.shown(&jail.resolve("inner/new").unwrap()), "sub/new");
    }
}
