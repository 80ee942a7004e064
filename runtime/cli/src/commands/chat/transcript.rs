//! A run's events as a conversation: what was said, what was called, what went wrong.
//!
//! Invariant: pure; works for any flow, and knows more of values that look like those of a conversation: calls and their answers.

use serde_json::Value;

use super::mention;
use super::screen::{Line, Tone};
use crate::limits::MESSAGE_LINES;
use crate::show;

/// Lines of an answer that are shown of a tool.
const ANSWER_LINES: usize = 3;

/// Returns what an event adds to the conversation.
pub(super) fn lines(event: &Value) -> Vec<Line> {
    let text = |name: &str| event.get(name).and_then(Value::as_str).unwrap_or_default();
    let by = text("by");
    match text("kind") {
        "emit" => vec![(Tone::Said, show::value(&event["value"]))],
        "started" => started(&event["input"]),
        "message" => vec![(Tone::Aside, message(text("type"), text("from"), &event["value"]))],
        "done" => done(text("activity"), &event["value"]),
        "failed" => failed(text("activity"), event),
        "lost" => vec![(Tone::Aside, format!("! an attempt was lost ({})", text("why").replace('_', " ")))],
        "answered" => vec![(Tone::Aside, format!("  {}", show::answered(event)))],
        "settled" => vec![(Tone::Aside, format!("  operation {} settled: {}", text("op"), text("verdict")))],
        "cancelled" | "terminated" => vec![(Tone::Loud, format!("{} by {by}", text("kind")))],
        "withdrawn" => vec![(Tone::Aside, "  a message was taken back".to_owned())],
        _ => Vec::new(),
    }
}

