//! Where a user's data directory is if nobody says.
//!
//! Drivers and workers have to find the same one. Leaves reading the environment to whoever asks.

use std::ffi::OsString;
use std::path::PathBuf;

/// Returns the data directory: the one that is named, else the user's, which is `outlast` in `XDG_DATA_HOME` or in `~/.local/share`; none if
/// there is no home either. What is empty is not set, and a relative `XDG_DATA_HOME` is none.
pub fn data_directory(
    named: Option<PathBuf>,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Option<PathBuf> {
    let set = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    named
        .or_else(|| set("XDG_DATA_HOME").filter(|path| path.is_absolute()).map(|path| path.join("outlast")))
        .or_else(|| set("HOME").map(|path| path.join(".local").join("share").join("outlast")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_directory_is_the_first_that_is_named() {
        for (named, xdg, home, expected) in [
            (Some("d"), Some("/x"), Some("/h"), Some("d")),
            (None, Some("/x"), Some("/h"), Some("/x/outlast")),
            (None, Some("relative"), Some("/h"), Some("/h/.local/share/outlast")),
            (None, Some(""), Some("/h"), Some("/h/.local/share/outlast")),
            (None, None, Some("/h"), Some("/h/.local/share/outlast")),
            (None, None, None, None),
        ] {
            let variable = |name: &str| match name {
                "XDG_DATA_HOME" => xdg.map(OsString::from),
                "HOME" => home.map(OsString::from),
                _ => None,
            };
            assert_eq!(data_directory(named.map(PathBuf::from), &variable), expected.map(PathBuf::from));
        }
    }
}
