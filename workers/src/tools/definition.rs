//! What each tool is: name, parameters, schema, effect class, permission.
//!
//! Leaves running to the other modules. Invariant: this table is the only list of tools; schemas, the catalogue and the check of
//! arguments are all made from it.

use std::time::Duration;

use serde_json::{Map, json};

use super::ToolError;
use crate::Json;

/// A tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tool {
    Read,
    Write,
    Edit,
    Append,
    List,
    Find,
    Grep,
    Shell,
    Fetch,
}

/// The kind of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Count,
    Time,
}

struct Param {
    name: &'static str,
    kind: Kind,
    required: bool,
    about: &'static str,
}

const fn needs(name: &'static str, kind: Kind, about: &'static str) -> Param {
    Param { name, kind, required: true, about }
}

const fn may(name: &'static str, kind: Kind, about: &'static str) -> Param {
    Param { name, kind, required: false, about }
}

const PATH: Param = needs("path", Kind::Text, "path in the working directory");

const READ: [Param; 3] = [
    needs(
        "path",
        Kind::Text,
        "path in the working directory, or blob:… as the note of an answer that was cut names it",
    ),
    may("offset", Kind::Count, "first line, from 1"),
    may("limit", Kind::Count, "how many lines"),
];
const WRITE: [Param; 2] = [PATH, needs("text", Kind::Text, "the whole content")];
const EDIT: [Param; 3] = [
    PATH,
    needs("old", Kind::Text, "the text to replace, exactly as it stands in the file, once"),
    needs("new", Kind::Text, "the text to put in its place"),
];
const APPEND: [Param; 2] = [PATH, needs("line", Kind::Text, "the line, without line breaks")];
const LIST: [Param; 1] = [may("path", Kind::Text, "path in the working directory; left out: itself")];
const FIND: [Param; 2] = [
    needs("pattern", Kind::Text, "a glob; with a / it must fit the whole path, else the name"),
    may("path", Kind::Text, "where to look"),
];
const GREP: [Param; 3] = [
    needs("pattern", Kind::Text, "a regular expression"),
    may("path", Kind::Text, "where to look"),
    may("glob", Kind::Text, "only in files that fit, such as *.rs"),
];
const SHELL: [Param; 2] = [
    needs("command", Kind::Text, "the command line"),
    may("timeout", Kind::Time, "the longest it may take, such as 30s or 5m; 2m if left out"),
];

const FETCH: [Param; 2] = [
    needs("url", Kind::Text, "the address, http or https"),
    may("timeout", Kind::Time, "the longest it may take; 30s if left out"),
];

impl Tool {
    pub(crate) const ALL: [Tool; 9] = [
        Tool::Read,
        Tool::Write,
        Tool::Edit,
        Tool::Append,
        Tool::List,
        Tool::Find,
        Tool::Grep,
        Tool::Shell,
        Tool::Fetch,
    ];

    /// The tool of exactly this name.
    pub(crate) fn named(name: &str) -> Option<Tool> {
        Tool::ALL.into_iter().find(|tool| tool.name() == name)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Tool::Read => "read",
            Tool::Write => "write",
            Tool::Edit => "edit",
            Tool::Append => "append",
            Tool::List => "list",
            Tool::Find => "find",
            Tool::Grep => "grep",
            Tool::Shell => "shell",
            Tool::Fetch => "fetch",
        }
    }

    fn about(self) -> &'static str {
        match self {
            Tool::Read => "Read a text file, or some of its lines; or what was left out of a long answer.",
            Tool::Write => "Write a whole file; missing directories are made.",
            Tool::Edit => "Replace a piece of text that occurs exactly once in a file.",
            Tool::Append => {
                "Append one line to a file. The line carries the operation's key: where it says {key}, else at its end."
            }
            Tool::List => "List a directory; names of directories end in /.",
            Tool::Find => {
                "Find files whose name or path fits a glob such as *.rs or src/**/*.rs. Ignored files are left out."
            }
            Tool::Grep => {
                "Find lines that fit a regular expression, as path:line: text. Ignored files are left out."
            }
            Tool::Fetch => "Get a page of the web as text. A redirect to another host is told, not followed.",
            Tool::Shell => {
                "Run a shell command in the working directory. Processes that it leaves behind are ended with it."
            }
        }
    }

    /// What may be done again after a crash; empty where it depends on the call, and the flow must say.
    pub(crate) fn effect(self) -> &'static str {
        match self {
            Tool::Read | Tool::List | Tool::Find | Tool::Grep | Tool::Fetch => "pure",
            Tool::Write | Tool::Edit => "idempotent",
            Tool::Append => "once",
            Tool::Shell => "",
        }
    }

    /// The class that holds where the flow says nothing.
    pub(crate) fn class(self) -> &'static str {
        match self.effect() {
            "" => "once",
            effect => effect,
        }
    }

    fn params(self) -> &'static [Param] {
        match self {
            Tool::Read => &READ,
            Tool::Write => &WRITE,
            Tool::Edit => &EDIT,
            Tool::Append => &APPEND,
            Tool::List => &LIST,
            Tool::Find => &FIND,
            Tool::Grep => &GREP,
            Tool::Shell => &SHELL,
            Tool::Fetch => &FETCH,
        }
    }

    /// The JSON Schema of the arguments.
    pub(crate) fn input_schema(self) -> Json {
        let mut properties = Map::new();
        for param in self.params() {
            let mut schema = match param.kind {
                Kind::Text => json!({"type": "string"}),
                Kind::Count => json!({"type": "integer", "minimum": 1}),
                // Whole seconds are taken too; one type is easier to follow.
                Kind::Time => json!({"type": "string"}),
            };
            schema["description"] = param.about.into();
            properties.insert(param.name.to_owned(), schema);
        }
        let required: Vec<&str> = self.params().iter().filter(|p| p.required).map(|p| p.name).collect();
        json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
    }

    /// The JSON Schema of the result, as an activity.
    pub(crate) fn output_schema(self) -> Json {
        match self {
            Tool::Read | Tool::Write | Tool::Edit | Tool::Append | Tool::Shell | Tool::Fetch => {
                json!({"type": "string"})
            }
            Tool::List | Tool::Find | Tool::Grep => json!({"type": "array", "items": {"type": "string"}}),
        }
    }

    /// Checks arguments; `null` counts as left out.
    pub(crate) fn check(self, args: &Map<String, Json>) -> Result<(), ToolError> {
        for param in self.params() {
            let given = args.get(param.name).filter(|value| !value.is_null());
            let problem = match given {
                None if param.required => "is missing",
                None => continue,
                Some(value) => match (param.kind, value) {
                    (Kind::Text, Json::String(_)) => continue,
                    (Kind::Count, value) if value.as_u64().is_some_and(|count| count >= 1) => continue,
                    (Kind::Time, value) if time(value).is_some() => continue,
                    (Kind::Text, _) => "must be text",
                    (Kind::Count, _) => "must be a whole number from 1",
                    (Kind::Time, _) => "must be whole seconds, or a text such as \"30s\"",
                },
            };
            return Err(bad_arguments(self, &format!("{} {problem}", param.name)));
        }
        match args.keys().find(|name| !self.params().iter().any(|param| param.name == *name)) {
            Some(name) => Err(bad_arguments(self, &format!("there is no {name}"))),
            None => Ok(()),
        }
    }
}

