//! A conversation: each turn hands all that was said to the activity, and adds 1 KB. What is stored of a turn should be what is new in it.

use serde_json::{Value, json};

use super::Bench;
use super::crew::{Crew, Hands};
use super::latency::moments;
use super::load::Load;
use super::report::Figure;
use crate::failure::Failure;
use crate::limits::{BENCH_GROWTH_MAX, BENCH_REPLY_BYTES, BENCH_TURNS};

/// Measures it.
pub(super) async fn measure(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    let mut crew = Crew::start(bench).await?;
    crew.hire(Hands { concurrency: 1, ..Hands::default() })?;
    let turns = bench.part(BENCH_TURNS, 12);
    let load = Load::new(crew.socket(), "talk", ("Talk", json!({ "turns": turns })));
    let mut connection = load.connect().await?;
    let (before, _) = crew.bytes_on_disk();
    let start = std::time::Instant::now();
    load.start(&mut connection, 0).await?;
    load.end(&mut connection, 0).await?;
    let time = start.elapsed();
    let on_disk = crew.bytes_on_disk().0.saturating_sub(before) as f64;
    let usage: Value = connection.get(&format!("/v1/runs/{}/usage", load.id(0))).await?;
    let moments = moments(&mut connection, &load.id(0)).await?;
    let part = moments.len() / 3;
    let took = |part: &[f64]| part.last().zip(part.first()).map(|(last, first)| last - first);
    let (first, last) = (took(&moments[..part]), took(&moments[moments.len() - part..]));
    let growth = last.zip(first).map(|(last, first)| last / first);
    let new = (turns * BENCH_REPLY_BYTES as u64) as f64;
    let kb = |bytes: f64| bytes / 1e3;
    let what = "KB that are new";
    Ok(vec![
        Figure::new("conversation", "the run in the store", usage["bytes"].as_f64().map(kb), "KB")
            .at_most(kb(2.0 * new))
            .floor(what, kb(new)),
        Figure::new("conversation", "written to the disk", kb(on_disk), "KB").floor(what, kb(new)),
        Figure::new("conversation", "a turn", time.as_secs_f64() * 1e3 / turns as f64, "ms")
            .floor("fdatasync p50", bench.syncs.p50_ms),
        Figure::new("conversation", "last third of the turns, in first thirds", growth, "")
            .at_most(BENCH_GROWTH_MAX),
    ])
}
