//! The terminal: raw while a person talks, as it was on every way out.
//!
//! Invariant: whoever leaves (normally, by a panic, into the background) finds the terminal as it was before, with a visible cursor;
//! a process in the background never touches it.

use std::io::{Read as _, Write as _, stdin, stdout};
use std::os::fd::AsFd as _;

use rustix::process::{Signal, getpgrp, getpid, kill_process};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcgetwinsize, tcsetattr};
use tokio::sync::mpsc;

use crate::failure::{Exit, Failure};

/// Pasted text is to be marked; and no more.
const PASTE_ON: &str = "\x1b[?2004h";
const PASTE_OFF: &str = "\x1b[?2004l\x1b[?25h";
/// Columns if the terminal does not say.
const COLUMNS: usize = 80;
/// Reads that wait to be handled: a person types slower, a paste is cut into more reads.
const READS_MAX: usize = 64;

/// A terminal in raw mode. Dropping it restores the terminal.
#[derive(Debug)]
pub(super) struct Terminal {
    before: Termios,
    raw: bool,
}

impl Terminal {
    /// Whether both ends of the conversation are a terminal.
    pub(super) fn is_there() -> bool {
        rustix::termios::isatty(stdin().as_fd()) && rustix::termios::isatty(stdout().as_fd())
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

    /// Gives the terminal back.
    pub(super) fn leave(&mut self) {
        if self.raw && in_foreground() {
            write(PASTE_OFF);
            let _gone = tcsetattr(stdin().as_fd(), OptionalActions::Drain, &self.before);
        }
        self.raw = false;
    }

    /// Stops this process as Ctrl-Z does, with the terminal as it was; returns when it goes on.
    pub(super) fn suspend(&mut self) -> Result<(), Failure> {
        self.leave();
        kill_process(getpid(), Signal::STOP).map_err(cannot)?;
        self.enter()
    }

    /// Returns how wide the terminal is.
    pub(super) fn columns() -> usize {
        match tcgetwinsize(stdout().as_fd()) {
            Ok(size) if size.ws_col > 0 => usize::from(size.ws_col),
            Ok(_) | Err(_) => COLUMNS,
        }
    }

    /// Reads the terminal on a thread of its own: a read cannot be taken back. An end of input ends the channel.
    pub(super) fn bytes() -> mpsc::Receiver<Vec<u8>> {
        let (sender, receiver) = mpsc::channel(READS_MAX);
        std::thread::spawn(move || {
            let mut buffer = [0_u8; 1024];
            while let Ok(length @ 1..) = stdin().lock().read(&mut buffer) {
                if sender.blocking_send(buffer[..length].to_vec()).is_err() {
                    return;
                }
            }
        });
        receiver
    }
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
