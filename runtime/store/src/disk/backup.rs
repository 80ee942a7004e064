//! A copy of a whole store, made while it is in use.
//!
//! Leaves giving a picture of one moment to the stores. Invariant: the directory that was asked for appears when the copy in it is whole
//! and durable; what an interrupted copy leaves stands beside it, under another name, and is never taken for a store.

use std::ffi::OsString;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use fjall::PersistMode;

use super::{FjallStore, OpenOptions, files};
use crate::breakage::{Breakage, breaks};
use crate::keys::{self, Space};
use crate::view::{self, View};
use crate::{StoreError, limits};

/// Writes what a view shows into a directory that is not there yet.
pub(crate) fn write(view: &impl View, to: &Path) -> Result<(), StoreError> {
    let refuse = |detail: &str| StoreError::Invalid {
        what: format!("a backup to {}", to.display()),
        detail: detail.to_owned(),
    };
    let (Some(parent), Some(name)) = (to.parent(), to.file_name()) else {
        return Err(refuse("it names no directory"));
    };
    let unfinished = unfinished(parent, name.to_owned());
    match fs::read_dir(to).map(|mut entries| entries.next().is_none()) {
        Ok(true) => {}
        Ok(false) => return Err(refuse("something is there already; name a new directory")),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
        Err(e) if e.kind() == std::io::ErrorKind::NotADirectory => {
            return Err(refuse("a file is in the way; name a new directory"));
        }
        Err(e) => return Err(files::failed(to, "look into it")(e)),
    }
    match fs::remove_dir_all(&unfinished) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            return Err(files::failed(&unfinished, "remove an unfinished backup")(e));
        }
        Ok(()) | Err(_) => {}
    }
    copy(view, &unfinished)?;
    fs::rename(&unfinished, to).map_err(files::failed(to, "put the backup in its place"))?;
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    files::sync_directory(parent).map_err(files::failed(to, "make the backup durable"))
}

fn unfinished(parent: &Path, mut name: OsString) -> PathBuf {
    name.push(".unfinished");
    parent.join(name)
}

fn copy(view: &impl View, directory: &Path) -> Result<(), StoreError> {
    let (store, _) = FjallStore::open(directory, OpenOptions::default())?;
    let mut batch = Batch { store: &store, open: None, bytes: 0 };
    for space in Space::ALL {
        view.scan(space, &[], &[0xff; 2], &mut |key, value| {
            // The number of the last commit comes last: it says that all before it is there.
            let left_out = space == Space::Log && breaks(Breakage::BackUpLess);
            if (space != Space::Meta || key != keys::COMMIT) && !left_out {
                batch.put(space, key, value)?;
            }
            Ok(ControlFlow::Continue(()))
        })?;
    }
    if let Some(number) = view.get(Space::Meta, keys::COMMIT)? {
        batch.put(Space::Meta, keys::COMMIT, &number)?;
    }
    batch.end()?;
    let number = view::commit_number(&store.picture()?)?;
    store.lock_committer().mark.write(number).map_err(files::failed(directory, "write the mark"))
}

/// What is written together: large enough to be fast, small enough to be held in memory.
struct Batch<'a> {
    store: &'a FjallStore,
    open: Option<fjall::OwnedWriteBatch>,
    bytes: usize,
}

impl Batch<'_> {
    fn put(&mut self, space: Space, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let store = self.store;
        let batch = self.open.get_or_insert_with(|| {
            fjall::OwnedWriteBatch::with_capacity(store.database.clone(), 1_000)
                .durability(Some(PersistMode::SyncData))
        });
        batch.insert(store.spaces.of(space), key, value);
        self.bytes += key.len() + value.len();
        if self.bytes >= limits::BACKUP_BATCH_BYTES { self.end() } else { Ok(()) }
    }

    fn end(&mut self) -> Result<(), StoreError> {
        self.bytes = 0;
        let Some(batch) = self.open.take() else { return Ok(()) };
        batch.commit().map_err(|e| files::disk(&self.store.directory, format!("write the backup: {e}"), None))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use outlast_kernel::ids::Seq;

    use super::*;
    use crate::Store as _;
    use crate::conformance::samples::{commit, run, step};
    use crate::disk::Picture;
    use crate::view::Visit;
    use crate::{Head, MemoryStore};

    /// A view of which only so much can be read, as by a process that dies there.
    struct Dying<'a> {
        picture: Picture<'a>,
        left: Cell<usize>,
    }

    impl Dying<'_> {
        fn read(&self) -> Result<(), StoreError> {
            let died = || files::disk(Path::new("nowhere"), "the process died".into(), None);
            self.left.set(self.left.get().checked_sub(1).ok_or_else(died)?);
            Ok(())
        }
    }

    impl View for Dying<'_> {
        fn get(&self, space: Space, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
            self.read()?;
            self.picture.get(space, key)
        }

        fn size(&self, space: Space, key: &[u8]) -> Result<Option<u64>, StoreError> {
            self.read()?;
            self.picture.size(space, key)
        }

        fn scan(
            &self,
            space: Space,
            from: &[u8],
            to: &[u8],
            visit: &mut Visit<'_>,
        ) -> Result<(), StoreError> {
            self.picture.scan(space, from, to, &mut |key, value| {
                self.read()?;
                visit(key, value)
            })
        }
    }

    #[test]
    fn a_backup_that_dies_at_any_point_is_not_there_and_stops_no_later_one() {
        let place = tempfile::tempdir().unwrap();
        let (store, _) = FjallStore::open(&place.path().join("data"), OpenOptions::default()).unwrap();
        for name in ["a", "b"] {
            commit(&store, step(&run(name), Head::default(), 2)).unwrap();
        }
        let to = place.path().join("copy");
        let mut deaths = 0;
        loop {
            let view = Dying { picture: store.picture().unwrap(), left: Cell::new(deaths) };
            match write(&view, &to) {
                Ok(()) => break,
                Err(_) => assert!(!to.exists(), "after {deaths} reads"),
            }
            deaths += 1;
        }
        assert!(deaths > 6, "{deaths}");
        let (copy, _) = FjallStore::open(&to, OpenOptions::default()).unwrap();
        assert!(copy.check().unwrap().findings.is_empty());
        for name in ["a", "b"] {
            let whole = store.history(&run(name), Seq(0), 9).unwrap();
            assert_eq!(copy.history(&run(name), Seq(0), 9).unwrap(), whole);
        }
        // What cannot be put into its place is no backup either.
        let nowhere = place.path().join("data/FORMAT/copy");
        assert!(MemoryStore::new().backup(&nowhere).is_err());
    }
}
