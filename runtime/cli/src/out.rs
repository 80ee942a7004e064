//! Writing: results to stdout, everything else to stderr.
//!
//! Invariant: a reader that went away is no error to speak of, and no control character of a run reaches a terminal.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::{Exit, Failure};

/// SIGPIPE, which other programs end with when their reader goes away.
const PIPE: u8 = 13;

/// Whether a status stands on the terminal's last line.
static STATUS: AtomicBool = AtomicBool::new(false);
/// Goes to the beginning of the line and clears it.
const CLEAR: &str = "\r\u{1b}[K";

/// Writes text to stdout as it is, and a line end.
pub(crate) fn result(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.write_all(b"\n"));
    written.and_then(|()| stdout.flush()).map_err(|error| lost(&error))
}

/// Writes whole lines to stdout.
pub(crate) fn bytes(lines: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(lines).and_then(|()| stdout.flush()).map_err(|error| lost(&error))
}

/// Writes a value to stdout as one line of JSON.
pub(crate) fn json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(value);
    result(&text.map_err(|error| Failure::new(Exit::Failed, error.to_string()))?)
}

/// Says why stdout cannot be written; a reader that went away is worth no word.
pub(crate) fn lost(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::silent(Exit::Signal(PIPE)),
        _ => Failure::new(Exit::Failed, format!("cannot write to stdout: {error}")),
    }
}

/// Says a line on stderr; if nobody listens there, so be it. It takes the place of a status that is shown.
pub(crate) fn say(text: &str) {
    let mut stderr = io::stderr().lock();
    let clear = if STATUS.swap(false, Ordering::Relaxed) { CLEAR } else { "" };
    let _unheard = writeln!(stderr, "{clear}{text}");
}

/// Shows a status on the terminal's last line until something is said or another one is shown; an empty one takes it away.
pub(crate) fn status(text: &str) {
    let mut stderr = io::stderr().lock();
    let shown = STATUS.swap(!text.is_empty(), Ordering::Relaxed);
    if shown || !text.is_empty() {
        let _unheard = write!(stderr, "{CLEAR}{text}").and_then(|()| stderr.flush());
    }
}

/// Whether stderr may have colours.
pub(crate) fn colours() -> bool {
    wants_colours(std::env::var_os("NO_COLOR").as_deref(), std::env::var_os("TERM").as_deref())
        && io::stderr().is_terminal()
}

fn wants_colours(no_color: Option<&std::ffi::OsStr>, term: Option<&std::ffi::OsStr>) -> bool {
    no_color.is_none_or(std::ffi::OsStr::is_empty) && term.is_none_or(|term| term != "dumb")
}

/// Returns text of a run so that a terminal shows it and does nothing else: control characters become visible.
pub(crate) fn tame(text: &str) -> String {
    let mut tame = String::with_capacity(text.len());
    for c in text.chars() {
        let hides = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        match c {
            '\n' | '\t' => tame.push(c),
            c if c.is_control() || hides => tame.extend(c.escape_unicode()),
            c => tame.push(c),
        }
    }
    tame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_are_not_driven_by_runs() {
        assert_eq!(tame("a\n\tb ü"), "a\n\tb ü");
        assert_eq!(tame("\u{1b}[2J\r"), "\\u{1b}[2J\\u{d}");
        assert_eq!(tame("\u{202e}x"), "\\u{202e}x");
    }

    #[test]
    fn colours_can_be_refused() {
        let os = std::ffi::OsStr::new;
        for (no_color, term, wanted) in [
            (None, None, true),
            (Some(os("")), None, true),
            (Some(os("1")), None, false),
            (None, Some(os("dumb")), false),
            (None, Some(os("xterm")), true),
        ] {
            assert_eq!(wants_colours(no_color, term), wanted, "{no_color:?} {term:?}");
        }
    }
}
