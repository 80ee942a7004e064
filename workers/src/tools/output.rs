//! Output of bounded size: the head and the tail, with a note of what is missing or replaced.
//!
//! What is left out of the text is kept beside the result, and the text says under which name it can be read on. Leaves reading to the
//! tools. Invariant: memory is bounded by the limits whatever comes in, text is cut between characters, nothing is left out or
//! replaced without a note, and no secret is cut in two or kept: it is taken out before.

use std::collections::VecDeque;
use std::io::{Read as _, Seek as _, Write as _};

use tempfile::SpooledTempFile;

use crate::limits::{
    BLOB_BYTES_MAX, FLOW_OUTPUT_BYTES, FLOW_OUTPUT_LINES, LINE_BYTES_MAX, MODEL_OUTPUT_BYTES,
    MODEL_OUTPUT_LINES, PIECE_BYTES,
};
use crate::sdk::{BlobError, Mask, MaskedStream, TaskContext};

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
    whole: Whole,
}

impl Capture {
    pub(crate) fn new(reader: Reader, mask: &Mask) -> Capture {
        let masked = MaskedStream::new(mask.clone());
        let whole = Whole::new(reader.bytes());
        Capture { reader, masked, head: Vec::new(), tail: VecDeque::new(), total: 0, whole }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        // A large one would be in memory once more while it is searched for secrets.
        for piece in bytes.chunks(PIECE_BYTES) {
            let shown = self.masked.push(piece);
            self.keep(&shown);
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        let half = self.reader.bytes() / 2;
        self.whole.push(bytes);
        self.total += bytes.len() as u64;
        let (first, rest) = bytes.split_at(bytes.len().min(half - self.head.len()));
        self.head.extend_from_slice(first);
        self.tail.extend(&rest[rest.len().saturating_sub(half)..]);
        self.tail.drain(..self.tail.len().saturating_sub(half));
    }

    /// The text, as much of it as is shown.
    pub(crate) fn finish(mut self) -> Captured {
        let rest = self.masked.finish();
        self.keep(&rest);
        let Capture { reader, mut head, tail, total, whole, .. } = self;
        let kept = (head.len() + tail.len()) as u64;
        let mut tail = Vec::from(tail);
        let cut = kept != total;
        let (mut text, bad);
        if !cut {
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
        }
        let before = text.len();
        if reader == Reader::Model {
            text = cut_lines(&text);
        }
        // What was cut has few enough lines but for the note in the middle.
        if let Some(shorter) = fewer_lines(&text, reader.lines() + 2) {
            text = shorter;
        }
        let shortened = text.len() != before;
        Captured { text, bad, total, cut, whole: Some(whole).filter(|_| cut || shortened) }
    }
}

/// Output that was taken in: what is shown of it, and the whole where that is more.
#[derive(Debug, Default)]
pub(crate) struct Captured {
    text: String,
    /// Bytes that were no text.
    bad: usize,
    total: u64,
    /// Whether bytes were left out, not only shortened lines.
    cut: bool,
    whole: Option<Whole>,
}

impl From<String> for Captured {
    fn from(text: String) -> Captured {
        Captured { text, ..Captured::default() }
    }
}

impl Captured {
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// What is shown, with notes at the end of it; what is left out is gone.
    pub(crate) fn cut(self) -> String {
        self.noted(None)
    }

    /// What is shown, with notes at the end of it. What is left out is kept beside the result, and a note says how to read on.
    pub(crate) async fn kept(mut self, task: &TaskContext) -> String {
        let Some(whole) = self.whole.take() else { return self.cut() };
        let note = match whole.bytes() {
            Ok(bytes) => {
                let length = bytes.len();
                match task.put_blob(bytes).await {
                    Ok(name) if length as u64 == self.total => {
                        Some(format!("the whole is {name}: read it with offset and limit"))
                    }
                    Ok(name) => {
                        Some(format!("its first {length} bytes are {name}: read it with offset and limit"))
                    }
                    Err(BlobError::NoRuntime) => None,
                    Err(error) => Some(format!("the whole could not be kept: {error}")),
                }
            }
            Err(error) => Some(format!("the whole could not be kept: {error}")),
        };
        self.noted(note)
    }

    fn noted(self, of_whole: Option<String>) -> String {
        let Captured { text, bad, total, cut, .. } = self;
        let mut notes = Vec::new();
        if cut || of_whole.is_some() {
            notes.push(format!("cut: {total} bytes in all"));
        }
        notes.extend(of_whole);
        if bad > 0 {
            notes.push(format!("{bad} bytes were not UTF-8 and are shown as \u{FFFD}"));
        }
        if notes.is_empty() {
            return text;
        }
        let newline = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        format!("{text}{newline}[{}]", notes.join("; "))
    }
}

/// The whole of an output, as far as it may be kept: in memory while it is small, then in a file without a name.
#[derive(Debug)]
struct Whole {
    file: SpooledTempFile,
    room: usize,
    wrong: Option<std::io::Error>,
}

impl Whole {
    fn new(in_memory: usize) -> Whole {
        Whole { file: SpooledTempFile::new(in_memory), room: BLOB_BYTES_MAX, wrong: None }
    }

    fn push(&mut self, bytes: &[u8]) {
        let taken = &bytes[..bytes.len().min(self.room)];
        self.room -= taken.len();
        if self.wrong.is_none() {
            self.wrong = self.file.write_all(taken).err();
        }
    }

    fn bytes(mut self) -> std::io::Result<Vec<u8>> {
        if let Some(error) = self.wrong {
            return Err(error);
        }
        let mut bytes = Vec::with_capacity(BLOB_BYTES_MAX - self.room);
        self.file.rewind()?;
        self.file.read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// Text whose lines are all short: what is beyond the longest that is shown becomes further lines, so that all of it can be read.
pub(crate) fn in_short_lines(bytes: &[u8]) -> Vec<u8> {
    let mut made = Vec::with_capacity(bytes.len());
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let mut rest = line;
        while rest.len() > LINE_BYTES_MAX {
            let end = whole_chars(&rest[..LINE_BYTES_MAX - 1]).max(1);
            made.extend_from_slice(&rest[..end]);
            made.push(b'\n');
            rest = &rest[end..];
        }
        made.extend_from_slice(rest);
    }
    made
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
        capture.finish().cut()
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

    #[test]
    fn endless_lines_become_lines_that_can_be_read_one_by_one() {
        let text = format!("short\n{}\nend", "é".repeat(LINE_BYTES_MAX));
        let made = String::from_utf8(in_short_lines(text.as_bytes())).unwrap();
        assert!(made.lines().all(|line| line.len() <= LINE_BYTES_MAX));
        assert_eq!(made.lines().count(), 5);
        assert_eq!(made.replace('\n', ""), text.replace('\n', ""));
        assert_eq!(in_short_lines(b"a\nb\n"), b"a\nb\n");
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
