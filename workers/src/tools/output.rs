//! Output of bounded size: the head and the tail, with a note of what is missing or replaced.
//!
//! Leaves reading to the tools. Invariant: memory is bounded by the limits whatever comes in, text is cut between characters, nothing is
//! left out or replaced without a note, and no secret is cut in two: it is taken out before.

use std::collections::VecDeque;

use crate::limits::{
    FLOW_OUTPUT_BYTES, FLOW_OUTPUT_LINES, LINE_BYTES_MAX, MODEL_OUTPUT_BYTES, MODEL_OUTPUT_LINES,
};
use crate::sdk::{Mask, MaskedStream};

/// Who reads the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// A model: little, and no endless lines.
    Model,
    /// A flow: more, and lines as they are.
    Flow,
}

impl Reader {
    fn bytes(self) -> usize {
        match self {
            Reader::Model => MODEL_OUTPUT_BYTES,
            Reader::Flow => FLOW_OUTPUT_BYTES,
        }
    }

    fn lines(self) -> usize {
        match self {
            Reader::Model => MODEL_OUTPUT_LINES,
            Reader::Flow => FLOW_OUTPUT_LINES,
        }
    }
}

/// Takes in any amount of bytes and keeps the first and the last.
#[derive(Debug)]
pub(crate) struct Capture {
    reader: Reader,
    masked: MaskedStream,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
}

impl Capture {
    pub(crate) fn new(reader: Reader, mask: &Mask) -> Capture {
        let masked = MaskedStream::new(mask.clone());
        Capture { reader, masked, head: Vec::new(), tail: VecDeque::new(), total: 0 }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let shown = self.masked.push(bytes);
        self.keep(&shown);
    }

    fn keep(&mut self, bytes: &[u8]) {
        let half = self.reader.bytes() / 2;
        self.total += bytes.len() as u64;
        let (first, rest) = bytes.split_at(bytes.len().min(half - self.head.len()));
        self.head.extend_from_slice(first);
        self.tail.extend(&rest[rest.len().saturating_sub(half)..]);
        self.tail.drain(..self.tail.len().saturating_sub(half));
    }

    /// The text, with notes at the end of it.
    pub(crate) fn finish(mut self) -> String {
        let rest = self.masked.finish();
        self.keep(&rest);
        let Capture { reader, mut head, tail, total, .. } = self;
        let mut notes = Vec::new();
        let kept = (head.len() + tail.len()) as u64;
        let mut tail = Vec::from(tail);
        let (mut text, bad);
        if kept == total {
            head.append(&mut tail);
            (text, bad) = decode(&head);
        } else {
            head.truncate(whole_chars(&head));
            // A character's later bytes look like 10xxxxxx.
            let start = tail.iter().take(3).take_while(|byte| **byte & 0xC0 == 0x80).count();
            let head = first_lines(&head, reader.lines() / 2);
            let tail = last_lines(&tail[start..], reader.lines() / 2);
            let left_out = total - (head.len() + tail.len()) as u64;
            let (shown, bad_head) = decode(head);
            let (end, bad_tail) = decode(tail);
            text = format!("{shown}\n[… {left_out} bytes left out …]\n{end}");
            bad = bad_head + bad_tail;
            notes.push(format!("cut: {total} bytes in all"));
        }
        if reader == Reader::Model {
            text = cut_lines(&text);
        }
        // What was cut has few enough lines but for the note in the middle.
        if let Some(shorter) = fewer_lines(&text, reader.lines() + 2) {
            text = shorter;
        }
        if bad > 0 {
            notes.push(format!("{bad} bytes were not UTF-8 and are shown as \u{FFFD}"));
        }
        if !notes.is_empty() {
            let newline = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
            text = format!("{text}{newline}[{}]", notes.join("; "));
        }
        text
    }
}

/// Decodes as much as is UTF-8; counts the bytes that are not.
pub(crate) fn decode(bytes: &[u8]) -> (String, usize) {
    let mut text = String::with_capacity(bytes.len());
    let mut bad = 0;
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            bad += chunk.invalid().len();
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
    (text, bad)
}

