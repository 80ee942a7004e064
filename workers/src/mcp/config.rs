//! Which servers a directory has: `.mcp.json`, in the format of other programs (`{"mcpServers": {NAME: {…}}}`).
//!
//! Leaves starting servers to their keeper. Invariant: a mistake in one server's entry costs that server and names what is wrong;
//! values of variables are put in here and shown nowhere, so errors go through [`ServerConfig::shown`].

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::answer::bounded;
use super::names::SEPARATOR;
use crate::Json;
use crate::limits::{CONFIG_BYTES_MAX, MCP_START, SERVER_NAME_CHARS_MAX};
use crate::tools::time;

/// The file in the working directory.
const FILE: &str = ".mcp.json";

/// The file in which a directory names its servers.
#[must_use]
pub fn file_of(directory: &Path) -> PathBuf {
    directory.join(FILE)
}

/// The servers of a directory.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// The name of its file, for people.
    file: String,
    /// Without a value: it is disabled.
    servers: BTreeMap<String, Result<Option<ServerConfig>, String>>,
    /// Those without which no run of their tools is to begin.
    required: BTreeSet<String>,
    /// The hash of each entry as it is written: without the values of variables, which are nobody's to know.
    written: BTreeMap<String, String>,
}

/// One server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// Its name: the part of its tools' names before `__`.
    pub name: String,
    /// How it is reached.
    pub(crate) reach: Reach,
    /// How long it may take until it can be called.
    pub(crate) start: Duration,
    /// How long one call may take; none: as long as the flow allows.
    pub(crate) call: Option<Duration>,
}

/// How a server is reached.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Reach {
    /// A program that is started here and speaks through its standard input and output.
    Stdio { command: String, args: Vec<String>, env: BTreeMap<String, String>, directory: Option<PathBuf> },
    /// A service that speaks streamable HTTP.
    Http { url: String, headers: BTreeMap<String, String>, client: ClientEntry },
}

/// What an entry says of logging in: left out, this program registers itself and asks for what the server wants.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct ClientEntry {
    /// As whom the authorization server knows this program.
    #[serde(rename = "clientId")]
    pub(super) id: Option<String>,
    #[serde(rename = "clientSecret")]
    pub(super) secret: Option<String>,
    pub(super) scopes: Vec<String>,
    /// The port on this machine to which the browser brings the code; any if left out.
    #[serde(rename = "callbackPort")]
    pub(super) callback_port: u16,
}

impl std::fmt::Debug for ClientEntry {
    /// Without the secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientEntry")
            .field("id", &self.id)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Reach {
    /// Without arguments, variables, address and headers: they hold secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Reach::Stdio { command, .. } => f.write_str(command),
            Reach::Http { .. } => f.write_str("http"),
        }
    }
}

impl ServerConfig {
    /// The secret by which an authorization server knows this program, if the entry has it.
    pub(super) fn client_secret(&self) -> Option<&String> {
        match &self.reach {
            Reach::Http { client, .. } => client.secret.as_ref(),
            Reach::Stdio { .. } => None,
        }
    }

    /// A text that came with an error, for people: of bounded size, with the server's name where its address stood.
    pub(super) fn shown(&self, text: &str) -> String {
        let mut text = text.to_owned();
        if let Reach::Http { url, .. } = &self.reach {
            for address in forms(url) {
                text = text.replace(&address, &self.name);
            }
        }
        bounded([text.as_str()]).cut()
    }
}

/// How an address may stand in an error: as it was written, as it is sent, and without what logs in.
fn forms(url: &str) -> Vec<String> {
    let mut forms = vec![url.to_owned()];
    if let Ok(mut sent) = reqwest::Url::parse(url) {
        forms.push(sent.to_string());
        if sent.set_username("").and_then(|()| sent.set_password(None)).is_ok() {
            forms.push(sent.to_string());
        }
    }
    forms
}

#[derive(Deserialize)]
struct FileJson {
    #[serde(rename = "mcpServers", default)]
    servers: BTreeMap<String, Json>,
}

/// An entry. Fields that others read and this program does not are let pass.
#[derive(Deserialize)]
struct EntryJson {
    #[serde(rename = "type", alias = "transport")]
    kind: Option<String>,
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    cwd: Option<String>,
    #[serde(alias = "serverUrl")]
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    oauth: Option<Json>,
    #[serde(default)]
    disabled: bool,
    #[serde(rename = "startTimeout")]
    start: Option<Json>,
    timeout: Option<Json>,
}

