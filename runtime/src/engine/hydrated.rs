//! The runs of a shard that are in memory, within a budget of bytes and a number.
//!
//! Leaves reading runs to `live`. Invariant: what is beyond the budget is idle only until somebody makes room: then those that nobody used
//! for longest go, and of those that rest more, except runs of which a step is on its way to the disk. Whoever is dropped is read again when it is needed.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use outlast_kernel::ids::RunId;

use super::live::Live;
use crate::limits;

/// What the runs in memory of all shards come to.
#[derive(Debug, Default)]
pub(crate) struct Gauge {
    /// Runs in memory.
    pub(crate) runs: AtomicU64,
    /// About how many bytes they have.
    pub(crate) bytes: AtomicU64,
    /// Runs that were read from the store since it was opened.
    pub(crate) read: AtomicU64,
}

/// How much may be in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    pub(crate) runs: usize,
    pub(crate) bytes: usize,
    /// Of the runs, those that rest.
    pub(crate) resting: usize,
}

/// The runs of a shard that are in memory.
pub(crate) struct Hydrated {
    runs: HashMap<RunId, Weighed>,
    bytes: usize,
    resting: usize,
    /// How many may rest before somebody looks which of them may go.
    resting_until: usize,
    budget: Budget,
    gauge: Arc<Gauge>,
}

struct Weighed {
    live: Live,
    bytes: usize,
    /// Whether nothing goes on in it: [`Live::rests`].
    rests: bool,
}

impl Hydrated {
    /// Begins empty.
    pub(crate) fn new(budget: Budget, gauge: Arc<Gauge>) -> Hydrated {
        Hydrated { runs: HashMap::new(), bytes: 0, resting: 0, resting_until: budget.resting, budget, gauge }
    }

    /// Returns a run that is in memory.
    pub(crate) fn get(&self, run: &RunId) -> Option<&Live> {
        self.runs.get(run).map(|weighed| &weighed.live)
    }

    /// Returns a run that is in memory; [`Hydrated::weigh`] it when it has grown.
    pub(crate) fn get_mut(&mut self, run: &RunId) -> Option<&mut Live> {
        self.runs.get_mut(run).map(|weighed| &mut weighed.live)
    }

    /// Tells whether a run is in memory.
    pub(crate) fn contains_key(&self, run: &RunId) -> bool {
        self.runs.contains_key(run)
    }

    /// Takes a run in, and makes room for it.
    pub(crate) fn insert(&mut self, run: RunId, live: Live) {
        self.remove(&run);
        let bytes = weight(&live);
        self.make_room(1, bytes);
        self.bytes += bytes;
        let rests = live.rests();
        self.resting += usize::from(rests);
        self.gauge.runs.fetch_add(1, Ordering::Relaxed);
        self.gauge.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.runs.insert(run, Weighed { live, bytes, rests });
    }

    /// Drops a run.
    pub(crate) fn remove(&mut self, run: &RunId) {
        if let Some(Weighed { bytes, rests, .. }) = self.runs.remove(run) {
            self.bytes -= bytes;
            self.resting -= usize::from(rests);
            self.gauge.runs.fetch_sub(1, Ordering::Relaxed);
            self.gauge.bytes.fetch_sub(bytes as u64, Ordering::Relaxed);
        }
    }

    /// Weighs a run anew after a step, and makes room if it has grown beyond the budget.
    pub(crate) fn weigh(&mut self, run: &RunId) {
        let Some(weighed) = self.runs.get_mut(run) else { return };
        let (before, now) = (weighed.bytes, weight(&weighed.live));
        weighed.bytes = now;
        self.bytes = self.bytes - before + now;
        let rested = std::mem::replace(&mut weighed.rests, weighed.live.rests());
        self.resting = self.resting - usize::from(rested) + usize::from(weighed.rests);
        self.gauge.bytes.fetch_add(now as u64, Ordering::Relaxed);
        self.gauge.bytes.fetch_sub(before as u64, Ordering::Relaxed);
        self.make_room(0, 0);
    }

    /// Tells whether there is more in memory than there may be, because steps of it are on their way to the disk.
    pub(crate) fn is_over(&self) -> bool {
        self.runs.len() > self.budget.runs || self.bytes > self.budget.bytes
    }

    /// Drops runs that nobody used for long until so much more fits; more than that at once, because finding them looks at all.
    fn make_room(&mut self, runs: usize, bytes: usize) {
        if self.resting > self.resting_until {
            let (most, share) = (self.budget.resting, self.budget.resting / limits::EVICT_SHARE);
            let excess = self.resting - (most - share);
            for run in self.unused(|weighed| weighed.rests).into_iter().take(excess) {
                self.remove(&run);
            }
            // What is on its way to the disk stays, and need not be looked at with every step.
            self.resting_until = most.max(self.resting + share);
        }
        let Budget { runs: runs_max, bytes: bytes_max, .. } = self.budget;
        if self.runs.len() + runs <= runs_max && self.bytes + bytes <= bytes_max {
            return;
        }
        let below = |max: usize| max - max / limits::EVICT_SHARE;
        for run in self.unused(|_| true) {
            if self.runs.len() + runs <= below(runs_max) && self.bytes + bytes <= below(bytes_max) {
                return;
            }
            self.remove(&run);
        }
    }

    /// Returns runs that may be dropped, those that nobody used for longest first.
    fn unused(&self, fits: impl Fn(&Weighed) -> bool) -> Vec<RunId> {
        let idle = self.runs.iter().filter(|(_, weighed)| weighed.live.pending == 0 && fits(weighed));
        let mut idle: Vec<(u64, &RunId)> = idle.map(|(run, it)| (it.live.used, run)).collect();
        idle.sort_unstable_by_key(|(used, _)| *used);
        idle.into_iter().map(|(_, run)| run.clone()).collect()
    }
}

impl Drop for Hydrated {
    fn drop(&mut self) {
        self.gauge.runs.fetch_sub(self.runs.len() as u64, Ordering::Relaxed);
        self.gauge.bytes.fetch_sub(self.bytes as u64, Ordering::Relaxed);
    }
}

fn weight(live: &Live) -> usize {
    limits::LIVE_BYTES + live.state().weight()
}
