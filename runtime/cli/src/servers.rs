//! The MCP servers without which a run is not begun: `"required": true` in `.mcp.json`.
//!
//! Leaves all others to the tool worker, which asks them when a run does. Invariant: a run whose flow names no tool of a server depends on none.

use std::collections::BTreeSet;
use std::path::Path;

use outlast_dsl::machine::Machine;
use outlast_workers::mcp::{Config, Servers, server_of};

use crate::failure::{Exit, Failure};

/// Refuses to go on if a server that a flow's tools need, and that is required here, cannot be asked for its tools.
pub(crate) async fn demand(machine: &Machine) -> Result<(), Failure> {
    let needed = needed(machine);
    if needed.is_empty() {
        return Ok(());
    }
    let cannot = |what: &str, error: std::io::Error| {
        Failure::new(Exit::Failed, format!("cannot find {what}: {error}"))
    };
    let directory = std::env::current_dir().map_err(|error| cannot("the working directory", error))?;
    let config = Config::read(&directory).map_err(Failure::usage)?;
    let required: Vec<&str> = needed.into_iter().filter(|name| config.is_required(name)).collect();
    if required.is_empty() {
        return Ok(());
    }
    let guard = std::env::current_exe().map_err(|error| cannot("this program", error))?;
    ask(&directory, &guard, &required).await
}

/// Returns the servers whose tools a flow may call.
fn needed(machine: &Machine) -> BTreeSet<&str> {
    let tools = machine.catalogues.iter().flat_map(|catalogue| &catalogue.tools);
    tools.filter_map(|tool| server_of(&tool.name)).collect()
}

async fn ask(directory: &Path, guard: &Path, required: &[&str]) -> Result<(), Failure> {
    let servers = Servers::new(directory, Some(guard.to_owned()));
    for name in required {
        servers.tools(name).await.map_err(|why| {
            Failure::new(Exit::Unavailable, format!("{why}; nothing was started, because {name} is required"))
                .hint("mend the server, or take `\"required\": true` out of its entry in .mcp.json")
        })?;
    }
    Ok(())
}
