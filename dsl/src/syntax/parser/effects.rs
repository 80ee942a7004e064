//! The single effects: `do`, `run`, `spawn`, `choose`.
//!
//! Leaves groups (`steps`, `each`, `parallel`) and waits (`await`, `ask`) to their files. Invariant: an effect is
//! told by its first word alone.

use super::Parser;
use super::goals::After;
use crate::diag::TextSpan;
use crate::diag::catalogue::syntax as code;
use crate::syntax::kind::SyntaxKind;

const EFFECTS: &[&str] = &["do", "run", "spawn", "steps", "each", "parallel", "await", "ask", "choose"];

impl Parser<'_> {
    /// Whether an effect begins here; asked only where no expression can go on.
    pub(super) fn at_effect(&self) -> bool {
        self.at_word_in(EFFECTS)
    }

    /// One effect; called where `at_effect` holds.
    pub(super) fn effect(&mut self) {
        self.effect_of(self.nth_text(0));
    }

    pub(super) fn effect_of(&mut self, word: &str) {
        match word {
            "do" => self.do_effect(),
            "run" => self.run_effect(),
            "spawn" => self.spawn(),
            "steps" => self.steps(),
            "each" => self.each(),
            "parallel" => self.parallel(),
            "await" => self.await_effect(),
            "ask" => self.ask(),
            "choose" => self.choose(),
            word => unreachable!("`at_effect` knows the word {word}"),
        }
    }

    /// `do ::= "do" LNAME args ("as" LNAME)?`
    pub(super) fn do_effect(&mut self) {
        self.node(SyntaxKind::Do, |p| {
            p.bump();
            p.lower_ref("an activity");
            p.args_or_missing();
            p.binding();
        });
    }

    /// `run ::= "run" UNAME args limitt? ("as" LNAME)?`
    pub(super) fn run_effect(&mut self) {
        self.node(SyntaxKind::Run, |p| {
            p.bump();
            p.upper_ref("a flow");
            p.args_or_missing();
            p.bound();
            p.binding();
        });
    }

    /// `spawn ::= "spawn" UNAME args ("named" expr)? ("cancel" | "detach") ("as" LNAME)?`
    fn spawn(&mut self) {
        self.node(SyntaxKind::Spawn, |p| {
            p.bump();
            p.upper_ref("a flow");
            p.args_or_missing();
            if p.eat_word("named") {
                p.expr();
            }
            if !p.eat_word("cancel") && !p.eat_word("detach") {
                p.missing("`cancel` or `detach`: what happens to the run when this one ends");
            }
            p.binding();
        });
    }

    pub(super) fn args_or_missing(&mut self) {
        if self.at(SyntaxKind::LParen) { self.args() } else { self.missing("arguments `(…)`") }
    }

    /// `limitt ::= "within" (expr | "forever") | "until" expr`, if it is there.
    pub(super) fn bound(&mut self) -> bool {
        if !self.at_word_in(&["within", "until"]) {
            return false;
        }
        self.node(SyntaxKind::Bound, |p| {
            let is_within = p.at_word("within");
            p.bump();
            if !(is_within && p.eat_word("forever")) {
                p.expr();
            }
        });
        true
    }

    /// A bound that must be there: waits are bounded, or say that they are not.
    pub(super) fn needed_bound(&mut self) {
        if self.bound() || self.is_known_error() {
            return;
        }
        let end = TextSpan::empty(self.previous_end());
        let diagnostic = self.error(code::MISSING_BOUND, end, "this wait has no bound");
        let diagnostic = diagnostic.expected("`within D`, `until T` or `within forever`");
        self.report(diagnostic.unsure_fix(end, " within forever"));
    }

    /// `choose ::= "choose" ("if" cond acts goal)+ "else" acts goal | "choose" postfix arms`
    fn choose(&mut self) {
        self.node(SyntaxKind::Choose, |p| {
            p.bump();
            if p.at_word("if") {
                return p.branches();
            }
            p.postfix_or_missing("`if` or a value with variants");
            if p.at(SyntaxKind::LBrace) { p.arms() } else { p.missing("`{` and an arm for each variant") }
        });
    }

    fn branches(&mut self) {
        loop {
            if self.at_word("else") && self.nth_word(1, "if") {
                self.else_if();
                self.bump();
            }
            if self.at_word("if") {
                self.node(SyntaxKind::Branch, |p| {
                    p.bump();
                    p.cond();
                    p.acts();
                    p.goal(After::Branch);
                });
            } else if self.at_word("else") {
                return self.node(SyntaxKind::Branch, |p| {
                    p.bump();
                    p.acts();
                    p.goal(After::Arrow);
                });
            } else {
                return self.missing("another `if`, or `else` with what happens otherwise");
            }
        }
    }

    fn else_if(&mut self) {
        let span = self.span();
        let diagnostic = self.error(code::ELSE_IF, span, "a further branch begins with `if` alone");
        self.report(diagnostic.fix(span, ""));
    }
}
