//! The files of this repository, as tests of its form see them.

use std::path::{Path, PathBuf};

/// Returns the top of the repository.
#[must_use]
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// Returns all files with this extension below the crates' folders, sorted, as paths from the top.
#[must_use]
pub fn files(extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in ["dsl", "runtime", "workers", "examples", "tests"] {
        collect(&root().join(folder), extension, &mut found);
    }
    found.sort();
    found
}

fn collect(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() && entry.file_name() != "target" {
            collect(&path, extension, found);
        } else if path.extension().is_some_and(|e| e == extension) {
            found.push(path);
        }
    }
}

/// Returns the text of a page of the repository between the first fence of this kind and the next one; empty if there is none.
#[must_use]
pub fn block(page: &str, kind: &str) -> String {
    let text = std::fs::read_to_string(root().join(page)).unwrap_or_default();
    let fence = format!("```{kind}\n");
    let after = text.split_once(&fence).map(|(_, after)| after);
    after.and_then(|after| after.split_once("```")).map(|(block, _)| block.to_owned()).unwrap_or_default()
}
