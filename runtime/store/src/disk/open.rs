//! Opening: format, lock, room, scan, fjall, mark, in this order.
//!
//! Leaves commits and reads to [`super`]. Invariant: nothing is changed before the format is known and the lock is held, and no
//! journal before it is scanned; a store that is shorter than its mark is refused.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use fjall::compaction::Leveled;
use fjall::config::CompressionPolicy;
use fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions};

use super::lock::Lock;
use super::mark::{self, MarkFile};
use super::scan::{self, Scan};
use super::{Committer, FjallStore, Picture, Spaces, files, format, room};
use crate::keys::Space;
use crate::{StoreError, limits, view};

const DATABASE: &str = "db";

/// How a store is opened.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// How long to wait for another owner to leave; none refuses at once.
    pub wait: Option<Duration>,
    /// Whether a network file system is accepted.
    pub force: bool,
    /// Bytes that commits leave free on the disk.
    pub free_bytes_min: u64,
}

impl Default for OpenOptions {
    fn default() -> OpenOptions {
        OpenOptions { wait: None, force: false, free_bytes_min: limits::FREE_BYTES_MIN }
    }
}

/// What opening found, for `doctor`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Whether the store is new.
    pub created: bool,
    /// Bytes of complete batches in the journals.
    pub journal_bytes: u64,
    /// Bytes of a torn tail that was cut: a commit that nobody was told of.
    pub torn_bytes: u64,
    /// The number of the last durable commit.
    pub commit_last: u64,
    /// What the mark said; it is missing from a new store.
    pub mark: Mark,
    /// Bytes that the disk has left.
    pub free_bytes: u64,
}

/// What the mark said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// This commit was durable.
    At(u64),
    /// The file was missing: a vanished journal would go unnoticed.
    Missing,
}

impl FjallStore {
    /// Opens the store in a directory, made if need be.
    ///
    /// # Errors
    /// [`StoreError::Locked`] if another process has it, [`StoreError::Newer`] if a newer release wrote it (nothing is changed),
    /// [`StoreError::Damaged`] if something acknowledged is missing or unreadable (nothing is changed, copies are kept), and
    /// [`StoreError::Disk`].
    pub fn open(directory: &Path, options: OpenOptions) -> Result<(FjallStore, Opened), StoreError> {
        format::read(directory)?;
        fs::create_dir_all(directory).map_err(files::failed(directory, "create the directory"))?;
        if !options.force {
            room::refuse_network(directory)?;
        }
        let mut lock = Lock::take(directory, options.wait)?;
        let found = format::read(directory)?; // Again: its owner may have been a newer release.
        let created = found.is_none();
        // First of all what writes: on a full disk it needs the room of the ballast.
        room::trim(directory, options.free_bytes_min)?;
        lock.sign().map_err(files::failed(directory, "write the lock file"))?;
        let path = directory.join(DATABASE);
        let (scan, mark) = if created {
            remove_unfinished(directory, &path)?;
            (Scan::default(), None)
        } else {
            inspect(directory, &path)?
        };
        scan.cut(directory)?;
        let (database, spaces) = start(directory, &path, created)?;
        let commit_last = view::commit_number(&Picture::take(directory, &database, &spaces))?;
        let expected = scan.commit_last.max(mark).unwrap_or(0);
        if commit_last < expected {
            return Err(scan::refuse(directory, &path, &path, &shorter(commit_last, expected)));
        }
        if created {
            // In this order: a mark without a format would be a store that lost its format.
            files::sync_directory(&path).map_err(files::failed(directory, "make the database durable"))?;
        }
        if found != Some(format::FORMAT) {
            format::write(directory)?;
        }
        let opened = Opened {
            created,
            journal_bytes: scan.bytes,
            torn_bytes: scan.torn_bytes(),
            commit_last,
            mark: mark.map_or(Mark::Missing, Mark::At),
            free_bytes: room::free(directory)?,
        };
        let committer = Committer {
            commit_last,
            commits: 0,
            commit_us_last: 0,
            commit_us_max: 0,
            purged_bytes: 0,
            unflushed_bytes: 0,
            mark: MarkFile::open(directory, commit_last)?,
        };
        let store = FjallStore {
            spaces,
            database,
            committer: Mutex::new(committer),
            poison: OnceLock::new(),
            directory: PathBuf::from(directory),
            free_bytes_min: options.free_bytes_min,
            _lock: lock,
        };
        Ok((store, opened))
    }
}

