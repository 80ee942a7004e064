//! The model worker: one turn of a language model as an activity.
//!
//! `model(messages, schemas)` gives the built-in agent's `Reply`, `generate(prompt, system?)` gives text, `extract(prompt, schema,
//! system?)` gives a value that fits a JSON Schema. Two providers stand behind one trait: [`remote`], an endpoint that speaks [`chat`]
//! completions, [`responses`] or [`anthropic`] messages, and [`scripted`], which needs no key and answers by rules. An answer takes this
//! way: [`conversation`] mends what is sent, a protocol writes it, [`wire`] sends it and reads the stream, the protocol's assembly
//! puts it together, [`heard`] judges it, [`pricing`] counts it; where it fails for now, [`fallback`] asks another one. Leaves retrying and budgets to the flow. Invariant: a conversation
//! that is sent is whole (every call has its answer), an answer that is given is whole too, and what was cut or broken is never run.

mod activity;
mod anthropic;
mod chat;
mod conversation;
mod error;
mod fallback;
mod heard;
mod pricing;
mod remote;
mod responses;
mod schema;
pub mod scripted;
mod sse;
mod wire;

use std::sync::Arc;

use conversation::Part;
pub(crate) use conversation::{Message, ToolCall, ToolSchema};
pub(crate) use error::ModelError;
pub use remote::count;

use outlast_protocol::profile::{Endpoint, Model};
use remote::{Protocol, Remote};
use schema::AnswerFormat;

use crate::Json;
use crate::sdk::{Activity, TaskContext};

/// How the arguments of a call begin that must not be run, followed by why. No JSON object begins so, and the tool worker hands
/// the text back to the model.
pub(crate) const NOT_RUN: &str = "not run:";

/// The script of the built-in agent: looks around, asks to run a command, sums up.
pub const AGENT_SCRIPT: &str = include_str!("model/agent.script.json");

/// The model that answers where no environment names one: the script of the built-in agent.
#[must_use]
pub fn built_in() -> Model {
    Model::Scripted { script: AGENT_SCRIPT.to_owned(), script_name: String::new() }
}

/// Gives the value of a variable of the environment.
pub(crate) type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Makes the activities of the model worker.
///
/// # Errors
/// What is wrong with the configuration.
pub fn activities(config: &Model) -> Result<Vec<Arc<dyn Activity>>, String> {
    provider(config, &|name| std::env::var(name).ok()).map(|provider| activity::all(&provider))
}

/// Says what is wrong with a configuration in an environment, for whoever starts a worker with it. A key that is missing is no
/// mistake yet: who asks the model is told.
///
/// # Errors
/// What the worker would refuse to start with.
pub fn check(config: &Model, variable: &dyn Fn(&str) -> Option<String>) -> Result<(), String> {
    provider(config, variable).map(drop)
}

fn provider(config: &Model, variable: Variables<'_>) -> Result<Arc<dyn Provider>, String> {
    Ok(match config {
        Model::Scripted { script, script_name } => Arc::new(scripted::Scripted::new(
            script,
            Some(script_name.as_str()).filter(|name| !name.is_empty()),
        )?),
        Model::Openai(endpoint) => remote(Protocol::Chat, endpoint, variable)?,
        Model::OpenaiResponses(endpoint) => remote(Protocol::Responses, endpoint, variable)?,
        Model::Anthropic(endpoint) => remote(Protocol::Anthropic, endpoint, variable)?,
    })
}

fn remote(
    protocol: Protocol,
    endpoint: &Endpoint,
    variable: Variables<'_>,
) -> Result<Arc<dyn Provider>, String> {
    let first = Arc::new(Remote::new(protocol, endpoint, variable)?);
    let Some(next) = endpoint.fallback.as_deref() else { return Ok(first) };
    let name = match next {
        Model::Scripted { .. } => "the scripted model".to_owned(),
        Model::Openai(next) | Model::OpenaiResponses(next) | Model::Anthropic(next) => next.name.clone(),
    };
    let next = provider(next, variable).map_err(|why| format!("fallback: {why}"))?;
    Ok(Arc::new(fallback::Fallback { first, next, name }))
}

/// A language model.
#[async_trait::async_trait]
pub(crate) trait Provider: Send + Sync + 'static {
    /// Answers once. Shows partial text on the way.
    async fn complete(&self, request: &Request, task: &TaskContext) -> Result<Completion, ModelError>;
}

/// What a model is asked.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// The activity that asks.
    pub(crate) activity: &'static str,
    /// The conversation as the flow keeps it.
    pub(crate) messages: Vec<Message>,
    /// The tools that it may call.
    pub(crate) tools: Vec<ToolSchema>,
    /// The form that the answer must have.
    pub(crate) format: Option<AnswerFormat>,
}

/// A whole answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Completion {
    /// Texts, reasoning and calls in the order in which they came.
    pub(crate) parts: Vec<Part>,
    pub(crate) usage: Json,
    /// Money, a decimal, if prices are known.
    pub(crate) cost: Option<String>,
}

impl Completion {
    /// All that it says; empty if there are only calls.
    pub(crate) fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            Part::Reasoning { .. } | Part::Image { .. } | Part::ToolUse { .. } | Part::ToolAnswer { .. } => {
                None
            }
        });
        texts.collect()
    }

    /// Its calls.
    pub(crate) fn calls(&self) -> Vec<&ToolCall> {
        let calls = self.parts.iter().filter_map(|part| match part {
            Part::ToolUse { call } => Some(call),
            Part::Text { .. } | Part::Reasoning { .. } | Part::Image { .. } | Part::ToolAnswer { .. } => None,
        });
        calls.collect()
    }
}
