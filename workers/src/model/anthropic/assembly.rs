//! Puts an answer together from the events of an Anthropic message.
//!
//! Leaves judging the answer to [`crate::model::heard`]. Invariant: a thought without its signature is not kept, since it could not be
//! sent back.

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
    blocks: BTreeMap<u64, Block>,
    usage: Json,
    model: Option<String>,
    stop: Option<String>,
    done: bool,
    weight: Weight,
}

#[derive(Debug)]
enum Block {
    Text(String),
    Thinking {
        text: String,
        signature: String,
    },
    Redacted(Json),
    /// `input` is what stands at the beginning, `args` what comes in pieces.
    Call {
        id: String,
        name: String,
        input: Json,
        args: String,
    },
    /// Nothing that we asked for.
    Other,
}

impl Assembly {
    pub(crate) fn new(author: &str) -> Assembly {
        Assembly {
            author: author.to_owned(),
            blocks: BTreeMap::new(),
            usage: json!({}),
            model: None,
            stop: None,
            done: false,
            weight: Weight::default(),
        }
    }

    /// Takes in the head of a message; a whole one has all its blocks in it.
    fn message(&mut self, message: &Json, added: &mut Added) -> Result<(), ModelError> {
        self.model = message.get("model").and_then(Json::as_str).map(str::to_owned);
        self.count(message.get("usage"));
        let content = message.get("content").and_then(Json::as_array).into_iter().flatten();
        for (at, block) in content.enumerate() {
            self.begin(at as u64, block, added)?;
        }
        self.stop(text_at(message, "/stop_reason"));
        Ok(())
    }

    fn begin(&mut self, at: u64, block: &Json, added: &mut Added) -> Result<(), ModelError> {
        let text = |pointer| text_at(block, pointer).to_owned();
        let read = match text_at(block, "/type") {
            "text" => {
                added.text.push_str(text_at(block, "/text"));
                Block::Text(text("/text"))
            }
            "thinking" => Block::Thinking { text: text("/thinking"), signature: text("/signature") },
            "redacted_thinking" => Block::Redacted(block.get("data").cloned().unwrap_or_default()),
            "tool_use" => Block::Call {
                id: text("/id"),
                name: text("/name"),
                input: block.get("input").cloned().unwrap_or_default(),
                args: String::new(),
            },
            _ => Block::Other,
        };
        added.something = true;
        self.blocks.insert(at, read);
        let calls = self.blocks.values().filter(|block| matches!(block, Block::Call { .. })).count();
        self.weight.add(block.to_string().len(), calls)
    }

    fn grow(&mut self, at: u64, delta: &Json, added: &mut Added) -> Result<(), ModelError> {
        let kind = text_at(delta, "/type");
        let piece = match kind {
            "text_delta" => text_at(delta, "/text"),
            "input_json_delta" => text_at(delta, "/partial_json"),
            "thinking_delta" => text_at(delta, "/thinking"),
            "signature_delta" => text_at(delta, "/signature"),
            // Citations and the like, for which nobody asked.
            _ => return Ok(()),
        };
        match (kind, self.blocks.get_mut(&at)) {
            ("text_delta", Some(Block::Text(text))) => {
                text.push_str(piece);
                added.text.push_str(piece);
            }
            // A server may leave out the beginning of a text.
            ("text_delta", None) => {
                self.blocks.insert(at, Block::Text(piece.to_owned()));
                added.text.push_str(piece);
            }
            ("input_json_delta", Some(Block::Call { args, .. })) => args.push_str(piece),
            ("thinking_delta", Some(Block::Thinking { text, .. })) => text.push_str(piece),
            ("signature_delta", Some(Block::Thinking { signature, .. })) => signature.push_str(piece),
            (_, _) => {}
        }
        added.something |= !piece.is_empty();
        self.weight.add(piece.len(), 0)
    }

    /// Figures come twice, at the beginning and at the end; the later ones count.
    fn count(&mut self, usage: Option<&Json>) {
        for (name, count) in usage.and_then(Json::as_object).into_iter().flatten() {
            if !count.is_null() {
                self.usage[name.as_str()] = count.clone();
            }
        }
    }

    fn stop(&mut self, reason: &str) {
        if !reason.is_empty() {
            self.stop = Some(reason.to_owned());
        }
    }
}

impl Assemble for Assembly {
    fn add(&mut self, piece: &Json) -> Result<Added, ModelError> {
        if piece.get("error").is_some_and(|error| !error.is_null()) {
            return Err(classify(None, piece));
        }
        let mut added = Added::default();
        let at = count_at(piece, "/index").unwrap_or(0);
        let field = |name: &str| piece.get(name).unwrap_or(&Json::Null);
        match text_at(piece, "/type") {
            "message_start" => self.message(field("message"), &mut added)?,
            "content_block_start" => self.begin(at, field("content_block"), &mut added)?,
            "content_block_delta" => self.grow(at, field("delta"), &mut added)?,
            "message_delta" => {
                self.count(piece.get("usage"));
                self.stop(text_at(piece, "/delta/stop_reason"));
                added.something = true;
            }
            "message_stop" => {
                self.done = true;
                added.something = true;
            }
            // A server that does not stream gives the message itself.
            "message" => {
                self.message(piece, &mut added)?;
                self.done = true;
            }
            // Pings, ends of blocks, and what is yet to be invented.
            _ => {}
        }
        Ok(added)
    }

    fn done(&mut self) {
        self.done = true;
    }

    fn progress(&self) -> Progress {
        match (self.done, &self.stop) {
            (true, _) => Progress::Over,
            (false, Some(_)) => Progress::Ended,
            (false, None) => Progress::Open,
        }
    }

    fn heard(self: Box<Self>) -> Heard {
        let end = match self.stop.as_deref() {
            None => End::Broken,
            Some("max_tokens") => End::Cut,
            Some("refusal") => End::Refused,
            Some("model_context_window_exceeded") => End::Full,
            Some(_) => End::Whole,
        };
        let mut parts = Vec::new();
        for block in self.blocks.into_values() {
            match block {
                Block::Text(text) => parts.push(Bit::Text(text)),
                Block::Thinking { text, signature } if !signature.is_empty() => {
                    let data = json!({"by": self.author, "signature": signature});
                    parts.push(Bit::Reasoning { text, data });
                }
                Block::Redacted(redacted) => {
                    let data = json!({"by": self.author, "redacted": redacted});
                    parts.push(Bit::Reasoning { text: String::new(), data });
                }
                Block::Call { id, name, input, args } => {
                    let args = if args.is_empty() { input.to_string() } else { args };
                    parts.push(Bit::Call { id, name, args });
                }
                Block::Thinking { .. } | Block::Other => {}
            }
        }
        Heard {
            parts,
            refusal: String::new(),
            end,
            usage: usage(&self.usage),
            model: self.model,
            stop: self.stop,
        }
    }
}

/// What the answer took. This provider counts what the cache gave beside the rest of the input.
fn usage(usage: &Json) -> Usage {
    let (cached, cache_written) =
        (count_at(usage, "/cache_read_input_tokens"), count_at(usage, "/cache_creation_input_tokens"));
    let plain = count_at(usage, "/input_tokens");
    Usage {
        input: plain.map(|plain| {
            plain.saturating_add(cached.unwrap_or(0)).saturating_add(cache_written.unwrap_or(0))
        }),
        cached,
        cache_written,
        output: count_at(usage, "/output_tokens"),
        reasoning: None,
    }
}