/// Looks at an existing store without changing it.
fn inspect(directory: &Path, database: &Path) -> Result<(Scan, Option<u64>), StoreError> {
    let version = database.join("version");
    if !version.exists() {
        // fjall would make a new database here and call it a day.
        let detail = "it is missing, though the store was finished once".into();
        return Err(StoreError::Damaged { what: version.display().to_string(), detail });
    }
    let mark = mark::read(directory)?;
    let scan = scan::scan(directory, database)?;
    if let (Some(last), Some(mark)) = (scan.commit_last, mark)
        && last < mark
    {
        return Err(scan::refuse(directory, database, database, &shorter(last, mark)));
    }
    Ok((scan, mark))
}

fn shorter(last: u64, expected: u64) -> String {
    format!("it ends with commit {last}, but commit {expected} was durable")
}

/// Removes what a crash during the very first open left: it never held a commit.
fn remove_unfinished(directory: &Path, database: &Path) -> Result<(), StoreError> {
    let finished = |detail: &str| {
        let what = directory.join("FORMAT").display().to_string();
        Err(StoreError::Damaged { what, detail: format!("it is missing, but {detail}") })
    };
    if mark::read(directory)?.is_some() {
        return finished("there is a mark");
    }
    if !database.exists() {
        return Ok(());
    }
    if !scan::is_unused(directory, database)? {
        return finished("there are commits");
    }
    fs::remove_dir_all(database).map_err(files::failed(directory, "remove an unfinished database"))
}

/// Opens fjall and its keyspaces.
pub(super) fn start(directory: &Path, path: &Path, created: bool) -> Result<(Database, Spaces), StoreError> {
    let failed = |e: fjall::Error| refused(directory, path, e);
    let database = Database::builder(path)
        .cache_size(limits::CACHE_BYTES)
        // Recovery packs values again to check them, so another packer could make a journal unreadable.
        .journal_compression(CompressionType::None)
        .max_journaling_size(limits::JOURNAL_BYTES_MAX)
        .worker_threads(limits::WORKER_THREADS)
        .open()
        .map_err(failed)?;
    let open = |space: Space| -> Result<Keyspace, StoreError> {
        if !created && !database.keyspace_exists(space.name()) {
            let what = format!("the keyspace {} of {}", space.name(), path.display());
            return Err(StoreError::Damaged { what, detail: "it is missing".into() });
        }
        database.keyspace(space.name(), keyspace_options).map_err(failed)
    };
    let spaces = Spaces {
        log: open(Space::Log)?,
        view: open(Space::View)?,
        blob: open(Space::Blob)?,
        meta: open(Space::Meta)?,
    };
    Ok((database, spaces))
}

/// Options count only when a keyspace is made, so a change of them reaches new stores only.
fn keyspace_options() -> KeyspaceCreateOptions {
    KeyspaceCreateOptions::default()
        .max_memtable_size(limits::MEMTABLE_BYTES)
        .data_block_compression_policy(CompressionPolicy::all(CompressionType::Lz4))
        .compaction_strategy(Arc::new(Leveled::default().with_l0_threshold(limits::L0_TABLES)))
}

fn refused(directory: &Path, database: &Path, error: fjall::Error) -> StoreError {
    let what = database.display().to_string();
    match error {
        fjall::Error::Io(e) => files::failed(directory, "open the database")(e),
        fjall::Error::Locked => StoreError::Locked { path: directory.to_path_buf(), pid: 0 },
        fjall::Error::InvalidVersion(_) => {
            let detail = "its files have a version that this release does not read".into();
            StoreError::Damaged { what, detail }
        }
        other => StoreError::Damaged { what, detail: other.to_string() },
    }
}
