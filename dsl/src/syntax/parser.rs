//! The parser: recursive descent from tokens to a lossless tree, several errors in one pass.
//!
//! Each file of `parser/` holds the productions of one concept; this one holds the cursor and the tree builder.
//! Leaves the meaning of names and types to the checker. Invariants: every byte of the text is in the tree in
//! its order; every loop takes a token or ends, so time is linear; recursion is bounded by `NESTING_MAX`.
//!
//! White space separates nothing, so four rules decide what the grammar leaves open:
//! * A `{` after an upper-case name belongs to that name only if a field follows (`Foo { a …`) or nothing
//!   (`Foo {}`); a `{` before an upper-case name opens arms. So `match v {` needs no parentheses.
//! * After `-> end`, what begins the next arm, branch or item is not the value: `end  Text { text } -> …` ends with nothing
//!   and goes on with an arm, and a branch of `choose` takes no `if` expression without parentheses.
//! * `F(…) -> T { x: …` are the fields of the result `T`; any other `{` opens the body of the flow.
//! * In `each`, the first `until` is the condition; a deadline `until T` stands after it or after `keep going`.

mod activities;
mod arrows;
mod decls;
mod effects;
mod exprs;
mod files;
mod flows;
mod goals;
mod groups;
mod names;
mod patterns;
mod primaries;
mod recover;
mod scripts;
mod tokens;
mod types;
mod waits;

use std::cell::Cell;

use rowan::{Checkpoint, GreenNode, GreenNodeBuilder};

use super::kind::SyntaxKind;
use super::lexer::{Token, lex};
use crate::diag::catalogue::syntax as code;
use crate::diag::{Diagnostic, FileId, TextSpan};

use tokens::{Solid, solid_tokens};

/// The tree of a text and what is wrong with it.
pub(crate) struct Parsed {
    pub(crate) green: GreenNode,
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// Looks at tokens and writes to the tree: the measure of work that tests bound.
    pub(crate) steps: u64,
}

/// Parses `text`, which is at most `SOURCE_BYTES_MAX` long.
pub(crate) fn parse(file: FileId, text: &str) -> Parsed {
    let lexed = lex(file, text);
    let solid = solid_tokens(text, &lexed.tokens);
    let mut parser = Parser {
        file,
        text,
        raw: &lexed.tokens,
        solid: &solid,
        pos: 0,
        written: 0,
        builder: GreenNodeBuilder::new(),
        broken_lines: broken_lines(text, &lexed.diagnostics),
        diagnostics: lexed.diagnostics,
        error_at: None,
        depth: 0,
        deepest: 0,
        too_deep: false,
        among_arms: 0,
        in_test: false,
        steps: Cell::new(0),
    };
    parser.file();
    let mut diagnostics = parser.diagnostics;
    crate::diag::sort(&mut diagnostics);
    Parsed { green: parser.builder.finish(), diagnostics, steps: parser.steps.get() }
}

/// The lines, up to the end of the text that is never closed, whose quotes do not pair.
fn broken_lines(text: &str, diagnostics: &[Diagnostic]) -> Vec<TextSpan> {
    let unclosed = diagnostics.iter().filter(|found| found.code == code::UNTERMINATED_TEXT);
    let line = |span: TextSpan| {
        let before = TextSpan::new(0, span.start).of(text);
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        TextSpan::new(u32::try_from(start).unwrap_or(span.start), span.end)
    };
    unclosed.map(|found| line(found.span)).collect()
}

struct Parser<'t> {
    file: FileId,
    text: &'t str,
    raw: &'t [Token],
    solid: &'t [Solid],
    /// The next solid token.
    pos: usize,
    /// Raw tokens that are in the tree.
    written: usize,
    builder: GreenNodeBuilder<'static>,
    diagnostics: Vec<Diagnostic>,
    /// The lines on which a short text is never closed, in order.
    broken_lines: Vec<TextSpan>,
    /// Where the last error was reported; a second one at the same token says nothing new.
    error_at: Option<usize>,
    /// Nesting of what is being parsed.
    depth: u32,
    /// The deepest nesting in the expression that is being parsed.
    deepest: u32,
    /// Whether the limit was reported; once is enough.
    too_deep: bool,
    /// Blocks of arms around this place: there an upper-case name may follow an expression.
    among_arms: u32,
    /// Whether this is a test, where steps begin lines.
    in_test: bool,
    steps: Cell<u64>,
}

impl<'t> Parser<'t> {
    fn count_step(&self) {
        self.steps.set(self.steps.get() + 1);
    }

    fn nth(&self, ahead: usize) -> SyntaxKind {
        self.count_step();
        self.solid.get(self.pos + ahead).map_or(SyntaxKind::Eof, |token| token.kind)
    }

