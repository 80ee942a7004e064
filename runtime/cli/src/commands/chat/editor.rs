//! The line that a person edits: text and cursor, and the lines before it, which `history` keeps.
//!
//! Leaves its rows to `rows`, and which finished lines are kept to whoever knows what became of them.

use super::history::History;
use super::keys::Key;
use super::rows::{Rows, lay_out};

/// A line in the making.
#[derive(Debug, Default)]
pub(super) struct Editor {
    text: Vec<char>,
    /// Where the next character goes.
    at: usize,
    history: History,
    /// The line of the history that is shown, counted from the newest; 0: the new one.
    back: usize,
    /// The new line, while a line of the history is shown: those that begin with it are shown.
    kept: String,
}

/// What a key did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Edited {
    /// The line may have changed.
    Changed,
    /// The line is finished.
    Line(String),
    /// The line is finished and meant for after this turn.
    FollowUp(String),
    /// The key is not the editor's.
    Other(Key),
}

impl Editor {
    /// Begins with lines of earlier conversations.
    pub(super) fn new(history: History) -> Editor {
        Editor { history, ..Editor::default() }
    }

    /// Whether nothing is typed.
    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Drops what is typed.
    pub(super) fn clear(&mut self) {
        self.text.clear();
        (self.at, self.back) = (0, 0);
    }

    /// Puts text in front of what is typed: a message that came back.
    pub(super) fn put(&mut self, text: &str) {
        let rest = std::mem::take(&mut self.text);
        self.text = text.chars().chain(if rest.is_empty() { None } else { Some('\n') }).chain(rest).collect();
        self.at = self.text.len();
    }

    /// Returns what is typed.
    pub(super) fn text(&self) -> String {
        self.text.iter().collect()
    }

    /// Returns what stands before the cursor.
    pub(super) fn before(&self) -> String {
        self.text[..self.at].iter().collect()
    }

    /// Puts text in place of the characters from one on, up to the cursor.
    pub(super) fn replace(&mut self, from: usize, text: &str) {
        self.text.drain(from..self.at);
        self.at = from;
        self.insert(text.chars());
    }

    /// Takes a key.
    pub(super) fn press(&mut self, key: Key) -> Edited {
        match key {
            Key::Text(text) => self.insert(text.chars()),
            Key::NewLine => self.insert(std::iter::once('\n')),
            Key::Enter if self.goes_on() => {}
            Key::Enter => return Edited::Line(self.finish()),
            Key::FollowUp => return Edited::FollowUp(self.finish()),
            Key::Backspace if self.at > 0 => {
                self.at -= 1;
                self.text.remove(self.at);
            }
            Key::Delete if self.at < self.text.len() => {
                self.text.remove(self.at);
            }
            Key::Backspace | Key::Delete => {}
            Key::Left | Key::Control('b') => self.at = self.at.saturating_sub(1),
            Key::Right | Key::Control('f') => self.at = (self.at + 1).min(self.text.len()),
            Key::Home | Key::Control('a') => self.at = self.line_start(self.at),
            Key::End | Key::Control('e') => self.at = self.line_end(self.at),
            Key::Control('k') => self.text.truncate(self.at),
            Key::Control('u') => {
                self.text.drain(..self.at);
                self.at = 0;
            }
            Key::Control('w') => self.delete_word(),
            Key::Up | Key::Control('p') => self.up(),
            Key::Down | Key::Control('n') => self.down(),
            Key::Escape | Key::TakeBack | Key::Tab | Key::Control(_) => return Edited::Other(key),
        }
        Edited::Changed
    }

    fn insert(&mut self, text: impl Iterator<Item = char>) {
        let length = self.text.len();
        self.text.splice(self.at..self.at, text);
        self.at += self.text.len() - length;
    }

    /// Whether a backslash at the end says that the text goes on; then a new line takes its place.
    fn goes_on(&mut self) -> bool {
        let goes_on = self.at == self.text.len() && self.text.last() == Some(&'\\');
        if goes_on {
            self.text.pop();
            self.text.push('\n');
        }
        goes_on
    }

    fn finish(&mut self) -> String {
        let line = self.text();
        self.clear();
        line
    }

    /// Keeps a line that was typed, over conversations.
    pub(super) fn keep(&mut self, line: &str) {
        self.history.add(line);
    }

    /// Keeps a line that led to nothing, so that it can be brought back in this conversation.
    pub(super) fn remember(&mut self, line: &str) {
        self.history.remember(line);
    }

    /// Where the line of a text begins that some place is in.
    fn line_start(&self, at: usize) -> usize {
        self.text[..at].iter().rposition(|c| *c == '\n').map_or(0, |end| end + 1)
    }

    fn line_end(&self, at: usize) -> usize {
        self.text[at..].iter().position(|c| *c == '\n').map_or(self.text.len(), |length| at + length)
    }

