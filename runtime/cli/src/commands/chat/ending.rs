//! How a conversation ends: what is said of a run that has ended, or that stays.
//!
//! Invariant: whoever leaves, or is left, is told how to go on.

use outlast_protocol::run::{OutcomeView, RunView, WaitingFor};

use super::screen::Tone;
use super::talk::Talk;
use crate::commands::act;
use crate::failure::{Exit, Failure};
use crate::{out, show};

impl Talk {
    /// Returns how the conversation ends, once the run has ended.
    pub(super) fn ended(&mut self) -> Result<Option<Exit>, Failure> {
        let Some(outcome) = self.run.as_ref().and_then(|run| run.outcome.clone()) else { return Ok(None) };
        let left = self.mailbox.left();
        self.face.print_lines(&left)?;
        let told = self.known.is_closed.then_some("; it was told that no more messages come");
        let how = how(&outcome, &self.last_said);
        self.face.print(Tone::Aside, &format!("the run has ended: {how}{}", told.unwrap_or_default()))?;
        Ok(Some(show::exit_of(&outcome)))
    }

    /// Says how to go on with a run that stays, or from before the end of one that could have gone on.
    pub(super) fn tell_way_back(&self) {
        let Some(run) = &self.run else { return };
        let option = act::data_option(&self.session);
        if run.outcome.is_some() {
            if self.voice.takes_text() {
                let back = format!("outlast{option} chat --fork {}", run.id);
                out::say(&format!("to go on from before its end, in a fork: {back}"));
            }
            return;
        }
        if let Some(why) = waits_for_people(run) {
            out::say(&format!("run {} {why}", run.id));
        }
        out::say(&format!("run {} stays; to go on: outlast{option} chat --resume {}", run.id, run.id));
    }
}

/// Says how a run has ended; a result that stands above as the last answer is not told again.
fn how(outcome: &OutcomeView, last_said: &str) -> String {
    let result = show::outcome(outcome);
    let is_told = outcome.value.is_some() && !last_said.is_empty() && result.trim() == last_said.trim();
    if is_told { format!("{}, with this answer", outcome.kind) } else { result }
}

/// Says what people have to do, if only they can move a run; a run that listens is just talked with.
fn waits_for_people(run: &RunView) -> Option<String> {
    let waiting = run.waiting_for.as_ref()?;
    match waiting {
        WaitingFor::Question { .. } | WaitingFor::Held { .. } | WaitingFor::Blocked { .. } => {
            Some(show::waiting_for(&run.id, waiting))
        }
        WaitingFor::Message { .. }
        | WaitingFor::Worker { .. }
        | WaitingFor::Activity { .. }
        | WaitingFor::Retry { .. }
        | WaitingFor::Timer { .. }
        | WaitingFor::Child { .. }
        | WaitingFor::Budget { .. }
        | WaitingFor::Rate { .. }
        | WaitingFor::Environment { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_result_that_was_just_said_is_not_repeated() {
        for (kind, value, last_said, expected) in [
            ("done", Some(json!({ "text": "yes" })), "yes", "done, with this answer"),
            ("done", Some(json!({ "text": "yes" })), "no", "yes"),
            ("done", Some(json!("")), "", ""),
            ("cancelled", None::<Value>, "yes", "cancelled"),
        ] {
            let outcome = OutcomeView { kind: kind.to_owned(), value, error: None };
            assert_eq!(how(&outcome, last_said), expected, "{kind} {last_said}");
        }
    }
}
