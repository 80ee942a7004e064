//! Room on the disk: free bytes, the refusal before the last ones, the ballast, and file systems that cannot be trusted.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use rustix::fs::FallocateFlags;

use super::files;
use crate::StoreError;
use crate::breakage::{Breakage, breaks};
use crate::limits::{BALLAST_BYTES, FREE_BYTES_LAST};

const BALLAST: &str = "ballast";

/// File systems whose locks or syncs may not reach the disk that other machines see. FUSE is among them because what is behind it
/// cannot be told.
const NETWORK: [(u32, &str); 9] = [
    (0x6969, "NFS"),
    (0x517b, "SMB"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB2"),
    (0x00c3_6400, "Ceph"),
    (0x5346_414f, "AFS"),
    (0x0102_1997, "9P"),
    (0x6573_5546, "FUSE"),
    (0x0bd0_0bd0, "Lustre"),
];

/// Returns the bytes that the disk has left for this process.
pub(super) fn free(directory: &Path) -> Result<u64, StoreError> {
    let stat = rustix::fs::statvfs(directory)
        .map_err(|e| files::failed(directory, "ask for free bytes")(e.into()))?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Refuses a commit that would take the last bytes. It is written twice: to the journal now, to a table later. What only stops runs
/// may have the ballast and nearly all of the last bytes.
pub(super) fn check(
    directory: &Path,
    free_bytes_min: u64,
    bytes: u64,
    only_stops: bool,
) -> Result<(), StoreError> {
    let has_room = |least: u64| {
        let (free, needed) = (free(directory)?, least.saturating_add(bytes.saturating_mul(2)));
        if free < needed && !breaks(Breakage::IgnoreFullDisk) {
            return Err(StoreError::Full { path: directory.to_path_buf(), free, needed });
        }
        Ok(())
    };
    match has_room(free_bytes_min) {
        Err(StoreError::Full { .. }) if only_stops => {
            drop_ballast(directory).map_err(files::failed(directory, "give back the ballast"))?;
            has_room(free_bytes_min.min(FREE_BYTES_LAST))
        }
        checked => checked,
    }
}

fn drop_ballast(directory: &Path) -> io::Result<()> {
    let removed = fs::remove_file(directory.join(BALLAST));
    removed.or_else(|e| if e.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(e) })
}

/// Refuses a network file system.
pub(super) fn refuse_network(directory: &Path) -> Result<(), StoreError> {
    let stat = rustix::fs::statfs(directory)
        .map_err(|e| files::failed(directory, "ask for the file system")(e.into()))?;
    match network(u64::from_ne_bytes(stat.f_type.to_ne_bytes())) {
        Some(name) => Err(StoreError::Disk {
            path: directory.to_path_buf(),
            detail: format!(
                "it is on a network file system ({name}), where a lock or a sync may promise nothing; use a local disk, or force it"
            ),
            source: None,
        }),
        None => Ok(()),
    }
}

fn network(kind: u64) -> Option<&'static str> {
    NETWORK.iter().find(|(magic, _)| u64::from(*magic) == kind & 0xffff_ffff).map(|(_, name)| *name)
}

/// Keeps the ballast while there is room, and gives it back when there is not: recovery itself must write.
pub(super) fn trim(directory: &Path, free_bytes_min: u64) -> Result<(), StoreError> {
    let path = directory.join(BALLAST);
    let free = free(directory)?;
    let trimmed = if free < free_bytes_min {
        drop_ballast(directory)
    } else if fs::metadata(&path).is_ok_and(|meta| meta.len() == BALLAST_BYTES)
        || free < free_bytes_min.saturating_add(BALLAST_BYTES)
    {
        Ok(())
    } else {
        fill(&path)
    };
    trimmed.map_err(files::failed(directory, "keep the ballast"))
}

fn fill(path: &Path) -> io::Result<()> {
    let mut file = File::create(path)?;
    if rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, BALLAST_BYTES).is_ok() {
        return Ok(());
    }
    // Some file systems cannot reserve bytes without writing them.
    let zeroes = vec![0; 1 << 20];
    for _ in 0..BALLAST_BYTES >> 20 {
        file.write_all(&zeroes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_known_by_their_magic_numbers() {
        for (kind, expected) in [
            (0x6969, Some("NFS")),
            (0xff53_4d42, Some("CIFS")),
            (0xffff_ffff_ff53_4d42, Some("CIFS")),
            (0xef53, None),
            (0x0102_1994, None),
        ] {
            assert_eq!(network(kind), expected, "{kind:x}");
        }
    }
}
