//! Text for pictures: measured, cut, and without characters that would change how the rest is read.
//!
//! Leaves escaping for one format to its renderer. Invariant: what [`clean`] returns is one line of visible characters.

use std::fmt::Write as _;

/// Returns `text` with control characters, direction marks and invisible characters written out as `\u{…}`.
///
/// A direction mark inside a label could make it read as something else than the machine says.
pub(super) fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_invisible(c) {
            // Writing to a string cannot fail.
            let _ = write!(out, "\\u{{{:X}}}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

/// Returns `text` cleaned and cut to `max` columns, with `…` in place of what was cut.
pub(super) fn cut(text: &str, max: usize) -> String {
    let text = clean(text);
    if width(&text) <= max {
        return text;
    }
    let mut out = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += char_width(c);
        if used > max {
            break;
        }
        out.push(c);
    }
    out.truncate(out.trim_end().len());
    out.push('…');
    out
}

/// Returns how many columns `text` takes in a fixed-width font.
pub(super) fn width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

/// An estimate that errs on the wide side: East Asian and pictorial characters take two columns.
fn char_width(c: char) -> usize {
    match u32::from(c) {
        0x0300..=0x036F => 0,
        0x1100..=0x115F | 0x2E80..=0xA4CF | 0xAC00..=0xD7A3 | 0xF900..=0xFAFF | 0xFE30..=0xFE6F => 2,
        0xFF00..=0xFF60 | 0xFFE0..=0xFFE6 | 0x1F000..=0x1FAFF | 0x20000..=0x3FFFD => 2,
        _ => 1,
    }
}

fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(u32::from(c),
            0x00AD | 0x061C | 0x180E | 0x200B..=0x200F | 0x2028..=0x202E | 0x2060..=0x206F
            | 0xFE00..=0xFE0F | 0xFEFF | 0xFFF0..=0xFFFB | 0xFFFE | 0xFFFF | 0xE0000..=0xE0FFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_between_characters_and_shows_what_is_invisible() {
        for (text, max, want) in [
            ("short", 5, "short"),
            ("longer", 5, "long…"),
            ("äöüäöü", 4, "äöü…"),
            ("漢字漢字", 5, "漢字…"),
            ("one two", 5, "one…"),
            ("a\u{202E}b", 40, "a\\u{202E}b"),
            ("a\nb", 40, "a\\u{A}b"),
            ("", 3, ""),
        ] {
            assert_eq!(cut(text, max), want, "{text:?}");
            assert!(width(&cut(text, max)) <= max.max(text.len().min(max)), "{text:?}");
        }
    }
}
