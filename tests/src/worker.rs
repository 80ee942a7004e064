//! A worker for tests: its activities leave a line in the ledger and stop at gates, so that a test can count and kill exactly.
//!
//! `outlast-test-worker DIRECTORY ADDRESS NAME CONCURRENCY`. Around each line stand two gates, `before` and `after`: a gate that the
//! test has closed is marked as reached and holds the attempt until it is opened. Leaves judging to the tests. Invariant: a line is
//! on disk before the attempt goes on.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use outlast_tests::ledger::{self, Gate};
use outlast_workers::sdk::{Activity, Done, Failure, Offer, Secrets, TaskContext, Worker};
use serde_json::{Value, json};

/// How often a closed gate is looked at.
const LOOK: Duration = Duration::from_millis(2);

/// The variable with the one secret that it knows.
const SECRET: &str = "OUTLAST_TEST_SECRET";

/// Leaves a line.
struct Ledger {
    name: &'static str,
    /// What stands before the name in the line.
    prefix: &'static str,
    directory: PathBuf,
}

/// Looks whether the line of this operation is there.
struct Effect {
    directory: PathBuf,
}

#[async_trait::async_trait]
impl Activity for Ledger {
    fn offer(&self) -> Offer {
        Offer { name: self.name.to_owned(), ..Offer::default() }
    }

    async fn run(&self, task: TaskContext) -> Result<Done, Failure> {
        let name = format!("{}{}", self.prefix, task.text("name")?);
        pass(&self.directory, &name, Gate::Before).await;
        write(&self.directory, &task, &name).map_err(|error| Failure::new("Ledger", error.to_string()))?;
        pass(&self.directory, &name, Gate::After).await;
        Ok(Done::new(task.key()))
    }
}

#[async_trait::async_trait]
impl Activity for Effect {
    fn offer(&self) -> Offer {
        Offer { name: "ledger_effect".to_owned(), ..Offer::default() }
    }

    async fn run(&self, task: TaskContext) -> Result<Done, Failure> {
        let happened = ledger::read(&self.directory).iter().any(|line| line.key == task.key());
        Ok(Done::new(if happened {
            json!({"type": "Happened", "result": task.key()})
        } else {
            json!({"type": "NotHappened"})
        }))
    }
}

/// Leaves a secret in a file, and tells it in all ways that it has.
struct Tell {
    directory: PathBuf,
}

#[async_trait::async_trait]
impl Activity for Tell {
    fn offer(&self) -> Offer {
        Offer { name: "tell".to_owned(), ..Offer::default() }
    }

    async fn run(&self, task: TaskContext) -> Result<Done, Failure> {
        let token = task.secret("token")?;
        let failed = |error: std::io::Error| Failure::new("Ledger", error.to_string());
        std::fs::write(self.directory.join("told"), token).map_err(failed)?;
        token.chars().for_each(|letter| task.progress(&letter.to_string()));
        if task.text("how")? == "fail" {
            return Err(Failure::new("Told", format!("it is {token}")));
        }
        // Where a handle is kept, a result follows.
        task.set_handle(json!({ "token": token })).await?;
        Ok(Done::new(format!("it is {token}")))
    }
}

async fn pass(directory: &Path, name: &str, gate: Gate) {
    let path = ledger::gate(directory, name, gate);
    if !path.exists() {
        return;
    }
    // A mark that cannot be made shows as a test that waits in vain.
    let _marked = std::fs::write(ledger::mark(directory, name, gate), "");
    let mut look = tokio::time::interval(LOOK);
    while path.exists() {
        look.tick().await;
    }
}

fn write(directory: &Path, task: &TaskContext, name: &str) -> std::io::Result<()> {
    let mut line: Value = json!({"name": name, "run": task.run(), "op": task.op(), "key": task.key()});
    line["attempt"] = json!(task.attempt());
    line["pid"] = json!(std::process::id());
    let mut file = OpenOptions::new().create(true).append(true).open(directory.join(ledger::FILE))?;
    file.write_all(format!("{line}\n").as_bytes())?;
    file.sync_all()
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, address, name, concurrency] = arguments.as_slice() else {
        eprintln!("outlast-test-worker DIRECTORY ADDRESS NAME CONCURRENCY");
        return ExitCode::from(2);
    };
    let directory = PathBuf::from(directory);
    let ledger = |name, prefix| Ledger { name, prefix, directory: directory.clone() };
    let worker = Worker::builder(name)
        .connect(address)
        .queues(["test"])
        .concurrency(concurrency.parse().unwrap_or(1))
        .activity(ledger("ledger", ""))
        .activity(ledger("repeatable", ""))
        .activity(ledger("undo_repeatable", "undo-"))
        .secrets(Secrets::from_environment([SECRET]))
        .activity(Tell { directory: directory.clone() })
        .activity(Effect { directory: directory.clone() });
    let served = match worker.build() {
        Ok(worker) => worker.serve().await,
        Err(error) => Err(error),
    };
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
