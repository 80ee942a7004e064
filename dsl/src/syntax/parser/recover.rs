//! Errors and how the parser goes on after them.
//!
//! After an error it skips to something that surely begins anew: a comma or a bracket in a list, an arrow in a
//! state, a declaration. Leaves the choice of that place to the productions. Invariant: one error per token
//! that is in the way, and skipping never leaves the hole of a text or the braces around it.

use super::Parser;
use crate::diag::catalogue::syntax as code;
use crate::diag::{Code, Diagnostic, TextSpan};
use crate::limits::DIAGNOSTICS_MAX;
use crate::syntax::kind::SyntaxKind;
use crate::syntax::words::quoted;

/// Words that begin a part of an arrow or of a state: no list goes on past them.
const LIST_STOPS: &[&str] =
    &["on", "after", "every", "set", "emit", "end", "fail", "stay", "within", "forever"];

/// What the items of a list begin with, and what a message calls one of them.
#[derive(Clone, Copy)]
pub(super) enum Items {
    /// A name, mostly with a colon.
    Named(&'static str),
    /// An expression.
    Values(&'static str),
}

impl Items {
    fn what(self) -> &'static str {
        match self {
            Self::Named(what) | Self::Values(what) => what,
        }
    }
}

impl Parser<'_> {
    pub(super) fn report(&mut self, diagnostic: Diagnostic) {
        // Behind a quote that is missing, texts and code have changed places: nothing said there is true.
        let at = diagnostic.span.start;
        let line = self.broken_lines.partition_point(|line| line.end < at);
        let in_broken_line = self.broken_lines.get(line).is_some_and(|line| line.start <= at);
        if !in_broken_line && self.diagnostics.len() < DIAGNOSTICS_MAX {
            self.diagnostics.push(diagnostic);
        }
    }

    pub(super) fn error(&self, code: Code, span: TextSpan, message: impl Into<String>) -> Diagnostic {
        Diagnostic::error(code, self.file, span, message)
    }

    /// Whether something was already said about the next token; notes that now something is.
    pub(super) fn is_known_error(&mut self) -> bool {
        self.error_at.replace(self.pos) == Some(self.pos)
    }

    /// Reports the next token, which is not what was expected.
    pub(super) fn unexpected(&mut self, expected: &str) {
        let span = self.span();
        self.unexpected_at(span, expected);
    }

    /// Reports that something is missing here; points after the last token if the next is on another line.
    pub(super) fn missing(&mut self, expected: &str) {
        let span = if self.at_line_start() { TextSpan::empty(self.previous_end()) } else { self.span() };
        self.unexpected_at(span, expected);
    }

    fn unexpected_at(&mut self, span: TextSpan, expected: &str) {
        if self.is_known_error() {
            return;
        }
        let message = format!("expected {expected}, found {}", self.found());
        let diagnostic = self.error(code::UNEXPECTED, span, message);
        self.report(diagnostic.expected(expected));
    }

    /// The next token as a message names it.
    pub(super) fn found(&self) -> String {
        match self.kind() {
            SyntaxKind::Eof => "the end of the file".to_owned(),
            SyntaxKind::HoleClose => "the end of the expression in the text".to_owned(),
            SyntaxKind::StringOpen => "a text".to_owned(),
            _ => format!("`{}`", quoted(self.nth_text(0))),
        }
    }

    pub(super) fn expect(&mut self, kind: SyntaxKind, name: &str) -> bool {
        let here = self.eat(kind);
        if !here {
            self.missing(name);
        }
        here
    }

    pub(super) fn expect_word(&mut self, word: &str) -> bool {
        let here = self.eat_word(word);
        if !here {
            self.missing(&format!("`{word}`"));
        }
        here
    }

    /// Takes `:`; an `=` in its place is reported and taken, and nothing in its place is reported. Whether the type
    /// or value follows.
    pub(super) fn colon(&mut self) -> bool {
        if self.eat(SyntaxKind::Colon) {
            return true;
        }
        let span = self.span();
        if self.at(SyntaxKind::Eq) {
            let message = "a name and its value or type are joined by `:`";
            let diagnostic = self.error(code::UNEXPECTED, span, message).expected("`:`");
            self.report(diagnostic.fix(span, ":"));
            self.bump();
            return true;
        }
        let name_follows =
            matches!(self.kind(), SyntaxKind::Lower | SyntaxKind::Upper) && !self.at_line_start();
        if !name_follows || self.at_list_stop() {
            self.missing("`:`");
            return false;
        }
        if !self.is_known_error() {
            let message = format!("expected `:`, found {}", self.found());
            let diagnostic = self.error(code::UNEXPECTED, span, message).expected("`:`");
            self.report(diagnostic.unsure_fix(TextSpan::empty(self.previous_end()), ":"));
        }
        true
    }

    /// Skips at least one token, whole brackets at a time, until `until` holds or the block ends.
    pub(super) fn skip(&mut self, until: impl Fn(&Self) -> bool) {
        if self.at_end() {
            return;
        }
        self.node(SyntaxKind::Error, |p| {
            loop {
                p.bump_with_partner();
                if p.at_end() || p.at(SyntaxKind::RBrace) || until(p) {
                    break;
                }
            }
        });
        self.error_at = Some(self.pos);
    }