impl Config {
    /// Reads a file; without one there are no servers.
    ///
    /// # Errors
    /// If it cannot be read or is no such file.
    pub fn read(path: &Path) -> Result<Config, String> {
        let file = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let text = match std::fs::metadata(path).map(|found| found.len()) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Config { file, ..Config::default() });
            }
            Ok(length) if length > CONFIG_BYTES_MAX => Err(format!("it is over {CONFIG_BYTES_MAX} bytes")),
            Ok(_) | Err(_) => std::fs::read_to_string(path).map_err(|error| error.to_string()),
        };
        let parsed = text.and_then(|text| Config::parse(&text, &|name| std::env::var(name).ok()));
        parsed.map(|config| Config { file, ..config }).map_err(|why| format!("{}: {why}", path.display()))
    }

    fn parse(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<Config, String> {
        let file: FileJson = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let mut config = Config::default();
        for (name, entry) in file.servers {
            // Also of an entry with a mistake: then it cannot be used.
            if entry["required"] == true {
                config.required.insert(name.clone());
            }
            let written = blake3::hash(entry.to_string().as_bytes()).to_hex().to_string();
            config.written.insert(name.clone(), written);
            let server = server(&name, entry, variable);
            config.servers.insert(name, server);
        }
        Ok(config)
    }

    /// The names of all servers, those that are disabled or have a wrong entry too.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.servers.keys().map(String::as_str)
    }

    /// Whether the file has a server and says that it is not to be used.
    #[must_use]
    pub fn is_disabled(&self, name: &str) -> bool {
        matches!(self.servers.get(name), Some(Ok(None)))
    }

    /// Whether no run that uses its tools is to begin without it.
    #[must_use]
    pub fn is_required(&self, name: &str) -> bool {
        self.required.contains(name) && !self.is_disabled(name)
    }

    /// Names the entry of a server as it is written; none if there is none.
    pub(crate) fn written(&self, name: &str) -> Option<&str> {
        self.written.get(name).map(String::as_str)
    }

    /// One server.
    ///
    /// # Errors
    /// If there is none of this name, if it is disabled, or what is wrong with its entry.
    pub fn server(&self, name: &str) -> Result<ServerConfig, String> {
        match self.servers.get(name) {
            Some(Ok(Some(server))) => Ok(server.clone()),
            Some(Ok(None)) => Err(format!("it is disabled in {}", self.file)),
            Some(Err(why)) => Err(why.clone()),
            None => {
                let names: Vec<&str> = self.names().collect();
                let there = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                Err(format!("{} does not have it (it has {there})", self.file))
            }
        }
    }
}

/// Reads an entry; none if it is disabled.
fn server(
    name: &str,
    entry: Json,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<ServerConfig>, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let fits = (1..=SERVER_NAME_CHARS_MAX).contains(&name.len())
        && name.chars().all(plain)
        && !name.contains(SEPARATOR)
        && !name.starts_with('_')
        && !name.ends_with('_');
    if !fits {
        return Err(format!(
            "its name must be 1 to {SERVER_NAME_CHARS_MAX} letters, digits, `-` and single `_` between them"
        ));
    }
    let entry = EntryJson::deserialize(entry).map_err(|error| format!("its entry: {error}"))?;
    if entry.disabled {
        return Ok(None);
    }
    let limit = |field: &str, value: &Option<Json>| match value {
        None => Ok(None),
        Some(value) => time(value)
            .map(Some)
            .ok_or_else(|| format!("{field} must be whole seconds, or a text such as \"30s\"")),
    };
    let (start, call) = (limit("startTimeout", &entry.start)?, limit("timeout", &entry.timeout)?);
    let reach = reach(entry, &|text| substituted(text, variable))?;
    Ok(Some(ServerConfig { name: name.to_owned(), reach, start: start.unwrap_or(MCP_START), call }))
}

fn reach(entry: EntryJson, fill: &dyn Fn(&str) -> Result<String, String>) -> Result<Reach, String> {
    let filled = |all: BTreeMap<String, String>| -> Result<BTreeMap<String, String>, String> {
        all.into_iter().map(|(name, value)| Ok((name, fill(&value)?))).collect()
    };
    match (entry.kind.as_deref(), entry.command, entry.url) {
        (None | Some("stdio"), Some(command), None) => Ok(Reach::Stdio {
            command: fill(&command)?,
            args: entry.args.iter().map(|arg| fill(arg)).collect::<Result<_, _>>()?,
            env: filled(entry.env)?,
            directory: entry.cwd.map(|path| fill(&path).map(PathBuf::from)).transpose()?,
        }),
        (None | Some("http" | "streamable-http" | "streamableHttp" | "streamable_http"), None, Some(url)) => {
            let url = fill(&url)?;
            if !url.starts_with("http://") && !url.starts_with("https://") {
                return Err("its url must begin with http:// or https://".to_owned());
            }
            let client = client(entry.oauth, fill)?;
            Ok(Reach::Http { url, headers: filled(entry.headers)?, client })
        }
        (Some("sse"), _, _) => Err(
            "its type is `sse`, which the protocol has given up; most such servers speak `http` at another path"
                .to_owned(),
        ),
        (kind, command, url) => Err(format!(
            "its entry needs `command` (type `stdio`) or `url` (type `http`); it has type {}, {} command, {} url",
            kind.unwrap_or("none"),
            if command.is_some() { "a" } else { "no" },
            if url.is_some() { "a" } else { "no" },
        )),
    }
}

