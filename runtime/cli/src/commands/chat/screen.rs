//! What a person sees: finished lines above, then the line that is being written, the status, and the line that they type.
//!
//! Invariant: the lower part is erased and drawn again around everything that is printed, so nothing is printed into it.

use std::fmt::Write as _;

use super::editor::Editor;
use super::terminal::{Terminal, in_foreground, write};
use super::width::{break_at, width_of};
use crate::out::tame;

/// How a line is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    /// What the flow says.
    Said,
    /// What happens beside it.
    Aside,
    /// What wants a decision, or went wrong.
    Loud,
}

/// The screen.
#[derive(Debug)]
pub(super) struct Screen {
    colours: bool,
    /// Text that is being written and has no line end yet.
    tail: String,
    status: String,
    prompt: String,
    /// Rows of the lower part above the one with the cursor.
    above: usize,
}

impl Screen {
    /// Begins below what is on the terminal.
    pub(super) fn new(colours: bool) -> Screen {
        let prompt = "> ".to_owned();
        Screen { colours, tail: String::new(), status: String::new(), prompt, above: 0 }
    }

    /// Prints a text of one or more lines.
    pub(super) fn print(&mut self, tone: Tone, text: &str) {
        self.end_tail();
        let text = paint(self.colours, tone, &tame(text));
        self.scroll(&format!("{text}\n"));
    }

    /// Adds to the text that is being written.
    pub(super) fn write(&mut self, text: &str) {
        self.tail.push_str(&tame(text));
        let columns = Terminal::columns().saturating_sub(1).max(1);
        let mut finished = String::new();
        loop {
            if let Some(end) =
                self.tail.find('\n').filter(|end| width_of(self.tail[..*end].chars()) <= columns)
            {
                finished.extend(self.tail.drain(..=end));
                continue;
            }
            let end = break_at(&self.tail, columns);
            if end == self.tail.len() {
                break;
            }
            finished.extend(self.tail.drain(..end));
            finished.push('\n');
        }
        if !finished.is_empty() {
            self.scroll(&finished);
        }
    }

    /// Finishes the line that is being written.
    pub(super) fn end_tail(&mut self) {
        if !self.tail.is_empty() {
            let tail = std::mem::take(&mut self.tail);
            self.scroll(&format!("{tail}\n"));
        }
    }

    /// Says where the run stands.
    pub(super) fn status(&mut self, status: &str) {
        self.status = tame(status).replace('\n', " ");
    }

    /// Says what is typed.
    pub(super) fn prompt(&mut self, prompt: &str) {
        prompt.clone_into(&mut self.prompt);
    }

    /// Draws the lower part.
    pub(super) fn draw(&mut self, editor: &Editor) {
        if !in_foreground() {
            return;
        }
        let columns = Terminal::columns();
        let mut text = self.erased();
        for row in [self.tail.clone(), paint(self.colours, Tone::Aside, &cut(&self.status, columns - 1))] {
            if !row.is_empty() {
                text = text + &row + "\n";
                self.above += 1;
            }
        }
        let (line, cursor) = editor.window(columns.saturating_sub(width_of(self.prompt.chars()) + 1).max(1));
        let column = width_of(self.prompt.chars()) + cursor;
        text = text + &self.prompt + &line + "\r";
        if column > 0 {
            let _infallible = write!(text, "\x1b[{column}C");
        }
        write(&text);
    }

    /// Leaves the lower part empty: for the end, or before the process stops.
    pub(super) fn clear(&mut self) {
        let text = self.erased();
        write(&text);
    }

    fn scroll(&mut self, lines: &str) {
        let text = self.erased() + lines;
        write(&text);
    }

    /// Returns what erases the lower part and leaves the cursor where it began.
    fn erased(&mut self) -> String {
        let above = std::mem::take(&mut self.above);
        let up = if above > 0 { format!("\x1b[{above}A") } else { String::new() };
        format!("\r{up}\x1b[J")
    }
}

fn paint(colours: bool, tone: Tone, text: &str) -> String {
    let style = match tone {
        Tone::Said => return text.to_owned(),
        Tone::Aside => "2",
        Tone::Loud => "1",
    };
    if colours && !text.is_empty() { format!("\x1b[{style}m{text}\x1b[0m") } else { text.to_owned() }
}

fn cut(text: &str, columns: usize) -> String {
    text[..break_at(text, columns)].to_owned()
}
