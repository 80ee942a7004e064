//! Runs that wait for a message: what each costs while nothing happens.

use serde_json::json;

use super::crew::Crew;
use super::load::Load;
use super::report::Figure;
use super::{Bench, floor};
use crate::failure::Failure;
use crate::limits::{
    BENCH_CLIENTS, BENCH_IDLE_BYTES_MAX, BENCH_IDLE_MEMORY_MB_MAX, BENCH_IDLE_RUNS, BENCH_START_BYTES,
    BENCH_STARTS_PER_S,
};

/// Measures it.
pub(super) async fn measure(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    let mut crew = Crew::start(bench).await?;
    let load = Load::new(crew.socket(), "idle", ("Wait", json!({}))).clients(BENCH_CLIENTS);
    let runs = bench.part(BENCH_IDLE_RUNS, 10);
    let ((disk, journals), memory) = (crew.bytes_on_disk(), crew.memory());
    let processor = crew.processor_seconds();
    let lap = load.start_all(runs).await?;
    let used = crew.processor_seconds();
    let full = crew.memory();
    let (disk_full, journals_full) = crew.bytes_on_disk();
    let each = disk_full.saturating_sub(journals_full).saturating_sub(disk - journals) as f64 / runs as f64;
    crew.kill();
    crew.start_again().await?;
    let again = crew.memory();
    let over = |now: Option<u64>| memory.zip(now).map(|(empty, now)| (now as f64 - empty as f64) / 1e6);
    crew.kill();
    let least = floor::group_commits(crew.directory(), BENCH_CLIENTS, BENCH_START_BYTES).await?;
    let mut figures = vec![
        Figure::new("idle", "starts", lap.per_second(1), "starts/s")
            .at_least(BENCH_STARTS_PER_S)
            .floor("values/s in group commits of the database alone", least),
        Figure::new("idle", "memory over an empty engine", over(full), "MB")
            .at_most(BENCH_IDLE_MEMORY_MB_MAX),
        Figure::new("idle", "memory after a restart, over an empty engine", over(again), "MB")
            .at_most(BENCH_IDLE_MEMORY_MB_MAX),
        Figure::new("idle", "disk, without journals", each, "bytes/run").at_most(BENCH_IDLE_BYTES_MAX),
        // They hold what was written last, some 64 MB at most, whatever the number of runs.
        Figure::new("idle", "journals", journals_full as f64 / 1e6, "MB"),
    ];
    for (who, (before, after)) in [("runtime", (processor[0], used[0])), ("clients", (processor[2], used[2]))]
    {
        let each = before.zip(after).map(|(before, after)| (after - before) * 1e6 / runs as f64);
        figures.push(Figure::new("idle", format!("starts: processor, {who}"), each, "us/start"));
    }
    Ok(figures)
}
