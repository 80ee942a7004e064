//! Mends conversations, whatever interruptions left in them.
//!
//! Invariant of [`turns`]: what a system says comes first and once; a user begins, and has or follows the last word; texts are not empty;
//! user turns do not follow each other; every call has an id of its own and is answered exactly once, right behind its turn; reasoning
//! goes back to the model that thought it, as it came, and to no other. No word of a user is dropped.

use std::collections::BTreeSet;

use serde_json::json;

use super::{Image, Message, Part, Piece, Said, ToolCall, ToolResult, Turn, text_of};
use crate::Json;
use crate::limits::{CALL_ID_CHARS_MAX, TOOL_NAME_CHARS_MAX};

/// To whom a conversation is sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    /// Names provider and model: only what it thought itself is sent to it.
    pub(crate) name: &'a str,
    /// Whether it takes ids of plain characters only.
    pub(crate) plain_ids: bool,
}

/// Turns a conversation into what providers accept, whatever interruptions left in it.
pub(crate) fn turns(messages: &[Message], reader: Reader<'_>) -> Vec<Turn> {
    let mut drafts = Drafts { reader, system: Vec::new(), turns: Vec::new() };
    for message in messages {
        drafts.add(message);
    }
    drafts.finish()
}

struct Drafts<'a> {
    reader: Reader<'a>,
    system: Vec<String>,
    turns: Vec<Draft>,
}

enum Draft {
    User(Vec<Piece>),
    /// Each part with the answer to it, if it is a call.
    Assistant(Vec<(Said, Option<ToolResult>)>),
}

impl Drafts<'_> {
    fn add(&mut self, message: &Message) {
        match message.role.as_str() {
            "system" => self.system.extend(text_of(message)),
            "assistant" => self.assistant(self.said(message)),
            "tool" if message.parts.iter().any(|part| matches!(part, Part::ToolAnswer { .. })) => {
                for part in &message.parts {
                    match part {
                        Part::ToolAnswer { result } => self.answer(result),
                        Part::Text { .. }
                        | Part::Reasoning { .. }
                        | Part::Image { .. }
                        | Part::ToolUse { .. } => {}
                    }
                }
            }
            // An unknown role is somebody who is not the model.
            _ => self.user(pieces(message)),
        }
    }

    /// What the model said, without the reasoning of others.
    fn said(&self, message: &Message) -> Vec<Said> {
        let has_text = message.parts.iter().any(|part| matches!(part, Part::Text { .. }));
        let mut own_text = (!has_text && !message.text.trim().is_empty()).then(|| message.text.clone());
        let mut said = Vec::new();
        for part in &message.parts {
            match part {
                Part::Text { text } if text.trim().is_empty() => {}
                Part::Text { text } => said.push(Said::Text(text.clone())),
                Part::Reasoning { text, data } => {
                    let own = |data: &&Json| data.get("by").and_then(Json::as_str) == Some(self.reader.name);
                    let data = data.as_ref().filter(own).cloned();
                    said.extend(data.map(|data| Said::Reasoning { text: text.clone(), data }));
                }
                Part::ToolUse { call } => {
                    said.extend(own_text.take().map(Said::Text));
                    said.push(Said::Call(call.clone()));
                }
                Part::Image { .. } | Part::ToolAnswer { .. } => {}
            }
        }
        said.extend(own_text.map(Said::Text));
        let only_thought = said.iter().all(|part| matches!(part, Said::Reasoning { .. }));
        if only_thought { Vec::new() } else { said }
    }

    fn assistant(&mut self, said: Vec<Said>) {
        if said.is_empty() {
            return;
        }
        let said = said.into_iter().map(|part| (part, None));
        match self.turns.last_mut() {
            Some(Draft::Assistant(before)) if !before.iter().any(|(part, _)| is_call(part)) => {
                before.extend(said);
            }
            Some(Draft::Assistant(_) | Draft::User(_)) | None => {
                self.turns.push(Draft::Assistant(said.collect()));
            }
        }
    }

    fn user(&mut self, pieces: Vec<Piece>) {
        if pieces.is_empty() {
            return;
        }
        match self.turns.last_mut() {
            Some(Draft::User(before)) => before.extend(pieces),
            Some(Draft::Assistant(_)) | None => self.turns.push(Draft::User(pieces)),
        }
    }

    /// Puts an answer to its call, wherever it comes; the first answer counts.
    fn answer(&mut self, result: &ToolResult) {
        let mut known = false;
        for turn in self.turns.iter_mut().rev() {
            let Draft::Assistant(parts) = turn else { continue };
            for (part, answer) in parts {
                let Said::Call(call) = part else { continue };
                if call.id != result.id {
                    continue;
                }
                known = true;
                if answer.is_none() {
                    *answer = Some(result.clone());
                    return;
                }
            }
        }
        if !known {
            let text =
                format!("[the answer to a tool call that is no longer in the conversation]\n{}", result.text);
            self.user(vec![Piece::Text(text)]);
        }
    }

    fn finish(mut self) -> Vec<Turn> {
        let mut ids = BTreeSet::new();
        let mut turns = Vec::new();
        if !self.system.is_empty() {
            turns.push(Turn::System { text: self.system.join("\n\n") });
        }
        // Some providers refuse a conversation that the model begins, and one that ends with the model's word.
        if let Some(Draft::Assistant(_)) = self.turns.first() {
            self.turns.insert(0, Draft::User(vec![Piece::Text(BEGINNING.to_owned())]));
        }
        if let Some(Draft::Assistant(parts)) = self.turns.last()
            && !parts.iter().any(|(part, _)| is_call(part))
        {
            self.turns.push(Draft::User(vec![Piece::Text(GO_ON.to_owned())]));
        }
        for draft in self.turns {
            match draft {
                Draft::User(pieces) => turns.push(Turn::User { pieces: joined(pieces) }),
                Draft::Assistant(said) => {
                    let mut parts = Vec::new();
                    let mut answers = Vec::new();
                    for (part, answer) in said {
                        let Said::Call(call) = part else {
                            parts.push(part);
                            continue;
                        };
                        let id = unique_id(&sent_id(&call.id, self.reader), &mut ids);
                        answers.push(answer_turn(id.clone(), answer));
                        let args = sent_args(call.args);
                        parts.push(Said::Call(ToolCall { id, name: sent_name(&call.name), args }));
                    }
                    turns.push(Turn::Assistant { parts });
                    turns.extend(answers);
                }
            }
        }
        turns
    }
}

