//! How many columns text takes, near enough: marks take none, East Asian characters and emoji two.

/// Returns the columns that characters take.
pub(super) fn width_of(text: impl Iterator<Item = char>) -> usize {
    text.map(columns).sum()
}

fn columns(c: char) -> usize {
    match u32::from(c) {
        0x0300..=0x036f | 0x200b..=0x200d | 0xfe00..=0xfe0f | 0x1ab0..=0x1aff | 0x20d0..=0x20ff => 0,
        0x1100..=0x115f
        | 0x2e80..=0x303e
        | 0x3041..=0x33ff
        | 0x3400..=0x4dbf
        | 0x4e00..=0x9fff
        | 0xa000..=0xa4cf
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe6f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x1f300..=0x1f64f
        | 0x1f900..=0x1f9ff
        | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}

/// Takes the longest beginning that fits into some columns, to the last space in it if there is one; at least one character.
pub(super) fn break_at(text: &str, columns_max: usize) -> usize {
    let (mut width, mut space) = (0, None);
    for (at, c) in text.char_indices() {
        width += columns(c);
        if width > columns_max && at > 0 {
            return space.unwrap_or(at);
        }
        if c == ' ' {
            space = Some(at + 1);
        }
    }
    text.len()
}

/// Breaks the lines of a text at spaces where they are too wide; what goes on is set in as its line is.
pub(super) fn wrap(text: &str, columns_max: usize) -> String {
    text.split('\n').map(|line| wrapped(line, columns_max)).collect::<Vec<_>>().join("\n")
}

fn wrapped(line: &str, columns_max: usize) -> String {
    let indent = (line.len() - line.trim_start_matches(' ').len()).min(columns_max / 2);
    let (indent, mut rest) = line.split_at(indent);
    let columns_max = columns_max.saturating_sub(indent.len()).max(1);
    let mut rows = Vec::new();
    loop {
        // A space may stand in the last column and one more: it is not shown.
        let wide = break_at(rest, columns_max + 1);
        let fits = width_of(rest[..wide].trim_end_matches(' ').chars()) <= columns_max;
        let end = if fits { wide } else { break_at(rest, columns_max) };
        if end == rest.len() {
            rows.push(format!("{indent}{rest}"));
            return rows.join("\n");
        }
        let row = rest[..end].trim_end_matches(' ');
        if !row.is_empty() {
            rows.push(format!("{indent}{row}"));
        }
        rest = rest[end..].trim_start_matches(' ');
    }
}

/// Returns how many rows of a terminal something takes that has so many columns.
pub(super) fn rows_of(width: usize, columns: usize) -> usize {
    width.div_ceil(columns.max(1)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_whole_and_what_goes_on_is_set_in() {
        for (text, columns, expected) in [
            ("one two three", 8, "one two\nthree"),
            ("  one two three", 9, "  one two\n  three"),
            ("one\n\ntwo", 8, "one\n\ntwo"),
            ("abcdefgh ij", 3, "abc\ndef\ngh\nij"),
            ("abc  def", 3, "abc\ndef"),
            ("      a", 4, "  a"),
            ("", 4, ""),
        ] {
            assert_eq!(wrap(text, columns), expected, "{text:?} in {columns}");
        }
    }

    #[test]
    fn rows_of_a_terminal_that_became_narrower_are_counted() {
        for (width, columns, rows) in [(0, 50, 1), (50, 50, 1), (51, 50, 2), (119, 50, 3), (7, 0, 7)] {
            assert_eq!(rows_of(width, columns), rows, "{width} in {columns}");
        }
    }

    #[test]
    fn lines_break_at_spaces_if_they_can() {
        for (text, columns, expected) in [
            ("abc def", 10, 7),
            ("abc def", 5, 4),
            ("abcdef", 3, 3),
            ("日本語", 4, 6),
            ("日", 1, 3),
            ("", 4, 0),
        ] {
            assert_eq!(break_at(text, columns), expected, "{text:?} in {columns}");
        }
    }
}
