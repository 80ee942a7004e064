//! The rules that protect files from the stock tools.

/// Files that the stock tools change only after a person said yes, wherever they lie: what other programs run, or keep secrets in.
const PROTECTED: [&str; 6] = [".git", ".git/*", ".ssh/*", ".env*", ".mcp.json", "outlast.toml"];

/// The stock tools that change files.
const WRITERS: [&str; 3] = ["write", "edit", "append"];

/// Returns the rules of which a person is asked where nobody says which files are protected. Stored histories abbreviate them, so another
/// list needs another mark there (see [`crate::event::Patterns`]).
#[must_use]
pub fn usual_protection() -> Vec<String> {
    let everywhere = PROTECTED.iter().flat_map(|path| [(*path).to_owned(), format!("*/{path}")]);
    everywhere.flat_map(|path| protection(&path)).collect()
}

/// Returns the rules that protect files.
#[must_use]
pub fn protection(path: &str) -> [String; 3] {
    WRITERS.map(|tool| format!("{tool}({path})"))
}
