//! "Did you mean": the known name that is nearest to an unknown one.
//!
//! Leaves collecting the candidates to the caller. Invariant: the answer does not depend on the order of the
//! candidates, so diagnostics are the same on every run.

use crate::limits::SUGGESTION_BYTES_MAX;

/// Returns the candidate nearest to `name` if it is near enough to be a slip of the fingers.
///
/// Near enough: at most a third of the letters differ, at least one may; a difference only in case or in
/// underscores always counts as near. Ties go to the first in byte order.
pub fn closest<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    if name.is_empty() || name.len() > SUGGESTION_BYTES_MAX {
        return None;
    }
    let budget = (name.chars().count() / 3).max(1);
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        if candidate.len() > SUGGESTION_BYTES_MAX || candidate == name {
            continue;
        }
        let distance = if folded(candidate) == folded(name) { 0 } else { distance(name, candidate) };
        if distance <= budget && best.is_none_or(|found| (distance, candidate) < found) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

fn folded(name: &str) -> String {
    name.chars().filter(|letter| *letter != '_').flat_map(char::to_lowercase).collect()
}

/// Edits (insert, remove, replace, swap two neighbours) that turn `a` into `b`, ignoring case.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().flat_map(char::to_lowercase).collect();
    let b: Vec<char> = b.chars().flat_map(char::to_lowercase).collect();
    // Three rows are enough: a swap looks back two.
    let mut above_that = vec![0; b.len() + 1];
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replaced = above[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut cost = replaced.min(above[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                cost = cost.min(above_that[j - 2] + 1);
            }
            row[j] = cost;
        }
        above_that = above;
        above = row;
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found_and_a_far_one_is_not() {
        let known = ["messages", "message", "model", "retry_after", "Think"];
        for (name, found) in [
            ("mesages", Some("messages")),
            ("massage", Some("message")),
            ("modle", Some("model")),
            ("retryAfter", Some("retry_after")),
            ("think", Some("Think")),
            ("weather", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(closest(name, known), found, "{name}");
            let mut reversed = known;
            reversed.reverse();
            assert_eq!(closest(name, reversed), found, "{name}, candidates reversed");
        }
    }

    #[test]
    fn huge_names_are_not_compared() {
        let huge = "a".repeat(100_000);
        assert_eq!(closest(&huge, ["a"]), None);
        assert_eq!(closest("aaa", [huge.as_str()]), None);
    }
}
