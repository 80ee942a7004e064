//! A text in the editor of the person's choice.
//!
//! Invariant: the text lies in a file of its own that nobody else may read, and is gone afterwards.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use tokio::process::Command;
use tokio::signal::unix::Signal;

use super::terminal;
use crate::commands::act;
use crate::failure::{Exit, Failure};
use crate::files;
use crate::signals::Signals;

/// SIGINT, which the terminal sends to the editor and to us alike.
const INTERRUPT: u8 = 2;

/// What became of a text.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The editor left this.
    Text(String),
    /// Nothing, and why.
    Nothing(String),
    /// It is time to leave.
    Leave(Exit),
}

/// Returns the command of the editor, if one is set.
pub(super) fn program() -> Option<String> {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    set("VISUAL").or_else(|| set("EDITOR"))
}

/// Lets a person edit a text; the terminal must be as it was before us.
pub(super) async fn edit(
    program: &str,
    text: &str,
    signals: &mut Signals,
    stopped: &mut Signal,
) -> Result<Outcome, Failure> {
    let file = match Scratch::new(text) {
        Ok(file) => file,
        Err(why) => return Ok(Outcome::Nothing(why)),
    };
    // As other programs do: the variable may hold a command with arguments.
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{program} \"$1\""), "sh"]).arg(&file.path).kill_on_drop(true);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return Ok(Outcome::Nothing(format!("{program} cannot be started: {error}"))),
    };
    let status = loop {
        tokio::select! {
            status = child.wait() => break status,
            exit = signals.next() => match exit {
                Exit::Signal(INTERRUPT) => {}
                other => return Ok(Outcome::Leave(other)),
            },
            // The editor stopped, and the shell waits for all of us.
            _ = stopped.recv() => terminal::stop()?,
        }
    };
    Ok(match status {
        Ok(status) if status.success() => match files::read_text(&file.path) {
            Ok(text) => Outcome::Text(text.trim_end_matches('\n').to_owned()),
            Err(failure) => {
                Outcome::Nothing(failure.error().map_or_else(String::new, |error| error.message.clone()))
            }
        },
        Ok(status) => Outcome::Nothing(format!("{program} ended with {status}")),
        Err(error) => Outcome::Nothing(error.to_string()),
    })
}

/// A file for one text.
struct Scratch {
    path: PathBuf,
}

impl Scratch {
    fn new(text: &str) -> Result<Scratch, String> {
        let name = act::fresh_id("outlast-edit").map_err(|_| "no random numbers".to_owned())?;
        let path = std::env::temp_dir().join(name);
        let told = |error: std::io::Error| format!("{} cannot be written: {error}", path.display());
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let mut file = file.map_err(told)?;
        let scratch = Scratch { path: path.clone() };
        file.write_all(text.as_bytes()).and_then(|()| file.write_all(b"\n")).map_err(told)?;
        Ok(scratch)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _gone = fs::remove_file(&self.path);
    }
}
