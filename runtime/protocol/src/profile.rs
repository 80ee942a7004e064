//! Environment profiles: where a run's tools work and which model answers.
//!
//! Leaves keeping them to the engine, starting workers to the supervisor, and speaking with the model to its worker. Invariant: a
//! profile's name is the hash of its canonical record, so equal environments share their workers, and no record holds a secret: keys
//! are named by environment variable.

use std::path::PathBuf;

use outlast_kernel::Json;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::requests::Permissions;
use crate::sandbox::Sandbox;

/// How many hexadecimal digits of the hash make the name: 64 bits tell the profiles of one user apart.
const NAME_DIGITS: usize = 16;

/// The environment that a run was started in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    /// The absolute working directory.
    pub directory: PathBuf,
    /// The model.
    pub model: Model,
    /// The rules about tool calls of runs that are started in it.
    #[serde(default, skip_serializing_if = "Permissions::is_empty")]
    pub permissions: Permissions,
    /// What of the workers' variables its tools know.
    #[serde(default, skip_serializing_if = "Environment::is_empty")]
    pub environment: Environment,
    /// What commands of its tools are held to.
    #[serde(default, skip_serializing_if = "Sandbox::is_default")]
    pub sandbox: Sandbox,
    /// The absolute path of the file that names its MCP servers; left out: `.mcp.json` of the directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub servers: Option<PathBuf>,
}

/// Variables of the workers' own environment, by name. Their values stay where they are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Environment {
    /// Those that commands get, besides the few that every command gets.
    pub variables: Vec<String>,
    /// Those whose values are secret: known to workers, and taken out of whatever these say.
    pub secrets: Vec<String>,
}

impl Environment {
    /// Whether nothing is named.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.variables.is_empty() && self.secrets.is_empty()
    }

    /// Returns the first name that no variable can have.
    #[must_use]
    pub fn wrong_name(&self) -> Option<&str> {
        let fits = |name: &str| {
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
            name.chars().all(plain) && name.starts_with(|c: char| !c.is_ascii_digit())
        };
        self.variables.iter().chain(&self.secrets).map(String::as_str).find(|name| !fits(name))
    }
}

/// The model that answers in a profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Model {
    /// A script, for tests and demonstrations.
    Scripted {
        /// The script's text: a run outlives the file.
        script: String,
        /// The name by which people know it; empty: the one that it says itself.
        #[serde(default)]
        script_name: String,
    },
    /// An endpoint that speaks chat completions: OpenAI's, Ollama, llama.cpp, vLLM, gateways.
    Openai(Endpoint),
    /// An endpoint that speaks OpenAI's responses.
    OpenaiResponses(Endpoint),
    /// An endpoint that speaks Anthropic's messages.
    Anthropic(Endpoint),
}

/// Where a model answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    /// The model that is asked where this one has no answer for now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<Box<Model>>,
    /// More fields of the provider's requests, such as `temperature`, `reasoning` or `thinking`.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub options: serde_json::Map<String, Json>,
}

/// What a million tokens cost, as decimals.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

impl Model {
    /// Returns the environment variables that must hold keys, its own first, then those of its fallbacks.
    #[must_use]
    pub fn key_envs(&self) -> Vec<&str> {
        match self {
            Model::Scripted { .. } => Vec::new(),
            Model::Openai(endpoint) | Model::OpenaiResponses(endpoint) | Model::Anthropic(endpoint) => {
                let next = endpoint.fallback.iter().flat_map(|model| model.key_envs());
                endpoint.key_env.as_deref().into_iter().chain(next).collect()
            }
        }
    }
}

impl Profile {
    /// Returns the profile's name: a short hash of the record.
    #[must_use]
    pub fn name(&self) -> String {
        let mut name = blake3::hash(self.body().to_string().as_bytes()).to_hex().to_string();
        name.truncate(NAME_DIGITS);
        name
    }

    /// Returns the record that the engine keeps.
    #[must_use]
    pub fn record(&self) -> Json {
        let mut record = self.body();
        record["name"] = json!(self.name());
        record
    }

    /// Object keys are sorted, so the text of this value is canonical.
    fn body(&self) -> Json {
        let mut body = json!({ "directory": self.directory, "model": self.model });
        if !self.permissions.is_empty() {
            body["permissions"] = json!(self.permissions);
        }
        if !self.environment.is_empty() {
            body["environment"] = json!(self.environment);
        }
        if !self.sandbox.is_default() {
            body["sandbox"] = json!(self.sandbox);
        }
        if let Some(servers) = &self.servers {
            body["servers"] = json!(servers);
        }
        body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_environments_have_one_name_and_records_read_back() {
        let model = Model::Scripted { script: "[]".to_owned(), script_name: "a.script.json".to_owned() };
        let here = Profile {
            directory: "/a".into(),
            model: model.clone(),
            permissions: Permissions::default(),
            environment: Environment::default(),
            sandbox: Sandbox::default(),
            servers: None,
        };
        let there = Profile { directory: "/b".into(), ..here.clone() };
        let environment = Environment { variables: vec!["CI".to_owned()], secrets: vec!["TOKEN".to_owned()] };
        let knowing = Profile { environment, ..here.clone() };
        let sandbox = Sandbox { memory: Some("1GB".to_owned()), ..Sandbox::default() };
        let confined = Profile { sandbox, ..here.clone() };
        assert_eq!(here.name(), here.clone().name());
        let served = Profile { servers: Some("/a/servers.json".into()), ..here.clone() };
        for profile in [here.clone(), there, knowing, confined, served] {
            assert_eq!(profile.name() == here.name(), profile == here);
            let read: Profile = serde_json::from_value(profile.record()).unwrap();
            assert_eq!(read, profile);
            assert_eq!(profile.record()["name"], json!(profile.name()));
        }
    }
}
