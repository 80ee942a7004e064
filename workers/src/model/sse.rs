//! Reads a stream of server-sent events piece by piece.
//!
//! Leaves the meaning of events to others. Invariant: memory is bounded by stated limits, whatever the server sends, and pieces may
//! be cut anywhere, in the middle of a character too.

use crate::limits::{STREAM_BYTES_MAX, STREAM_EVENT_BYTES_MAX, STREAM_LINE_BYTES_MAX};

/// An event with data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Event {
    /// Its type; empty if it has none.
    pub(crate) name: String,
    pub(crate) data: String,
}

/// The stream is over a limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the model's stream has {what} of more than {limit} bytes")]
pub(crate) struct TooMuch {
    what: &'static str,
    limit: usize,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    line: Vec<u8>,
    after_return: bool,
    event: Event,
    has_data: bool,
    total: usize,
}

impl Reader {
    /// Takes in a piece and gives the events that it completes.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Result<Vec<Event>, TooMuch> {
        self.total += piece.len();
        check("a body", self.total, STREAM_BYTES_MAX)?;
        let mut events = Vec::new();
        let mut rest = piece;
        while let Some(first) = rest.first() {
            // A line ends in LF, CR or both.
            if std::mem::take(&mut self.after_return) && *first == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            self.line.extend_from_slice(&rest[..end.unwrap_or(rest.len())]);
            check("a line", self.line.len(), STREAM_LINE_BYTES_MAX)?;
            let Some(end) = end else { break };
            self.after_return = rest[end] == b'\r';
            rest = &rest[end + 1..];
            events.extend(self.end_line()?);
        }
        Ok(events)
    }

    /// The event that the end of the stream left without its blank line.
    pub(crate) fn finish(mut self) -> Result<Option<Event>, TooMuch> {
        if !self.line.is_empty() {
            self.end_line()?;
        }
        Ok(self.has_data.then_some(self.event))
    }

    fn end_line(&mut self) -> Result<Option<Event>, TooMuch> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            return Ok(std::mem::take(&mut self.has_data).then_some(event));
        }
        let line = String::from_utf8_lossy(&line);
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                if self.has_data {
                    self.event.data.push('\n');
                }
                self.has_data = true;
                self.event.data.push_str(value);
                check("an event", self.event.data.len(), STREAM_EVENT_BYTES_MAX)?;
            }
            "event" => value.clone_into(&mut self.event.name),
            // Comments keep the connection open; other fields do not concern us.
            _ => {}
        }
        Ok(None)
    }
}

fn check(what: &'static str, size: usize, limit: usize) -> Result<(), TooMuch> {
    if size > limit { Err(TooMuch { what, limit }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: impl IntoIterator<Item = Vec<u8>>) -> Vec<(String, String)> {
        let mut reader = Reader::default();
        let mut events = Vec::new();
        for piece in pieces {
            events.extend(reader.push(&piece).unwrap());
        }
        events.extend(reader.finish().unwrap());
        events.into_iter().map(|event| (event.name, event.data)).collect()
    }

    #[test]
    fn events_are_the_same_however_they_are_cut() {
        let stream = ": ping\n\ndata: one\n\nevent: error\r\ndata: {\"日本\":1}\r\n\r\ndata:two\ndata: lines\n\nid: 7\n\ndata: [DONE]";
        let expected = [("", "one"), ("error", "{\"日本\":1}"), ("", "two\nlines"), ("", "[DONE]")];
        let expected = expected.map(|(name, data)| (name.to_owned(), data.to_owned()));
        assert_eq!(read([stream.as_bytes().to_vec()]), expected);
        for size in 1..7 {
            assert_eq!(
                read(stream.as_bytes().chunks(size).map(<[u8]>::to_vec)),
                expected,
                "{size} bytes a piece"
            );
        }
        assert_eq!(read([stream.replace("\r\n", "\n").replace('\n', "\r").into_bytes()]), expected);
    }

    #[test]
    fn streams_without_end_are_refused() {
        let endless = |piece: &[u8]| {
            let mut reader = Reader::default();
            loop {
                if let Err(error) = reader.push(piece) {
                    return error.what;
                }
            }
        };
        let lines = format!("data: {}\n", "x".repeat(1 << 20));
        assert_eq!(endless(&[b'x'; 1 << 16]), "a line");
        assert_eq!(endless(lines.as_bytes()), "an event");
        assert_eq!(endless(format!(": {}\n\n", "ping".repeat(10_000)).as_bytes()), "a body");
    }
}
