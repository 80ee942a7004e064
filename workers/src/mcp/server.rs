//! Keeps one server: starts it when it is needed, and again when it ended, with waits that grow while it does not come up.
//!
//! Leaves single calls to their module. Invariant: at most one connection at a time; a server that fails is started at most once in
//! its current wait, whatever number of calls want it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use super::config::ServerConfig;
use super::connection::Connection;
use super::login::Logins;
use crate::limits::{LOGIN_LOOK_EVERY, RESTART_WAIT_MAX, RESTART_WAIT_MIN, STEADY_AFTER};

/// See the module.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) config: ServerConfig,
    directory: PathBuf,
    guard: Option<PathBuf>,
    logins: Logins,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    connection: Option<(Arc<Connection>, Instant)>,
    /// How often in a row it failed to start or ended at once.
    failures: u32,
    /// Not before this is it tried again, and why.
    wait: Option<(Instant, String)>,
}

/// A server that cannot be called now. Nothing was sent.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("MCP server {server}: {why}")]
pub(crate) struct Unavailable {
    /// Its name.
    pub(crate) server: String,
    /// What is the matter.
    pub(crate) why: String,
    /// When it makes sense to try again.
    pub(crate) wait: Duration,
    /// Whether the configuration may have it: false only if it surely has not.
    pub(crate) configured: bool,
}

impl Unavailable {
    pub(super) fn new(server: &str, why: impl Into<String>) -> Unavailable {
        Unavailable { server: server.to_owned(), why: why.into(), wait: RESTART_WAIT_MIN, configured: true }
    }

    /// A person has to log in.
    pub(super) fn no_login(server: &str, why: impl Into<String>) -> Unavailable {
        Unavailable { wait: LOGIN_LOOK_EVERY, ..Unavailable::new(server, why) }
    }

    pub(super) fn nameless(tool: &str) -> Unavailable {
        Unavailable::new(tool, "it is no tool of a server")
    }

    /// The configuration does not have it.
    pub(super) fn unknown(server: &str, why: impl Into<String>) -> Unavailable {
        Unavailable { configured: false, ..Unavailable::new(server, why) }
    }
}

impl Server {
    pub(super) fn new(
        config: ServerConfig,
        directory: &Path,
        guard: Option<PathBuf>,
        logins: Logins,
    ) -> Server {
        Server { config, directory: directory.to_owned(), guard, logins, state: Mutex::default() }
    }

    /// The connection; made if there is none.
    pub(super) async fn connection(&self) -> Result<Arc<Connection>, Unavailable> {
        let mut state = self.state.lock().await;
        if let Some((connection, since)) = &state.connection {
            if !connection.is_over() {
                return Ok(connection.clone());
            }
            let story = connection.story().await;
            let steady = since.elapsed() >= STEADY_AFTER;
            tracing::warn!(server = self.config.name, story, "an MCP server is gone");
            state.connection = None;
            if steady {
                state.failures = 0;
                state.wait = None;
            } else {
                state.failed(format!("it ended{story}"));
            }
        }
        if let Some((until, why)) = &state.wait
            && let Some(wait) = until.checked_duration_since(Instant::now()).filter(|wait| !wait.is_zero())
        {
            let why = format!("{why}; it is tried again in {:.1} s", wait.as_secs_f32());
            return Err(Unavailable { wait, ..Unavailable::new(&self.config.name, why) });
        }
        match Connection::open(&self.config, &self.directory, self.guard.as_ref(), &self.logins).await {
            Ok(connection) => {
                let connection = Arc::new(connection);
                state.connection = Some((connection.clone(), Instant::now()));
                state.wait = None;
                Ok(connection)
            }
            // Whoever has logged in should not wait, and one look costs one request.
            Err(not) if not.wants_login => Err(Unavailable::no_login(&self.config.name, not.why)),
            Err(not) => {
                let wait = state.failed(not.why.clone());
                Err(Unavailable { wait, ..Unavailable::new(&self.config.name, not.why) })
            }
        }
    }
}

impl State {
    /// Takes note of a failure; returns how long it is waited then. The first one costs no wait: a server that crashed once is
    /// there again at the next call.
    fn failed(&mut self, why: String) -> Duration {
        let wait = match self.failures {
            0 => Duration::ZERO,
            more => RESTART_WAIT_MIN.saturating_mul(1 << (more - 1).min(16)).min(RESTART_WAIT_MAX),
        };
        self.failures = self.failures.saturating_add(1);
        self.wait = Some((Instant::now() + wait, why));
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_limit_and_the_first_is_none() {
        let mut state = State::default();
        let waits: Vec<Duration> = (0..40).map(|_| state.failed(String::new())).collect();
        assert_eq!(
            waits[..4],
            [Duration::ZERO, RESTART_WAIT_MIN, RESTART_WAIT_MIN * 2, RESTART_WAIT_MIN * 4]
        );
        assert_eq!(waits[39], RESTART_WAIT_MAX);
    }
}