    /// To the line above of what is typed; from the first one, and from lines of the history, to the line before.
    fn up(&mut self) {
        let start = self.line_start(self.at);
        if self.back > 0 || start == 0 {
            return self.recall_older();
        }
        let above = self.line_start(start - 1);
        self.at = (above + self.at - start).min(start - 1);
    }

    fn down(&mut self) {
        let end = self.line_end(self.at);
        if self.back > 0 || end == self.text.len() {
            return self.recall_newer();
        }
        let column = self.at - self.line_start(self.at);
        self.at = (end + 1 + column).min(self.line_end(end + 1));
    }

    fn delete_word(&mut self) {
        let is_space = |at: usize| self.text[at - 1].is_whitespace();
        let mut from = self.at;
        while from > 0 && is_space(from) {
            from -= 1;
        }
        while from > 0 && !is_space(from) {
            from -= 1;
        }
        self.text.drain(from..self.at);
        self.at = from;
    }

    fn recall_older(&mut self) {
        if self.back == 0 {
            self.kept = self.text();
        }
        if let Some((back, line)) = self.history.older(self.back, &self.kept) {
            self.text = line.chars().collect();
            (self.back, self.at) = (back, self.text.len());
        }
    }

    fn recall_newer(&mut self) {
        if self.back == 0 {
            return;
        }
        let (back, line) = self.history.newer(self.back, &self.kept).unwrap_or((0, &self.kept));
        self.text = line.chars().collect();
        (self.back, self.at) = (back, self.text.len());
    }

    /// Returns what is typed in rows of at most so many columns: at most so many rows, around the cursor.
    pub(super) fn rows(&self, columns: usize, rows_max: usize) -> Rows {
        lay_out(&self.text, self.at, columns, rows_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(keys: &[Key]) -> Editor {
        let mut editor = Editor::default();
        for key in keys {
            if let Edited::Line(line) = editor.press(key.clone()) {
                editor.keep(&line);
            }
        }
        editor
    }

    fn text(text: &str) -> Key {
        Key::Text(text.to_owned())
    }

    #[test]
    fn keys_edit_the_line() {
        for (keys, expected) in [
            (vec![text("ab"), Key::Left, text("x")], ("axb", 2)),
            (vec![text("ab"), Key::Backspace], ("a", 1)),
            (vec![text("ab"), Key::Home, Key::Delete], ("b", 0)),
            (vec![Key::Backspace, Key::Delete, Key::Left, Key::Right], ("", 0)),
            (vec![text("one two  "), Key::Control('w')], ("one ", 4)),
            (vec![text("abc"), Key::Left, Key::Control('u')], ("c", 0)),
            (vec![text("abc"), Key::Left, Key::Control('k')], ("ab", 2)),
            (vec![text("a"), Key::NewLine, text("b")], ("a\nb", 3)),
            (vec![text("a\\"), Key::Enter, text("b")], ("a\nb", 3)),
            // Within what is typed, Up and Down go from line to line; beyond it, to lines before and after.
            (vec![text("old"), Key::Enter, text("ab\nc"), Key::Up, text("x")], ("axb\nc", 2)),
            (vec![text("a\nbcd\ne"), Key::Up, Key::End, Key::Down, Key::Home], ("a\nbcd\ne", 6)),
            (vec![text("abc\nd"), Key::Up, Key::End, Key::Down, text("x")], ("abc\ndx", 6)),
            (vec![text("one\ntwo"), Key::Enter, Key::Up, Key::Up, Key::Down], ("", 0)),
            (vec![text("a\\"), Key::Left, Key::Enter], ("", 0)),
            (vec![text("old"), Key::Enter, Key::Up], ("old", 3)),
            (vec![text("old"), Key::Enter, Key::Up, Key::Up, Key::Down], ("", 0)),
            (vec![text("old"), Key::Enter, text("new"), Key::Up], ("new", 3)),
            (
                vec![text("new one"), Key::Enter, text("old"), Key::Enter, text("new"), Key::Up],
                ("new one", 7),
            ),
        ] {
            let editor = typed(&keys);
            assert_eq!((editor.text().as_str(), editor.at), expected, "{keys:?}");
        }
    }

    #[test]
    fn a_line_that_led_to_nothing_can_be_brought_back() {
        let mut editor = typed(&[text("ae"), Key::Enter]);
        editor.remember("/nothing");
        editor.press(Key::Up);
        assert_eq!(editor.text(), "/nothing");
    }

    #[test]
    fn a_message_that_came_back_stands_before_what_is_typed() {
        let mut editor = typed(&[text("new")]);
        editor.put("old");
        assert_eq!(editor.text(), "old\nnew");
        assert_eq!(editor.press(Key::Enter), Edited::Line("old\nnew".to_owned()));
        assert!(editor.is_empty());
        editor.put("/res");
        assert_eq!(editor.before(), "/res");
        editor.replace(1, "resume ");
        assert_eq!(editor.press(Key::FollowUp), Edited::FollowUp("/resume ".to_owned()));
        assert_eq!(editor.press(Key::Escape), Edited::Other(Key::Escape));
    }
}
