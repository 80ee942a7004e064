//! The catalogue file: the tools of servers as flows and models know them, and what of it is whose.
//!
//! Name, description, input and annotations are the server's and follow it; effect and permission follow the annotations until a person
//! writes something else there. Leaves reading it for flows to the language. Invariant: a person's word on effect and permission stays,
//! but for one thing: `allow` becomes `ask` when the tool behind it is another one, unless its server says itself that it only reads.

use std::collections::BTreeMap;
use std::fmt;

use outlast_protocol::ToolEffect;
use outlast_protocol::worker::definition;
use serde::Deserialize;
use serde_json::{Map, json};

use super::names::{full_name, server_of};
use crate::Json;
use crate::limits::{DESCRIPTION_CHARS_MAX, TOOL_BYTES_MAX};
use crate::tools::quote;

/// A tool as its server offers it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Offered {
    /// `server__tool`.
    pub(super) name: String,
    pub(super) own_name: String,
    description: String,
    input: Json,
    annotations: Json,
}

impl Offered {
    /// Reads a tool of a listing. A long description is cut; the rest means something only as a whole.
    pub(super) fn read(server: &str, tool: &Json) -> Result<Offered, String> {
        let Some(own_name) = tool.get("name").and_then(Json::as_str).filter(|name| !name.is_empty()) else {
            return Err("a tool has no name".to_owned());
        };
        let text = |field: &str| tool.get(field).and_then(Json::as_str);
        let description = text("description").or_else(|| text("title")).unwrap_or_default();
        let offered = Offered {
            name: full_name(server, own_name),
            own_name: own_name.to_owned(),
            description: quote(description, DESCRIPTION_CHARS_MAX),
            input: input(tool.get("inputSchema")),
            annotations: tool.get("annotations").filter(|all| all.is_object()).cloned().unwrap_or(json!({})),
        };
        let bytes = own_name.len() + offered.input.to_string().len() + offered.annotations.to_string().len();
        if bytes > TOOL_BYTES_MAX {
            let what = "its name, input and annotations";
            return Err(format!(
                "{} is left out: {what} are longer than {TOOL_BYTES_MAX} bytes",
                offered.name
            ));
        }
        Ok(offered)
    }

    /// The hash by which a change is known.
    pub(super) fn definition(&self) -> String {
        definition(&self.name, &self.description, &self.input)
    }

    /// The tool as it stands in the file.
    pub(super) fn entry(&self) -> Json {
        let (effect, permission) = class(&self.annotations);
        json!({
            "name": self.name, "description": self.description, "input": self.input,
            "annotations": self.annotations, "effect": effect, "permission": permission,
        })
    }
}

/// A schema of an object; what is missing or no schema takes nothing.
fn input(schema: Option<&Json>) -> Json {
    let Some(Json::Object(schema)) = schema else { return json!({"type": "object", "properties": {}}) };
    let mut schema: Map<String, Json> = schema.clone();
    // Which dialect it is in says nothing to a model, and some providers refuse to be told.
    schema.remove("$schema");
    if !schema.contains_key("$ref")
        && !["oneOf", "anyOf", "allOf"].iter().any(|word| schema.contains_key(*word))
    {
        schema.insert("type".to_owned(), json!("object"));
        schema.entry("properties").or_insert_with(|| json!({}));
    }
    Json::Object(schema)
}

/// Effect and permission as annotations have it: a person is asked about all that does not only read.
fn class(annotations: &Json) -> (&'static str, &'static str) {
    let effect = ToolEffect::of_annotations(annotations);
    let permission = match effect {
        ToolEffect::Pure => "allow",
        ToolEffect::Idempotent | ToolEffect::Once => "ask",
    };
    (effect.name(), permission)
}

/// The tools of a file, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Catalogue {
    tools: BTreeMap<String, Json>,
}

/// What became of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is new: its name, effect and permission.
    New(String, String),
    /// It is gone.
    Gone(String),
    /// It is another one: its name, and what changed.
    Changed(String, Vec<String>),
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::New(name, what) => write!(f, "+ {name} ({what})"),
            Change::Gone(name) => write!(f, "- {name}"),
            Change::Changed(name, what) => write!(f, "~ {name}: {}", what.join(", ")),
        }
    }
}

impl Catalogue {
    /// Reads a file's text.
    ///
    /// # Errors
    /// If it is no catalogue.
    pub fn parse(text: &str) -> Result<Catalogue, String> {
        #[derive(Deserialize)]
        struct File {
            tools: Vec<Json>,
        }
        let file: File =
            serde_json::from_str(text).map_err(|error| format!("it is no catalogue: {error}"))?;
        let named = file.tools.into_iter().map(|tool| match tool.get("name").and_then(Json::as_str) {
            Some(name) => Ok((name.to_owned(), tool)),
            None => Err("it is no catalogue: a tool has no name".to_owned()),
        });
        Ok(Catalogue { tools: named.collect::<Result<_, _>>()? })
    }

