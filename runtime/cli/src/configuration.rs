//! `outlast.toml`: what is set once, for a directory or for all that a user does.
//!
//! Read from the working directory, and from the user's configuration directory: rules and names of both hold, and the directory's mode
//! before the user's. Leaves what rules mean to the kernel. Invariant: a file that cannot be read whole is an error with its line, never half
//! obeyed.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use outlast_protocol::profile::Environment;
use outlast_protocol::rates::Rate;
use outlast_protocol::requests::Permissions;
use outlast_protocol::rules;
use outlast_protocol::sandbox::{self, Sandbox};
use outlast_runtime::telemetry::Collector;
use serde::Deserialize;

use crate::failure::Failure;
use crate::files;

/// The file's name.
const FILE: &str = "outlast.toml";

/// What is set.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Configuration {
    model: Option<ModelTable>,
    permissions: Rules,
    environment: Environment,
    sandbox: Sandbox,
    queues: BTreeMap<String, Rate>,
    telemetry: Telemetry,
}

/// `[telemetry]`
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Telemetry {
    /// The base address of a collector that takes OTLP over HTTP.
    endpoint: Option<String>,
}

/// `[model]`: what the variables `OUTLAST_MODEL_…` say, which win over it one by one.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ModelTable {
    /// The protocol.
    pub(crate) provider: Option<String>,
    /// The base address.
    pub(crate) url: Option<String>,
    /// The model's name.
    pub(crate) name: Option<String>,
    /// The variable that holds the key.
    pub(crate) key_env: Option<String>,
    /// The longest answer, in tokens.
    pub(crate) max_tokens: Option<u64>,
    /// More fields of the requests.
    pub(crate) options: Option<serde_json::Map<String, serde_json::Value>>,
    /// The model that is asked where this one has no answer for now.
    pub(crate) fallback: Option<Box<ModelTable>>,
}

/// `[permissions]`
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Rules {
    mode: Option<Mode>,
    deny: Vec<String>,
    ask: Vec<String>,
    allow: Vec<String>,
    protected: Option<Vec<String>>,
}

/// What happens to tool calls that no rule names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Mode {
    /// Only tools that change nothing run.
    Plan,
    /// As the catalogue says: tools that change nothing run, a person is asked about others.
    #[default]
    Default,
    /// As default, but files below the working directory may be written and edited.
    AcceptEdits,
    /// As default, but nobody is asked: what would be is refused.
    DenyAsks,
}

impl Configuration {
    /// Reads what is set for a working directory.
    pub(crate) fn read(directory: &Path) -> Result<Configuration, Failure> {
        let mut whole = Configuration::default();
        let user = user_directory(std::env::var_os("XDG_CONFIG_HOME"), std::env::var_os("HOME"));
        for place in [Some(directory.to_path_buf()), user].into_iter().flatten() {
            let path = place.join(FILE);
            if files::is_there(&path) {
                whole.add(Configuration::parse(&files::read_text(&path)?, &path)?);
            }
        }
        Ok(whole)
    }

    fn parse(text: &str, path: &Path) -> Result<Configuration, Failure> {
        let found: Configuration = toml::from_str(text).map_err(|error| {
            let line =
                error.span().map_or(1, |span| 1 + text[..span.start.min(text.len())].matches('\n').count());
            Failure::usage(format!("{}:{line}: {}", path.display(), error.message()))
        })?;
        let rules = found.permissions.resolved();
        rules
            .check()
            .map_err(|error| Failure::usage(format!("{}: [permissions]: {error}", path.display())))?;
        if let Some(name) = found.environment.wrong_name() {
            let what = "names variables, not their values";
            return Err(Failure::usage(format!(
                "{}: [environment] {what}: {name:?} is no name",
                path.display()
            )));
        }
        let sandbox =
            found.sandbox.memory_bytes().map(drop).and_then(|()| places_are_absolute(&found.sandbox));
        sandbox.map_err(|error| Failure::usage(format!("{}: [sandbox]: {error}", path.display())))?;
        Ok(found)
    }

