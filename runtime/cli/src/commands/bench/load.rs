//! Clients of the runtime, each with a connection of its own: they start runs and wait for their ends.
//!
//! Leaves what is measured to the workloads. Invariant: a run that did not end as its flow should is an error, never a figure.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::cannot;
use super::connection::Connection;
use crate::failure::{Exit, Failure};

/// Runs of one flow with the same input, by clients.
#[derive(Clone, Debug)]
pub(super) struct Load {
    socket: PathBuf,
    /// What their ids begin with.
    prefix: &'static str,
    /// The request to start one, around its id.
    request: Arc<(String, String)>,
    clients: u64,
}

impl Load {
    /// Prepares runs of a flow.
    pub(super) fn new(socket: PathBuf, prefix: &'static str, (flow, input): (&str, Value)) -> Load {
        let before = "{\"id\":\"".to_owned();
        let after = format!("\",\"flow\":{},\"input\":{input}}}", json!(flow));
        Load { socket, prefix, request: Arc::new((before, after)), clients: 1 }
    }

    /// As many clients at once.
    pub(super) fn clients(mut self, clients: u64) -> Load {
        self.clients = clients.max(1);
        self
    }

    /// Returns the id of one of the runs.
    pub(super) fn id(&self, number: u64) -> String {
        format!("{}-{number:06}", self.prefix)
    }

    /// Opens a connection.
    pub(super) async fn connect(&self) -> Result<Connection, Failure> {
        Connection::open(&self.socket).await.map_err(|error| cannot("reach the runtime", &error))
    }

    /// Starts a run.
    pub(super) async fn start(&self, connection: &mut Connection, number: u64) -> Result<(), Failure> {
        let body = format!("{}{}{}", self.request.0, self.id(number), self.request.1);
        let _view: serde::de::IgnoredAny = connection.post("/v1/runs", &body).await?;
        Ok(())
    }

    /// Waits for the end of a run.
    pub(super) async fn end(&self, connection: &mut Connection, number: u64) -> Result<(), Failure> {
        let id = self.id(number);
        loop {
            let result: Value = connection.get(&format!("/v1/runs/{id}/result?wait=60s")).await?;
            match (result["status"].as_str(), result["outcome"]["kind"].as_str()) {
                (Some("ended"), Some("done")) => return Ok(()),
                (Some("running" | "waiting"), _) => {}
                _ => return Err(Failure::new(Exit::Failed, format!("it came to {result}")).of_run(&id)),
            }
        }
    }

    /// Has each client start a run and wait for its end, again and again for some time, but once at least. Returns how many runs ended,
    /// and in which time.
    pub(super) async fn keep_going(&self, numbers: &Arc<AtomicU64>, time: Duration) -> Result<Lap, Failure> {
        let start = Instant::now();
        let end = start + time;
        let work = |load: Load, mut connection: Connection| {
            let numbers = Arc::clone(numbers);
            async move {
                let mut runs = 0;
                while runs == 0 || Instant::now() < end {
                    let number = numbers.fetch_add(1, Ordering::Relaxed);
                    load.start(&mut connection, number).await?;
                    load.end(&mut connection, number).await?;
                    runs += 1;
                }
                Ok(runs)
            }
        };
        let runs = self.all(work).await?;
        Ok(Lap { runs, time: start.elapsed() })
    }

    /// Starts so many runs, from the first on, and leaves them alone.
    pub(super) async fn start_all(&self, runs: u64) -> Result<Lap, Failure> {
        self.each(runs, Deed::Start).await
    }

    /// Waits for the ends of so many runs, from the first on.
    pub(super) async fn end_all(&self, runs: u64) -> Result<Lap, Failure> {
        self.each(runs, Deed::End).await
    }

    async fn each(&self, runs: u64, deed: Deed) -> Result<Lap, Failure> {
        let start = Instant::now();
        let numbers = Arc::new(AtomicU64::new(0));
        let work = move |load: Load, mut connection: Connection| {
            let numbers = Arc::clone(&numbers);
            async move {
                let mut done = 0;
                loop {
                    let number = numbers.fetch_add(1, Ordering::Relaxed);
                    if number >= runs {
                        return Ok(done);
                    }
                    match deed {
                        Deed::Start => load.start(&mut connection, number).await?,
                        Deed::End => load.end(&mut connection, number).await?,
                    }
                    done += 1;
                }
            }
        };
        let runs = self.all(work).await?;
        Ok(Lap { runs, time: start.elapsed() })
    }

    /// Lets all clients do something, each with its connection, and adds up what they return.
    async fn all<W>(&self, work: impl Fn(Load, Connection) -> W) -> Result<u64, Failure>
    where
        W: Future<Output = Result<u64, Failure>> + Send + 'static,
    {
        let mut clients = JoinSet::new();
        for _ in 0..self.clients {
            clients.spawn(work(self.clone(), self.connect().await?));
        }
        let mut sum = 0;
        while let Some(done) = clients.join_next().await {
            sum += done.map_err(|error| cannot("finish a client's work", &error))??;
        }
        Ok(sum)
    }
}

/// What is done with each of many runs.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Start,
    End,
}

/// Runs, and the time that they took together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lap {
    pub(super) runs: u64,
    pub(super) time: Duration,
}

impl Lap {
    /// Returns how many of `each` a run there were in a second.
    pub(super) fn per_second(self, each: u64) -> f64 {
        (self.runs * each) as f64 / self.time.as_secs_f64()
    }
}
