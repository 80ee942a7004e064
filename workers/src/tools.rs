//! The tool worker: files and a shell in one directory.
//!
//! Each tool is offered twice: as an activity of its own with plain arguments (`read`, `write`, `edit`, `append`, `list`, `find`,
//! `grep`, `shell`, `fetch`), and to models through `tool(call)`, whose answer is a `ToolResult`. Tools of MCP servers (see
//! [`crate::mcp`]) are called through `tool` too. What is left out of a long answer is kept whole beside it, and `read` takes its name. `append_effect` and `tool_effect` tell whether an interrupted call has happened,
//! and `tool_look` what a call rests on, so that a person approves it with that (see [`seen`]).
//! Leaves permission to the flow and its people, but for the rules of the environment, which are looked at once more here: only the
//! worker knows where a path leads. Invariant: whatever a model asks for is answered, unless a server's tool waits for something that
//! no answer can give (see [`activity`]), and nothing runs but the very tool it named with arguments that fit.

mod activity;
mod command_line;
mod confine;
mod definition;
mod fetch;
mod files;
pub mod guard;
mod html;
mod jail;
mod output;
mod permission;
mod sandbox;
mod search;
mod seen;
mod shell;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use outlast_protocol::profile::Environment;
use outlast_protocol::requests::Permissions;
use outlast_protocol::sandbox::Sandbox;

pub use definition::catalogue;

pub(crate) use definition::time;
pub(crate) use output::{Capture, Captured, Reader, quote};
pub(crate) use shell::bare_environment;

use crate::mcp::{Logins, Servers, file_of};
use crate::sdk::{Activity, Failure};
use jail::Jail;
use sandbox::Confined;

/// What tools are given to work with.
#[derive(Clone, Debug, Default)]
pub struct Setting {
    /// Their directory.
    pub directory: PathBuf,
    /// The program that watches over commands (see [`guard`]); without one, only a command's process group is ended with it.
    pub guard: Option<PathBuf>,
    /// The rules that models are held to.
    pub rules: Permissions,
    /// The file that names the MCP servers; left out: `.mcp.json` of the directory.
    pub servers: Option<PathBuf>,
    /// What commands know of the worker's variables.
    pub environment: Environment,
    /// What commands are held to.
    pub sandbox: Sandbox,
    /// What no command may read, whatever the sandbox says: the runtime's own files.
    pub closed: Vec<PathBuf>,
    /// The logins at MCP servers.
    pub logins: Logins,
}

/// What the tools work on.
#[derive(Debug)]
pub(crate) struct Toolbox {
    jail: Jail,
    guard: Option<PathBuf>,
    rules: Permissions,
    environment: Environment,
    sandbox: Confined,
    editing: tokio::sync::Mutex<()>,
    /// Held from the comparison of a file with what was approved until it is changed.
    comparing: tokio::sync::Mutex<()>,
    servers: Servers,
}

/// Says what commands would not be held to on this machine, for people who should know before one runs; none if nothing is missing.
/// `guard` is the program that watches over commands.
///
/// # Errors
/// What is wrong with what is asked for.
pub fn unconfined(sandbox: &Sandbox, guard: &Path) -> Result<Option<String>, String> {
    Ok(Confined::new(sandbox.clone(), Vec::new(), Some(guard))?.statement())
}

/// Makes all activities of the tool worker.
///
/// # Errors
/// If the directory cannot be opened, or what is wrong with the sandbox that is asked for.
pub fn activities(setting: Setting) -> std::io::Result<Vec<Arc<dyn Activity>>> {
    let Setting { directory, guard, rules, servers, environment, sandbox, mut closed, logins } = setting;
    closed.extend(logins.directory().map(Path::to_path_buf));
    let jail = Jail::new(&directory)?.without(logins.directory());
    let (editing, comparing) = (tokio::sync::Mutex::new(()), tokio::sync::Mutex::new(()));
    let sandbox = Confined::new(sandbox, closed, guard.as_deref()).map_err(std::io::Error::other)?;
    if let Some(statement) = sandbox.statement() {
        tracing::error!("{statement}");
    }
    let file = servers.unwrap_or_else(|| file_of(jail.root()));
    let servers = Servers::new(jail.root(), &file, guard.clone(), logins);
    let toolbox = Arc::new(Toolbox { jail, guard, rules, environment, sandbox, editing, comparing, servers });
    Ok(activity::all(&toolbox))
}

/// Why a tool did not give a result.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{text}")]
pub(crate) struct ToolError {
    pub(crate) kind: &'static str,
    pub(crate) text: String,
    /// A command's exit code.
    pub(crate) code: Option<i32>,
}

impl ToolError {
    pub(crate) fn new(kind: &'static str, text: impl Into<String>) -> ToolError {
        ToolError { kind, text: text.into(), code: None }
    }

    pub(crate) fn io(path: &str, error: &std::io::Error) -> ToolError {
        let kind = match error.kind() {
            std::io::ErrorKind::NotFound => "NotFound",
            _ => "FileError",
        };
        ToolError::new(kind, format!("{path}: {}", plain(error)))
    }
}

impl From<ToolError> for Failure {
    fn from(error: ToolError) -> Failure {
        let failure = Failure::new(error.kind, error.text);
        match error.code {
            Some(code) => failure.field("code", code),
            None => failure,
        }
    }
}

/// An error of the system without its number, which helps no reader.
fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_lowercase(),
        None => text,
    }
}
