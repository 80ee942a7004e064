//! Puts an answer together from the events of a response.
//!
//! An item is known by its place in the output; what its end says of it stands above what its pieces said. Leaves judging the answer
//! to [`crate::model::heard`]. Invariant: a response that did not say that it is complete is not.

use std::collections::BTreeMap;

use serde_json::json;

use crate::Json;
use crate::model::error::{ModelError, classify};
use crate::model::heard::{Added, Assemble, Bit, End, Heard, Progress, Weight, count_at, text_at};
use crate::model::pricing::Usage;

/// See the module.
#[derive(Debug)]
pub(crate) struct Assembly {
    /// Names the model that thinks.
    author: String,
    items: BTreeMap<u64, Item>,
    /// The response as its last event gives it.
    response: Option<Json>,
    /// The stream ended by the book, which adds nothing to the response.
    done: bool,
    weight: Weight,
}

#[derive(Debug)]
enum Item {
    Message {
        text: String,
        refusal: String,
    },
    Call {
        id: String,
        name: String,
        args: String,
    },
    /// Whole only at its end.
    Reasoning {
        text: String,
        item: Option<Json>,
    },
    /// Nothing that we asked for.
    Other,
}

impl Assembly {
    pub(crate) fn new(author: &str) -> Assembly {
        Assembly {
            author: author.to_owned(),
            items: BTreeMap::new(),
            response: None,
            done: false,
            weight: Weight::default(),
        }
    }

    /// Takes in a whole item: what its pieces said is replaced, and weighs no second time.
    fn put(&mut self, at: u64, item: &Json) -> Result<(), ModelError> {
        let read = Item::read(item);
        let bytes = read.bytes();
        let replaced = self.items.insert(at, read).map_or(0, |before| before.bytes());
        let calls = self.calls();
        self.weight.add(bytes.saturating_sub(replaced), calls)
    }

    fn calls(&self) -> usize {
        self.items.values().filter(|item| matches!(item, Item::Call { .. })).count()
    }

    /// Adds to an item; a server may leave out its beginning.
    fn grow(&mut self, at: u64, delta: &str, field: Field) -> Result<(), ModelError> {
        let item = self.items.entry(at).or_insert_with(|| field.beginning());
        match (field, item) {
            (Field::Text, Item::Message { text, .. }) | (Field::Thought, Item::Reasoning { text, .. }) => {
                text.push_str(delta);
            }
            (Field::Refusal, Item::Message { refusal, .. }) => refusal.push_str(delta),
            (Field::Args, Item::Call { args, .. }) => args.push_str(delta),
            // A piece of another kind than its item says nothing; the item's end does.
            (Field::Text | Field::Refusal | Field::Thought | Field::Args, _) => {}
        }
        let calls = self.calls();
        self.weight.add(delta.len(), calls)
    }

    fn end(&mut self, response: &Json) -> Result<(), ModelError> {
        let output = response.get("output").and_then(Json::as_array).into_iter().flatten();
        for (at, item) in output.enumerate() {
            self.put(at as u64, item)?;
        }
        self.response = Some(response.clone());
        Ok(())
    }

    fn event(&mut self, kind: &str, event: &Json, added: &mut Added) -> Result<(), ModelError> {
        let at = count_at(event, "/output_index").unwrap_or(0);
        let delta = text_at(event, "/delta");
        let field = match kind {
            "response.output_text.delta" => Field::Text,
            "response.refusal.delta" => Field::Refusal,
            "response.function_call_arguments.delta" => Field::Args,
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => Field::Thought,
            "response.output_item.added" | "response.output_item.done" => {
                added.something = true;
                return self.put(at, event.get("item").unwrap_or(&Json::Null));
            }
            "response.completed" | "response.incomplete" => {
                added.something = true;
                return self.end(event.get("response").unwrap_or(&Json::Null));
            }
            "response.failed" => return Err(failure(event.get("response").unwrap_or(&Json::Null))),
            "error" => return Err(classify(None, event)),
            // Beginnings, ends of parts, and tools of the server, of which none was asked for.
            _ => return Ok(()),
        };
        if matches!(field, Field::Text) {
            delta.clone_into(&mut added.text);
        }
        added.something = !delta.is_empty();
        self.grow(at, delta, field)
    }
}

impl Assemble for Assembly {
    fn add(&mut self, piece: &Json) -> Result<Added, ModelError> {
        let mut added = Added::default();
        if piece.get("error").is_some_and(|error| !error.is_null()) {
            return Err(classify(None, piece));
        }
        if let Some(kind) = piece.get("type").and_then(Json::as_str) {
            self.event(kind, piece, &mut added)?;
        } else if piece.get("object").and_then(Json::as_str) == Some("response") {
            // A server that does not stream gives the response itself.
            self.end(piece)?;
            added.something = true;
        }
        Ok(added)
    }

    fn done(&mut self) {
        self.done = true;
    }

    fn progress(&self) -> Progress {
        // The last event carries the figures, so nothing is waited for behind it.
        if self.response.is_some() || self.done { Progress::Over } else { Progress::Open }
    }

