//! How fast commits are, against the least that the disk allows: appending the same bytes to a file and syncing it.
//!
//! Prints events a second and the latency of a commit at several batch sizes, for one event a run and for packed steps, each with
//! its ratio to the raw file measured just before on the same disk. Ratios hold better than figures. Takes about 15 seconds;
//! `OUTLAST_BENCH_DIR` names another disk than the one of the temporary directory.
#![expect(clippy::print_stdout, reason = "it is a program for people")]

use std::cell::RefCell;
use std::error::Error;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use outlast_kernel::ids::RunId;
use outlast_store::conformance::samples::{message, step};
use outlast_store::{Batch, FjallStore, Head, OpenOptions, RunWrite, Store};

/// How long each size is measured.
const MEASURE: Duration = Duration::from_millis(700);
/// Text of an event, so that it takes about 200 bytes.
const TEXT_BYTES: usize = 110;
const EVENT_BYTES: usize = 200;

/// Latencies of one size, in order.
struct Latencies(Vec<Duration>);

impl Latencies {
    /// Measures `commit` on what `prepare` makes each time; preparing is not measured.
    fn measure<T>(
        mut prepare: impl FnMut() -> T,
        mut commit: impl FnMut(&T) -> Result<(), Box<dyn Error>>,
    ) -> Result<Latencies, Box<dyn Error>> {
        let start = Instant::now();
        let mut found = Vec::new();
        while start.elapsed() < MEASURE {
            let prepared = prepare();
            let before = Instant::now();
            commit(&prepared)?;
            found.push(before.elapsed());
        }
        found.sort_unstable();
        Ok(Latencies(found))
    }

    fn at(&self, share: f64) -> f64 {
        let last = self.0.len().saturating_sub(1);
        let at = (last as f64 * share) as usize;
        self.0.get(at).map_or(0.0, |found| found.as_secs_f64() * 1e3)
    }

    fn per_second(&self, events: usize) -> f64 {
        (events * self.0.len()) as f64 / self.0.iter().sum::<Duration>().as_secs_f64()
    }
}

/// Appends and syncs as many bytes as `events` events take.
fn raw(directory: &Path, events: usize) -> Result<Latencies, Box<dyn Error>> {
    let mut file = File::create(directory.join("raw"))?;
    let bytes = vec![0x5a; events * EVENT_BYTES];
    let append = |(): &()| {
        file.write_all(&bytes)?;
        Ok(file.sync_data()?)
    };
    Latencies::measure(|| (), append)
}

/// Commits one step of `packed` events to each of `runs` runs.
fn store(directory: &Path, runs: usize, packed: u64) -> Result<Latencies, Box<dyn Error>> {
    let (store, _) = FjallStore::open(directory, OpenOptions::default())?;
    let ids: Vec<_> =
        (0..runs).map(|i| RunId::new(&format!("bench-{runs}-{packed}-{i}"))).collect::<Result<_, _>>()?;
    let heads = RefCell::new(vec![Head::default(); runs]);
    let text = "x".repeat(TEXT_BYTES);
    let prepare = || {
        let write = |(id, head): (&RunId, &Head)| RunWrite {
            events: (1..=packed).map(|i| message(head.seq.0 + i, &text)).collect(),
            ..step(id, *head, 1)
        };
        let runs = ids.iter().zip(&*heads.borrow()).map(write).collect();
        Batch { runs, ..Batch::default() }
    };
    Latencies::measure(prepare, |batch| {
        *heads.borrow_mut() = store.commit(batch)?;
        Ok(())
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let directory = match std::env::var_os("OUTLAST_BENCH_DIR") {
        Some(parent) => tempfile::TempDir::new_in(parent)?,
        None => tempfile::TempDir::new()?,
    };
    println!("runs x events   events/s      p50 ms   p99 ms   raw events/s  share  raw p50 ms");
    for (runs, packed) in [(1, 1), (16, 1), (64, 1), (256, 1), (1024, 1), (64, 16), (256, 4), (1, 1024)] {
        let events = runs * packed as usize;
        let raw = raw(directory.path(), events)?;
        let store = store(&directory.path().join(format!("store-{runs}-{packed}")), runs, packed)?;
        let share = store.per_second(events) / raw.per_second(events);
        println!(
            "{runs:5} x {packed:<6} {:10.0} {:11.3} {:8.3} {:14.0} {share:6.2} {:11.3}",
            store.per_second(events),
            store.at(0.5),
            store.at(0.99),
            raw.per_second(events),
            raw.at(0.5),
        );
    }
    Ok(())
}
