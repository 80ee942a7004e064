//! Effects that wait for somebody: `await` and `ask`.
//!
//! Leaves which messages exist to the checker. Invariant: a wait without a bound is reported.

use super::Parser;
use crate::syntax::kind::SyntaxKind;

impl Parser<'_> {
    /// `await ::= "await" awaited ("," awaited)* limitt`
    pub(super) fn await_effect(&mut self) {
        self.node(SyntaxKind::Await, |p| {
            p.bump();
            p.awaited();
            while p.eat(SyntaxKind::Comma) {
                p.awaited();
            }
            p.needed_bound();
        });
    }

    /// `awaited ::= UNAME | "closed" | "ended" "(" expr ")"`
    fn awaited(&mut self) {
        self.node(SyntaxKind::Awaited, |p| {
            if p.eat_word("closed") {
                return;
            }
            if p.at_word("ended") && p.nth(1) == SyntaxKind::LParen {
                p.bump();
                let opened = p.span();
                p.bump();
                p.expr();
                return p.close(SyntaxKind::RParen, opened);
            }
            if p.at(SyntaxKind::Upper) {
                p.upper_ref("a message");
            } else {
                p.missing("a message, `closed` or `ended(handle)`");
            }
        });
    }

    /// `ask ::= "ask" expr ("show" expr "editable"?)? ("for" type)? "to" who ("and" who)* limitt`
    pub(super) fn ask(&mut self) {
        self.node(SyntaxKind::Ask, |p| {
            p.bump();
            p.expr();
            if p.at_word("show") {
                p.node(SyntaxKind::Show, |p| {
                    p.bump();
                    p.expr();
                    p.eat_word("editable");
                });
            }
            if p.eat_word("for") {
                p.type_ref();
            }
            if p.expect_word("to") {
                p.who();
                while p.eat_word("and") {
                    p.who();
                }
            }
            p.needed_bound();
        });
    }

    /// `who ::= (INT "of")? postfix`
    fn who(&mut self) {
        self.node(SyntaxKind::Who, |p| {
            if p.at(SyntaxKind::Int) && p.nth_word(1, "of") {
                p.node(SyntaxKind::Literal, Self::bump);
                p.bump();
            }
            p.postfix_or_missing("who is asked: a role such as \"owner\"");
        });
    }
}
