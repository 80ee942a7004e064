//! A conversation on a terminal: what comes from the person, the run and the terminal, one after the other.
//!
//! Leaves what keys do to `person`.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Duration, sleep};

use super::next_frame;
use super::person::Person;
use super::said::{After, heard};
use super::screen::Lower;
use super::shell::{self, Piece};
use super::talk::Talk;
use super::terminal::Terminal;
use crate::failure::{Exit, Failure};
use crate::limits::LOOK_MS;
use crate::signals::Signals;

/// Rows of the terminal that a list to pick from leaves to the rest.
const ROWS_LEFT: usize = 5;

/// What the next turn of the loop is about.
enum Turn {
    Bytes(Option<Vec<u8>>),
    Frame(Option<Result<outlast_protocol::run::Frame, Failure>>),
    Heard(Piece),
    Leave(Exit),
    Failed(String),
    Stop,
    GoOn,
    Resized,
    Look,
}

/// Talks until the person leaves or the run ends.
pub(super) async fn talk(
    talk: &mut Talk,
    terminal: Terminal,
    signals: Signals,
    first: After,
) -> Result<Exit, Failure> {
    let (stop, go_on) = (listen(SignalName::Stop)?, listen(SignalName::GoOn)?);
    let resized = listen(SignalName::Resized)?;
    let mut person = Person::new(terminal, signals, stop, go_on)?;
    let exit = match person.after(talk, first).await? {
        Some(exit) => Ok(exit),
        None => turns(talk, &mut person, resized).await,
    };
    person.leave(talk)?;
    exit
}

async fn turns(talk: &mut Talk, person: &mut Person, mut resized: Signal) -> Result<Exit, Failure> {
    let session = std::sync::Arc::clone(&talk.session);
    let mut failed = std::pin::pin!(session.failed());
    loop {
        if let Some(exit) = talk.ended()? {
            return Ok(exit);
        }
        if person.terminal.keep()? {
            talk.face.begin_anew();
        }
        draw(talk, person);
        let turn = tokio::select! {
            bytes = person.typing.next() => Turn::Bytes(bytes),
            frame = next_frame(&mut talk.tail) => Turn::Frame(frame),
            piece = shell::next(&mut talk.command) => Turn::Heard(piece),
            exit = person.signals.next() => Turn::Leave(exit),
            why = &mut failed => Turn::Failed(why),
            _ = person.stop.recv() => Turn::Stop,
            _ = person.go_on.recv() => Turn::GoOn,
            _ = resized.recv() => Turn::Resized,
            () = sleep(Duration::from_millis(LOOK_MS)) => Turn::Look,
        };
        match turn {
            Turn::Bytes(Some(bytes)) => {
                if let Some(exit) = person.typed(talk, &bytes).await? {
                    return Ok(exit);
                }
            }
            // The terminal is gone.
            Turn::Bytes(None) => return Ok(Exit::Done),
            Turn::Frame(Some(frame)) => talk.frame(&frame?).await?,
            Turn::Frame(None) => {
                talk.tail = None;
                talk.catch_up().await?;
            }
            Turn::Heard(piece) => heard(talk, piece)?,
            Turn::Leave(exit) => return Ok(exit),
            Turn::Failed(why) => return Err(Failure::new(Exit::Unavailable, why)),
            Turn::Stop => person.suspend(talk).await?,
            Turn::GoOn => {
                person.terminal.enter()?;
                talk.face.begin_anew();
            }
            Turn::Resized => {}
            Turn::Look => talk.catch_up().await?,
        }
    }
}

fn draw(talk: &mut Talk, person: &Person) {
    let status = talk.status();
    let lower = match &person.picker {
        Some(picker) => {
            let rows = picker.rows(Terminal::rows().saturating_sub(ROWS_LEFT));
            Lower { rows, status, prompt: "search> ", typed: picker.search() }
        }
        None => Lower { rows: talk.queue(), status, prompt: talk.prompt(), typed: &person.editor },
    };
    talk.face.draw(&lower);
}

/// Signals of a terminal's job control.
#[derive(Clone, Copy, Debug)]
enum SignalName {
    Stop,
    GoOn,
    Resized,
}

fn listen(name: SignalName) -> Result<Signal, Failure> {
    let number = match name {
        SignalName::Stop => rustix::process::Signal::TSTP,
        SignalName::GoOn => rustix::process::Signal::CONT,
        SignalName::Resized => rustix::process::Signal::WINCH,
    };
    let cannot = |error| Failure::new(Exit::Failed, format!("cannot listen for signals: {error}"));
    signal(SignalKind::from_raw(number.as_raw())).map_err(cannot)
}
