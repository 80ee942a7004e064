//! Attempts in hand: what the stubs make of a call, and when it is reported.
//!
//! Invariant: an attempt is in hand from its hand-out until it is reported, lost, or its operation is closed.

use outlast_dsl::test_case::WaitKind;
use outlast_kernel::Json;
use outlast_kernel::event::Failure;
use outlast_kernel::ids::{Attempt, Millis, OpId};
use outlast_kernel::operation::{ActivityOp, Class, OperationKind, Phase};
use serde_json::json;

use crate::failure::{Problem, Why};
use crate::stubs::{Drawn, Given, Stubs, Taken};
use crate::world::{OpKey, World, activity_of, doubt_of};

/// An attempt in hand.
#[derive(Clone, Debug)]
pub(crate) struct Hand {
    pub(crate) run: usize,
    pub(crate) op: OpId,
    pub(crate) attempt: Attempt,
    pub(crate) activity: String,
    /// The reply of a stub.
    pub(crate) taken: Option<Taken>,
    /// Whether the world itself answers, who knows what a crash cut off.
    pub(crate) is_truth: bool,
    pub(crate) comes: Comes,
    /// What it reports to have cost.
    pub(crate) cost: Option<String>,
    /// When it is reported; none: its operation's deadline ends it.
    pub(crate) due: Option<Millis>,
    /// Whether the clock goes on by itself until then: the test did not say how long it takes.
    pub(crate) is_awaited: bool,
}

/// What an attempt comes to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Comes {
    /// A result.
    Done(Json),
    /// A failure with an answer.
    Failed(Failure),
    /// It is stopped when its time is over.
    Late,
    /// It was begun and will never answer.
    Lost,
    /// Nothing, until the operation's deadline.
    Silence,
    /// It is not even begun: no worker takes it before the operation's deadline.
    Queued,
    /// No stub says; whoever looks at the run is told.
    Unanswered(Box<Problem>),
}

impl Hand {
    /// Says whether a worker has the attempt.
    pub(crate) fn is_out(&self) -> bool {
        match &self.comes {
            Comes::Queued | Comes::Unanswered(_) => false,
            Comes::Done(_) | Comes::Failed(_) | Comes::Late | Comes::Lost | Comes::Silence => true,
        }
    }
}

impl<'t> World<'t> {
    /// Returns the first operation of which an attempt may be handed out.
    pub(crate) fn next_ready(&self) -> Option<OpKey> {
        let mut runs = self.runs.iter().enumerate().filter(|(_, run)| run.state.blocked().is_none());
        runs.find_map(|(at, run)| {
            let waits = |call: &ActivityOp| match call.phase {
                Phase::Ready => true,
                Phase::RetryAt(time) => time <= self.now,
                Phase::Begun { .. } | Phase::Verifying(_) | Phase::Held(_) | Phase::Budget => false,
            };
            let in_hand = |op: OpId| self.hands.iter().any(|hand| (hand.run, hand.op) == (at, op));
            let mut ops = run.state.operations();
            let ready = ops.find(|op| activity_of(op).is_some_and(waits) && !in_hand(op.id))?;
            Some((at, ready.id))
        })
    }

    /// Returns the attempt that is handed out next of an operation, and the stubs without its reply.
    pub(crate) fn prepare(&self, (at, op): OpKey) -> Result<(Hand, Class, Stubs<'t>), Problem> {
        let mut stubs = self.stubs.clone();
        let state = &self.runs[at].state;
        let Some(call) = state.operation(op).and_then(activity_of) else {
            return Err(Problem::promise(format!("operation {op} is handed out and not open")));
        };
        let known = doubt_of(state, op).and_then(|of| self.truths.get(&(at, of)));
        let mut hand = Hand {
            run: at,
            op,
            attempt: call.attempt,
            activity: call.activity.clone(),
            taken: None,
            is_truth: known.is_some(),
            comes: Comes::Silence,
            cost: None,
            due: None,
            is_awaited: true,
        };
        let given = match known {
            Some(truth) => Given::Value(verdict(truth.as_ref())),
            None => {
                let input = (call.activity.as_str(), &call.input);
                match stubs.take(&self.values, input, self.now) {
                    Ok(Drawn { taken, after_ms, cost, given }) => {
                        (hand.taken, hand.is_awaited) = (Some(taken), after_ms.is_none());
                        hand.cost = cost;
                        (hand.comes, hand.due) = self.comes(call, after_ms, given)?;
                        return Ok((hand, call.class, stubs));
                    }
                    Err(problem) if problem.why == Why::NoReply => {
                        (hand.comes, hand.is_awaited) = (Comes::Unanswered(Box::new(problem)), false);
                        return Ok((hand, call.class, stubs));
                    }
                    Err(problem) => return Err(problem),
                }
            }
        };
        (hand.comes, hand.due) = self.comes(call, None, given)?;
        Ok((hand, call.class, stubs))
    }

