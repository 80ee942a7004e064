//! Texts with placeholders.
//!
//! Leaves choosing a rule to its parent. Invariant: a placeholder that does not exist is found when the script is read, and what
//! is put in is never looked at again.

use serde::Deserialize;

use crate::Json;

/// What a script can say about the conversation.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    pub(super) last_user: String,
    pub(super) last_tool: String,
    pub(super) system: String,
    /// The last message is a tool's answer.
    pub(super) after_tool: bool,
    /// Messages of the model since the last user message.
    pub(super) turn: usize,
}

/// A text with placeholders.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Template(Vec<Piece>);

#[derive(Clone, Debug, PartialEq)]
enum Piece {
    Text(String),
    LastUser,
    LastTool,
    FirstLine,
    FirstFile,
    Turn,
    Words(usize),
}

impl TryFrom<String> for Template {
    type Error = String;

    fn try_from(text: String) -> Result<Template, String> {
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut rest = text.as_str();
        while let Some(at) = rest.find(['{', '}']) {
            plain.push_str(&rest[..at]);
            let (brace, behind) = rest[at..].split_at(1);
            if let Some(behind) = behind.strip_prefix(brace) {
                plain.push_str(brace);
                rest = behind;
                continue;
            }
            let end = if brace == "{" { behind.find('}') } else { None };
            let Some(end) = end else {
                return Err(format!("a lone {brace} in {text:?}; write {brace}{brace}"));
            };
            pieces.push(Piece::Text(std::mem::take(&mut plain)));
            pieces.push(Piece::named(&behind[..end])?);
            rest = &behind[end + 1..];
        }
        plain.push_str(rest);
        pieces.push(Piece::Text(plain));
        pieces.retain(|piece| *piece != Piece::Text(String::new()));
        Ok(Template(pieces))
    }
}

impl Piece {
    fn named(name: &str) -> Result<Piece, String> {
        Ok(match name {
            "last_user" => Piece::LastUser,
            "last_tool" => Piece::LastTool,
            "first_line" => Piece::FirstLine,
            "first_file" => Piece::FirstFile,
            "turn" => Piece::Turn,
            other => {
                let count = other.strip_prefix("words ").and_then(|count| count.trim().parse().ok());
                Piece::Words(count.ok_or_else(|| {
                    format!("there is no placeholder {{{other}}}; a brace is written {{{{ or }}}}")
                })?)
            }
        })
    }
}

impl Template {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn fill(&self, facts: &Facts) -> String {
        let user = facts.last_user.as_str();
        let fill = |piece: &Piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::LastUser => user.to_owned(),
            Piece::LastTool => facts.last_tool.clone(),
            Piece::FirstLine => user.trim_start().lines().next().unwrap_or_default().to_owned(),
            Piece::FirstFile => {
                let is_file = |line: &&str| !line.ends_with('/') && !line.trim().is_empty();
                facts.last_tool.lines().find(is_file).unwrap_or_default().to_owned()
            }
            Piece::Turn => facts.turn.to_string(),
            Piece::Words(count) => user.split_whitespace().take(*count).collect::<Vec<_>>().join(" "),
        };
        self.0.iter().map(fill).collect()
    }
}

/// Fills in every text of a JSON value.
pub(super) fn filled(value: &Json, facts: &Facts) -> Result<Json, String> {
    Ok(match value {
        Json::String(text) => Template::try_from(text.clone())?.fill(facts).into(),
        Json::Array(items) => {
            items.iter().map(|item| filled(item, facts)).collect::<Result<Vec<Json>, String>>()?.into()
        }
        Json::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| Ok((name.clone(), filled(value, facts)?)));
            Json::Object(fields.collect::<Result<_, String>>()?)
        }
        Json::Null | Json::Bool(_) | Json::Number(_) => value.clone(),
    })
}
