//! Which states have done something by the time that their flow fails.
//!
//! Leaves whether that something can be undone to `check::analyses`. Invariant: what is done after undoing (in `on cancel`, on
//! `undo_failed`) is no step of a saga.

use super::{Edge, Graph, To, forwards};
use crate::machine::{Effect, FlowIx, Outcome};

/// What the effect of a state has done when an edge is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Done {
    /// Nothing that is known of.
    Nothing,
    /// What it should, or, of a group or a flow that was left early, a part of that.
    Something,
    /// Whatever this flow has done before it failed.
    BeforeFailing(FlowIx),
}

impl Done {
    /// What is done on an outcome.
    pub(super) fn on(outcome: Outcome, effect: &Effect) -> Done {
        match (outcome, effect) {
            (Outcome::Ok | Outcome::Approve | Outcome::Answer, _) => Done::Something,
            (Outcome::Error(_) | Outcome::UndoFailed, Effect::Run(flow, ..)) => Done::BeforeFailing(*flow),
            (
                Outcome::Error(_)
                | Outcome::Failed
                | Outcome::Timeout
                | Outcome::Problem
                | Outcome::Unknown
                | Outcome::Message(_)
                | Outcome::Closed
                | Outcome::Ended
                | Outcome::Reject
                | Outcome::Exists
                | Outcome::UndoFailed,
                _,
            ) => Done::early(effect),
        }
    }

    /// What is done when a state is left while its effect is open.
    pub(super) fn early(effect: &Effect) -> Done {
        match effect {
            Effect::Run(..) | Effect::Each(_) | Effect::Parallel(_) => Done::Something,
            Effect::Wait
            | Effect::Do(..)
            | Effect::Await(_)
            | Effect::Ask(_)
            | Effect::Spawn(_)
            | Effect::Choose(_)
            | Effect::Match(..) => Done::Nothing,
        }
    }
}

impl Graph<'_> {
    /// Marks the states that may have done something before the flow fails or, if it is a saga, before a broken limit ends it. A
    /// flow that runs inside and fails counts if `fails_late` says so.
    pub(crate) fn may_be_undone(&self, fails_late: &[bool]) -> Vec<bool> {
        let before = |edge: &Edge| forwards(edge).filter(|_| !edge.undone);
        let steps = self.closure(self.entries(), before);
        let leaves = |edge: &Edge| match edge.to {
            To::Fail => true,
            To::End => self.flow.saga && edge.broken.is_some(),
            To::State(_) | To::Stay => false,
        };
        let failing: Vec<usize> =
            self.edges.iter().filter(|edge| leaves(edge)).map(|edge| edge.from).collect();
        let may_fail = self.closure(failing, |edge| Some((edge.to.state()?, edge.from)));
        let has_done = |edge: &Edge| match edge.done {
            Done::Nothing => false,
            Done::Something => true,
            Done::BeforeFailing(flow) => fails_late.get(flow.at()).copied().unwrap_or(false),
        };
        let mut after = vec![false; self.flow.states.len()];
        for edge in self.edges.iter().filter(|edge| steps[edge.from] && !edge.undone && has_done(edge)) {
            after[edge.from] |= leaves(edge) || edge.to.state().is_some_and(|to| may_fail[to]);
        }
        after
    }
}
