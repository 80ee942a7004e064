//! MCP servers: programs and services of others whose tools flows and models call as `server__tool`.
//!
//! [`config`](Config) says which servers a directory has, [`Servers`] keeps them while a tool worker runs, [`Catalogue`] is what
//! `outlast tools pull` writes. Servers are started when they are first needed and again when they end, with growing waits.
//! Leaves permission and classes to the recorded catalogue. Invariant: whatever a server does (noise, silence, floods, its death),
//! it costs the calls to that server and nothing else; a call of class `once` whose end nobody saw is never answered for.

mod answer;
mod call;
mod catalogue;
mod config;
mod connection;
mod handler;
mod listing;
mod login;
mod names;
mod pages;
mod questions;
mod server;
mod stdio;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use catalogue::{Catalogue, Change};
pub use config::{Config, ServerConfig, file_of};
pub use login::{AtService, Logins, UnderWay};

pub(crate) use call::{Asked, End};
pub use names::server_of;
pub(crate) use questions::Wanted;

use crate::sdk::TaskContext;
use catalogue::Offered;
use server::{Server, Unavailable};
use tokio::sync::Mutex;

/// The tools of a server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listed {
    /// As they stand in a catalogue.
    pub tools: Vec<crate::Json>,
    /// What was odd about its list.
    pub warnings: Vec<String>,
}

/// The MCP servers of a directory.
#[derive(Debug)]
pub struct Servers {
    directory: PathBuf,
    /// The file that names them.
    file: PathBuf,
    /// The program that watches over servers (see [`crate::tools::guard`]).
    guard: Option<PathBuf>,
    logins: Logins,
    running: Mutex<BTreeMap<String, Arc<Server>>>,
}

impl Servers {
    /// Prepares the servers that a file names, to work in a directory; none is started.
    #[must_use]
    pub fn new(directory: &Path, file: &Path, guard: Option<PathBuf>, logins: Logins) -> Servers {
        let (directory, file) = (directory.to_owned(), file.to_owned());
        Servers { directory, file, guard, logins, running: Mutex::new(BTreeMap::new()) }
    }

    /// Asks a server, as it is configured now, for its tools; starts it if need be.
    ///
    /// # Errors
    /// Why it cannot be asked, with the server's name.
    pub async fn tools(&self, server: &str) -> Result<Listed, String> {
        let said = |error: Unavailable| error.to_string();
        let connection = self.server(server).await.map_err(said)?.connection().await.map_err(said)?;
        let listing = connection.listing().await.map_err(|why| format!("MCP server {server}: {why}"))?;
        let tools = listing.tools.iter().map(Offered::entry).collect();
        Ok(Listed { tools, warnings: listing.warnings.clone() })
    }

    /// Begins to log a person in at a server.
    ///
    /// # Errors
    /// Why nobody can log in there, with the server's name.
    pub async fn log_in(&self, server: &str) -> Result<UnderWay, String> {
        let said = |why: String| format!("MCP server {server}: {why}");
        let config = Config::read(&self.file)?.server(server).map_err(said)?;
        login::begin(&config, &self.logins).await.map_err(said)
    }

    /// Ends the logins at a server: tells each service, and forgets them here in any case. The server need not be in the file any
    /// more.
    ///
    /// # Errors
    /// If they cannot be forgotten.
    pub async fn log_out(&self, server: &str) -> Result<Vec<AtService>, String> {
        let entry = Config::read(&self.file).ok().and_then(|config| config.server(server).ok());
        login::end_all(server, &self.logins, entry.and_then(|entry| entry.client_secret().cloned())).await
    }

    /// Names the entry, as the file has it now, of the server that has a tool; none if there is none.
    pub(crate) fn entry_of(&self, tool: &str) -> Option<String> {
        Config::read(&self.file).ok()?.written(server_of(tool)?).map(str::to_owned)
    }

    /// Makes one call for a flow or a model.
    pub(crate) async fn call(&self, task: &TaskContext, asked: Asked<'_>) -> Result<End, Unavailable> {
        let Some(name) = server_of(asked.tool) else { return Err(Unavailable::nameless(asked.tool)) };
        let ended = match self.server(name).await {
            Ok(server) => call::run(&server, task, asked).await,
            Err(unavailable) => Err(unavailable),
        };
        call::ended(task, ended).await
    }

    /// The server of this name, as the file says now: a person may add or mend one while runs wait for it. Those that the file has
    /// no more, or has otherwise, end with their last call.
    async fn server(&self, name: &str) -> Result<Arc<Server>, Unavailable> {
        let config = Config::read(&self.file).map_err(|why| Unavailable::new(name, why))?;
        let known = config.names().any(|known| known == name) && !config.is_disabled(name);
        let cannot = if known { Unavailable::new } else { Unavailable::unknown };
        let mut running = self.running.lock().await;
        running.retain(|name, server| config.server(name).is_ok_and(|now| now == server.config));
        let wanted = config.server(name).map_err(|why| cannot(name, why))?;
        if let Some(server) = running.get(name) {
            return Ok(server.clone());
        }
        let server = Arc::new(Server::new(wanted, &self.directory, self.guard.clone(), self.logins.clone()));
        running.insert(name.to_owned(), server.clone());
        Ok(server)
    }
}
