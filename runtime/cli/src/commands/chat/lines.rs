//! A conversation through plain lines: scripts, pipes, tests.
//!
//! A line is sent as soon as it is read, so that it is durable whatever happens then; only lines that can be nothing but answers wait
//! for a question.

use std::collections::VecDeque;

use tokio::sync::mpsc;
use tokio::time::{Duration, sleep};

use super::next_frame;
use super::slash::{After, command};
use super::talk::Talk;
use super::voice::is_answer;
use crate::failure::{Exit, Failure};
use crate::limits::{LINES_MAX, LOOK_MS};
use crate::signals::Signals;
use outlast_protocol::run::WaitingFor;

/// Talks until the lines or the run end.
pub(super) async fn talk(talk: &mut Talk, mut signals: Signals) -> Result<Exit, Failure> {
    let mut lines = Some(read());
    let mut waiting: VecDeque<String> = VecDeque::new();
    let session = std::sync::Arc::clone(&talk.session);
    let mut failed = std::pin::pin!(session.failed());
    loop {
        if let Some(exit) = talk.ended()? {
            return Ok(exit);
        }
        while waiting.front().is_some_and(|line| is_time_for(talk, line)) {
            if let Some(line) = waiting.pop_front()
                && take(talk, &line).await? == After::Leave
            {
                return Ok(Exit::Done);
            }
        }
        if lines.is_none()
            && waiting.is_empty()
            && let Some(exit) = nothing_more_to_say(talk).await?
        {
            return Ok(exit);
        }
        tokio::select! {
            line = next_line(&mut lines) => match line {
                Some(line) => waiting.push_back(line),
                None => lines = None,
            },
            frame = next_frame(&mut talk.tail) => match frame {
                Some(frame) => talk.frame(&frame?).await?,
                None => {
                    talk.tail = None;
                    talk.catch_up().await?;
                }
            },
            exit = signals.next() => return Ok(exit),
            why = &mut failed => return Err(Failure::new(Exit::Unavailable, why)),
            // What a run waits for can change without a frame: a worker that comes, a retry that is due.
            () = sleep(Duration::from_millis(LOOK_MS)) => talk.catch_up().await?,
        }
    }
}

/// Reads lines on a thread of its own: a read cannot be taken back.
fn read() -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel(LINES_MAX);
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

async fn next_line(lines: &mut Option<mpsc::Receiver<String>>) -> Option<String> {
    match lines {
        Some(lines) => lines.recv().await,
        None => std::future::pending().await,
    }
}

/// Whether a line can be taken: everything can, but an answer needs a question, unless none can come.
fn is_time_for(talk: &Talk, line: &str) -> bool {
    !is_answer(line) || talk.question().is_some() || !talk.is_busy()
}

async fn take(talk: &mut Talk, line: &str) -> Result<After, Failure> {
    if line.starts_with('/') {
        return command(talk, line).await;
    }
    talk.line(line).await.map(|()| After::Stay)
}

/// Says so, once the run has taken everything; leaves if only people can move it then.
async fn nothing_more_to_say(talk: &mut Talk) -> Result<Option<Exit>, Failure> {
    let Some(run) = &talk.run else { return Ok(Some(Exit::Done)) };
    match &run.waiting_for {
        Some(WaitingFor::Message { types }) if types.iter().any(|name| name == "closed") => {
            talk.close().await?;
            Ok(None)
        }
        Some(
            WaitingFor::Message { .. }
            | WaitingFor::Question { .. }
            | WaitingFor::Held { .. }
            | WaitingFor::Blocked { .. },
        ) => Ok(Some(Exit::Waiting)),
        Some(
            WaitingFor::Worker { .. }
            | WaitingFor::Activity { .. }
            | WaitingFor::Retry { .. }
            | WaitingFor::Timer { .. }
            | WaitingFor::Child { .. }
            | WaitingFor::Budget { .. }
            | WaitingFor::Environment { .. },
        )
        | None => Ok(None),
    }
}
