//! Chooses the breaks of a layout and writes it.
//!
//! A group stands on one line if it fits there together with what follows it up to the next possible break (after Wadler and
//! Oppen). Leaves what may break to the builder. Invariant: linear in the layout, since no look ahead passes the width; no line
//! ends in a space.

use super::doc::{Comment, Doc};
use crate::diag::columns;
use crate::limits::{FORMAT_COLUMNS_MAX, FORMAT_INDENT_COLUMNS};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Flat,
    Broken,
}

#[derive(Clone, Copy)]
struct Task<'d> {
    indent: usize,
    mode: Mode,
    doc: &'d Doc,
}

/// Writes layouts one after the other.
#[derive(Default)]
pub(super) struct Printer {
    out: String,
    column: usize,
    /// Line breaks to be written before the next text.
    newlines: usize,
    /// Where the line after them begins; none if only the end of a comment asks for it: then the text knows better.
    line_start: Option<usize>,
    /// Spaces to be written before the next text, unless it begins a line.
    spaces: usize,
    /// Comments that are not written yet, since a comma may come that stands before them.
    held: Vec<(Comment, usize)>,
}

impl Printer {
    /// Writes one more layout.
    pub(super) fn print(&mut self, doc: &Doc) {
        let mut tasks = vec![Task { indent: 0, mode: Mode::Broken, doc }];
        while let Some(task) = tasks.pop() {
            self.run(task, &mut tasks);
        }
    }

    /// The text.
    pub(super) fn finish(mut self) -> String {
        self.flush();
        if !self.out.is_empty() {
            self.out.push('\n');
        }
        self.out
    }

    fn run<'d>(&mut self, task: Task<'d>, tasks: &mut Vec<Task<'d>>) {
        let Task { indent, mode, doc } = task;
        match doc {
            Doc::Empty => {}
            Doc::Text(text) => self.text(text, indent),
            Doc::Glue(text) => self.glue(text),
            Doc::IfBroken(text) if mode == Mode::Broken => self.glue(text),
            Doc::IfFlat(text) if mode == Mode::Flat => self.glue(text),
            Doc::IfBroken(_) | Doc::IfFlat(_) => {}
            Doc::Pad(spaces) => self.pad(*spaces),
            Doc::Line if mode == Mode::Flat => self.pad(1),
            Doc::Soft if mode == Mode::Flat => {}
            Doc::Line | Doc::Soft | Doc::Break => self.newline(1, indent),
            Doc::Blank => self.newline(2, indent),
            Doc::Comment(comment) => self.held.push((comment.clone(), indent)),
            Doc::All(parts) => {
                tasks.extend(parts.iter().rev().map(|doc| Task { indent, mode, doc }));
            }
            Doc::Nest(inner) => {
                tasks.push(Task { indent: indent + FORMAT_INDENT_COLUMNS, mode, doc: inner });
            }
            Doc::Group(inner) => {
                let mut task = Task { indent, mode: Mode::Flat, doc: inner };
                if mode == Mode::Broken && !self.fits(task, tasks) {
                    task.mode = Mode::Broken;
                }
                tasks.push(task);
            }
            Doc::Value(inner) => self.value(Task { doc: inner, ..task }, tasks),
        }
    }

    fn value<'d>(&mut self, task: Task<'d>, tasks: &mut Vec<Task<'d>>) {
        self.pad(1);
        let flat = Task { mode: Mode::Flat, ..task };
        if task.mode == Mode::Flat || self.fits(flat, tasks) {
            return tasks.push(flat);
        }
        let indent = task.indent + FORMAT_INDENT_COLUMNS;
        let on_next_line = Task { indent, ..flat };
        if fits_from(indent, on_next_line, tasks) {
            self.newline(1, indent);
            tasks.push(on_next_line);
        } else {
            tasks.push(task);
        }
    }

    fn text(&mut self, text: &str, indent: usize) {
        self.flush();
        self.begin(indent);
        self.write(text);
    }

    fn glue(&mut self, text: &str) {
        self.spaces = 0;
        self.write(text);
    }

    fn pad(&mut self, spaces: usize) {
        self.flush();
        self.spaces += spaces;
    }

    fn newline(&mut self, count: usize, indent: usize) {
        self.flush();
        self.newlines = self.newlines.max(count);
        self.line_start = Some(indent);
    }

    /// Writes the comments that were held back.
    fn flush(&mut self) {
        for (comment, indent) in std::mem::take(&mut self.held) {
            if comment.own_line {
                self.newlines = self.newlines.max(if comment.blank_before { 2 } else { 1 });
                self.line_start = Some(indent);
            } else {
                self.spaces = 1;
            }
            self.begin(indent);
            self.write(&comment.text);
            self.newlines = if comment.blank_after { 2 } else { 1 };
            self.line_start = comment.own_line.then_some(indent);
        }
    }

    /// Writes the white space before a text.
    fn begin(&mut self, indent: usize) {
        let newlines = std::mem::take(&mut self.newlines);
        let line_start = self.line_start.take();
        let spaces = std::mem::take(&mut self.spaces);
        if self.out.is_empty() {
            return;
        }
        if newlines == 0 {
            return self.fill(spaces);
        }
        for _ in 0..newlines {
            self.out.push('\n');
        }
        self.column = 0;
        self.fill(line_start.unwrap_or(indent));
    }

    fn fill(&mut self, spaces: usize) {
        self.out.extend(std::iter::repeat_n(' ', spaces));
        self.column += spaces;
    }

    fn write(&mut self, text: &str) {
        self.out.push_str(text);
        match text.rsplit_once('\n') {
            Some((_, last)) => self.column = columns(last),
            None => self.column += columns(text),
        }
    }

    /// Whether `task` fits on the line with what follows it up to the next possible break.
    fn fits(&self, task: Task<'_>, rest: &[Task<'_>]) -> bool {
        let begins_line = self.newlines > 0 || !self.held.is_empty();
        let line_start = self.line_start.unwrap_or(task.indent);
        fits_from(if begins_line { line_start } else { self.column + self.spaces }, task, rest)
    }
}

