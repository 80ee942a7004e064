//! The terminal: raw while a person talks, as it was on every way out.
//!
//! Invariant: whoever leaves (normally, by a panic, into the background) finds the terminal as it was before, with a visible cursor;
//! a process in the background never touches it.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _, stdin, stdout};
use std::os::fd::AsFd as _;
use std::os::unix::fs::OpenOptionsExt as _;

use rustix::fs::OFlags;
use rustix::process::{Signal, getpgrp, getpid, kill_process};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcgetwinsize, tcsetattr};
use tokio::net::unix::pipe::Receiver;

use crate::failure::{Exit, Failure};

/// Pasted text is to be marked; and no more.
const PASTE_ON: &str = "\x1b[?2004h";
const PASTE_OFF: &str = "\x1b[?2004l\x1b[?25h";
/// Columns and rows if the terminal does not say.
const SIZE: (u16, u16) = (80, 24);
/// Bytes of one read: a paste is cut into more.
const READ_BYTES: usize = 4096;

/// A terminal in raw mode. Dropping it restores the terminal.
#[derive(Debug)]
pub(super) struct Terminal {
    before: Termios,
    raw: bool,
}

impl Terminal {
    /// Whether both ends of the conversation are a terminal that can move its cursor, and one that this process has to itself while it is
    /// in the foreground.
    pub(super) fn is_there() -> bool {
        let is_able = std::env::var_os("TERM").is_none_or(|kind| kind != "dumb");
        is_able && tcgetpgrp(stdin().as_fd()).is_ok() && rustix::termios::isatty(stdout().as_fd())
    }

    /// Makes the terminal raw.
    pub(super) fn open() -> Result<Terminal, Failure> {
        let before = tcgetattr(stdin().as_fd()).map_err(cannot)?;
        let mut terminal = Terminal { before, raw: false };
        restore_after_panics(terminal.before.clone());
        terminal.enter()?;
        Ok(terminal)
    }

    /// Makes the terminal raw again, if we may: after a stop, or after another program had it.
    pub(super) fn enter(&mut self) -> Result<(), Failure> {
        if !in_foreground() {
            // Whoever has it now sets it up as they like.
            self.raw = false;
            return Ok(());
        }
        let mut raw = self.before.clone();
        raw.make_raw();
        // Output is written with plain line ends; let the terminal return the carriage.
        raw.output_modes = self.before.output_modes;
        tcsetattr(stdin().as_fd(), OptionalActions::Drain, &raw).map_err(cannot)?;
        self.raw = true;
        write(PASTE_ON);
        Ok(())
    }

    /// Makes the terminal raw again if it came back without a signal, as `fg` gives it to who went on in the background; returns
    /// whether it did.
    pub(super) fn keep(&mut self) -> Result<bool, Failure> {
        if self.raw {
            return Ok(false);
        }
        self.enter()?;
        Ok(self.raw)
    }

    /// Gives the terminal back.
    pub(super) fn leave(&mut self) {
        if self.raw && in_foreground() {
            write(PASTE_OFF);
            let _gone = tcsetattr(stdin().as_fd(), OptionalActions::Drain, &self.before);
        }
        self.raw = false;
    }

    /// Returns how wide the terminal is.
    pub(super) fn columns() -> usize {
        usize::from(size().0)
    }

    /// Returns how high the terminal is.
    pub(super) fn rows() -> usize {
        usize::from(size().1)
    }
}

fn size() -> (u16, u16) {
    let found = tcgetwinsize(stdout().as_fd()).map(|size| (size.ws_col, size.ws_row)).unwrap_or(SIZE);
    (if found.0 > 0 { found.0 } else { SIZE.0 }, if found.1 > 0 { found.1 } else { SIZE.1 })
}

/// What is typed, as bytes.
///
/// The terminal is opened once more for it: reads that do not wait are a property of an open file, and the one that the shell gave us
/// is the shell's too. A read that waited on a thread could not be taken back when another program gets the terminal.
#[derive(Debug)]
pub(super) struct Typing {
    /// A terminal is read like a pipe.
    terminal: Receiver,
}

impl Typing {
    /// Begins to listen.
    pub(super) fn open() -> Result<Typing, Failure> {
        let told =
            |error: std::io::Error| Failure::new(Exit::Failed, format!("cannot read the terminal: {error}"));
        let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits();
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(i32::try_from(flags).unwrap_or_default());
        let terminal = options.open("/dev/tty").map_err(told)?;
        Ok(Typing { terminal: Receiver::from_file_unchecked(terminal).map_err(told)? })
    }

    /// Returns what was typed since; none if the terminal is gone. May be dropped at any time, and loses nothing then.
    pub(super) async fn next(&mut self) -> Option<Vec<u8>> {
        let mut buffer = [0; READ_BYTES];
        loop {
            self.terminal.readable().await.ok()?;
            if !in_foreground() {
                // It is typed to somebody else. The conversation looks again, by and by.
                return std::future::pending().await;
            }
            match self.terminal.try_read(&mut buffer) {
                Ok(0) => return None,
                Ok(length) => return Some(buffer[..length].to_vec()),
                // Nothing was there after all.
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(_) => return None,
            }
        }
    }
}

/// Stops this process as Ctrl-Z does. Other threads may run for a moment yet; only the signal to go on says that it is over.
pub(super) fn stop() -> Result<(), Failure> {
    kill_process(getpid(), Signal::STOP).map_err(cannot)
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Whether we may touch the terminal.
pub(super) fn in_foreground() -> bool {
    tcgetpgrp(stdin().as_fd()).is_ok_and(|group| group == getpgrp())
}

/// Writes to the terminal; one that is gone hears nothing.
pub(super) fn write(text: &str) {
    let mut out = stdout().lock();
    let _gone = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

fn restore_after_panics(before: Termios) {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if in_foreground() {
            write(PASTE_OFF);
            let _gone = tcsetattr(stdin().as_fd(), OptionalActions::Now, &before);
        }
        report(panic);
    }));
}

fn cannot(error: rustix::io::Errno) -> Failure {
    Failure::new(Exit::Failed, format!("cannot use the terminal: {error}"))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Set in the process that is to panic.
    const PANICS: &str = "OUTLAST_TEST_PANICS";

    #[test]
    fn a_panic_gives_the_terminal_back() {
        // This test runs itself once more, on a terminal of its own.
        if std::env::var_os(PANICS).is_some() {
            // A process that aborts drops nothing; only the hook is left then.
            std::mem::forget(Terminal::open().unwrap());
            panic!("on purpose");
        }
        let dir = tempfile::tempdir().unwrap();
        let this = std::env::current_exe().unwrap();
        let test = "commands::chat::terminal::tests::a_panic_gives_the_terminal_back";
        let panics = format!("{PANICS}=1 {} --exact {test} --nocapture", this.display());
        let line = format!("stty -g > before; {panics}; stty -g > after");
        let mut script = Command::new("script");
        script.args(["--quiet", "--command", &line, "/dev/null"]).current_dir(dir.path());
        let shown = String::from_utf8(script.output().unwrap().stdout).unwrap();
        assert!(
            shown.contains(PASTE_ON) && shown.contains(PASTE_OFF) && shown.contains("on purpose"),
            "{shown}"
        );
        let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
        assert_eq!(read("after"), read("before"));
    }
}