    fn bump_with_partner(&mut self) {
        let end = self.after_pair(0).map_or(self.pos + 1, |ahead| self.pos + ahead);
        while self.pos < end {
            self.bump();
        }
    }

    /// Skips the rest of an expression that is nested too deeply.
    pub(super) fn skip_too_deep(&mut self) {
        if !self.too_deep {
            self.too_deep = true;
            let diagnostic = self.error(code::TOO_DEEP, self.span(), "this is nested too deeply");
            self.report(diagnostic.hint("move a part into a `fn` of its own"));
        }
        self.error_at = Some(self.pos);
        if !self.kind().is_closer() && !self.at_list_stop() {
            self.skip(|p| p.kind().is_closer() || p.at(SyntaxKind::Comma) || p.at_list_stop());
        }
    }

    /// Parses one level deeper, or skips if that is too deep.
    pub(super) fn nested(&mut self, parse: impl FnOnce(&mut Self)) {
        if self.depth >= crate::limits::NESTING_MAX {
            return self.skip_too_deep();
        }
        self.depth += 1;
        self.deepest = self.deepest.max(self.depth);
        parse(self);
        self.depth -= 1;
    }

    /// Whether a declaration, an item or a part of an arrow begins here, where a list should go on.
    pub(super) fn at_list_stop(&self) -> bool {
        let effect_line = || {
            let name_follows =
                matches!(self.nth(1), SyntaxKind::Lower | SyntaxKind::Upper | SyntaxKind::StringOpen);
            self.among_arms == 0 && self.at_line_start() && name_follows && self.at_effect()
        };
        self.at(SyntaxKind::Arrow) || self.at_word_in(LIST_STOPS) || self.at_block_start() || effect_line()
    }

    /// Parses `open (item ("," item)* ","?)? close`.
    pub(super) fn list(&mut self, open: SyntaxKind, items: Items, mut item: impl FnMut(&mut Self)) {
        let opened = self.span();
        let Some(close) = open.closer() else { unreachable!("a list stands in brackets, not in {open:?}") };
        self.bump();
        let mut commas_missing = 0;
        while !self.at(close) && !self.at_end() {
            let before = self.pos;
            if self.at_item_of(items) {
                item(self);
            } else if self.at_list_stop() {
                break;
            } else {
                self.unexpected(items.what());
            }
            if self.eat(SyntaxKind::Comma) || self.at(close) {
                continue;
            }
            if self.at_list_stop() || self.at_end() {
                break;
            }
            if self.pos > before && self.item_goes_on(items, close, commas_missing) {
                commas_missing += 1;
                self.missing_comma();
                continue;
            }
            if self.at_line_start() {
                // The bracket was forgotten; what follows is not the list's.
                break;
            }
            self.unexpected(&format!("`,` or {}", named(close)));
            if !self.kind().is_closer() {
                self.skip(|p| p.at(SyntaxKind::Comma) || p.kind().is_closer() || p.at_list_stop());
            }
            if !self.eat(SyntaxKind::Comma) {
                break;
            }
        }
        self.close(close, opened);
    }

    pub(super) fn at_item_of(&self, items: Items) -> bool {
        match items {
            Items::Named(_) => {
                matches!(self.kind(), SyntaxKind::Lower | SyntaxKind::Upper | SyntaxKind::StringOpen)
            }
            Items::Values(_) => {
                // In a test, a reply may fail or come later.
                self.at_expr() || self.at_word("fail") || (self.in_test && self.at_word("after"))
            }
        }
    }

    /// Whether the next item stands here and only its comma is missing.
    fn item_goes_on(&self, items: Items, close: SyntaxKind, commas_missing: u32) -> bool {
        let is_whole = matches!(self.nth(1), SyntaxKind::Colon | SyntaxKind::Comma) || self.nth(1) == close;
        // A brace is no value by itself; it rather opens the arms of an arrow whose list was not closed.
        let is_value = matches!(items, Items::Values(_))
            && !self.at(SyntaxKind::LBrace)
            && (commas_missing == 0 || self.at_line_start());
        self.at_item_of(items) && (is_whole || is_value)
    }

    pub(super) fn missing_comma(&mut self) {
        if self.is_known_error() {
            return;
        }
        let end = TextSpan::empty(self.previous_end());
        let diagnostic = self.error(code::MISSING_COMMA, end, "a comma is missing here");
        self.report(diagnostic.fix(end, ","));
    }

    /// Takes the closing bracket, or reports the bracket that was opened.
    pub(super) fn close(&mut self, close: SyntaxKind, opened: TextSpan) {
        if self.eat(close) || self.is_known_error() {
            return;
        }
        let end = if self.at_line_start() { TextSpan::empty(self.previous_end()) } else { self.span() };
        let message = format!("expected {}, found {}", named(close), self.found());
        let diagnostic = self.error(code::UNCLOSED, end, message).expected(named(close));
        self.report(diagnostic.related(opened, "the bracket was opened here"));
    }
}

fn named(close: SyntaxKind) -> &'static str {
    match close {
        SyntaxKind::RBrace => "`}`",
        SyntaxKind::RParen => "`)`",
        SyntaxKind::RBrack => "`]`",
        _ => "the end of the expression",
    }
}
