//! The dearest way through a flow, every state counted once.
//!
//! Invariant: of two ways that cost the same the one that the text names first is returned.

use super::{Graph, to_ix};
use crate::machine::StateIx;

/// What one way costs, and the states that cost something on it.
type Way = (i128, Vec<StateIx>);

impl Graph<'_> {
    /// Returns the most that a way from the start may cost, where `costs` holds what each state costs, and its states that cost
    /// something. Of states that lie on a common cycle the dearest counts, once.
    pub(crate) fn dearest_way(&self, costs: &[i128]) -> Way {
        let all: Vec<&super::Edge> = self.edges.iter().collect();
        let count = self.flow.states.len();
        let mut group_of: Vec<usize> = (0..count).collect();
        for cycle in self.cycles(&all) {
            cycle.iter().for_each(|state| group_of[*state] = cycle[0]);
        }
        let start = group_of.get(self.flow.start.state.at()).copied();
        start.map_or((0, Vec::new()), |start| self.way_from(start, costs, &group_of))
    }

    fn way_from(&self, first: usize, costs: &[i128], group_of: &[usize]) -> Way {
        let (members, following) = (members(group_of), self.following(group_of));
        // The most that a way from a group costs, and the group that it goes on with.
        let mut known: Vec<Option<(i128, Option<usize>)>> = vec![None; group_of.len()];
        let dearest = |group: usize| {
            let own = members[group].iter().copied();
            own.fold(group, |best, state| if costs[state] > costs[best] { state } else { best })
        };
        // Groups have no cycles among them: a group is done when all that follow it are.
        let mut pending = vec![first];
        while let Some(group) = pending.last().copied() {
            let before = pending.len();
            pending.extend(following[group].iter().copied().filter(|next| known[*next].is_none()));
            if pending.len() > before {
                continue;
            }
            pending.pop();
            let mut rest = (0, None);
            for next in &following[group] {
                if let Some((cost, _)) = known[*next].filter(|(cost, _)| *cost > rest.0) {
                    rest = (cost, Some(*next));
                }
            }
            known[group] = Some((rest.0.saturating_add(costs[dearest(group)]), rest.1));
        }
        let cost = known[first].map_or(0, |(cost, _)| cost);
        let way = std::iter::successors(Some(first), |group| known[*group].and_then(|(_, next)| next));
        (cost, way.map(dearest).filter(|state| costs[*state] > 0).map(to_ix).collect())
    }

    /// The groups that each group leads to, in order.
    fn following(&self, group_of: &[usize]) -> Vec<Vec<usize>> {
        let mut all = vec![Vec::new(); group_of.len()];
        for edge in &self.edges {
            let (from, to) = (group_of[edge.from], edge.to.state().map(|to| group_of[to]));
            all[from].extend(to.filter(|to| *to != from));
        }
        for next in &mut all {
            next.sort_unstable();
            next.dedup();
        }
        all
    }
}

/// The states of each group, in order.
fn members(group_of: &[usize]) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new(); group_of.len()];
    for (state, group) in group_of.iter().enumerate() {
        all[*group].push(state);
    }
    all
}
