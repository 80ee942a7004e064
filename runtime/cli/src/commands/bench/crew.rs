//! The processes of one workload: a runtime and a worker, started from this program, with a directory of their own.
//!
//! Leaves calling them to `load`. Invariant: they are killed and gone before their directory is removed, whichever way the workload ends.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::place::{Place, bytes_on_disk};
use super::{Bench, cannot, proc};
use crate::failure::{Exit, Failure};

/// The flows of all workloads.
const FLOWS: &str = include_str!("bench.flow");

/// A process that ends with this value.
#[derive(Debug)]
pub(super) struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _gone = self.0.kill();
        let _status = self.0.wait();
    }
}

/// How a worker is wanted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hands {
    /// How many attempts it runs at once.
    pub(super) concurrency: u64,
    /// Whether it writes down what it begins.
    pub(super) keeps_ledger: bool,
    /// From which step on it goes no further.
    pub(super) holds_from: Option<u64>,
}

/// A runtime, perhaps a worker, and their directory.
#[derive(Debug)]
pub(super) struct Crew {
    // Dropped in this order.
    worker: Option<Process>,
    host: Option<Process>,
    place: Place,
    program: PathBuf,
}

impl Crew {
    /// Starts a runtime on an empty store.
    pub(super) async fn start(bench: &Bench) -> Result<Crew, Failure> {
        let program = std::env::current_exe().map_err(|error| cannot("find this program", &error))?;
        let place = Place::make(&bench.parent)?;
        let flows = place.path().join("bench.flow");
        std::fs::write(&flows, FLOWS).map_err(|error| cannot("write the flows", &error))?;
        let mut crew = Crew { worker: None, host: None, place, program };
        crew.host(&[flows.as_path()]).await?;
        Ok(crew)
    }

    /// Starts the runtime again on the store as it is.
    pub(super) async fn start_again(&mut self) -> Result<(), Failure> {
        self.host(&[]).await
    }

    /// Starts a worker.
    pub(super) fn hire(&mut self, hands: Hands) -> Result<(), Failure> {
        let mut command = self.command("worker");
        command.arg("bench").arg("--connect").arg(format!("unix:{}", self.socket().display()));
        command.args(["--concurrency", &hands.concurrency.to_string()]);
        if hands.keeps_ledger {
            command.arg("--ledger").arg(self.ledger());
        }
        if let Some(step) = hands.holds_from {
            command.args(["--holds-from", &step.to_string()]);
        }
        self.worker = Some(self.spawn(&mut command, "worker.log")?);
        Ok(())
    }

    /// Kills everything with signal 9.
    pub(super) fn kill(&mut self) {
        self.worker = None;
        self.host = None;
    }

    async fn host(&mut self, flows: &[&Path]) -> Result<(), Failure> {
        let mut command = self.command("serve");
        command.args(["--no-workers", "--json", "--data"]).arg(self.data()).args(flows);
        let mut process = self.spawn(command.stdout(Stdio::piped()), "runtime.log")?;
        let stdout = process.0.stdout.take();
        self.host = Some(process);
        let ready = tokio::task::spawn_blocking(move || {
            let mut line = String::new();
            // A runtime that cannot start closes its output without a word.
            stdout.map(|stdout| BufReader::new(stdout).read_line(&mut line)).is_some_and(|read| read.is_ok())
                && line.contains("\"socket\"")
        });
        if ready.await.unwrap_or(false) {
            return Ok(());
        }
        let log = std::fs::read_to_string(self.place.path().join("runtime.log")).unwrap_or_default();
        Err(Failure::new(Exit::Failed, format!("the runtime did not start: {}", log.trim())))
    }

    /// Makes a command of this program that is not disturbed by who works at the terminal.
    fn command(&self, subcommand: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.arg(subcommand).current_dir(self.place.path()).env_remove("OUTLAST_DATA").process_group(0);
        command
    }

    fn spawn(&self, command: &mut Command, log: &str) -> Result<Process, Failure> {
        let log = File::options().create(true).append(true).open(self.place.path().join(log));
        let log = log.map_err(|error| cannot("open a log", &error))?;
        let spawned = command.stdin(Stdio::null()).stderr(log).spawn();
        spawned.map(Process).map_err(|error| cannot("start a process", &error))
    }

    /// Returns the directory of all this.
    pub(super) fn directory(&self) -> &Path {
        self.place.path()
    }

    fn data(&self) -> PathBuf {
        self.place.path().join("data")
    }

    /// Returns the runtime's socket.
    pub(super) fn socket(&self) -> PathBuf {
        self.data().join("socket")
    }

    /// Returns the file in which workers write down what they begin.
    pub(super) fn ledger(&self) -> PathBuf {
        self.place.path().join("ledger")
    }

    /// Returns the bytes that the store takes on the disk, and those of its journals among them.
    pub(super) fn bytes_on_disk(&self) -> (u64, u64) {
        bytes_on_disk(&self.data())
    }

    /// Returns the bytes of memory that the runtime has for itself.
    pub(super) fn memory(&self) -> Option<u64> {
        proc::memory(self.host.as_ref()?.0.id())
    }

    /// Returns the seconds that runtime, worker and this process were on a processor.
    pub(super) fn processor_seconds(&self) -> [Option<f64>; 3] {
        let of = |process: &Option<Process>| proc::processor_seconds(process.as_ref()?.0.id());
        [of(&self.host), of(&self.worker), proc::processor_seconds(std::process::id())]
    }
}
