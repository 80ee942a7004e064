//! Messages that wait for their turn: each is shown as said where the run takes it, and not where it came.
//!
//! Leaves the rows of those that wait to `footer`. Invariant: pure; every message is shown once, unless it is taken back.

use serde_json::Value;

use super::screen::{Line, Tone};

/// Messages of a run between their coming and their being taken.
#[derive(Debug, Default)]
pub(super) struct Mailbox {
    waiting: Vec<Waiting>,
    /// What messages say that the event in hand took: it stands below everything that the event showed.
    taken: Vec<Line>,
    event: u64,
}

/// A message that waits.
#[derive(Debug)]
struct Waiting {
    id: String,
    lines: Vec<Line>,
    /// Whether a person without a lower part was told that it waits.
    told: bool,
}

impl Mailbox {
    /// Takes an event in and what it shows; returns what is to be shown now.
    pub(super) fn event(&mut self, event: &Value, lines: Vec<Line>) -> Vec<Line> {
        let n = event["n"].as_u64().unwrap_or_default();
        let mut shown = if n == self.event { Vec::new() } else { self.rest() };
        self.event = n;
        let id = event["id"].as_str().unwrap_or_default();
        let handled: Vec<&str> =
            event["handled"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        match event["kind"].as_str() {
            Some("message") if !handled.contains(&id) => {
                self.waiting.push(Waiting { id: id.to_owned(), lines, told: false });
            }
            Some("withdrawn") => {
                self.waiting.retain(|message| message.id != id);
                shown.extend(lines);
            }
            Some(_) | None => shown.extend(lines),
        }
        for id in handled {
            if let Some(at) = self.waiting.iter().position(|message| message.id == id) {
                self.taken.extend(self.waiting.remove(at).lines);
            }
        }
        shown
    }

    /// Returns what is still to be shown of the event in hand.
    pub(super) fn rest(&mut self) -> Vec<Line> {
        std::mem::take(&mut self.taken)
    }

    /// Returns what messages say that are not among those that wait: events do not always tell what took them.
    pub(super) fn gone(&mut self, unread: &[Value]) -> Vec<Line> {
        let waits = |message: &Waiting| unread.iter().any(|other| other["id"] == message.id.as_str());
        let (waiting, gone) = std::mem::take(&mut self.waiting).into_iter().partition(waits);
        self.waiting = waiting;
        let gone: Vec<Waiting> = gone;
        gone.into_iter().flat_map(|message| message.lines).collect()
    }

    /// Returns what waits and was not told yet, for those who do not see it in a lower part.
    pub(super) fn news(&mut self) -> Vec<Line> {
        let news = self.waiting.iter_mut().filter(|message| !message.told);
        let lines = news.flat_map(|message| {
            message.told = true;
            &message.lines
        });
        lines.map(|(_, text)| (Tone::Aside, format!("queued: {}", bare(text)))).collect()
    }

    /// Returns what was never taken, once the run has ended.
    pub(super) fn left(&mut self) -> Vec<Line> {
        let left = std::mem::take(&mut self.waiting).into_iter().flat_map(|message| message.lines);
        left.map(|(_, text)| (Tone::Loud, format!("not taken any more: {}", bare(&text)))).collect()
    }
}

/// A heading without its mark.
fn bare(text: &str) -> &str {
    text.strip_prefix("> ").unwrap_or(text).trim_start()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(text: &str) -> Vec<Line> {
        vec![(Tone::Aside, format!("> {text}"))]
    }

    fn texts(lines: Vec<Line>) -> Vec<String> {
        lines.into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn a_message_is_shown_where_it_is_taken() {
        let mut mail = Mailbox::default();
        let mut shown = Vec::new();
        for (event, lines) in [
            (json!({ "n": 1, "kind": "message", "id": "a", "handled": ["a"] }), said("at once")),
            (json!({ "n": 2, "kind": "message", "id": "b" }), said("later")),
            (json!({ "n": 3, "kind": "message", "id": "c" }), said("taken back")),
            (json!({ "n": 4, "kind": "withdrawn", "id": "c" }), vec![]),
            (json!({ "n": 5, "kind": "message", "id": "d" }), said("last")),
            (json!({ "n": 6, "kind": "done", "handled": ["b"] }), said("the end of a turn")),
            (json!({ "n": 6, "kind": "emit" }), said("its answer")),
            (json!({ "n": 7, "kind": "done" }), said("the next turn")),
        ] {
            shown.extend(texts(mail.event(&event, lines)));
        }
        let expected = ["> at once", "> the end of a turn", "> its answer", "> later", "> the next turn"];
        assert_eq!(shown, expected);
        assert_eq!(texts(mail.news()), ["queued: last"]);
        assert_eq!(texts(mail.news()), Vec::<String>::new());
        assert_eq!(texts(mail.gone(&[json!({ "id": "d" })])), Vec::<String>::new());
        assert_eq!(texts(mail.left()), ["not taken any more: last"]);
    }

    #[test]
    fn what_nobody_tells_of_is_shown_when_it_does_not_wait_any_more() {
        let mut mail = Mailbox::default();
        assert_eq!(mail.event(&json!({ "n": 1, "kind": "message", "id": "a" }), said("a")), []);
        assert_eq!(texts(mail.gone(&[])), ["> a"]);
        assert_eq!(mail.event(&json!({ "n": 2, "kind": "done", "handled": ["a"] }), vec![]), []);
        assert_eq!(mail.rest(), []);
    }
}
