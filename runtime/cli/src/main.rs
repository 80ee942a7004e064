//! The `outlast` binary: drivers, operations and worker subcommands, each a thin shell over the libraries.
//!
//! Leaves runs to the engine, text to the language and effects to the workers. Invariant: stdout carries results only, and every way out has
//! an exit code that a script can act on. Start at [`arguments::Cli`] for what there is, at `commands` for what it does.

mod arguments;
mod commands;
mod configuration;
mod diagnostics;
mod environment;
mod failure;
mod files;
mod flow_file;
mod input;
mod limits;
mod log;
mod open;
mod out;
mod servers;
mod show;
mod signals;
mod tail;
mod tip;

use std::process::ExitCode;

use clap::Parser as _;
use mimalloc::MiMalloc;
use outlast_workers::tools::guard;
use tokio::runtime::Builder;

use arguments::{Cli, Command};
use failure::{Exit, Failure};

/// Half of what the engine did in the system's allocator was handing memory from one thread to another.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    // The tool worker starts this program again to watch over one command. That process reaps whatever it can, so nothing else may run
    // in it.
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == guard::SUBCOMMAND) {
        return guard::run(words);
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return misused(&tip::helpful(error)),
    };
    if let Err(failure) = log::begin() {
        return failure.report(cli.json).into();
    }
    let mut runtime = match &cli.command {
        // One thread does nothing as fast as several, and leaves the processors to what is measured.
        Command::Worker(worker) if worker.does_nothing() => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    let runtime = match runtime.enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            let failure = Failure::new(Exit::Unavailable, format!("cannot start: {error}"));
            return failure.report(cli.json).into();
        }
    };
    let json = cli.json;
    let exit = match runtime.block_on(commands::run(cli)) {
        Ok(exit) => exit,
        Err(failure) => failure.report(json),
    };
    // A task that blocks (a terminal that is read, a disk that hangs) must not hold the exit up.
    runtime.shutdown_background();
    exit.into()
}

/// Tells what is wrong with the command line, or what was asked about it; to a machine as every other error.
fn misused(error: &clap::Error) -> ExitCode {
    let wants_json = std::env::args_os().any(|word| word == "--json");
    if !(wants_json && error.use_stderr()) {
        error.exit()
    }
    let text = error.render().to_string();
    let (message, rest) = text.split_once("\n\n").unwrap_or((&text, ""));
    let failure = Failure::usage(message.trim_start_matches("error: ").trim());
    let failure = if rest.trim().is_empty() { failure } else { failure.hint(rest.trim()) };
    failure.report(true).into()
}
