//! The dearest way through a flow, every state counted once.
//!
//! Invariant: of two ways that cost the same the one that the text names first is returned.

use super::{Graph, To, to_ix};
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
        let mut known: Vec<Option<Way>> = vec![None; count];
        let start = group_of.get(self.flow.start.state.at()).copied();
        start.map_or((0, Vec::new()), |start| self.way_from(start, costs, &group_of, &mut known))
    }

    fn way_from(&self, first: usize, costs: &[i128], group_of: &[usize], known: &mut [Option<Way>]) -> Way {
        // Groups have no cycles among them: a group is done when all that follow it are.
        let mut pending = vec![first];
        while let Some(group) = pending.last().copied() {
            let following = self.following(group, group_of);
            let open: Vec<usize> = following.iter().copied().filter(|next| known[*next].is_none()).collect();
            if !open.is_empty() {
                pending.extend(open);
                continue;
            }
            pending.pop();
            if known[group].is_some() {
                continue;
            }
            let own = (0..costs.len()).filter(|state| group_of[*state] == group);
            let dearest =
                own.fold(group, |best, state| if costs[state] > costs[best] { state } else { best });
            let mut rest: Way = (0, Vec::new());
            for next in following {
                if let Some(way) = &known[next]
                    && way.0 > rest.0
                {
                    rest = way.clone();
                }
            }
            let mut states = Vec::new();
            states.extend((costs[dearest] > 0).then_some(to_ix(dearest)));
            states.extend(rest.1);
            known[group] = Some((rest.0.saturating_add(costs[dearest]), states));
        }
        known[first].clone().unwrap_or_default()
    }

    /// The groups that a group leads to, in order.
    fn following(&self, group: usize, group_of: &[usize]) -> Vec<usize> {
        let edges = self.edges.iter().filter(|edge| group_of[edge.from] == group);
        let mut all: Vec<usize> = edges
            .filter_map(|edge| match edge.to {
                To::State(to) => Some(group_of[to]),
                To::End | To::Fail => None,
            })
            .filter(|to| *to != group)
            .collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}
