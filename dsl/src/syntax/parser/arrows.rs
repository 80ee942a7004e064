//! Arrows: outcomes, guards, acts, arms.
//!
//! Leaves where arrows go to `goals`. Invariant: acts are read in any order, and another order than the
//! grammar's is reported.

use super::Parser;
use super::goals::After;
use crate::diag::catalogue::syntax as code;
use crate::syntax::kind::SyntaxKind;

/// The acts of an arrow in their order.
const ACTS: &[&str] = &["set", "discard", "settle", "also", "emit"];

impl Parser<'_> {
    /// Whether an arrow begins here.
    pub(super) fn at_arrow(&self) -> bool {
        self.at_word_in(&["on", "after", "at", "every"])
    }

    /// `arrow ::= "on" outcomes guard? acts (goal | arms) | ("after" | "at" | "every") expr acts goal`
    pub(super) fn arrow(&mut self) {
        if !self.at_word("on") {
            let after = if self.at_word("every") { After::Every } else { After::Arrow };
            return self.node(SyntaxKind::TimerArrow, |p| {
                p.bump();
                p.expr();
                p.acts();
                p.goal(after);
            });
        }
        self.node(SyntaxKind::OnArrow, |p| {
            p.bump();
            p.outcomes();
            p.guard();
            p.acts();
            if p.at(SyntaxKind::LBrace) { p.arms() } else { p.goal(After::Arrow) }
        });
    }

    /// `outcomes ::= outname ("," outname)* (fieldpat | "as" LNAME)?`
    pub(super) fn outcomes(&mut self) {
        self.node(SyntaxKind::Outcomes, |p| {
            p.outcome_names();
            if p.at(SyntaxKind::LBrace) && p.are_fields_at(0) {
                p.field_patterns();
            } else {
                p.binding();
            }
        });
    }

    pub(super) fn outcome_names(&mut self) {
        self.outcome_name();
        while self.eat(SyntaxKind::Comma) {
            self.outcome_name();
        }
    }

    /// `outname ::= (LNAME ".")? (UNAME | FIELD)`
    fn outcome_name(&mut self) {
        let is_name = matches!(self.kind(), SyntaxKind::Upper | SyntaxKind::Lower);
        if !is_name || self.at_word_in(&["on", "if", "set", "emit", "as"]) {
            return self.missing("an outcome such as `ok`, `timeout` or the name of an error");
        }
        self.node(SyntaxKind::OutcomeName, |p| {
            let qualified = p.at(SyntaxKind::Lower) && p.nth(1) == SyntaxKind::Dot;
            p.node(SyntaxKind::NameRef, Self::bump);
            if qualified {
                p.bump();
                match p.kind() {
                    SyntaxKind::Upper | SyntaxKind::Lower => p.node(SyntaxKind::NameRef, Self::bump),
                    _ => p.missing("an outcome"),
                }
            }
        });
    }

    /// `guard ::= "if" cond`, if it is there.
    pub(super) fn guard(&mut self) {
        if self.at_word("if") {
            self.node(SyntaxKind::Guard, |p| {
                p.bump();
                p.cond();
            });
        }
    }

    /// `cond ::= expr ("as" LNAME)?`
    pub(super) fn cond(&mut self) {
        self.node(SyntaxKind::Cond, |p| {
            p.expr();
            p.binding();
        });
    }

    /// `arms ::= "{" (pattern guard? acts goal)+ "}"`
    pub(super) fn arms(&mut self) {
        self.node(SyntaxKind::Arms, |p| {
            let opened = p.span();
            p.bump();
            p.among_arms += 1;
            if p.at(SyntaxKind::RBrace) {
                p.missing("an arm `Variant { field } -> State`");
            }
            while !p.at(SyntaxKind::RBrace) && !p.at_end() && !p.at_word("on") {
                if p.at_pattern() {
                    p.node(SyntaxKind::Arm, |p| {
                        p.pattern();
                        p.guard();
                        p.acts();
                        p.goal(After::Arm);
                    });
                } else {
                    p.unexpected("an arm `Variant { field } -> State`");
                    p.skip(|p| p.at(SyntaxKind::Upper) || p.at_word("on"));
                }
                p.eat_separator();
            }
            p.among_arms -= 1;
            p.close(SyntaxKind::RBrace, opened);
        });
    }

    /// A comma after an arm is a habit from other languages.
    fn eat_separator(&mut self) {
        if self.at(SyntaxKind::Comma) {
            let span = self.span();
            let diagnostic = self.error(code::UNEXPECTED, span, "arms are not separated by commas");
            self.report(diagnostic.fix(span, ""));
            self.bump();
        }
    }

    /// `acts ::= set? discard? settle* also* emit*`
    pub(super) fn acts(&mut self) {
        let mut last = 0;
        loop {
            if self.at_word("if") {
                // In `choose`, an `if` here begins the next branch; then the goal is missing, not the order wrong.
                if last == 0 || self.at_line_start() {
                    return;
                }
                self.late_guard();
                continue;
            }
            let Some(rank) = ACTS.iter().position(|word| self.at_word(word)) else { return };
            let rank = rank + 1;
            if !self.at_act(rank - 1) {
                return;
            }
            self.check_act_order(rank, last);
            last = last.max(rank);
            self.act(rank - 1);
        }
    }

    /// Whether the word is the act and not a variable that is called like it.
    fn at_act(&self, rank: usize) -> bool {
        match ACTS.get(rank) {
            Some(&"discard") => self.nth(1) == SyntaxKind::Upper,
            Some(&"settle") => self.nth(1) == SyntaxKind::Lower,
            Some(&"also") => self.nth_word(1, "do"),
            Some(_) => true,
            None => false,
        }
    }

    fn late_guard(&mut self) {
        let diagnostic = self.error(code::WRONG_ORDER, self.span(), "the guard stands before the acts");
        self.report(
            diagnostic.hint(
                "the order is: on X {fields} if cond set … discard … settle … also do … emit … -> target",
            ),
        );
        self.guard();
    }

    fn check_act_order(&mut self, rank: usize, last: usize) {
        let word = ACTS[rank - 1];
        if rank < last {
            let message = format!("`{word}` stands before `{}`", ACTS[last - 1]);
            let diagnostic = self.error(code::WRONG_ORDER, self.span(), message);
            self.report(diagnostic.hint("the order is: set, discard, settle, also do, emit"));
        } else if rank == last && matches!(word, "set" | "discard") {
            let before = self.previous_end();
            let span = self.span();
            let message = format!("`{word}` stands once, with commas between its parts");
            let fix = crate::diag::TextSpan::new(before, span.end);
            self.report(self.error(code::REPEATED, span, message).fix(fix, ","));
        }
    }

    fn act(&mut self, rank: usize) {
        match ACTS[rank] {
            "set" => self.set(),
            "discard" => self.node(SyntaxKind::Discard, |p| {
                p.bump();
                p.upper_refs("a message");
            }),
            "settle" => self.node(SyntaxKind::Settle, |p| {
                p.bump();
                p.lower_ref("a doubt");
                p.expect_word("as");
                p.expr();
            }),
            "also" => self.node(SyntaxKind::AlsoDo, |p| {
                p.bump();
                p.bump();
                p.lower_ref("an activity");
                p.args_or_missing();
            }),
            "emit" => self.node(SyntaxKind::Emit, |p| {
                p.bump();
                p.expr();
            }),
            word => unreachable!("the table of acts knows the word {word}"),
        }
    }

    /// `"set" assign ("," assign)*`
    pub(super) fn set(&mut self) {
        self.node(SyntaxKind::SetAct, |p| {
            p.bump();
            p.assigns();
        });
    }

    fn assigns(&mut self) {
        self.assign();
        loop {
            let next_assign = self.at(SyntaxKind::Lower)
                && matches!(self.nth(1), SyntaxKind::Eq | SyntaxKind::PlusEq | SyntaxKind::MinusEq);
            if next_assign {
                self.missing_comma();
            } else if !self.eat(SyntaxKind::Comma) {
                return;
            }
            self.assign();
        }
    }

    /// `assign ::= LNAME ("=" | "+=" | "-=") expr`
    fn assign(&mut self) {
        self.node(SyntaxKind::Assign, |p| {
            p.lower_ref("flow data");
            match p.kind() {
                SyntaxKind::Eq | SyntaxKind::PlusEq | SyntaxKind::MinusEq => p.bump(),
                SyntaxKind::EqEq => {
                    let span = p.span();
                    let diagnostic = p.error(code::SINGLE_EQUALS, span, "`set` gives a value with `=`");
                    p.report(diagnostic.fix(span, "="));
                    p.bump();
                }
                _ => return p.missing("`=`, `+=` or `-=`"),
            }
            p.expr();
        });
    }
}
