//! The lexer: cuts a text into tokens, every byte in exactly one of them.
//!
//! Leaves keywords and nesting of brackets to the parser; texts with expressions in them are in `strings`,
//! numbers in `numbers`. Invariant: tokens are adjacent and cover the text, and `StringOpen`/`StringClose` and
//! `HoleOpen`/`HoleClose` are balanced, by empty closing tokens where the text leaves one out.

mod marks;
mod numbers;
mod strings;

use super::kind::SyntaxKind;
use super::words;
use crate::diag::catalogue::syntax as code;
use crate::diag::{Code, Diagnostic, FileId, TextSpan, is_bidi_control};
use crate::limits::DIAGNOSTICS_MAX;

use strings::OpenString;

/// One token; its text is `text[start..end]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: SyntaxKind,
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl Token {
    pub(crate) fn span(self) -> TextSpan {
        TextSpan::new(self.start, self.end)
    }
}

/// All tokens of a text and what is wrong with them.
#[derive(Debug)]
pub(crate) struct Lexed {
    pub(crate) tokens: Vec<Token>,
    pub(crate) diagnostics: Vec<Diagnostic>,
}

/// Cuts `text`, which is at most `SOURCE_BYTES_MAX` long, into tokens.
pub(crate) fn lex(file: FileId, text: &str) -> Lexed {
    let mut lexer =
        Lexer { file, text, pos: 0, tokens: Vec::new(), diagnostics: Vec::new(), strings: Vec::new() };
    if text.starts_with('\u{feff}') {
        lexer.push('\u{feff}'.len_utf8(), SyntaxKind::Whitespace);
    }
    while lexer.pos < text.len() {
        if lexer.strings.last().is_some_and(OpenString::is_in_text) {
            lexer.string_part();
        } else {
            lexer.code_token();
        }
    }
    lexer.close_at_end();
    marks::check(file, text, &lexer.tokens, &mut lexer.diagnostics);
    Lexed { tokens: lexer.tokens, diagnostics: lexer.diagnostics }
}

struct Lexer<'t> {
    file: FileId,
    text: &'t str,
    pos: usize,
    tokens: Vec<Token>,
    diagnostics: Vec<Diagnostic>,
    /// The texts that are open, outermost first; empty in plain code.
    strings: Vec<OpenString>,
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        &self.text[self.pos..]
    }

    fn byte(&self, ahead: usize) -> u8 {
        // NUL stands for the end: no token begins or goes on with it.
        self.text.as_bytes().get(self.pos + ahead).copied().unwrap_or(0)
    }

    fn offset(&self) -> u32 {
        offset(self.pos)
    }

    /// Ends a token of `len` bytes.
    fn push(&mut self, len: usize, kind: SyntaxKind) {
        let start = self.offset();
        self.pos += len;
        self.tokens.push(Token { kind, start, end: self.offset() });
    }

    fn span(&self, len: usize) -> TextSpan {
        TextSpan::new(self.offset(), offset(self.pos + len))
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        if self.diagnostics.len() < DIAGNOSTICS_MAX {
            self.diagnostics.push(diagnostic);
        }
    }

    fn error(&self, code: Code, len: usize, message: impl Into<String>) -> Diagnostic {
        Diagnostic::error(code, self.file, self.span(len), message)
    }

    /// Bytes from here for which `keep` holds.
    fn run(&self, keep: impl Fn(char) -> bool) -> usize {
        let rest = self.rest();
        rest.find(|c| !keep(c)).unwrap_or(rest.len())
    }

    fn code_token(&mut self) {
        let Some(first) = self.rest().chars().next() else { return };
        match first {
            '\n' | '\r' if !self.strings.is_empty() => self.abandon_holes(),
            c if c.is_ascii_whitespace() => self.white(),
            '0'..='9' => self.number(),
            '"' => self.open_string(),
            '\'' => self.single_quoted(),
            '/' if self.byte(1) == b'/' => self.line_comment(),
            '/' if self.byte(1) == b'*' => self.block_comment(),
            '#' => self.hash_comment(),
            c if c == '_' || c.is_alphabetic() => self.word(),
            '{' | '}' if !self.strings.is_empty() => self.brace_in_hole(first),
            _ => self.punctuation(),
        }
    }

    fn white(&mut self) {
        // A line break inside a hole must be seen by `code_token`, so white space stops before it there.
        let in_hole = !self.strings.is_empty();
        let len = self.run(|c| c.is_ascii_whitespace() && !(in_hole && matches!(c, '\n' | '\r')));
        self.push(len, SyntaxKind::Whitespace);
    }

    fn line_len(&self) -> usize {
        self.run(|c| !matches!(c, '\n' | '\r'))
    }

    fn line_comment(&mut self) {
        let is_doc = self.byte(2) == b'/' && self.byte(3) != b'/';
        let kind = if is_doc { SyntaxKind::Doc } else { SyntaxKind::Comment };
        self.push(self.line_len(), kind);
    }

    fn block_comment(&mut self) {
        let len = self.rest()[2..].find("*/").map_or(self.rest().len(), |at| at + 4);
        let single_line = !self.rest()[..len].contains('\n');
        let ends_line = self.rest()[len..].trim_start_matches([' ', '\t', '\r']).starts_with('\n');
        let mut diagnostic = self.error(code::FOREIGN_COMMENT, 2, "`/* … */` is not a comment here");
        diagnostic = diagnostic.hint("begin each line of a comment with `//`");
        if single_line && ends_line && len >= 4 && self.strings.is_empty() {
            let inner = self.rest()[2..len - 2].trim().to_owned();
            diagnostic = diagnostic.fix(self.span(len), format!("// {inner}"));
        }
        self.report(diagnostic);
        self.push(len, SyntaxKind::Comment);
    }

    fn hash_comment(&mut self) {
        let diagnostic = self.error(code::FOREIGN_COMMENT, 1, "`#` does not begin a comment");
        self.report(diagnostic.fix(self.span(1), "//"));
        self.push(self.line_len(), SyntaxKind::Comment);
    }

    fn word(&mut self) {
        let len = self.run(|c| c == '_' || c.is_alphanumeric());
        let word = &self.rest()[..len];
        let upper = word.chars().next().is_some_and(char::is_uppercase);
        let (kind, better) = if upper {
            (SyntaxKind::Upper, words::to_upper_name(word))
        } else {
            (SyntaxKind::Lower, words::to_lower_name(word))
        };
        let well_formed = match kind {
            SyntaxKind::Upper => word.bytes().all(|b| b.is_ascii_alphanumeric()),
            _ => word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'),
        };
        if !well_formed {
            self.badly_named(len, kind, &better);
        }
        self.push(len, kind);
    }

    fn badly_named(&mut self, len: usize, kind: SyntaxKind, better: &str) {
        let style = if kind == SyntaxKind::Upper { "`UpperCamel`" } else { "`lower_snake`" };
        let message = format!("the name `{}` is not written as {style}", words::quoted(&self.rest()[..len]));
        let mut diagnostic =
            self.error(code::BAD_NAME, len, message).hint("names are ASCII letters and digits");
        if self.rest()[..len].is_ascii() && !better.is_empty() {
            diagnostic = diagnostic.unsure_fix(self.span(len), better);
        }
        self.report(diagnostic);
    }

    fn punctuation(&mut self) {
        let (three, two) = (prefix(self.rest(), 3), prefix(self.rest(), 2));
        if let "===" | "!==" = three {
            let (kind, right) =
                if three == "===" { (SyntaxKind::EqEq, "==") } else { (SyntaxKind::NotEq, "!=") };
            let diagnostic = self.error(code::TRIPLE_EQUALS, 3, format!("`{three}` is written `{right}`"));
            self.report(diagnostic.fix(self.span(3), right));
            self.push(3, kind);
        } else if let Some(kind) = two_bytes(two) {
            self.push(2, kind);
        } else if let Some(kind) = one_byte(self.byte(0)) {
            self.push(1, kind);
        } else if self.byte(0) == b';' {
            let diagnostic = self.error(code::SEMICOLON, 1, "nothing ends with a semicolon");
            self.report(diagnostic.fix(self.span(1), ""));
            self.push(1, SyntaxKind::Unknown);
        } else {
            self.unknown();
        }
    }

    fn unknown(&mut self) {
        let begins_token =
            |c: char| c.is_ascii() && (c.is_ascii_alphanumeric() || one_byte(c as u8).is_some());
        let in_hole = !self.strings.is_empty();
        // Neighbours are reported together, but nothing that could begin a token is swallowed.
        let is_other = |c: char| {
            let ends = begins_token(c)
                || c.is_ascii_whitespace()
                || matches!(c, '"' | '\'' | '_' | '#' | ';')
                || c.is_alphabetic()
                || (in_hole && matches!(c, '{' | '}'));
            !ends
        };
        let len = self.run(is_other);
        let len = len.max(self.rest().chars().next().map_or(1, char::len_utf8));
        if self.rest()[..len].chars().all(is_bidi_control) {
            // `marks` reports these, wherever they stand.
            return self.push(len, SyntaxKind::Unknown);
        }
        let found = words::quoted(&self.rest()[..len]);
        self.report(self.error(code::BAD_CHARACTER, len, format!("`{found}` has no meaning here")));
        self.push(len, SyntaxKind::Unknown);
    }
}

