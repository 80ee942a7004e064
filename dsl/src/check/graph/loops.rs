//! Loops of a flow: which may go round for ever within one moment, and which only a broken limit leaves.
//!
//! Invariant: an edge is taken out of a loop only if a limit surely bounds how often it is taken, so what is left over may go on
//! for ever; what is bounded in another way than by one limit at a time is reported too.

use super::{Edge, Graph, To, to_ix};
use crate::machine::{DataIx, Measure, StateIx};

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
        self.states.contains(&state.at())
    }

    fn has(&self, edge: &Edge) -> bool {
        let into = |to: To| matches!(to, To::State(to) if self.states.contains(&to));
        self.states.contains(&edge.from) && into(edge.to)
    }
}

impl Graph<'_> {
    /// Returns the groups of states that can go round for ever within one moment.
    pub(crate) fn idle_cycles(&self) -> Vec<IdleCycle> {
        let mut edges = self.idle_edges();
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
        self.edges.iter().filter(|edge| !edge.moves_on).collect()
    }

    /// Takes out the edges of a cycle that a limit bounds. The way out of a broken limit is not measured; what it raises is seen by
    /// the next arrow, and only by limits that stand before the broken one, which wins otherwise.
    fn drop_counted(&self, cycle: &[usize], edges: &mut Vec<&Edge>) {
        let inside = |edge: &Edge| {
            cycle.contains(&edge.from) && matches!(edge.to, To::State(to) if cycle.contains(&to))
        };
        for (at, limit) in self.flow.limits.iter().enumerate() {
            let measured = |edge: &Edge| inside(edge) && edge.broken.is_none_or(|by| at < by);
            match limit.measure {
                // Only a cycle that never enters the state that sets the count back raises it without end.
                Measure::Visits(of, since)
                    if cycle.contains(&of.at())
                        && !since.is_some_and(|since| cycle.contains(&since.at())) =>
                {
                    edges.retain(|edge| !(measured(edge) && edge.to == To::State(of.at())));
                }
                Measure::Data(data)
                    if !edges.iter().any(|edge| inside(edge) && edge.changes.contains(&data)) =>
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

    /// A field that is only raised on the way round.
    pub(crate) fn raised_within(&self, cycle: &IdleCycle) -> Option<DataIx> {
        let edges: Vec<&Edge> = self.idle_edges().into_iter().filter(|edge| cycle.has(edge)).collect();
        let mut raised = edges.iter().flat_map(|edge| &edge.raises).copied();
        raised.find(|data| !edges.iter().any(|edge| edge.changes.contains(data)))
    }

    /// Returns the limits without which a loop would never be left, each with the first state of the loop.
    pub(crate) fn left_by_limit_only(&self) -> Vec<(usize, StateIx)> {
        let by_arrows = self.ending(|edge| edge.broken.is_none());
        let at_all = self.ending(|_| true);
        let mut found = Vec::new();
        for cycle in self.cycles(&self.idle_edges()) {
            if cycle.iter().any(|state| by_arrows[*state] || !at_all[*state]) {
                continue;
            }
            let leaving = self.edges.iter().filter(|edge| cycle.contains(&edge.from));
            let limit = leaving.filter_map(|edge| edge.broken).find(|limit| {
                matches!(self.flow.limits[*limit].measure, Measure::Visits(..) | Measure::Data(_))
            });
            found.extend(limit.map(|limit| (limit, to_ix(cycle[0]))));
        }
        found
    }
}

/// One of the shortest ways from `first` round to itself.
fn way_round(first: usize, states: &[usize], edges: &[&Edge]) -> Vec<StateIx> {
    let mut ways: Vec<Vec<usize>> = vec![vec![first]];
    let mut next = 0;
    while let Some(way) = ways.get(next).cloned() {
        next += 1;
        let here = way[way.len() - 1];
        let mut onward: Vec<usize> = edges
            .iter()
            .filter(|edge| edge.from == here)
            .filter_map(|edge| match edge.to {
                To::State(to) if states.contains(&to) => Some(to),
                To::State(_) | To::End | To::Fail => None,
            })
            .collect();
        onward.sort_unstable();
        if onward.contains(&first) {
            return way.into_iter().map(to_ix).collect();
        }
        for to in onward {
            if !ways.iter().any(|way| way.contains(&to)) {
                ways.push(way.iter().copied().chain([to]).collect());
            }
        }
    }
    states.iter().copied().map(to_ix).collect()
}