    fn heard(self: Box<Self>) -> Heard {
        let mut refusals = String::new();
        let mut parts = Vec::new();
        for item in self.items.into_values() {
            match item {
                Item::Message { text, refusal } => {
                    refusals.push_str(&refusal);
                    parts.push(Bit::Text(text));
                }
                Item::Call { id, name, args } => parts.push(Bit::Call { id, name, args }),
                Item::Reasoning { text, item: Some(item) } => {
                    parts.push(Bit::Reasoning { text, data: json!({"by": self.author, "item": item}) });
                }
                Item::Reasoning { item: None, .. } | Item::Other => {}
            }
        }
        let Some(response) = self.response else {
            return Heard { parts, refusal: refusals, ..Heard::default() };
        };
        let status = text_at(&response, "/status");
        let reason = text_at(&response, "/incomplete_details/reason");
        let end = match (status, reason) {
            (_, "max_output_tokens") => End::Cut,
            (_, "content_filter") => End::Refused,
            ("failed", _) => End::Failed,
            ("incomplete" | "cancelled" | "in_progress" | "queued", _) => End::Broken,
            (_, _) => End::Whole,
        };
        let stop = if reason.is_empty() { status } else { reason };
        Heard {
            parts,
            refusal: refusals,
            end,
            usage: usage(&response),
            model: response.get("model").and_then(Json::as_str).map(str::to_owned),
            stop: (!stop.is_empty()).then(|| stop.to_owned()),
        }
    }
}

#[derive(Clone, Copy)]
enum Field {
    Text,
    Refusal,
    Args,
    Thought,
}

impl Field {
    fn beginning(self) -> Item {
        match self {
            Field::Text | Field::Refusal => Item::Message { text: String::new(), refusal: String::new() },
            Field::Args => Item::Call { id: String::new(), name: String::new(), args: String::new() },
            Field::Thought => Item::Reasoning { text: String::new(), item: None },
        }
    }
}

impl Item {
    fn read(item: &Json) -> Item {
        let texts = |list: &str, field: &str| {
            let parts = item.get(list).and_then(Json::as_array).into_iter().flatten();
            parts.filter_map(|part| part.get(field)?.as_str()).collect::<String>()
        };
        match text_at(item, "/type") {
            "message" => {
                Item::Message { text: texts("content", "text"), refusal: texts("content", "refusal") }
            }
            "function_call" => {
                let text = |pointer| text_at(item, pointer).to_owned();
                Item::Call { id: text("/call_id"), name: text("/name"), args: text("/arguments") }
            }
            "reasoning" => {
                let mut kept = item.clone();
                if let Some(fields) = kept.as_object_mut() {
                    // What is not set may not be sent.
                    fields.retain(|_, value| !value.is_null());
                }
                // Without it the server would look for an item that it was told not to keep.
                let kept = (!text_at(item, "/encrypted_content").is_empty()).then_some(kept);
                Item::Reasoning { text: texts("summary", "text"), item: kept }
            }
            _ => Item::Other,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Item::Message { text, refusal } => text.len() + refusal.len(),
            Item::Call { id, name, args } => id.len() + name.len() + args.len(),
            Item::Reasoning { text, item } => {
                text.len() + item.as_ref().map_or(0, |item| text_at(item, "/encrypted_content").len())
            }
            Item::Other => 0,
        }
    }
}

fn failure(response: &Json) -> ModelError {
    let error = response.get("error").cloned().unwrap_or_default();
    classify(None, &json!({"error": error}))
}

fn usage(response: &Json) -> Usage {
    Usage {
        input: count_at(response, "/usage/input_tokens"),
        cached: count_at(response, "/usage/input_tokens_details/cached_tokens"),
        cache_written: None,
        output: count_at(response, "/usage/output_tokens"),
        reasoning: count_at(response, "/usage/output_tokens_details/reasoning_tokens"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::REPLY_BYTES_MAX;

    fn events(text: &str) -> [Json; 4] {
        let item =
            |text: &str| json!({"type": "message", "content": [{"type": "output_text", "text": text}]});
        [
            json!({"type": "response.output_item.added", "item": item("")}),
            json!({"type": "response.output_text.delta", "delta": text}),
            json!({"type": "response.output_item.done", "item": item(text)}),
            json!({"type": "response.completed", "response": {"status": "completed", "output": [item(text)]}}),
        ]
    }

    #[test]
    fn what_is_said_three_times_weighs_once() {
        for (bytes, fits) in [(REPLY_BYTES_MAX, true), (REPLY_BYTES_MAX + 1, false)] {
            let mut assembly = Assembly::new("m");
            let added = events(&"x".repeat(bytes)).iter().try_for_each(|event| assembly.add(event).map(drop));
            assert_eq!(added.is_ok(), fits, "{added:?}");
        }
        // An end that says more than its pieces did weighs what it adds.
        let [_, _, done, completed] = events(&"x".repeat(REPLY_BYTES_MAX + 1));
        for event in [done, completed] {
            assert!(Assembly::new("m").add(&event).is_err());
        }
    }
}
