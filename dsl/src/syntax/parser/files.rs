//! Files: the loop over declarations, and where one begins.
//!
//! Leaves the declarations to their own files. Invariant: `at_block_start` is true only where no expression
//! can go on, so recovery may stop there.

use super::Parser;
use crate::diag::catalogue::syntax as code;
use crate::syntax::kind::SyntaxKind;

/// What a file may hold, for messages.
const DECLARATIONS: &str =
    "a declaration: `type`, `error`, `retry`, `activity`, `fn`, `flow`, `saga flow`, `migrate` or `test`";

impl Parser<'_> {
    /// `file ::= edition? use* decl*`
    pub(super) fn file(&mut self) {
        self.node(SyntaxKind::File, |p| {
            let mut after_orphan = false;
            while !p.at(SyntaxKind::Eof) {
                if p.at_decl() {
                    after_orphan = false;
                    p.decl();
                } else if p.at_item() {
                    after_orphan = true;
                    p.orphan_items();
                } else {
                    p.stray(after_orphan);
                }
            }
            p.write_trivia();
        });
    }

    /// Whether a declaration begins here.
    pub(super) fn at_decl(&self) -> bool {
        if !self.at(SyntaxKind::Lower) {
            return false;
        }
        let next = self.nth(1);
        match self.nth_text(0) {
            "type" | "error" | "migrate" | "flow" => next == SyntaxKind::Upper,
            // In an activity, `retry Gently` is a clause.
            "retry" => next == SyntaxKind::Upper && self.nth(2) == SyntaxKind::LBrace,
            "activity" | "fn" => next == SyntaxKind::Lower && self.nth(2) == SyntaxKind::LParen,
            "saga" => self.nth_word(1, "flow"),
            "use" => self.nth_word(1, "tools"),
            "edition" => next == SyntaxKind::Int,
            "test" => next == SyntaxKind::StringOpen,
            _ => false,
        }
    }

    /// Whether an item of a flow, other than an arrow, begins here.
    pub(super) fn at_item(&self) -> bool {
        if !self.at(SyntaxKind::Lower) {
            return false;
        }
        match self.nth_text(0) {
            "message" | "start" | "state" => self.nth(1) == SyntaxKind::Upper,
            "data" => self.nth(1) == SyntaxKind::Lower && self.nth(2) == SyntaxKind::Colon,
            "limit" => {
                let measured = matches!(self.nth(2), SyntaxKind::LtEq | SyntaxKind::LParen);
                self.nth(1) == SyntaxKind::Lower && measured
            }
            _ => false,
        }
    }

    /// Whether a declaration or an item begins on this line. Among arms, a variable named like a keyword may be
    /// followed by the next pattern, so there nothing is taken for certain.
    pub(super) fn at_block_start(&self) -> bool {
        self.among_arms == 0 && self.at_line_start() && (self.at_decl() || self.at_item())
    }

    fn decl(&mut self) {
        match self.nth_text(0) {
            "edition" => self.edition(),
            "use" => self.use_tools(),
            "type" => self.type_decl(),
            "error" => self.error_decl(),
            "retry" => self.retry_decl(),
            "activity" => self.activity(),
            "fn" => self.fn_decl(),
            "migrate" => self.migrate(),
            "test" => self.test(),
            "flow" | "saga" => self.flow(),
            word => unreachable!("`at_decl` knows the word {word}"),
        }
    }

    fn stray(&mut self, after_orphan: bool) {
        if self.at(SyntaxKind::RBrace) {
            // After items outside a flow, the brace is the one that the flow lost.
            if !after_orphan && !self.is_known_error() {
                let span = self.span();
                let diagnostic =
                    self.error(code::STRAY_CLOSER, span, "nothing is open here that `}` could close");
                self.report(diagnostic.unsure_fix(span, ""));
            }
            return self.node(SyntaxKind::Error, Self::bump);
        }
        if self.at_incomplete_decl() {
            return self.node(SyntaxKind::Error, |p| {
                p.bump();
                p.missing("what is declared: a name");
                p.skip_to_decl();
            });
        }
        self.unexpected(DECLARATIONS);
        self.skip(|p| p.at_decl() || (p.at_line_start() && p.at_item()));
    }

    /// Whether the word begins a declaration but what follows does not fit.
    fn at_incomplete_decl(&self) -> bool {
        self.at_word_in(&[
            "type", "error", "retry", "activity", "fn", "flow", "saga", "use", "test", "migrate",
        ]) && !matches!(self.nth(1), SyntaxKind::Lower | SyntaxKind::Upper)
    }

    fn skip_to_decl(&mut self) {
        if !self.at_decl() {
            self.skip(|p| p.at_decl() || (p.at_line_start() && p.at_item()));
        }
    }

    fn orphan_items(&mut self) {
        if !self.is_known_error() {
            let word = self.nth_text(0);
            let diagnostic =
                self.error(code::MISPLACED, self.span(), format!("`{word}` stands inside a flow"));
            self.report(diagnostic.hint("is there a `}` too many above?"));
        }
        self.node(SyntaxKind::Error, |p| {
            while p.at_item() || p.at_arrow() {
                p.item();
            }
        });
    }
}
