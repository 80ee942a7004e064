//! Ready work in fair order.
//!
//! Leaves who may take it, and how fast, to its parent. Invariant: a piece of work stands in one lane at most; lanes take turns, within a
//! lane runs do, and a run's operations keep their order. Whoever is put back has its old turn.

use std::collections::{BTreeMap, BTreeSet, HashMap};

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

/// A place in a line: those that came before have lower ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Turn(u64);

/// Work that was taken out.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) work: WorkId,
    pub(crate) lane: Lane,
    /// Where it stood.
    pub(crate) turn: Turn,
}

/// All lanes that have work.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    lanes: BTreeMap<Lane, Turns>,
    places: HashMap<WorkId, Lane>,
    /// Turns that were given out.
    turns: u64,
}

/// The work of one lane: runs in turn, operations in order.
#[derive(Debug)]
struct Turns {
    /// The lane's own turn among lanes.
    turn: Turn,
    order: BTreeMap<Turn, RunId>,
    runs: HashMap<RunId, (Turn, BTreeSet<OpId>)>,
}

impl Lanes {
    /// Adds work behind all others; nothing if it stands here.
    pub(crate) fn add(&mut self, work: WorkId, lane: Lane) {
        let turn = self.next_turn();
        self.put(work, lane, turn);
    }

    /// Puts work back that was taken out in vain, where it stood; nothing if it stands here.
    pub(crate) fn put_back(&mut self, Taken { work, lane, turn }: Taken) {
        self.put(work, lane, turn);
    }

    fn put(&mut self, work: WorkId, lane: Lane, turn: Turn) {
        if self.places.contains_key(&work) {
            return;
        }
        let new = Turns { turn, order: BTreeMap::new(), runs: HashMap::new() };
        let of = self.lanes.entry(lane.clone()).or_insert(new);
        of.turn = of.turn.min(turn);
        let Turns { order, runs, .. } = of;
        let (stands, ops) = runs.entry(work.run.clone()).or_insert((turn, BTreeSet::new()));
        if turn <= *stands {
            order.remove(stands);
            *stands = turn;
            order.insert(turn, work.run.clone());
        }
        ops.insert(work.op);
        self.places.insert(work, lane);
    }

    fn next_turn(&mut self) -> Turn {
        self.turns += 1;
        Turn(self.turns)
    }

    /// Removes work; tells whether it stood here.
    pub(crate) fn remove(&mut self, work: &WorkId) -> bool {
        let Some(lane) = self.places.remove(work) else { return false };
        let Some(Turns { order, runs, .. }) = self.lanes.get_mut(&lane) else { return false };
        if let Some((turn, ops)) = runs.get_mut(&work.run) {
            ops.remove(&work.op);
            if ops.is_empty() {
                order.remove(turn);
                runs.remove(&work.run);
            }
        }
        if order.is_empty() {
            self.lanes.remove(&lane);
        }
        true
    }

    /// Takes out at most `max` pieces of work from lanes that `serves` accepts, one a lane and run in turn. `may` is asked before each
    /// piece; a lane that may not now gives no more.
    pub(crate) fn take(
        &mut self,
        max: usize,
        serves: impl Fn(&Lane) -> bool,
        mut may: impl FnMut(&Lane) -> bool,
    ) -> Vec<Taken> {
        let served = self.lanes.iter().filter(|(lane, _)| serves(lane));
        let mut open: BTreeMap<Turn, Lane> = served.map(|(lane, of)| (of.turn, lane.clone())).collect();
        let mut taken = Vec::new();
        while taken.len() < max
            && let Some((_, lane)) = open.pop_first()
        {
            if may(&lane)
                && let Some(next) = self.next_of(&lane)
            {
                taken.push(next);
                if let Some(of) = self.lanes.get(&lane) {
                    open.insert(of.turn, lane);
                }
            }
        }
        taken
    }

    fn next_of(&mut self, lane: &Lane) -> Option<Taken> {
        let later = self.next_turn();
        let of = self.lanes.get_mut(lane)?;
        let (turn, run) = of.order.pop_first()?;
        let (stands, ops) = of.runs.get_mut(&run)?;
        let op = ops.pop_first()?;
        of.turn = later;
        if ops.is_empty() {
            of.runs.remove(&run);
        } else {
            *stands = later;
            of.order.insert(later, run.clone());
        }
        if of.order.is_empty() {
            self.lanes.remove(lane);
        }
        let work = WorkId { run, op };
        self.places.remove(&work);
        Some(Taken { work, lane: lane.clone(), turn })
    }

