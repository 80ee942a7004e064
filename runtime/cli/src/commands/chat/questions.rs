//! Questions to a person: what is shown before they decide, and what their words mean.
//!
//! Leaves sending to `deeds`. Invariant: pure, but for the file that a difference is made with; nothing approves but a line that begins with
//! a yes, and with several questions open none is answered that is not named.

use std::path::Path;

use outlast_protocol::requests::Answer;
use outlast_protocol::run::QuestionView;
use serde_json::{Value, json};

use super::diff;
use super::screen::Tone;
use crate::limits::DIFF_LINES_MAX;
use crate::show;

/// How much of a question is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// A long difference by its beginning.
    Brief,
    /// Everything.
    Whole,
}

/// Returns a question in lines: what would be done, and how to answer.
pub(super) fn lines(
    question: &QuestionView,
    directory: Option<&Path>,
    extent: Extent,
) -> Vec<(Tone, String)> {
    let mut lines = vec![(Tone::Loud, format!("? {}", question.text))];
    let difference = show::call(&question.show)
        .zip(directory)
        .and_then(|((tool, arguments), directory)| Some((tool, diff::of_call(tool, &arguments, directory)?)));
    match difference {
        None => lines
            .extend(show::shown(&question.show).into_iter().map(|line| (Tone::Loud, format!("    {line}")))),
        Some((tool, difference)) => {
            let most = if extent == Extent::Whole { usize::MAX } else { DIFF_LINES_MAX };
            let left_out = difference.len().saturating_sub(most);
            let mut shown = difference.into_iter().take(most);
            lines.extend(shown.next().map(|heading| (Tone::Loud, format!("    {tool} {heading}"))));
            lines.extend(shown.map(|line| (tone_of(&line), format!("    {line}"))));
            if left_out > 0 {
                let rest = format!("    … {left_out} more lines: /approve show {}", question.id);
                lines.push((Tone::Loud, rest));
            }
        }
    }
    lines.push((Tone::Aside, choices(question)));
    lines
}

fn tone_of(line: &str) -> Tone {
    match line.chars().next() {
        Some('+') => Tone::Added,
        Some('-') => Tone::Removed,
        Some(_) | None => Tone::Plain,
    }
}

/// Says how a question may be answered.
fn choices(question: &QuestionView) -> String {
    if question.wanted.is_some() {
        return format!("  {}: type the answer, or n to reject", question.id);
    }
    let edit = if question.editable { " · e: change it first" } else { "" };
    let always = always(&question.show).map(|rule| format!(" · a: yes, and always {rule} in this run"));
    format!("  {}: y: yes · n: no, a note may follow{edit}{}", question.id, always.unwrap_or_default())
}

/// What a line means to open questions.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Meant {
    /// An answer.
    Answer(Box<Answer>),
    /// What is asked about is to be changed first.
    Edit(String),
    /// An answer, but to which question, or of what kind? Says what is expected.
    Unclear(String),
    /// No answer, though a question is open. Says what would be one.
    NoAnswer(String),
    /// No question is open, or nothing was said.
    Other,
}

/// Words that decide.
const WORDS: [(&str, &str, Word); 4] = [
    ("y", "yes", Word::Yes),
    ("n", "no", Word::No),
    ("a", "always", Word::Always),
    ("e", "edit", Word::Edit),
];

/// What a word decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    Yes,
    No,
    Always,
    Edit,
}

impl Word {
    /// Reads a word; none if it decides nothing.
    pub(super) fn of(text: &str) -> Option<Word> {
        let is = |known: &str| text.eq_ignore_ascii_case(known);
        WORDS.iter().find(|(short, long, _)| is(short) || is(long)).map(|(_, _, word)| *word)
    }
}

/// Whether a line can only be meant as an answer.
pub(super) fn is_answer(line: &str) -> bool {
    let mut words = line.split_whitespace();
    match (words.next().and_then(Word::of), words.next(), words.next()) {
        (Some(_), None, _) => true,
        (Some(Word::Yes | Word::No), Some(_), _) => true,
        (Some(_), Some(id), None) => is_id(id),
        (Some(_) | None, _, _) => false,
    }
}

