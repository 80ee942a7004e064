//! What became of the items, in numbers, with the first of those that people should know of.

use outlast_runtime::batch::{Row, Standing};
use serde_json::{Value, json};

use super::item::Parked;
use crate::failure::Exit;
use crate::limits::{BATCH_TOLD_MAX, PARKED_MAX};
use crate::{out, show};

/// Counts items.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) done: u64,
    pub(super) failed: u64,
    pub(super) cancelled: u64,
    /// Lines whose row was there already.
    pub(super) found: u64,
    /// Items whose run had ended before this command.
    pub(super) before: u64,
    /// Lines that were read.
    pub(super) lines: u64,
    /// Items that only people can move.
    pub(super) parked: Vec<Parked>,
    /// Those that were too many to remember.
    pub(super) parked_more: u64,
    /// How many that are not done were told to people as they ended.
    pub(super) told: u64,
    /// Whether the reader of stdout does not read.
    pub(super) stuck: bool,
}

impl Tally {
    /// Counts a line whose row an earlier command wrote.
    pub(super) fn add_found(&mut self, standing: Standing) {
        self.found += 1;
        self.count(standing);
    }

    fn count(&mut self, standing: Standing) {
        match standing {
            Standing::Done => self.done += 1,
            Standing::Failed => self.failed += 1,
            Standing::Cancelled => self.cancelled += 1,
        }
    }

    /// Counts a row; returns what to say about it.
    pub(super) fn add(&mut self, row: &Row) -> Option<String> {
        let standing = row.standing();
        self.count(standing);
        if standing == Standing::Done || self.told >= BATCH_TOLD_MAX as u64 {
            return None;
        }
        self.told += 1;
        Some(failure(row))
    }

    /// Takes note of an item that only people can move.
    pub(super) fn park(&mut self, parked: Parked) {
        if self.parked.len() < PARKED_MAX {
            self.parked.push(parked);
        } else {
            self.parked_more += 1;
        }
    }

    /// Returns the items that only people could move when they were looked at, to be looked at again.
    pub(super) fn take_parked(&mut self) -> Vec<Parked> {
        std::mem::take(&mut self.parked)
    }

    /// Returns how many items only people can move.
    pub(super) fn waiting(&self) -> u64 {
        self.parked.len() as u64 + self.parked_more
    }

    /// Returns the numbers for machines.
    pub(super) fn counts(&self) -> Value {
        json!({
            "done": self.done,
            "failed": self.failed,
            "cancelled": self.cancelled,
            "waiting": self.waiting(),
            "found": self.found,
            "before": self.before,
            "lines": self.lines,
        })
    }

    /// Returns how the command ends if nothing is left to be done.
    pub(super) fn exit(&self) -> Exit {
        match (self.waiting(), self.failed, self.cancelled) {
            (1.., _, _) => Exit::Waiting,
            (0, 1.., _) => Exit::SomeFailed,
            (0, 0, 1..) => Exit::Cancelled,
            (0, 0, 0) => Exit::Done,
        }
    }

    /// Returns the numbers for people.
    pub(super) fn line(&self) -> String {
        let mut parts = vec![format!("{} done", self.done)];
        let others = [
            (self.failed, "failed"),
            (self.cancelled, "cancelled"),
            (self.waiting(), "waiting for a person"),
        ];
        parts.extend(
            others.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")),
        );
        parts.join(", ")
    }

    /// Says what became of everything. Failures were told by name as they came, as many as people read; questions are told here.
    pub(super) fn tell(&self, again: &str) {
        if self.lines > 0 && self.found == self.lines {
            out::say(&format!("nothing to do: all {} lines have their results", self.lines));
        }
        out::say(&format!("{} line{}: {}", self.lines, if self.lines == 1 { "" } else { "s" }, self.line()));
        if self.before > 0 {
            let before = self.before;
            out::say(&format!(
                "  {before} had ended in an earlier batch; to work on the same inputs anew: --name NAME"
            ));
        }
        match (self.failed + self.cancelled).saturating_sub(self.told) {
            0 => {}
            untold if self.told > 0 => {
                out::say(&format!("  {untold} more that are not done stand in the results only"));
            }
            untold => out::say(&format!("  {untold} that are not done stand in the results")),
        }
        if self.failed + self.cancelled > 0 {
            out::say("to try again what is not done: the same command with --retry-failed");
        }
        for parked in self.parked.iter().take(BATCH_TOLD_MAX) {
            out::say(&format!("  run {} {}", parked.run, show::waiting_for(&parked.run, &parked.waiting)));
        }
        let untold = self.waiting().saturating_sub(BATCH_TOLD_MAX as u64);
        if untold > 0 {
            out::say(&format!("  and {untold} more: outlast runs --status waiting"));
        }
        if self.waiting() > 0 {
            out::say(&format!("once they are answered, to go on: {again}"));
        }
    }
}

fn failure(row: &Row) -> String {
    let what = match (&row.error, &row.outcome) {
        (Some(error), _) => out::tame(&error.message),
        (None, Some(outcome)) => out::tame(&show::outcome(outcome)),
        (None, None) => row.status.clone(),
    };
    let why = match row.why.as_deref() {
        Some("item_timeout") => " (its time was over)",
        Some(_) => " (a person was asked)",
        None => "",
    };
    format!("line {}, {}: {what}{why}", row.line, row.run.as_ref().unwrap_or(&row.id))
}

#[cfg(test)]
mod tests {
    use outlast_protocol::run::WaitingFor;

    use super::*;

    fn row(status: &str, why: Option<&str>) -> Row {
        Row {
            id: "a".into(),
            line: 1,
            status: status.into(),
            run: None,
            outcome: None,
            error: None,
            why: why.map(str::to_owned),
        }
    }

    #[test]
    fn the_exit_code_says_what_is_left_first_then_what_went_wrong() {
        let waits = || Parked {
            id: "w".into(),
            line: 1,
            run: "w".into(),
            waiting: WaitingFor::Question { id: "1.0".into() },
        };
        for (rows, parked, exit) in [
            (&[][..], false, Exit::Done),
            (&[("done", None)][..], false, Exit::Done),
            (&[("done", None), ("cancelled", None)], false, Exit::Cancelled),
            (&[("cancelled", None), ("failed", None)], false, Exit::SomeFailed),
            (&[("cancelled", Some("item_timeout"))], false, Exit::SomeFailed),
            (&[("invalid", None)], false, Exit::SomeFailed),
            (&[("failed", None)], true, Exit::Waiting),
        ] {
            let mut tally = Tally::default();
            for (status, why) in rows {
                tally.add(&row(status, *why));
            }
            if parked {
                tally.park(waits());
            }
            assert_eq!(tally.exit(), exit, "{rows:?}");
        }
    }
}
