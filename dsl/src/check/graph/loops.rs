//! Loops of a flow: which may go round for ever within one moment, and which only a broken limit leaves.
//!
//! Invariant: an edge is taken out of a loop only if a limit surely bounds how often it is taken, so what is left over may go on
//! for ever; what is bounded in another way than by one limit at a time is reported too.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};

use super::{Edge, Graph, To, fields_of, forwards, to_ix};
use crate::machine::{DataIx, Limit, Measure, StateIx};

/// States that may go round for ever within one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IdleCycle {
    /// All of them.
    states: Vec<usize>,
    /// One of the shortest ways round.
    pub(crate) path: Vec<StateIx>,
}

impl IdleCycle {
    /// Whether the state is one of them.
    pub(crate) fn holds(&self, state: StateIx) -> bool {
        self.states.binary_search(&state.at()).is_ok()
    }

    fn has(&self, edge: &Edge) -> bool {
        let inside = |state: usize| self.states.binary_search(&state).is_ok();
        inside(edge.from) && edge.to.state().is_some_and(inside)
    }
}

impl Graph<'_> {
    /// Returns the groups of states that can go round for ever within one moment.
    pub(crate) fn idle_cycles(&self) -> Vec<IdleCycle> {
        self.without_end(self.idle_edges())
    }

    /// Returns the limits on cost whose way out leads, without moving on, to something that costs, which breaks them again; each
    /// with a way round that begins where the limit leads.
    pub(crate) fn broken_for_ever(&self) -> Vec<(usize, IdleCycle)> {
        let edges: Vec<&Edge> = self.edges.iter().filter(|edge| !edge.moves_on).collect();
        let mut found: Vec<(usize, IdleCycle)> = Vec::new();
        for cycle in self.without_end(edges) {
            for edge in self.edges.iter().filter(|edge| edge.no_room && cycle.has(edge)) {
                let (Some(limit), Some(first)) = (edge.broken, edge.to.state()) else { continue };
                if found.iter().any(|(known, _)| *known == limit) {
                    continue;
                }
                let edges: Vec<&Edge> = self.edges.iter().filter(|edge| !edge.moves_on).collect();
                let path = way_round(first, &cycle.states, &edges);
                found.push((limit, IdleCycle { states: cycle.states.clone(), path }));
            }
        }
        found
    }

    /// The cycles of these edges that no limit ends.
    fn without_end<'g>(&'g self, mut edges: Vec<&'g Edge>) -> Vec<IdleCycle> {
        loop {
            let cycles = self.cycles(&edges);
            let before = edges.len();
            for cycle in &cycles {
                self.drop_counted(cycle, &mut edges);
            }
            if edges.len() == before {
                let cycle = |states: Vec<usize>| {
                    let first = self.set_back_at(&states).unwrap_or(states[0]);
                    IdleCycle { path: way_round(first, &states, &edges), states }
                };
                return cycles.into_iter().map(cycle).collect();
            }
        }
    }

    fn marked(&self, states: &[usize]) -> Vec<bool> {
        let mut marks = vec![false; self.flow.states.len()];
        states.iter().for_each(|state| marks[*state] = true);
        marks
    }

    /// A state of a cycle that sets the count of another one back: what to look at first.
    fn set_back_at(&self, cycle: &[usize]) -> Option<usize> {
        self.flow.limits.iter().find_map(|limit| match limit.measure {
            Measure::Visits(of, Some(since)) if cycle.contains(&of.at()) => {
                cycle.contains(&since.at()).then_some(since.at())
            }
            Measure::Visits(..) | Measure::Data(_) | Measure::Cost | Measure::Age => None,
        })
    }

    fn idle_edges(&self) -> Vec<&Edge> {
        self.edges.iter().filter(|edge| !edge.moves_on && !edge.no_room).collect()
    }

    /// Takes out the edges of a cycle that a limit bounds. The way out of a broken limit is not measured; what it raises is seen by
    /// the next arrow, and only by limits that stand before the broken one, which wins otherwise.
    fn drop_counted(&self, cycle: &[usize], edges: &mut Vec<&Edge>) {
        let holds = self.marked(cycle);
        let inside = |edge: &Edge| holds[edge.from] && edge.to.state().is_some_and(|to| holds[to]);
        for (at, limit) in self.flow.limits.iter().enumerate() {
            let measured =
                |edge: &Edge| inside(edge) && !edge.no_room && edge.broken.is_none_or(|by| at < by);
            // What stays sets too.
            let sets = |edge: &&&Edge| inside(edge) || (edge.to == To::Stay && holds[edge.from]);
            let cap = fields_of(&limit.max);
            let moves_cap = |edge: &&Edge| cap.iter().any(|field| edge.sets(*field));
            if edges.iter().filter(sets).any(moves_cap) {
                continue;
            }
            match limit.measure {
                // Only a cycle that never enters the state that sets the count back raises it without end.
                Measure::Visits(of, since)
                    if cycle.contains(&of.at())
                        && !since.is_some_and(|since| cycle.contains(&since.at())) =>
                {
                    edges.retain(|edge| !(measured(edge) && edge.to == To::State(of.at())));
                }
                Measure::Data(data)
                    if !edges.iter().filter(sets).any(|edge| edge.changes.contains(&data)) =>
                {
                    edges.retain(|edge| !(measured(edge) && edge.raises.contains(&data)));
                }
                Measure::Visits(..) | Measure::Data(_) | Measure::Cost | Measure::Age => {}
            }
        }
    }

    /// Whether a field is changed on the way round otherwise than by raising it.
    pub(crate) fn changes_within(&self, cycle: &IdleCycle, data: DataIx) -> bool {
        let mut edges = self.idle_edges().into_iter().filter(|edge| cycle.has(edge));
        edges.any(|edge| edge.changes.contains(&data))
    }

    /// A field that is changed on the way round and that the bound of a limit reads.
    pub(crate) fn cap_moved_within(&self, cycle: &IdleCycle, limit: &Limit) -> Option<DataIx> {
        let edges: Vec<&Edge> = self.idle_edges().into_iter().filter(|edge| cycle.has(edge)).collect();
        fields_of(&limit.max).into_iter().find(|field| edges.iter().any(|edge| edge.sets(*field)))
    }

    /// A field that is only raised on the way round.
    pub(crate) fn raised_within(&self, cycle: &IdleCycle) -> Option<DataIx> {
        let edges: Vec<&Edge> = self.idle_edges().into_iter().filter(|edge| cycle.has(edge)).collect();
        let mut raised = edges.iter().flat_map(|edge| &edge.raises).copied();
        raised.find(|data| !edges.iter().any(|edge| edge.changes.contains(data)))
    }

    /// Returns the limits on a count that leave a loop from which no arrow leads to an end, each with the first state of the loop.
    pub(crate) fn left_by_limit_only(&self) -> Vec<(usize, StateIx)> {
        let by_arrows = self.ending(|edge| edge.broken.is_none());
        let at_all = self.ending(|_| true);
        let arrows: Vec<&Edge> = self.edges.iter().filter(|edge| edge.broken.is_none()).collect();
        let mut found = Vec::new();
        for cycle in self.cycles(&arrows) {
            if cycle.iter().any(|state| by_arrows[*state] || !at_all[*state]) {
                continue;
            }
            let inside = self.marked(&cycle);
            let leaves = |edge: &&Edge| inside[edge.from] && edge.to.state().is_none_or(|to| !inside[to]);
            let mut limits = self.edges.iter().filter(leaves).filter_map(|edge| edge.broken);
            let limit = limits.find(|limit| {
                matches!(self.flow.limits[*limit].measure, Measure::Visits(..) | Measure::Data(_))
            });
            found.extend(limit.map(|limit| (limit, to_ix(cycle[0]))));
        }
        found
    }
}

