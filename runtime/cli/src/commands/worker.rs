//! `outlast worker`: the stock workers, started by the runtime or by hand.

use std::time::Duration;

use outlast_runtime::client::{Client, ClientError};
use outlast_runtime::host::is_lost;
use outlast_workers::WorkerOptions;

use crate::failure::{Exit, Failure};
use crate::limits::{PROFILE_RETRY_MS, PROFILE_TRIES};

/// Arguments of `worker`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Which worker
    #[arg(value_enum)]
    kind: Kind,
    /// Where the runtime is: unix:PATH or http://HOST:PORT [default: the data directory's socket]
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
    /// End when the runtime is gone for good
    #[arg(long, hide = true)]
    supervised: bool,
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
}

/// Runs a worker until it is told to end.
pub(crate) async fn worker(data: Option<&std::path::Path>, arguments: &Arguments) -> Result<Exit, Failure> {
    let connect = match &arguments.connect {
        Some(connect) => connect.clone(),
        None => format!("unix:{}", crate::environment::data_directory(data)?.join("socket").display()),
    };
    let bearer = match &arguments.token_env {
        None => None,
        Some(name) => Some(std::env::var(name).map_err(|_| Failure::usage(format!("{name} is not set")))?),
    };
    let profile = match &arguments.profile {
        None => None,
        Some(name) => Some(profile(&connect, bearer.clone(), name).await?),
    };
    let cannot =
        |error: std::io::Error| Failure::new(Exit::Failed, format!("cannot find this program: {error}"));
    let options = WorkerOptions {
        connect,
        profile,
        concurrency: arguments.concurrency,
        supervised: arguments.supervised,
        boot: arguments.boot.clone(),
        bearer,
        guard: Some(std::env::current_exe().map_err(cannot)?),
    };
    let served = match arguments.kind {
        Kind::Model => outlast_workers::run_model_worker(options).await,
        Kind::Tool => outlast_workers::run_tool_worker(options).await,
    };
    served.map_err(|error| Failure::new(Exit::Failed, format!("the worker cannot go on: {error}")))?;
    Ok(Exit::Done)
}

/// Asks the runtime, which may be just starting, for an environment.
async fn profile(
    connect: &str,
    bearer: Option<String>,
    name: &str,
) -> Result<outlast_workers::Profile, Failure> {
    let address = connect.parse().map_err(|error| Failure::usage(format!("--connect: {error}")))?;
    let client = Client::new(address, bearer);
    let mut tries = 0;
    let profile = loop {
        match client.profile(name).await {
            Ok(profile) => break profile,
            Err(error) if is_lost(&error) && tries < PROFILE_TRIES => tries += 1,
            Err(error) => return Err(error.into()),
        }
        tokio::time::sleep(Duration::from_millis(PROFILE_RETRY_MS)).await;
    };
    let garbled = |error: serde_json::Error| {
        Failure::from(ClientError::Garbled { address: connect.to_owned(), detail: error.to_string() })
    };
    serde_json::from_value(profile.record()).map_err(garbled)
}
