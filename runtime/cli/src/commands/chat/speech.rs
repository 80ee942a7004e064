//! The text of an attempt, shown as it comes.
//!
//! Invariant: one text at a time, so that no two voices are in one line; a text that did not become a result is marked as interrupted,
//! and nothing more is shown of it.

use serde_json::Value;

use super::face::Face;
use super::transcript;

/// How a text that did not become a result ends.
const INTERRUPTED: &str = " (interrupted)";

/// What is being said.
#[derive(Debug, Default)]
pub(super) struct Speech {
    /// The attempt whose text is on the screen.
    now: Option<Attempt>,
    /// Its text.
    text: String,
    /// The last one that is over: pieces of it may still come.
    over: Option<Attempt>,
    /// What was shown as it came, and is not to be shown again.
    said: String,
}

/// An attempt of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Attempt {
    op: String,
    number: u64,
}

impl Speech {
    /// Shows a piece of an attempt's text.
    pub(super) fn piece(&mut self, face: &mut Face, data: &Value) {
        let op = data["op"].as_str().unwrap_or_default().to_owned();
        let attempt = Attempt { op, number: data["attempt"].as_u64().unwrap_or_default() };
        let Some(text) = data["text"].as_str() else {
            // Another attempt begins; what else has no text is how far this one is.
            if data["restart"] == true && self.is_of(&attempt.op) {
                self.interrupt(face);
            }
            return;
        };
        if self.over.as_ref() == Some(&attempt) {
            return;
        }
        if self.now.as_ref() == Some(&attempt) && data["offset"] == 0 && !self.text.is_empty() {
            // All of it so far, when the stream was cut; or an attempt that begins again, when all were killed that knew of it.
            if let Some(rest) = text.strip_prefix(self.text.as_str()) {
                face.write(rest);
                self.text.push_str(rest);
                return;
            }
            self.interrupt(face);
            self.over = None;
        }
        if *self.now.get_or_insert_with(|| attempt.clone()) == attempt && face.write(text) {
            self.text.push_str(text);
        }
    }

    /// Takes in an event: the end of an attempt ends its text.
    pub(super) fn event(&mut self, face: &mut Face, event: &Value) {
        if !event["op"].as_str().is_some_and(|op| self.is_of(op)) {
            return;
        }
        match event["kind"].as_str() {
            Some("done") => {
                self.said = std::mem::take(&mut self.text);
                // The last pieces of a text may come with its result only.
                if let Some(rest) = transcript::rest(&event["value"], &self.said)
                    && face.write(rest)
                {
                    self.said.push_str(rest);
                }
                face.end_text();
                self.over = self.now.take();
            }
            Some("failed" | "lost") => self.interrupt(face),
            Some(_) | None => {}
        }
    }

    /// Ends a text that will not become a result, if there is one.
    pub(super) fn interrupt(&mut self, face: &mut Face) {
        if let Some(attempt) = self.now.take() {
            face.write(INTERRUPTED);
            face.end_text();
            self.text.clear();
            self.over = Some(attempt);
        }
    }

    /// Whether a text was shown as it came.
    pub(super) fn was_shown(&self, text: &str) -> bool {
        !text.trim().is_empty() && self.said.contains(text.trim())
    }

    fn is_of(&self, op: &str) -> bool {
        self.now.as_ref().is_some_and(|attempt| attempt.op == op)
    }
}

/// Whether a piece is of an operation that a run had left when it listened after so many events.
pub(super) fn is_late(data: &Value, listens_at: Option<u64>) -> bool {
    let op = data["op"].as_str().and_then(|op| op.split_once('.'));
    let opened = op.and_then(|(event, _)| event.parse::<u64>().ok());
    listens_at.zip(opened).is_some_and(|(events, opened)| opened <= events)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_piece_of_a_turn_that_is_over_is_late() {
        for (op, listens_at, late) in
            [("7.0", Some(9), true), ("9.1", Some(9), true), ("10.0", Some(9), false), ("7.0", None, false)]
        {
            assert_eq!(is_late(&json!({ "op": op, "text": "x" }), listens_at), late, "{op} {listens_at:?}");
        }
    }
}