const BEGINNING: &str = "(The beginning of the conversation is not shown.)";
const GO_ON: &str = "(Go on.)";

fn is_call(part: &Said) -> bool {
    matches!(part, Said::Call(_))
}

fn pieces(message: &Message) -> Vec<Piece> {
    let images = message.parts.iter().any(|part| matches!(part, Part::Image { .. }));
    if !images {
        return text_of(message).map(Piece::Text).into_iter().collect();
    }
    let has_text = message.parts.iter().any(|part| matches!(part, Part::Text { .. }));
    let own_text = (!has_text && !message.text.trim().is_empty()).then(|| Piece::Text(message.text.clone()));
    let parts = message.parts.iter().filter_map(|part| match part {
        Part::Text { text } => (!text.trim().is_empty()).then(|| Piece::Text(text.clone())),
        Part::Image { .. } => Image::of(part).map(Piece::Image),
        Part::Reasoning { .. } | Part::ToolUse { .. } | Part::ToolAnswer { .. } => None,
    });
    own_text.into_iter().chain(parts).collect()
}

/// Neighbouring texts become one.
fn joined(pieces: Vec<Piece>) -> Vec<Piece> {
    let mut joined: Vec<Piece> = Vec::new();
    for piece in pieces {
        match (joined.last_mut(), piece) {
            (Some(Piece::Text(before)), Piece::Text(text)) => {
                before.push_str("\n\n");
                before.push_str(&text);
            }
            (Some(Piece::Text(_) | Piece::Image(_)) | None, piece) => joined.push(piece),
        }
    }
    joined
}