    /// Returns the lanes that have work.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &Lane> {
        self.lanes.keys()
    }

    /// Returns how many pieces of work there are.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns how many pieces of work of a queue there are.
    pub(crate) fn len_of(&self, queue: &str) -> usize {
        let of_queue = self.lanes.iter().filter(|(lane, _)| lane.queue == queue);
        of_queue.flat_map(|(_, of)| of.runs.values()).map(|(_, ops)| ops.len()).sum()
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

    fn shown(taken: &[Taken]) -> Vec<String> {
        taken.iter().map(|it| format!("{} {} {}", it.work.run, it.work.op.0, it.lane.activity)).collect()
    }

    fn take(lanes: &mut Lanes, max: usize) -> Vec<String> {
        shown(&lanes.take(max, |_| true, |_| true))
    }

    #[test]
    fn runs_take_turns_and_a_large_one_starves_nobody() {
        let mut lanes = Lanes::default();
        for n in 1..=6_000 {
            lanes.add(work("large", n), lane("f"));
        }
        lanes.add(work("small", 1), lane("f"));
        assert_eq!(take(&mut lanes, 3), ["large 1 f", "small 1 f", "large 2 f"]);
        assert_eq!((lanes.len(), lanes.len_of("q"), lanes.len_of("p")), (5_998, 5_998, 0));
    }

    #[test]
    fn lanes_take_turns_whoever_asks_and_an_emptied_one_comes_last() {
        let mut lanes = Lanes::default();
        for n in 1..=4 {
            lanes.add(work("a", n), lane("f"));
            lanes.add(work("a", 10 + n), lane("g"));
        }
        // Another worker, which serves neither, asks in between.
        for expected in ["a 1 f", "a 11 g", "a 2 f", "a 12 g"] {
            assert!(lanes.take(1, |_| false, |_| true).is_empty());
            assert_eq!(take(&mut lanes, 1), [expected]);
        }
        // What has one piece again and again does not come first again and again.
        lanes.add(work("b", 1), lane("h"));
        assert_eq!(take(&mut lanes, 3), ["a 3 f", "a 13 g", "b 1 h"]);
        lanes.add(work("b", 2), lane("h"));
        assert_eq!(take(&mut lanes, 3), ["a 4 f", "a 14 g", "b 2 h"]);
    }

    #[test]
    fn what_is_put_back_keeps_its_turn() {
        let mut lanes = Lanes::default();
        for (run, n) in [("a", 1), ("a", 2), ("b", 1), ("c", 1)] {
            lanes.add(work(run, n), lane("f"));
        }
        let taken = lanes.take(2, |_| true, |_| true);
        assert_eq!(shown(&taken), ["a 1 f", "b 1 f"]);
        for it in taken {
            lanes.put_back(it);
        }
        assert_eq!(take(&mut lanes, 9), ["a 1 f", "b 1 f", "c 1 f", "a 2 f"]);
        assert_eq!((lanes.len(), lanes.waiting().count()), (0, 0));

        // So does its lane: what does not fit yet is not passed by for ever.
        lanes.add(work("large", 1), lane("f"));
        for n in 1..=3 {
            lanes.add(work("small", n), lane("g"));
        }
        for _ in 0..2 {
            let mut first = lanes.take(1, |_| true, |_| true);
            assert_eq!(shown(&first), ["large 1 f"]);
            lanes.put_back(first.remove(0));
        }
    }

    #[test]
    fn a_lane_that_may_not_gives_nothing_and_others_go_on() {
        let mut lanes = Lanes::default();
        for n in 1..=2 {
            lanes.add(work("a", n), lane("f"));
            lanes.add(work("a", 10 + n), lane("g"));
        }
        let mut left = 1;
        let may = |lane: &Lane| {
            let may = lane.activity == "g" || left > 0;
            left -= usize::from(lane.activity == "f" && may);
            may
        };
        assert_eq!(shown(&lanes.take(9, |_| true, may)), ["a 1 f", "a 11 g", "a 12 g"]);
        assert_eq!(lanes.len(), 1);
    }

    #[test]
    fn only_served_lanes_are_touched_and_emptied_ones_vanish() {
        let mut lanes = Lanes::default();
        lanes.add(work("a", 1), lane("f"));
        lanes.add(work("a", 2), lane("g"));
        lanes.add(work("a", 2), lane("g"));
        assert_eq!(shown(&lanes.take(9, |lane| lane.activity == "g", |_| true)), ["a 2 g"]);
        assert!(lanes.remove(&work("a", 1)) && !lanes.remove(&work("a", 1)));
        assert_eq!((lanes.len(), lanes.waiting().count()), (0, 0));
    }
}
