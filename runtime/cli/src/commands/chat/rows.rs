//! What is typed, laid out in rows around the cursor.
//!
//! Leaves drawing them to `screen`. Invariant: pure; no row is wider than asked for, and the cursor is in one of those that are shown.

use super::width::width_of;

/// Columns of a tab.
const TAB: &str = "    ";

/// Rows of what is typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rows {
    /// Those that are shown.
    pub(super) shown: Vec<String>,
    /// Where the cursor is in them: the row, and its column.
    pub(super) cursor: (usize, usize),
    /// Rows before those that are shown.
    pub(super) before: usize,
    /// How many there are.
    pub(super) total: usize,
}

/// Lays text out in rows of at most so many columns, and takes at most so many rows around the cursor.
pub(super) fn lay_out(text: &[char], at: usize, columns: usize, rows_max: usize) -> Rows {
    let (mut rows, mut row, mut width) = (Vec::new(), String::new(), 0);
    let mut cursor = (0, 0);
    for (place, c) in text.iter().enumerate() {
        let piece = visible(*c);
        let wide = width_of(piece.chars());
        if *c != '\n' && width > 0 && width + wide > columns {
            rows.push(std::mem::take(&mut row));
            width = 0;
        }
        if place == at {
            cursor = (rows.len(), width);
        }
        if *c == '\n' {
            rows.push(std::mem::take(&mut row));
            width = 0;
        } else {
            row.push_str(&piece);
            width += wide;
        }
    }
    if at >= text.len() {
        cursor = (rows.len(), width);
    }
    rows.push(row);
    let total = rows.len();
    let rows_max = rows_max.max(1);
    // The end is in sight as long as the cursor is.
    let before = total.saturating_sub(rows_max).min(cursor.0);
    let shown = rows.into_iter().skip(before).take(rows_max).collect();
    Rows { shown, cursor: (cursor.0 - before, cursor.1), before, total }
}

/// Shows a character of what is typed.
fn visible(c: char) -> String {
    match c {
        '\t' => TAB.to_owned(),
        c if c.is_control() => '\u{fffd}'.to_string(),
        c => c.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_laid_out_in_rows_with_the_cursor_in_sight() {
        for (text, at, columns, most, expected) in [
            ("", 0, 5, 8, (vec![""], (0, 0), 0, 1)),
            ("abc", 1, 5, 8, (vec!["abc"], (0, 1), 0, 1)),
            ("abcde", 5, 5, 8, (vec!["abcde"], (0, 5), 0, 1)),
            ("abcdef", 6, 5, 8, (vec!["abcde", "f"], (1, 1), 0, 2)),
            ("abcdef", 5, 5, 8, (vec!["abcde", "f"], (1, 0), 0, 2)),
            ("a\nb", 1, 5, 8, (vec!["a", "b"], (0, 1), 0, 2)),
            ("a\nb", 2, 5, 8, (vec!["a", "b"], (1, 0), 0, 2)),
            ("a\n", 2, 5, 8, (vec!["a", ""], (1, 0), 0, 2)),
            ("abcde\nf", 5, 5, 8, (vec!["abcde", "f"], (0, 5), 0, 2)),
            ("a\tb", 3, 9, 8, (vec!["a    b"], (0, 6), 0, 1)),
            ("a\u{1b}", 2, 9, 8, (vec!["a\u{fffd}"], (0, 2), 0, 1)),
            ("日本語", 3, 5, 8, (vec!["日本", "語"], (1, 2), 0, 2)),
            ("日", 1, 1, 8, (vec!["日"], (0, 2), 0, 1)),
            ("1\n2\n3\n4", 7, 5, 2, (vec!["3", "4"], (1, 1), 2, 4)),
            ("1\n2\n3\n4", 0, 5, 2, (vec!["1", "2"], (0, 0), 0, 4)),
            ("1\n2\n3\n4", 3, 5, 2, (vec!["2", "3"], (0, 1), 1, 4)),
        ] {
            let chars: Vec<char> = text.chars().collect();
            let found = lay_out(&chars, at, columns, most);
            let (shown, cursor, before, total) = expected;
            let shown = shown.into_iter().map(str::to_owned).collect();
            assert_eq!(found, Rows { shown, cursor, before, total }, "{text:?} at {at}");
        }
    }
}
