//! Crashes: before and after every event of a play, the process ends, and the play must come to the same.
//!
//! What a crash takes: the live state (it is folded anew from the encoded history), the attempts in hand (their operations are handed
//! out again), an event that was not durable. What it leaves: the history, and what workers did. If no `once` attempt was begun, the
//! world after the crash is the world before it, so that the rest of the play is the one that was seen: that equality is what is
//! checked. If one was begun, the rest is played: a verifier tells the truth, which the world knows, and the play must come to
//! the same; without a verifier the run may go another way, and only the promises are checked.
//! Invariant: a finished activity is never handed out again, and a begun `once` attempt never before somebody knows its outcome.

use std::fmt;

use outlast_dsl::TestCase;
use outlast_dsl::machine::{EffectClass, Limit, Measure};
use outlast_kernel::event::EventKind;
use outlast_kernel::operation::Outcome;

use crate::diff::shown_path;
use crate::failure::{Problem, TestFailure};
use crate::hands::Comes;
use crate::play::{Cause, Moment, Play, Until, told};
use crate::world::{OpKey, World, activity_of};

/// On which side of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    /// It is not durable.
    Before,
    /// It is durable, and nobody was told.
    After,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Side::Before => "before",
            Side::After => "after",
        })
    }
}

/// Returns what the first crash that changes something comes to.
pub(crate) fn first_difference(
    test: &TestCase,
    moments: &[Moment<'_>],
    calm: &World<'_>,
) -> Option<Box<TestFailure>> {
    let sides = [Side::Before, Side::After];
    let mut all = moments.iter().flat_map(|moment| sides.map(|side| (moment, side)));
    all.find_map(|(moment, side)| {
        let mut play = Play::resumed(test, moment.world.clone(), moment.step);
        let n = moment.world.runs[moment.run].state.last().next();
        let failure = survive(&mut play, moment, side, moments, calm).err()?;
        let crash = format!("after a crash {side} event {n} ({})", told(&moment.kind));
        Some(Box::new(TestFailure { crash: Some(crash), ..*failure }))
    })
}

fn survive<'t>(
    play: &mut Play<'t>,
    moment: &Moment<'t>,
    side: Side,
    moments: &[Moment<'t>],
    calm: &World<'t>,
) -> Result<(), Box<TestFailure>> {
    let told = |play: &Play<'t>, result: Result<(), Problem>| result.map_err(|problem| play.failure(problem));
    if side == Side::After {
        let appended = play.world_mut().append(moment.run, moment.kind.clone());
        told(play, appended)?;
    }
    let begun = play.world().begun();
    let verified =
        !is_half_lost(moment, side) && begun.iter().all(|key| has_verifier(play.world(), *key, moments));
    for key in &begun {
        if is_unknown(play.world(), *key) {
            continue;
        }
        let result = match &moment.kind {
            EventKind::Done { op, value, .. } if side == Side::Before && (moment.run, *op) == *key => {
                Some(value.clone())
            }
            _ => None,
        };
        forget_attempt(play.world_mut(), *key, result.is_some());
        play.world_mut().truths.insert(*key, result);
    }
    let crashed = play.crash();
    told(play, crashed)?;
    if side == Side::After {
        let repeated = repeat(play.world(), moment);
        told(play, repeated)?;
    }
    if begun.is_empty() {
        return Ok(());
    }
    if verified {
        let is_done = side == Side::After && matches!(moment.cause, Cause::Step(_));
        play.run_from(moment.step + usize::from(is_done))?;
        let compared = same_end(calm, play.world());
        return told(play, compared);
    }
    let rest = play.settle(None, Until::Quiet).map(drop);
    told(play, rest)
}

/// Says whether the moment lies in the middle of a step that takes several attempts away: it cannot be done half.
fn is_half_lost(moment: &Moment<'_>, side: Side) -> bool {
    matches!((&moment.cause, side), (Cause::Loss(1..), _) | (Cause::Loss(_), Side::After))
}

/// Says whether the outcome of an operation can be found out, and nothing that counts attempts makes a difference.
fn has_verifier(world: &World<'_>, (run, op): OpKey, moments: &[Moment<'_>]) -> bool {
    let state = &world.runs[run].state;
    let Some(call) = state.operation(op).and_then(activity_of) else { return false };
    let Some(activity) = state.machine().activities.iter().find(|def| def.name == call.activity) else {
        return false;
    };
    let fails =
        |moment: &Moment<'_>| matches!(&moment.kind, EventKind::Failed { op: failed, .. } if *failed == op);
    let is_cost = |limit: &Limit| limit.measure == Measure::Cost;
    // A lost attempt costs all that its activity may cost.
    let pays =
        activity.costs.is_some() && state.machine().flows.iter().any(|flow| flow.limits.iter().any(is_cost));
    let counts = pays || (activity.retry.is_some() && moments.iter().any(fails));
    match activity.effect {
        EffectClass::Once(verify) | EffectClass::From(_, _, verify) => verify.is_some() && !counts,
        EffectClass::Pure | EffectClass::Idempotent => false,
    }
}

/// Says whether the test itself leaves open what becomes of an attempt: then its verifier is asked, as without a crash.
fn is_unknown(world: &World<'_>, (run, op): OpKey) -> bool {
    let mut hands = world.hands.iter().filter(|hand| (hand.run, hand.op) == (run, op));
    hands.any(|hand| matches!(hand.comes, Comes::Lost))
}

/// Uncounts an attempt that a crash takes, unless its result counts.
fn forget_attempt(world: &mut World<'_>, (run, op): OpKey, happened: bool) {
    let in_hand = world.hands.iter().find(|hand| (hand.run, hand.op) == (run, op));
    if let Some(hand) = in_hand.filter(|hand| hand.is_out() && !hand.is_truth && !happened)
        && let Some(count) = world.tally.attempts.get_mut(&hand.activity)
    {
        *count = count.saturating_sub(1);
    }
}

/// Who asked for the event was not told that it is durable, and asks again: nothing may happen twice.
fn repeat(world: &World<'_>, moment: &Moment<'_>) -> Result<(), Problem> {
    let Cause::Step(input) = &moment.cause else { return Ok(()) };
    match world.runs[moment.run].state.decide(input, world.now, 0) {
        Err(_) => Ok(()),
        Ok(kinds) if kinds.is_empty() => Ok(()),
        Ok(kinds) => {
            let again: Vec<String> = kinds.iter().map(told).collect();
            Err(Problem::promise("what was accepted is accepted again").found(again.join(", ")))
        }
    }
}

/// Compares the ends of two plays. Values are compared by the test's own expectations, since ids that a flow makes depend on events.
fn same_end(calm: &World<'_>, found: &World<'_>) -> Result<(), Problem> {
    let kind = |world: &World<'_>| match world.outcome() {
        None => "no end".to_owned(),
        Some(Outcome::Done(_)) => "an end".to_owned(),
        Some(Outcome::Failed(_)) => "a failure".to_owned(),
        Some(Outcome::Cancelled) => "a cancel".to_owned(),
        Some(Outcome::Terminated) => "a stop".to_owned(),
    };
    if calm.tally.path != found.tally.path {
        return Err(Problem::new("the run takes another path").expected(shown_path(&calm.tally.path)));
    }
    if kind(calm) != kind(found) {
        let problem = Problem::new("the run comes to another end").expected(kind(calm));
        return Err(problem.found(found.whereabouts()));
    }
    Ok(())
}
