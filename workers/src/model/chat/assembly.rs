//! Puts an answer together from the pieces of a chat-completions stream.
//!
//! Servers differ in how they cut tool calls: without index, without id, with the id in every piece, all with index 0, whole, or
//! interleaved. Leaves judging the answer to [`crate::model::heard`]. Invariant: no piece is counted to two calls, and none is lost.

use std::collections::BTreeMap;

use serde_json::json;

use crate::Json;
use crate::model::error::{ModelError, classify};
use crate::model::heard::{Added, Assemble, Bit, End, Heard, Progress, Weight, count_at, object, text_at};
use crate::model::pricing::Usage;

/// See the module.
#[derive(Debug)]
pub(crate) struct Assembly {
    /// Names the model that thinks.
    author: String,
    text: String,
    reasoning: String,
    /// The field in which reasoning came: it goes back in the same.
    reasoning_field: Option<&'static str>,
    /// Reasoning in the form of gateways: signed, encrypted, or plain.
    details: Vec<Json>,
    refusal: String,
    calls: Vec<Draft>,
    /// Which call a piece with an index belongs to.
    slots: BTreeMap<u64, usize>,
    finish: Option<String>,
    done: bool,
    usage: Json,
    model: Option<String>,
    weight: Weight,
}

#[derive(Debug, Default)]
struct Draft {
    id: String,
    name: String,
    args: String,
    /// What the provider wants back with this call: a signature, for one.
    extra: Option<Json>,
}

impl Assembly {
    pub(crate) fn new(author: &str) -> Assembly {
        Assembly {
            author: author.to_owned(),
            text: String::new(),
            reasoning: String::new(),
            reasoning_field: None,
            details: Vec::new(),
            refusal: String::new(),
            calls: Vec::new(),
            slots: BTreeMap::new(),
            finish: None,
            done: false,
            usage: Json::Null,
            model: None,
            weight: Weight::default(),
        }
    }
}

impl Assemble for Assembly {
    fn add(&mut self, piece: &Json) -> Result<Added, ModelError> {
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

    fn done(&mut self) {
        self.done = true;
    }

    fn progress(&self) -> Progress {
        match (self.done, &self.finish) {
            (true, _) => Progress::Over,
            (false, Some(_)) => Progress::Ended,
            (false, None) => Progress::Open,
        }
    }

    fn heard(self: Box<Self>) -> Heard {
        let end = match self.finish.as_deref() {
            Some("content_filter") => End::Refused,
            Some("error") => End::Failed,
            Some("length") => End::Cut,
            Some(_) => End::Whole,
            // Some servers say that the stream is over and nothing else.
            None if self.done => End::Whole,
            None => End::Broken,
        };
        let refusal = match (&end, self.refusal.is_empty()) {
            (End::Refused, true) => "the provider withheld the answer (content filter)".to_owned(),
            (_, _) => self.refusal.clone(),
        };
        let kept = self.kept();
        let reasoning = kept.map(|data| Bit::Reasoning { text: self.reasoning.clone(), data }).into_iter();
        let text = std::iter::once(Bit::Text(self.text));
        let calls = self.calls.into_iter().map(|Draft { id, name, args, .. }| Bit::Call { id, name, args });
        Heard {
            parts: reasoning.chain(text).chain(calls).collect(),
            refusal,
            end,
            usage: usage(&self.usage),
            model: self.model,
            stop: self.finish,
        }
    }
}

impl Assembly {
    /// What goes back to the model with its reasoning, if there is any.
    fn kept(&self) -> Option<Json> {
        let has_extras = self.calls.iter().any(|call| call.extra.is_some());
        if self.reasoning.is_empty() && self.details.is_empty() && !has_extras {
            return None;
        }
        let mut data = json!({"by": self.author});
        if let Some(field) = self.reasoning_field {
            data["field"] = field.into();
        }
        if !self.details.is_empty() {
            data["details"] = self.details.clone().into();
        }
        if has_extras {
            // In the order of the calls: ids may be changed on the way.
            data["extra_content"] =
                self.calls.iter().map(|call| call.extra.clone().unwrap_or_default()).collect();
        }
        Some(data)
    }