fn bad_arguments(tool: Tool, problem: &str) -> ToolError {
    let names: Vec<&str> = tool.params().iter().map(|param| param.name).collect();
    let text =
        format!("the arguments of {} do not fit: {problem} (it takes {})", tool.name(), names.join(", "));
    ToolError::new("BadArguments", text)
}

/// Reads seconds, or a duration as Flow writes it.
pub(crate) fn time(value: &Json) -> Option<Duration> {
    let duration = match value {
        Json::Number(number) => Duration::from_secs(number.as_u64()?),
        Json::String(text) => {
            let unit = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
            let count: u64 = text[..unit].parse().ok()?;
            match &text[unit..] {
                "ms" => Duration::from_millis(count),
                "s" | "" => Duration::from_secs(count),
                "m" => Duration::from_secs(count.checked_mul(60)?),
                "h" => Duration::from_secs(count.checked_mul(3_600)?),
                _ => return None,
            }
        }
        Json::Null | Json::Bool(_) | Json::Array(_) | Json::Object(_) => return None,
    };
    (!duration.is_zero() && duration <= Duration::from_secs(86_400 * 365)).then_some(duration)
}

/// The catalogue of the built-in tools, as flows name it in `use tools`: name, description, input schema, effect, permission.
#[must_use]
pub fn catalogue() -> Json {
    let tools = Tool::ALL.map(|tool| {
        // An address can carry away what the model knows.
        let harmless = tool.class() == "pure" && tool != Tool::Fetch;
        let permission = if harmless { "allow" } else { "ask" };
        json!({
            "name": tool.name(),
            "description": tool.about(),
            "input": tool.input_schema(),
            "effect": tool.class(),
            "permission": permission,
        })
    });
    json!({"tools": tools})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_that_do_not_fit_are_named() {
        for (tool, args, problem) in [
            (Tool::Read, json!({"path": "a"}), None),
            (Tool::Read, json!({"path": "a", "offset": 3, "limit": null}), None),
            (Tool::Read, json!({}), Some("path is missing")),
            (Tool::Read, json!({"path": null}), Some("path is missing")),
            (Tool::Read, json!({"path": 3}), Some("path must be text")),
            (Tool::Read, json!({"path": "a", "offset": 0}), Some("offset must be a whole number")),
            (Tool::Read, json!({"path": "a", "offset": "3"}), Some("offset must be a whole number")),
            (Tool::Read, json!({"path": "a", "file": "b"}), Some("there is no file")),
            (Tool::Shell, json!({"command": "ls", "timeout": 5}), None),
            (Tool::Shell, json!({"command": "ls", "timeout": "5m"}), None),
            (Tool::Shell, json!({"command": "ls", "timeout": "soon"}), Some("timeout must be")),
            (Tool::Shell, json!({"command": ["ls"]}), Some("command must be text")),
        ] {
            let found = tool.check(args.as_object().unwrap()).err().map(|error| error.text);
            match problem {
                None => assert_eq!(found, None, "{args}"),
                Some(problem) => assert!(found.clone().unwrap().contains(problem), "{args}: {found:?}"),
            }
        }
    }

    #[test]
    fn names_are_compared_as_they_are() {
        assert_eq!(Tool::named("shell"), Some(Tool::Shell));
        for name in ["", "Shell", "shell ", "fs_read", "shel"] {
            assert_eq!(Tool::named(name), None, "{name:?}");
        }
    }
}