fn client(entry: Option<Json>, fill: &dyn Fn(&str) -> Result<String, String>) -> Result<ClientEntry, String> {
    let Some(entry) = entry else { return Ok(ClientEntry::default()) };
    let mut client = ClientEntry::deserialize(entry).map_err(|error| format!("its `oauth`: {error}"))?;
    for text in [&mut client.id, &mut client.secret].into_iter().flatten() {
        *text = fill(text)?;
    }
    if client.secret.is_some() && client.id.is_none() {
        return Err("its `oauth` has a clientSecret, but no clientId".to_owned());
    }
    Ok(client)
}

/// Puts in `${NAME}` and `${NAME:-default}`.
fn substituted(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut whole = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, after) = rest.split_at(at);
        whole.push_str(before);
        let Some((inside, next)) = after[2..].split_once('}') else {
            return Err("a `${` is not closed".to_owned());
        };
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        let value = variable(name).filter(|value| !value.is_empty());
        match (value, default) {
            (Some(value), _) => whole.push_str(&value),
            (None, Some(default)) => whole.push_str(default),
            (None, None) => return Err(format!("the environment variable {name} is not set")),
        }
        rest = next;
    }
    whole.push_str(rest);
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Config {
        let variable = |name: &str| match name {
            "TOKEN" => Some("t0p".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        Config::parse(text, &variable).unwrap()
    }

    #[test]
    fn entries_as_other_programs_write_them_are_understood() {
        let config = parsed(
            r#"{"mcpServers": {
                "fs": {"command": "npx", "args": ["-y", "fs", "${HOME:-/home}", "--key=${TOKEN}"], "env": {"A": "${TOKEN}"}, "startTimeout": 5},
                "web": {"type": "http", "url": "https://h/mcp?key=${TOKEN}", "headers": {"Authorization": "Bearer ${TOKEN}"},
                    "oauth": {"clientId": "me", "clientSecret": "${TOKEN}", "scopes": ["a"], "callbackPort": 7777, "other": 1}, "timeout": "2m"},
                "off": {"command": "x", "disabled": true},
                "odd": {"command": "x", "autoApprove": [], "icon": 7}},
              "inputs": []}"#,
        );
        assert_eq!(config.names().collect::<Vec<_>>(), ["fs", "odd", "off", "web"]);
        assert!(config.is_disabled("off") && !config.is_disabled("fs") && !config.is_disabled("none"));
        assert!(config.server("off").unwrap_err().contains("is disabled"));
        let fs = config.server("fs").unwrap();
        assert_eq!((fs.start, fs.call), (Duration::from_secs(5), None));
        let Reach::Stdio { args, env, .. } = &fs.reach else { panic!("{fs:?}") };
        assert_eq!((args[2].as_str(), env["A"].as_str()), ("/home", "t0p"));
        let web = config.server("web").unwrap();
        assert_eq!(web.call, Some(Duration::from_secs(120)));
        let Reach::Http { headers, client, .. } = &web.reach else { panic!("{web:?}") };
        assert_eq!((client.secret.as_deref(), client.callback_port), (Some("t0p"), 7777));
        assert!(!format!("{client:?}").contains("t0p"));
        assert_eq!(headers["Authorization"], "Bearer t0p");
        for shown in [format!("{fs:?}"), format!("{web:?}")] {
            assert!(!shown.contains("t0p"), "secrets are not shown: {shown}");
        }
    }

    #[test]
    fn a_wrong_entry_costs_its_server_and_says_what_is_wrong() {
        for (entry, why) in [
            (r#"{}"#, "needs `command`"),
            (r#"{"command": "x", "url": "http://h"}"#, "needs `command`"),
            (r#"{"type": "sse", "url": "http://h"}"#, "given up"),
            (r#"{"url": "ftp://h"}"#, "must begin with http"),
            (r#"{"command": "${NOPE}"}"#, "variable NOPE is not set"),
            (r#"{"command": "${EMPTY}"}"#, "variable EMPTY is not set"),
            (r#"{"command": "${TOKEN"}"#, "not closed"),
            (r#"{"command": ["x"]}"#, "its entry"),
            (r#"{"url": "http://h", "oauth": {"clientSecret": "x"}}"#, "no clientId"),
            (r#"{"url": "http://h", "oauth": {"scopes": 7}}"#, "its `oauth`"),
            (r#"{"command": "x", "timeout": "soon"}"#, "timeout must be"),
        ] {
            let config =
                parsed(&format!(r#"{{"mcpServers": {{"bad": {entry}, "good": {{"command": "x"}}}}}}"#));
            assert!(config.server("good").is_ok());
            let said = config.server("bad").unwrap_err();
            assert!(said.contains(why), "{entry}: {said}");
        }
        for name in ["", "a__b", "_a", "a_", "a b", "日本"] {
            let config = parsed(&format!(r#"{{"mcpServers": {{"{name}": {{"command": "x"}}}}}}"#));
            assert!(config.server(name).unwrap_err().contains("its name must be"), "{name:?}");
        }
        assert!(parsed("{}").server("fs").unwrap_err().contains("it has none"));
    }
}
