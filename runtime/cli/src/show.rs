//! Runs, questions and events in lines for people.

use outlast_protocol::run::{OutcomeView, QuestionView, RunView, TokensView, WaitingFor};
use serde_json::Value;

use crate::failure::Exit;
use crate::limits::{HASH_CHARS_SHOWN, VALUE_CHARS_MAX};
use crate::out::tame;

/// Returns a result for people: its text if it has one, else JSON.
pub(crate) fn value(value: &Value) -> String {
    let text = match value {
        Value::String(text) => Some(text),
        Value::Object(object) => match object.get("text") {
            Some(Value::String(text)) if object.keys().all(|key| key == "text" || key == "type") => {
                Some(text)
            }
            Some(_) | None => None,
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => None,
    };
    match text {
        Some(text) => text.clone(),
        None => serde_json::to_string_pretty(value).unwrap_or_default(),
    }
}

/// Returns a value in a part of a line.
pub(crate) fn short(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let line = text.replace('\n', "⏎ ");
    let mut cut: String = line.chars().take(VALUE_CHARS_MAX).collect();
    if cut.len() < line.len() {
        cut.push('…');
    }
    tame(&cut)
}

/// Says in a line why a run does not move, and what a person can do about it.
pub(crate) fn waiting_for(run: &str, waiting: &WaitingFor) -> String {
    match waiting {
        WaitingFor::Worker { queue, activity } => {
            format!("waits for a free worker of queue {queue} to do {activity}")
        }
        WaitingFor::Activity { queue, activity } => {
            format!("no worker of queue {queue} offers {activity}: start one that does")
        }
        WaitingFor::Rate { queue, activity, until } => {
            format!(
                "waits to do {activity}: the rate of queue {queue} is used up, its next task goes out at {until}"
            )
        }
        WaitingFor::Retry { until, activity, error } => {
            format!("tries {activity} again at {until}, after: {}", tame(error))
        }
        WaitingFor::Question { id } => {
            format!("waits for an answer: outlast answer {run} {id} approve|reject")
        }
        WaitingFor::Message { types } => {
            format!("waits for a message: outlast send {run} TYPE JSON, TYPE one of {}", types.join(", "))
        }
        WaitingFor::Timer { until } => format!("waits until {until}"),
        WaitingFor::Child { run: child } => format!("waits for run {child}"),
        WaitingFor::Budget { activity } => format!("waits for room in its budget to do {activity}"),
        WaitingFor::Environment { profile, detail } => {
            format!("no worker serves its environment {profile}: {}", tame(detail))
        }
        WaitingFor::Held { reason, op } => {
            let reason = tame(reason);
            format!(
                "operation {op} is held ({reason}): outlast settle {run} {op} …, or outlast release {run} {op}"
            )
        }
        WaitingFor::Blocked { event, line, expression, cause } => {
            let place = if line.is_empty() { expression } else { line };
            format!("blocked at event {event}, {}: {}", tame(place), tame(cause))
        }
    }
}

/// Returns how a command ends that waited for this outcome.
pub(crate) fn exit_of(outcome: &OutcomeView) -> Exit {
    match outcome.kind.as_str() {
        "done" => Exit::Done,
        "cancelled" | "terminated" => Exit::Cancelled,
        _ => Exit::Failed,
    }
}

/// Returns an outcome in lines.
pub(crate) fn outcome(outcome: &OutcomeView) -> String {
    match (&outcome.value, &outcome.error) {
        (Some(result), _) => value(result),
        (None, Some(error)) => format!("{}: {}", outcome.kind, error_text(error)),
        (None, None) => outcome.kind.clone(),
    }
}

/// Returns an error's own words, with its name.
pub(crate) fn error_text(error: &Value) -> String {
    let field = |name: &str| error.get(name).and_then(Value::as_str);
    let name = field("kind").or_else(|| field("type"));
    let text = field("text").or_else(|| field("detail")).or_else(|| field("message"));
    match (name, text) {
        (Some(name), Some(text)) => tame(&format!("{name}: {text}")),
        (None, Some(text)) => tame(text),
        (Some(_) | None, None) => short(error),
    }
}

/// Returns a question in lines: who is asked what, and exactly what is shown.
pub(crate) fn question(question: &QuestionView) -> String {
    let mut text = format!("? {}", tame(&question.text));
    for line in shown(&question.show) {
        text = text + "\n    " + &line;
    }
    text
}

/// Returns an answer to a question in a line: what was decided, by whom, with what note.
pub(crate) fn answered(event: &Value) -> String {
    let text = |name: &str| event.get(name).and_then(Value::as_str).unwrap_or_default();
    let past = match text("choice") {
        "approve" => "approved",
        "reject" => "rejected",
        "answer" => "answered",
        other => other,
    };
    let note = event.get("note").filter(|note| !note.is_null());
    let note = note.map(|note| format!(": {}", short(note))).unwrap_or_default();
    format!("{past} by {}{note}", tame(text("by")))
}

/// Returns the tool and the arguments of a call that is shown; none if it is none.
pub(crate) fn call(show: &Value) -> Option<(&str, Value)> {
    let (name, arguments) = show.get("name").and_then(Value::as_str).zip(show.get("args"))?;
    // A model gives its arguments as JSON in text or as JSON itself.
    let parsed = match arguments {
        Value::String(text) => serde_json::from_str(text).unwrap_or_else(|_| arguments.clone()),
        other => other.clone(),
    };
    Some((name, parsed))
}

/// Returns what a question shows, nothing left out: people decide by it.
pub(crate) fn shown(show: &Value) -> Vec<String> {
    let Some((name, parsed)) = call(show) else {
        return match show {
            Value::Null => Vec::new(),
            other => tame(&value(other)).lines().map(str::to_owned).collect(),
        };
    };
    let mut lines = Vec::new();
    match &parsed {
        Value::Object(arguments) => {
            lines.push(tame(name));
            for (key, argument) in arguments {
                let text = argument.as_str().map_or_else(|| argument.to_string(), str::to_owned);
                let text = tame(&text);
                let mut parts = text.split('\n');
                lines.push(format!("  {}: {}", tame(key), parts.next().unwrap_or_default()));
                lines.extend(parts.map(|part| format!("    {part}")));
            }
        }
        other => {
            let text = other.as_str().map_or_else(|| other.to_string(), str::to_owned);
            lines.push(format!("{} {}", tame(name), tame(&text).replace('\n', "\n      ")));
        }
    }
    lines.extend(files_seen(show));
    lines
}

/// Says which files a call rests on: it is approved with them as they are, and with no other content.
fn files_seen(show: &Value) -> impl Iterator<Item = String> + '_ {
    let files = show.get("seen").and_then(|seen| seen.get("files")).and_then(Value::as_object);
    files.into_iter().flatten().map(|(path, file)| {
        let hash = file.get("hash").and_then(Value::as_str).unwrap_or("unreadable");
        let hash: String = hash.chars().take(HASH_CHARS_SHOWN).collect();
        let bytes = file.get("bytes").and_then(Value::as_u64).unwrap_or_default();
        format!("  as it is now: {}, {bytes} bytes ({})", tame(path), tame(&hash))
    })
}

