//! MCP servers as commands need them: those without which a run is not begun (`"required": true`), and those whose tools the built-in
//! agent is given (`--mcp`).
//!
//! Leaves calling their tools to the tool worker. Invariant: a run whose flow names no tool of a server depends on none; no server is
//! started by a command that was not told to.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outlast_dsl::machine::Machine;
use outlast_workers::mcp::{Catalogue, Config, Listed, Logins, Servers, file_of, server_of};

use crate::failure::{Exit, Failure};
use crate::flow_file::{Chosen, FlowFile};
use crate::{environment, files, out};

/// The catalogue that `tools pull` writes if no other is named: what a person wrote there about a tool holds for the agent too.
pub(crate) const PULLED: &str = "mcp.tools.json";

/// The option that gives the built-in agent the tools of servers.
#[derive(Debug, clap::Args)]
pub(crate) struct Given {
    /// Give the built-in agent the tools of the MCP servers of FILE, an `mcpServers` JSON [default FILE: .mcp.json]
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = ".mcp.json", conflicts_with = "flow")]
    mcp: Option<PathBuf>,
}

impl Given {
    /// Returns the built-in agent with the tools of the servers that were asked for; none if none were.
    pub(crate) async fn agent(&self, data: Option<&Path>) -> Result<Option<Chosen>, Failure> {
        let Some(path) = &self.mcp else { return Ok(None) };
        let file = std::fs::canonicalize(path)
            .map_err(|error| Failure::usage(format!("--mcp {}: {error}", path.display())).hint(EXAMPLE))?;
        let config = Config::read(&file).map_err(Failure::usage)?;
        if config.names().next().is_none() {
            return Err(Failure::usage(format!("{} names no servers", path.display())).hint(EXAMPLE));
        }
        let mut catalogue = Catalogue::parse(FlowFile::agent_tools()).map_err(Failure::usage)?;
        catalogue.add(pulled(&config)?);
        let wanted: Vec<String> =
            config.names().filter(|name| !config.is_disabled(name)).map(str::to_owned).collect();
        for (name, listed) in ask_all(data, &file, wanted).await? {
            match listed {
                Ok(listed) => {
                    for warning in &listed.warnings {
                        out::say(&format!("warning: MCP server {name}: {warning}"));
                    }
                    drop(catalogue.put(&name, listed.tools));
                }
                Err(why) if config.is_required(&name) => return Err(required(&name, &why)),
                Err(why) => out::say(&format!("warning: {why}; the agent goes without its tools")),
            }
        }
        let servers: Vec<String> =
            catalogue.counts().into_iter().map(|(name, tools)| format!("{name} ({tools})")).collect();
        out::say(&format!("tools of MCP servers: {}", servers.join(", ")));
        Chosen::agent_with(catalogue.text(), file).map(Some)
    }
}

const EXAMPLE: &str = r#"write {"mcpServers": {"NAME": {"command": "PROGRAM", "args": []}}} into it"#;

/// Returns what was pulled before of the servers that are not disabled.
fn pulled(config: &Config) -> Result<Catalogue, Failure> {
    let path = Path::new(PULLED);
    if !files::is_there(path) {
        return Ok(Catalogue::default());
    }
    let parsed = Catalogue::parse(&files::read_text(path)?);
    let mut pulled = parsed.map_err(|why| Failure::usage(format!("{PULLED}: {why}")))?;
    for server in pulled.servers() {
        if config.is_disabled(&server) || !config.names().any(|name| name == server) {
            drop(pulled.remove(&server));
        }
    }
    Ok(pulled)
}

/// Refuses to go on if a server that a flow's tools need, and that is required here, cannot be asked for its tools. `file` names the
/// servers; left out: that of the directory.
pub(crate) async fn demand(
    data: Option<&Path>,
    machine: &Machine,
    file: Option<&Path>,
) -> Result<(), Failure> {
    let needed = needed(machine);
    if needed.is_empty() {
        return Ok(());
    }
    let file =
        file.map_or_else(|| directory().map(|directory| file_of(&directory)), |file| Ok(file.to_owned()))?;
    let config = Config::read(&file).map_err(Failure::usage)?;
    let required_ones =
        needed.into_iter().filter(|name| config.is_required(name)).map(str::to_owned).collect();
    for (name, listed) in ask_all(data, &file, required_ones).await? {
        listed.map_err(|why| required(&name, &why))?;
    }
    Ok(())
}

fn required(name: &str, why: &str) -> Failure {
    let failure =
        Failure::new(Exit::Unavailable, format!("{why}; nothing was started, because {name} is required"));
    failure.hint("mend the server, or take `\"required\": true` out of its entry")
}

/// Returns the servers whose tools a flow may call.
fn needed(machine: &Machine) -> BTreeSet<&str> {
    let tools = machine.catalogues.iter().flat_map(|catalogue| &catalogue.tools);
    tools.filter_map(|tool| server_of(&tool.name)).collect()
}

/// Asks servers of a file for their tools, all at once.
pub(crate) async fn ask_all(
    data: Option<&Path>,
    file: &Path,
    names: Vec<String>,
) -> Result<BTreeMap<String, Result<Listed, String>>, Failure> {
    if names.is_empty() {
        return Ok(BTreeMap::new());
    }
    let servers = Arc::new(all(data, file)?);
    let mut asking = tokio::task::JoinSet::new();
    for name in names {
        let servers = servers.clone();
        asking.spawn(async move {
            let listed = servers.tools(&name).await;
            (name, listed)
        });
    }
    Ok(asking.join_all().await.into_iter().collect())
}

/// Returns the servers of a file, with the logins of the data directory.
pub(crate) fn all(data: Option<&Path>, file: &Path) -> Result<Servers, Failure> {
    let guard = std::env::current_exe().map_err(|error| cannot("this program", &error))?;
    Ok(Servers::new(&directory()?, file, Some(guard), logins(data)?))
}

/// Returns the logins of the data directory.
pub(crate) fn logins(data: Option<&Path>) -> Result<Logins, Failure> {
    let logins = Logins::of(&environment::data_directory(data)?);
    logins.hide_in_log();
    Ok(logins)
}

fn directory() -> Result<PathBuf, Failure> {
    std::env::current_dir().map_err(|error| cannot("the working directory", &error))
}

fn cannot(what: &str, error: &std::io::Error) -> Failure {
    Failure::new(Exit::Failed, format!("cannot find {what}: {error}"))
}
