//! Effects that hold other effects: `steps`, `each`, `parallel`.
//!
//! Leaves which effects fit together to the checker. Invariant: an effect in a group holds no group.

use super::Parser;
use crate::diag::TextSpan;
use crate::diag::catalogue::syntax as code;
use crate::syntax::kind::SyntaxKind;

impl Parser<'_> {
    /// `steps ::= "steps" "{" (LNAME "=" (do | run))+ "}"`
    pub(super) fn steps(&mut self) {
        self.node(SyntaxKind::Steps, |p| {
            p.bump();
            p.group_body(
                |p| p.at(SyntaxKind::Lower) && p.nth(1) == SyntaxKind::Eq,
                "a step `name = do …`",
                |p| {
                    p.node(SyntaxKind::StepBind, |p| {
                        p.variable("a step");
                        p.bump();
                        p.member(&["do", "run"]);
                    });
                },
            );
        });
    }

    /// `each ::= "each" LNAME ("," LNAME)? "in" expr "at" "most" expr … "{" (do | run | ask) yield* "}"`
    pub(super) fn each(&mut self) {
        self.node(SyntaxKind::Each, |p| {
            p.bump();
            p.loop_names();
            p.expect_word("in");
            p.expr();
            if p.expect_word("at") {
                p.expect_word("most");
                p.expr();
            }
            p.each_clauses();
            if !p.at(SyntaxKind::LBrace) {
                return p.missing("`{` and the effect for each item");
            }
            let opened = p.span();
            p.bump();
            p.member(&["do", "run", "ask"]);
            p.yields();
            p.close_after_skip(opened);
        });
    }

    fn each_clauses(&mut self) {
        if self.eat_word("until") {
            self.expr();
            self.eat_word("draining");
        }
        if self.eat_word("keep") {
            self.expect_word("going");
        }
        self.bound();
        self.binding();
    }

    /// `LNAME ("," LNAME)?`; parentheses around two names are reported.
    pub(super) fn loop_names(&mut self) {
        let opened = self.span();
        let tuple = self.at(SyntaxKind::LParen);
        if tuple {
            self.bump();
        }
        self.variable("a variable");
        if self.eat(SyntaxKind::Comma) {
            self.variable("a variable");
        }
        if tuple {
            let names = TextSpan::new(opened.end, self.previous_end()).of(self.text).to_owned();
            let whole = opened.cover(self.span());
            let closed = self.eat(SyntaxKind::RParen);
            let span = if closed { whole } else { opened };
            let diagnostic = self.error(code::TUPLE, span, "the names of a loop stand without parentheses");
            self.report(if closed { diagnostic.fix(span, names) } else { diagnostic });
        }
    }

    /// `parallel ::= "parallel" "{" region+ "}" "join" ("all" | "any" | INT | RNAME) limitt?`
    pub(super) fn parallel(&mut self) {
        self.node(SyntaxKind::Parallel, |p| {
            p.bump();
            let begins = |p: &Self| p.at(SyntaxKind::Lower) && p.nth(1) == SyntaxKind::Colon;
            p.group_body(begins, "a region `name: do …`", Self::region);
            if p.expect_word("join") {
                match p.kind() {
                    SyntaxKind::Int => p.node(SyntaxKind::Literal, Self::bump),
                    SyntaxKind::Lower if p.at_word_in(&["all", "any"]) => p.bump(),
                    _ => {
                        p.lower_ref("`all`, `any`, a number or a region");
                    }
                }
            }
            p.bound();
        });
    }

    fn region(&mut self) {
        self.node(SyntaxKind::Region, |p| {
            if p.at_word_in(&["all", "any"]) {
                let message = format!("no region is named `{}`: `join` gives it a meaning", p.nth_text(0));
                p.report(p.error(code::RESERVED_NAME, p.span(), message));
            }
            p.variable("a region");
            p.bump();
            p.member(&["do", "run", "ask", "await", "each"]);
            p.yields();
        });
    }

    /// One effect out of those that may stand here.
    fn member(&mut self, allowed: &[&str]) {
        let expected = format!("one of `{}`", allowed.join("`, `"));
        if self.at_word_in(allowed) {
            self.effect();
        } else if self.at_effect() {
            // Read it all the same, so that its own lines are not reported as well. A group in a group could
            // nest without end, so that is skipped.
            self.unexpected(&expected);
            if self.at_word_in(&["steps", "each", "parallel"]) {
                self.skip(|p| p.at_arrow() || p.at_item());
            } else {
                self.effect();
            }
        } else {
            self.missing(&expected);
        }
    }

    /// `yield ::= "on" outcomes guard? "yield" expr`
    fn yields(&mut self) {
        while self.at_word("on") {
            self.node(SyntaxKind::Yield, |p| {
                p.bump();
                p.outcomes();
                p.guard();
                if p.expect_word("yield") {
                    p.expr();
                }
            });
        }
    }

    /// `"{" part+ "}"`
    fn group_body(&mut self, begins: impl Fn(&Self) -> bool, what: &str, part: impl Fn(&mut Self)) {
        if !self.at(SyntaxKind::LBrace) {
            return self.missing(&format!("`{{` and {what}"));
        }
        let opened = self.span();
        self.bump();
        if self.at(SyntaxKind::RBrace) {
            self.missing(what);
        }
        while !self.at(SyntaxKind::RBrace) && !self.at_end() && !self.at_block_start() {
            if begins(self) {
                part(self);
            } else {
                self.unexpected(what);
                self.skip(|p| begins(p) || p.at_block_start());
            }
        }
        self.close(SyntaxKind::RBrace, opened);
    }

    /// Closes the block of one effect; what else stands in it is skipped.
    fn close_after_skip(&mut self, opened: TextSpan) {
        if !self.at(SyntaxKind::RBrace) && !self.at_end() && !self.at_block_start() {
            self.unexpected("`on … yield …` or `}`");
            self.skip(Self::at_block_start);
        }
        self.close(SyntaxKind::RBrace, opened);
    }
}
