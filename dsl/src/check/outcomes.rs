//! The closed set of outcomes of every effect.
//!
//! Leaves which arrow takes which outcome to `lower::arrows`. Invariant: the set depends only on declarations, never on a
//! body, so flows can be checked in any order.

use super::tables::Tables;
use crate::machine::{Await, EachBody, Effect, Join, Outcome, Parallel, Region, Wait, Yield};

use super::graph::covers;

/// Returns what the effect of a state can lead to, in a fixed order.
pub(crate) fn possible(tables: &Tables, effect: &Effect) -> Vec<Outcome> {
    let mut all = match effect {
        Effect::Wait | Effect::Choose(_) | Effect::Match(..) => Vec::new(),
        Effect::Do(..)
        | Effect::Run(..)
        | Effect::Await(_)
        | Effect::Ask(_)
        | Effect::Each(_)
        | Effect::Parallel(_) => waiting(tables, effect),
        Effect::Spawn(_) => vec![Outcome::Ok, Outcome::Exists],
    };
    all.sort();
    all.dedup();
    all
}

fn waiting(tables: &Tables, effect: &Effect) -> Vec<Outcome> {
    match effect {
        Effect::Do(activity, _, _) => {
            let declared = &tables.activities[activity.at()];
            let mut all = vec![Outcome::Ok, Outcome::Failed, Outcome::Timeout];
            all.extend(declared.raises.iter().copied().map(Outcome::Error));
            all.extend(declared.doubtful.then_some(Outcome::Unknown));
            all
        }
        Effect::Run(flow, _, wait, _) => {
            let mut all = vec![Outcome::Ok];
            all.extend(tables.flows[flow.at()].raises.iter().copied().map(Outcome::Error));
            all.extend(timeout(wait.as_ref()));
            all.extend(tables.flows[flow.at()].saga.then_some(Outcome::UndoFailed));
            all
        }
        Effect::Await(one) => awaited(one),
        Effect::Ask(ask) => {
            let yes = if ask.answer.is_some() { Outcome::Answer } else { Outcome::Approve };
            let mut all = vec![yes, Outcome::Reject];
            all.extend(timeout(Some(&ask.wait)));
            all
        }
        Effect::Each(each) => {
            let mut all = vec![Outcome::Ok];
            if !each.keep_going {
                all.extend(failing(tables, &each.body, &each.yields));
            }
            all.extend(timeout(each.within.as_ref()));
            all
        }
        Effect::Parallel(parallel) => {
            let mut all = vec![Outcome::Ok];
            all.extend(can_be_lost(tables, parallel).then_some(Outcome::Failed));
            all.extend(timeout(parallel.within.as_ref()));
            all
        }
        Effect::Wait | Effect::Choose(_) | Effect::Match(..) | Effect::Spawn(_) => Vec::new(),
    }
}

fn awaited(one: &Await) -> Vec<Outcome> {
    let mut all: Vec<Outcome> = one.messages.iter().copied().map(Outcome::Message).collect();
    all.extend(one.closed.then_some(Outcome::Closed));
    all.extend((!one.ended.is_empty()).then_some(Outcome::Ended));
    all.extend(timeout(Some(&one.wait)));
    all
}

/// Whether so many regions can fail that the group is not met any more.
fn can_be_lost(tables: &Tables, parallel: &Parallel) -> bool {
    let can_fail = |region: &Region| !failing(tables, &region.body, &region.yields).is_empty();
    let failing = parallel.regions.iter().filter(|region| can_fail(region)).count();
    match parallel.join {
        Join::All => failing > 0,
        Join::Count(wanted) => parallel.regions.len() - failing < wanted as usize,
        Join::Region(at) => parallel.regions.get(at as usize).is_none_or(can_fail),
    }
}

/// The outcomes of a member that close its group: all but the good one and those that it yields something for.
fn failing(tables: &Tables, body: &EachBody, yields: &[Yield]) -> Vec<Outcome> {
    let all = possible(tables, &as_effect(body)).into_iter();
    all.filter(|outcome| !outcome.is_good())
        .filter(|outcome| {
            !yields.iter().any(|one| one.guard.is_none() && one.on.iter().any(|on| covers(*on, *outcome)))
        })
        .collect()
}

/// The body of a group as the effect that it would be in a state of its own.
pub(crate) fn as_effect(body: &EachBody) -> Effect {
    match body {
        EachBody::Do(ix, args, result) => Effect::Do(*ix, args.clone(), *result),
        EachBody::Run(ix, args, wait, result) => Effect::Run(*ix, args.clone(), wait.clone(), *result),
        EachBody::Ask(ask) => Effect::Ask(ask.clone()),
        EachBody::Await(one) => Effect::Await(one.clone()),
        EachBody::Each(each) => Effect::Each(each.clone()),
    }
}

fn timeout(wait: Option<&Wait>) -> Option<Outcome> {
    match wait {
        Some(Wait::Within(_) | Wait::Until(_)) => Some(Outcome::Timeout),
        Some(Wait::Forever) | None => None,
    }
}
