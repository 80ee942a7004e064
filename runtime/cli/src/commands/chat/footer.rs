//! The rows below a conversation: the messages that wait for their turn, where the run stands, and what is asked for.
//!
//! Invariant: pure.

use outlast_protocol::run::{RunView, WaitingFor};
use serde_json::Value;

use super::talk::Talk;
use super::{mention, transcript};
use crate::limits::QUEUE_ROWS_MAX;
use crate::show;

/// What sums of decimals may be off as floating-point numbers.
const COST_MARGIN: f64 = 1e-9;

impl Talk {
    /// Returns the beginnings of the messages that wait for their turn, the next one first.
    pub(super) fn queue(&self) -> Vec<String> {
        self.run.as_ref().map(|run| queue(&run.unread)).unwrap_or_default()
    }

    /// Returns the status line.
    pub(super) fn status(&self) -> String {
        let said = self.known.remarks.len();
        let status = self
            .run
            .as_ref()
            .map(|run| status(run, said.saturating_sub(run.unread.len()), self.known.told_cost));
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
        Some(text) => {
            let shown = mention::shown(text);
            format!("queued: {}", shown.split_whitespace().collect::<Vec<_>>().join(" "))
        }
        None => format!("queued: ({})", message["type"].as_str().unwrap_or_default()),
    };
    let mut rows: Vec<String> = unread.iter().take(QUEUE_ROWS_MAX).map(text).collect();
    let more = unread.len().saturating_sub(QUEUE_ROWS_MAX);
    if more > 0 {
        rows.push(format!("queued: {more} more"));
    }
    rows
}

fn status(run: &RunView, turn: usize, told_cost: f64) -> String {
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
        "{} · {} · turn {turn} · {doing} · {}{}{queued}",
        run.id,
        run.state,
        cost(&run.cost, told_cost),
        show::tokens(run)
    )
}

/// Says what a run has cost: an attempt that was lost told nothing, and counts with the most that it could have cost.
fn cost(booked: &str, told: f64) -> String {
    let is_more = booked.parse::<f64>().is_ok_and(|booked| booked > told + COST_MARGIN);
    format!("cost {}{booked}", if is_more { "up to " } else { "" })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_nobody_told_to_have_cost_is_the_most_that_it_may_have_cost() {
        for (booked, told, expected) in [
            ("0", 0.0, "cost 0"),
            ("0.40", 0.0, "cost up to 0.40"),
            ("0.3", 0.1 + 0.2, "cost 0.3"),
            ("0.7", 0.3, "cost up to 0.7"),
        ] {
            assert_eq!(cost(booked, told), expected);
        }
    }

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
