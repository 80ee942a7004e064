//! Texts in quotes and the expressions inside them.
//!
//! A text is `StringOpen`, then `StringText`, `StringEscape` and holes (`HoleOpen`, code, `HoleClose`), then
//! `StringClose`. Leaves indentation and the values of escapes to `literal`. Invariant: a hole ends on its line,
//! so a forgotten `}` costs one line and not the rest of the file; a long text stands in no hole.

use super::{Lexer, offset};
use crate::diag::catalogue::syntax as code;
use crate::diag::{Diagnostic, FileId, TextSpan};
use crate::syntax::kind::SyntaxKind;
use crate::syntax::words::quoted;

/// How a text is quoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quotes {
    One,
    Three,
}

/// A text whose end is not reached.
#[derive(Debug)]
pub(super) struct OpenString {
    start: u32,
    quotes: Quotes,
    hole: Option<OpenHole>,
}

#[derive(Debug)]
struct OpenHole {
    start: u32,
    /// Braces that were opened inside the hole.
    braces: u32,
}

impl OpenString {
    /// Whether the next byte is text, not code in a hole.
    pub(super) fn is_in_text(&self) -> bool {
        self.hole.is_none()
    }
}

impl Lexer<'_> {
    pub(super) fn open_string(&mut self) {
        let three = self.rest().starts_with("\"\"\"");
        let (quotes, len) = match self.strings.first() {
            // Three quotes in a hole of a long text end that text: the brace was meant as a character.
            Some(outer) if three && outer.quotes == Quotes::Three => return self.abandon_holes(),
            None if three => (Quotes::Three, 3),
            Some(_) | None => (Quotes::One, 1),
        };
        self.strings.push(OpenString { start: self.offset(), quotes, hole: None });
        self.push(len, SyntaxKind::StringOpen);
    }

    /// Reads one piece of the innermost open text.
    pub(super) fn string_part(&mut self) {
        let Some(quotes) = self.strings.last().map(|string| string.quotes) else { return };
        let closing = if quotes == Quotes::Three { "\"\"\"" } else { "\"" };
        match self.byte(0) {
            b'"' if self.rest().starts_with(closing) => {
                self.push(closing.len(), SyntaxKind::StringClose);
                self.strings.pop();
            }
            b'\\' => self.escape(),
            b'{' => self.open_hole(),
            b'\n' | b'\r' if quotes == Quotes::One => self.end_at_line_break(),
            _ => self.plain_text(quotes),
        }
    }

    fn plain_text(&mut self, quotes: Quotes) {
        // At least one character: a quote that does not close a long text is text.
        let first = self.rest().chars().next().map_or(1, char::len_utf8);
        let stops: &[char] = match quotes {
            Quotes::One => &['"', '\\', '{', '\n', '\r'],
            Quotes::Three => &['"', '\\', '{'],
        };
        let rest = &self.rest()[first..];
        let len = first + rest.find(stops).unwrap_or(rest.len());
        self.push(len, SyntaxKind::StringText);
    }

    fn open_hole(&mut self) {
        let start = self.offset();
        let text_before = self.tokens.last().filter(|token| token.kind == SyntaxKind::StringText);
        if text_before.is_some_and(|token| token.span().of(self.text).ends_with('$')) {
            let span = TextSpan::new(start - 1, start);
            let message = "an expression in a text needs no `$` before it";
            let diagnostic = Diagnostic::error(code::DOLLAR_HOLE, self.file, span, message);
            self.report(diagnostic.hint("for a dollar sign before a value write `\\$`").unsure_fix(span, ""));
        }
        if let Some(string) = self.strings.last_mut() {
            string.hole = Some(OpenHole { start, braces: 0 });
        }
        self.push(1, SyntaxKind::HoleOpen);
    }

    /// Reads a brace of the code in a hole.
    pub(super) fn brace_in_hole(&mut self, brace: char) {
        let Some(string) = self.strings.last_mut() else { return };
        let Some(hole) = &mut string.hole else { return };
        let kind = match (brace, hole.braces) {
            ('{', _) => {
                hole.braces += 1;
                SyntaxKind::LBrace
            }
            (_, 0) => {
                string.hole = None;
                SyntaxKind::HoleClose
            }
            (_, _) => {
                hole.braces -= 1;
                SyntaxKind::RBrace
            }
        };
        self.push(1, kind);
    }

    fn escape(&mut self) {
        match self.rest()[1..].chars().next() {
            Some('n' | 't' | 'r' | '"' | '\\' | '{' | '}' | '$') => self.push(2, SyntaxKind::StringEscape),
            Some('u') => self.unicode_escape(),
            None | Some('\n' | '\r') => self.bad_escape(1, "a backslash begins an escape"),
            Some(c) => {
                let message = format!("`\\{}` is not an escape", quoted(&c.to_string()));
                self.bad_escape(1 + c.len_utf8(), &message);
            }
        }
    }

    fn unicode_escape(&mut self) {
        let after = self.rest()[2..].strip_prefix('{').unwrap_or_default();
        let digits = after.bytes().take_while(u8::is_ascii_hexdigit).count();
        if digits == 0 || self.byte(3 + digits) != b'}' {
            return self.bad_escape(2, "`\\u` is followed by a number in braces: `\\u{1F600}`");
        }
        let value = u32::from_str_radix(&after[..digits], 16).ok().and_then(char::from_u32);
        match value {
            Some(_) => self.push(4 + digits, SyntaxKind::StringEscape),
            None => self.bad_escape(4 + digits, "there is no character of this number"),
        }
    }

    fn bad_escape(&mut self, len: usize, message: &str) {
        let diagnostic = self.error(code::BAD_ESCAPE, len, message);
        let diagnostic = if &self.rest()[..len] == "\\'" {
            diagnostic.fix(self.span(len), "'")
        } else {
            let hint = "a backslash as a character is written `\\\\`";
            diagnostic.hint(hint).unsure_fix(self.span(1), "\\\\")
        };
        self.report(diagnostic);
        self.push(len, SyntaxKind::StringEscape);
    }

    /// A line break in a short text: that text, and what it stands in, is over.
    fn end_at_line_break(&mut self) {
        let Some(string) = self.strings.pop() else { return };
        self.push(0, SyntaxKind::StringClose);
        if !self.strings.is_empty() {
            return self.abandon_holes();
        }
        let span = TextSpan::new(string.start, self.offset());
        let diagnostic =
            Diagnostic::error(code::UNTERMINATED_TEXT, self.file, span, "this text is never closed");
        let hint = "close it with `\"`, or use `\"\"\"` for a text of several lines";
        self.report(diagnostic.hint(hint).unsure_fix(TextSpan::empty(self.offset()), "\""));
    }

    /// Ends the open holes at a line break: back to the long text that they stand in, or to plain code.
    pub(super) fn abandon_holes(&mut self) {
        let mut outermost = None;
        while let Some(string) = self.strings.last_mut() {
            let quotes = string.quotes;
            if let Some(hole) = string.hole.take() {
                outermost = Some(hole.start);
                self.push(0, SyntaxKind::HoleClose);
            }
            if quotes == Quotes::Three {
                break;
            }
            self.strings.pop();
            self.push(0, SyntaxKind::StringClose);
        }
        if let Some(start) = outermost {
            self.report(unclosed_hole(self.file, start));
        }
    }

    /// Closes what is open at the end of the file.
    pub(super) fn close_at_end(&mut self) {
        let Some(outermost) = self.strings.first() else { return };
        let diagnostic = match &outermost.hole {
            Some(hole) => unclosed_hole(self.file, hole.start),
            None => {
                let first_line = self.text[outermost.start as usize..].lines().next().unwrap_or_default();
                let span = TextSpan::new(outermost.start, outermost.start + offset(first_line.len()));
                Diagnostic::error(code::UNTERMINATED_TEXT, self.file, span, "this text is never closed")
            }
        };
        self.report(diagnostic);
        while let Some(string) = self.strings.pop() {
            if string.hole.is_some() {
                self.push(0, SyntaxKind::HoleClose);
            }
            self.push(0, SyntaxKind::StringClose);
        }
    }

    /// Reads `'…'` as a text, with a diagnostic.
    pub(super) fn single_quoted(&mut self) {
        let after = &self.rest()[1..];
        let inner = match after.find(['\'', '\n', '\r']) {
            Some(at) if after[at..].starts_with('\'') => at,
            Some(_) | None => {
                let diagnostic = self.error(code::BAD_CHARACTER, 1, "`'` has no meaning here");
                self.report(diagnostic.hint("texts stand in double quotes"));
                return self.push(1, SyntaxKind::Unknown);
            }
        };
        let content = &after[..inner];
        let mut diagnostic = self.error(code::SINGLE_QUOTES, inner + 2, "texts stand in double quotes");
        if !content.contains(['"', '\\', '{']) {
            diagnostic = diagnostic.fix(self.span(inner + 2), format!("\"{content}\""));
        }
        self.report(diagnostic);
        self.push(1, SyntaxKind::StringOpen);
        if inner > 0 {
            self.push(inner, SyntaxKind::StringText);
        }
        self.push(1, SyntaxKind::StringClose);
    }
}

fn unclosed_hole(file: FileId, start: u32) -> Diagnostic {
    let span = TextSpan::new(start, start + 1);
    let message = "`{` opens an expression in this text, and no `}` follows on the line";
    let diagnostic = Diagnostic::error(code::UNTERMINATED_HOLE, file, span, message);
    diagnostic.hint("a brace as a character is written `\\{`").unsure_fix(span, "\\{")
}
