//! Where a conversation is shown: on a terminal, or as plain lines.

use super::screen::{Line, Lower, Screen, Tone};
use crate::failure::Failure;
use crate::out;

/// Where a conversation is shown.
#[derive(Debug)]
pub(super) enum Face {
    /// A terminal.
    Screen(Screen),
    /// Lines on stdout, whole ones only.
    Plain,
}

impl Face {
    /// Prints a text of one or more lines.
    pub(super) fn print(&mut self, tone: Tone, text: &str) -> Result<(), Failure> {
        match self {
            Face::Screen(screen) => screen.print(tone, text),
            Face::Plain => out::result(&out::tame(text))?,
        }
        Ok(())
    }

    /// Adds to a text that is being written; returns whether it is shown.
    pub(super) fn write(&mut self, text: &str) -> bool {
        match self {
            Face::Screen(screen) => {
                screen.write(text);
                true
            }
            Face::Plain => false,
        }
    }

    /// Finishes the text that is being written.
    pub(super) fn end_text(&mut self) {
        match self {
            Face::Screen(screen) => screen.end_text(),
            Face::Plain => {}
        }
    }

    /// Prints lines, each in its own way.
    pub(super) fn print_lines(&mut self, lines: &[Line]) -> Result<(), Failure> {
        lines.iter().try_for_each(|(tone, text)| self.print(*tone, text))
    }

    /// Draws what does not scroll.
    pub(super) fn draw(&mut self, lower: &Lower<'_>) {
        match self {
            Face::Screen(screen) => screen.draw(lower),
            Face::Plain => {}
        }
    }

    /// Begins anew below what is on the terminal: somebody else had it.
    pub(super) fn begin_anew(&mut self) {
        match self {
            Face::Screen(screen) => screen.begin_anew(),
            Face::Plain => {}
        }
    }

    /// Leaves nothing but what was printed.
    pub(super) fn clear(&mut self) {
        match self {
            Face::Screen(screen) => {
                screen.end_text();
                screen.clear();
            }
            Face::Plain => {}
        }
    }
}
