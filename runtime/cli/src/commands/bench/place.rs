//! A directory for one store, removed when it is dropped.
//!
//! Leaves ending the processes that use it to the crew. Invariant: nothing is removed but a directory that was made here.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::cannot;
use crate::failure::Failure;

/// A directory that was made for this.
#[derive(Debug)]
pub(super) struct Place(PathBuf);

impl Place {
    /// Makes one.
    pub(super) fn make(parent: &Path) -> Result<Place, Failure> {
        let told = |error| cannot(&format!("make a directory in {}", parent.display()), &error);
        std::fs::create_dir_all(parent).map_err(told)?;
        let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.subsec_nanos());
        let path = parent.join(format!("outlast-bench-{}-{nanos}", std::process::id()));
        // One that is there already is somebody else's.
        std::fs::create_dir(&path).map_err(told)?;
        Ok(Place(path))
    }

    /// Returns its path.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            crate::out::say(&format!("cannot remove {}: {error}", self.0.display()));
        }
    }
}

/// Returns the nearest directory around a data directory that is there: most likely on the same disk.
pub(super) fn beside(data: &Path) -> PathBuf {
    let around = data.ancestors().skip(1).find(|path| path.is_dir());
    around.map_or_else(std::env::temp_dir, Path::to_path_buf)
}

/// Returns the bytes that a directory takes on the disk, and those of the journals among them: reserved ones that were never written do not
/// count.
pub(super) fn bytes_on_disk(directory: &Path) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt as _;
    let (mut bytes, mut journals) = (0, 0);
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        // A file may go between being listed and being looked at.
        let Ok(meta) = entry.metadata() else { continue };
        // The unit is 512 bytes, whatever the file system's block.
        let of_file = meta.blocks() * 512;
        bytes += of_file;
        if entry.path().extension().is_some_and(|extension| extension == "jnl") {
            journals += of_file;
        }
        if meta.is_dir() {
            let (more, of_journals) = bytes_on_disk(&entry.path());
            (bytes, journals) = (bytes + more, journals + of_journals);
        }
    }
    (bytes, journals)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_takes_away_what_it_made_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("kept"), "x").unwrap();
        let place = Place::make(root.path()).unwrap();
        std::fs::create_dir(place.path().join("inner")).unwrap();
        std::fs::write(place.path().join("inner/file"), [1; 10_000]).unwrap();
        std::fs::write(place.path().join("inner/0.jnl"), [1; 10_000]).unwrap();
        let (bytes, journals) = bytes_on_disk(place.path());
        assert!(bytes >= 20_000 && (10_000..20_000).contains(&journals), "{bytes} {journals}");
        let path = place.path().to_path_buf();
        drop(place);
        assert!(!path.exists() && root.path().join("kept").exists());
    }

    #[test]
    fn it_stands_beside_a_data_directory_that_may_not_be_there_yet() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(beside(&root.path().join("a/b/data")), root.path());
    }
}
