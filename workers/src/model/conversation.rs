//! Conversations as flows keep them.
//!
//! Leaves what every provider takes to [`turn`], how one becomes the other to [`mending`], and each provider's own JSON to it. Invariant:
//! the same fields as the prelude of the language.

mod mending;
mod turn;

use serde::{Deserialize, Serialize};

use crate::Json;

pub(crate) use mending::{Reader, turns, unique_id};
pub(crate) use turn::{Image, Piece, Said, Turn};

/// A message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Message {
    pub(crate) role: String,
    pub(crate) text: String,
    #[serde(default)]
    pub(crate) parts: Vec<Part>,
}

impl Message {
    pub(crate) fn of(role: &str, text: &str) -> Message {
        Message { role: role.to_owned(), text: text.to_owned(), parts: Vec::new() }
    }
}

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub(crate) enum Part {
    Text {
        text: String,
    },
    Reasoning {
        text: String,
        /// What the provider wants back as it is, and under `by` whose it is.
        #[serde(default)]
        data: Option<Json>,
    },
    Image {
        media: String,
        #[serde(default)]
        data: Option<String>,
        #[serde(default)]
        url: Option<String>,
    },
    ToolUse {
        call: ToolCall,
    },
    ToolAnswer {
        result: ToolResult,
    },
}

/// A call that a model asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ToolCall {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) args: Json,
}

/// The answer to a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ToolResult {
    pub(crate) id: String,
    pub(crate) text: String,
    pub(crate) ok: bool,
}

/// What a model is told of a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ToolSchema {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) description: String,
    #[serde(default)]
    pub(crate) input: Json,
}

/// The text of a message, if there is any.
pub(crate) fn text_of(message: &Message) -> Option<String> {
    let parts: Vec<&str> = message
        .parts
        .iter()
        .filter_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            Part::Reasoning { .. } | Part::Image { .. } | Part::ToolUse { .. } | Part::ToolAnswer { .. } => {
                None
            }
        })
        .collect();
    let text = if parts.is_empty() { message.text.clone() } else { parts.concat() };
    (!text.trim().is_empty()).then_some(text)
}