fn prefix(text: &str, len: usize) -> &str {
    text.get(..len).unwrap_or_default()
}

/// The source is refused before lexing if an offset could pass `u32`.
fn offset(pos: usize) -> u32 {
    let Ok(offset) = u32::try_from(pos) else { unreachable!("a source is at most SOURCE_BYTES_MAX long") };
    offset
}

fn two_bytes(text: &str) -> Option<SyntaxKind> {
    // `>=` is left to the parser: in `xs: list<int>= []` the two signs belong to different things.
    Some(match text {
        "->" => SyntaxKind::Arrow,
        "=>" => SyntaxKind::FatArrow,
        "==" => SyntaxKind::EqEq,
        "!=" => SyntaxKind::NotEq,
        "<=" => SyntaxKind::LtEq,
        "??" => SyntaxKind::Coalesce,
        "+=" => SyntaxKind::PlusEq,
        "-=" => SyntaxKind::MinusEq,
        "&&" => SyntaxKind::AmpAmp,
        "||" => SyntaxKind::PipePipe,
        _ => return None,
    })
}

fn one_byte(byte: u8) -> Option<SyntaxKind> {
    Some(match byte {
        b'{' => SyntaxKind::LBrace,
        b'}' => SyntaxKind::RBrace,
        b'(' => SyntaxKind::LParen,
        b')' => SyntaxKind::RParen,
        b'[' => SyntaxKind::LBrack,
        b']' => SyntaxKind::RBrack,
        b'<' => SyntaxKind::Lt,
        b'>' => SyntaxKind::Gt,
        b'=' => SyntaxKind::Eq,
        b'+' => SyntaxKind::Plus,
        b'-' => SyntaxKind::Minus,
        b'*' => SyntaxKind::Star,
        b'/' => SyntaxKind::Slash,
        b'%' => SyntaxKind::Percent,
        b'?' => SyntaxKind::Question,
        b',' => SyntaxKind::Comma,
        b':' => SyntaxKind::Colon,
        b'.' => SyntaxKind::Dot,
        b'|' => SyntaxKind::Pipe,
        b'!' => SyntaxKind::Bang,
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
