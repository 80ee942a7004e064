//! A model behind an endpoint: asks in its protocol and makes the answer a [`Completion`].
//!
//! The protocols are written here by hand, on a plain HTTP client. A client library for many providers was weighed and left out: it
//! gives answers in its own types, and what this worker promises is lost there, namely reasoning, signatures and encrypted items
//! byte for byte, the provider's own stop reason, what is wrong with arguments that are no object, errors inside a stream told
//! apart, and limits on all of it. Leaves the wire to [`super::wire`], the conversation's rules to [`super::conversation`].
//! Invariant: nothing is retried here; what a provider was asked is decided by the conversation and the settings (the protocol's
//! [`Endpoint`]) alone. Prices that the settings leave out are those of the worker's own environment; how fast it is asked is the
//! runtime's matter, which knows all workers.

use outlast_protocol::profile::Endpoint;
use reqwest::RequestBuilder;

use super::conversation::{Reader, Turn, turns};
use super::error::{Kind, ModelError};
use super::heard::{Answer, Assemble};
use super::pricing::{PRICES_VARIABLE, Rates, rates};
use super::wire::Wire;
use super::{Completion, Provider, Request, Variables, anthropic, chat, responses};
use crate::Json;
use crate::limits::KEY_CHARS;
use crate::sdk::TaskContext;

/// A language of providers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Chat,
    Responses,
    Anthropic,
}

/// See the module.
pub(crate) struct Remote {
    protocol: Protocol,
    wire: Wire,
    settings: Endpoint,
    /// Names protocol and model: what this model thought goes back to no other.
    author: String,
    rates: Option<Rates>,
}

/// Reads a variable of the environment that holds a count; none if it is not set.
///
/// # Errors
/// If it holds anything else, with the variable's name.
pub fn count(name: &str, variable: Variables<'_>) -> Result<Option<u64>, String> {
    let Some(text) = variable(name).filter(|text| !text.trim().is_empty()) else { return Ok(None) };
    let count = text.trim().parse().ok().filter(|count| *count > 0);
    count.map(Some).ok_or_else(|| format!("{name} is {text:?}: expected a number, 1 or more"))
}

impl Remote {
    /// What `settings` leave out of prices, and the key, come from the environment.
    pub(crate) fn new(
        protocol: Protocol,
        settings: &Endpoint,
        variable: Variables<'_>,
    ) -> Result<Remote, String> {
        let table = variable(PRICES_VARIABLE).filter(|path| !path.is_empty());
        let rates = rates(&settings.name, settings.prices.as_ref(), table.as_deref())?;
        if rates.is_none() {
            tracing::info!(
                model = settings.name,
                "no price is known for this model, so its cost is not counted"
            );
        }
        for name in settings.options.keys() {
            if OWN_FIELDS.contains(&name.as_str()) {
                return Err(format!(
                    "the model's options may not set {name:?}, which is made from the conversation"
                ));
            }
        }
        Ok(Remote {
            protocol,
            wire: Wire::new(settings, protocol.path(), variable)?,
            settings: settings.clone(),
            author: format!("{}/{}", protocol.name(), settings.name),
            rates,
        })
    }

    fn body(&self, request: &Request) -> Result<Json, ModelError> {
        let reader = Reader { name: &self.author, plain_ids: self.protocol != Protocol::Chat };
        let turns = turns(&request.messages, reader);
        if !turns.iter().any(|turn| !matches!(turn, Turn::System { .. })) {
            let text = "there is nothing to answer: the conversation is empty";
            return Err(ModelError::new(Kind::BadRequest, text));
        }
        let (tools, format) = (request.tools.as_slice(), request.format.as_ref());
        let mut body = match self.protocol {
            Protocol::Chat => chat::body(&turns, tools, format),
            Protocol::Responses => responses::body(&turns, tools, format, &self.settings.name),
            Protocol::Anthropic => anthropic::body(&turns, tools, format),
        };
        body["model"] = self.settings.name.clone().into();
        body["stream"] = true.into();
        if let Some(max_tokens) = self.settings.max_tokens {
            body[self.protocol.max_tokens()] = max_tokens.into();
        }
        for (name, value) in &self.settings.options {
            set(&mut body, name, value);
        }
        Ok(body)
    }

