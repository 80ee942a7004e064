//! Following a run across the end of its host: frames in order, without a gap, each once.

use std::sync::Arc;

use outlast_protocol::run::{Frame, FrameKind};
use outlast_runtime::host::{Session, is_lost};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::failure::Failure;
use crate::limits::FRAMES_MAX;

/// A run that is followed. Dropping it hangs up.
#[derive(Debug)]
pub(crate) struct Tail {
    frames: mpsc::Receiver<Result<Frame, Failure>>,
    task: JoinHandle<()>,
}

impl Tail {
    /// Follows a run from the frame after `last` on, or from its beginning.
    pub(crate) fn start(session: &Arc<Session>, run: &str, last: Option<String>) -> Tail {
        let (sender, frames) = mpsc::channel(FRAMES_MAX);
        let task = tokio::spawn(follow(Arc::clone(session), run.to_owned(), last, sender));
        Tail { frames, task }
    }

    /// Returns the next frame; none after `ended`.
    pub(crate) async fn next(&mut self) -> Option<Result<Frame, Failure>> {
        self.frames.recv().await
    }

    /// Hangs up and waits until the session is given back.
    pub(crate) async fn stop(mut self) {
        self.task.abort();
        let _aborted = (&mut self.task).await;
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        self.task.abort();
    }
}

type Sender = mpsc::Sender<Result<Frame, Failure>>;

async fn follow(session: Arc<Session>, run: String, mut last: Option<String>, sender: Sender) {
    loop {
        let mut stream = match session.follow(&run, last.as_deref()).await {
            Ok(stream) => stream,
            Err(error) => {
                let _unheard = sender.send(Err(error.into())).await;
                return;
            }
        };
        loop {
            match stream.next().await {
                Ok(Some(frame)) => {
                    last = frame.id.clone().or(last);
                    let ended = frame.event == FrameKind::Ended;
                    if sender.send(Ok(frame)).await.is_err() || ended {
                        return;
                    }
                }
                // The stream was cut: by a host that left, or because we were too slow. Go on where it ended.
                Ok(None) => break,
                Err(error) if is_lost(&error) => break,
                Err(error) => {
                    let _unheard = sender.send(Err(error.into())).await;
                    return;
                }
            }
        }
    }
}
