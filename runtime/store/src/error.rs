//! Why a history cannot be read or extended: one variant for each reaction of the caller.

use std::io;
use std::path::PathBuf;

use outlast_kernel::ids::{RunId, Seq};

/// Why a history cannot be read or extended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The disk failed, or failed before: this process writes no more. Stop, say so, reopen.
    #[error("cannot use the store in {}: {detail}", path.display())]
    Disk {
        /// The data directory.
        path: PathBuf,
        /// What was tried and what the system said.
        detail: String,
        /// The cause.
        source: Option<io::Error>,
    },
    /// Another process owns the directory: attach to it, or wait.
    #[error("the store in {} is in use by process {pid}", path.display())]
    Locked {
        /// The data directory.
        path: PathBuf,
        /// The owner's process id; 0 if unknown.
        pid: u32,
    },
    /// Another writer was first: reload the run and decide again.
    #[error("run {run} is at event {found}, not {expected}")]
    Stale {
        /// The run.
        run: RunId,
        /// Where the writer believed it to be.
        expected: Seq,
        /// Where it is.
        found: Seq,
    },
    /// The disk is nearly full: refuse new work, keep what is there.
    #[error("the disk of {} has {free} bytes left, {needed} are kept free; make room and go on", path.display())]
    Full {
        /// The data directory.
        path: PathBuf,
        /// Bytes left.
        free: u64,
        /// Bytes that must stay free.
        needed: u64,
    },
    /// A newer release wrote it: nothing was changed; use that release.
    #[error("{what} has format {found}, this release reads up to {known}; use a newer release")]
    Newer {
        /// What was read.
        what: String,
        /// The format found.
        found: u32,
        /// The newest format that this release reads.
        known: u32,
    },
    /// Stored bytes are damaged: refuse, keep a copy, say so.
    #[error("{what} is damaged: {detail}")]
    Damaged {
        /// What was read.
        what: String,
        /// How it is damaged.
        detail: String,
    },
    /// The caller breaks a rule of this crate: nothing was written. A mistake of the caller, or a cursor from elsewhere.
    #[error("{what} is refused: {detail}")]
    Invalid {
        /// What was asked for.
        what: String,
        /// The rule it breaks.
        detail: String,
    },
}
