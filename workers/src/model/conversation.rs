//! Conversations: as flows keep them, and as every provider takes them.
//!
//! Leaves each provider's own JSON to it. Invariant of [`turns`]: what a system says comes first and once; texts are not empty;
//! user turns do not follow each other; every call has an id of its own and is answered exactly once, right behind its turn. No
//! word of a user is dropped.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::Json;

/// A message as flows keep it (see the prelude of the language).
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

/// A turn that any provider takes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Turn {
    System { text: String },
    User { text: String, images: Vec<String> },
    Assistant { text: Option<String>, calls: Vec<ToolCall> },
    Tool { id: String, text: String },
}

/// Turns a conversation into what providers accept, whatever interruptions left in it.
pub(crate) fn turns(messages: &[Message]) -> Vec<Turn> {
    let mut drafts = Drafts::default();
    for message in messages {
        drafts.add(message);
    }
    drafts.finish()
}

#[derive(Default)]
struct Drafts {
    system: Vec<String>,
    turns: Vec<Draft>,
}

enum Draft {
    User { texts: Vec<String>, images: Vec<String> },
    Assistant { texts: Vec<String>, calls: Vec<(ToolCall, Option<ToolResult>)> },
}

impl Drafts {
    fn add(&mut self, message: &Message) {
        let text = text_of(message);
        match message.role.as_str() {
            "system" => self.system.extend(text),
            "assistant" => {
                let calls = message.parts.iter().filter_map(|part| match part {
                    Part::ToolUse { call } => Some((call.clone(), None)),
                    Part::Text { .. }
                    | Part::Reasoning { .. }
                    | Part::Image { .. }
                    | Part::ToolAnswer { .. } => None,
                });
                self.assistant(text, calls.collect());
            }
            "tool" => {
                let mut answers = 0;
                for part in &message.parts {
                    if let Part::ToolAnswer { result } = part {
                        answers += 1;
                        self.answer(result);
                    }
                }
                if answers == 0 {
                    self.user(text, Vec::new());
                }
            }
            // An unknown role is somebody who is not the model.
            _ => self.user(text, message.parts.iter().filter_map(image).collect()),
        }
    }

    fn assistant(&mut self, text: Option<String>, calls: Vec<(ToolCall, Option<ToolResult>)>) {
        if text.is_none() && calls.is_empty() {
            return;
        }
        match self.turns.last_mut() {
            Some(Draft::Assistant { texts, calls: before }) if before.is_empty() => {
                texts.extend(text);
                *before = calls;
            }
            Some(Draft::Assistant { .. } | Draft::User { .. }) | None => {
                self.turns.push(Draft::Assistant { texts: text.into_iter().collect(), calls });
            }
        }
    }

    fn user(&mut self, text: Option<String>, images: Vec<String>) {
        if text.is_none() && images.is_empty() {
            return;
        }
        match self.turns.last_mut() {
            Some(Draft::User { texts, images: before }) => {
                texts.extend(text);
                before.extend(images);
            }
            Some(Draft::Assistant { .. }) | None => {
                self.turns.push(Draft::User { texts: text.into_iter().collect(), images });
            }
        }
    }

    /// Puts an answer to its call, wherever it comes; the first answer counts.
    fn answer(&mut self, result: &ToolResult) {
        let mut known = false;
        for turn in self.turns.iter_mut().rev() {
            let Draft::Assistant { calls, .. } = turn else { continue };
            for (call, answer) in calls.iter_mut().filter(|(call, _)| call.id == result.id) {
                known = true;
                if answer.is_none() {
                    tracing::trace!(id = call.id, "answered");
                    *answer = Some(result.clone());
                    return;
                }
            }
        }
        if !known {
            let text =
                format!("[the answer to a tool call that is no longer in the conversation]\n{}", result.text);
            self.user(Some(text), Vec::new());
        }
    }

    fn finish(self) -> Vec<Turn> {
        let mut turns = Vec::new();
        let mut ids = BTreeSet::new();
        if !self.system.is_empty() {
            turns.push(Turn::System { text: self.system.join("\n\n") });
        }
        for draft in self.turns {
            match draft {
                Draft::User { texts, images } => turns.push(Turn::User { text: texts.join("\n\n"), images }),
                Draft::Assistant { texts, calls } => {
                    let text = (!texts.is_empty()).then(|| texts.join("\n\n"));
                    let calls: Vec<(ToolCall, Turn)> = calls
                        .into_iter()
                        .map(|(call, answer)| {
                            let id = unique_id(&call.id, &mut ids);
                            let answer = Turn::Tool { id: id.clone(), text: answer_text(answer) };
                            (ToolCall { id, name: sent_name(&call.name), args: sent_args(call.args) }, answer)
                        })
                        .collect();
                    let (calls, answers): (Vec<ToolCall>, Vec<Turn>) = calls.into_iter().unzip();
                    turns.push(Turn::Assistant { text, calls });
                    turns.extend(answers);
                }
            }
        }
        turns
    }
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

fn image(part: &Part) -> Option<String> {
    match part {
        Part::Image { url: Some(url), .. } => Some(url.clone()),
        Part::Image { media, data: Some(data), .. } => Some(format!("data:{media};base64,{data}")),
        Part::Image { .. }
        | Part::Text { .. }
        | Part::Reasoning { .. }
        | Part::ToolUse { .. }
        | Part::ToolAnswer { .. } => None,
    }
}

fn answer_text(answer: Option<ToolResult>) -> String {
    match answer {
        None => "error: no result: it was interrupted, and may have happened, wholly or in part".to_owned(),
        Some(result) => {
            let text = if result.text.trim().is_empty() { "(no output)" } else { &result.text };
            if result.ok { text.to_owned() } else { format!("error: {text}") }
        }
    }
}

/// An id that no call before had; the same conversation always gives the same ids.
pub(crate) fn unique_id(id: &str, taken: &mut BTreeSet<String>) -> String {
    let id = if id.is_empty() { "call" } else { id };
    let mut unique = id.to_owned();
    let mut count = 1;
    while !taken.insert(unique.clone()) {
        count += 1;
        unique = format!("{id}_{count}");
    }
    unique
}

/// A name that providers take back; the tool worker has answered that there is no such tool.
fn sent_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
    let name: String = name.chars().take(64).map(plain).collect();
    if name.is_empty() { "unknown".to_owned() } else { name }
}

