//! Flows, their clauses and their items.
//!
//! Leaves arrows and effects to their files. Invariant: a flow whose `}` is missing ends before the next
//! declaration, a state before the next item.

use super::Parser;
use super::goals::After;
use crate::diag::catalogue::syntax as code;
use crate::syntax::kind::SyntaxKind;

/// The clauses of a flow in their order.
const CLAUSES: &[(&str, SyntaxKind)] =
    &[("raises", SyntaxKind::Raises), ("emits", SyntaxKind::Emits), ("version", SyntaxKind::Version)];

impl Parser<'_> {
    /// `flow ::= "saga"? "flow" UNAME params ("->" result)? … "{" item* "}"`
    pub(super) fn flow(&mut self) {
        self.node(SyntaxKind::Flow, |p| {
            p.eat_word("saga");
            p.bump();
            p.upper_name("a flow");
            p.params();
            if p.eat(SyntaxKind::Arrow) {
                p.flow_result();
            }
            p.flow_clauses();
            p.flow_body();
        });
    }

    /// `result ::= type | variant ("|" variant)+ | UNAME fields`
    fn flow_result(&mut self) {
        let is_upper = self.at(SyntaxKind::Upper);
        let with_fields = is_upper && self.nth(1) == SyntaxKind::LBrace && self.are_result_fields();
        let after = if with_fields { self.after_pair(1) } else { Some(1) };
        let several = is_upper && after.is_some_and(|ahead| self.nth(ahead) == SyntaxKind::Pipe);
        self.node(SyntaxKind::FlowResult, |p| {
            if with_fields || several {
                p.variants_of_result();
            } else {
                p.type_ref();
            }
        });
    }

    fn variants_of_result(&mut self) {
        loop {
            self.node(SyntaxKind::Variant, |p| {
                p.upper_name("a variant");
                if p.at(SyntaxKind::LBrace) && p.result_fields_at(0) {
                    p.fields();
                }
            });
            if !self.eat(SyntaxKind::Pipe) {
                break;
            }
        }
    }

    fn are_result_fields(&self) -> bool {
        self.result_fields_at(1)
    }

    /// Whether the brace `ahead` opens fields of a result and not the body of the flow.
    fn result_fields_at(&self, ahead: usize) -> bool {
        match self.nth(ahead + 1) {
            SyntaxKind::Lower => self.nth(ahead + 2) == SyntaxKind::Colon,
            SyntaxKind::RBrace => {
                let next = ahead + 2;
                matches!(self.nth(next), SyntaxKind::Pipe | SyntaxKind::LBrace)
                    || CLAUSES.iter().any(|(word, _)| self.nth_word(next, word))
            }
            _ => false,
        }
    }

    fn flow_clauses(&mut self) {
        let mut seen: Vec<SyntaxKind> = Vec::new();
        while let Some(rank) = CLAUSES.iter().position(|(word, _)| self.at_word(word)) {
            let (word, kind) = CLAUSES[rank];
            if seen.contains(&kind) {
                let message = format!("`{word}` stands twice in this flow");
                self.report(self.error(code::REPEATED, self.span(), message));
            } else if let Some((later, _)) = CLAUSES[rank..].iter().find(|(_, later)| seen.contains(later)) {
                let message = format!("`{word}` stands before `{later}`");
                self.report(self.error(code::WRONG_ORDER, self.span(), message));
            }
            seen.push(kind);
            self.node(kind, |p| {
                p.bump();
                match kind {
                    SyntaxKind::Raises => p.upper_refs("an error"),
                    SyntaxKind::Emits => p.type_ref(),
                    _ => p.integer("the number of the version"),
                }
            });
        }
    }

    fn flow_body(&mut self) {
        let opened = self.span();
        if !self.expect(SyntaxKind::LBrace, "`{`, the body of the flow") {
            // Without its brace, the items still belong here if they follow.
            if !self.at_item() {
                return;
            }
        }
        loop {
            if self.at(SyntaxKind::RBrace) || self.at_end() {
                break;
            } else if self.at_item() || self.at_arrow() {
                self.item();
            } else if self.at_line_start() && self.at_decl() {
                break;
            } else if self.at_word("start") && self.nth(1) == SyntaxKind::Lower {
                // The state's name is in the wrong case.
                self.start_item();
            } else if let Some(word) = self.misspelt_item() {
                self.misspelt(word);
                self.item_of(word);
            } else {
                let items = "an item of the flow: `message`, `data`, `limit`, `on`, `start` or `state`";
                let is_saga = self.at_word("saga");
                self.unexpected(if is_saga { "`saga` before the word `flow`" } else { items });
                self.skip(|p| p.at_line_start() && (p.at_item() || p.at_arrow() || p.at_decl()));
            }
        }
        self.close(SyntaxKind::RBrace, opened);
    }

    /// One item; called where `at_item` or `at_arrow` holds.
    pub(super) fn item(&mut self) {
        self.item_of(self.nth_text(0));
    }

    /// The word that begins an item if the one here is a slip of it.
    fn misspelt_item(&self) -> Option<&'static str> {
        if self.nth(1) != SyntaxKind::Upper {
            return None;
        }
        let after_params = if self.nth(2) == SyntaxKind::LParen { self.after_pair(2) } else { Some(2) };
        if after_params.is_some_and(|ahead| self.nth(ahead) == SyntaxKind::LBrace) {
            self.slip_of(&["message", "state"])
        } else {
            self.slip_of(&["message", "start"])
        }
    }

    /// The word that begins an effect if the one here is a slip of it.
    fn misspelt_effect(&self) -> Option<&'static str> {
        match self.nth(1) {
            SyntaxKind::Upper => self.slip_of(&["await", "spawn"]),
            SyntaxKind::Lower => self.slip_of(&["each", "choose"]),
            SyntaxKind::LBrace => self.slip_of(&["steps", "parallel"]),
            _ => None,
        }
    }

    fn item_of(&mut self, word: &str) {
        match word {
            "message" => self.message(),
            "data" => self.data(),
            "limit" => self.limit(),
            "start" => self.start_item(),
            "state" => self.state(),
            "on" if self.nth_word(1, "cancel") && self.nth_word(2, "within") => self.on_cancel(),
            _ => self.arrow(),
        }
    }

    fn message(&mut self) {
        self.node(SyntaxKind::Message, |p| {
            p.bump();
            p.upper_name("a message");
            if p.at(SyntaxKind::LBrace) {
                p.fields();
            }
            p.eat_word("now");
        });
    }

    fn data(&mut self) {
        self.node(SyntaxKind::Data, |p| {
            p.bump();
            p.variable("flow data");
            if p.colon() {
                p.type_ref();
            }
            if p.expect(SyntaxKind::Eq, "`=` and the first value") {
                p.expr();
            }
        });
    }

    /// `limit ::= "limit" measure "<=" expr "else" acts goal`
    fn limit(&mut self) {
        self.node(SyntaxKind::Limit, |p| {
            p.bump();
            p.node(SyntaxKind::Measure, Self::measure);
            if p.expect(SyntaxKind::LtEq, "`<=` and the limit") {
                p.expr();
            }
            p.expect_word("else");
            p.acts();
            p.goal(After::Arrow);
        });
    }

    /// `measure ::= "visits" "(" UNAME ")" ("since" UNAME)? | LNAME`
    fn measure(&mut self) {
        if !(self.at_word("visits") && self.nth(1) == SyntaxKind::LParen) {
            self.lower_ref("a counter, `visits(State)`, `cost` or `age`");
            return;
        }
        self.bump();
        let opened = self.span();
        self.bump();
        self.upper_ref("a state");
        self.close(SyntaxKind::RParen, opened);
        if self.eat_word("since") {
            self.upper_ref("a state");
        }
    }

    fn on_cancel(&mut self) {
        self.node(SyntaxKind::OnCancel, |p| {
            p.bump();
            p.bump();
            p.bump();
            p.duration();
            p.goal(After::Arrow);
        });
    }

    fn start_item(&mut self) {
        self.node(SyntaxKind::Start, |p| {
            p.bump();
            p.place();
        });
    }

    /// `state ::= "state" UNAME ("was" UNAME)? params? "{" effect? arrow* "}"`
    fn state(&mut self) {
        self.node(SyntaxKind::State, |p| {
            p.bump();
            p.upper_name("a state");
            if p.eat_word("was") {
                p.upper_ref("the state's old name");
            }
            if p.at(SyntaxKind::LParen) {
                p.params();
            }
            p.state_body();
        });
    }

    fn state_body(&mut self) {
        let opened = self.span();
        if !self.expect(SyntaxKind::LBrace, "`{`, the body of the state") && !self.at_effect() {
            return;
        }
        let first = self.pos;
        let mut stopped = false;
        while !stopped && !self.at(SyntaxKind::RBrace) && !self.at_end() {
            if self.at_effect() {
                if self.pos > first {
                    self.second_effect();
                }
                self.effect();
            } else if self.at_arrow() {
                self.arrow();
            } else if self.at_item() || (self.at_line_start() && self.at_decl()) {
                stopped = true;
            } else if self.misspelt_item().is_some() {
                // The item is the flow's, which reports the word.
                stopped = true;
            } else if let Some(word) = self.misspelt_effect() {
                self.misspelt(word);
                self.effect_of(word);
            } else {
                self.unexpected("an arrow: `on`, `after`, `at` or `every`");
                self.skip(|p| p.at_arrow() || p.at_item() || (p.at_line_start() && p.at_decl()));
            }
        }
        self.close(SyntaxKind::RBrace, opened);
    }

    fn second_effect(&mut self) {
        if self.is_known_error() {
            return;
        }
        let word = self.nth_text(0);
        let message = format!("`{word}` is not the first thing in its state");
        let diagnostic = self.error(code::SECOND_EFFECT, self.span(), message);
        self.report(diagnostic.hint("a state has one effect and then its arrows; go on in another state"));
    }
}
