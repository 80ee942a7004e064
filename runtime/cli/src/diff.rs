//! Two texts as a unified diff.
//!
//! Leaves reading and showing them to the commands. Invariant: applied to the first text, the diff gives the second.

use std::fmt::Write as _;
use std::ops::Range;

use crate::limits::DIFF_CELLS_MAX;

/// Lines shown around a change.
const CONTEXT: usize = 3;

/// A run of lines of the old text that is replaced by a run of lines of the new one.
struct Change {
    old: Range<usize>,
    new: Range<usize>,
}

/// The diff from `old` to `new`, both called `name`; empty if they are the same.
pub(crate) fn unified(name: &str, old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let changes = changes(&old, &new);
    let mut out = format!("--- {name}\n+++ {name}\n");
    let mut rest = changes.as_slice();
    while let Some(first) = rest.first() {
        let near = |pair: &[Change]| pair[1].old.start - pair[0].old.end <= 2 * CONTEXT;
        let count = 1 + rest.windows(2).take_while(|pair| near(pair)).count();
        let (hunk, after) = rest.split_at(count);
        let last = hunk.last().unwrap_or(first);
        let start = first.old.start.saturating_sub(CONTEXT);
        let end = (last.old.end + CONTEXT).min(old.len());
        let new_start = first.new.start - (first.old.start - start);
        let new_end = last.new.end + (end - last.old.end);
        let place = |range: Range<usize>| {
            let start = if range.is_empty() { range.start } else { range.start + 1 };
            format!("{start},{}", range.len())
        };
        let _infallible = writeln!(out, "@@ -{} +{} @@", place(start..end), place(new_start..new_end));
        let mut at = start;
        for change in hunk {
            lines(&mut out, ' ', &old[at..change.old.start]);
            lines(&mut out, '-', &old[change.old.clone()]);
            lines(&mut out, '+', &new[change.new.clone()]);
            at = change.old.end;
        }
        lines(&mut out, ' ', &old[at..end]);
        rest = after;
    }
    out
}

fn lines(out: &mut String, sign: char, lines: &[&str]) {
    for line in lines {
        let _infallible = writeln!(out, "{sign}{line}");
    }
}

/// The changes in their order; texts that differ in very many lines are one change.
fn changes(old: &[&str], new: &[&str]) -> Vec<Change> {
    let before = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old_rest, new_rest) = (&old[before..], &new[before..]);
    let after = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    let (old_part, new_part) = (&old_rest[..old_rest.len() - after], &new_rest[..new_rest.len() - after]);
    let whole = Change { old: before..before + old_part.len(), new: before..before + new_part.len() };
    if old_part.is_empty() && new_part.is_empty() {
        return Vec::new();
    }
    if old_part.len().saturating_mul(new_part.len()) > DIFF_CELLS_MAX {
        return vec![whole];
    }
    let common = common_lines(old_part, new_part);
    let mut all = Vec::new();
    let (mut i, mut j) = (0, 0);
    let ends = std::iter::once((old_part.len(), new_part.len()));
    for (next_i, next_j) in common.into_iter().chain(ends) {
        if next_i > i || next_j > j {
            all.push(Change { old: before + i..before + next_i, new: before + j..before + next_j });
        }
        (i, j) = (next_i + 1, next_j + 1);
    }
    all
}

/// The positions of a longest sequence of lines that both have.
fn common_lines(old: &[&str], new: &[&str]) -> Vec<(usize, usize)> {
    let width = new.len() + 1;
    // `best[i * width + j]`: the length of the longest one in `old[i..]` and `new[j..]`.
    let mut best = vec![0_u32; (old.len() + 1) * width];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            let (down, right) = (best[(i + 1) * width + j], best[i * width + j + 1]);
            best[i * width + j] =
                if old[i] == new[j] { best[(i + 1) * width + j + 1] + 1 } else { down.max(right) };
        }
    }
    let mut all = Vec::new();
    let (mut i, mut j) = (0, 0);
    while i < old.len() && j < new.len() {
        if old[i] == new[j] {
            all.push((i, j));
            (i, j) = (i + 1, j + 1);
        } else if best[(i + 1) * width + j] >= best[i * width + j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_shown_with_their_neighbours() {
        let old = "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\n";
        let new = "a\nb\nc\nD\ne\nf\ng\nh\ni\nj\nk\nl\nm\n";
        let wanted = "--- x\n+++ x\n@@ -1,7 +1,7 @@\n a\n b\n c\n-d\n+D\n e\n f\n g\n@@ -10,3 +10,4 @@\n j\n k\n l\n+m\n";
        assert_eq!(unified("x", old, new), wanted);
    }

    #[test]
    fn near_changes_share_a_hunk_and_empty_texts_have_lines_too() {
        assert_eq!(unified("x", "a\nb\nc\n", "b\nc\nd\n"), "--- x\n+++ x\n@@ -1,3 +1,3 @@\n-a\n b\n c\n+d\n");
        assert_eq!(unified("x", "", "a\n"), "--- x\n+++ x\n@@ -0,0 +1,1 @@\n+a\n");
        assert_eq!(unified("x", "a\n", ""), "--- x\n+++ x\n@@ -1,1 +0,0 @@\n-a\n");
    }
}