/// Returns a run in lines.
pub(crate) fn run(run: &RunView) -> String {
    let mut lines = vec![
        format!("run      {}", run.id),
        format!("flow     {} ({})", run.flow, run.machine.get(..12).unwrap_or(&run.machine)),
        format!(
            "status   {}{}",
            run.status,
            if run.state.is_empty() { String::new() } else { format!(" in {}", run.state) }
        ),
        format!("events   {}, cost {}{}", run.events, run.cost, tokens(run)),
        format!("started  {}, last event {}", run.started_at, run.updated_at),
    ];
    if let Some(waiting) = &run.waiting_for {
        lines.push(format!("now      {}", waiting_for(&run.id, waiting)));
    }
    if let Some(ended) = &run.outcome {
        lines.push(format!("outcome  {}", ended.kind));
        lines.push(tame(&outcome(ended)));
    }
    if !run.unread.is_empty() {
        lines.push(format!("unread   {} messages", run.unread.len()));
        lines.extend(run.unread.iter().map(|message| format!("  {}", short(message))));
    }
    lines.extend(run.questions.iter().map(|asked| format!("question {}\n{}", asked.id, question(asked))));
    lines.join("\n")
}

/// Returns what models read and wrote for a run, behind its cost; nothing if that is nothing.
pub(crate) fn tokens(run: &RunView) -> String {
    match run.tokens {
        TokensView { input: 0, output: 0 } => String::new(),
        TokensView { input, output } => format!(", tokens {input} in, {output} out"),
    }
}

