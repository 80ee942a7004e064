//! The watcher of one command: the tool worker starts this program again as such, so that no command outlives a killed worker.

use std::ffi::OsString;
use std::process::ExitCode;

use crate::failure::{Exit, Failure};

/// Arguments of the watcher.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// What the worker wants done
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

/// Watches over a command.
pub(crate) fn guard(arguments: Arguments) -> Result<Exit, Failure> {
    let code = outlast_workers::tools::guard::run(arguments.command.into_iter());
    if code == ExitCode::SUCCESS { Ok(Exit::Done) } else { Err(Failure::silent(Exit::Failed)) }
}
