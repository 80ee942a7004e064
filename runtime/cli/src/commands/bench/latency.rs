//! How long one step takes when nothing else goes on: from the answer of one activity to the answer of the next one.

use serde_json::{Value, json};

use super::connection::Connection;
use super::crew::{Crew, Hands};
use super::floor::quantile;
use super::load::Load;
use super::report::Figure;
use super::{Bench, floor, worker};
use crate::failure::Failure;
use crate::limits::{BENCH_LATENCY_RUNS, BENCH_OVER_SYNC_MS, EVENTS_PAGE};

/// Activities of one run.
const STEPS: u64 = 10;

/// Measures it.
pub(super) async fn measure(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    let mut crew = Crew::start(bench).await?;
    crew.hire(Hands { concurrency: 1, ..Hands::default() })?;
    let syncs = floor::syncs(crew.directory())?;
    let load = Load::new(crew.socket(), "one", ("Steps", json!({ "steps": STEPS })));
    let mut connection = load.connect().await?;
    let (mut steps, mut runs) = (Vec::new(), Vec::new());
    // The first ones pay for what is made once.
    let cold = bench.part(BENCH_LATENCY_RUNS / 10, 1);
    for number in 0..cold + bench.part(BENCH_LATENCY_RUNS, 1) {
        let start = std::time::Instant::now();
        load.start(&mut connection, number).await?;
        load.end(&mut connection, number).await?;
        if number >= cold {
            runs.push(floor::milliseconds(start.elapsed()));
            let moments = moments(&mut connection, &load.id(number)).await?;
            steps.extend(moments.windows(2).map(|pair| pair[1] - pair[0]));
        }
    }
    let (p50, p99) = (quantile(&mut steps, 0.5), quantile(&mut steps, 0.99));
    let sync = "fdatasync p50";
    Ok(vec![
        Figure::new("latency", "step p50", p50, "ms")
            .at_most(syncs.p50_ms + BENCH_OVER_SYNC_MS)
            .floor(sync, syncs.p50_ms),
        Figure::new("latency", "step p99", p99, "ms").at_most(3.0 * p50).floor("fdatasync p99", syncs.p99_ms),
        Figure::new("latency", "flow of 10 steps p50", quantile(&mut runs, 0.5), "ms")
            .floor(sync, syncs.p50_ms),
    ])
}

/// Returns when the activities of a run answered, in milliseconds.
pub(super) async fn moments(connection: &mut Connection, run: &str) -> Result<Vec<f64>, Failure> {
    let (mut moments, mut after) = (Vec::new(), 0);
    loop {
        let page: Value =
            connection.get(&format!("/v1/runs/{run}/events?after={after}&limit={EVENTS_PAGE}")).await?;
        let events = page["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        let answers = events.iter().filter(|event| event["kind"] == "done");
        moments.extend(answers.filter_map(|event| worker::moment_ms(event["value"].as_str()?)));
        match page["next"].as_str().and_then(|next| next.parse::<u64>().ok()) {
            Some(next) => after = next,
            None => return Ok(moments),
        }
    }
}
