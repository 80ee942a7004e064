//! Unix sockets at paths of any length: the system takes some hundred bytes, data directories may lie deeper.
//!
//! Leaves modes and moving into place to the server. Invariant: the name that others see is always the long one.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use tokio::net::{UnixListener, UnixStream};

use crate::limits::SOCKET_PATH_BYTES_MAX;

/// Binds a socket at a path.
///
/// # Errors
/// If it cannot be bound.
pub(crate) fn bind(path: &Path) -> io::Result<UnixListener> {
    let way = Way::to(path)?;
    UnixListener::bind(&way.path)
}

/// Connects to the socket at a path.
///
/// # Errors
/// If nobody listens there.
pub async fn connect(path: &Path) -> io::Result<UnixStream> {
    let way = Way::to(path)?;
    UnixStream::connect(&way.path).await
}

/// A path that the system takes for a socket, and the open directory that it may lead through.
struct Way {
    path: PathBuf,
    _directory: Option<File>,
}

impl Way {
    fn to(path: &Path) -> io::Result<Way> {
        if path.as_os_str().len() <= SOCKET_PATH_BYTES_MAX {
            return Ok(Way { path: path.to_path_buf(), _directory: None });
        }
        let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(too_long(path));
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = File::from(rustix::fs::open(directory, flags, Mode::empty())?);
        // Linux lets every process pass through the directories that it has open.
        let short = PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd()));
        let path_is_short = name.len() <= SOCKET_PATH_BYTES_MAX / 2 && short.is_dir();
        if !path_is_short {
            return Err(too_long(path));
        }
        Ok(Way { path: short.join(name), _directory: Some(directory) })
    }
}

fn too_long(path: &Path) -> io::Error {
    let length = path.as_os_str().len();
    let why = format!(
        "its path of {length} bytes is too long for a socket ({SOCKET_PATH_BYTES_MAX} at most); name a shorter one with `--data`"
    );
    io::Error::new(io::ErrorKind::InvalidFilename, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn sockets_at_long_paths_are_found_by_the_same_path() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("d".repeat(120)).join("e".repeat(120));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("socket");
        let listener = bind(&path).unwrap();
        assert!(path.exists());
        connect(&path).await.unwrap();
        listener.accept().await.unwrap();
        drop(listener);
        assert_eq!(connect(&path).await.unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
    }

    #[tokio::test]
    async fn who_cannot_be_helped_is_told_what_to_do() {
        let root = tempfile::tempdir().unwrap();
        let error = bind(&root.path().join("s".repeat(200))).unwrap_err();
        assert!(error.to_string().contains("`--data`"), "{error}");
    }
}
