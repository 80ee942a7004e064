//! Files: the loop over declarations, and where one begins.
//!
//! Leaves the declarations to their own files. Invariant: `at_block_start` is true only where no expression
//! can go on, so recovery may stop there.

use super::Parser;
use crate::diag::catalogue::syntax as code;
use crate::diag::closest;
use crate::syntax::kind::SyntaxKind;

/// What a file may hold, for messages.
const DECLARATIONS: &str =
    "a declaration: `type`, `error`, `retry`, `activity`, `fn`, `flow`, `saga flow`, `migrate` or `test`";

impl Parser<'_> {
    /// `file ::= edition? (use | import)* decl*`
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
            "use" => {
                next == SyntaxKind::StringOpen
                    || self.nth_word(1, "tools")
                    || (self.nth_word(1, "std") && self.nth(2) == SyntaxKind::StringOpen)
            }
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
            "message" | "start" | "state" if self.nth(1) == SyntaxKind::Upper => true,
            // The name is in the wrong case; no expression goes on with a name.
            "message" | "state" => {
                let has_body = matches!(self.nth(2), SyntaxKind::LBrace | SyntaxKind::LParen);
                self.nth(1) == SyntaxKind::Lower && has_body
            }
            "data" => self.nth(1) == SyntaxKind::Lower && self.nth(2) == SyntaxKind::Colon,
            "limit" => {
                let measured = matches!(self.nth(2), SyntaxKind::LtEq | SyntaxKind::LParen);
                self.nth(1) == SyntaxKind::Lower && measured
            }
            _ => false,
        }
    }

    /// Whether a declaration, an item or a step of a test begins on this line. Among arms, a variable named like a keyword may be
    /// followed by the next pattern, so there nothing is taken for certain.
    pub(super) fn at_block_start(&self) -> bool {
        let begins = || self.at_decl() || self.at_item() || (self.in_test && self.at_test_step());
        self.among_arms == 0 && self.at_line_start() && begins()
    }

    fn decl(&mut self) {
        self.decl_of(self.nth_text(0));
    }

    fn decl_of(&mut self, word: &str) {
        match word {
            "edition" => self.edition(),
            "use" if self.nth_word(1, "tools") => self.use_tools(),
            "use" => self.import(),
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
        if self.at_miscased_decl() {
            return self.decl();
        }
        if let Some(word) = self.misspelt_decl() {
            self.misspelt(word);
            return self.decl_of(word);
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

    /// Whether a declaration begins here but its name is in the wrong case.
    fn at_miscased_decl(&self) -> bool {
        let has_body = matches!(self.nth(2), SyntaxKind::LParen | SyntaxKind::LBrace | SyntaxKind::Eq);
        match self.nth(1) {
            SyntaxKind::Lower => has_body && self.at_word_in(&["type", "error", "retry", "flow"]),
            SyntaxKind::Upper => has_body && self.at_word_in(&["activity", "fn"]),
            _ => false,
        }
    }

    /// The word that begins a declaration if the one here is a slip of it: a line such as `ctivity a(…`.
    pub(super) fn misspelt_decl(&self) -> Option<&'static str> {
        let has_body = matches!(self.nth(2), SyntaxKind::LParen | SyntaxKind::LBrace | SyntaxKind::Eq);
        if self.nth(1) == SyntaxKind::Int {
            return self.slip_of(&["edition"]).filter(|_| !self.at_decl());
        }
        if !has_body || self.at_decl() || self.at_item() {
            return None;
        }
        match self.nth(1) {
            SyntaxKind::Lower if self.at(SyntaxKind::Upper) => self.slip_of(&["activity", "fn"]),
            SyntaxKind::Lower => self.slip_of(&["activity"]),
            SyntaxKind::Upper => self.slip_of(&["type", "error", "retry", "flow", "migrate"]),
            _ => None,
        }
    }

    /// The word of `words` that the one at the beginning of this line is a slip of.
    pub(super) fn slip_of(&self, words: &[&'static str]) -> Option<&'static str> {
        let written = self.nth_text(0);
        if !self.at_line_start() || words.contains(&written) {
            return None;
        }
        match self.kind() {
            SyntaxKind::Lower => {
                let found = closest(written, words.iter().copied())?;
                words.iter().copied().find(|word| *word == found)
            }
            SyntaxKind::Upper => words.iter().copied().find(|word| word.eq_ignore_ascii_case(written)),
            _ => None,
        }
    }

    /// Reports a word that is a slip of another; it is then read as that one.
    pub(super) fn misspelt(&mut self, word: &str) {
        let span = self.span();
        let written = self.nth_text(0);
        if written.eq_ignore_ascii_case(word) {
            let message = format!("`{word}` is written in lower case");
            let diagnostic = self.error(code::UNEXPECTED, span, message).expected(format!("`{word}`"));
            return self.report(diagnostic.fix(span, word));
        }
        let message = format!("`{written}` begins nothing; did you mean `{word}`?");
        let diagnostic = self.error(code::UNEXPECTED, span, message).expected(format!("`{word}`"));
        self.report(diagnostic.unsure_fix(span, word));
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
