//! The model as activities: `model`, `generate` and `extract`.
//!
//! Leaves talking to the providers. Invariant: the message in a reply carries everything that was said, so that the history can be
//! sent again as it is.

use std::sync::Arc;

use outlast_protocol::worker::Offer;
use serde::Deserialize;
use serde_json::json;

use super::error::{Kind, ModelError};
use super::schema::AnswerFormat;
use super::{Completion, Message, Provider, Request};
use crate::Json;
use crate::sdk::{Activity, Done, Failure, TaskContext};

pub(super) const MODEL: &str = "model";
pub(super) const GENERATE: &str = "generate";
pub(super) const EXTRACT: &str = "extract";

/// All activities of a provider.
pub(super) fn all(provider: &Arc<dyn Provider>) -> Vec<Arc<dyn Activity>> {
    vec![
        Arc::new(Turn(provider.clone())),
        Arc::new(Generate(provider.clone())),
        Arc::new(Extract(provider.clone())),
    ]
}

struct Turn(Arc<dyn Provider>);

#[async_trait::async_trait]
impl Activity for Turn {
    fn offer(&self) -> Offer {
        // The class is the flow's to say: asking twice costs money but changes nothing.
        Offer { name: MODEL.to_owned(), ..Offer::default() }
    }

    async fn run(&self, task: TaskContext) -> Result<Done, Failure> {
        let (messages, tools) = (list(&task, "messages")?, list(&task, "schemas")?);
        let request = Request { activity: MODEL, messages, tools, format: None };
        let completion = complete(self.0.as_ref(), &request, &task).await?;
        let (text, calls) = (completion.text(), completion.calls());
        let message =
            Message { role: "assistant".to_owned(), text: text.clone(), parts: completion.parts.clone() };
        let value = if calls.is_empty() {
            json!({"type": "Text", "message": message, "text": text})
        } else {
            json!({"type": "Tools", "message": message, "calls": calls})
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
        let messages = asked(&task)?;
        let request = Request { activity: GENERATE, messages, tools: Vec::new(), format: None };
        let completion = complete(self.0.as_ref(), &request, &task).await?;
        Ok(Done { value: completion.text().into(), cost: completion.cost, usage: Some(completion.usage) })
    }
}

struct Extract(Arc<dyn Provider>);

#[async_trait::async_trait]
impl Activity for Extract {
    fn offer(&self) -> Offer {
        let text = json!({"type": "string"});
        Offer {
            name: EXTRACT.to_owned(),
            input: json!({"type": "object", "properties": {"prompt": text, "schema": {}, "system": text}, "required": ["prompt", "schema"]}),
            ..Offer::default()
        }
    }

    async fn run(&self, task: TaskContext) -> Result<Done, Failure> {
        let Some(schema @ Json::Object(_)) = task.arg("schema") else {
            return Err(Failure::bad_input("schema must be a JSON Schema, such as that of a type: T.schema"));
        };
        let format = AnswerFormat::of(schema);
        let messages = asked(&task)?;
        let request =
            Request { activity: EXTRACT, messages, tools: Vec::new(), format: Some(format.clone()) };
        let completion = complete(self.0.as_ref(), &request, &task).await?;
        let text = completion.text();
        let Completion { usage, cost, .. } = completion;
        match format.read(&text) {
            Ok(value) => Ok(Done { value, cost, usage: Some(usage) }),
            Err(problem) => {
                // Another attempt may well give it.
                let error =
                    ModelError::new(Kind::Cut, format!("the answer is not what was asked for: {problem}"));
                Err(ModelError { cost, usage: Some(usage), ..error }.into())
            }
        }
    }
}

/// The conversation that a prompt makes.
fn asked(task: &TaskContext) -> Result<Vec<Message>, Failure> {
    let system = task.arg("system").and_then(Json::as_str).map(|text| Message::of("system", text));
    let prompt = Message::of("user", task.text("prompt")?);
    Ok(system.into_iter().chain([prompt]).collect())
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
