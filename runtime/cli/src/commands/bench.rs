//! `outlast bench`: how fast this build is on this machine, workload by workload, each beside its target and the least that the disk allows.
//!
//! A workload has a store of its own, in a directory that is removed again, a runtime (`outlast serve`) and a worker (`outlast worker
//! bench`), each in its own process, as users have them. Leaves what is measured to a module for each workload. Invariants: what is
//! measured is what a client sees, over the API; no store but its own is touched, and no process outlives the command.

mod connection;
mod conversation;
mod crew;
mod floor;
mod history;
mod idle;
mod latency;
mod load;
mod place;
mod proc;
mod recovery;
mod report;
mod steps;
mod worker;

use std::io::IsTerminal as _;
use std::path::PathBuf;

use super::Context;
use crate::environment::data_directory;
use crate::failure::{Exit, Failure};
use crate::out;
use crate::signals::Signals;
use floor::Syncs;
use place::Place;
use report::{Figure, Machine, Report};

pub(crate) use worker::{Options, serve};

/// Arguments of `bench`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Which workloads, in this order [default: all]
    #[arg(value_enum, value_name = "WORKLOAD")]
    workloads: Vec<Workload>,
    /// How much of each workload: targets are for 1, and smaller parts tell nothing about them
    #[arg(long, value_name = "PART", default_value = "1", value_parser = scale)]
    scale: f64,
    /// Where the stores are made and removed again: the file system counts [default: beside the data directory]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Workload {
    /// Flows of ten activities, 64, 256 and 1,000 at a time: steps a second
    Steps,
    /// One flow at a time: how long a step takes
    Latency,
    /// 300 turns with 1 KB each: bytes on disk, and whether later turns take longer
    Conversation,
    /// 2,000 runs half way, 100,000 waiting, everything killed: how soon it goes on
    Recovery,
    /// 100,000 runs that wait for a message: memory and bytes on disk
    Idle,
    /// One run of 200,000 events: how long it takes to open it
    History,
}

/// What a workload knows.
struct Bench {
    /// How much of it is wanted.
    scale: f64,
    /// Where its store is made.
    parent: PathBuf,
    /// How long a sync takes there.
    syncs: Syncs,
}

impl Bench {
    /// Returns a part of a number, but not less than `least`.
    fn part(&self, whole: u64, least: u64) -> u64 {
        ((whole as f64 * self.scale).round() as u64).max(least)
    }
}

fn scale(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(scale) if scale > 0.0 && scale <= 1.0 => Ok(scale),
        Ok(_) | Err(_) => Err("a number above 0, at most 1, is expected".to_owned()),
    }
}

/// Measures, and tells what was found.
pub(crate) async fn bench(context: Context<'_>, arguments: &Arguments) -> Result<Exit, Failure> {
    let mut signals = Signals::new()?;
    let parent = match &arguments.dir {
        Some(dir) => std::path::absolute(dir).map_err(|error| Failure::usage(format!("--dir: {error}")))?,
        None => place::beside(&data_directory(context.data)?),
    };
    // Whatever was begun is dropped when a signal comes: processes first, then their directories.
    let report = tokio::select! {
        report = measure(parent, arguments) => report?,
        exit = signals.next() => return Err(Failure::silent(exit)),
    };
    if context.json {
        out::json(&report)?;
    } else {
        out::result(&report.table())?;
    }
    Ok(Exit::Done)
}

async fn measure(parent: PathBuf, arguments: &Arguments) -> Result<Report, Failure> {
    let syncs = {
        let place = Place::make(&parent)?;
        floor::syncs(place.path())?
    };
    let machine = Machine::of(&parent, &syncs);
    let bench = Bench { scale: arguments.scale, parent, syncs };
    let all = <Workload as clap::ValueEnum>::value_variants();
    let wanted = if arguments.workloads.is_empty() { all } else { &arguments.workloads };
    let mut figures = Vec::new();
    for workload in wanted {
        if std::io::stderr().is_terminal() {
            out::status(&format!("{workload:?} …").to_lowercase());
        }
        figures.extend(workload.measure(&bench).await?);
    }
    out::status("");
    Ok(Report::new(machine, arguments.scale, figures))
}

impl Workload {
    async fn measure(self, bench: &Bench) -> Result<Vec<Figure>, Failure> {
        match self {
            Workload::Steps => steps::measure(bench).await,
            Workload::Latency => latency::measure(bench).await,
            Workload::Conversation => conversation::measure(bench).await,
            Workload::Recovery => recovery::measure(bench).await,
            Workload::Idle => idle::measure(bench).await,
            Workload::History => history::measure(bench).await,
        }
    }
}

/// Makes the failure of something that should have worked.
fn cannot(what: &str, error: &dyn std::fmt::Display) -> Failure {
    Failure::new(Exit::Failed, format!("cannot {what}: {error}"))
}