    fn nth_text(&self, ahead: usize) -> &'t str {
        self.solid.get(self.pos + ahead).map_or("", |token| token.span().of(self.text))
    }

    /// Whether the token `ahead` is this word.
    fn nth_word(&self, ahead: usize, word: &str) -> bool {
        self.nth(ahead) == SyntaxKind::Lower && self.nth_text(ahead) == word
    }

    fn nth_word_in(&self, ahead: usize, words: &[&str]) -> bool {
        self.nth(ahead) == SyntaxKind::Lower && words.contains(&self.nth_text(ahead))
    }

    fn kind(&self) -> SyntaxKind {
        self.nth(0)
    }

    fn at(&self, kind: SyntaxKind) -> bool {
        self.nth(0) == kind
    }

    fn at_word(&self, word: &str) -> bool {
        self.nth_word(0, word)
    }

    fn at_word_in(&self, words: &[&str]) -> bool {
        self.nth_word_in(0, words)
    }

    /// Whether nothing follows here: the end of the file or of the hole of a text.
    fn at_end(&self) -> bool {
        matches!(self.kind(), SyntaxKind::Eof | SyntaxKind::HoleClose)
    }

    /// Whether the next token is the first of its line.
    fn at_line_start(&self) -> bool {
        self.solid.get(self.pos).is_none_or(|token| token.first_on_line)
    }

    /// The token after the partner of the bracket `ahead`, counted from here.
    fn after_pair(&self, ahead: usize) -> Option<usize> {
        let partner = self.solid.get(self.pos + ahead)?.partner?;
        Some(partner as usize + 1 - self.pos)
    }

    /// The next token; at the end of the text an empty span.
    fn span(&self) -> TextSpan {
        let end = u32::try_from(self.text.len()).unwrap_or(u32::MAX);
        self.solid.get(self.pos).map_or(TextSpan::empty(end), |token| token.span())
    }

    /// The end of the token before this place.
    fn previous_end(&self) -> u32 {
        let before = self.pos.checked_sub(1).and_then(|pos| self.solid.get(pos));
        before.map_or(0, |token| token.end)
    }

    /// Puts the next token into the tree.
    fn bump(&mut self) {
        let Some(token) = self.solid.get(self.pos) else { return };
        self.write_up_to(token.raw as usize + 1);
        self.pos += 1;
    }

    /// Puts two adjacent tokens into the tree as one.
    fn bump_glued(&mut self, kind: SyntaxKind) {
        let (Some(first), Some(second)) = (self.solid.get(self.pos), self.solid.get(self.pos + 1)) else {
            return;
        };
        self.write_up_to(first.raw as usize);
        let text = TextSpan::new(first.start, second.end).of(self.text);
        self.builder.token(rowan::SyntaxKind(kind as u16), text);
        self.written = second.raw as usize + 1;
        self.pos += 2;
    }

    fn eat(&mut self, kind: SyntaxKind) -> bool {
        let here = self.at(kind);
        if here {
            self.bump();
        }
        here
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let here = self.at_word(word);
        if here {
            self.bump();
        }
        here
    }

    /// Wraps what `parse` reads in a node.
    fn node(&mut self, kind: SyntaxKind, parse: impl FnOnce(&mut Self)) {
        self.start(kind);
        parse(self);
        self.builder.finish_node();
    }

    /// Wraps what was read since `start`, and what `parse` reads, in a node.
    fn node_from(&mut self, start: Checkpoint, kind: SyntaxKind, parse: impl FnOnce(&mut Self)) {
        self.count_step();
        self.builder.start_node_at(start, rowan::SyntaxKind(kind as u16));
        parse(self);
        self.builder.finish_node();
    }

    fn checkpoint(&mut self) -> Checkpoint {
        self.write_trivia();
        self.builder.checkpoint()
    }

    fn start(&mut self, kind: SyntaxKind) {
        self.count_step();
        if kind != SyntaxKind::File {
            if takes_docs(kind) {
                self.write_up_to(self.docs_start());
            } else {
                self.write_trivia();
            }
        }
        self.builder.start_node(rowan::SyntaxKind(kind as u16));
    }

    fn write_trivia(&mut self) {
        let next = self.solid.get(self.pos).map_or(self.raw.len(), |token| token.raw as usize);
        self.write_up_to(next);
    }

    fn write_up_to(&mut self, end: usize) {
        for token in self.raw.get(self.written..end).unwrap_or_default() {
            self.count_step();
            // The lexer closes what a text leaves open by empty tokens; they have no place in the tree.
            if token.end > token.start {
                self.builder.token(rowan::SyntaxKind(token.kind as u16), token.span().of(self.text));
            }
        }
        self.written = self.written.max(end);
    }

    /// Where the documentation directly above the next token begins; a blank line cuts it off.
    fn docs_start(&self) -> usize {
        let next = self.solid.get(self.pos).map_or(self.raw.len(), |token| token.raw as usize);
        let mut start = next;
        for at in (self.written..next).rev() {
            self.count_step();
            let Some(token) = self.raw.get(at) else { break };
            let text = token.span().of(self.text);
            match token.kind {
                SyntaxKind::Doc => start = at,
                SyntaxKind::Whitespace if text.matches('\n').nth(1).is_some() => break,
                _ => {}
            }
        }
        start
    }
}

/// Whether documentation above a node of this kind belongs to the node.
fn takes_docs(kind: SyntaxKind) -> bool {
    matches!(
        kind,
        SyntaxKind::TypeDecl
            | SyntaxKind::ErrorDecl
            | SyntaxKind::RetryDecl
            | SyntaxKind::Activity
            | SyntaxKind::FnDecl
            | SyntaxKind::Flow
            | SyntaxKind::Migrate
            | SyntaxKind::Test
            | SyntaxKind::Variant
            | SyntaxKind::Field
            | SyntaxKind::Param
            | SyntaxKind::Message
            | SyntaxKind::Data
            | SyntaxKind::Limit
            | SyntaxKind::State
    )
}
