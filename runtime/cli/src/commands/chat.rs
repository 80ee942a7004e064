//! `outlast chat`: a person talks with a run.

use super::Context;
use crate::failure::{Exit, Failure};

/// Arguments of `chat`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The flow: FILE or FILE:Flow [default: the built-in agent]
    #[arg(value_name = "FILE[:Flow]")]
    flow: Option<String>,
    /// Go on with the newest unfinished run of this directory
    #[arg(long = "continue", conflicts_with_all = ["resume", "flow"])]
    newest: bool,
    /// Go on with this run
    #[arg(long, value_name = "ID", conflicts_with = "flow")]
    resume: Option<String>,
}

/// Talks.
pub(crate) async fn chat(_context: Context<'_>, _arguments: &Arguments) -> Result<Exit, Failure> {
    Err(Failure::new(Exit::Failed, "chat is not built yet"))
}
