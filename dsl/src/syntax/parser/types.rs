//! Types, fields, parameters, variants.
//!
//! Leaves which names are types to the checker. Invariant: types nest at most `NESTING_MAX` levels.

use super::Parser;
use super::recover::Items;
use crate::syntax::kind::SyntaxKind;

impl Parser<'_> {
    /// `type ::= (FIELD | (LNAME ".")? UNAME) ("<" type ">")? "?"?`
    pub(super) fn type_ref(&mut self) {
        self.nested(|p| p.node(SyntaxKind::Type, Self::type_parts));
    }

    fn type_parts(&mut self) {
        let is_name = matches!(self.kind(), SyntaxKind::Lower | SyntaxKind::Upper);
        if !is_name || self.at_block_start() {
            return self.missing("a type");
        }
        let qualified = self.at(SyntaxKind::Lower) && self.nth(1) == SyntaxKind::Dot;
        self.node(SyntaxKind::NameRef, Self::bump);
        if qualified {
            self.bump();
            self.upper_ref("a type");
        }
        if self.at(SyntaxKind::Lt) {
            let opened = self.span();
            self.bump();
            self.type_ref();
            if !self.eat(SyntaxKind::Gt) && !self.is_known_error() {
                let message = format!("expected `>`, found {}", self.found());
                let diagnostic = self.error(crate::diag::catalogue::syntax::UNCLOSED, self.span(), message);
                self.report(diagnostic.expected("`>`").related(opened, "the bracket was opened here"));
            }
        }
        self.eat(SyntaxKind::Question);
    }

    /// `fields ::= "{" (field ("," field)* ","?)? "}"`
    pub(super) fn fields(&mut self) {
        self.node(SyntaxKind::FieldList, |p| {
            p.list(SyntaxKind::LBrace, Items::Named("a field `name: type`"), Self::field);
        });
    }

    fn field(&mut self) {
        self.node(SyntaxKind::Field, |p| {
            p.field_name(SyntaxKind::Name);
            p.type_and_default();
        });
    }

    /// `params ::= "(" (param ("," param)* ","?)? ")"`
    pub(super) fn params(&mut self) {
        if !self.at(SyntaxKind::LParen) {
            return self.missing("parameters `(…)`");
        }
        self.node(SyntaxKind::ParamList, |p| {
            p.list(SyntaxKind::LParen, Items::Named("a parameter `name: type`"), Self::param);
        });
    }

    fn param(&mut self) {
        self.node(SyntaxKind::Param, |p| {
            p.variable("a parameter");
            p.type_and_default();
        });
    }

    fn type_and_default(&mut self) {
        if self.colon() {
            self.type_ref();
        }
        if self.eat(SyntaxKind::Eq) {
            self.expr();
        }
    }

    /// `variant ::= UNAME fields?`
    pub(super) fn variant(&mut self) {
        self.node(SyntaxKind::Variant, |p| {
            p.upper_name("a variant");
            if p.at(SyntaxKind::LBrace) {
                p.fields();
            }
        });
    }

    /// `variant ("|" variant)*`
    pub(super) fn variants(&mut self) {
        self.variant();
        while self.eat(SyntaxKind::Pipe) {
            self.variant();
        }
    }
}
