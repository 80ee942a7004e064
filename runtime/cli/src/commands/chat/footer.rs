//! The rows below a conversation: the messages that wait for their turn, where the run stands, and what is asked for.
//!
//! Invariant: pure.

use outlast_protocol::run::{RunView, WaitingFor};
use serde_json::Value;

use super::talk::Talk;
use super::transcript;
use crate::limits::QUEUE_ROWS_MAX;
use crate::show;

impl Talk {
    /// Returns the beginnings of the messages that wait for their turn, the next one first.
    pub(super) fn queue(&self) -> Vec<String> {
        self.run.as_ref().map(|run| queue(&run.unread)).unwrap_or_default()
    }

    /// Returns the status line.
    pub(super) fn status(&self) -> String {
        let said = self.known.remarks.len();
        let status = self.run.as_ref().map(|run| status(run, said.saturating_sub(run.unread.len())));
        let command = self.command.as_ref().map(|_| "your command runs; Ctrl-C ends it".to_owned());
        [status, command].into_iter().flatten().collect::<Vec<_>>().join(" · ")
    }

    /// Returns what stands before the line that is typed.
    pub(super) fn prompt(&self) -> &'static str {
        match self.questions() {
            [] => "> ",
            [question] if question.wanted.is_some() => "answer> ",
            [_] => "[y/N]> ",
            [_, ..] => "[y/n ID]> ",
        }
    }
}

fn queue(unread: &[Value]) -> Vec<String> {
    let text = |message: &Value| match transcript::said(&message["value"]) {
        Some(text) => format!("queued: {}", text.split_whitespace().collect::<Vec<_>>().join(" ")),
        None => format!("queued: ({})", message["type"].as_str().unwrap_or_default()),
    };
    let mut rows: Vec<String> = unread.iter().take(QUEUE_ROWS_MAX).map(text).collect();
    let more = unread.len().saturating_sub(QUEUE_ROWS_MAX);
    if more > 0 {
        rows.push(format!("queued: {more} more"));
    }
    rows
}

fn status(run: &RunView, turn: usize) -> String {
    let doing = match (&run.outcome, &run.waiting_for) {
        (Some(outcome), _) => outcome.kind.clone(),
        (None, Some(WaitingFor::Message { .. })) => "listens".to_owned(),
        (None, Some(WaitingFor::Question { .. })) => "asks".to_owned(),
        (None, Some(waiting)) => show::waiting_for(&run.id, waiting),
        (None, None) => "works; Esc stops".to_owned(),
    };
    let queued = match run.unread.len() {
        0 => String::new(),
        queued => format!(" · {queued} queued"),
    };
    format!(
        "{} · {} · turn {turn} · {doing} · cost {}{}{queued}",
        run.id,
        run.state,
        run.cost,
        show::tokens(run)
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_beginnings_of_queued_messages_are_shown_and_the_rest_is_counted() {
        let say = |text: &str| json!({ "id": "m", "type": "Say", "value": { "text": text } });
        assert_eq!(queue(&[]), Vec::<String>::new());
        let two = [say("one\n  line"), json!({ "id": "c", "type": "Compact", "value": {} })];
        assert_eq!(queue(&two), ["queued: one line", "queued: (Compact)"]);
        let many: Vec<Value> = (0..5).map(|n| say(&n.to_string())).collect();
        assert_eq!(queue(&many), ["queued: 0", "queued: 1", "queued: 2", "queued: 2 more"]);
    }
}
