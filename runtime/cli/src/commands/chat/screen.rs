//! What a person sees: finished lines above; below them the line that is being written, what waits, the status, and what they type.
//!
//! Invariant: the lower part is erased and drawn again around everything that is printed, so nothing is printed into it; what has been
//! printed is never touched again; in the background nothing is printed at all, but kept until the terminal is ours again.

use std::fmt::Write as _;

use super::editor::Editor;
use super::markdown::{Styler, rows};
use super::terminal::{Terminal, in_foreground, write};
use super::width::{break_at, rows_of, width_of, wrap};
use crate::limits::{HELD_BYTES_MAX, INPUT_ROWS_MAX};
use crate::out::tame;

/// Rows of the lower part beside those of what is typed and of what waits, and one that shows where it begins.
const ROWS_BESIDE: usize = 4;

/// How a line is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    /// What the flow says: Markdown.
    Said,
    /// Text as it is.
    Plain,
    /// What happens beside it.
    Aside,
    /// What wants a decision, or went wrong.
    Loud,
    /// A line that would be added to a file.
    Added,
    /// A line that would be taken out of a file.
    Removed,
}

/// Something to print.
pub(super) type Line = (Tone, String);

/// What does not scroll.
#[derive(Debug)]
pub(super) struct Lower<'a> {
    /// What waits, or what can be picked from.
    pub(super) rows: Vec<String>,
    /// Where the run stands.
    pub(super) status: String,
    /// What is asked for.
    pub(super) prompt: &'a str,
    /// What is typed.
    pub(super) typed: &'a Editor,
}

/// The screen.
#[derive(Debug)]
pub(super) struct Screen {
    colours: bool,
    /// Text that is being written and has no line end yet.
    tail: String,
    styler: Styler,
    /// What was printed in the background.
    held: String,
    /// Widths of the rows of the lower part above the one with the cursor: a terminal that became narrower shows one in several.
    above: Vec<usize>,
    /// The column of the cursor.
    cursor: usize,
}

impl Screen {
    /// Begins below what is on the terminal.
    pub(super) fn new(colours: bool) -> Screen {
        let (tail, held, styler) = (String::new(), String::new(), Styler::default());
        Screen { colours, tail, styler, held, above: Vec::new(), cursor: 0 }
    }

    /// Begins anew below what is on the terminal: somebody else had it.
    pub(super) fn begin_anew(&mut self) {
        self.above.clear();
        self.cursor = 0;
    }

    /// Prints a text of one or more lines; words stay whole.
    pub(super) fn print(&mut self, tone: Tone, text: &str) {
        self.end_tail();
        let columns = Terminal::columns().saturating_sub(1).max(1);
        let text = match tone {
            Tone::Said => rows(&tame(text), columns, self.colours),
            Tone::Plain | Tone::Aside | Tone::Loud | Tone::Added | Tone::Removed => {
                paint(self.colours, tone, &wrap(&tame(text), columns))
            }
        };
        self.scroll(&format!("{text}\n"));
    }

    /// Adds to the text that is being written.
    pub(super) fn write(&mut self, text: &str) {
        self.tail.push_str(&tame(text));
        let columns = Terminal::columns().saturating_sub(1).max(1);
        let mut finished = String::new();
        loop {
            let line_end = self.tail.find('\n').filter(|end| width_of(self.tail[..*end].chars()) <= columns);
            let (end, ends) = match line_end {
                Some(end) => (end, true),
                None => (break_at(&self.tail, columns), false),
            };
            if !ends && end == self.tail.len() {
                break;
            }
            let row: String = self.tail.drain(..end).collect();
            if ends {
                self.tail.remove(0);
            }
            finished.push_str(&self.row(&row, ends));
            finished.push('\n');
        }
        if !finished.is_empty() {
            self.scroll(&finished);
        }
    }

    /// Finishes the text that is being written.
    pub(super) fn end_text(&mut self) {
        self.end_tail();
        self.styler = Styler::default();
    }

