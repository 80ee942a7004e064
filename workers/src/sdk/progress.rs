//! Partial output of one attempt, until it is sent.
//!
//! Leaves when to send to the loops. Invariant: `offset` counts the characters sent, so a piece that is sent twice is known by its
//! offset, and memory is bounded whatever an attempt writes.

use std::time::{Duration, Instant};

use outlast_protocol::worker::TaskProgress;

use super::mask::{Mask, MaskedStream};
use crate::limits::{PROGRESS_BATCH_BYTES, PROGRESS_BYTES_MAX};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Partial {
    masked: MaskedStream,
    unsent: String,
    sent_chars: u64,
    taken_bytes: usize,
    percent: Option<f64>,
    sign_wanted: bool,
    last_sign: Option<Instant>,
}

impl Partial {
    pub(crate) fn new(mask: Mask) -> Partial {
        Partial { masked: MaskedStream::new(mask), ..Partial::default() }
    }

    /// Adds text; what is over the limit of an attempt is left out. What may begin a secret is held back until it is known not to.
    pub(crate) fn push(&mut self, text: &str) {
        let room = PROGRESS_BYTES_MAX - self.taken_bytes;
        let fits = &text[..text.floor_char_boundary(room)];
        self.taken_bytes =
            if fits.len() < text.len() { PROGRESS_BYTES_MAX } else { self.taken_bytes + fits.len() };
        let shown = self.masked.push(fits.as_bytes());
        // It is cut where a secret would begin, which is between characters.
        self.unsent.push_str(&String::from_utf8_lossy(&shown));
    }

    pub(crate) fn set_percent(&mut self, percent: f64) {
        self.percent = Some(percent);
    }

    pub(crate) fn want_sign(&mut self) {
        self.sign_wanted = true;
    }

    pub(crate) fn text(&self) -> &str {
        &self.unsent
    }

    /// Whether something was written that is not sent.
    pub(crate) fn is_dirty(&self) -> bool {
        !self.unsent.is_empty() || self.percent.is_some() || self.sign_wanted
    }

    /// Whether what was written should not wait for more: somebody waits for the beginning, or there is a whole batch of it.
    pub(crate) fn is_urgent(&self) -> bool {
        let begins = self.sent_chars == 0 && !self.unsent.is_empty();
        begins || self.unsent.len() >= PROGRESS_BATCH_BYTES
    }

    /// What to send now, if anything: text, or a sign of life if the last one is `every` ago.
    pub(crate) fn due(&self, token: &str, every: Duration) -> Option<TaskProgress> {
        let silent = self.last_sign.is_none_or(|at| at.elapsed() >= every);
        if !silent && !self.is_dirty() {
            return None;
        }
        let text = &self.unsent[..self.unsent.floor_char_boundary(PROGRESS_BATCH_BYTES)];
        Some(TaskProgress {
            token: token.to_owned(),
            offset: (!text.is_empty()).then_some(self.sent_chars),
            text: (!text.is_empty()).then(|| text.to_owned()),
            percent: self.percent,
        })
    }

    /// Forgets what the runtime has taken.
    pub(crate) fn was_sent(&mut self, sent: &TaskProgress) {
        if let Some(text) = &sent.text {
            self.unsent.drain(..text.len());
            self.sent_chars += text.chars().count() as u64;
        }
        if self.percent == sent.percent {
            self.percent = None;
        }
        self.sign_wanted = false;
        self.last_sign = Some(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Case LIM-02.
    #[test]
    fn pieces_are_cut_on_characters_and_counted_in_characters() {
        let mut partial = Partial::default();
        partial.push(&"日".repeat(PROGRESS_BATCH_BYTES / 3 + 10));
        assert!(partial.is_urgent());
        let first = partial.due("t", Duration::ZERO).unwrap();
        assert_eq!(
            (first.offset, first.text.as_ref().unwrap().len()),
            (Some(0), PROGRESS_BATCH_BYTES / 3 * 3)
        );
        partial.was_sent(&first);
        assert!(!partial.is_urgent(), "the beginning is known");
        let second = partial.due("t", Duration::ZERO).unwrap();
        assert_eq!(second.offset, Some((PROGRESS_BATCH_BYTES / 3) as u64));
        assert_eq!(second.text.unwrap().chars().count(), 10);
    }

    #[test]
    fn the_beginning_waits_for_nothing_and_what_follows_for_more() {
        let mut partial = Partial::default();
        assert!(!partial.is_urgent());
        partial.push("H");
        assert!(partial.is_urgent(), "somebody waits for it");
        partial.was_sent(&partial.due("t", Duration::ZERO).unwrap());
        partial.push("ello");
        assert!(partial.is_dirty() && !partial.is_urgent());
    }

    #[test]
    fn an_attempt_that_writes_without_end_takes_bounded_memory() {
        let mut partial = Partial::default();
        for _ in 0..100 {
            partial.push(&"é".repeat(PROGRESS_BYTES_MAX / 3));
        }
        assert!(partial.text().len() <= PROGRESS_BYTES_MAX);
        assert!(partial.text().len() > PROGRESS_BYTES_MAX - 4);
    }
}
