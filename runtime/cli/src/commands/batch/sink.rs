//! A thread that writes lines: to a file that is synced, or to stdout, whose reader may be slow.
//!
//! Invariant: lines are written in order and whole; what waits is bounded.

use std::collections::VecDeque;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::failure::{Exit, Failure};
use crate::limits::{BATCH_WRITE_BYTES, BATCH_WRITES_MAX, LAST_WRITES_MS_MAX};
use crate::out;

/// Where lines go.
#[derive(Debug)]
pub(super) struct Sink {
    /// None: they are dropped.
    sender: Option<mpsc::Sender<String>>,
    thread: Option<JoinHandle<Result<(), Failure>>>,
}

impl Sink {
    /// Drops everything.
    pub(super) fn none() -> Sink {
        Sink { sender: None, thread: None }
    }

    /// Writes to stdout.
    pub(super) fn stdout() -> Result<Sink, Failure> {
        Sink::start(out::bytes)
    }

    /// Writes by this function, many lines at once if many wait.
    pub(super) fn start(
        mut write: impl FnMut(&[u8]) -> Result<(), Failure> + Send + 'static,
    ) -> Result<Sink, Failure> {
        let (sender, mut lines) = mpsc::channel::<String>(BATCH_WRITES_MAX);
        let writing = move || {
            while let Some(first) = lines.blocking_recv() {
                let mut text = first;
                while text.len() < BATCH_WRITE_BYTES
                    && let Ok(next) = lines.try_recv()
                {
                    text.push_str(&next);
                }
                write(text.as_bytes())?;
            }
            Ok(())
        };
        let thread = std::thread::Builder::new().name("results".to_owned()).spawn(writing);
        let cannot = |error| Failure::new(Exit::Failed, format!("no thread for the results: {error}"));
        Ok(Sink { sender: Some(sender), thread: Some(thread.map_err(cannot)?) })
    }

    /// Whether lines go anywhere.
    pub(super) fn is_open(&self) -> bool {
        self.sender.is_some()
    }

    /// Waits for room and hands over the first line. Dropping the future loses nothing: a line is only taken when there is room.
    pub(super) async fn send(&mut self, lines: &mut VecDeque<String>) -> Result<(), Failure> {
        let Some(sender) = &self.sender else {
            lines.clear();
            return Ok(());
        };
        if let Ok(place) = sender.reserve().await {
            if let Some(line) = lines.pop_front() {
                place.send(line);
            }
            return Ok(());
        }
        // The thread has ended, so it failed.
        self.close().await
    }

    /// Waits until everything is written.
    pub(super) async fn close(&mut self) -> Result<(), Failure> {
        self.sender = None;
        let Some(thread) = self.thread.take() else { return Ok(()) };
        let joined = tokio::task::spawn_blocking(move || thread.join()).await;
        match joined {
            Ok(Ok(written)) => written,
            Ok(Err(_)) | Err(_) => Err(Failure::new(Exit::Failed, "writing the results failed")),
        }
    }

    /// Waits for a moment until everything is written; returns whether it is.
    pub(super) async fn close_soon(&mut self) -> bool {
        timeout(Duration::from_millis(LAST_WRITES_MS_MAX), self.close())
            .await
            .is_ok_and(|closed| closed.is_ok())
    }
}
