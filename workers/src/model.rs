//! The model worker: one turn of a language model as an activity.
//!
//! `model(messages, schemas)` gives the built-in agent's `Reply`, `generate(prompt, system?)` gives text. Two providers stand behind
//! one trait: [`openai`](openai) chat completions, and [`scripted`], which needs no key and answers by rules. Leaves retrying and
//! budgets to the flow. Invariant: a conversation that is sent is whole (every call has its answer), an answer that is given is
//! whole too, and what was cut or broken is never run.

mod activity;
mod assembly;
mod conversation;
mod error;
mod openai;
mod schema;
pub mod scripted;
mod sse;

use std::sync::Arc;

pub(crate) use conversation::{Message, ToolCall, ToolSchema};
pub(crate) use error::ModelError;

use crate::Json;
use crate::options::ModelConfig;
use crate::sdk::{Activity, TaskContext};

/// How the arguments of a call begin that must not be run, followed by why. No JSON object begins so, and the tool worker hands
/// the text back to the model.
pub(crate) const NOT_RUN: &str = "not run:";

/// The script of the built-in agent: looks around, asks to run a command, sums up.
pub const AGENT_SCRIPT: &str = include_str!("model/agent.script.json");

/// Makes the activities of the model worker.
///
/// # Errors
/// What is wrong with the configuration.
pub fn activities(config: &ModelConfig) -> Result<Vec<Arc<dyn Activity>>, String> {
    let provider: Arc<dyn Provider> = match config {
        ModelConfig::Scripted { script, script_name } => {
            Arc::new(scripted::Scripted::new(script, script_name.as_deref())?)
        }
        ModelConfig::Openai(settings) => Arc::new(openai::OpenAi::new(settings)?),
    };
    Ok(activity::all(&provider))
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
}

/// A whole answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Completion {
    /// Empty if there are only calls.
    pub(crate) text: String,
    pub(crate) reasoning: String,
    pub(crate) calls: Vec<ToolCall>,
    pub(crate) usage: Json,
    /// Money, a decimal, if prices are known.
    pub(crate) cost: Option<String>,
}
