//! Puts an answer together from the pieces of a chat-completions stream.
//!
//! Servers differ in how they cut tool calls: without index, without id, with the id in every piece, all with index 0, whole, or
//! interleaved. Leaves the transport to its caller. Invariant: what comes out is a whole answer or an error; arguments that are not
//! exactly one JSON object, and calls of an answer that was cut, come out marked so that nothing runs them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::conversation::unique_id;
use super::error::{Kind, ModelError, classify};
use super::{NOT_RUN, ToolCall};
use crate::Json;
use crate::limits::{ERROR_CHARS_MAX, REPLY_BYTES_MAX, REPLY_CALLS_MAX};
use crate::tools::quote;

mod strict;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Assembly {
    text: String,
    reasoning: String,
    refusal: String,
    calls: Vec<Draft>,
    /// Which call a piece with an index belongs to.
    slots: BTreeMap<u64, usize>,
    finish: Option<String>,
    done: bool,
    usage: Json,
    model: Option<String>,
    bytes: usize,
}

#[derive(Debug, Default)]
struct Draft {
    id: String,
    name: String,
    args: String,
}

/// What a piece added, to be shown.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Added {
    pub(crate) text: String,
    /// Whether it added anything at all; signs of life do not.
    pub(crate) something: bool,
}

/// What was put together.
#[derive(Debug, PartialEq)]
pub(crate) struct Assembled {
    pub(crate) text: String,
    pub(crate) reasoning: String,
    pub(crate) calls: Vec<ToolCall>,
    pub(crate) usage: Json,
    pub(crate) model: Option<String>,
    pub(crate) stop: Option<String>,
}

impl Assembly {
    /// The server has said that the stream is over.
    pub(crate) fn done(&mut self) {
        self.done = true;
    }

    /// Whether the end was announced; more pieces can only bring usage.
    pub(crate) fn is_done(&self) -> bool {
        self.done
    }

    /// Whether the answer itself has ended.
    pub(crate) fn has_end(&self) -> bool {
        self.done || self.finish.is_some()
    }

    /// Takes in one piece, or a whole answer.
    pub(crate) fn add(&mut self, piece: &Json) -> Result<Added, ModelError> {
        if piece.get("error").is_some_and(|error| !error.is_null()) {
            return Err(classify(None, piece));
        }
        if let Some(usage) = piece.get("usage").filter(|usage| usage.is_object()) {
            self.usage = usage.clone();
        }
        if let Some(model) = piece.get("model").and_then(Json::as_str) {
            self.model = Some(model.to_owned());
        }
        let mut added = Added::default();
        let choices = piece.get("choices").and_then(Json::as_array);
        // One answer was asked for; a second choice would be mixed into it.
        let first = |choice: &&Json| choice.get("index").and_then(Json::as_u64).unwrap_or(0) == 0;
        let Some(choice) = choices.and_then(|choices| choices.iter().find(first)) else { return Ok(added) };
        if let Some(delta) = choice.get("delta").or_else(|| choice.get("message")) {
            self.add_delta(delta, &mut added)?;
        }
        if let Some(finish) =
            choice.get("finish_reason").and_then(Json::as_str).filter(|reason| !reason.is_empty())
        {
            self.finish = Some(finish.to_owned());
            added.something = true;
        }
        Ok(added)
    }

    fn add_delta(&mut self, delta: &Json, added: &mut Added) -> Result<(), ModelError> {
        added.text = plain_text(delta.get("content"));
        self.text.push_str(&added.text);
        let thought = ["reasoning_content", "reasoning"].iter().find_map(|name| delta.get(name)?.as_str());
        self.reasoning.push_str(thought.unwrap_or_default());
        let refusal = delta.get("refusal").and_then(Json::as_str).unwrap_or_default();
        self.refusal.push_str(refusal);
        self.bytes += added.text.len() + thought.map_or(0, str::len) + refusal.len();
        added.something |=
            !added.text.is_empty() || thought.is_some_and(|t| !t.is_empty()) || !refusal.is_empty();
        for call in delta.get("tool_calls").and_then(Json::as_array).into_iter().flatten() {
            self.add_call(call);
            added.something = true;
        }
        if self.bytes > REPLY_BYTES_MAX || self.calls.len() > REPLY_CALLS_MAX {
            let text = format!("the answer has more than {REPLY_BYTES_MAX} bytes or {REPLY_CALLS_MAX} calls");
            return Err(ModelError::new(Kind::Cut, text).for_good());
        }
        Ok(())
    }

