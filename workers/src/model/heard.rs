//! What was heard of a model when its stream ended, and the answer that it makes.
//!
//! Every protocol puts its own pieces together and ends here. Leaves the transport to [`super::wire`]. Invariant: what comes out is
//! a whole answer or an error; arguments that are not exactly one JSON object, and calls of an answer that was cut, come out marked
//! so that nothing runs them.

use std::collections::BTreeSet;

use serde_json::json;

use super::conversation::{Part, unique_id};
use super::error::{Kind, ModelError};
use super::pricing::Usage;
use super::{NOT_RUN, ToolCall};
use crate::Json;
use crate::limits::{ERROR_CHARS_MAX, REPLY_BYTES_MAX, REPLY_CALLS_MAX};
use crate::tools::quote;

mod strict;

pub(crate) use strict::object;

/// Puts an answer together from the pieces of one protocol.
pub(crate) trait Assemble: Send {
    /// Takes in one piece of a stream, or a whole answer.
    fn add(&mut self, piece: &Json) -> Result<Added, ModelError>;

    /// The server has said that the stream is over.
    fn done(&mut self);

    /// How far the answer is.
    fn progress(&self) -> Progress;

    /// What was heard.
    fn heard(self: Box<Self>) -> Heard;
}

/// How far an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// More is to come.
    Open,
    /// The answer is whole; only figures and farewells can come.
    Ended,
    /// The stream is over.
    Over,
}

/// What a piece added, to be shown.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Added {
    pub(crate) text: String,
    /// Whether it added anything at all; signs of life do not.
    pub(crate) something: bool,
}

/// What a model said, as far as it came.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    pub(crate) parts: Vec<Bit>,
    /// Why it will not answer, in its own words.
    pub(crate) refusal: String,
    pub(crate) end: End,
    pub(crate) usage: Usage,
    /// The model's name as the server gives it.
    pub(crate) model: Option<String>,
    /// Why it stopped, in the provider's own word.
    pub(crate) stop: Option<String>,
}

/// A part of what was said, arguments still as text.
#[derive(Debug)]
pub(crate) enum Bit {
    Text(String),
    Reasoning { text: String, data: Json },
    Call { id: String, name: String, args: String },
}

/// How an answer ended.
#[derive(Debug, Default, PartialEq)]
pub(crate) enum End {
    /// Not at all: the stream broke off.
    #[default]
    Broken,
    /// As the model wanted.
    Whole,
    /// At the limit of tokens.
    Cut,
    /// It will not be given.
    Refused,
    /// The context was full.
    Full,
    /// The server failed.
    Failed,
}

/// A whole answer.
#[derive(Debug, PartialEq)]
pub(crate) struct Answer {
    /// Texts, reasoning and calls in the order in which they came.
    pub(crate) parts: Vec<Part>,
    pub(crate) usage: Usage,
    pub(crate) model: Option<String>,
    pub(crate) stop: Option<String>,
}

impl Heard {
    /// The whole answer; `id` makes ids for calls that have none.
    pub(crate) fn answer(mut self, id: &str) -> Result<Answer, ModelError> {
        self.parts.retain(|part| match part {
            Bit::Text(text) => !text.trim().is_empty(),
            Bit::Reasoning { .. } | Bit::Call { .. } => true,
        });
        let cut = match self.end {
            End::Broken => return Err(ModelError::new(Kind::Cut, "the answer broke off before its end")),
            End::Refused => return Err(refused(&self.refusal)),
            End::Full => {
                let text = "the model's context was full before the answer was whole";
                return Err(ModelError::new(Kind::ContextOverflow, text));
            }
            End::Failed => {
                let text = "the model's server ended the answer with an error";
                return Err(ModelError::new(Kind::Overloaded, text));
            }
            End::Whole => false,
            End::Cut => true,
        };
        let says_something = self.parts.iter().any(|part| !matches!(part, Bit::Reasoning { .. }));
        if !says_something {
            return Err(match (self.refusal.is_empty(), cut) {
                (false, _) => refused(&self.refusal),
                (true, true) => {
                    let text = "the answer was cut at the token limit before it began: allow more tokens";
                    ModelError::new(Kind::Cut, text).for_good()
                }
                (true, false) => ModelError::new(Kind::Cut, "the answer is empty"),
            });
        }
        let mut ids = BTreeSet::new();
        let mut calls = 0;
        let part = |bit: Bit| match bit {
            Bit::Text(text) => Part::Text { text },
            Bit::Reasoning { text, data } => Part::Reasoning { text, data: Some(data) },
            Bit::Call { id: given, name, args } => {
                calls += 1;
                let given = if given.is_empty() { format!("call_{id}_{calls}") } else { given };
                let args = if cut { not_run(CUT, &args) } else { arguments(&args) };
                Part::ToolUse { call: ToolCall { id: unique_id(&given, &mut ids), name, args } }
            }
        };
        let mut parts: Vec<Part> = self.parts.into_iter().map(part).collect();
        if cut && calls == 0 {
            parts.push(Part::Text { text: "\n\n[cut at the token limit]".to_owned() });
        }
        Ok(Answer { parts, usage: self.usage, model: self.model, stop: self.stop })
    }
}

fn refused(why: &str) -> ModelError {
    let why = if why.trim().is_empty() { "the provider withheld the answer" } else { why };
    ModelError::new(Kind::Refused, why)
}

const CUT: &str =
    "the answer was cut at the token limit, so none of its calls was run; make smaller calls, one at a time";

fn arguments(args: &str) -> Json {
    match object(args) {
        Ok(object) => object,
        Err(problem) => not_run(&format!("the arguments are not one JSON object ({problem})"), args),
    }
}

fn not_run(why: &str, args: &str) -> Json {
    json!(format!("{NOT_RUN} {why}: {}", quote(args, ERROR_CHARS_MAX)))
}

/// Counts what an answer weighs.
#[derive(Debug, Default)]
pub(crate) struct Weight {
    bytes: usize,
}

impl Weight {
    /// Adds a piece of so many bytes, `calls` being the calls so far.
    ///
    /// # Errors
    /// [`Kind::Cut`] if the answer is too large to be one.
    pub(crate) fn add(&mut self, bytes: usize, calls: usize) -> Result<(), ModelError> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > REPLY_BYTES_MAX || calls > REPLY_CALLS_MAX {
            let text = format!("the answer has more than {REPLY_BYTES_MAX} bytes or {REPLY_CALLS_MAX} calls");
            return Err(ModelError::new(Kind::Cut, text).for_good());
        }
        Ok(())
    }
}

/// Text at a place of a JSON value; empty if there is none.
pub(crate) fn text_at<'a>(value: &'a Json, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Json::as_str).unwrap_or_default()
}

/// A number at a place of a JSON value.
pub(crate) fn count_at(value: &Json, pointer: &str) -> Option<u64> {
    value.pointer(pointer).and_then(Json::as_u64)
}
