//! Where an arrow goes.
//!
//! Leaves whether the state exists to the checker. Invariant: the value after `end` never swallows what follows
//! the arrow; see the rules in the parser's header.

use super::Parser;
use crate::diag::TextSpan;
use crate::diag::catalogue::syntax as code;
use crate::limits::GOAL_SEARCH_TOKENS_MAX;
use crate::syntax::kind::SyntaxKind;

/// What the goal is the end of; decides what may follow it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    /// An arrow, a limit, the last branch: an arrow or an item follows.
    Arrow,
    /// An arrow that is taken again and again: it hardly leads away.
    Every,
    /// A branch of `choose`: `if` or `else` follows.
    Branch,
    /// An arm: a pattern follows.
    Arm,
}

impl Parser<'_> {
    /// `goal ::= "->" (place | "stay" | "end" expr? | "fail" expr)`
    pub(super) fn goal(&mut self, after: After) {
        self.node(SyntaxKind::Goal, |p| {
            if p.goal_arrow(after) {
                p.target(after);
            }
        });
    }

    /// Takes the arrow, or says what is wrong with it; whether a target follows.
    fn goal_arrow(&mut self, after: After) -> bool {
        if self.eat(SyntaxKind::Arrow) {
            return true;
        }
        if self.at(SyntaxKind::FatArrow) {
            let span = self.span();
            let diagnostic = self.error(code::WRONG_ARROW, span, "an arrow to a state is written `->`");
            self.report(diagnostic.fix(span, "->"));
            self.bump();
            return true;
        }
        if self.at_word_in(&["stay", "end", "fail"]) || (self.at(SyntaxKind::Upper) && !self.at_line_start())
        {
            let before = TextSpan::empty(self.span().start);
            let diagnostic = self.error(code::MISSING_GOAL, self.span(), "`->` is missing before the target");
            self.report(diagnostic.fix(before, "-> "));
            return true;
        }
        self.missing_goal(after);
        false
    }

    fn missing_goal(&mut self, after: After) {
        // What stands on the same line is in the way; a goal may still follow it.
        let in_the_way = !self.at_line_start() && !self.kind().is_closer() && !self.at_end();
        if in_the_way && self.goal_follows_on_line() {
            self.unexpected("`->` and where it goes");
            self.skip(|p| p.at(SyntaxKind::Arrow));
            self.node(SyntaxKind::Error, |p| {
                p.bump();
                p.target(After::Arrow);
            });
            return;
        }
        if self.is_known_error() {
            return;
        }
        let end = TextSpan::empty(self.previous_end());
        let diagnostic = self.error(code::MISSING_GOAL, end, "this arrow does not say where it goes");
        let diagnostic = diagnostic.expected("`-> State(…)`, `-> stay`, `-> end v` or `-> fail E`");
        self.report(match after {
            After::Every => diagnostic.fix(end, " -> stay"),
            After::Arrow | After::Branch | After::Arm => diagnostic.unsure_fix(end, " -> stay"),
        });
    }

    /// Whether `->` stands later on this line, before anything that begins another arrow.
    fn goal_follows_on_line(&self) -> bool {
        let mut ahead = 0;
        for _ in 0..GOAL_SEARCH_TOKENS_MAX {
            let Some(token) = self.solid.get(self.pos + ahead) else { return false };
            self.count_step();
            if token.first_on_line || self.nth_word_in(ahead, &["on", "after", "every"]) {
                return false;
            }
            match token.kind {
                SyntaxKind::Arrow => return true,
                SyntaxKind::RBrace | SyntaxKind::HoleClose => return false,
                _ => ahead = self.after_pair(ahead).unwrap_or(ahead + 1),
            }
        }
        false
    }

    fn target(&mut self, after: After) {
        if self.eat_word("stay") {
        } else if self.eat_word("end") {
            if self.value_follows(after) {
                self.expr();
            }
        } else if self.eat_word("fail") {
            self.expr();
        } else {
            self.place();
        }
    }

    /// `place ::= UNAME args?`
    pub(super) fn place(&mut self) {
        self.node(SyntaxKind::Place, |p| {
            if p.upper_ref("a state, `stay`, `end` or `fail`") && p.at(SyntaxKind::LParen) {
                p.args();
            }
        });
    }

    /// Whether the value of `end` stands here, and not what follows the arrow.
    fn value_follows(&self, after: After) -> bool {
        let ends_here = match after {
            After::Branch => self.at_word("if"),
            After::Arm => self.at_arm(),
            After::Arrow | After::Every => self.at_item() || self.at_decl() || self.at_test_step(),
        };
        !ends_here && self.at_expr()
    }

    /// Whether a pattern with its guard, acts or goal stands here: the next arm.
    fn at_arm(&self) -> bool {
        let Some(mut ahead) = self.after_type_path(0) else { return false };
        if self.nth(ahead) == SyntaxKind::LBrace && self.are_fields_at(ahead) {
            let Some(next) = self.after_pair(ahead) else { return false };
            ahead = next;
        }
        matches!(self.nth(ahead), SyntaxKind::Arrow | SyntaxKind::FatArrow)
            || self.nth_word_in(ahead, &["if", "set", "discard", "settle", "also", "emit"])
    }
}
