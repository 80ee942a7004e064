//! The lock: one process owns a data directory.
//!
//! The kernel holds it for the open file, so it ends with the process, however that ends, and the file itself blocks nothing. It
//! belongs to the inode, so symbolic links and bind mounts lead to the same lock.

use std::fs::{self, File};
use std::io::{Seek, Write};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use super::files;
use crate::StoreError;
use crate::breakage::{Breakage, breaks};
use crate::limits::LOCK_RETRY_MS;

const NAME: &str = "lock";

/// The held lock.
#[derive(Debug)]
pub(super) struct Lock(File);

impl Lock {
    /// Takes the lock, waiting for its owner at most this long.
    ///
    /// # Errors
    /// [`StoreError::Locked`] with the owner's process id.
    pub(super) fn take(directory: &Path, wait: Option<Duration>) -> Result<Lock, StoreError> {
        let path = directory.join(NAME);
        let file = File::options().read(true).write(true).create(true).truncate(false).open(&path);
        let file = file.map_err(files::failed(directory, "open the lock file"))?;
        let start = Instant::now();
        loop {
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Lock(file)),
                Err(_) if breaks(Breakage::SkipLock) => return Ok(Lock(file)),
                Err(Errno::WOULDBLOCK) if wait.is_some_and(|wait| start.elapsed() < wait) => {
                    thread::sleep(Duration::from_millis(LOCK_RETRY_MS));
                }
                Err(Errno::WOULDBLOCK) => {
                    let text = fs::read_to_string(&path).unwrap_or_default();
                    let pid = text.trim().parse().unwrap_or(0);
                    return Err(StoreError::Locked { path: directory.to_path_buf(), pid });
                }
                Err(Errno::INTR) => {}
                Err(e) => return Err(files::failed(directory, "take the lock")(e.into())),
            }
        }
    }

    /// Writes our process id, for those who find the lock held.
    pub(super) fn sign(&mut self) -> std::io::Result<()> {
        self.0.set_len(0)?;
        self.0.rewind()?;
        writeln!(self.0, "{}", std::process::id())
    }
}