fn answer_turn(id: String, answer: Option<ToolResult>) -> Turn {
    match answer {
        None => {
            let text = "error: no result: it was interrupted, and may have happened, wholly or in part";
            Turn::Tool { id, text: text.to_owned(), ok: false }
        }
        Some(result) => {
            let text = if result.text.trim().is_empty() { "(no output)" } else { &result.text };
            let text = if result.ok { text.to_owned() } else { format!("error: {text}") };
            Turn::Tool { id, text, ok: result.ok }
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

fn sent_id(id: &str, reader: Reader<'_>) -> String {
    if reader.plain_ids { plain(id, CALL_ID_CHARS_MAX) } else { id.chars().take(CALL_ID_CHARS_MAX).collect() }
}

/// A name that providers take back; the tool worker has answered that there is no such tool.
fn sent_name(name: &str) -> String {
    let name = plain(name, TOOL_NAME_CHARS_MAX);
    if name.is_empty() { "unknown".to_owned() } else { name }
}

fn plain(text: &str, chars_max: usize) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
    text.chars().take(chars_max).map(plain).collect()
}

fn sent_args(args: Json) -> Json {
    if args.is_object() { args } else { json!({"invalid_arguments": args}) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READER: Reader<'_> = Reader { name: "p/m", plain_ids: true };

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
        turns(messages, READER)
            .into_iter()
            .map(|turn| match turn {
                Turn::System { text } => format!("S:{text}"),
                Turn::User { pieces } => {
                    let pieces: Vec<String> = pieces
                        .into_iter()
                        .map(|piece| match piece {
                            Piece::Text(text) => text,
                            Piece::Image(image) => format!("<{}>", image.url()),
                        })
                        .collect();
                    format!("U:{}", pieces.concat())
                }
                Turn::Assistant { parts } => {
                    let parts = parts.into_iter().map(|part| match part {
                        Said::Text(text) => text,
                        Said::Reasoning { text, .. } => format!("<{text}>"),
                        Said::Call(call) => format!("[{}]", call.id),
                    });
                    format!("A:{}", parts.collect::<String>())
                }
                Turn::Tool { id, text, .. } => format!("T:{id}={text}"),
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
                vec!["U:go".into(), "A:[a][b]".into(), format!("T:a={lost}"), "T:b=B".into(), "U:on".into()],
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
                vec!["U:one\n\ntwo".into(), "A:ok".into(), "U:(Go on.)".into()],
            ),
            (
                "an answer whose call is gone",
                vec![user("go"), answer("z", "Z")],
                vec!["U:go\n\n[the answer to a tool call that is no longer in the conversation]\nZ".into()],
            ),
            (
                "system messages anywhere",
                vec![user("go"), Message::of("system", "be brief"), said("a", &[]), said("b", &[])],
                vec!["S:be brief".into(), "U:go".into(), "A:ab".into(), "U:(Go on.)".into()],
            ),
            (
                "a model that begins and ends",
                vec![said("hello", &[])],
                vec![
                    "U:(The beginning of the conversation is not shown.)".into(),
                    "A:hello".into(),
                    "U:(Go on.)".into(),
                ],
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
    fn names_ids_and_arguments_can_be_sent_back() {
        let call =
            |id: &str| ToolCall { id: id.to_owned(), name: "fs/日".to_owned(), args: json!("{broken") };
        let parts = ["", "functions.read:0"].map(|id| Part::ToolUse { call: call(id) });
        let messages =
            [user("x"), Message { parts: parts.to_vec(), ..Message::of("assistant", "") }, answer("", "A")];
        for (plain_ids, second) in [(true, "functions_read_0"), (false, "functions.read:0")] {
            let Turn::Assistant { parts } = turns(&messages, Reader { plain_ids, ..READER }).remove(1) else {
                panic!("a turn of the model")
            };
            let args = json!({"invalid_arguments": "{broken"});
            let sent =
                |id: &str| Said::Call(ToolCall { id: id.into(), name: "fs__".into(), args: args.clone() });
            assert_eq!(parts, [sent("call"), sent(second)]);
        }
    }

    #[test]
    fn reasoning_goes_back_to_its_author_only() {
        let thought = |by: &str| Part::Reasoning {
            text: format!("thought of {by}"),
            data: Some(json!({"by": by, "signature": "s"})),
        };
        let unsigned = Part::Reasoning { text: "unsigned".to_owned(), data: None };
        let text = Part::Text { text: "hi".to_owned() };
        let said = |parts: &[Part]| Message { parts: parts.to_vec(), ..Message::of("assistant", "hi") };
        let messages = [
            user("go"),
            said(&[thought("p/m"), text.clone(), thought("q/m"), unsigned]),
            user("on"),
            Message { parts: vec![thought("p/m")], ..Message::of("assistant", "") },
            user("end"),
        ];
        let expected = ["U:go", "A:<thought of p/m>hi", "U:on\n\nend"];
        assert_eq!(short(&messages), expected, "thoughts alone are no turn");
    }

    #[test]
    fn images_keep_their_place() {
        let image = |data: Option<&str>, url: Option<&str>| Part::Image {
            media: "image/png".to_owned(),
            data: data.map(str::to_owned),
            url: url.map(str::to_owned),
        };
        let text = |text: &str| Part::Text { text: text.to_owned() };
        let parts = vec![
            text("this"),
            image(Some("AA"), None),
            text("and"),
            image(None, Some("http://x")),
            image(None, None),
        ];
        let message = Message { parts, ..user("this and") };
        assert_eq!(short(&[message]), ["U:this<data:image/png;base64,AA>and<http://x>"]);
    }
}