/// Returns a run in one line of a list.
pub(crate) fn row(run: &RunView) -> String {
    let status = match (&run.outcome, &run.waiting_for) {
        (Some(outcome), _) => outcome.kind.clone(),
        (None, Some(WaitingFor::Question { .. })) => format!("{} ?", run.status),
        (None, _) => run.status.clone(),
    };
    format!(
        "{:<24} {:<12} {:<11} {:>6}  {}  {}",
        run.id, run.flow, status, run.events, run.updated_at, run.state
    )
}

/// Returns a stored event in one line.
pub(crate) fn event(event: &Value) -> String {
    let text = |name: &str| event.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let number = |name: &str| event.get(name).and_then(Value::as_u64).unwrap_or_default();
    let kind = text("kind");
    if kind == "emit" {
        let value = event.get("value").map(short).unwrap_or_default();
        return format!("{:>6}.{:<3} {:<24} emit      {value}", number("n"), number("k"), "");
    }
    let Some(fields) = event.as_object() else { return short(event) };
    let rest: Vec<String> = fields
        .iter()
        .filter(|(name, _)| !matches!(name.as_str(), "run" | "n" | "time" | "kind" | "digest"))
        .map(|(name, value)| format!("{name}={}", short(value)))
        .collect();
    format!("{:>6}     {:<24} {kind:<9} {}", number("n"), text("time"), rest.join(" "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn results_read_as_their_text() {
        for (result, expected) in [
            (json!("a\nb"), "a\nb"),
            (json!({ "type": "Answered", "text": "yes" }), "yes"),
            (
                json!({ "type": "Answered", "text": "yes", "n": 1 }),
                "{\n  \"n\": 1,\n  \"text\": \"yes\",\n  \"type\": \"Answered\"\n}",
            ),
            (json!(3), "3"),
            (json!(null), "null"),
        ] {
            assert_eq!(value(&result), expected);
        }
    }

    #[test]
    fn exit_codes_follow_the_outcome() {
        for (kind, exit) in [
            ("done", Exit::Done),
            ("failed", Exit::Failed),
            ("cancelled", Exit::Cancelled),
            ("terminated", Exit::Cancelled),
        ] {
            let view = OutcomeView { kind: kind.to_owned(), value: None, error: None };
            assert_eq!(exit_of(&view), exit, "{kind}");
        }
    }

    #[test]
    fn a_call_is_shown_whole_and_tame() {
        let call =
            json!({ "name": "shell", "args": { "command": "rm -rf \u{1b}[8mbuild\nls", "timeout": "5s" } });
        let expected = ["shell", "  command: rm -rf \\u{1b}[8mbuild", "    ls", "  timeout: 5s"];
        assert_eq!(shown(&call), expected);
        let as_text = json!({ "name": "shell", "args": "{\"command\":\"ls\"}" });
        assert_eq!(shown(&as_text), ["shell", "  command: ls"]);
        assert_eq!(shown(&json!({ "name": "shell", "args": "ls" })), ["shell ls"]);
        let seen = json!({ "files": { "a.sh": { "bytes": 12, "hash": "0123456789abcdef" } } });
        let looked_at = json!({ "name": "shell", "args": { "command": "./a.sh" }, "seen": seen });
        let expected = ["shell", "  command: ./a.sh", "  as it is now: a.sh, 12 bytes (01234567)"];
        assert_eq!(shown(&looked_at), expected);
        assert_eq!(shown(&json!(null)), Vec::<String>::new());
        assert_eq!(shown(&json!({ "a": 1 })), ["{", "  \"a\": 1", "}"]);
    }

    #[test]
    fn errors_are_told_in_their_own_words() {
        for (error, expected) in [
            (json!({ "kind": "failed", "text": "no room" }), "failed: no room"),
            (json!({ "type": "ToolFailed", "detail": "x" }), "ToolFailed: x"),
            (json!({ "text": "x" }), "x"),
            (json!({ "type": "Odd", "n": 1 }), "{\"n\":1,\"type\":\"Odd\"}"),
        ] {
            assert_eq!(error_text(&error), expected);
        }
    }
}
