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

#[cfg(test)]
mod tests {
    use super::*;

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
