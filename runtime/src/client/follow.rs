//! Reading a run's stream: server-sent events back into frames.

use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use outlast_protocol::run::{Frame, FrameKind};

use super::ClientError;
use crate::limits::ANSWER_BYTES_MAX;

/// A run that is followed. Dropping it hangs up.
#[derive(Debug)]
pub struct Follow {
    body: Incoming,
    address: String,
    lines: Lines,
}

impl Follow {
    pub(super) fn new(body: Incoming, address: String) -> Follow {
        Follow { body, address, lines: Lines::default() }
    }

    /// Returns the next frame; none at the end of the stream. A stream that ends without an `ended` frame was cut: follow again from
    /// the last frame that had an id.
    ///
    /// # Errors
    /// [`ClientError::Unreachable`] if the connection broke, [`ClientError::Garbled`] if something else than frames arrived.
    pub async fn next(&mut self) -> Result<Option<Frame>, ClientError> {
        loop {
            if let Some(frame) = self.lines.take().map_err(|detail| self.garbled(detail))? {
                return Ok(Some(frame));
            }
            match self.body.frame().await {
                None => return Ok(None),
                Some(Ok(part)) => {
                    if let Some(bytes) = part.data_ref() {
                        self.lines.add(bytes).map_err(|detail| self.garbled(detail))?;
                    }
                }
                Some(Err(error)) => {
                    let address = self.address.clone();
                    return Err(ClientError::Unreachable { address, detail: error.to_string() });
                }
            }
        }
    }

    fn garbled(&self, detail: String) -> ClientError {
        ClientError::Garbled { address: self.address.clone(), detail }
    }
}

/// Bytes of a stream that are not whole events yet.
#[derive(Debug, Default)]
struct Lines {
    bytes: Vec<u8>,
    /// Before this, there is no end of line.
    searched: usize,
    id: Option<String>,
    event: Option<String>,
    data: Option<String>,
}

impl Lines {
    fn add(&mut self, bytes: &[u8]) -> Result<(), String> {
        if self.bytes.len() + bytes.len() > ANSWER_BYTES_MAX {
            return Err(format!("a line of over {ANSWER_BYTES_MAX} bytes"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Returns the next whole event as a frame.
    fn take(&mut self) -> Result<Option<Frame>, String> {
        while let Some(at) = self.bytes[self.searched..].iter().position(|byte| *byte == b'\n') {
            let mut line: Vec<u8> = self.bytes.drain(..=self.searched + at).collect();
            self.searched = 0;
            line.pop();
            let line = String::from_utf8(line).map_err(|error| error.to_string())?;
            if let Some(frame) = self.line(line.trim_end_matches('\r'))? {
                return Ok(Some(frame));
            }
        }
        self.searched = self.bytes.len();
        Ok(None)
    }

    fn line(&mut self, line: &str) -> Result<Option<Frame>, String> {
        if line.is_empty() {
            return self.dispatch();
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value).to_owned();
        match field {
            "id" => self.id = Some(value),
            "event" => self.event = Some(value),
            "data" => {
                self.data = Some(match self.data.take() {
                    None => value,
                    Some(before) => before + "\n" + &value,
                });
            }
            // Comments, and fields of later versions.
            _ => {}
        }
        Ok(None)
    }

    fn dispatch(&mut self) -> Result<Option<Frame>, String> {
        let (id, event, data) = (self.id.take(), self.event.take(), self.data.take());
        let (Some(event), Some(data)) = (event, data) else { return Ok(None) };
        // Kinds of later versions are none of ours.
        let Ok(event) = serde_json::from_value::<FrameKind>(event.into()) else { return Ok(None) };
        let data = serde_json::from_str(&data).map_err(|error| error.to_string())?;
        Ok(Some(Frame { id, event, data }))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn frames_come_out_whole_wherever_the_stream_is_cut() {
        let text = ":\n\nid: r/3.0\nevent: emit\ndata: {\"value\":\"ü\"}\n\nevent: later\ndata: 1\n\n\
                    event: partial\r\ndata: {\"text\":\r\ndata: \"a\"}\r\n\r\n";
        for cut in 0..text.len() {
            let mut lines = Lines::default();
            let mut frames = Vec::new();
            for part in [&text.as_bytes()[..cut], &text.as_bytes()[cut..]] {
                lines.add(part).unwrap();
                while let Some(frame) = lines.take().unwrap() {
                    frames.push(frame);
                }
            }
            let emit =
                Frame { id: Some("r/3.0".into()), event: FrameKind::Emit, data: json!({ "value": "ü" }) };
            let partial = Frame { id: None, event: FrameKind::Partial, data: json!({ "text": "a" }) };
            assert_eq!(frames, [emit, partial], "cut at {cut}");
        }
    }

    #[test]
    fn data_that_is_no_json_is_an_error() {
        let mut lines = Lines::default();
        lines.add(b"event: emit\ndata: {\n\n").unwrap();
        assert!(lines.take().is_err());
    }
}
