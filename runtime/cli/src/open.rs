//! Opening the data directory for a command.

use std::path::Path;
use std::sync::Arc;

use outlast_protocol::profile::Profile;
use outlast_runtime::host::{Options, Session};

use crate::environment::data_directory;
use crate::failure::{Exit, Failure};

/// Whether a command that hosts starts workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Workers {
    /// It waits for runs, so somebody must do the work.
    Started,
    /// It looks or acts and leaves at once.
    None,
}

/// Hosts the data directory, or attaches to its host.
pub(crate) async fn session(
    data: Option<&Path>,
    workers: Workers,
    profile: Option<Profile>,
) -> Result<Arc<Session>, Failure> {
    Ok(Arc::new(Session::open(options(data, workers, profile)?).await?))
}

/// Returns how a data directory is opened.
pub(crate) fn options(
    data: Option<&Path>,
    workers: Workers,
    profile: Option<Profile>,
) -> Result<Options, Failure> {
    let program = match workers {
        Workers::None => None,
        Workers::Started => {
            let cannot = |error| Failure::new(Exit::Failed, format!("cannot find this program: {error}"));
            Some(std::env::current_exe().map_err(cannot)?)
        }
    };
    Ok(Options { directory: data_directory(data)?, program, profile, access_log: None })
}

/// Leaves the data directory. Tasks that still hold the session are those that the exit ends.
pub(crate) async fn close(session: Arc<Session>) {
    if let Some(session) = Arc::into_inner(session) {
        session.close().await;
    }
}