    /// How many tools each of its servers has.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for server in self.tools.keys().filter_map(|name| server_of(name)) {
            *counts.entry(server.to_owned()).or_default() += 1;
        }
        counts
    }

    /// Adds the tools of another one; where both have a tool, that of the other.
    pub fn add(&mut self, other: Catalogue) {
        self.tools.extend(other.tools);
    }

    /// Writes the file's text: one tool a line, so that a difference shows by tool.
    #[must_use]
    pub fn text(&self) -> String {
        let lines: Vec<String> = self.tools.values().map(|tool| format!("    {tool}")).collect();
        format!("{{\n  \"tools\": [\n{}\n  ]\n}}\n", lines.join(",\n"))
    }

    /// How many tools it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tools.len()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// The servers whose tools it has.
    #[must_use]
    pub fn servers(&self) -> Vec<String> {
        let mut servers: Vec<String> =
            self.tools.keys().filter_map(|name| server_of(name)).map(str::to_owned).collect();
        servers.dedup();
        servers
    }

    /// Puts in the tools that a server offers now, in place of those that it offered before; returns what changed.
    pub fn put(&mut self, server: &str, offered: Vec<Json>) -> Vec<Change> {
        let mut before = self.take(server);
        let mut changes = Vec::new();
        for mut tool in offered {
            let name = word(&tool, "name");
            match before.remove(&name) {
                None => changes.push(Change::New(
                    name.clone(),
                    format!("{}, {}", word(&tool, "effect"), word(&tool, "permission")),
                )),
                Some(old) => {
                    keep_own_words(&old, &mut tool);
                    let what = differences(&old, &tool);
                    if !what.is_empty() {
                        changes.push(Change::Changed(name.clone(), what));
                    }
                }
            }
            self.tools.insert(name, tool);
        }
        changes.extend(before.into_keys().map(Change::Gone));
        changes
    }

    /// Takes out the tools of a server.
    fn take(&mut self, server: &str) -> BTreeMap<String, Json> {
        let (taken, left) = std::mem::take(&mut self.tools)
            .into_iter()
            .partition(|(name, _)| server_of(name) == Some(server));
        self.tools = left;
        taken
    }

    /// Takes out the tools of a server that is no more.
    pub fn remove(&mut self, server: &str) -> Vec<Change> {
        self.take(server).into_keys().map(Change::Gone).collect()
    }
}

fn word(tool: &Json, field: &str) -> String {
    tool.get(field).and_then(Json::as_str).unwrap_or_default().to_owned()
}

/// Keeps what a person wrote: whatever differs from what the annotations said when it was written.
fn keep_own_words(old: &Json, new: &mut Json) {
    let (effect, permission) = class(old.get("annotations").unwrap_or(&Json::Null));
    for (field, derived) in [("effect", effect), ("permission", permission)] {
        let own = word(old, field);
        if !own.is_empty() && own != derived {
            new[field] = own.into();
        }
    }
    let (_, says) = class(&new["annotations"]);
    let same = ["description", "input"].iter().all(|field| old.get(*field) == new.get(*field));
    if !same && word(old, "permission") == "allow" && word(new, "permission") == "allow" && says != "allow" {
        new["permission"] = "ask".into();
    }
}