    fn add_call(&mut self, piece: &Json) {
        let function = piece.get("function").unwrap_or(&Json::Null);
        let text = |value: Option<&Json>| value.and_then(Json::as_str).unwrap_or_default().to_owned();
        let (id, name) = (text(piece.get("id")), text(function.get("name")));
        let args = match function.get("arguments") {
            Some(Json::String(args)) => args.clone(),
            // Some servers send the object itself.
            Some(object @ Json::Object(_)) => object.to_string(),
            Some(Json::Null | Json::Bool(_) | Json::Number(_) | Json::Array(_)) | None => String::new(),
        };
        self.bytes += id.len() + name.len() + args.len();
        let index = piece.get("index").and_then(Json::as_u64);
        let known = self.place(index, &id).filter(|at| !self.calls[*at].is_followed_by(&id, &name, &args));
        let at = known.unwrap_or_else(|| {
            self.calls.push(Draft::default());
            self.calls.len() - 1
        });
        if let Some(index) = index {
            self.slots.insert(index, at);
        }
        self.calls[at].add(id, &name, &args);
    }

    /// The call that a piece seems to continue.
    fn place(&self, index: Option<u64>, id: &str) -> Option<usize> {
        let by_id = || self.calls.iter().position(|call| !id.is_empty() && call.id == id);
        match index {
            Some(index) => {
                let slot = self.slots.get(&index).copied();
                // Index 0 throughout with an id for each call: then the id counts.
                let other = slot.is_some_and(|at| {
                    !id.is_empty() && !self.calls[at].id.is_empty() && self.calls[at].id != id
                });
                if other { by_id() } else { slot }
            }
            None if id.is_empty() => self.calls.len().checked_sub(1),
            None => by_id(),
        }
    }

    /// The whole answer; `id` makes ids for calls that have none.
    pub(crate) fn finish(self, id: &str) -> Result<Assembled, ModelError> {
        let finish = self.finish.as_deref();
        if finish == Some("content_filter") {
            return Err(ModelError::new(Kind::Refused, "the provider withheld the answer (content filter)"));
        }
        if finish == Some("error") {
            return Err(ModelError::new(
                Kind::Overloaded,
                "the model's server ended the answer with an error",
            ));
        }
        if finish.is_none() && !self.done {
            return Err(ModelError::new(Kind::Cut, "the answer broke off before its end"));
        }
        let has_text = !self.text.trim().is_empty();
        if !has_text && self.calls.is_empty() {
            return Err(if self.refusal.is_empty() {
                ModelError::new(Kind::Cut, "the answer is empty")
            } else {
                ModelError::new(Kind::Refused, self.refusal)
            });
        }
        let cut = finish == Some("length");
        let mut text = if has_text { self.text } else { String::new() };
        if cut && self.calls.is_empty() {
            text.push_str("\n\n[cut at the token limit]");
        }
        let mut ids = BTreeSet::new();
        let calls = self.calls.into_iter().enumerate().map(|(number, draft)| {
            let id = if draft.id.is_empty() { format!("call_{id}_{}", number + 1) } else { draft.id };
            let args = if cut { not_run(CUT, &draft.args) } else { parse(&draft.args) };
            ToolCall { id: unique_id(&id, &mut ids), name: draft.name, args }
        });
        Ok(Assembled {
            text,
            reasoning: self.reasoning,
            calls: calls.collect(),
            usage: self.usage,
            model: self.model,
            stop: self.finish,
        })
    }
}

const CUT: &str =
    "the answer was cut at the token limit, so none of its calls was run; make smaller calls, one at a time";

impl Draft {
    /// Whether a piece that seems to continue this call in fact begins another.
    fn is_followed_by(&self, id: &str, name: &str, args: &str) -> bool {
        // The same id is the same call, whatever else is repeated.
        if name.is_empty() || (!id.is_empty() && self.id == id) {
            return false;
        }
        let whole = strict::object(&self.args).is_ok();
        if name == self.name { whole && !args.is_empty() } else { !self.args.is_empty() }
    }

    fn add(&mut self, id: String, name: &str, args: &str) {
        if self.id.is_empty() {
            self.id = id;
        }
        // A name that is repeated is not longer; one that comes in parts is.
        if self.name != name {
            self.name.push_str(name);
        }
        self.args.push_str(args);
    }
}

fn parse(args: &str) -> Json {
    match strict::object(args) {
        Ok(object) => object,
        Err(problem) => not_run(&format!("the arguments are not one JSON object ({problem})"), args),
    }
}

fn not_run(why: &str, args: &str) -> Json {
    json!(format!("{NOT_RUN} {why}: {}", quote(args, ERROR_CHARS_MAX)))
}

/// Text, or the texts of a list of parts.
fn plain_text(content: Option<&Json>) -> String {
    match content {
        Some(Json::String(text)) => text.clone(),
        Some(Json::Array(parts)) => parts.iter().filter_map(|part| part.get("text")?.as_str()).collect(),
        Some(Json::Null | Json::Bool(_) | Json::Number(_) | Json::Object(_)) | None => String::new(),
    }
}

#[cfg(test)]
mod tests;
