//! Every limit of this crate, each with its unit and its reason. Numbers only; what happens at a limit is said where it is met.

/// Milliseconds of a worker's lease: a worker that is silent for so long has lost its tasks. Long enough for a pause of a laptop's
/// network, short enough that a lost machine does not hold work up for minutes.
pub const LEASE_MS: u64 = 30_000;

/// Milliseconds that one wait for the clock takes at most: a suspend stops the waiting, not the clock, so look again.
pub const SLEEP_MS_MAX: u64 = 10_000;

/// Milliseconds that workers of the last process have for coming back: a few of their reconnect attempts.
pub const ADOPT_WITHIN_MS: u64 = 5_000;

/// Runs in memory, over all shards: at some 100 KiB each this is about 1 GiB.
pub const LIVE_RUNS_MAX: usize = 10_000;