fn differences(old: &Json, new: &Json) -> Vec<String> {
    let mut all = Vec::new();
    for field in ["description", "input", "annotations"] {
        if old.get(field) != new.get(field) {
            all.push(format!("another {field}"));
        }
    }
    for field in ["effect", "permission"] {
        let (old, new) = (word(old, field), word(new, field));
        if old != new {
            all.push(format!("{field} {old} -> {new}"));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, more: Json) -> Json {
        let mut tool = json!({"name": name, "description": "d", "inputSchema": {"type": "object"}});
        for (field, value) in more.as_object().unwrap() {
            tool[field] = value.clone();
        }
        Offered::read("s", &tool).unwrap().entry()
    }

    #[test]
    fn only_what_reads_needs_no_question() {
        for (annotations, effect, permission) in [
            (json!({}), "once", "ask"),
            (json!("odd"), "once", "ask"),
            (json!({"idempotentHint": true}), "idempotent", "ask"),
            (json!({"readOnlyHint": true}), "pure", "allow"),
        ] {
            let entry = tool("t", json!({"annotations": annotations}));
            assert_eq!(
                (&entry["effect"], &entry["permission"]),
                (&json!(effect), &json!(permission)),
                "{annotations}"
            );
        }
    }

    /// Case LIM-04: nothing of a tool is as long as its server likes.
    #[test]
    fn what_a_server_says_of_a_tool_is_bounded() {
        let described = tool("t", json!({"description": "日".repeat(1 << 20)}));
        let shown = described["description"].as_str().unwrap();
        assert_eq!(shown.chars().count(), DESCRIPTION_CHARS_MAX + 1);
        assert!(shown.ends_with("日…"), "it says that it was cut");
        let long = "x".repeat(TOOL_BYTES_MAX);
        for tool in [
            json!({"name": long}),
            json!({"name": "t", "inputSchema": {"type": "object", "description": long}}),
            json!({"name": "t", "annotations": {"title": long}}),
        ] {
            let why = Offered::read("s", &tool).unwrap_err();
            assert!(why.starts_with("s__") && why.contains("left out") && why.len() < 200, "{}", why.len());
        }
    }

    #[test]
    fn schemas_of_every_dialect_are_objects() {
        let empty = json!({"type": "object", "properties": {}});
        for (schema, expected) in [
            (Json::Null, empty.clone()),
            (json!(true), empty.clone()),
            (json!({}), empty.clone()),
            (json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}), empty),
            (
                json!({"$ref": "#/definitions/A", "definitions": {"A": {}}}),
                json!({"$ref": "#/definitions/A", "definitions": {"A": {}}}),
            ),
            (json!({"anyOf": [{"type": "object"}]}), json!({"anyOf": [{"type": "object"}]})),
        ] {
            assert_eq!(input(Some(&schema)), expected, "{schema}");
        }
        assert_eq!(input(None)["type"], "object");
    }

    fn pulled(tools: &[Json]) -> Catalogue {
        let mut catalogue = Catalogue::default();
        catalogue.put("s", tools.to_vec());
        catalogue
    }

    fn changes(catalogue: &mut Catalogue, tools: &[Json]) -> Vec<String> {
        catalogue.put("s", tools.to_vec()).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_pull_says_what_is_new_gone_and_changed_and_nothing_else() {
        let mut catalogue = pulled(&[tool("a", json!({})), tool("b", json!({}))]);
        let other = Catalogue::parse(&catalogue.text()).unwrap();
        assert_eq!(other, catalogue);
        assert!(changes(&mut catalogue, &[tool("b", json!({})), tool("a", json!({}))]).is_empty());
        let now = [
            tool("a", json!({"description": "e", "annotations": {"readOnlyHint": true}})),
            tool("c", json!({})),
        ];
        assert_eq!(
            changes(&mut catalogue, &now),
            [
                "~ s__a: another description, another annotations, effect once -> pure, permission ask -> allow",
                "+ s__c (once, ask)",
                "- s__b",
            ]
        );
        assert_eq!(catalogue.servers(), ["s"]);
    }

    #[test]
    fn what_a_person_wrote_stays_until_the_tool_is_another_one() {
        let mut catalogue = pulled(&[tool("a", json!({}))]);
        let edited = catalogue.text().replace("\"once\"", "\"idempotent\"").replace("\"ask\"", "\"allow\"");
        catalogue = Catalogue::parse(&edited).unwrap();
        assert!(changes(&mut catalogue, &[tool("a", json!({}))]).is_empty());
        assert_eq!(
            changes(&mut catalogue, &[tool("a", json!({"description": "now it deletes"}))]),
            ["~ s__a: another description, permission allow -> ask",]
        );
        assert!(catalogue.text().contains("\"idempotent\""));
    }

    /// What a person called `pure` is so by their word, which is about the tool that they saw.
    #[test]
    fn allow_stays_on_another_tool_only_where_its_server_says_so() {
        for (before, now, permission) in [
            (json!({}), json!({}), "ask"),
            (json!({"readOnlyHint": true}), json!({}), "ask"),
            (json!({}), json!({"readOnlyHint": true}), "allow"),
            (json!({"readOnlyHint": true}), json!({"readOnlyHint": true}), "allow"),
        ] {
            let catalogue = pulled(&[tool("a", json!({"annotations": before}))]);
            let edited = catalogue.text().replace("\"once\"", "\"pure\"").replace("\"ask\"", "\"allow\"");
            let mut catalogue = Catalogue::parse(&edited).unwrap();
            catalogue.put("s", vec![tool("a", json!({"annotations": now, "description": "now it deletes"}))]);
            assert_eq!(catalogue.tools["s__a"]["permission"], permission, "{before} {now}");
        }
    }

    #[test]
    fn tools_of_other_servers_and_of_none_stay() {
        let mut catalogue =
            Catalogue::parse(r#"{"tools": [{"name": "read", "input": {}}, {"name": "t__x", "input": {}}]}"#)
                .unwrap();
        catalogue.put("s", vec![tool("a", json!({}))]);
        assert_eq!(catalogue.remove("s"), [Change::Gone("s__a".to_owned())]);
        assert!(catalogue.text().contains("\"read\"") && catalogue.text().contains("t__x"));
        for bad in ["[]", "{}", r#"{"tools": [{}]}"#, "x"] {
            assert!(Catalogue::parse(bad).is_err(), "{bad}");
        }
    }
}
