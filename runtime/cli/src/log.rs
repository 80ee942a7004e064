//! The log on stderr: which lines, and in what form.
//!
//! Leaves secrets to the workers' mask, through which every line goes. Invariant: what is set and cannot be is an error, not another log.

use outlast_workers::sdk::MaskedLog;
use tracing_subscriber::EnvFilter;

use crate::failure::Failure;

/// Begins to log as the environment says: `OUTLAST_LOG` which lines, `OUTLAST_LOG_FORMAT` in what form.
///
/// # Errors
/// [`Failure`] if the form is none.
pub(crate) fn begin() -> Result<(), Failure> {
    let filter = EnvFilter::try_from_env("OUTLAST_LOG").unwrap_or_else(|_| EnvFilter::new("error"));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(|| MaskedLog).with_ansi(false);
    match std::env::var("OUTLAST_LOG_FORMAT").as_deref() {
        Err(_) | Ok("" | "text") => log.init(),
        Ok("json") => log.json().flatten_event(true).with_current_span(false).init(),
        Ok(other) => {
            let text = format!("OUTLAST_LOG_FORMAT is {other:?}; text or json is expected");
            return Err(Failure::usage(text));
        }
    }
    Ok(())
}
