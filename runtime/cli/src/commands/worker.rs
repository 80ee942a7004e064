//! `outlast worker`: the stock workers, started by the runtime or by hand.

use std::io::Write as _;

use outlast_workers::WorkerOptions;
use outlast_workers::sdk::{Credentials, MaskedLog};

use crate::failure::{Exit, Failure};

/// Arguments of `worker`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Which worker
    #[arg(value_enum)]
    kind: Kind,
    /// Where the runtime is: unix:PATH, http://HOST:PORT or https://HOST:PORT [default: the data directory's socket]
    #[arg(long, value_name = "URL")]
    connect: Option<String>,
    /// The environment to serve, by its name [default: this directory, with the scripted model]
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// How many tasks to run at once
    #[arg(long, value_name = "N")]
    concurrency: Option<u32>,
    /// The environment variable that holds the token of the runtime
    #[arg(long, value_name = "NAME")]
    token_env: Option<String>,
    /// A file with the certificates, in PEM, of the only authorities to trust for https [default: the machine's]
    #[arg(long, value_name = "FILE")]
    ca: Option<std::path::PathBuf>,
    /// End when the runtime is gone for good
    #[arg(long, hide = true)]
    supervised: bool,
    #[command(flatten)]
    bench: super::bench::Options,
    /// The boot id by which the supervisor knows this process
    #[arg(long, hide = true, value_name = "ID")]
    boot: Option<String>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Kind {
    /// Calls language models
    Model,
    /// Works with files and commands
    Tool,
    /// Does nothing, for `outlast bench`
    #[value(hide = true)]
    Bench,
}

impl Arguments {
    /// Whether it is the worker of `outlast bench`.
    pub(crate) fn does_nothing(&self) -> bool {
        matches!(self.kind, Kind::Bench)
    }
}

/// Runs a worker until it is told to end.
pub(crate) async fn worker(data: Option<&std::path::Path>, arguments: &Arguments) -> Result<Exit, Failure> {
    let connect = match &arguments.connect {
        Some(connect) => connect.clone(),
        None => format!("unix:{}", crate::environment::data_directory(data)?.join("socket").display()),
    };
    let bearer = match &arguments.token_env {
        None => None,
        Some(name) => {
            let not_set = |_| Failure::usage(format!("--token-env: {name} is not set"));
            Some(std::env::var(name).map_err(not_set)?.trim().to_owned())
        }
    };
    let credentials = Credentials { bearer, ca: arguments.ca.clone() };
    let profile = match &arguments.profile {
        None => None,
        Some(name) => {
            let fetched = outlast_workers::fetch_profile(&connect, &credentials, name).await;
            Some(fetched.map_err(|error| Failure::new(Exit::Failed, error.to_string()))?)
        }
    };
    let cannot =
        |error: std::io::Error| Failure::new(Exit::Failed, format!("cannot find this program: {error}"));
    let data = match connect.starts_with("unix:") {
        // Beside the socket, as the worker finds by itself.
        true => None,
        false => Some(crate::environment::data_directory(data)?),
    };
    let options = WorkerOptions {
        connect,
        profile,
        profile_name: arguments.profile.clone(),
        concurrency: arguments.concurrency,
        supervised: arguments.supervised,
        boot: arguments.boot.clone(),
        credentials,
        guard: Some(std::env::current_exe().map_err(cannot)?),
        data,
    };
    // A panic may quote what it found.
    std::panic::set_hook(Box::new(|panic| {
        let _nobody = writeln!(MaskedLog, "{panic}");
    }));
    let served = match arguments.kind {
        Kind::Model => outlast_workers::run_model_worker(options).await,
        Kind::Tool => outlast_workers::run_tool_worker(options).await,
        Kind::Bench => super::bench::serve(options, &arguments.bench).await,
    };
    served.map_err(|error| Failure::new(Exit::Failed, format!("the worker cannot go on: {error}")))?;
    Ok(Exit::Done)
}
