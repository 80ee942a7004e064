//! Where a conversation is shown: on a terminal, or as plain lines.

use super::editor::Editor;
use super::screen::{Screen, Tone};
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
    pub(super) fn end_tail(&mut self) {
        match self {
            Face::Screen(screen) => screen.end_tail(),
            Face::Plain => {}
        }
    }

    /// Says where the run stands, and what is asked for.
    pub(super) fn status(&mut self, status: &str, prompt: &str) {
        match self {
            Face::Screen(screen) => {
                screen.status(status);
                screen.prompt(prompt);
            }
            Face::Plain => {}
        }
    }

    /// Draws what does not scroll.
    pub(super) fn draw(&mut self, editor: &Editor) {
        match self {
            Face::Screen(screen) => screen.draw(editor),
            Face::Plain => {}
        }
    }

    /// Leaves nothing but what was printed.
    pub(super) fn clear(&mut self) {
        match self {
            Face::Screen(screen) => {
                screen.end_tail();
                screen.clear();
            }
            Face::Plain => {}
        }
    }
}
