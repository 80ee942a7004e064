//! `/approve`: open questions, and answers that name theirs.
//!
//! Invariant: what is sent is an answer to what was shown, or nothing.

use outlast_protocol::requests::Answer;
use outlast_protocol::run::QuestionView;
use serde_json::Value;

use super::questions::{Extent, Meant, Word, answer, decided, given, is_id, lines, which};
use super::said::After;
use super::screen::Tone;
use super::slash::back;
use super::talk::Talk;
use crate::failure::Failure;

/// What is to be done with a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Show,
    Decide(Word),
}

/// Lists the open questions, or does something with one.
pub(super) async fn approve(talk: &mut Talk, rest: &str, line: &str) -> Result<After, Failure> {
    if rest.is_empty() {
        return list(talk);
    }
    let (verb, id, rest) = parse(rest);
    let question = match which(talk.questions(), id) {
        Ok(question) => question.clone(),
        Err(why) => return back(talk, &why, line),
    };
    let meant = match verb {
        Verb::Show => {
            let directory = talk.known.profile.as_ref().map(|profile| profile.directory.as_path());
            talk.face.print_lines(&lines(&question, directory, Extent::Whole))?;
            return Ok(After::Stay);
        }
        Verb::Decide(Word::Yes) if question.wanted.is_some() && !rest.is_empty() => valued(&question, rest),
        Verb::Decide(Word::Edit) if question.editable && !rest.is_empty() => edited(&question, rest),
        Verb::Decide(word) => decided(&question, word, rest),
    };
    match meant {
        Meant::Answer(answer) => talk.answer(&answer).await.map(|taken| After::of(taken, line)),
        Meant::Edit(id) => Ok(After::Edit(id)),
        Meant::Unclear(why) => back(talk, &why, line),
        Meant::NoAnswer(_) | Meant::Other => {
            back(talk, "yes, no, always, edit or show is expected, and the question's id", line)
        }
    }
}

/// Reads `[VERB] [ID] [REST]`; an id alone means yes.
fn parse(text: &str) -> (Verb, Option<&str>, &str) {
    let (first, rest) = split(text);
    let verb = if first == "show" { Some(Verb::Show) } else { Word::of(first).map(Verb::Decide) };
    let text = if verb.is_some() { rest } else { text };
    let (first, rest) = split(text);
    let (id, rest) = if is_id(first) { (Some(first), rest) } else { (None, text) };
    (verb.unwrap_or(Verb::Decide(Word::Yes)), id, rest)
}

/// Splits the first word off.
fn split(text: &str) -> (&str, &str) {
    text.split_once(char::is_whitespace).map_or((text, ""), |(word, rest)| (word, rest.trim_start()))
}

fn list(talk: &mut Talk) -> Result<After, Failure> {
    if talk.questions().is_empty() {
        talk.face.print(Tone::Aside, "no question is open")?;
        return Ok(After::Stay);
    }
    let directory = talk.known.profile.as_ref().map(|profile| profile.directory.clone());
    for question in talk.questions().to_vec() {
        talk.face.print_lines(&lines(&question, directory.as_deref(), Extent::Brief))?;
    }
    Ok(After::Stay)
}

fn valued(question: &QuestionView, text: &str) -> Meant {
    let value = question.wanted.as_ref().map(|wanted| given(wanted, text));
    Meant::Answer(Box::new(Answer { value, ..answer(question, "answer") }))
}

/// What a person made of what the question shows.
fn edited(question: &QuestionView, text: &str) -> Meant {
    let value = match &question.show {
        Value::String(_) => Ok(Value::String(text.to_owned())),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            serde_json::from_str(text)
        }
    };
    match value {
        Ok(value) => Meant::Answer(Box::new(Answer { value: Some(value), ..answer(question, "approve") })),
        Err(error) => Meant::Unclear(format!("JSON is expected: {error}")),
    }
}

/// Returns what a question shows as text to edit.
pub(super) fn text_of(question: &QuestionView) -> String {
    match &question.show {
        Value::String(text) => text.clone(),
        other => serde_json::to_string_pretty(other).unwrap_or_default(),
    }
}

/// How a line begins that changes what a question shows.
pub(super) const EDITING: &str = "/approve edit ";

/// Returns the command that approves what a person made of what a question shows.
pub(super) fn command_with(question: &str, text: &str) -> String {
    format!("{EDITING}{question} {text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verb_an_id_and_the_rest_may_be_given() {
        let yes = Verb::Decide(Word::Yes);
        for (text, expected) in [
            ("5.0", (yes, Some("5.0"), "")),
            ("5.0 fine by me", (yes, Some("5.0"), "fine by me")),
            ("yes", (yes, None, "")),
            ("no 5.0 not  now", (Verb::Decide(Word::No), Some("5.0"), "not  now")),
            ("no not now", (Verb::Decide(Word::No), None, "not now")),
            ("always  5.0", (Verb::Decide(Word::Always), Some("5.0"), "")),
            ("edit 5.0 {\n \"a\": 1}", (Verb::Decide(Word::Edit), Some("5.0"), "{\n \"a\": 1}")),
            ("show 5.0", (Verb::Show, Some("5.0"), "")),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
    }
}