    /// Adds what a farther file says.
    fn add(&mut self, farther: Configuration) {
        // One model, not a mixture of two.
        self.model = self.model.take().or(farther.model);
        let (near, far) = (&mut self.permissions, farther.permissions);
        near.mode = near.mode.or(far.mode);
        near.protected = near.protected.take().or(far.protected);
        near.deny.extend(far.deny);
        near.ask.extend(far.ask);
        near.allow.extend(far.allow);
        self.environment.variables.extend(farther.environment.variables);
        self.environment.secrets.extend(farther.environment.secrets);
        let (near, far) = (&mut self.sandbox, farther.sandbox);
        // What the user requires, no directory takes back.
        near.mode = far.mode.filter(|mode| *mode == sandbox::Mode::Required).or(near.mode).or(far.mode);
        near.network = near.network.or(far.network);
        near.write = near.write.take().or(far.write);
        near.hidden = near.hidden.take().or(far.hidden);
        near.memory = near.memory.take().or(far.memory);
        let endpoint = &mut self.telemetry.endpoint;
        *endpoint = endpoint.take().or(farther.telemetry.endpoint);
        for (name, far) in farther.queues {
            let near = self.queues.entry(name).or_default();
            *near = near.or(far);
        }
    }

    /// Returns what tools know of the workers' variables.
    pub(crate) fn environment(&self) -> Environment {
        let names = |names: &[String]| {
            let mut names = names.to_vec();
            names.sort_unstable();
            names.dedup();
            names
        };
        Environment {
            variables: names(&self.environment.variables),
            secrets: names(&self.environment.secrets),
        }
    }

    /// Returns what commands are held to.
    pub(crate) fn sandbox(&self) -> Sandbox {
        self.sandbox.clone()
    }

    /// Returns how fast queues give out their tasks.
    pub(crate) fn rates(&self) -> BTreeMap<String, Rate> {
        self.queues.clone()
    }

    /// Returns the collector of spans that is set.
    pub(crate) fn collector(&self) -> Result<Option<Collector>, Failure> {
        let read = self.telemetry.endpoint.as_deref().map(Collector::at).transpose();
        read.map_err(|error| Failure::usage(format!("{FILE}: [telemetry] endpoint: {error}")))
    }

    /// Returns the model that is set.
    pub(crate) fn model(&self) -> Option<&ModelTable> {
        self.model.as_ref()
    }

    /// Returns the rules that hold.
    pub(crate) fn permissions(&self) -> Permissions {
        self.permissions.resolved()
    }
}

impl Rules {
    fn resolved(&self) -> Permissions {
        let mode = self.mode.unwrap_or_default();
        let mut rules = Permissions {
            deny: self.deny.clone(),
            ask: self.ask.clone(),
            allow: self.allow.clone(),
            deny_asks: mode == Mode::DenyAsks,
        };
        match mode {
            Mode::Plan => rules.deny.extend(["@once", "@idempotent"].map(str::to_owned)),
            Mode::AcceptEdits => rules.allow.extend(["write(*)", "edit(*)"].map(str::to_owned)),
            Mode::Default | Mode::DenyAsks => {}
        }
        // Always: what is allowed may also come with a run, or be granted in it.
        rules.ask.extend(match &self.protected {
            None => rules::usual_protection(),
            Some(paths) => paths.iter().flat_map(|path| rules::protection(path)).collect(),
        });
        rules
    }
}

fn places_are_absolute(sandbox: &Sandbox) -> Result<(), String> {
    let mut places = [&sandbox.write, &sandbox.hidden].into_iter().flatten().flatten();
    match places.find(|place| !(place.starts_with('/') || place.starts_with("~/"))) {
        Some(place) => Err(format!("{place:?} is no path that begins with / or ~/")),
        None => Ok(()),
    }
}

