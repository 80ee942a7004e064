//! Places in a text: byte spans, and their lines and columns.
//!
//! Leaves display widths to `width`. Invariant: lines end at `\n`; a `\r` before it belongs to the line break.

use serde::Serialize;

/// A half-open range of byte offsets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct TextSpan {
    /// The first byte.
    pub start: u32,
    /// The byte after the last.
    pub end: u32,
}

impl TextSpan {
    /// The span from `start` to before `end`.
    pub fn new(start: u32, end: u32) -> Self {
        Self { start, end: end.max(start) }
    }

    /// The empty span at `offset`.
    pub fn empty(offset: u32) -> Self {
        Self { start: offset, end: offset }
    }

    /// The smallest span that holds both.
    #[must_use]
    pub fn cover(self, other: Self) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// Whether `offset` lies inside.
    pub fn contains(self, offset: u32) -> bool {
        self.start <= offset && offset < self.end
    }

    /// Length in bytes.
    pub fn len(self) -> u32 {
        self.end - self.start
    }

    /// Whether nothing lies inside.
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// The part of `text` that it names; empty if it does not fit the text.
    pub fn of(self, text: &str) -> &str {
        text.get(self.start as usize..self.end as usize).unwrap_or_default()
    }
}

impl From<rowan::TextRange> for TextSpan {
    fn from(range: rowan::TextRange) -> Self {
        Self { start: range.start().into(), end: range.end().into() }
    }
}

/// A place as people count: both numbers begin at 1, columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Position {
    /// The line, from 1.
    pub line: u32,
    /// The character in the line, from 1.
    pub column: u32,
}

/// Where the lines of a text begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineIndex {
    starts: Vec<u32>,
    len: u32,
}

impl LineIndex {
    /// Finds the lines of `text`.
    pub fn new(text: &str) -> Self {
        let len = u32::try_from(text.len()).unwrap_or(u32::MAX);
        let after_breaks = text.bytes().zip(1..=len).filter(|(byte, _)| *byte == b'\n').map(|(_, next)| next);
        Self { starts: std::iter::once(0).chain(after_breaks).collect(), len }
    }

    /// How many lines there are; an empty text has one.
    pub fn count(&self) -> u32 {
        u32::try_from(self.starts.len()).unwrap_or(u32::MAX)
    }

    /// The line of `offset`, from 0.
    pub fn line(&self, offset: u32) -> u32 {
        let after = self.starts.partition_point(|start| *start <= offset);
        u32::try_from(after.saturating_sub(1)).unwrap_or(u32::MAX)
    }

    /// The bytes of line `line` (from 0) without its line break; `None` past the end.
    pub fn span_of(&self, line: u32, text: &str) -> Option<TextSpan> {
        let start = *self.starts.get(line as usize)?;
        let next = self.starts.get(line as usize + 1).copied().unwrap_or(self.len);
        let content = TextSpan::new(start, next).of(text).trim_end_matches(['\n', '\r']);
        Some(TextSpan::new(start, start + u32::try_from(content.len()).unwrap_or(0)))
    }

    /// Line and column of `offset`. `text` is the text that the index was made of.
    pub fn position(&self, offset: u32, text: &str) -> Position {
        let offset = offset.min(self.len);
        let line = self.line(offset);
        let start = self.starts.get(line as usize).copied().unwrap_or(0);
        let before = TextSpan::new(start, offset).of(text);
        let column = u32::try_from(before.chars().count()).unwrap_or(u32::MAX).saturating_add(1);
        Position { line: line + 1, column }
    }

    /// The offset of a position; the end of the line if the column is past it, `None` past the last line.
    pub fn offset(&self, position: Position, text: &str) -> Option<u32> {
        let span = self.span_of(position.line.checked_sub(1)?, text)?;
        let skip = position.column.saturating_sub(1) as usize;
        let within = span.of(text).char_indices().nth(skip).map(|(at, _)| at);
        Some(within.map_or(span.end, |at| span.start + u32::try_from(at).unwrap_or(0)))
    }

    /// Line and column of `offset` as editors count: from 0, columns in UTF-16 units.
    pub fn utf16(&self, offset: u32, text: &str) -> (u32, u32) {
        let line = self.line(offset.min(self.len));
        let start = self.starts.get(line as usize).copied().unwrap_or(0);
        let before = TextSpan::new(start, offset.min(self.len)).of(text);
        (line, u32::try_from(before.encode_utf16().count()).unwrap_or(u32::MAX))
    }

    /// The offset of what [`LineIndex::utf16`] gives; the end of the line if the column is past it, `None` past the last line.
    pub fn offset_of_utf16(&self, line: u32, column: u32, text: &str) -> Option<u32> {
        let span = self.span_of(line, text)?;
        let mut units = 0;
        for (at, c) in span.of(text).char_indices() {
            if units >= column as usize {
                return Some(span.start + u32::try_from(at).unwrap_or(0));
            }
            units += c.len_utf16();
        }
        Some(span.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_and_positions_go_both_ways() {
        let text = "ab\r\ncäd\n\nx";
        let lines = LineIndex::new(text);
        assert_eq!(lines.count(), 4);
        for (offset, line, column) in
            [(0, 1, 1), (1, 1, 2), (4, 2, 1), (7, 2, 3), (9, 3, 1), (10, 4, 1), (11, 4, 2)]
        {
            let position = Position { line, column };
            assert_eq!(lines.position(offset, text), position, "offset {offset}");
            assert_eq!(lines.offset(position, text), Some(offset), "{position:?}");
        }
        assert_eq!(lines.span_of(0, text).map(|span| span.of(text)), Some("ab"));
        assert_eq!(lines.offset(Position { line: 5, column: 1 }, text), None);
        assert_eq!(lines.offset(Position { line: 1, column: 99 }, text), Some(2));
    }

    #[test]
    fn editors_count_utf16_units() {
        let text = "a\u{1f600}b\nc";
        let lines = LineIndex::new(text);
        for (offset, line, column) in [(0, 0, 0), (1, 0, 1), (5, 0, 3), (6, 0, 4), (7, 1, 0), (8, 1, 1)] {
            assert_eq!(lines.utf16(offset, text), (line, column), "offset {offset}");
            assert_eq!(lines.offset_of_utf16(line, column, text), Some(offset), "{line}:{column}");
        }
        assert_eq!((lines.offset_of_utf16(0, 99, text), lines.offset_of_utf16(2, 0, text)), (Some(6), None));
    }

    #[test]
    fn an_empty_text_has_one_line() {
        let lines = LineIndex::new("");
        assert_eq!((lines.count(), lines.position(0, "")), (1, Position { line: 1, column: 1 }));
    }
}
