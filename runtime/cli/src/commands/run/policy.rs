//! What a driver without a person does next, given where the run stands.

use outlast_protocol::run::{OutcomeView, WaitingFor};
use outlast_runtime::client::ResultView;

/// What to do when a person is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum OnAsk {
    /// Leave with exit code 3 when only people can move the run; answer later from anywhere
    Wait,
    /// Cancel the run
    Fail,
    /// Reject and go on
    Deny,
    /// Need no question where an --allow rule fits; else as wait
    Approve,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// Show the result.
    Ended(OutcomeView),
    /// Leave: only people can move it.
    Leave(WaitingFor),
    /// Say that no more messages come.
    Close,
    /// Reject what is asked.
    Reject,
    /// Cancel the run, because a person is asked.
    Cancel,
    /// See whether the environment can still be served.
    LookAround,
    /// Wait on.
    Wait,
}

/// Returns what to do next. `closes`: this driver is the only one who might send messages, and has none left.
pub(crate) fn step(view: &ResultView, on_ask: OnAsk, closes: bool) -> Step {
    if let Some(outcome) = &view.outcome {
        return Step::Ended(outcome.clone());
    }
    let Some(waiting) = &view.waiting_for else { return Step::Wait };
    match waiting {
        WaitingFor::Question { .. } => match on_ask {
            OnAsk::Wait | OnAsk::Approve => Step::Leave(waiting.clone()),
            OnAsk::Deny => Step::Reject,
            OnAsk::Fail => Step::Cancel,
        },
        WaitingFor::Message { types } if closes && types.iter().any(|name| name == "closed") => Step::Close,
        WaitingFor::Message { .. } | WaitingFor::Held { .. } | WaitingFor::Blocked { .. } => {
            Step::Leave(waiting.clone())
        }
        // Without its directory a run has no worker, which looks like one that is yet to come.
        WaitingFor::Environment { .. } | WaitingFor::Worker { .. } | WaitingFor::Activity { .. } => {
            Step::LookAround
        }
        WaitingFor::Rate { .. }
        | WaitingFor::Retry { .. }
        | WaitingFor::Timer { .. }
        | WaitingFor::Child { .. }
        | WaitingFor::Budget { .. } => Step::Wait,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(waiting: Option<WaitingFor>, on_ask: OnAsk, closes: bool) -> Step {
        let (id, status) = ("r".to_owned(), "waiting".to_owned());
        step(&ResultView { id, status, outcome: None, waiting_for: waiting }, on_ask, closes)
    }

    #[test]
    fn questions_follow_the_policy() {
        let asked = WaitingFor::Question { id: "3.0".to_owned() };
        for (on_ask, expected) in [
            (OnAsk::Wait, Step::Leave(asked.clone())),
            (OnAsk::Approve, Step::Leave(asked.clone())),
            (OnAsk::Deny, Step::Reject),
            (OnAsk::Fail, Step::Cancel),
        ] {
            assert_eq!(check(Some(asked.clone()), on_ask, true), expected, "{on_ask:?}");
        }
    }

    #[test]
    fn a_batch_closes_only_what_can_be_closed() {
        let listens =
            |types: &[&str]| WaitingFor::Message { types: types.iter().map(|t| (*t).to_owned()).collect() };
        let (both, say) = (listens(&["Say", "closed"]), listens(&["Say"]));
        assert_eq!(check(Some(both.clone()), OnAsk::Wait, true), Step::Close);
        assert_eq!(check(Some(both.clone()), OnAsk::Wait, false), Step::Leave(both));
        assert_eq!(check(Some(say.clone()), OnAsk::Wait, true), Step::Leave(say));
    }

    #[test]
    fn what_moves_by_itself_is_waited_for() {
        let timer = WaitingFor::Timer { until: String::new() };
        let held = WaitingFor::Held { reason: String::new(), op: "1.0".to_owned() };
        let nowhere = WaitingFor::Environment { profile: "p".to_owned(), detail: String::new() };
        let worker = WaitingFor::Worker { queue: "tool".to_owned(), activity: "a".to_owned() };
        for (waiting, expected) in [
            (None, Step::Wait),
            (Some(timer), Step::Wait),
            (Some(held.clone()), Step::Leave(held)),
            (Some(nowhere), Step::LookAround),
            (Some(worker), Step::LookAround),
        ] {
            assert_eq!(check(waiting.clone(), OnAsk::Wait, true), expected, "{waiting:?}");
        }
        let outcome = OutcomeView { kind: "done".to_owned(), value: None, error: None };
        let (id, status) = ("r".to_owned(), "ended".to_owned());
        let ended = ResultView { id, status, outcome: Some(outcome.clone()), waiting_for: None };
        assert_eq!(step(&ended, OnAsk::Wait, true), Step::Ended(outcome));
    }
}