/// One of the shortest ways from `first` round to itself; of those that are as short the one that the text names first.
fn way_round(first: usize, states: &[usize], edges: &[&Edge]) -> Vec<StateIx> {
    let mut onward: BTreeMap<usize, Vec<usize>> = states.iter().map(|state| (*state, Vec::new())).collect();
    for (from, to) in edges.iter().filter_map(|edge| forwards(edge)) {
        if states.binary_search(&to).is_ok()
            && let Some(next) = onward.get_mut(&from)
        {
            next.push(to);
        }
    }
    onward.values_mut().for_each(|next| next.sort_unstable());
    // From where each state was reached first.
    let mut before: BTreeMap<usize, usize> = BTreeMap::new();
    let mut pending = VecDeque::from([first]);
    while let Some(here) = pending.pop_front() {
        for to in onward.get(&here).into_iter().flatten().copied() {
            if to == first {
                let back = |state: &usize| (*state != first).then(|| before.get(state).copied()).flatten();
                let mut way: Vec<usize> = std::iter::successors(Some(here), back).collect();
                way.reverse();
                return way.into_iter().map(to_ix).collect();
            }
            if let Entry::Vacant(entry) = before.entry(to) {
                entry.insert(here);
                pending.push_back(to);
            }
        }
    }
    states.iter().copied().map(to_ix).collect()
}
