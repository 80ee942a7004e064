//! How an engine is opened.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use outlast_protocol::rates::Rate;

use super::clock::{Clock, SystemClock};
use crate::limits;
use crate::telemetry::Spans;

/// How an engine is opened.
#[derive(Clone)]
pub struct Options {
    /// How many single-writer loops share the runs.
    pub shards: usize,
    /// Milliseconds that workers of which nothing is seen have for coming back with repeatable work of the last process. What they began of
    /// a `once` activity, and all of a process that is seen to live, is kept as long as a lease.
    pub adopt_within_ms: u64,
    /// Milliseconds of a worker's lease, renewed by any call.
    pub lease_ms: u64,
    /// What tells the time.
    pub clock: Arc<dyn Clock>,
    /// Makes ids and seeds repeatable, for tests; none: random.
    pub seed: Option<u64>,
    /// Open although the wall clock is more than an hour behind the last event.
    pub accept_clock: bool,
    /// Where it is written down which runs are worked on, so that one which ends the process again and again is found; none: nowhere.
    pub desk: Option<PathBuf>,
    /// How many runs are kept in memory, at most; idle ones beyond it are dropped and read again when needed.
    pub live_runs_max: usize,
    /// About how many bytes the states of runs in memory may have; beyond it idle ones are dropped, too.
    pub memory_budget: usize,
    /// How fast queues give out their tasks, by their names; others as fast as workers take them.
    pub rates: BTreeMap<String, Rate>,
    /// Whether runs of schedules are started when they are due. Otherwise they stay due, and what is said about schedules is kept.
    pub schedules: bool,
    /// Where it is noted what happens to runs, for a collector of spans; none: nowhere.
    pub spans: Option<Spans>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            shards: 2,
            adopt_within_ms: limits::ADOPT_WITHIN_MS,
            lease_ms: limits::LEASE_MS,
            clock: Arc::new(SystemClock::new()),
            seed: None,
            accept_clock: false,
            desk: None,
            live_runs_max: limits::LIVE_RUNS_MAX,
            memory_budget: limits::MEMORY_BUDGET_BYTES,
            rates: BTreeMap::new(),
            schedules: true,
            spans: None,
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("shards", &self.shards)
            .field("adopt_within_ms", &self.adopt_within_ms)
            .field("lease_ms", &self.lease_ms)
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}
