//! The worker of `outlast bench`: activities that do nothing, offered with the kit that other workers use.
//!
//! Each answer begins with the moment at which it was given, so that a history tells how far steps lie apart. Invariant: what it begins
//! stands in the ledger before it goes on, if it keeps one.

use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use outlast_workers::WorkerOptions;
use outlast_workers::sdk::{Activity, Done, Failure, Offer, TaskContext, Worker, WorkerError};
use rustix::time::{ClockId, clock_gettime};

use crate::limits::{BENCH_LEDGER_LINE_BYTES, BENCH_REPLY_BYTES, BENCH_STEP_BYTES};

/// What only `outlast bench` says to its worker.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Options {
    /// A file for what it begins
    #[arg(long, hide = true, value_name = "FILE")]
    ledger: Option<PathBuf>,
    /// The step from which on it goes no further
    #[arg(long, hide = true, value_name = "N")]
    holds_from: Option<u64>,
}

/// Serves until it is told to leave.
pub(crate) async fn serve(worker: WorkerOptions, options: &Options) -> Result<(), WorkerError> {
    let open = |path| File::options().create(true).append(true).open(path);
    let ledger = options.ledger.as_ref().map(open).transpose()?.map(Arc::new);
    Worker::builder("bench")
        .connect(&worker.connect)
        .credentials(worker.credentials)
        .queues(["bench"])
        .concurrency(worker.concurrency.unwrap_or(1))
        .activity(Step { ledger, holds_from: options.holds_from })
        .activity(Reply)
        .build()?
        .serve()
        .await
}

/// Answers a number.
struct Step {
    ledger: Option<Arc<File>>,
    holds_from: Option<u64>,
}

/// Answers what was said.
struct Reply;

#[async_trait::async_trait]
impl Activity for Step {
    fn offer(&self) -> Offer {
        Offer { name: "step".to_owned(), ..Offer::default() }
    }

    async fn run(&self, task: TaskContext) -> Result<Done, Failure> {
        let n = task.arg("n").and_then(outlast_workers::Json::as_u64);
        let n = n.ok_or_else(|| Failure::bad_input("n: a number from 0 on is expected"))?;
        if let Some(ledger) = &self.ledger {
            let line = format!("{} {} {n}", task.run(), task.op());
            let line = format!("{line:width$}\n", width = BENCH_LEDGER_LINE_BYTES - 1);
            (&**ledger)
                .write_all(line.as_bytes())
                .map_err(|error| Failure::new("Ledger", error.to_string()))?;
        }
        if self.holds_from.is_some_and(|first| n >= first) {
            std::future::pending::<()>().await;
        }
        Ok(answer(task.key(), BENCH_STEP_BYTES))
    }
}

#[async_trait::async_trait]
impl Activity for Reply {
    fn offer(&self) -> Offer {
        Offer { name: "reply".to_owned(), ..Offer::default() }
    }

    async fn run(&self, task: TaskContext) -> Result<Done, Failure> {
        Ok(answer(task.key(), BENCH_REPLY_BYTES))
    }
}

/// Makes an answer of so many bytes that begins with the moment, in nanoseconds, and is like no other.
fn answer(key: &str, bytes: usize) -> Done {
    let now = clock_gettime(ClockId::Monotonic);
    let text = format!("{} {key} ", now.tv_sec * 1_000_000_000 + now.tv_nsec);
    Done::new(format!("{text:x<bytes$}"))
}

/// Returns the moment with which an answer begins, in milliseconds.
pub(super) fn moment_ms(answer: &str) -> Option<f64> {
    let nanoseconds: f64 = answer.split(' ').next()?.parse().ok()?;
    Some(nanoseconds / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_have_their_size_and_their_moment() {
        let said = |done: Done| done.value.as_str().unwrap().to_owned();
        let (one, two) = (said(answer("a", 200)), said(answer("b", 200)));
        assert_eq!((one.len(), two.len()), (200, 200));
        assert!(moment_ms(&one).unwrap() <= moment_ms(&two).unwrap());
        assert_eq!(moment_ms("x"), None);
    }
}
