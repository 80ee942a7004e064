//! Steps a second: flows of ten activities, so many at a time, each client with one of them.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use serde_json::{Value, json};

use super::crew::{Crew, Hands};
use super::load::Load;
use super::report::Figure;
use super::{Bench, floor};
use crate::failure::Failure;
use crate::limits::{BENCH_IN_FLIGHT, BENCH_STEPS_MS, BENCH_STEPS_PER_S, BENCH_WARM_MS};

/// Activities of one run.
const STEPS: u64 = 10;
/// For how many in flight the target is.
const AIMED_AT: u64 = 256;

/// Measures it.
pub(super) async fn measure(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    let mut figures = Vec::new();
    for in_flight in BENCH_IN_FLIGHT {
        let target = (in_flight == AIMED_AT).then_some(BENCH_STEPS_PER_S);
        figures.extend(at(bench, bench.part(in_flight, 2), target).await?);
    }
    Ok(figures)
}

async fn at(bench: &Bench, in_flight: u64, target: Option<f64>) -> Result<Vec<Figure>, Failure> {
    let mut crew = Crew::start(bench).await?;
    crew.hire(Hands { concurrency: in_flight, ..Hands::default() })?;
    let load = Load::new(crew.socket(), "steps", ("Steps", json!({ "steps": STEPS }))).clients(in_flight);
    let numbers = Arc::new(AtomicU64::new(0));
    load.keep_going(&numbers, Duration::from_millis(bench.part(BENCH_WARM_MS, 1))).await?;
    let before = crew.processor_seconds();
    let lap = load.keep_going(&numbers, Duration::from_millis(bench.part(BENCH_STEPS_MS, 1))).await?;
    let used = crew.processor_seconds();
    let usage: Value = load.connect().await?.get(&format!("/v1/runs/{}/usage", load.id(0))).await?;
    let bytes = usage["history_bytes"].as_u64().unwrap_or_default() / (STEPS + 1);
    crew.kill();
    let least = floor::group_commits(crew.directory(), in_flight, bytes).await?;
    let name = format!("{in_flight} in flight");
    let rate = Figure::new("steps", &name, lap.per_second(STEPS), "steps/s")
        .floor("events/s in group commits of the database alone", least);
    let mut figures = vec![match target {
        Some(target) => rate.at_least(target),
        None => rate,
    }];
    for ((who, before), after) in ["runtime", "worker", "clients"].iter().zip(before).zip(used) {
        let seconds = before.zip(after).map(|(before, after)| after - before);
        let each = seconds.map(|seconds| seconds * 1e6 / (lap.runs * STEPS) as f64);
        figures.push(Figure::new("steps", format!("{name}: processor, {who}"), each, "us/step"));
    }
    Ok(figures)
}
