//! What the machine allows at best, measured in the same run and on the same file system: how long a sync takes, and how many events the
//! database below takes in group commits that nothing else is done for.
//!
//! Leaves the database to the store. Invariant: a floor is measured with the runtime idle or not there.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use super::cannot;
use crate::failure::Failure;
use crate::limits::{BENCH_FLOOR_MS, BENCH_SYNCS};

/// How long it takes to append 4 KiB to a file and sync it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Syncs {
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
}

/// Measures syncs in a directory.
pub(super) fn syncs(directory: &Path) -> Result<Syncs, Failure> {
    let measured = || -> std::io::Result<Vec<f64>> {
        let mut file = File::create(directory.join("syncs"))?;
        let bytes = [0x5a; 4096];
        (0..BENCH_SYNCS)
            .map(|_| {
                let start = Instant::now();
                file.write_all(&bytes)?;
                file.sync_data()?;
                Ok(milliseconds(start.elapsed()))
            })
            .collect()
    };
    let mut times = measured().map_err(|error| cannot("sync a file", &error))?;
    Ok(Syncs { p50_ms: quantile(&mut times, 0.5), p99_ms: quantile(&mut times, 0.99) })
}

/// Returns how many values of so many bytes the database takes in a second, so many in one commit.
pub(super) async fn group_commits(directory: &Path, group: u64, bytes: u64) -> Result<f64, Failure> {
    let path = directory.join(format!("floor-{group}"));
    let (group, bytes) = (group as usize, bytes as usize);
    let measured = tokio::task::spawn_blocking(move || {
        outlast_runtime::host::group_commits(&path, (group, bytes), Duration::from_millis(BENCH_FLOOR_MS))
    });
    let measured = measured.await.map_err(|error| cannot("measure the database", &error))?;
    measured.map_err(|error| cannot("measure the database", &error))
}

/// Returns what a share of values is not above.
pub(super) fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    values.get((last as f64 * share).round() as usize).copied().unwrap_or(f64::NAN)
}

/// Returns a duration in milliseconds.
pub(super) fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_among_the_values() {
        let mut values: Vec<f64> = (0..=100).rev().map(f64::from).collect();
        assert_eq!((quantile(&mut values, 0.5), quantile(&mut values, 0.99)), (50.0, 99.0));
        assert_eq!(quantile(&mut [7.0], 0.99), 7.0);
        assert!(quantile(&mut [], 0.5).is_nan());
    }
}
