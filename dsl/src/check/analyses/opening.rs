//! Which effects may open an activity of some kind: themselves, in their members, or in the flows that they run.
//!
//! Spawned runs count for themselves. Invariant: flows that run each other in a ring are gone through once.

use crate::check::outcomes::as_effect;
use crate::machine::link::Program;
use crate::machine::{ActivityIx, EachBody, Effect};

/// A kind of activity, and what may open one.
pub(super) struct Opening<'p> {
    program: &'p Program,
    is_wanted: fn(&Program, ActivityIx) -> bool,
    /// By flow: whether it may open one.
    flows: Vec<bool>,
}

impl<'p> Opening<'p> {
    /// Finds out which flows may open an activity of a kind.
    pub(super) fn of(program: &'p Program, is_wanted: fn(&Program, ActivityIx) -> bool) -> Opening<'p> {
        let callers = super::callers(program);
        let mut known = Opening { program, is_wanted, flows: vec![false; program.flows.len()] };
        // No flow is known yet, so these open one themselves.
        let own = |at: &usize| program.flows[*at].states.iter().any(|state| known.may_be_in(&state.effect));
        let mut pending: Vec<usize> = (0..program.flows.len()).filter(own).collect();
        while let Some(at) = pending.pop() {
            if !known.flows[at] {
                known.flows[at] = true;
                pending.extend(&callers[at]);
            }
        }
        known
    }

    /// Whether an effect may open one.
    pub(super) fn may_be_in(&self, effect: &Effect) -> bool {
        let in_body = |body: &EachBody| self.may_be_in(&as_effect(body));
        match effect {
            Effect::Do(activity, ..) => (self.is_wanted)(self.program, *activity),
            Effect::Run(flow, ..) => self.flows.get(flow.at()).copied().unwrap_or(false),
            Effect::Each(each) => in_body(&each.body),
            Effect::Parallel(parallel) => parallel.regions.iter().any(|region| in_body(&region.body)),
            Effect::Wait
            | Effect::Await(_)
            | Effect::Ask(_)
            | Effect::Spawn(_)
            | Effect::Choose(_)
            | Effect::Match(..) => false,
        }
    }

    /// Returns the first activity of the kind that an effect may open.
    pub(super) fn first_in(&self, effect: &Effect) -> Option<ActivityIx> {
        self.first(effect, &mut vec![false; self.flows.len()])
    }

    fn first(&self, effect: &Effect, seen: &mut [bool]) -> Option<ActivityIx> {
        match effect {
            Effect::Do(activity, ..) => (self.is_wanted)(self.program, *activity).then_some(*activity),
            Effect::Run(flow, ..) => {
                if std::mem::replace(&mut seen[flow.at()], true) {
                    return None;
                }
                let mut states = self.program.flows[flow.at()].states.iter();
                states.find_map(|state| self.first(&state.effect, seen))
            }
            Effect::Each(each) => self.first(&as_effect(&each.body), seen),
            Effect::Parallel(parallel) => {
                parallel.regions.iter().find_map(|region| self.first(&as_effect(&region.body), seen))
            }
            Effect::Wait
            | Effect::Await(_)
            | Effect::Ask(_)
            | Effect::Spawn(_)
            | Effect::Choose(_)
            | Effect::Match(..) => None,
        }
    }
}