/// Returns what a model said beside its calls.
fn spoken(value: &Value) -> Option<&str> {
    value.pointer("/message/text").and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// The words that began a run are those of whoever started it; other parameters are just told.
fn started(input: &Value) -> Vec<Line> {
    match (first_words(input), input.as_object()) {
        (Some(text), _) => vec![(Tone::Aside, heading(text))],
        (None, Some(fields)) if !fields.is_empty() => {
            vec![(Tone::Aside, format!("  started with {}", show::short(input)))]
        }
        (None, _) => Vec::new(),
    }
}

/// Returns the words that began a run: its task, or the only text among its parameters.
pub(super) fn first_words(input: &Value) -> Option<&str> {
    let mut texts = input.as_object()?.values().filter_map(Value::as_str);
    let only = texts.next().filter(|_| texts.next().is_none());
    input["task"].as_str().or(only)
}

/// Returns what a person said as a heading of what follows.
fn heading(text: &str) -> String {
    format!("> {}", cut(&mention::shown(text), MESSAGE_LINES, "more lines"))
}

/// Returns what a person said with a message: its text, or its one field if that is text.
pub(super) fn said(value: &Value) -> Option<&str> {
    let text = value.get("text").and_then(Value::as_str);
    text.or_else(|| {
        let mut fields = value.as_object()?.values();
        fields.next().filter(|_| fields.next().is_none())?.as_str()
    })
}

fn message(name: &str, from: &str, value: &Value) -> String {
    match said(value) {
        Some(text) => heading(text),
        None if value.as_object().is_none_or(serde_json::Map::is_empty) => format!("  {name} sent by {from}"),
        None => format!("  {name} sent by {from}: {}", show::short(value)),
    }
}

fn done(activity: &str, value: &Value) -> Vec<Line> {
    if let Some(calls) = value.get("calls").and_then(Value::as_array) {
        let said = spoken(value).map(|text| (Tone::Said, text.to_owned()));
        return said.into_iter().chain(calls.iter().map(|call| (Tone::Aside, call_line(call)))).collect();
    }
    let (Some(ok), Some(text)) =
        (value.get("ok").and_then(Value::as_bool), value.get("text").and_then(Value::as_str))
    else {
        return Vec::new();
    };
    let answer = cut(text, ANSWER_LINES, &format!("more lines of {activity}"));
    vec![(Tone::Aside, format!("  {} {answer}", if ok { "=" } else { "!" }))]
}

/// Returns the first lines of a text, set in, and how many more there are of what.
fn cut(text: &str, most: usize, of_what: &str) -> String {
    let more = text.lines().count().saturating_sub(most);
    let shown = text.lines().take(most).collect::<Vec<_>>().join("\n    ");
    if more > 0 { format!("{shown}\n    … {more} {of_what}") } else { shown }
}

fn call_line(call: &Value) -> String {
    let name = call.get("name").and_then(Value::as_str).unwrap_or("?");
    let arguments = &call["args"];
    let fields = arguments.as_object().into_iter().flatten();
    let shown: Vec<String> = fields.map(|(name, value)| format!("{name}={}", show::short(value))).collect();
    let shown = if arguments.is_object() { shown.join(" ") } else { show::short(arguments) };
    format!("  * {name} {shown}")
}

fn failed(activity: &str, event: &Value) -> Vec<Line> {
    let again = match event.get("retry_at").and_then(Value::as_str) {
        Some(at) => format!(", again at {at}"),
        None => String::new(),
    };
    vec![(Tone::Aside, format!("! {activity} failed: {}{again}", show::error_text(&event["error"])))]
}

/// Returns what a result says beyond the text of it that was streamed; a heading may stand before that.
pub(super) fn rest<'a>(value: &'a Value, streamed: &str) -> Option<&'a str> {
    let whole =
        value.as_str().or_else(|| value["text"].as_str()).or_else(|| value["message"]["text"].as_str())?;
    let starts = std::iter::once(0).chain(streamed.match_indices('\n').map(|(at, _)| at + 1));
    let mut heard = starts.map(|at| &streamed[at..]).filter(|text| !text.is_empty());
    heard.find_map(|text| whole.strip_prefix(text)).filter(|rest| !rest.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn events_read_as_a_conversation() {
        let reply = json!({ "type": "Tools", "message": { "text": "Let me see." },
                            "calls": [{ "id": "1", "name": "list", "args": { "path": "." } }] });
        let long = json!({ "id": "1", "ok": true, "text": "a\nb\nc\nd\ne" });
        for (event, expected) in [
            (json!({ "kind": "emit", "value": "hello" }), vec!["hello"]),
            (json!({ "kind": "started", "input": { "task": "tidy" } }), vec!["> tidy"]),
            (json!({ "kind": "started", "input": {} }), vec![]),
            (json!({ "kind": "started", "input": { "max": 3, "topic": "whales" } }), vec!["> whales"]),
            (
                json!({ "kind": "started", "input": { "a": "x", "b": "y" } }),
                vec!["  started with {\"a\":\"x\",\"b\":\"y\"}"],
            ),
            (json!({ "kind": "message", "type": "Say", "value": { "text": "more" } }), vec!["> more"]),
            (json!({ "kind": "message", "type": "Tell", "value": { "words": "more" } }), vec!["> more"]),
            (
                json!({ "kind": "message", "type": "Set", "from": "ann", "value": { "a": "b", "c": 1 } }),
                vec!["  Set sent by ann: {\"a\":\"b\",\"c\":1}"],
            ),
            (
                json!({ "kind": "message", "type": "Stop", "from": "local", "value": {} }),
                vec!["  Stop sent by local"],
            ),
            (
                json!({ "kind": "done", "activity": "model", "value": reply }),
                vec!["Let me see.", "  * list path=."],
            ),
            (
                json!({ "kind": "done", "activity": "tool", "value": long }),
                vec!["  = a\n    b\n    c\n    … 2 more lines of tool"],
            ),
            (json!({ "kind": "done", "activity": "log", "value": null }), vec![]),
            (
                json!({ "kind": "failed", "activity": "model", "error": { "kind": "timeout", "text": "late" }, "retry_at": "T" }),
                vec!["! model failed: timeout: late, again at T"],
            ),
            (
                json!({ "kind": "answered", "choice": "reject", "by": "local", "note": "no" }),
                vec!["  rejected by local: no"],
            ),
            (json!({ "kind": "timer_fired" }), vec![]),
        ] {
            let found: Vec<String> = lines(&event).into_iter().map(|(_, text)| text).collect();
            assert_eq!(found, expected, "{event}");
        }
    }

    #[test]
    fn the_end_of_a_streamed_text_comes_with_its_result() {
        for (value, streamed, expected) in [
            (json!({ "text": "one two three" }), "[scripted: agent]\none two", Some(" three")),
            (json!("one\ntwo"), "one\nt", Some("wo")),
            (json!({ "message": { "text": "one" } }), "one", None),
            (json!({ "text": "one" }), "other", None),
            (json!({ "text": "one" }), "", None),
            (json!({ "calls": [] }), "one", None),
        ] {
            assert_eq!(rest(&value, streamed), expected, "{streamed:?}");
        }
    }
}
