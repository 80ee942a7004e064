//! Values in messages: shown short, and where two of them differ first.
//!
//! Invariant: a message stays readable whatever the values are.

use outlast_kernel::Json;

use crate::limits::{PATH_SHOWN, VALUE_CHARS_MAX};

/// Shows a value, cut if it is long.
pub(crate) fn shown(value: &Json) -> String {
    let text = value.to_string();
    match text.char_indices().nth(VALUE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Shows a path; of a long one the beginning and the end, and how much is left out.
pub(crate) fn shown_path(path: &[String]) -> String {
    let left_out = path.len().saturating_sub(2 * PATH_SHOWN);
    if left_out < 2 {
        return path.join(" -> ");
    }
    let (first, last) = (&path[..PATH_SHOWN], &path[path.len() - PATH_SHOWN..]);
    format!("{} -> … {left_out} more … -> {}", first.join(" -> "), last.join(" -> "))
}

/// Returns what is expected and found, at the first place that differs; none if nothing does.
pub(crate) fn difference(expected: &Json, found: &Json) -> Option<(String, String)> {
    let (at, expected, found) = first(expected, found, String::new())?;
    let at = if at.is_empty() { at } else { format!(" at `{}`", at.trim_start_matches('.')) };
    let show = |side: Option<&Json>| side.map_or_else(|| "nothing".to_owned(), shown);
    Some((format!("{}{at}", show(expected)), show(found)))
}

type Place<'v> = (String, Option<&'v Json>, Option<&'v Json>);

fn first<'v>(expected: &'v Json, found: &'v Json, at: String) -> Option<Place<'v>> {
    match (expected, found) {
        (Json::Object(left), Json::Object(right)) if left.get("type") == right.get("type") => {
            let keys = left.keys().chain(right.keys().filter(|key| !left.contains_key(*key)));
            keys.into_iter().find_map(|key| both(left.get(key), right.get(key), format!("{at}.{key}")))
        }
        (Json::Array(left), Json::Array(right)) => {
            let longest = left.len().max(right.len());
            (0..longest).find_map(|i| both(left.get(i), right.get(i), format!("{at}[{i}]")))
        }
        (left, right) => (left != right).then_some((at, Some(left), Some(right))),
    }
}

fn both<'v>(left: Option<&'v Json>, right: Option<&'v Json>, at: String) -> Option<Place<'v>> {
    match (left, right) {
        (Some(left), Some(right)) => first(left, right, at),
        (left, right) => Some((at, left, right)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_long_path_is_shown_by_its_ends() {
        let path = |states: usize| (1..=states).map(|at| format!("S{at}")).collect::<Vec<String>>();
        assert_eq!(shown_path(&path(0)), "");
        assert_eq!(shown_path(&path(25)), path(25).join(" -> "));
        let long = shown_path(&path(5_000));
        assert!(long.starts_with("S1 -> S2 -> ") && long.ends_with(" -> S4999 -> S5000"), "{long}");
        assert!(long.contains("S12 -> … 4976 more … -> S4989"), "{long}");
        assert!(long.len() < 300, "{long}");
    }

    #[test]
    fn the_first_difference_is_named_with_its_place() {
        for (expected, found, difference_is) in [
            (json!(1), json!(1), None),
            (json!(1), json!(2), Some(("1", "2"))),
            (json!({"a": [1, 2]}), json!({"a": [1, 3]}), Some(("2 at `a[1]`", "3"))),
            (json!({"a": [1]}), json!({"a": []}), Some(("1 at `a[0]`", "nothing"))),
            (json!([]), json!([{"x": 1}]), Some(("nothing at `[0]`", r#"{"x":1}"#))),
            (json!({"type": "A"}), json!({"type": "B"}), Some((r#"{"type":"A"}"#, r#"{"type":"B"}"#))),
        ] {
            let found = difference(&expected, &found);
            assert_eq!(found.as_ref().map(|(left, right)| (left.as_str(), right.as_str())), difference_is);
        }
    }
}