/// Tells whether a word looks like the name of a question: `n.k`.
pub(super) fn is_id(word: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    word.split_once('.').is_some_and(|(n, k)| number(n) && number(k))
}

/// Returns what a line means to the questions that are open.
pub(super) fn meant(open: &[QuestionView], line: &str) -> Meant {
    let line = line.trim();
    let (first, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let Some(only) = open.first() else { return Meant::Other };
    match Word::of(first) {
        Some(word) => {
            let (id, rest) = match rest.trim().split_once(char::is_whitespace) {
                Some((id, rest)) if is_id(id) => (Some(id), rest.trim()),
                None if is_id(rest.trim()) => (Some(rest.trim()), ""),
                Some(_) | None => (None, rest.trim()),
            };
            let takes_note = matches!(word, Word::Yes | Word::No);
            match which(open, id) {
                // What asks for a text may be answered by these words, too.
                Ok(question)
                    if question.wanted.is_some()
                        && word != Word::No
                        && (id.is_none() || !rest.is_empty()) =>
                {
                    with_value(question, open, line)
                }
                Ok(question) if takes_note || rest.is_empty() => decided(question, word, rest),
                Err(unclear) if takes_note || rest.is_empty() => Meant::Unclear(unclear),
                Ok(_) | Err(_) => no_answer(open),
            }
        }
        None if line.is_empty() && open.len() == 1 && only.wanted.is_some() => Meant::Other,
        None if line.is_empty() => match which(open, None) {
            Ok(question) => decided(question, Word::No, ""),
            Err(unclear) => Meant::Unclear(unclear),
        },
        None => with_value(only, open, line),
    }
}

/// A line that answers the one open question if that wants a value.
fn with_value(only: &QuestionView, open: &[QuestionView], line: &str) -> Meant {
    match &only.wanted {
        Some(wanted) if open.len() == 1 => {
            let answer = Answer { value: Some(given(wanted, line)), ..answer(only, "answer") };
            Meant::Answer(Box::new(answer))
        }
        Some(_) | None => no_answer(open),
    }
}

/// Says what would be an answer to the questions that are open.
fn no_answer(open: &[QuestionView]) -> Meant {
    let ways = match open {
        [only] => {
            let edit = if only.editable { ", e" } else { "" };
            let always = if always(&only.show).is_some() { ", a" } else { "" };
            format!("y [note], n [note]{edit}{always}")
        }
        [] | [..] => format!("{} questions are open: y ID [note], n ID [note]", open.len()),
    };
    Meant::NoAnswer(format!("that is no answer ({ways})"))
}

/// Returns the question that is meant: the one that is named, or the only one.
pub(super) fn which<'q>(open: &'q [QuestionView], id: Option<&str>) -> Result<&'q QuestionView, String> {
    let ids: Vec<&str> = open.iter().map(|question| question.id.as_str()).collect();
    match (id, open) {
        (_, []) => Err("no question is open".to_owned()),
        (Some(id), _) => open
            .iter()
            .find(|question| question.id == id)
            .ok_or_else(|| format!("question {id} is not open; open: {}", ids.join(", "))),
        (None, [only]) => Ok(only),
        (None, [first, ..]) => Err(format!(
            "{} questions are open ({}): name one, such as y {}",
            ids.len(),
            ids.join(", "),
            first.id
        )),
    }
}

/// Returns what a word decides about a question.
pub(super) fn decided(question: &QuestionView, word: Word, note: &str) -> Meant {
    let note = (!note.trim().is_empty()).then(|| note.trim().to_owned());
    let answered = |answer| Meant::Answer(Box::new(answer));
    match word {
        Word::No => answered(Answer { note, ..answer(question, "reject") }),
        Word::Yes | Word::Always | Word::Edit if question.wanted.is_some() => {
            Meant::Unclear(format!("question {} wants a value: type it, or n to reject", question.id))
        }
        Word::Yes => answered(Answer { note, ..answer(question, "approve") }),
        Word::Always => match always(&question.show) {
            Some(rule) => answered(Answer { note, always: Some(rule), ..answer(question, "approve") }),
            None => {
                Meant::Unclear(format!("no rule fits exactly what question {} shows: y or n", question.id))
            }
        },
        Word::Edit if question.editable => Meant::Edit(question.id.clone()),
        Word::Edit => {
            Meant::Unclear(format!("what question {} shows cannot be changed: y or n", question.id))
        }
    }
}

