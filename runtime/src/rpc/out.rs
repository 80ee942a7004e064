//! Writing lines to a pipe whose reader may be slow.
//!
//! Invariant: what waits is bounded in bytes; lines are written whole and in order.

use std::io::{self, Write};
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use crate::limits::{RPC_LINES_MAX, RPC_OUT_BYTES_MAX};

/// Where lines go. Cheap to clone; the thread behind it ends when the last clone is dropped and everything is written.
#[derive(Clone, Debug)]
pub(super) struct Out {
    sender: mpsc::Sender<(String, OwnedSemaphorePermit)>,
    room: Arc<Semaphore>,
}

impl Out {
    /// Starts the thread that writes; the receiver is told when it has ended, with the error if there was one.
    pub(super) fn start(
        mut writer: impl Write + Send + 'static,
    ) -> io::Result<(Out, oneshot::Receiver<io::Result<()>>)> {
        let (sender, mut lines) = mpsc::channel::<(String, OwnedSemaphorePermit)>(RPC_LINES_MAX);
        let (ended, end) = oneshot::channel();
        let write = move || {
            let mut written = Ok(());
            while let Some((line, _room)) = lines.blocking_recv() {
                written = writer.write_all(line.as_bytes()).and_then(|()| writer.flush());
                if written.is_err() {
                    break;
                }
            }
            // Nobody may wait for it any more.
            let _ = ended.send(written);
        };
        std::thread::Builder::new().name("answers".to_owned()).spawn(write)?;
        Ok((Out { sender, room: Arc::new(Semaphore::new(RPC_OUT_BYTES_MAX as usize)) }, end))
    }

    /// Writes a value as a line, when there is room for it. What is larger than all room goes alone. A reader that is gone hears nothing.
    pub(super) async fn send(&self, value: &outlast_kernel::Json) {
        let line = value.to_string() + "\n";
        let bytes = u32::try_from(line.len()).unwrap_or(u32::MAX).min(RPC_OUT_BYTES_MAX);
        if let Ok(room) = Arc::clone(&self.room).acquire_many_owned(bytes).await {
            let _gone = self.sender.send((line, room)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    /// A pipe that nobody reads until the test says so.
    struct Stuck(Receiver<()>);

    impl Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.recv().map_err(io::Error::other)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn what_waits_for_a_slow_reader_is_bounded_in_bytes() {
        let (go, stuck) = channel();
        let (out, ended) = Out::start(Stuck(stuck)).unwrap();
        let large = json!("x".repeat(RPC_OUT_BYTES_MAX as usize));
        out.send(&large).await;
        let next = json!(1);
        {
            let mut waits = std::pin::pin!(out.send(&next));
            assert!(tokio::time::timeout(Duration::ZERO, &mut waits).await.is_err(), "there is no room yet");
            go.send(()).unwrap();
            waits.await;
        }
        go.send(()).unwrap();
        drop((out, go));
        ended.await.unwrap().unwrap();
    }
}
