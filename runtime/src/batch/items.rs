//! Reading inputs, line by line: each line is an item, also a broken one.
//!
//! Leaves types to the flow. Invariant: never more than one line is held, and of a line never more than its limit.

use std::io::{self, BufRead};

use outlast_kernel::Json;
use outlast_protocol::{ApiError, Code};

use super::Naming;
use crate::limits::BATCH_LINE_BYTES_MAX;
use crate::lines::{self, Line};

/// What one line asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// Its id: the id of its first run.
    pub id: String,
    /// The line's number, from 1.
    pub line: u64,
    /// Bytes of the input up to the line's end.
    pub end: u64,
    /// The flow's arguments, or what is wrong with the line.
    pub input: Result<Json, ApiError>,
}

/// Reads items from JSON lines. Empty lines are passed over.
#[derive(Debug)]
pub struct Items<R> {
    reader: R,
    naming: Naming,
    line: u64,
    end: u64,
}

impl<R: BufRead> Items<R> {
    /// Reads from the beginning.
    pub fn new(reader: R, naming: Naming) -> Items<R> {
        Items { reader, naming, line: 0, end: 0 }
    }

    /// Returns the next item; none at the end.
    ///
    /// # Errors
    /// If the input cannot be read.
    pub fn next_item(&mut self) -> io::Result<Option<Item>> {
        loop {
            let mut hasher = blake3::Hasher::new();
            let see = |part: &[u8]| {
                hasher.update(part.strip_suffix(b"\n").unwrap_or(part));
                self.end += part.len() as u64;
            };
            let Some(line) = lines::read(&mut self.reader, BATCH_LINE_BYTES_MAX, see)? else {
                return Ok(None);
            };
            self.line += 1;
            let read = match line {
                Line::TooLong => Err(too_long()),
                Line::Text(bytes) => {
                    // Some editors begin a file with a mark that says nothing in UTF-8.
                    let mark: &[u8] = if self.line == 1 { b"\xef\xbb\xbf" } else { b"" };
                    let text = bytes.strip_prefix(mark).unwrap_or(&bytes);
                    if text.trim_ascii().is_empty() {
                        continue;
                    }
                    object(text)
                }
            };
            let named = read.and_then(|input| self.naming.name(input));
            let (id, input) = match named {
                Ok((id, input)) => (id, Ok(input)),
                Err(error) => (self.naming.name_broken(hasher.finalize()), Err(at_line(error, self.line))),
            };
            return Ok(Some(Item { id, line: self.line, end: self.end, input }));
        }
    }
}

fn object(bytes: &[u8]) -> Result<serde_json::Map<String, Json>, ApiError> {
    const EXPECTED: &str = "a JSON object with the flow's parameters is expected";
    let wrong = |what: String| ApiError::new(Code::Invalid, what);
    let text = std::str::from_utf8(bytes)
        .map_err(|error| wrong(format!("not UTF-8 after {} bytes; {EXPECTED}", error.valid_up_to())))?;
    match outlast_protocol::json::read(text.as_bytes()) {
        Ok(Json::Object(object)) => Ok(object),
        Ok(Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_)) => {
            Err(wrong(format!("not an object; {EXPECTED}")))
        }
        Err(error) => {
            // The parser counts lines of its own; here there is one.
            let (what, column) = (error.to_string(), error.column());
            let what = what.split(" at line ").next().unwrap_or_default();
            Err(wrong(format!("not JSON at column {column}: {what}; {EXPECTED}")))
        }
    }
}

fn too_long() -> ApiError {
    ApiError::new(Code::TooLarge, format!("the line is over {BATCH_LINE_BYTES_MAX} bytes"))
        .hint("put big values into files and name them in the input")
}

/// Says where: the line, and the field if there is one.
fn at_line(mut error: ApiError, line: u64) -> ApiError {
    error.at = Some(match error.at {
        None => format!("line {line}"),
        Some(field) => format!("line {line}, field {field}"),
    });
    error
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &[u8]) -> Vec<Item> {
        // A small buffer, so that lines are found in parts.
        let reader = io::BufReader::with_capacity(7, text);
        let mut items = Items::new(reader, Naming::new("F", None));
        std::iter::from_fn(|| items.next_item().unwrap()).collect()
    }

    #[test]
    fn every_line_is_an_item_and_broken_ones_say_what_was_expected() {
        let text = b"\xef\xbb\xbf{\"a\": 1}\r\n\n  \n[1]\n{\"a\":\n{} {}\n\"\xff\"\n{\"a\": 2}";
        let items = read(text);
        let lines: Vec<u64> = items.iter().map(|item| item.line).collect();
        assert_eq!(lines, [1, 4, 5, 6, 7, 8]);
        assert_eq!(items[0].input, Ok(json!({"a": 1})));
        assert_eq!(items[5].input, Ok(json!({"a": 2})));
        assert_eq!(items[5].end, text.len() as u64);
        for (item, message) in items[1..5].iter().zip(["not an object", "not JSON", "not JSON", "not UTF-8"])
        {
            let error = item.input.clone().unwrap_err();
            assert!(error.message.starts_with(message) && error.message.contains("is expected"), "{error:?}");
            assert_eq!(error.at, Some(format!("line {}", item.line)));
            assert!(item.id.starts_with("broken-"), "{item:?}");
        }
    }

    #[test]
    fn a_broken_line_keeps_its_id_wherever_it_stands() {
        let (first, second) = (read(b"x\n{}\nx"), read(b"{}\nx"));
        assert_eq!(first[0].id, second[1].id);
        assert_eq!(first[2].id, format!("{}.2", first[0].id));
    }

    #[test]
    fn a_line_over_the_limit_is_refused_and_the_next_one_is_read() {
        let long = format!("{{\"a\": \"{}\"}}\n{{}}", "x".repeat(BATCH_LINE_BYTES_MAX));
        let items = read(long.as_bytes());
        assert_eq!(items.len(), 2);
        assert_eq!(items[0].input.clone().unwrap_err().code, Code::TooLarge);
        assert_eq!(items[1].input, Ok(json!({})));
        let longer = format!("{{\"a\": \"{}\"}}", "x".repeat(BATCH_LINE_BYTES_MAX + 1));
        assert_ne!(read(longer.as_bytes())[0].id, items[0].id);
    }
}
