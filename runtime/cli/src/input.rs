//! The arguments of a flow, as the command line gives them.

use std::path::Path;

use serde_json::{Map, Value};

use crate::failure::Failure;
use crate::files::{read_stdin, read_text};

/// Returns the input of a run: `--input` as an object, `--task` as its parameter `task`.
pub(crate) fn input(task: Option<&str>, input: Option<&str>) -> Result<Value, Failure> {
    let given = input.map(text).transpose()?;
    merge(task, given.as_deref())
}

/// Returns the text that `JSON`, `@FILE` or `-` means.
pub(crate) fn text(given: &str) -> Result<String, Failure> {
    match given.strip_prefix('@') {
        Some(path) => read_text(Path::new(path)),
        None if given == "-" => read_stdin(),
        None => Ok(given.to_owned()),
    }
}

fn merge(task: Option<&str>, input: Option<&str>) -> Result<Value, Failure> {
    let mut object = match input.map(|text| outlast_protocol::json::read::<Value>(text.as_bytes())) {
        None => Map::new(),
        Some(Ok(Value::Object(object))) => object,
        Some(Ok(_)) => {
            let what =
                "--input: an object with the flow's parameters is expected, as in '{\"task\": \"tidy up\"}'";
            return Err(Failure::usage(what));
        }
        Some(Err(error)) => {
            let failure = Failure::usage(format!("--input is not JSON: {error}"));
            return Err(failure.hint("write the JSON itself, @FILE, or - for stdin"));
        }
    };
    if let Some(task) = task
        && object.insert("task".to_owned(), task.into()).is_some()
    {
        return Err(Failure::usage("--task and --input both set `task`"));
    }
    Ok(Value::Object(object))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn task_and_input_make_one_object() {
        for (task, input, expected) in [
            (None, None, Some(json!({}))),
            (Some("t"), None, Some(json!({ "task": "t" }))),
            (None, Some(r#"{"a": 1}"#), Some(json!({ "a": 1 }))),
            (Some("t"), Some(r#"{"a": 1}"#), Some(json!({ "a": 1, "task": "t" }))),
            (Some("t"), Some(r#"{"task": 1}"#), None),
            (None, Some("[1]"), None),
            (None, Some("{"), None),
            (None, Some(""), None),
        ] {
            assert_eq!(merge(task, input).ok(), expected, "{task:?} {input:?}");
        }
    }
}