    async fn ask(&self, request: &Request, task: &TaskContext) -> Result<Answer, ModelError> {
        let body = self.body(request)?;
        let sized = |error: ModelError| match error.kind {
            Kind::ContextOverflow => error.noting(&sizes(request)),
            Kind::BadRequest => error.noting(&format!("the model asked for is {:?}", self.settings.name)),
            Kind::RateLimited | Kind::Overloaded | Kind::Auth | Kind::Refused | Kind::Timeout | Kind::Cut => {
                error
            }
        };
        let response =
            self.wire.send(&body, |r, key| self.protocol.sign(r, key, task)).await.map_err(sized)?;
        let mut assembly = self.protocol.assembly(&self.author);
        let read = self.wire.read(response, assembly.as_mut(), task).await;
        let heard = assembly.heard();
        // What was heard is paid for, also if it broke off or makes no answer.
        let cost = self.rates.and_then(|rates| rates.cost(&heard.usage));
        let usage = heard.usage.shown();
        let answer = read.and_then(|()| heard.answer(&task.op().replace('.', "_")));
        answer.map_err(|error| ModelError { cost, usage: Some(usage), ..sized(error) })
    }

    fn completion(&self, answer: Answer) -> Completion {
        let mut usage = answer.usage.shown();
        usage["model"] = answer.model.unwrap_or_else(|| self.settings.name.clone()).into();
        if let Some(stop) = answer.stop {
            usage["stop"] = stop.into();
        }
        let cost = self.rates.and_then(|rates| rates.cost(&answer.usage));
        Completion { parts: answer.parts, usage, cost }
    }
}

#[async_trait::async_trait]
impl Provider for Remote {
    async fn complete(&self, request: &Request, task: &TaskContext) -> Result<Completion, ModelError> {
        let answer = self.ask(request, task).await;
        answer.map(|answer| self.completion(answer)).map_err(|error| self.wire.explained(error))
    }
}

impl Protocol {
    fn name(self) -> &'static str {
        match self {
            Protocol::Chat => "chat",
            Protocol::Responses => "responses",
            Protocol::Anthropic => "anthropic",
        }
    }

    fn path(self) -> &'static str {
        match self {
            Protocol::Chat => "/chat/completions",
            Protocol::Responses => "/responses",
            Protocol::Anthropic => "/messages",
        }
    }

    fn max_tokens(self) -> &'static str {
        match self {
            Protocol::Chat | Protocol::Anthropic => "max_tokens",
            Protocol::Responses => "max_output_tokens",
        }
    }

    fn assembly(self, author: &str) -> Box<dyn Assemble> {
        match self {
            Protocol::Chat => Box::new(chat::Assembly::new(author)),
            Protocol::Responses => Box::new(responses::Assembly::new(author)),
            Protocol::Anthropic => Box::new(anthropic::Assembly::new(author)),
        }
    }

    fn sign(self, request: RequestBuilder, key: Option<&str>, task: &TaskContext) -> RequestBuilder {
        match self {
            Protocol::Chat | Protocol::Responses => {
                let request = match key {
                    Some(key) => request.bearer_auth(key),
                    None => request,
                };
                // The same for every attempt of the operation; hashed, since it names the run.
                let hash = blake3::hash(task.key().as_bytes()).to_hex();
                request.header("idempotency-key", &hash.as_str()[..KEY_CHARS])
            }
            Protocol::Anthropic => {
                let request = request.header("anthropic-version", anthropic::VERSION);
                match key {
                    Some(key) => request.header("x-api-key", key),
                    None => request,
                }
            }
        }
    }
}

/// What the conversation and the task say; options add to it and do not replace it.
const OWN_FIELDS: [&str; 9] =
    ["model", "messages", "input", "instructions", "system", "tools", "stream", "stream_options", "store"];

/// Sets a field; of objects, field by field, so that what stands beside it stays.
fn set(body: &mut Json, name: &str, value: &Json) {
    match (body.get_mut(name), value) {
        (Some(Json::Object(before)), Json::Object(more)) => {
            before.extend(more.iter().map(|(name, value)| (name.clone(), value.clone())));
        }
        (_, value) => body[name] = value.clone(),
    }
}

/// What takes how much room, for whoever has to shorten it.
fn sizes(request: &Request) -> String {
    let length = |value: Result<String, _>| value.map_or(0, |text: String| text.len());
    let (mut system, mut rest, mut longest) = (0, 0, 0);
    for message in &request.messages {
        let size = length(serde_json::to_string(message));
        if message.role == "system" {
            system += size;
        } else {
            rest += size;
            longest = longest.max(size);
        }
    }
    let tools = length(serde_json::to_string(&request.tools));
    format!(
        "bytes sent: system {system}, tools {tools}, conversation {rest} in {} messages, the longest {longest}",
        request.messages.len()
    )
}
