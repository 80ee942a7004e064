//! A conversation on a terminal: keys, lines, and the terminal's own signals.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{Duration, Instant, sleep};

use super::editor::{Edited, Editor};
use super::keys::{Key, Keys};
use super::next_frame;
use super::screen::Tone;
use super::slash::{After, command};
use super::talk::Talk;
use super::terminal::Terminal;
use crate::failure::{Exit, Failure};
use crate::limits::{LOOK_MS, TWICE_MS};
use crate::signals::Signals;

/// A person at a terminal.
struct Person {
    terminal: Terminal,
    bytes: mpsc::Receiver<Vec<u8>>,
    keys: Keys,
    editor: Editor,
    /// When they last wanted to stop something: twice means that they want to leave.
    stopped: Option<Instant>,
}

/// What the next turn of the loop is about.
enum Turn {
    Bytes(Option<Vec<u8>>),
    Frame(Option<Result<outlast_protocol::run::Frame, Failure>>),
    Leave(Exit),
    Failed(String),
    Stop,
    Redraw,
    Look,
}

/// Talks until the person leaves or the run ends.
pub(super) async fn talk(talk: &mut Talk, terminal: Terminal, mut signals: Signals) -> Result<Exit, Failure> {
    let mut person = Person {
        terminal,
        bytes: Terminal::bytes(),
        keys: Keys::default(),
        editor: Editor::default(),
        stopped: None,
    };
    let (mut stop, mut go_on, mut resized) =
        (listen(SignalName::Stop)?, listen(SignalName::GoOn)?, listen(SignalName::Resized)?);
    let session = std::sync::Arc::clone(&talk.session);
    let mut failed = std::pin::pin!(session.failed());
    loop {
        if let Some(exit) = talk.ended()? {
            return Ok(exit);
        }
        let (status, prompt) = (talk.status(), talk.prompt());
        talk.face.status(&status, prompt);
        talk.face.draw(&person.editor);
        let turn = tokio::select! {
            bytes = person.bytes.recv() => Turn::Bytes(bytes),
            frame = next_frame(&mut talk.tail) => Turn::Frame(frame),
            exit = signals.next() => Turn::Leave(exit),
            why = &mut failed => Turn::Failed(why),
            _ = stop.recv() => Turn::Stop,
            _ = go_on.recv() => Turn::Redraw,
            _ = resized.recv() => Turn::Redraw,
            () = sleep(Duration::from_millis(LOOK_MS)) => Turn::Look,
        };
        match turn {
            Turn::Bytes(Some(bytes)) => {
                if let Some(exit) = pressed(talk, &mut person, &bytes).await? {
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
            Turn::Leave(exit) => return Ok(exit),
            Turn::Failed(why) => return Err(Failure::new(Exit::Unavailable, why)),
            Turn::Stop => suspend(talk, &mut person)?,
            Turn::Redraw => person.terminal.enter()?,
            Turn::Look => talk.catch_up().await?,
        }
    }
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

fn suspend(talk: &mut Talk, person: &mut Person) -> Result<(), Failure> {
    talk.face.clear();
    person.terminal.suspend()
}

async fn pressed(talk: &mut Talk, person: &mut Person, bytes: &[u8]) -> Result<Option<Exit>, Failure> {
    for key in person.keys.read(bytes) {
        let exit = match person.editor.press(key) {
            Edited::Changed => None,
            Edited::Line(line) => said(talk, &line).await?,
            Edited::Other(key) => control(talk, person, &key).await?,
        };
        if exit.is_some() {
            return Ok(exit);
        }
    }
    Ok(None)
}

async fn said(talk: &mut Talk, line: &str) -> Result<Option<Exit>, Failure> {
    if line.trim_start().starts_with('/') {
        return match command(talk, line).await? {
            After::Stay => Ok(None),
            After::Leave => Ok(Some(Exit::Done)),
        };
    }
    if line.trim().is_empty() && talk.question().is_none() {
        return Ok(None);
    }
    talk.line(line).await?;
    Ok(None)
}

async fn control(talk: &mut Talk, person: &mut Person, key: &Key) -> Result<Option<Exit>, Failure> {
    match key {
        Key::Control('d') if person.editor.is_empty() => return Ok(Some(Exit::Done)),
        Key::Control('z') => suspend(talk, person)?,
        Key::Control('l') => talk.face.print(Tone::Said, "\n")?,
        Key::Control('c') if !person.editor.is_empty() => person.editor.clear(),
        Key::Control('c') | Key::Escape => {
            let again = person.stopped.is_some_and(|at| at.elapsed() < Duration::from_millis(TWICE_MS));
            if again {
                return Ok(Some(Exit::Done));
            }
            person.stopped = Some(Instant::now());
            let stopped = talk.stop().await?;
            let what = if stopped { "stopped" } else { "nothing to stop" };
            talk.face.print(Tone::Aside, &format!("({what}; once more leaves, and the run stays)"))?;
        }
        Key::TakeBack => {
            if let Some(text) = talk.take_back().await? {
                person.editor.put(&text);
            }
        }
        // Keys without a meaning here.
        _ => {}
    }
    Ok(None)
}
