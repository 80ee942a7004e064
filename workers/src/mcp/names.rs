//! Names of tools as models see them: `server__tool`, in the letters that every provider takes.
//!
//! Invariant: a name depends on the server's and the tool's own name alone, never on the order of a listing; different tools of a
//! server have different names.

use crate::limits::TOOL_NAME_CHARS_MAX;

/// What stands between the server's and the tool's name.
pub(crate) const SEPARATOR: &str = "__";
/// Hexadecimal digits that keep changed names apart.
const DIGITS: usize = 8;

/// The server whose tool has this name; none if no server has.
#[must_use]
pub fn server_of(tool: &str) -> Option<&str> {
    tool.split_once(SEPARATOR).map(|(server, _)| server).filter(|server| !server.is_empty())
}

/// The name of a server's tool. A name with other letters, or one that is too long, gets digits of its hash.
pub(crate) fn full_name(server: &str, tool: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let room = TOOL_NAME_CHARS_MAX.saturating_sub(server.len() + SEPARATOR.len());
    if !tool.is_empty() && tool.len() <= room && tool.chars().all(plain) {
        return format!("{server}{SEPARATOR}{tool}");
    }
    let hash = blake3::hash(tool.as_bytes()).to_hex();
    let kept: String = tool.chars().map(|c| if plain(c) { c } else { '_' }).collect();
    let kept = &kept[..kept.len().min(room.saturating_sub(DIGITS + 1))];
    format!("{server}{SEPARATOR}{kept}_{}", &hash[..DIGITS])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_server_unless_providers_refuse_them() {
        for (tool, same) in
            [("read_file", true), ("get-page", true), ("a.b", false), ("日本", false), ("", false)]
        {
            let name = full_name("fs", tool);
            assert_eq!(name == format!("fs__{tool}"), same, "{name}");
            assert_eq!(server_of(&name), Some("fs"));
            assert!(name.len() <= TOOL_NAME_CHARS_MAX && name.is_ascii(), "{name}");
        }
        let long = full_name("fs", &"x".repeat(200));
        assert_eq!(long.len(), TOOL_NAME_CHARS_MAX);
        assert_ne!(full_name("fs", "a.b"), full_name("fs", "a/b"));
        for stranger in ["read", "_x", "__x"] {
            assert_eq!(server_of(stranger), None);
        }
    }
}
