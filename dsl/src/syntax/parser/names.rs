//! Names: of things that are declared or bound, and of things that are used.
//!
//! Leaves what a name stands for to the checker. Invariant: a name in the wrong case is still read as a name,
//! so one slip costs one diagnostic.

use super::Parser;
use crate::diag::catalogue::syntax as code;
use crate::syntax::kind::SyntaxKind;
use crate::syntax::words;

/// How a name begins.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Case {
    Upper,
    Lower,
}

impl Parser<'_> {
    /// The name of a variable, parameter, activity or function.
    pub(super) fn variable(&mut self, what: &str) -> bool {
        if self.at(SyntaxKind::Lower) && words::is_reserved(self.nth_text(0)) && !self.at_line_start() {
            let word = self.nth_text(0);
            let message = format!("`{word}` is a reserved word and cannot name {what}");
            let diagnostic = self.error(code::RESERVED_NAME, self.span(), message);
            self.report(diagnostic.hint(format!("choose another name, such as `{word}_value`")));
            self.node(SyntaxKind::Name, Self::bump);
            return true;
        }
        self.name(SyntaxKind::Name, Case::Lower, what)
    }

    /// The name of a field: any word.
    pub(super) fn field_name(&mut self, node: SyntaxKind) -> bool {
        if self.at(SyntaxKind::StringOpen) {
            self.quoted_field();
            return true;
        }
        self.name(node, Case::Lower, "the name of a field")
    }

    /// The name of a type, variant, flow, state, message or error that is declared.
    pub(super) fn upper_name(&mut self, what: &str) -> bool {
        self.name(SyntaxKind::Name, Case::Upper, what)
    }

    /// An upper-case name that is used.
    pub(super) fn upper_ref(&mut self, what: &str) -> bool {
        self.name(SyntaxKind::NameRef, Case::Upper, what)
    }

    /// A lower-case name that is used.
    pub(super) fn lower_ref(&mut self, what: &str) -> bool {
        self.name(SyntaxKind::NameRef, Case::Lower, what)
    }

    /// `as name`.
    pub(super) fn binding(&mut self) {
        if self.at_word("as") {
            self.node(SyntaxKind::Binding, |p| {
                p.bump();
                p.variable("a variable");
            });
        }
    }

    pub(super) fn name(&mut self, node: SyntaxKind, case: Case, what: &str) -> bool {
        let (right, wrong) = match case {
            Case::Upper => (SyntaxKind::Upper, SyntaxKind::Lower),
            Case::Lower => (SyntaxKind::Lower, SyntaxKind::Upper),
        };
        if self.at(right) {
            self.node(node, Self::bump);
            return true;
        }
        // A keyword is no misspelt name: it belongs to what follows.
        let is_keyword = words::is_reserved(self.nth_text(0)) || self.at_block_start();
        if self.at(wrong) && !is_keyword && !self.at_line_start() {
            self.wrong_case(case, what);
            self.node(node, Self::bump);
            return true;
        }
        self.missing(what);
        false
    }

    fn wrong_case(&mut self, case: Case, what: &str) {
        let word = self.nth_text(0);
        let (better, rule) = match case {
            Case::Upper => (words::to_upper_name(word), "an upper-case letter"),
            Case::Lower => (words::to_lower_name(word), "a lower-case letter"),
        };
        let span = self.span();
        let message = format!("{what} begins with {rule}");
        let diagnostic = self.error(code::BAD_NAME, span, message);
        self.report(if better.is_empty() { diagnostic } else { diagnostic.unsure_fix(span, better) });
    }
}