fn user_directory(xdg: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let set = |value: Option<OsString>| value.map(PathBuf::from).filter(|path| path.is_absolute());
    set(xdg).or_else(|| set(home).map(|home| home.join(".config"))).map(|place| place.join("outlast"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Configuration {
        Configuration::parse(text, Path::new("outlast.toml")).unwrap()
    }

    fn rules(text: &str) -> Permissions {
        read(text).permissions()
    }

    #[test]
    fn modes_are_rules() {
        let none = rules("");
        assert!(none.deny.is_empty() && none.allow.is_empty() && !none.deny_asks, "{none:?}");
        assert!(
            none.ask.contains(&"write(*/.git/*)".to_owned()),
            "also for what a run is allowed later: {none:?}"
        );
        assert_eq!(rules("[permissions]\nmode = 'plan'").deny, ["@once", "@idempotent"]);
        assert!(rules("[permissions]\nmode = 'deny-asks'").deny_asks);
        let edits = rules("[permissions]\nmode = 'accept-edits'");
        assert_eq!(edits.allow, ["write(*)", "edit(*)"]);
        assert!(edits.ask.contains(&"edit(.git/*)".to_owned()), "{edits:?}");
        let own = rules("[permissions]\nallow = ['write']\nprotected = ['vault/*']");
        assert_eq!(own.ask, ["write(vault/*)", "edit(vault/*)", "append(vault/*)"]);
    }

    #[test]
    fn rules_of_both_files_hold_and_the_nearer_mode() {
        let mut near = read("[permissions]\nmode = 'plan'\ndeny = ['shell(rm *)']");
        near.add(read("[permissions]\nmode = 'accept-edits'\ndeny = ['fetch']"));
        assert_eq!(near.permissions().deny, ["shell(rm *)", "fetch", "@once", "@idempotent"]);
    }

    #[test]
    fn of_a_sandbox_the_nearer_word_holds() {
        let mut near = read("[sandbox]\nmode = 'required'\nwrite = []");
        near.add(read("[sandbox]\nmode = 'off'\nwrite = ['~/x']\nnetwork = 'all'\nmemory = '1GB'"));
        let found = json!(near.sandbox());
        assert_eq!(found, json!({"mode": "required", "write": [], "network": "all", "memory": "1GB"}));
        let mut near = read("[sandbox]\nmode = 'off'");
        near.add(read("[sandbox]\nmode = 'required'"));
        assert_eq!(near.sandbox().mode, Some(sandbox::Mode::Required), "the user's word");
    }

    #[test]
    fn of_a_queues_rates_the_nearer_word_holds_one_by_one() {
        let mut near = read("[queues.model]\nrequests_per_minute = 60\n[queues.mine]\ntokens_per_minute = 9");
        near.add(read("[queues.model]\nrequests_per_minute = 5\ntokens_per_minute = 7"));
        let model = json!({"requests_per_minute": 60, "tokens_per_minute": 7});
        assert_eq!(json!(near.rates()), json!({"model": model, "mine": {"tokens_per_minute": 9}}));
    }

    #[test]
    fn names_of_both_files_hold_each_once() {
        let mut near = read("[environment]\nvariables = ['CI', 'B']\nsecrets = ['TOKEN']");
        near.add(read("[environment]\nvariables = ['CI', 'A']"));
        let environment = near.environment();
        assert_eq!(
            (environment.variables, environment.secrets),
            (["A", "B", "CI"].map(str::to_owned).to_vec(), vec!["TOKEN".to_owned()],)
        );
    }

    #[test]
    fn what_cannot_be_read_is_told_with_its_line() {
        for (text, told) in [
            ("[permissions]\nmode = 'yolo'", "outlast.toml:2: unknown variant `yolo`"),
            ("[permissions]\n\nallow = 'shell'", "outlast.toml:3: invalid type"),
            (
                "[environment]\nsecrets = ['a=b']",
                "[environment] names variables, not their values: \\\"a=b\\\" is no name",
            ),
            ("[sandbox]\nnetwork = 'some'", "outlast.toml:2: unknown variant `some`"),
            ("[sandbox]\nmemory = 'much'", "[sandbox]: memory is \\\"much\\\", not an amount"),
            ("[sandbox]\nwrite = ['tmp']", "[sandbox]: \\\"tmp\\\" is no path that begins with / or ~/"),
            ("[environment]\nsecret = ['A']", "outlast.toml:2: unknown field `secret`"),
            ("[queues.model]\nrequests_per_minute = 0", "outlast.toml:2: invalid value: integer `0`"),
            (
                "[queues.model]\nrequests_per_second = 1",
                "outlast.toml:2: unknown field `requests_per_second`",
            ),
            ("[permission]", "outlast.toml:1: unknown field `permission`"),
            ("[permissions]\nallow = ['shell(git']", "its bracket is not closed"),
            ("x = ", "outlast.toml:1: "),
        ] {
            let error = Configuration::parse(text, Path::new("outlast.toml")).unwrap_err();
            let error = format!("{error:?}");
            assert!(error.contains(told), "{error}");
        }
    }

    #[test]
    fn the_users_file_is_where_configuration_is() {
        let os = |text: &str| Some(OsString::from(text));
        assert_eq!(user_directory(os("/x"), os("/h")), Some("/x/outlast".into()));
        assert_eq!(user_directory(os(""), os("/h")), Some("/h/.config/outlast".into()));
        assert_eq!(user_directory(None, None), None);
    }
}