fn fits_from(column: usize, task: Task<'_>, rest: &[Task<'_>]) -> bool {
    let mut look = Look { left: FORMAT_COLUMNS_MAX.checked_sub(column), ended: false };
    let mut tasks = vec![task];
    let mut rest = rest.iter().rev();
    let mut inside = true;
    loop {
        let task = match tasks.pop() {
            Some(task) => task,
            None => {
                inside = false;
                let Some(next) = rest.next() else { return look.left.is_some() };
                *next
            }
        };
        match task.doc {
            Doc::All(parts) => tasks.extend(parts.iter().rev().map(|doc| Task { doc, ..task })),
            Doc::Nest(doc) | Doc::Group(doc) => tasks.push(Task { doc, ..task }),
            Doc::Value(doc) => {
                look.take(1);
                tasks.push(Task { doc, ..task });
            }
            doc => {
                if let Some(answer) = look.at(doc, task.mode, inside) {
                    return answer;
                }
            }
        }
    }
}

/// A look ahead along one line.
struct Look {
    left: Option<usize>,
    /// Whether a comment has ended the line.
    ended: bool,
}

impl Look {
    /// Takes one more piece; the answer if it decides.
    fn at(&mut self, doc: &Doc, mode: Mode, inside: bool) -> Option<bool> {
        match doc {
            Doc::Text(_) if self.ended => return Some(!inside),
            Doc::Text(text) => {
                let (first, goes_on) =
                    text.split_once('\n').map_or((text.as_str(), true), |(a, _)| (a, false));
                self.take(columns(first));
                if !goes_on {
                    return Some(self.left.is_some());
                }
            }
            Doc::Glue(text) => self.take(text.len()),
            Doc::IfBroken(text) if mode == Mode::Broken => self.take(text.len()),
            Doc::IfFlat(text) if mode == Mode::Flat => self.take(text.len()),
            Doc::Pad(spaces) => self.take(*spaces),
            Doc::Line if mode == Mode::Flat => self.take(1),
            Doc::Line | Doc::Soft if mode == Mode::Broken => return Some(true),
            Doc::Break | Doc::Blank => return Some(!inside),
            Doc::Comment(comment) if comment.own_line => return Some(!inside),
            Doc::Comment(_) => self.ended = true,
            Doc::Empty
            | Doc::IfBroken(_)
            | Doc::IfFlat(_)
            | Doc::Line
            | Doc::Soft
            | Doc::All(_)
            | Doc::Nest(_)
            | Doc::Group(_)
            | Doc::Value(_) => {}
        }
        if self.left.is_none() { Some(false) } else { None }
    }

    fn take(&mut self, columns: usize) {
        self.left = self.left.and_then(|left| left.checked_sub(columns));
    }
}
