//! A model that answers by a script: for tests, demonstrations, and trying flows without a key.
//!
//! A script is JSON:
//!
//! ```json
//! {
//!   "name": "demo",
//!   "rules": [
//!     {"when": {"activity": "model", "user_has": "tidy", "turn": 0},
//!      "say": "Let me look.", "calls": [{"name": "list", "args": {"path": "."}}], "delay_ms": 500, "pieces": 10},
//!     {"when": {"tool_has": "refused"}, "say": "Then I leave it: {last_tool}"},
//!     {"when": {"user_has": "busy", "attempt": 1}, "fail": {"kind": "RateLimited", "text": "slow down", "retry_after": "2s"}},
//!     {"say": "You said: {words 5}"}
//!   ]
//! }
//! ```
//!
//! The first rule whose `when` fits answers; what is left out fits everything:
//!
//! | `when` | fits if |
//! | --- | --- |
//! | `activity` | the activity is `model`, `generate` or `extract` |
//! | `user_has` | the last user message contains the text (upper and lower case count) |
//! | `system_has` | a system message contains the text |
//! | `tool_has` | the last message is a tool's answer and contains the text |
//! | `turn` | that many messages of the model came since the last user message |
//! | `turn_min` | at least that many |
//! | `offers` | a tool of this name is offered |
//! | `attempt` | it is the operation's n-th attempt |
//!
//! A rule has `say` (text), `calls` (tool calls), or both, or `fail` (an error: `kind`, `text`, `retry_after`; kinds as of a real
//! model). With `delay_ms` the reply takes that long and is streamed in `pieces`, so that it can be interrupted in the middle.
//!
//! In `say` and in every text of `args` stand placeholders: `{last_user}`, `{last_tool}` (text of the last tool answer),
//! `{first_line}` (of the last user message), `{words N}` (the first N words of it), `{first_file}` (the first line of the last tool
//! answer that does not end in `/`), `{turn}`; `{{` and `}}` are braces. What is put in is not looked at for placeholders again.
//!
//! Leaves nothing to chance. Invariant: a reply depends on the script, the conversation and the attempt, never on time, order or
//! earlier calls; so a run that was killed ends as a calm one does. It says that it is scripted: in the model's name in `usage` and
//! at the beginning of what it streams.

use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use super::conversation::{Part, text_of};
use super::error::{Kind, ModelError};
use super::{Completion, Message, Provider, Request, ToolCall};
use crate::Json;
use crate::limits::{SCRIPT_DELAY_MS_MAX, SCRIPT_PIECES};
use crate::sdk::TaskContext;

mod template;

use template::{Facts, Template};

