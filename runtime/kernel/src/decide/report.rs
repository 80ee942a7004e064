//! What workers report, and what is known of workers that will not report.
//!
//! A report counts iff its operation is open and, for `once`, its attempt is the begun one. Invariant: a result that does not
//! fit is recorded as a failure with the reason, never dropped.

use outlast_dsl::machine::Activity;

use crate::event::{EventKind, Failure, LostWhy, Tokens};
use crate::ids::{Attempt, Millis, OpId};
use crate::input::{Refusal, Report, Stopped};
use crate::json::{Unknown, parse_decimal, value_to_json};
use crate::limits::FAILURE_CHARS_MAX;
use crate::operation::{Class, Phase};
use crate::state::{
    ActivityWork, State, attempts_left, attempts_used, declared, error_value, rule, wait_until,
};
use crate::value::JsonValue;

/// One attempt of an open activity.
#[derive(Clone, Copy)]
struct Try<'a> {
    op: OpId,
    attempt: Attempt,
    work: &'a ActivityWork,
    activity: &'a Activity,
    now: Millis,
    random: u64,
}

/// What an attempt has used up.
#[derive(Clone, Copy, Default)]
struct Spent<'a> {
    cost: Option<&'a str>,
    tokens: Tokens,
}

impl State {
    pub(super) fn reported(
        &self,
        op: OpId,
        attempt: Attempt,
        report: &Report,
        now: Millis,
        random: u64,
    ) -> Result<EventKind, Refusal> {
        let of = self.attempt(op, attempt, now, random)?;
        match report {
            Report::Done { value, cost, tokens } => {
                if !answers(&of) {
                    return Err(Refusal::Superseded { op, attempt });
                }
                Ok(self.done(&of, value, Spent { cost: cost.as_deref(), tokens: *tokens }))
            }
            Report::Failed { error, cost, tokens } => {
                in_hand(&of)?;
                Ok(self.failed(&of, error.clone(), Spent { cost: cost.as_deref(), tokens: *tokens }))
            }
            Report::Handle(handle) => {
                in_hand(&of)?;
                if of.work.handle.as_ref() == Some(handle) {
                    return Err(Refusal::Repeated);
                }
                if JsonValue::new(handle.clone()).is_err() {
                    return Err(Refusal::Invalid { detail: "the handle nests too deeply".to_owned() });
                }
                Ok(EventKind::Handle { op, attempt, handle: handle.clone() })
            }
            Report::Stopped(Stopped::Timeout) => self.lost(op, attempt, LostWhy::Timeout, now, random),
            Report::Stopped(Stopped::BrokenOff) => self.lost(op, attempt, LostWhy::BrokenOff, now, random),
            Report::Stopped(Stopped::Cancelled | Stopped::Leaving) => {
                self.lost(op, attempt, LostWhy::WorkerGone, now, random)
            }
        }
    }

    pub(super) fn lost(
        &self,
        op: OpId,
        attempt: Attempt,
        why: LostWhy,
        now: Millis,
        random: u64,
    ) -> Result<EventKind, Refusal> {
        let of = self.attempt(op, attempt, now, random)?;
        in_hand(&of)?;
        if of.work.class == Class::Once && !matches!(of.work.phase, Phase::Begun { .. }) {
            // The doubt is known already.
            return Err(Refusal::Superseded { op, attempt });
        }
        if why == LostWhy::Timeout && of.work.class != Class::Once {
            let text = format!("an attempt of {} gave no result in time", of.activity.name);
            let error = Failure { kind: "timeout".to_owned(), text, retryable: true, ..Failure::default() };
            return Ok(self.failed(&of, error, Spent::default()));
        }
        Ok(EventKind::Lost { op, attempt, why })
    }