    fn add_delta(&mut self, delta: &Json, added: &mut Added) -> Result<(), ModelError> {
        added.text = plain_text(delta.get("content"));
        self.text.push_str(&added.text);
        for field in ["reasoning_content", "reasoning"] {
            // Some servers send the same thought under both names.
            let thought = text_at(delta, &format!("/{field}"));
            if !thought.is_empty() && self.reasoning_field.is_none_or(|known| known == field) {
                self.reasoning_field = Some(field);
                self.reasoning.push_str(thought);
                self.weight.add(thought.len(), 0)?;
                added.something = true;
            }
        }
        for detail in delta.get("reasoning_details").and_then(Json::as_array).into_iter().flatten() {
            self.weight.add(detail.to_string().len(), 0)?;
            self.add_detail(detail);
            added.something = true;
        }
        let refusal = text_at(delta, "/refusal");
        self.refusal.push_str(refusal);
        self.weight.add(added.text.len() + refusal.len(), 0)?;
        added.something |= !added.text.is_empty() || !refusal.is_empty();
        for call in delta.get("tool_calls").and_then(Json::as_array).into_iter().flatten() {
            self.add_call(call)?;
            added.something = true;
        }
        Ok(())
    }

    /// Continues the detail with the same place and kind, or begins one.
    fn add_detail(&mut self, piece: &Json) {
        let same = |detail: &&mut Json| {
            piece.get("index").is_some()
                && ["index", "type", "id"].iter().all(|name| match (detail.get(name), piece.get(name)) {
                    (Some(one), Some(other)) => one == other || one.is_null() || other.is_null(),
                    (None, _) | (_, None) => true,
                })
        };
        let Some(Json::Object(detail)) = self.details.iter_mut().rev().find(same) else {
            self.details.push(piece.clone());
            return;
        };
        for (name, value) in piece.as_object().into_iter().flatten() {
            match (detail.get_mut(name), value) {
                (Some(Json::String(before)), Json::String(more))
                    if ["text", "summary", "data", "signature"].contains(&name.as_str()) =>
                {
                    before.push_str(more);
                }
                (Some(_), Json::Null) => {}
                (_, value) => {
                    detail.insert(name.clone(), value.clone());
                }
            }
        }
    }

    fn add_call(&mut self, piece: &Json) -> Result<(), ModelError> {
        let function = piece.get("function").unwrap_or(&Json::Null);
        let (id, name) = (text_at(piece, "/id").to_owned(), text_at(function, "/name").to_owned());
        let args = match function.get("arguments") {
            Some(Json::String(args)) => args.clone(),
            // Some servers send the object itself.
            Some(object @ Json::Object(_)) => object.to_string(),
            Some(Json::Null | Json::Bool(_) | Json::Number(_) | Json::Array(_)) | None => String::new(),
        };
        let bytes = id.len() + name.len() + args.len();
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
        if let Some(extra) = piece.get("extra_content").filter(|extra| extra.is_object()) {
            self.weight.add(extra.to_string().len(), 0)?;
            self.calls[at].extra = Some(extra.clone());
        }
        self.weight.add(bytes, self.calls.len())
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
}

impl Draft {
    /// Whether a piece that seems to continue this call in fact begins another.
    fn is_followed_by(&self, id: &str, name: &str, args: &str) -> bool {
        // The same id is the same call, whatever else is repeated.
        if name.is_empty() || (!id.is_empty() && self.id == id) {
            return false;
        }
        let whole = self.args.trim_end().ends_with('}') && object(&self.args).is_ok();
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

/// What the answer took.
fn usage(usage: &Json) -> Usage {
    Usage {
        input: count_at(usage, "/prompt_tokens"),
        cached: count_at(usage, "/prompt_tokens_details/cached_tokens"),
        cache_written: None,
        output: count_at(usage, "/completion_tokens"),
        reasoning: count_at(usage, "/completion_tokens_details/reasoning_tokens"),
    }
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
