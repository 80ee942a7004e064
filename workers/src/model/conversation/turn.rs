//! Turns: what any provider takes.
//!
//! Leaves the order of turns to `mending`. Invariant: an image is either carried whole or an address.

use super::{Part, ToolCall};
use crate::Json;

/// A turn that any provider takes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Turn {
    System {
        text: String,
    },
    User {
        pieces: Vec<Piece>,
    },
    /// Texts, reasoning and calls, in the order in which they came; never reasoning alone.
    Assistant {
        parts: Vec<Said>,
    },
    Tool {
        id: String,
        text: String,
        ok: bool,
    },
}

/// A piece of what a user says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Piece {
    Text(String),
    Image(Image),
}

/// An image.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Image {
    /// In base64.
    Data {
        media: String,
        data: String,
    },
    Url(String),
}

/// A part of a model's turn.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Said {
    Text(String),
    /// `data` is what this provider once gave.
    Reasoning {
        text: String,
        data: Json,
    },
    Call(ToolCall),
}

impl Image {
    /// An address that carries the image itself, or says where it is.
    pub(crate) fn url(&self) -> String {
        match self {
            Image::Data { media, data } => format!("data:{media};base64,{data}"),
            Image::Url(url) => url.clone(),
        }
    }

    pub(super) fn of(part: &Part) -> Option<Image> {
        match part {
            Part::Image { media, data: Some(data), .. } => {
                Some(Image::Data { media: media.clone(), data: data.clone() })
            }
            Part::Image { url: Some(url), .. } => {
                let carried = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
                Some(match carried {
                    Some((media, data)) => Image::Data { media: media.to_owned(), data: data.to_owned() },
                    None => Image::Url(url.clone()),
                })
            }
            Part::Image { .. }
            | Part::Text { .. }
            | Part::Reasoning { .. }
            | Part::ToolUse { .. }
            | Part::ToolAnswer { .. } => None,
        }
    }
}