/// Returns an answer to a question, for what was shown.
pub(super) fn answer(question: &QuestionView, choice: &str) -> Answer {
    Answer {
        question: Some(question.id.clone()),
        choice: choice.to_owned(),
        role: question.to.first().map(|role| role.split(" of ").last().unwrap_or(role).to_owned()),
        shown: Some(question.shown.clone()),
        ..Answer::default()
    }
}

/// Reads the value that a question wants: text as it is, everything else as JSON if it is some.
pub(super) fn given(wanted: &Value, line: &str) -> Value {
    let text = || Value::String(line.to_owned());
    match wanted.get("type").and_then(Value::as_str) {
        Some("string") => text(),
        Some("boolean") if matches!(line, "y" | "yes") => json!(true),
        Some(_) | None => serde_json::from_str(line).unwrap_or_else(|_| text()),
    }
}

/// Returns the pattern that fits exactly the call that is shown; none if there is no such pattern.
pub(super) fn always(show: &Value) -> Option<String> {
    let name = show.get("name")?.as_str()?;
    let arguments = show.get("args")?;
    let text = |key: &str| arguments.get(key).and_then(Value::as_str).map(str::to_owned);
    let subject = if name == "shell" { text("command") } else { None };
    let subject = subject.or_else(|| text("path")).unwrap_or_else(|| arguments.to_string());
    // A star would fit more than was shown.
    (!name.contains(['*', '(']) && !subject.contains('*')).then(|| format!("{name}({subject})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(id: &str, show: Value, wanted: Option<Value>) -> QuestionView {
        QuestionView {
            id: id.to_owned(),
            text: "Run?".to_owned(),
            show,
            shown: "hash".to_owned(),
            to: vec!["2 of owner".to_owned()],
            wanted,
            editable: id == "5.0",
            due: None,
            opened_at: String::new(),
            path: String::new(),
        }
    }

    fn told(meant: Meant) -> String {
        match meant {
            Meant::Answer(answer) => {
                let parts = [Some(answer.question.unwrap()), Some(answer.choice), answer.note, answer.always];
                let value = answer.value.map(|value| value.to_string());
                parts.into_iter().flatten().chain(value).collect::<Vec<_>>().join(" | ")
            }
            Meant::Edit(id) => format!("edit {id}"),
            Meant::Unclear(why) => format!("? {why}"),
            Meant::NoAnswer(why) => format!("- {why}"),
            Meant::Other => "-".to_owned(),
        }
    }

    #[test]
    fn lines_answer_the_only_question_and_no_is_the_default() {
        const NONE: &str = "- that is no answer (y [note], n [note], a)";
        let open = [question("3.0", json!({ "name": "shell", "args": { "command": "ls" } }), None)];
        for (line, expected) in [
            ("y", "3.0 | approve"),
            ("Y", "3.0 | approve"),
            ("YES", "3.0 | approve"),
            ("No", "3.0 | reject"),
            ("yes", "3.0 | approve"),
            ("y 3.0", "3.0 | approve"),
            ("a", "3.0 | approve | shell(ls)"),
            ("n", "3.0 | reject"),
            ("no not now", "3.0 | reject | not now"),
            ("n 3.0 not now", "3.0 | reject | not now"),
            ("", "3.0 | reject"),
            ("e", "? what question 3.0 shows cannot be changed: y or n"),
            ("y 4.0", "? question 4.0 is not open; open: 3.0"),
            ("yes please do it", "3.0 | approve | please do it"),
            ("y 3.0 looks  fine", "3.0 | approve | looks  fine"),
            ("and then?", NONE),
            ("sure why not", NONE),
            ("a looks fine", NONE),
            ("e looks fine", NONE),
            ("ae", NONE),
        ] {
            assert_eq!(told(meant(&open, line)), expected, "{line:?}");
        }
        let Meant::Answer(answer) = meant(&open, "y") else { panic!("no answer") };
        assert_eq!((answer.role.as_deref(), answer.shown.as_deref()), (Some("owner"), Some("hash")));
        assert_eq!(meant(&[], "y"), Meant::Other);
    }

    #[test]
    fn of_several_questions_one_is_named() {
        let open = [question("3.0", Value::Null, None), question("5.0", Value::Null, None)];
        let unclear = "? 2 questions are open (3.0, 5.0): name one, such as y 3.0";
        for (line, expected) in [
            ("y", unclear),
            ("", unclear),
            ("n not now", unclear),
            ("y 5.0", "5.0 | approve"),
            ("n 3.0", "3.0 | reject"),
            ("e 5.0", "edit 5.0"),
            ("a 5.0", "? no rule fits exactly what question 5.0 shows: y or n"),
            ("y 5.0 looks fine", "5.0 | approve | looks fine"),
            ("y looks fine", unclear),
            ("go on", "- that is no answer (2 questions are open: y ID [note], n ID [note])"),
        ] {
            assert_eq!(told(meant(&open, line)), expected, "{line:?}");
        }
    }

    #[test]
    fn wanted_values_are_text_or_json() {
        for (schema, line, expected) in [
            (json!({ "type": "string" }), "12", "3.0 | answer | \"12\""),
            (json!({ "type": "string" }), "a place for it", "3.0 | answer | \"a place for it\""),
            (json!({ "type": "string" }), "yes please", "3.0 | answer | \"yes please\""),
            (json!({ "type": "string" }), "yes", "3.0 | answer | \"yes\""),
            (json!({ "type": "boolean" }), "y", "3.0 | answer | true"),
            (json!({ "type": "integer" }), "12", "3.0 | answer | 12"),
            (json!({ "type": "object" }), "{\"a\":1}", "3.0 | answer | {\"a\":1}"),
            (json!({ "type": "integer" }), "twelve", "3.0 | answer | \"twelve\""),
            (json!({}), "n too early", "3.0 | reject | too early"),
            (json!({}), "", "-"),
        ] {
            let open = [question("3.0", Value::Null, Some(schema))];
            assert_eq!(told(meant(&open, line)), expected, "{line}");
        }
    }

    #[test]
    fn lines_that_are_answers_are_known_without_a_question() {
        for (line, expected) in [
            ("y", true),
            ("no", true),
            ("n because", true),
            ("a 5.0", true),
            ("yes please", true),
            ("a place for it", false),
            ("", false),
            ("hello", false),
        ] {
            assert_eq!(is_answer(line), expected, "{line:?}");
        }
    }

    #[test]
    fn always_means_exactly_this_call() {
        for (show, expected) in [
            (json!({ "name": "shell", "args": { "command": "git status" } }), Some("shell(git status)")),
            (json!({ "name": "write", "args": { "path": "a", "content": "b" } }), Some("write(a)")),
            (json!({ "name": "fetch", "args": { "url": "u" } }), Some("fetch({\"url\":\"u\"})")),
            (json!({ "name": "shell", "args": { "command": "rm *" } }), None),
            (json!({ "text": "x" }), None),
        ] {
            assert_eq!(always(&show).as_deref(), expected, "{show}");
        }
    }

    #[test]
    fn a_change_of_a_file_is_shown_as_a_difference_and_a_long_one_by_its_beginning() {
        let dir = tempfile::tempdir().unwrap();
        let text: String = (0..100).map(|n| format!("{n}\n")).collect();
        let asked = question("5.0", json!({ "name": "write", "args": { "path": "a", "text": text } }), None);
        let brief = lines(&asked, Some(dir.path()), Extent::Brief);
        assert_eq!(brief[1].1, "    write a, a new file");
        assert_eq!(brief[3], (Tone::Added, "    +0".to_owned()));
        assert_eq!(brief[brief.len() - 2].1, "    … 62 more lines: /approve show 5.0");
        assert!(
            brief.last().unwrap().1.ends_with("e: change it first · a: yes, and always write(a) in this run")
        );
        assert_eq!(lines(&asked, Some(dir.path()), Extent::Whole).len(), 104);
        // Without a directory there is nothing to compare with: the call is shown.
        assert_eq!(lines(&asked, None, Extent::Brief)[1].1, "    write");
    }
}
