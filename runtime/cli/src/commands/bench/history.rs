//! One run with a long history: how long it takes to open it after a restart, and how much memory.

use std::time::Instant;

use serde_json::{Value, json};

use super::crew::{Crew, Hands};
use super::load::Load;
use super::report::Figure;
use super::{Bench, floor};
use crate::failure::{Exit, Failure};
use crate::limits::{
    BENCH_HISTORY_EVENTS, BENCH_HISTORY_MEMORY_MB_MAX, BENCH_HISTORY_OPEN_MS_MAX, BENCH_ITEMS, EVENTS_PAGE,
};

/// Measures it.
pub(super) async fn measure(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    let mut crew = Crew::start(bench).await?;
    crew.hire(Hands { concurrency: BENCH_ITEMS, ..Hands::default() })?;
    let rounds = bench.part(BENCH_HISTORY_EVENTS / BENCH_ITEMS, 2);
    let items: Vec<u64> = (0..BENCH_ITEMS).collect();
    let load = Load::new(crew.socket(), "long", ("Long", json!({ "items": items, "rounds": rounds })));
    let mut connection = load.connect().await?;
    let path = format!("/v1/runs/{}", load.id(0));
    let start = Instant::now();
    load.start(&mut connection, 0).await?;
    let expected = rounds * BENCH_ITEMS + 1;
    let made = loop {
        let run: Value = connection.get(&format!("{path}/result?wait=2s")).await?;
        let view: Value = connection.get(&path).await?;
        match (view["events"].as_u64(), run["status"].as_str()) {
            (Some(events), _) if events >= expected => break start.elapsed(),
            (_, Some("running" | "waiting")) => {}
            _ => return Err(Failure::new(Exit::Failed, format!("it came to {run}")).of_run(&load.id(0))),
        }
    };
    crew.kill();
    crew.start_again().await?;
    let mut connection = load.connect().await?;
    let before = crew.memory();
    let open = timed(&mut connection, &path).await?;
    let after = crew.memory();
    let page = format!("{path}/events?limit={EVENTS_PAGE}&after=");
    let last =
        timed(&mut connection, &format!("{page}{}", expected - expected.min(EVENTS_PAGE as u64))).await?;
    let middle = timed(&mut connection, &format!("{page}{}", expected / 2)).await?;
    let all = crew.memory();
    let over = |now: Option<u64>| before.zip(now).map(|(before, now)| (now as f64 - before as f64) / 1e6);
    Ok(vec![
        Figure::new("history", "open", open, "ms").at_most(BENCH_HISTORY_OPEN_MS_MAX),
        Figure::new("history", "memory of opening", over(after), "MB").at_most(BENCH_HISTORY_MEMORY_MB_MAX),
        Figure::new("history", format!("last {EVENTS_PAGE} events"), last, "ms"),
        Figure::new("history", format!("{EVENTS_PAGE} events in the middle"), middle, "ms"),
        Figure::new("history", "memory after that", over(all), "MB").at_most(BENCH_HISTORY_MEMORY_MB_MAX),
        Figure::new("history", "making it", expected as f64 / made.as_secs_f64(), "events/s"),
    ])
}

async fn timed(connection: &mut super::connection::Connection, path: &str) -> Result<f64, Failure> {
    let start = Instant::now();
    let _answer: serde::de::IgnoredAny = connection.get(path).await?;
    Ok(floor::milliseconds(start.elapsed()))
}
