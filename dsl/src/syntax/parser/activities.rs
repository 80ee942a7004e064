//! Activities and retry policies.
//!
//! Leaves which clauses fit together to the checker. Invariant: clauses are read in any order, and another
//! order than the grammar's is reported, so that a misplaced clause does not hide the rest.

use super::Parser;
use crate::diag::TextSpan;
use crate::diag::catalogue::syntax as code;
use crate::syntax::kind::SyntaxKind;

/// The clauses of an activity in their order.
const CLAUSES: &[(&str, SyntaxKind)] = &[
    ("raises", SyntaxKind::Raises),
    ("within", SyntaxKind::Within),
    ("in", SyntaxKind::InAll),
    ("silent", SyntaxKind::Silent),
    ("retry", SyntaxKind::RetryUse),
    ("costs", SyntaxKind::Costs),
    ("queue", SyntaxKind::Queue),
    ("effect", SyntaxKind::EffectClass),
    ("undo", SyntaxKind::Undo),
    ("unknown", SyntaxKind::UnknownHolds),
];

impl Parser<'_> {
    /// `activity ::= "activity" LNAME params ("->" type)? …`
    pub(super) fn activity(&mut self) {
        self.node(SyntaxKind::Activity, |p| {
            p.bump();
            let name = p.span();
            p.variable("an activity");
            p.params();
            if p.eat(SyntaxKind::Arrow) {
                p.type_ref();
            }
            p.activity_clauses(name);
        });
    }

    fn activity_clauses(&mut self, name: TextSpan) {
        let mut seen: Vec<SyntaxKind> = Vec::new();
        let mut complete = true;
        loop {
            let known = CLAUSES.iter().position(|(word, _)| self.at_word(word)).filter(|_| !self.at_decl());
            let Some(rank) = known else {
                if self.at_clause_end() {
                    break;
                }
                self.unexpected("a clause of the activity or the next declaration");
                self.skip(|p| CLAUSES.iter().any(|(word, _)| p.at_word(word)) || p.at_clause_end());
                // What follows may be another activity's whose beginning was lost.
                seen.clear();
                complete = false;
                continue;
            };
            let (word, kind) = CLAUSES[rank];
            self.check_clause_order(rank, &seen);
            seen.push(kind);
            self.node(kind, |p| p.activity_clause(word));
        }
        if complete {
            self.check_clauses_present(name, &seen);
        }
    }

    fn at_clause_end(&self) -> bool {
        let begins_decl = self.at_decl() || self.misspelt_decl().is_some();
        self.at_end()
            || self.at(SyntaxKind::RBrace)
            || begins_decl
            || (self.at_line_start() && self.at_item())
    }

    fn check_clause_order(&mut self, rank: usize, seen: &[SyntaxKind]) {
        let (word, kind) = CLAUSES[rank];
        let span = self.span();
        if seen.contains(&kind) {
            self.report(self.error(code::REPEATED, span, format!("`{word}` stands twice in this activity")));
            return;
        }
        let later = CLAUSES[rank..].iter().find(|(_, later)| seen.contains(later));
        if let Some((later, _)) = later {
            let message = format!("`{word}` stands before `{later}`");
            let order = "raises, within, in all, silent, retry, costs, queue, effect, undo, unknown";
            self.report(self.error(code::WRONG_ORDER, span, message).hint(format!("the order is: {order}")));
        }
    }

    fn check_clauses_present(&mut self, name: TextSpan, seen: &[SyntaxKind]) {
        if self.error_at == Some(self.pos) {
            return;
        }
        let needed = [
            (SyntaxKind::Within, "within", "how long may one attempt take? write `within 5m`"),
            (
                SyntaxKind::EffectClass,
                "effect",
                "write `effect pure`, `idempotent`, `once` or `from CATALOGUE`",
            ),
        ];
        for (kind, word, hint) in needed {
            if !seen.contains(&kind) {
                let message = format!("this activity has no `{word}`");
                let diagnostic = self.error(code::MISSING_CLAUSE, name, message);
                self.report(diagnostic.expected(format!("`{word}`")).hint(hint));
            }
        }
    }

    fn activity_clause(&mut self, word: &str) {
        self.bump();
        match word {
            "raises" => self.upper_refs("an error"),
            "within" | "silent" => self.duration(),
            "in" => {
                self.expect_word("all");
                self.duration();
            }
            "retry" => {
                self.upper_ref("a retry policy");
            }
            "costs" => self.cost(),
            "queue" => self.string_or_missing("the queue's name in quotes"),
            "effect" => self.effect_class(),
            "undo" => {
                self.lower_ref("an activity");
                self.eat_word("always");
            }
            "unknown" => {
                self.expect_word("holds");
            }
            word => unreachable!("the table of clauses knows the word {word}"),
        }
    }

    /// `UNAME ("," UNAME)*`
    pub(super) fn upper_refs(&mut self, what: &str) {
        self.upper_ref(what);
        while self.eat(SyntaxKind::Comma) {
            self.upper_ref(what);
        }
    }

    pub(super) fn duration(&mut self) {
        if self.at(SyntaxKind::Dur) {
            self.node(SyntaxKind::Literal, Self::bump);
        } else {
            self.missing("a duration such as `30s`, `5m` or `24h`");
        }
    }

    fn cost(&mut self) {
        self.expect(SyntaxKind::LtEq, "`<=` and a number");
        if matches!(self.kind(), SyntaxKind::Int | SyntaxKind::Number) {
            self.node(SyntaxKind::Literal, Self::bump);
        } else {
            self.missing("a number such as `0.40`");
        }
    }

    /// `class ::= "pure" | "idempotent" | "once" verify? | "from" LNAME verify?`
    fn effect_class(&mut self) {
        if self.eat_word("from") {
            self.lower_ref("a catalogue");
        } else if !(self.eat_word("pure") || self.eat_word("idempotent") || self.eat_word("once")) {
            return self.missing("`pure`, `idempotent`, `once` or `from CATALOGUE`");
        }
        if self.eat_word("verify") {
            self.lower_ref("an activity");
        }
    }

    /// `retry ::= "retry" UNAME "{" rrule+ ("then" "hold")? "}"`
    pub(super) fn retry_decl(&mut self) {
        self.node(SyntaxKind::RetryDecl, |p| {
            p.bump();
            p.upper_name("a retry policy");
            let opened = p.span();
            p.bump();
            if !p.at_word("on") {
                p.missing("a rule `on … up to n attempts wait …`");
            }
            while !p.at(SyntaxKind::RBrace) && !p.at_word("then") && !p.at_clause_end() {
                if p.at_word("on") {
                    p.retry_rule();
                } else {
                    p.unexpected("a rule `on …`, `then hold` or `}`");
                    p.skip(|p| p.at_word_in(&["on", "then"]) || p.at_clause_end());
                }
            }
            if p.eat_word("then") {
                p.expect_word("hold");
            }
            p.close(SyntaxKind::RBrace, opened);
        });
    }

    fn retry_rule(&mut self) {
        self.node(SyntaxKind::RetryRule, |p| {
            p.bump();
            p.outcome_names();
            p.expect_word("up");
            p.expect_word("to");
            p.integer("a number of attempts");
            p.expect_word("attempts");
            p.expect_word("wait");
            p.duration();
            if p.eat_word("doubling") {
                p.expect_word("to");
                p.duration();
            }
            if p.eat_word("hint") {
                p.field_name(SyntaxKind::NameRef);
            }
        });
    }

    pub(super) fn integer(&mut self, what: &str) {
        if self.at(SyntaxKind::Int) {
            self.node(SyntaxKind::Literal, Self::bump);
        } else {
            self.missing(what);
        }
    }
}
