//! How the stock workers are started: what the subcommands of the binary pass on.
//!
//! Leaves reading the command line to the binary. Invariant: a worker that is given a profile serves runs of that profile only, in
//! its directory and with its model.

use std::path::PathBuf;
use std::sync::Arc;

use outlast_protocol::requests::Permissions;
use serde::{Deserialize, Serialize};

use crate::limits::{MODEL_CONCURRENCY, TOOL_CONCURRENCY};
use crate::sdk::{Activity, Worker, WorkerBuilder, WorkerError, fetch_profile};
use crate::{model, tools};

/// What a stock worker is started with.
#[derive(Clone, Debug, Default)]
pub struct WorkerOptions {
    /// Where the runtime is: `http://host:port` or `unix:/path/socket`.
    pub connect: String,
    /// The environment that it serves. Without one: the current directory, and the scripted model.
    pub profile: Option<Profile>,
    /// How many attempts run at once; a default that suits the worker if left out.
    pub concurrency: Option<u32>,
    /// The runtime started this process, which ends when the runtime is gone for good.
    pub supervised: bool,
    /// The boot id, if whoever starts the process wants to know it.
    pub boot: Option<String>,
    /// The access token for the runtime.
    pub bearer: Option<String>,
    /// The program that watches over commands: `outlast` itself (see [`tools::guard`]). Without one, only a command's process
    /// group is ended with it, and nothing ends it when the worker is killed.
    pub guard: Option<PathBuf>,
}

/// The environment a run was started in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// Names it; empty: none.
    #[serde(default)]
    pub name: String,
    /// The working directory.
    pub directory: PathBuf,
    /// The model.
    pub model: ModelConfig,
    /// The rules about tool calls, which the tool worker looks at once more where it knows what a path leads to.
    #[serde(default)]
    pub permissions: Permissions,
}

/// Which model answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ModelConfig {
    /// By a script (see [`model::scripted`]).
    Scripted {
        /// The script's text.
        script: String,
        /// Its name, if it does not say one itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        script_name: Option<String>,
    },
    /// An endpoint that speaks chat completions: OpenAI's, Ollama, llama.cpp, vLLM, gateways.
    Openai(Endpoint),
    /// An endpoint that speaks OpenAI's responses.
    OpenaiResponses(Endpoint),
    /// An endpoint that speaks Anthropic's messages.
    Anthropic(Endpoint),
}

/// Where a model answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Endpoint {
    /// The base, such as `https://host/v1`; the protocol's path is added unless it is there.
    pub url: String,
    /// The model's name.
    pub name: String,
    /// The environment variable that holds the key; none: no key is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_env: Option<String>,
    /// The longest answer, in tokens; the server's own if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// How long the model may say nothing, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_ms: Option<u64>,
    /// What it costs; if left out, the table of prices says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<Prices>,
    /// How many requests a minute the worker makes; if left out, what its environment says, else as many as there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_per_minute: Option<u64>,
    /// How many tokens a minute it reads and writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_per_minute: Option<u64>,
    /// More fields of the provider's requests, such as `temperature`, `reasoning` or `thinking`.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub options: serde_json::Map<String, crate::Json>,
}

/// What a million tokens cost, as decimals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// Read.
    pub input: String,
    /// Written.
    pub output: String,
    /// Read from the provider's cache; as `input` if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<String>,
    /// Written to the provider's cache; as `input` if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_written: Option<String>,
}

impl Profile {
    /// Fetches a profile that the runtime keeps, waiting for a runtime that is away.
    ///
    /// # Errors
    /// [`WorkerError::Refused`] if the runtime does not have it, [`WorkerError::Configuration`] if it cannot be read or the address
    /// is odd, or if no runtime came in a minute.
    pub async fn fetch(connect: &str, bearer: Option<String>, name: &str) -> Result<Profile, WorkerError> {
        let record = fetch_profile(connect, bearer, name).await?;
        serde_json::from_value(record)
            .map_err(|error| WorkerError::Configuration(format!("the environment profile {name}: {error}")))
    }
}

impl Default for ModelConfig {
    fn default() -> ModelConfig {
        ModelConfig::Scripted { script: model::AGENT_SCRIPT.to_owned(), script_name: None }
    }
}

impl WorkerOptions {
    /// Prepares the model worker: queues `model` and `default`.
    ///
    /// # Errors
    /// [`WorkerError::Configuration`] if the model's configuration cannot work.
    pub fn model_worker(&self) -> Result<Worker, WorkerError> {
        let config = self.profile.as_ref().map(|profile| profile.model.clone()).unwrap_or_default();
        let activities = model::activities(&config).map_err(WorkerError::Configuration)?;
        self.worker("model", activities).concurrency(self.concurrency.unwrap_or(MODEL_CONCURRENCY)).build()
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
        let rules = self.profile.as_ref().map(|profile| profile.permissions.clone()).unwrap_or_default();
        let activities = tools::activities(&directory, self.guard.clone(), rules)
            .map_err(|error| WorkerError::Configuration(format!("{}: {error}", directory.display())))?;
        self.worker("tool", activities).concurrency(self.concurrency.unwrap_or(TOOL_CONCURRENCY)).build()
    }

    fn worker(&self, name: &str, activities: Vec<Arc<dyn Activity>>) -> WorkerBuilder {
        let profile =
            self.profile.as_ref().map(|profile| profile.name.clone()).filter(|name| !name.is_empty());
        let builder = Worker::builder(name)
            .connect(&self.connect)
            .queues([name, "default"])
            .profile(profile)
            .boot(self.boot.clone())
            .bearer(self.bearer.clone());
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
