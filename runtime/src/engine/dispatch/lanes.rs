//! Ready work in fair order.
//!
//! Leaves who may take it to its parent. Invariant: a piece of work stands in one lane at most; within a lane runs take turns, and a
//! run's operations keep their order.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use outlast_kernel::ids::{OpId, RunId};

use super::WorkId;

/// What a worker must offer to take a piece of work.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Lane {
    /// The queue.
    pub(crate) queue: String,
    /// The environment profile of the run.
    pub(crate) profile: String,
    /// The activity.
    pub(crate) activity: String,
    /// The least promise of the worker: 0 once, 1 idempotent, 2 pure.
    pub(crate) promise: u8,
}

/// All lanes that have work.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    lanes: BTreeMap<Lane, Turns>,
    places: HashMap<WorkId, Lane>,
    /// Where the next search begins, so that no lane is always last.
    turn: usize,
}

/// The work of one lane: runs in turn, operations in order.
#[derive(Debug, Default)]
struct Turns {
    order: VecDeque<RunId>,
    runs: HashMap<RunId, BTreeSet<OpId>>,
}

impl Lanes {
    /// Adds work; nothing if it stands here.
    pub(crate) fn add(&mut self, work: WorkId, lane: Lane) {
        if self.places.contains_key(&work) {
            return;
        }
        let turns = self.lanes.entry(lane.clone()).or_default();
        let ops = turns.runs.entry(work.run.clone()).or_default();
        if ops.is_empty() {
            turns.order.push_back(work.run.clone());
        }
        ops.insert(work.op);
        self.places.insert(work, lane);
    }

    /// Removes work; tells whether it stood here.
    pub(crate) fn remove(&mut self, work: &WorkId) -> bool {
        let Some(lane) = self.places.remove(work) else { return false };
        let Some(turns) = self.lanes.get_mut(&lane) else { return false };
        let empty = turns.runs.get_mut(&work.run).is_some_and(|ops| {
            ops.remove(&work.op);
            ops.is_empty()
        });
        if empty {
            turns.runs.remove(&work.run);
            turns.order.retain(|run| *run != work.run);
        }
        if turns.order.is_empty() {
            self.lanes.remove(&lane);
        }
        true
    }

    /// Takes out at most `max` pieces of work from lanes that `serves` accepts, one a lane and run in turn.
    pub(crate) fn take(&mut self, max: usize, serves: impl Fn(&Lane) -> bool) -> Vec<(WorkId, Lane)> {
        let mut open: Vec<Lane> = self.lanes.keys().filter(|lane| serves(lane)).cloned().collect();
        let mut taken = Vec::new();
        if !open.is_empty() {
            self.turn = self.turn.wrapping_add(1);
            let first = self.turn % open.len();
            open.rotate_left(first);
        }
        while taken.len() < max && !open.is_empty() {
            open.retain(|lane| {
                if taken.len() < max
                    && let Some(work) = self.next_of(lane)
                {
                    self.places.remove(&work);
                    taken.push((work, lane.clone()));
                }
                self.lanes.contains_key(lane)
            });
        }
        taken
    }

    fn next_of(&mut self, lane: &Lane) -> Option<WorkId> {
        let turns = self.lanes.get_mut(lane)?;
        let run = turns.order.pop_front()?;
        let ops = turns.runs.get_mut(&run)?;
        let op = ops.pop_first()?;
        if ops.is_empty() {
            turns.runs.remove(&run);
        } else {
            turns.order.push_back(run.clone());
        }
        if turns.order.is_empty() {
            self.lanes.remove(lane);
        }
        Some(WorkId { run, op })
    }

    /// Returns the lanes that have work.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &Lane> {
        self.lanes.keys()
    }

    /// Returns how many pieces of work there are.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }
}

#[cfg(test)]
mod tests {
    use outlast_kernel::ids::Seq;

    use super::*;

    fn lane(activity: &str) -> Lane {
        Lane { queue: "q".into(), profile: String::new(), activity: activity.into(), promise: 2 }
    }

    fn work(run: &str, n: u64) -> WorkId {
        WorkId { run: RunId::new(run).unwrap(), op: OpId(Seq(n), 0) }
    }

    fn shown(taken: &[(WorkId, Lane)]) -> Vec<String> {
        taken.iter().map(|(work, lane)| format!("{} {} {}", work.run, work.op.0, lane.activity)).collect()
    }

    #[test]
    fn runs_take_turns_and_a_large_one_starves_nobody() {
        let mut lanes = Lanes::default();
        for n in 1..=6_000 {
            lanes.add(work("large", n), lane("f"));
        }
        lanes.add(work("small", 1), lane("f"));
        assert_eq!(shown(&lanes.take(3, |_| true)), ["large 1 f", "small 1 f", "large 2 f"]);
        assert_eq!(lanes.len(), 5_998);
    }

    #[test]
    fn only_served_lanes_are_touched_and_emptied_ones_vanish() {
        let mut lanes = Lanes::default();
        lanes.add(work("a", 1), lane("f"));
        lanes.add(work("a", 2), lane("g"));
        lanes.add(work("a", 2), lane("g"));
        assert_eq!(shown(&lanes.take(9, |lane| lane.activity == "g")), ["a 2 g"]);
        assert!(lanes.remove(&work("a", 1)) && !lanes.remove(&work("a", 1)));
        assert_eq!((lanes.len(), lanes.waiting().count()), (0, 0));
    }
}