    fn attempt(&self, op: OpId, attempt: Attempt, now: Millis, random: u64) -> Result<Try<'_>, Refusal> {
        match self.activity(op) {
            Some((_, work)) if !self.holds_fact_of(op) => {
                let activity = &self.program.machine.activities[work.activity.at()];
                Ok(Try { op, attempt, work, activity, now, random })
            }
            Some(_) | None => Err(Refusal::Superseded { op, attempt }),
        }
    }

    fn done(&self, of: &Try<'_>, value: &crate::Json, spent: Spent<'_>) -> EventKind {
        match self.reader(Unknown::Drop).read(&of.activity.result, value) {
            Ok(value) => EventKind::Done {
                op: of.op,
                activity: of.activity.name.clone(),
                attempt: of.attempt,
                value: value_to_json(&value),
                cost: canonical_cost(spent.cost),
                tokens: spent.tokens,
            },
            Err(mismatch) => {
                let text = format!("the result of {} does not fit its type: {mismatch}", of.activity.name);
                let error = Failure { kind: "failed".to_owned(), text, ..Failure::default() };
                self.failed(of, error, spent)
            }
        }
    }

    fn failed(&self, of: &Try<'_>, error: Failure, spent: Spent<'_>) -> EventKind {
        let error = self.canonical(of, error);
        EventKind::Failed {
            op: of.op,
            activity: of.activity.name.clone(),
            attempt: of.attempt,
            retry_at: self.retry_at(of, &error),
            error,
            cost: canonical_cost(spent.cost),
            tokens: spent.tokens,
        }
    }

    /// Makes a failure one that its declaration explains.
    fn canonical(&self, of: &Try<'_>, mut error: Failure) -> Failure {
        if let Some((end, _)) = error.text.char_indices().nth(FAILURE_CHARS_MAX) {
            error.text.truncate(end);
        }
        if error.kind.is_empty() {
            error.kind = "failed".to_owned();
        }
        if JsonValue::new(crate::Json::Object(error.fields.clone())).is_err() {
            error.fields = serde_json::Map::new();
        }
        if let Some(ix) = declared(&self.program.machine, of.activity, &error.kind)
            && let Err(mismatch) = error_value(&self.reader(Unknown::Drop), ix, &error)
        {
            error.text = format!("{} ({}, which does not fit: {mismatch})", error.text, error.kind);
            error.kind = "failed".to_owned();
        }
        error
    }

    /// Returns when the next attempt may start, if there is one.
    fn retry_at(&self, of: &Try<'_>, error: &Failure) -> Option<Millis> {
        if !error.retryable || of.work.expired || of.work.settling {
            return None;
        }
        let rule = rule(&self.program.machine, of.activity, &error.kind)?;
        let used = attempts_used(of.work, of.attempt);
        if !attempts_left(rule, used) {
            return None;
        }
        wait_until(rule, error, used, of.now, of.random)
    }
}

/// Says whether a result of the attempt counts.
fn answers(of: &Try<'_>) -> bool {
    match of.work.class {
        Class::Once => of.work.begun && of.attempt == of.work.attempt,
        Class::Pure | Class::Idempotent => of.attempt >= Attempt::FIRST && of.attempt <= of.work.attempt,
    }
}

/// Refuses news of an attempt that is not the one in hand: its end was accounted for.
fn in_hand(of: &Try<'_>) -> Result<(), Refusal> {
    let current = of.attempt == of.work.attempt
        && match of.work.class {
            Class::Once => of.work.begun,
            Class::Pure | Class::Idempotent => match of.work.phase {
                Phase::Ready => true,
                Phase::RetryAt(time) => time <= of.now,
                Phase::Begun { .. } | Phase::Verifying(_) | Phase::Held(_) | Phase::Budget => false,
            },
        };
    if current { Ok(()) } else { Err(Refusal::Superseded { op: of.op, attempt: of.attempt }) }
}

/// Returns a cost as the language writes decimals; nothing if it is none or below zero.
fn canonical_cost(cost: Option<&str>) -> Option<String> {
    let cost = parse_decimal(cost?)?;
    (!cost.is_sign_negative() || cost.is_zero()).then(|| cost.to_string())
}