fn sent_args(args: Json) -> Json {
    if args.is_object() { args } else { json!({"invalid_arguments": args}) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(text: &str) -> Message {
        Message::of("user", text)
    }

    fn said(text: &str, ids: &[&str]) -> Message {
        let parts = ids.iter().map(|id| Part::ToolUse {
            call: ToolCall { id: (*id).to_owned(), name: "read".to_owned(), args: json!({}) },
        });
        Message { parts: parts.collect(), ..Message::of("assistant", text) }
    }

    fn answer(id: &str, text: &str) -> Message {
        let result = ToolResult { id: id.to_owned(), text: text.to_owned(), ok: true };
        Message { parts: vec![Part::ToolAnswer { result }], ..Message::of("tool", text) }
    }

    /// Writes turns in short: `U:text`, `A:text[ids]`, `T:id=text`.
    fn short(messages: &[Message]) -> Vec<String> {
        turns(messages)
            .into_iter()
            .map(|turn| match turn {
                Turn::System { text } => format!("S:{text}"),
                Turn::User { text, images } => format!("U:{text}{}", "+image".repeat(images.len())),
                Turn::Assistant { text, calls } => {
                    let ids: Vec<&str> = calls.iter().map(|call| call.id.as_str()).collect();
                    format!("A:{}[{}]", text.unwrap_or_default(), ids.join(" "))
                }
                Turn::Tool { id, text } => format!("T:{id}={text}"),
            })
            .collect()
    }

    #[test]
    fn interrupted_conversations_are_mended() {
        let lost = "error: no result: it was interrupted, and may have happened, wholly or in part";
        let cases: Vec<(&str, Vec<Message>, Vec<String>)> = vec![
            (
                "a call without its answer",
                vec![user("go"), said("", &["a", "b"]), answer("b", "B"), user("on")],
                vec!["U:go".into(), "A:[a b]".into(), format!("T:a={lost}"), "T:b=B".into(), "U:on".into()],
            ),
            (
                "an answer behind a user's message",
                vec![user("go"), said("", &["a"]), user("wait"), answer("a", "A")],
                vec!["U:go".into(), "A:[a]".into(), "T:a=A".into(), "U:wait".into()],
            ),
            (
                "two answers to one call",
                vec![user("go"), said("", &["a"]), answer("a", "first"), answer("a", "second")],
                vec!["U:go".into(), "A:[a]".into(), "T:a=first".into()],
            ),
            (
                "an id used again",
                vec![user("go"), said("", &["a"]), answer("a", "1"), said("x", &["a"]), answer("a", "2")],
                vec!["U:go".into(), "A:[a]".into(), "T:a=1".into(), "A:x[a_2]".into(), "T:a_2=2".into()],
            ),
            (
                "two user messages in a row, and empty ones",
                vec![user("one"), user(" \n"), said("\n", &[]), user("two"), said("ok", &[])],
                vec!["U:one\n\ntwo".into(), "A:ok[]".into()],
            ),
            (
                "an answer whose call is gone",
                vec![user("go"), answer("z", "Z")],
                vec!["U:go\n\n[the answer to a tool call that is no longer in the conversation]\nZ".into()],
            ),
            (
                "system messages anywhere",
                vec![user("go"), Message::of("system", "be brief"), said("a", &[]), said("b", &[])],
                vec!["S:be brief".into(), "U:go".into(), "A:a\n\nb[]".into()],
            ),
            (
                "an answer that is empty",
                vec![user("go"), said("", &["a"]), answer("a", " ")],
                vec!["U:go".into(), "A:[a]".into(), "T:a=(no output)".into()],
            ),
        ];
        for (what, messages, expected) in cases {
            assert_eq!(short(&messages), expected, "{what}");
        }
    }

    #[test]
    fn names_and_arguments_can_be_sent_back() {
        let call = ToolCall { id: String::new(), name: "fs/日".to_owned(), args: json!("{broken") };
        let message = Message { parts: vec![Part::ToolUse { call }], ..Message::of("assistant", "") };
        let Turn::Assistant { calls, .. } = turns(&[user("x"), message]).remove(1) else {
            panic!("a turn of the model")
        };
        assert_eq!(calls[0].name, "fs__");
        assert_eq!(calls[0].args, json!({"invalid_arguments": "{broken"}));
        assert_eq!(calls[0].id, "call");
    }
}