    fn end_tail(&mut self) {
        if !self.tail.is_empty() {
            let tail = std::mem::take(&mut self.tail);
            let row = self.row(&tail, true);
            self.scroll(&format!("{row}\n"));
        }
    }

    fn row(&mut self, row: &str, ends: bool) -> String {
        if self.colours { self.styler.row(row, ends) } else { row.to_owned() }
    }

    /// Draws the lower part.
    pub(super) fn draw(&mut self, lower: &Lower<'_>) {
        if !in_foreground() {
            return;
        }
        if !self.held.is_empty() {
            let held = std::mem::take(&mut self.held);
            self.scroll(&held);
        }
        let columns = Terminal::columns();
        let aside = |text: &str| {
            let line = tame(text).replace(['\n', '\t'], " ");
            let line = &line[..break_at(&line, columns.saturating_sub(1).max(1))];
            (paint(self.colours, Tone::Aside, line), width_of(line.chars()))
        };
        let prompt = width_of(lower.prompt.chars());
        let room = Terminal::rows().saturating_sub(lower.rows.len() + ROWS_BESIDE).clamp(1, INPUT_ROWS_MAX);
        let typed = lower.typed.rows(columns.saturating_sub(prompt + 1).max(1), room);
        let cut = (typed.total > typed.shown.len()).then(|| {
            let last = typed.before + typed.shown.len();
            format!("(rows {} to {last} of the {} that are typed)", typed.before + 1, typed.total)
        });
        let tail = (self.tail.clone(), width_of(self.tail.chars()));
        let rows = lower.rows.iter().chain(cut.as_ref()).chain([&lower.status]).map(|row| aside(row));
        let rows: Vec<(String, usize)> =
            std::iter::once(tail).chain(rows).filter(|(row, _)| !row.is_empty()).collect();
        let mut text = self.erased();
        for (row, width) in rows {
            text = text + &row + "\n";
            self.above.push(width);
        }
        let (cursor_row, column) = typed.cursor;
        for (at, row) in typed.shown.iter().enumerate() {
            // What goes on is set in below its beginning.
            let before = if at == 0 { lower.prompt.to_owned() } else { format!("\n{:prompt$}", "") };
            text = text + &before + row;
            if at < cursor_row {
                self.above.push(prompt + width_of(row.chars()));
            }
        }
        let below = typed.shown.len() - 1 - cursor_row;
        if below > 0 {
            let _infallible = write!(text, "\x1b[{below}A");
        }
        text.push('\r');
        self.cursor = prompt + column;
        if self.cursor > 0 {
            let _infallible = write!(text, "\x1b[{}C", self.cursor);
        }
        write(&text);
    }

    /// Leaves the lower part empty: for the end, or before the process stops.
    pub(super) fn clear(&mut self) {
        if in_foreground() {
            let text = self.erased();
            write(&text);
        }
    }

    fn scroll(&mut self, lines: &str) {
        if !in_foreground() {
            if self.held.len() + lines.len() > HELD_BYTES_MAX {
                // The newest is what a person wants to see first; the run has everything.
                self.held = "(what was said in the background was too much to keep)\n".to_owned();
            }
            self.held.push_str(lines);
            return;
        }
        let text = self.erased() + lines;
        write(&text);
    }

    /// Returns what erases the lower part and leaves the cursor where it began.
    fn erased(&mut self) -> String {
        let columns = Terminal::columns();
        let above: usize = self.above.drain(..).map(|width| rows_of(width, columns)).sum();
        // The row with the cursor may have become several, too.
        let above = above + std::mem::take(&mut self.cursor) / columns.max(1);
        let up = if above > 0 { format!("\x1b[{above}A") } else { String::new() };
        format!("\r{up}\x1b[J")
    }
}

fn paint(colours: bool, tone: Tone, text: &str) -> String {
    let style = match tone {
        Tone::Plain | Tone::Said => return text.to_owned(),
        Tone::Aside => "2",
        Tone::Loud => "1",
        Tone::Added => "32",
        Tone::Removed => "31",
    };
    if colours && !text.is_empty() { format!("\x1b[{style}m{text}\x1b[0m") } else { text.to_owned() }
}
