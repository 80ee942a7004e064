//! A way to the runtime that a test can hold: a Unix socket in front of its own.
//!
//! Passes everything on until a worker reports: that is kept, so the attempt is over for the worker and under way for the runtime,
//! exactly there and for as long as the test likes. Leaves what happens then to the test. Invariant: of a report that is held not one
//! byte of its body arrives.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What a report begins with.
const REPORT: &[u8] = b"POST /v1/workers/report";

/// The socket in front, which is served as long as the test's process lives.
#[derive(Debug)]
pub struct Held {
    socket: PathBuf,
    reports: Arc<AtomicUsize>,
}

impl Held {
    /// Makes the socket `held` in a directory; it leads to `to`.
    ///
    /// # Panics
    /// If it cannot be made.
    #[must_use]
    pub fn new(directory: &Path, to: PathBuf) -> Held {
        let socket = directory.join("held");
        let listener =
            UnixListener::bind(&socket).unwrap_or_else(|error| panic!("{}: {error}", socket.display()));
        let reports = Arc::new(AtomicUsize::new(0));
        let counted = reports.clone();
        std::thread::spawn(move || {
            for worker in listener.incoming().map_while(Result::ok) {
                let Ok(runtime) = UnixStream::connect(&to) else { continue };
                let (Ok(back), Ok(answers)) = (worker.try_clone(), runtime.try_clone()) else { continue };
                let counted = counted.clone();
                std::thread::spawn(move || pass_until_report(worker, runtime, &counted));
                std::thread::spawn(move || pass(answers, back));
            }
        });
        Held { socket, reports }
    }

    /// Its address, as `OUTLAST_URL` says it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("unix:{}", self.socket.display())
    }

    /// How many reports are held.
    #[must_use]
    pub fn reports(&self) -> usize {
        self.reports.load(Ordering::Acquire)
    }
}

/// Passes on what a worker sends; keeps the connection open and silent from its first report on.
fn pass_until_report(mut worker: UnixStream, mut runtime: UnixStream, reports: &AtomicUsize) {
    let (mut buffer, mut seen) = ([0; 4096], Vec::new());
    while let Ok(some @ 1..) = worker.read(&mut buffer) {
        seen.extend_from_slice(&buffer[..some]);
        if seen.windows(REPORT.len()).any(|bytes| bytes == REPORT) {
            reports.fetch_add(1, Ordering::AcqRel);
            // Until the worker is gone.
            while matches!(worker.read(&mut buffer), Ok(1..)) {}
            break;
        }
        if runtime.write_all(&buffer[..some]).is_err() {
            break;
        }
        seen.drain(..seen.len().saturating_sub(REPORT.len()));
    }
    // Either end may be gone already.
    let _gone = runtime.shutdown(Shutdown::Both);
}

fn pass(mut from: UnixStream, mut to: UnixStream) {
    let _gone = std::io::copy(&mut from, &mut to);
    let _gone = to.shutdown(Shutdown::Both);
}
