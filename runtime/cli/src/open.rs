//! Opening the data directory for a command.

use std::path::Path;
use std::sync::Arc;

use outlast_protocol::profile::Profile;
use outlast_runtime::host::{Options, Session};
use outlast_runtime::limits::MEMORY_BUDGET_MIB_MIN;

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
    let memory_budget = memory_budget(std::env::var(MEMORY).ok().as_deref())?;
    let accept_clock = std::env::var_os(ACCEPT_CLOCK).is_some_and(|value| value == "1");
    Ok(Options { program, profile, memory_budget, accept_clock, ..Options::new(data_directory(data)?) })
}

/// The variable that says, with `1`, that a store is right about the time, and not the clock that is far behind it.
const ACCEPT_CLOCK: &str = "OUTLAST_ACCEPT_CLOCK";

/// The variable that says how many MiB the states of runs may have in memory.
const MEMORY: &str = "OUTLAST_MEMORY_MIB";

fn memory_budget(mib: Option<&str>) -> Result<Option<usize>, Failure> {
    let Some(mib) = mib else { return Ok(None) };
    let bytes = mib
        .parse::<u64>()
        .ok()
        .filter(|mib| *mib >= MEMORY_BUDGET_MIB_MIN)
        .and_then(|mib| mib.checked_mul(1 << 20));
    match bytes.and_then(|bytes| usize::try_from(bytes).ok()) {
        Some(bytes) => Ok(Some(bytes)),
        None => Err(Failure::usage(format!(
            "{MEMORY}: a number of MiB from {MEMORY_BUDGET_MIB_MIN} on is expected, not {mib:?}"
        ))),
    }
}

/// Leaves the data directory. Tasks that still hold the session are those that the exit ends.
pub(crate) async fn close(session: Arc<Session>) {
    if let Some(session) = Arc::into_inner(session) {
        session.close().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_a_number_of_mebibytes_that_is_enough() {
        assert_eq!(memory_budget(None).ok(), Some(None));
        assert_eq!(memory_budget(Some("64")).ok(), Some(Some(64 << 20)));
        for wrong in ["", "8", "64MiB", "-1", "99999999999999999999"] {
            assert!(memory_budget(Some(wrong)).is_err(), "{wrong:?}");
        }
    }
}
