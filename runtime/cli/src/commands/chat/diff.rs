//! What a call of `write` or `edit` would change, as a difference between the file as it is and as it would be.
//!
//! Leaves the call itself to the tool worker: this is read beforehand, and the file may change until the call is made.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use similar::TextDiff;

use crate::files::read_text;
use crate::limits::DIFF_MS_MAX;

/// Returns what a call would change, in lines; none if it is no such call, or no text is there to compare.
pub(super) fn of_call(tool: &str, arguments: &Value, directory: &Path) -> Option<Vec<String>> {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    let path = text("path")?;
    match (tool, now(&directory.join(path))) {
        ("write", Now::NoFile) => Some(lines(&format!("{path}, a new file"), "", text("text")?)),
        ("write", Now::Text(now)) => Some(lines(&format!("{path}, the whole file"), &now, text("text")?)),
        ("edit", now @ (Now::NoFile | Now::Text(_))) => {
            let (old, new) = (text("old")?, text("new")?);
            let now = if let Now::Text(now) = now { now } else { String::new() };
            match now.matches(old).count() {
                1 if !old.is_empty() => Some(lines(path, &now, &now.replacen(old, new, 1))),
                count => {
                    let note =
                        format!("{path}: the old text is there {count} times, so the tool will refuse");
                    Some(lines(&note, old, new))
                }
            }
        }
        (_, Now::NoFile | Now::Text(_) | Now::NoText) => None,
    }
}

/// What is at a path now.
enum Now {
    NoFile,
    Text(String),
    /// Something that no difference can be made with.
    NoText,
}

fn now(path: &Path) -> Now {
    match fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Now::NoFile,
        Ok(found) if found.is_file() => read_text(path).map_or(Now::NoText, Now::Text),
        Ok(_) | Err(_) => Now::NoText,
    }
}

fn lines(heading: &str, now: &str, then: &str) -> Vec<String> {
    let mut lines = vec![heading.to_owned()];
    if now == then {
        lines.push("nothing changes".to_owned());
        return lines;
    }
    let configured = TextDiff::configure().timeout(Duration::from_millis(DIFF_MS_MAX)).diff_lines(now, then);
    let text = configured.unified_diff().context_radius(3).to_string();
    lines.extend(text.lines().map(str::to_owned));
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_is_shown_as_what_it_changes() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a"), "one\ntwo\nthree\n").unwrap();
        fs::write(dir.path().join("bytes"), [0xff]).unwrap();
        for (tool, arguments, expected) in [
            (
                "write",
                json!({ "path": "a", "text": "one\n2\nthree\n" }),
                Some(vec!["a, the whole file", "@@ -1,3 +1,3 @@", " one", "-two", "+2", " three"]),
            ),
            (
                "write",
                json!({ "path": "b", "text": "x\n" }),
                Some(vec!["b, a new file", "@@ -0,0 +1 @@", "+x"]),
            ),
            (
                "edit",
                json!({ "path": "a", "old": "two", "new": "2" }),
                Some(vec!["a", "@@ -1,3 +1,3 @@", " one", "-two", "+2", " three"]),
            ),
            (
                "edit",
                json!({ "path": "a", "old": "four", "new": "4" }),
                Some(vec![
                    "a: the old text is there 0 times, so the tool will refuse",
                    "@@ -1 +1 @@",
                    "-four",
                    "\\ No newline at end of file",
                    "+4",
                    "\\ No newline at end of file",
                ]),
            ),
            (
                "write",
                json!({ "path": "a", "text": "one\ntwo\nthree\n" }),
                Some(vec!["a, the whole file", "nothing changes"]),
            ),
            ("write", json!({ "path": "bytes", "text": "x" }), None),
            ("write", json!({ "path": "a" }), None),
            ("shell", json!({ "path": "a", "command": "x" }), None),
        ] {
            let found = of_call(tool, &arguments, dir.path());
            let expected = expected.map(|lines| lines.into_iter().map(str::to_owned).collect::<Vec<_>>());
            assert_eq!(found, expected, "{tool} {arguments}");
        }
    }
}
