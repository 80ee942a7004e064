//! Which words of a person mean what to a flow: the message that text becomes, the message that stops, the parameter that begins.

use outlast_dsl::machine::{FieldDef, Flow, Type};
use outlast_protocol::requests::{Answer, Send};
use outlast_protocol::run::{QuestionView, WaitingFor};
use serde_json::{Value, json};

/// How a flow is talked to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Voice {
    /// The message type and field that text becomes.
    say: Option<(String, String)>,
    /// The message that stops what goes on.
    stop: Option<String>,
    /// The parameter that the first text becomes.
    pub(super) first: Option<String>,
    /// Parameters that would have to be given besides.
    pub(super) missing: Vec<String>,
}

impl Voice {
    /// Reads it off a flow.
    pub(super) fn of(flow: &Flow) -> Voice {
        let lone_text = |fields: &[FieldDef]| match fields {
            [field] if field.ty == Type::Text => Some(field.name.clone()),
            [_] | [] | [..] => None,
        };
        let say = flow.messages.iter().filter(|message| !message.now);
        let say = say.filter_map(|message| Some((message.name.clone(), lone_text(&message.fields)?))).next();
        let stop = flow.messages.iter().find(|message| message.name == "Stop" && message.fields.is_empty());
        let needed = flow.params.iter().filter(|p| p.default.is_none() && !matches!(p.ty, Type::Option(_)));
        let first = needed.clone().find(|param| param.ty == Type::Text).map(|param| param.name.clone());
        let missing = needed.map(|param| param.name.clone()).filter(|name| Some(name) != first.as_ref());
        Voice { say, stop: stop.map(|message| message.name.clone()), missing: missing.collect(), first }
    }

    /// Guesses it for a run whose text is not at hand: by the messages that it waits for.
    pub(super) fn guessed(waiting: Option<&WaitingFor>) -> Voice {
        let name = match waiting {
            Some(WaitingFor::Message { types }) => types.iter().find(|name| *name != "closed").cloned(),
            Some(_) | None => None,
        };
        let say = Some((name.unwrap_or_else(|| "Say".to_owned()), "text".to_owned()));
        Voice { say, stop: Some("Stop".to_owned()), first: None, missing: Vec::new() }
    }

    /// Returns the message that text becomes; none if the flow takes no text.
    pub(super) fn say(&self, text: &str, id: String) -> Option<Send> {
        let (name, field) = self.say.as_ref()?;
        Some(Send { name: name.clone(), value: json!({ field: text }), id: Some(id) })
    }

    /// Returns the message that stops what goes on; none if the flow has none.
    pub(super) fn stop(&self, id: String) -> Option<Send> {
        Some(Send { name: self.stop.clone()?, value: json!({}), id: Some(id) })
    }
}

/// Whether a line can only be meant as an answer.
pub(super) fn is_answer(line: &str) -> bool {
    matches!(line.trim(), "y" | "yes" | "n" | "no" | "a" | "always") || line.starts_with("n ")
}

/// Returns the answer that a line means; none if it is no answer.
pub(super) fn answer(question: &QuestionView, line: &str) -> Option<Answer> {
    let line = line.trim();
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let note = (!rest.trim().is_empty()).then(|| rest.trim().to_owned());
    let with = |choice: &str| Answer {
        question: Some(question.id.clone()),
        choice: choice.to_owned(),
        role: question.to.first().map(|role| role.split(" of ").last().unwrap_or(role).to_owned()),
        shown: Some(question.shown.clone()),
        ..Answer::default()
    };
    match (word, rest) {
        ("y" | "yes", "") => Some(with("approve")),
        ("a" | "always", "") => Some(Answer { always: Some(always(&question.show)?), ..with("approve") }),
        ("n" | "no", _) => Some(Answer { note, ..with("reject") }),
        ("", _) if question.wanted.is_none() => Some(with("reject")),
        _ => {
            let wanted = question.wanted.as_ref().filter(|_| !line.is_empty())?;
            Some(Answer { value: Some(given(wanted, line)), ..with("answer") })
        }
    }
}

/// Reads the value that a question wants: text as it is, everything else as JSON if it is some.
fn given(wanted: &Value, line: &str) -> Value {
    let text = || Value::String(line.to_owned());
    if wanted.get("type") == Some(&json!("string")) {
        return text();
    }
    serde_json::from_str(line).unwrap_or_else(|_| text())
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

    fn question(show: Value, wanted: Option<Value>) -> QuestionView {
        QuestionView {
            id: "3.0".to_owned(),
            text: "Run?".to_owned(),
            show,
            shown: "hash".to_owned(),
            to: vec!["2 of owner".to_owned()],
            wanted,
            editable: false,
            due: None,
            opened_at: String::new(),
            path: String::new(),
        }
    }

    #[test]
    fn lines_answer_questions_and_no_is_the_default() {
        let asked = question(json!({ "name": "shell", "args": { "command": "ls" } }), None);
        for (line, expected) in [
            ("y", Some(("approve", None, None))),
            ("yes", Some(("approve", None, None))),
            ("a", Some(("approve", None, Some("shell(ls)")))),
            ("n", Some(("reject", None, None))),
            ("no not now", Some(("reject", Some("not now"), None))),
            ("", Some(("reject", None, None))),
            ("yes please do it", None),
            ("and then?", None),
        ] {
            let found = answer(&asked, line);
            let found = found.as_ref().map(|a| (a.choice.as_str(), a.note.as_deref(), a.always.as_deref()));
            assert_eq!(found, expected, "{line:?}");
        }
        let answer = answer(&asked, "y").unwrap();
        assert_eq!((answer.role.as_deref(), answer.shown.as_deref()), (Some("owner"), Some("hash")));
    }

    #[test]
    fn wanted_values_are_text_or_json() {
        for (schema, line, value) in [
            (json!({ "type": "string" }), "12", json!("12")),
            (json!({ "type": "integer" }), "12", json!(12)),
            (json!({ "type": "object" }), "{\"a\":1}", json!({ "a": 1 })),
            (json!({ "type": "integer" }), "twelve", json!("twelve")),
        ] {
            let found = answer(&question(Value::Null, Some(schema)), line).unwrap();
            assert_eq!((found.choice.as_str(), found.value), ("answer", Some(value)), "{line}");
        }
        assert_eq!(answer(&question(Value::Null, Some(json!({}))), ""), None);
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
}
