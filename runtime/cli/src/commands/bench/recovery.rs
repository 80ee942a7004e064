//! Everything is killed while some runs are half way and many wait: how soon new work is done, and the runs are.
//!
//! Each run that is half way has finished five of its ten steps, and a worker has the sixth in hand when the kill comes. So a ledger of
//! what workers begin tells exactly what was done again: the sixth may be, the first five may not.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::json;

use super::Bench;
use super::crew::{Crew, Hands};
use super::load::Load;
use super::report::Figure;
use crate::failure::Failure;
use crate::limits::{
    BENCH_CLIENTS, BENCH_DONE_S_MAX, BENCH_HALF_WAY, BENCH_IDLE_RUNS, BENCH_LEDGER_LINE_BYTES, BENCH_LOOK_MS,
    BENCH_SERVED_S_MAX,
};

/// Activities of one run, and of how many it knows the result when everything is killed.
const STEPS: u64 = 10;
const FINISHED: u64 = 5;

/// Measures it.
pub(super) async fn measure(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    let mut crew = Crew::start(bench).await?;
    let (waiting, half_way) = (bench.part(BENCH_IDLE_RUNS, 10), bench.part(BENCH_HALF_WAY, 4));
    let idle = Load::new(crew.socket(), "idle", ("Wait", json!({}))).clients(BENCH_CLIENTS);
    idle.start_all(waiting).await?;
    let load = Load::new(crew.socket(), "half", ("Steps", json!({ "steps": STEPS }))).clients(BENCH_CLIENTS);
    let hands = Hands { concurrency: half_way, keeps_ledger: true, holds_from: None };
    crew.hire(Hands { holds_from: Some(FINISHED), ..hands })?;
    load.start_all(half_way).await?;
    until_begun(&crew, half_way * (FINISHED + 1)).await;
    crew.kill();

    let start = Instant::now();
    crew.start_again().await?;
    let up = start.elapsed();
    crew.hire(hands)?;
    let new = Load::new(crew.socket(), "new", ("Steps", json!({ "steps": 1 })));
    let mut connection = new.connect().await?;
    let served = async {
        new.start(&mut connection, 0).await?;
        let taken = start.elapsed();
        new.end(&mut connection, 0).await?;
        Ok::<_, Failure>((taken, start.elapsed()))
    };
    let all = async {
        load.end_all(half_way).await?;
        Ok::<_, Failure>(start.elapsed())
    };
    let ((taken, served), done) = tokio::try_join!(served, all)?;
    let Begun { finished_again, unfinished_again } = begun(&crew)?;
    let seconds = |time: Duration| time.as_secs_f64();
    Ok(vec![
        Figure::new("recovery", "the runtime answers after", seconds(up), "s"),
        Figure::new("recovery", "a new run is taken after", seconds(taken), "s"),
        Figure::new("recovery", "a new run has done a step after", seconds(served), "s")
            .at_most(BENCH_SERVED_S_MAX),
        Figure::new("recovery", format!("{half_way} runs half way have ended after"), seconds(done), "s")
            .at_most(BENCH_DONE_S_MAX),
        Figure::new("recovery", "finished activities done again", finished_again as f64, "").at_most(0.0),
        Figure::new("recovery", "unfinished activities done again", unfinished_again as f64, ""),
    ])
}

/// Waits until so many attempts were begun.
async fn until_begun(crew: &Crew, count: u64) {
    let bytes = count * BENCH_LEDGER_LINE_BYTES as u64;
    let mut look = tokio::time::interval(Duration::from_millis(BENCH_LOOK_MS));
    while std::fs::metadata(crew.ledger()).map_or(0, |meta| meta.len()) < bytes {
        look.tick().await;
    }
}

/// Operations that were begun more than once.
#[derive(Debug, Default, PartialEq, Eq)]
struct Begun {
    finished_again: u64,
    unfinished_again: u64,
}

fn begun(crew: &Crew) -> Result<Begun, Failure> {
    let read = std::fs::read_to_string(crew.ledger());
    let text = read.map_err(|error| super::cannot("read the ledger", &error))?;
    Ok(count(&text))
}

fn count(ledger: &str) -> Begun {
    let mut times = BTreeMap::<&str, u64>::new();
    for line in ledger.lines() {
        *times.entry(line.trim()).or_default() += 1;
    }
    let mut begun = Begun::default();
    for (line, times) in times {
        let step: u64 = line.rsplit(' ').next().and_then(|word| word.parse().ok()).unwrap_or_default();
        let again = if step < FINISHED { &mut begun.finished_again } else { &mut begun.unfinished_again };
        *again += times - 1;
    }
    begun
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_begun_twice_is_counted_by_whether_it_was_finished() {
        let ledger = "a 1.0 0\na 2.0 1 \na 2.0 1\na 6.0 5\na 6.0 5\na 6.0 5\nb 2.0 1\n";
        assert_eq!(count(ledger), Begun { finished_again: 1, unfinished_again: 2 });
    }
}
