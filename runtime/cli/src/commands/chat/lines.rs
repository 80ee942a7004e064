//! A conversation through plain lines: scripts, pipes, tests.
//!
//! A line is sent as soon as it is read, so that it is durable whatever happens then; only lines that can be nothing but answers wait
//! for a question.

use std::collections::VecDeque;

use tokio::sync::mpsc;
use tokio::time::{Duration, sleep};

use super::questions::is_answer;
use super::said::{After, How, heard, said};
use super::screen::Tone;
use super::shell;
use super::talk::Talk;
use super::{approve, next_frame};
use crate::failure::{Exit, Failure};
use crate::limits::{LINES_MAX, LOOK_MS};
use crate::signals::Signals;
use outlast_protocol::run::WaitingFor;

/// Talks until the lines or the run end.
pub(super) async fn talk(talk: &mut Talk, mut signals: Signals, first: After) -> Result<Exit, Failure> {
    told(talk, first)?;
    let mut lines = Some(read());
    let mut waiting: VecDeque<String> = VecDeque::new();
    let session = std::sync::Arc::clone(&talk.session);
    let mut failed = std::pin::pin!(session.failed());
    loop {
        if let Some(exit) = talk.ended()? {
            return Ok(exit);
        }
        while waiting.front().is_some_and(|line| is_time_for(talk, line)) {
            let Some(line) = waiting.pop_front() else { break };
            let after = said(talk, &line, How::Read).await?;
            if matches!(told(talk, after)?, After::Leave) {
                return Ok(Exit::Done);
            }
        }
        if lines.is_none()
            && waiting.is_empty()
            && talk.command.is_none()
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
            piece = shell::next(&mut talk.command) => heard(talk, piece)?,
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

/// Whether a line can be taken: everything can, but an answer needs a question, unless none can come, and the person's own command
/// comes to its end first.
fn is_time_for(talk: &Talk, line: &str) -> bool {
    talk.command.is_none() && (!is_answer(line) || !talk.questions().is_empty() || !talk.is_busy())
}

/// Tells what cannot be done without keys; a line that was not taken is gone, and why was said.
fn told(talk: &mut Talk, after: After) -> Result<After, Failure> {
    match &after {
        After::Pick(picker) => talk.face.print(Tone::Plain, &picker.list())?,
        After::Edit(question) => {
            let command = approve::command_with(question, "VALUE");
            talk.face.print(Tone::Aside, &format!("with what you make of it: {command}"))?;
        }
        After::Stay | After::Leave | After::Back(_) | After::Refused => {}
    }
    Ok(after)
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
            | WaitingFor::Rate { .. }
            | WaitingFor::Retry { .. }
            | WaitingFor::Timer { .. }
            | WaitingFor::Child { .. }
            | WaitingFor::Budget { .. }
            | WaitingFor::Environment { .. },
        )
        | None => Ok(None),
    }
}
