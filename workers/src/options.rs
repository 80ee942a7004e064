//! How the stock workers are started: what the subcommands of the binary pass on.
//!
//! Leaves reading the command line to the binary. Invariant: a worker that is given a profile serves runs of that profile only, in
//! its directory and with its model.

use std::path::PathBuf;
use std::sync::Arc;

use outlast_protocol::profile::{Environment, Profile};

use crate::limits::{MODEL_CONCURRENCY, TOOL_CONCURRENCY};
use crate::mcp::Logins;
use crate::sdk::{self, Activity, Credentials, Secrets, Worker, WorkerBuilder, WorkerError};
use crate::{model, tools};

/// What a stock worker is started with.
#[derive(Clone, Debug, Default)]
pub struct WorkerOptions {
    /// Where the runtime is: `http://host:port`, `https://host:port` or `unix:/path/socket`.
    pub connect: String,
    /// The environment that it serves. Without one: the current directory, and the scripted model.
    pub profile: Option<Profile>,
    /// The name by which the runtime knows that environment; without one, the worker takes tasks of any.
    pub profile_name: Option<String>,
    /// How many attempts run at once; a default that suits the worker if left out.
    pub concurrency: Option<u32>,
    /// The runtime started this process, which ends when the runtime is gone for good.
    pub supervised: bool,
    /// The boot id, if whoever starts the process wants to know it.
    pub boot: Option<String>,
    /// As whom the runtime is called.
    pub credentials: Credentials,
    /// The program that watches over commands: `outlast` itself (see [`tools::guard`]). Without one, only a command's process
    /// group is ended with it, and nothing ends it when the worker is killed.
    pub guard: Option<PathBuf>,
    /// The data directory in which logins at MCP servers are kept; left out: that of the runtime's socket, or none.
    pub data: Option<PathBuf>,
}

/// Fetches an environment profile that the runtime keeps, waiting for a runtime that is away.
///
/// # Errors
/// [`WorkerError::Refused`] if the runtime does not have it, [`WorkerError::Configuration`] if it cannot be read or the address is
/// odd, or if no runtime came in a minute.
pub async fn fetch_profile(
    connect: &str,
    credentials: &Credentials,
    name: &str,
) -> Result<Profile, WorkerError> {
    let record = sdk::fetch_profile(connect, credentials, name).await?;
    serde_json::from_value(record)
        .map_err(|error| WorkerError::Configuration(format!("the environment profile {name}: {error}")))
}

impl WorkerOptions {
    /// Prepares the model worker: queues `model` and `default`.
    ///
    /// # Errors
    /// [`WorkerError::Configuration`] if the model's configuration cannot work.
    pub fn model_worker(&self) -> Result<Worker, WorkerError> {
        let of_profile = self.profile.as_ref().map(|profile| profile.model.clone());
        let model = of_profile.unwrap_or_else(model::built_in);
        let activities = model::activities(&model).map_err(WorkerError::Configuration)?;
        let environment = self.environment();
        let names = environment.secrets.iter().map(String::as_str).chain(model.key_envs());
        let secrets = Secrets::from_environment(names);
        self.worker("model", activities)
            .secrets(secrets)
            .concurrency(self.concurrency.unwrap_or(MODEL_CONCURRENCY))
            .build()
    }

    /// Prepares the tool worker: queues `tool` and `default`.
    ///
    /// # Errors
    /// [`WorkerError::Configuration`] if the directory cannot be opened.
    pub fn tool_worker(&self) -> Result<Worker, WorkerError> {
        let directory = match &self.profile {
            Some(profile) => profile.directory.clone(),
            None => std::env::current_dir()?,
        };
        let profile = self.profile.as_ref();
        let secrets = Secrets::from_environment(self.environment().secrets.iter().map(String::as_str));
        let data = self.data.clone().or_else(|| self.files_of_runtime().pop());
        let logins = data.map(|data| Logins::of(&data)).unwrap_or_default().hidden_by(secrets.mask());
        let setting = tools::Setting {
            directory: directory.clone(),
            guard: self.guard.clone(),
            rules: profile.map(|profile| profile.permissions.clone()).unwrap_or_default(),
            servers: profile.and_then(|profile| profile.servers.clone()),
            environment: self.environment(),
            sandbox: profile.map(|profile| profile.sandbox.clone()).unwrap_or_default(),
            closed: self.files_of_runtime(),
            logins,
        };
        let activities = tools::activities(setting)
            .map_err(|error| WorkerError::Configuration(format!("{}: {error}", directory.display())))?;
        self.worker("tool", activities)
            .secrets(secrets)
            .concurrency(self.concurrency.unwrap_or(TOOL_CONCURRENCY))
            .build()
    }

    /// Where the runtime on this machine keeps its files: beside its socket.
    fn files_of_runtime(&self) -> Vec<PathBuf> {
        let socket = self.connect.strip_prefix("unix:").map(PathBuf::from);
        socket.and_then(|socket| socket.parent().map(PathBuf::from)).into_iter().collect()
    }

    fn environment(&self) -> Environment {
        self.profile.as_ref().map(|profile| profile.environment.clone()).unwrap_or_default()
    }

    fn worker(&self, name: &str, activities: Vec<Arc<dyn Activity>>) -> WorkerBuilder {
        let builder = Worker::builder(name)
            .connect(&self.connect)
            .queues([name, "default"])
            .profile(self.profile_name.clone())
            .boot(self.boot.clone())
            .credentials(self.credentials.clone());
        let builder = if self.supervised { builder.supervised() } else { builder };
        activities.into_iter().fold(builder, WorkerBuilder::shared_activity)
    }
}

/// Runs the model worker until SIGTERM or SIGINT.
///
/// # Errors
/// See [`WorkerOptions::model_worker`] and [`Worker::serve`].
pub async fn run_model_worker(options: WorkerOptions) -> Result<(), WorkerError> {
    options.model_worker()?.serve().await
}

/// Runs the tool worker until SIGTERM or SIGINT.
///
/// # Errors
/// See [`WorkerOptions::tool_worker`] and [`Worker::serve`].
pub async fn run_tool_worker(options: WorkerOptions) -> Result<(), WorkerError> {
    options.tool_worker()?.serve().await
}