/// A scripted model.
#[derive(Debug)]
pub(crate) struct Scripted {
    name: String,
    rules: Vec<Rule>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Script {
    #[serde(default)]
    name: Option<String>,
    rules: Vec<Rule>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    #[serde(default)]
    when: When,
    #[serde(default)]
    say: Template,
    #[serde(default)]
    calls: Vec<Call>,
    #[serde(default)]
    fail: Option<Fail>,
    #[serde(default)]
    delay_ms: u64,
    #[serde(default)]
    pieces: Option<u32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct When {
    activity: Option<String>,
    user_has: Option<String>,
    system_has: Option<String>,
    tool_has: Option<String>,
    turn: Option<usize>,
    turn_min: Option<usize>,
    offers: Option<String>,
    attempt: Option<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    name: String,
    args: Json,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fail {
    kind: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    retry_after: Option<Json>,
}

impl Scripted {
    /// Reads a script; `name` is used if the script has none.
    pub(crate) fn new(script: &str, name: Option<&str>) -> Result<Scripted, String> {
        let script: Script = serde_json::from_str(script).map_err(|error| format!("the script: {error}"))?;
        for (number, rule) in script.rules.iter().enumerate() {
            rule.check().map_err(|problem| format!("rule {} of the script: {problem}", number + 1))?;
        }
        let name = script.name.as_deref().or(name).unwrap_or("script").to_owned();
        Ok(Scripted { name, rules: script.rules })
    }

    fn reply(&self, request: &Request, attempt: u32) -> Result<(&Rule, Completion), ModelError> {
        let facts = facts(&request.messages);
        let fits = |rule: &&Rule| rule.when.fits(request, &facts, attempt);
        let Some((at, rule)) = self.rules.iter().enumerate().find(|(_, rule)| fits(rule)) else {
            let text = format!("no rule of the script {} fits", self.name);
            return Err(ModelError::new(Kind::BadRequest, text));
        };
        tracing::debug!(script = self.name, rule = at + 1, "a scripted reply");
        if let Some(fail) = &rule.fail {
            return Err(fail.error());
        }
        let said = request.messages.iter().filter(|message| message.role == "assistant").count();
        let calls = rule.calls.iter().enumerate().map(|(number, call)| {
            let args = template::filled(&call.args, &facts)
                .map_err(|text| ModelError::new(Kind::BadRequest, text))?;
            // The place in the conversation makes the id: the same in every run that says the same.
            Ok(ToolCall { id: format!("call_{}_{}", said + 1, number + 1), name: call.name.clone(), args })
        });
        let calls = calls.collect::<Result<Vec<ToolCall>, ModelError>>()?;
        let text = rule.say.fill(&facts);
        let words = |text: &str| text.split_whitespace().count();
        let heard: usize = request.messages.iter().map(|message| words(&message.text)).sum();
        let usage = json!({
            "model": format!("scripted:{}", self.name),
            "scripted": true,
            "rule": at + 1,
            "input_tokens": heard,
            "output_tokens": words(&text) + calls.len(),
        });
        let text = (!text.is_empty()).then_some(Part::Text { text });
        let parts = text.into_iter().chain(calls.into_iter().map(|call| Part::ToolUse { call })).collect();
        Ok((rule, Completion { parts, usage, cost: None }))
    }
}

#[async_trait::async_trait]
impl Provider for Scripted {
    async fn complete(&self, request: &Request, task: &TaskContext) -> Result<Completion, ModelError> {
        task.progress(&format!("[scripted: {}]\n", self.name));
        let (rule, completion) = self.reply(request, task.attempt())?;
        let pieces = rule.pieces.unwrap_or(SCRIPT_PIECES).max(1);
        // As of a real model, only text is shown as it comes, not calls.
        let chars: Vec<char> = completion.text().chars().collect();
        if chars.is_empty() {
            tokio::time::sleep(Duration::from_millis(rule.delay_ms)).await;
        }
        for piece in chars.chunks(chars.len().div_ceil(pieces as usize).max(1)) {
            if rule.delay_ms > 0 {
                tokio::time::sleep(Duration::from_millis(rule.delay_ms) / pieces).await;
            }
            task.progress(&piece.iter().collect::<String>());
        }
        Ok(completion)
    }
}

impl Rule {
    fn check(&self) -> Result<(), String> {
        if self.fail.is_none() && self.say.is_empty() && self.calls.is_empty() {
            return Err("it has neither say nor calls nor fail".to_owned());
        }
        if let Some(fail) = &self.fail {
            fail.kind()?;
        }
        if self.delay_ms > SCRIPT_DELAY_MS_MAX {
            return Err(format!("delay_ms is over {SCRIPT_DELAY_MS_MAX}"));
        }
        self.calls.iter().try_for_each(|call| template::filled(&call.args, &Facts::default()).map(drop))
    }
}

impl When {
    fn fits(&self, request: &Request, facts: &Facts, attempt: u32) -> bool {
        let has = |wanted: &Option<String>, text: Option<&str>| match wanted {
            Some(wanted) => text.is_some_and(|text| text.contains(wanted.as_str())),
            None => true,
        };
        self.activity.as_deref().is_none_or(|activity| activity == request.activity)
            && has(&self.user_has, Some(&facts.last_user))
            && has(&self.system_has, Some(&facts.system))
            && has(&self.tool_has, facts.after_tool.then_some(facts.last_tool.as_str()))
            && self.turn.is_none_or(|turn| turn == facts.turn)
            && self.turn_min.is_none_or(|turn| turn <= facts.turn)
            && self.offers.as_ref().is_none_or(|name| request.tools.iter().any(|tool| tool.name == *name))
            && self.attempt.is_none_or(|wanted| wanted == attempt)
    }
}

impl Fail {
    fn kind(&self) -> Result<Kind, String> {
        let all = [
            Kind::RateLimited,
            Kind::Overloaded,
            Kind::ContextOverflow,
            Kind::BadRequest,
            Kind::Auth,
            Kind::Refused,
            Kind::Timeout,
            Kind::Cut,
        ];
        all.into_iter()
            .find(|kind| kind.name() == self.kind)
            .ok_or_else(|| format!("there is no error {}", self.kind))
    }

    fn error(&self) -> ModelError {
        let kind = self.kind().unwrap_or(Kind::BadRequest);
        ModelError::new(kind, &*self.text).after(self.retry_after.as_ref().and_then(crate::tools::time))
    }
}

fn facts(messages: &[Message]) -> Facts {
    let mut facts = Facts::default();
    for message in messages {
        let text = text_of(message).unwrap_or_default();
        match message.role.as_str() {
            "system" => facts.system.push_str(&text),
            "assistant" => {
                facts.turn += 1;
                facts.after_tool = false;
            }
            "tool" => {
                facts.last_tool = message.parts.iter().find_map(answer).unwrap_or(text);
                facts.after_tool = true;
            }
            _ => {
                facts = Facts {
                    last_user: text,
                    system: facts.system,
                    last_tool: facts.last_tool,
                    ..Facts::default()
                }
            }
        }
    }
    facts
}

fn answer(part: &Part) -> Option<String> {
    match part {
        Part::ToolAnswer { result } => Some(result.text.clone()),
        Part::Text { .. } | Part::Reasoning { .. } | Part::Image { .. } | Part::ToolUse { .. } => None,
    }
}

#[cfg(test)]
mod tests;
