//! How a source line looks on a terminal: widths, tabs, and characters that must not reach it raw.
//!
//! Leaves layout to `render`. Invariant: what [`shown`] returns holds no control and no bidirectional
//! character, so a source text cannot steer the terminal or reorder a message.

/// Columns between tab stops.
const TAB_COLUMNS: usize = 4;

/// The text that stands for `c` when it begins at `column`, and how many columns it takes.
pub(super) fn shown(c: char, column: usize) -> (String, usize) {
    match c {
        '\t' => {
            let columns = TAB_COLUMNS - column % TAB_COLUMNS;
            (" ".repeat(columns), columns)
        }
        '\u{7f}' => ("\u{2421}".to_owned(), 1),
        // The block U+2400 has a picture of each control character.
        c if u32::from(c) < 0x20 => {
            (char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}').to_string(), 1)
        }
        c if c.is_control() || is_bidi_control(c) || c == '\u{feff}' => ("\u{fffd}".to_owned(), 1),
        c => (c.to_string(), columns_of(c)),
    }
}

/// Whether `c` changes the order in which its neighbours are shown.
pub(crate) fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Columns of a text without tabs and controls.
pub(crate) fn columns(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

/// Columns of a printable character: an approximation by blocks that needs no tables.
fn columns_of(c: char) -> usize {
    match u32::from(c) {
        0x300..=0x36f | 0x483..=0x489 | 0x591..=0x5bd | 0x610..=0x61a | 0x64b..=0x65f => 0,
        0x1ab0..=0x1aff
        | 0x1dc0..=0x1dff
        | 0x200b..=0x200d
        | 0x20d0..=0x20ff
        | 0xfe00..=0xfe0f
        | 0xfe20..=0xfe2f => 0,
        0xe0100..=0xe01ef => 0,
        0x1100..=0x115f | 0x2e80..=0x303e | 0x3041..=0xa4cf | 0xa960..=0xa97c | 0xac00..=0xd7a3 => 2,
        0xf900..=0xfaff | 0xfe30..=0xfe6f | 0xff01..=0xff60 | 0xffe0..=0xffe6 => 2,
        0x1f300..=0x1f64f | 0x1f680..=0x1f6ff | 0x1f900..=0x1f9ff | 0x1fa70..=0x1faff | 0x20000..=0x3fffd => {
            2
        }
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tabs_reach_the_next_stop_and_controls_become_pictures() {
        for (c, column, text, columns) in [
            ('\t', 0, "    ", 4),
            ('\t', 3, " ", 1),
            ('\u{1b}', 0, "\u{241b}", 1),
            ('\u{202e}', 0, "\u{fffd}", 1),
            ('語', 0, "語", 2),
            ('\u{301}', 0, "\u{301}", 0),
            ('é', 0, "é", 1),
        ] {
            assert_eq!(shown(c, column), (text.to_owned(), columns), "{c:?}");
        }
    }
}
