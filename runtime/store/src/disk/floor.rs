//! What the database below allows at best: group commits that are planned, checked and numbered by nobody.
//!
//! For those who want to know how far a store, or what is built on it, is from that. Invariant: the database is opened and synced as the
//! store does it; only what the store does beside is missing.

use std::path::Path;
use std::time::{Duration, Instant};

use fjall::PersistMode;

use super::files;
use super::open::start;
use crate::StoreError;

/// Returns how many values of so many bytes are durable in a second, so many in one commit, in a new database in this directory.
///
/// # Errors
/// [`StoreError::Disk`] if the directory cannot be made or written.
pub fn group_commits(
    directory: &Path,
    (group, bytes): (usize, usize),
    time: Duration,
) -> Result<f64, StoreError> {
    let failed = |e: fjall::Error| files::disk(directory, format!("commit: {e}"), None);
    std::fs::create_dir_all(directory).map_err(files::failed(directory, "create the directory"))?;
    let (database, spaces) = start(directory, &directory.join("db"), true)?;
    let value = vec![0x5a_u8; bytes];
    let (start, mut commits) = (Instant::now(), 0_u64);
    while start.elapsed() < time {
        let mut batch = fjall::OwnedWriteBatch::with_capacity(database.clone(), group)
            .durability(Some(PersistMode::SyncData));
        for run in 0..group {
            // As the keys of steps: a run, and where it stands.
            let key = [format!("floor-{run:06}\0").as_bytes(), &commits.to_be_bytes()].concat();
            batch.insert(&spaces.log, key, value.clone());
        }
        batch.commit().map_err(failed)?;
        commits += 1;
    }
    Ok((commits * group as u64) as f64 / start.elapsed().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_are_counted_by_their_values() {
        let place = tempfile::tempdir().unwrap();
        let least = group_commits(&place.path().join("floor"), (10, 100), Duration::from_millis(1)).unwrap();
        assert!(least > 0.0);
    }
}