/// The length without a character that is cut at the end.
pub(crate) fn whole_chars(bytes: &[u8]) -> usize {
    for back in 1..=bytes.len().min(4) {
        let byte = bytes[bytes.len() - back];
        let length = match byte {
            0xC0..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF7 => 4,
            0x80..=0xBF => continue,
            _ => 1,
        };
        return if length > back { bytes.len() - back } else { bytes.len() };
    }
    bytes.len()
}

/// One line of bounded length.
pub(crate) fn cut_line(line: &str) -> String {
    if line.len() <= LINE_BYTES_MAX {
        return line.to_owned();
    }
    let kept = &line[..line.floor_char_boundary(LINE_BYTES_MAX)];
    format!("{kept}[… {} bytes left out]", line.len() - kept.len())
}

fn cut_lines(text: &str) -> String {
    if text.split('\n').all(|line| line.len() <= LINE_BYTES_MAX) {
        return text.to_owned();
    }
    text.split('\n').map(cut_line).collect::<Vec<_>>().join("\n")
}

fn first_lines(bytes: &[u8], most: usize) -> &[u8] {
    let end = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').nth(most).map(|(at, _)| at);
    &bytes[..end.unwrap_or(bytes.len())]
}

fn last_lines(bytes: &[u8], most: usize) -> &[u8] {
    let start =
        bytes.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n').nth(most).map(|(at, _)| at + 1);
    &bytes[start.unwrap_or(0)..]
}

fn fewer_lines(text: &str, most: usize) -> Option<String> {
    let lines: Vec<&str> = text.split('\n').collect();
    if lines.len() <= most + 1 {
        return None;
    }
    let half = most / 2;
    let left_out = lines.len() - 2 * half;
    let (head, tail) = (lines[..half].join("\n"), lines[lines.len() - half..].join("\n"));
    Some(format!("{head}\n[… {left_out} lines left out …]\n{tail}"))
}

/// At most `most` characters of a text, to quote it.
pub(crate) fn quote(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capture(reader: Reader, chunks: impl IntoIterator<Item = Vec<u8>>) -> String {
        let mut capture = Capture::new(reader, &Mask::default());
        for chunk in chunks {
            capture.push(&chunk);
        }
        capture.finish()
    }

    #[test]
    fn what_fits_is_left_as_it_is() {
        for text in ["", "a\n", "no newline", "日本語 👩‍👩‍👧 e\u{301}\n", "\0\u{1}\r\u{2028}"]
        {
            assert_eq!(capture(Reader::Model, text.bytes().map(|byte| vec![byte])), text);
        }
    }

    #[test]
    fn huge_output_keeps_its_head_and_tail_and_takes_bounded_memory() {
        let line = "0123456789 日本\n".repeat(100);
        let text = capture(Reader::Model, (0..20_000).map(|_| line.clone().into_bytes()));
        assert!(text.len() < MODEL_OUTPUT_BYTES + 500, "{}", text.len());
        assert!(text.starts_with("0123456789 日本\n"));
        assert!(text.contains("bytes left out …]"));
        assert!(text.contains(&format!("cut: {} bytes in all", 20_000 * line.len())));
    }

    /// Case LIM-02.
    #[test]
    fn every_cut_is_between_characters() {
        for shift in 0..8 {
            let text = format!("{}{}", "x".repeat(shift), "👩‍👩‍👧日é".repeat(20_000));
            let cut = capture(Reader::Model, [text.into_bytes()]);
            assert!(!cut.contains('\u{FFFD}'), "shifted by {shift}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced_and_said() {
        let text = capture(Reader::Model, [b"caf\xE9 \xFF\xFE ok\n".to_vec()]);
        assert_eq!(
            text,
            "caf\u{FFFD} \u{FFFD}\u{FFFD} ok\n[3 bytes were not UTF-8 and are shown as \u{FFFD}]"
        );
    }

    #[test]
    fn long_lines_and_many_lines_are_cut_for_a_model() {
        let long = capture(Reader::Model, ["é".repeat(LINE_BYTES_MAX).into_bytes()]);
        assert!(
            long.ends_with(&format!("[… {LINE_BYTES_MAX} bytes left out]")),
            "{}",
            &long[long.len() - 40..]
        );
        let many = capture(Reader::Model, ["a\n".repeat(5_000).into_bytes()]);
        assert!(many.contains("lines left out …]"));
        assert!(many.lines().count() <= MODEL_OUTPUT_LINES + 3);
    }
}