    fn comes(
        &self,
        call: &ActivityOp,
        after_ms: Option<u64>,
        given: Given,
    ) -> Result<(Comes, Option<Millis>), Problem> {
        let due = self.now.plus(after_ms.unwrap_or(0));
        let stopped = call.attempt_ms.map(|ms| self.now.plus(ms));
        Ok(match (given, stopped) {
            (Given::Timeout, _) if call.class == Class::Once => (Comes::Queued, None),
            (Given::Timeout, None) => (Comes::Silence, None),
            (Given::Timeout, Some(stopped)) => (Comes::Late, Some(stopped)),
            (Given::Unknown, _) if call.class != Class::Once => {
                let message =
                    format!("this call of `{}` can be done again, so it is never in doubt", call.activity);
                return Err(Problem::new(message)
                    .found(format!("input {}", crate::diff::shown(&call.input)))
                    .expected("a result, `fail …` or `timeout` from the stub"));
            }
            (_, Some(stopped)) if stopped < due => (Comes::Late, Some(stopped)),
            (Given::Unknown, _) => (Comes::Lost, Some(due)),
            (Given::Value(value), _) => (Comes::Done(value), Some(due)),
            (Given::Failure(failure), _) => (Comes::Failed(failure), Some(due)),
        })
    }

    /// Returns what is to be said of a call that no stub answers.
    pub(crate) fn unanswered(&self) -> Result<(), Problem> {
        let problem = self.hands.iter().find_map(|hand| match &hand.comes {
            Comes::Unanswered(problem) => Some((**problem).clone()),
            Comes::Done(_)
            | Comes::Failed(_)
            | Comes::Late
            | Comes::Lost
            | Comes::Silence
            | Comes::Queued => None,
        });
        problem.map_or(Ok(()), Err)
    }

    /// Returns the next moment at which something happens, up to `target` or what the clock goes on for by itself.
    pub(crate) fn next_moment(&self, target: Option<Millis>) -> Option<Millis> {
        let deadline = |hand: &Hand| self.runs[hand.run].state.operation(hand.op)?.due;
        let ends = |hand: &Hand| hand.due.or_else(|| deadline(hand));
        let retries = self.runs.iter().filter(|run| run.state.blocked().is_none()).flat_map(|run| {
            run.state.operations().filter_map(|op| match activity_of(op)?.phase {
                // Once it is in hand, its wait is over.
                Phase::RetryAt(time) => Some(time).filter(|time| *time > self.now),
                Phase::Ready | Phase::Begun { .. } | Phase::Verifying(_) | Phase::Held(_) | Phase::Budget => {
                    None
                }
            })
        });
        let awaited = self.hands.iter().filter(|hand| hand.is_awaited).filter_map(ends);
        let must = retries.chain(awaited).min();
        let timers = self.runs.iter().filter_map(|run| run.state.next_due());
        let may = timers.chain(self.hands.iter().filter_map(|hand| hand.due)).min();
        let horizon = target.max(must)?;
        let next = must.into_iter().chain(may).min()?;
        (next <= horizon && next > self.now).then_some(next)
    }

    /// Says whether the started run waits for something of a kind.
    pub(crate) fn waits_for(&self, wanted: WaitKind) -> bool {
        let Some(run) = self.runs.first() else { return false };
        let phase = |fits: fn(&Phase) -> bool| {
            run.state.operations().filter_map(activity_of).any(|call| fits(&call.phase))
        };
        let kind = |fits: fn(&OperationKind) -> bool| run.state.operations().any(|op| fits(&op.kind));
        match wanted {
            WaitKind::Activity => self.hands.iter().any(|hand| hand.run == 0 && hand.is_out()),
            WaitKind::Question => kind(|kind| matches!(kind, OperationKind::Question(_))),
            WaitKind::Message => kind(|kind| matches!(kind, OperationKind::Await(_))),
            WaitKind::Timer => kind(|kind| matches!(kind, OperationKind::Timer)),
            WaitKind::Held => phase(|phase| matches!(phase, Phase::Held(_))),
            WaitKind::Budget => phase(|phase| matches!(phase, Phase::Budget)),
            WaitKind::Blocked => run.state.blocked().is_some(),
        }
    }
}

/// What a verifier says of what only the world knows.
fn verdict(truth: Option<&Json>) -> Json {
    match truth {
        Some(result) => json!({ "type": "Happened", "result": result }),
        None => json!({ "type": "NotHappened" }),
    }
}
