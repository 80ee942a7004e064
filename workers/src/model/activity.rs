//! The model as activities: `model` and `generate`.
//!
//! Leaves talking to the providers. Invariant: the message in a reply carries everything that was said, so that the history can be
//! sent again as it is.

use std::sync::Arc;

use outlast_protocol::worker::Offer;
use serde::Deserialize;
use serde_json::json;

use super::conversation::Part;
use super::{Completion, Message, Provider, Request};
use crate::Json;
use crate::sdk::{Activity, Done, Failure, TaskContext};

pub(super) const MODEL: &str = "model";
pub(super) const GENERATE: &str = "generate";

/// All activities of a provider.
pub(super) fn all(provider: &Arc<dyn Provider>) -> Vec<Arc<dyn Activity>> {
    vec![Arc::new(Turn(provider.clone())), Arc::new(Generate(provider.clone()))]
}

struct Turn(Arc<dyn Provider>);

#[async_trait::async_trait]
impl Activity for Turn {
    fn offer(&self) -> Offer {
        // The class is the flow's to say: asking twice costs money but changes nothing.
        Offer { name: MODEL.to_owned(), ..Offer::default() }
    }

    async fn run(&self, task: TaskContext) -> Result<Done, Failure> {
        let request =
            Request { activity: MODEL, messages: list(&task, "messages")?, tools: list(&task, "schemas")? };
        let completion = complete(self.0.as_ref(), &request, &task).await?;
        let message = message_of(&completion);
        let value = if completion.calls.is_empty() {
            json!({"type": "Text", "message": message, "text": completion.text})
        } else {
            json!({"type": "Tools", "message": message, "calls": completion.calls})
        };
        Ok(Done { value, cost: completion.cost, usage: Some(completion.usage) })
    }
}

struct Generate(Arc<dyn Provider>);

#[async_trait::async_trait]
impl Activity for Generate {
    fn offer(&self) -> Offer {
        let text = json!({"type": "string"});
        Offer {
            name: GENERATE.to_owned(),
            input: json!({"type": "object", "properties": {"prompt": text, "system": text}, "required": ["prompt"]}),
            output: text,
            effect: String::new(),
        }
    }

    async fn run(&self, task: TaskContext) -> Result<Done, Failure> {
        let system = task.arg("system").and_then(Json::as_str).map(|text| Message::of("system", text));
        let prompt = Message::of("user", task.text("prompt")?);
        let messages = system.into_iter().chain([prompt]).collect();
        let request = Request { activity: GENERATE, messages, tools: Vec::new() };
        let completion = complete(self.0.as_ref(), &request, &task).await?;
        Ok(Done { value: completion.text.into(), cost: completion.cost, usage: Some(completion.usage) })
    }
}

async fn complete(
    provider: &dyn Provider,
    request: &Request,
    task: &TaskContext,
) -> Result<Completion, Failure> {
    provider.complete(request, task).await.map_err(Failure::from)
}

fn list<T: for<'a> Deserialize<'a>>(task: &TaskContext, name: &str) -> Result<Vec<T>, Failure> {
    let Some(value) = task.arg(name) else { return Ok(Vec::new()) };
    Vec::deserialize(value).map_err(|error| Failure::bad_input(format!("{name} does not fit: {error}")))
}

fn message_of(completion: &Completion) -> Message {
    let mut parts = Vec::new();
    if !completion.reasoning.is_empty() {
        parts.push(Part::Reasoning { text: completion.reasoning.clone(), data: None });
    }
    if !completion.text.is_empty() {
        parts.push(Part::Text { text: completion.text.clone() });
    }
    parts.extend(completion.calls.iter().map(|call| Part::ToolUse { call: call.clone() }));
    Message { role: "assistant".to_owned(), text: completion.text.clone(), parts }
}
