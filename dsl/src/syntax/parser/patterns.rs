//! Patterns, and how a brace after a name is told apart.
//!
//! Leaves which variants exist to the checker. Invariant: telling apart looks at three tokens at most.

use super::Parser;
use super::recover::Items;
use crate::diag::catalogue::syntax as code;
use crate::syntax::kind::SyntaxKind;

impl Parser<'_> {
    /// Whether a pattern begins here, or what is written as one by habit.
    pub(super) fn at_pattern(&self) -> bool {
        self.at_catch_all() || self.after_type_path(0).is_some()
    }

    fn at_catch_all(&self) -> bool {
        self.at_word_in(&["_", "else", "default"])
    }

    /// `pattern ::= typepath fieldpat?`
    pub(super) fn pattern(&mut self) {
        self.node(SyntaxKind::Pattern, |p| {
            if p.at_catch_all() {
                let message = format!("`{}` matches nothing here: there is no catch-all", p.nth_text(0));
                let diagnostic = p.error(code::CATCH_ALL, p.span(), message);
                p.report(diagnostic.hint("name every variant that is left, one arm each"));
                return p.bump();
            }
            if p.after_type_path(0).is_none() {
                return p.missing("a variant");
            }
            p.type_path();
            if p.at(SyntaxKind::LBrace) && p.are_fields_at(0) {
                p.field_patterns();
            }
        });
    }

    /// `(LNAME ".")? UNAME ("." UNAME)*`: the token after it, or none if it does not stand here.
    pub(super) fn after_type_path(&self, ahead: usize) -> Option<usize> {
        let mut ahead = ahead;
        if self.nth(ahead) == SyntaxKind::Lower && self.nth(ahead + 1) == SyntaxKind::Dot {
            ahead += 2;
        }
        if self.nth(ahead) != SyntaxKind::Upper {
            return None;
        }
        // Two parts at most: a longer path is an access to a field that is written upper-case.
        let second = self.nth(ahead + 1) == SyntaxKind::Dot && self.nth(ahead + 2) == SyntaxKind::Upper;
        Some(if second { ahead + 3 } else { ahead + 1 })
    }

    /// Reads the path that `after_type_path` found.
    pub(super) fn type_path(&mut self) {
        let Some(length) = self.after_type_path(0) else { return };
        self.node(SyntaxKind::TypePath, |p| {
            for _ in 0..length {
                p.bump();
            }
        });
    }

    /// Whether the brace `ahead` opens fields (`{}`, `{ a, b }`, `{ a: … }`) and not arms or a block.
    pub(super) fn are_fields_at(&self, ahead: usize) -> bool {
        match self.nth(ahead + 1) {
            SyntaxKind::RBrace | SyntaxKind::StringOpen => true,
            SyntaxKind::Lower => {
                // `_ ->` is an arm, `dev.Text {` the pattern of one, `do f(x)` the body of a group.
                !matches!(
                    self.nth(ahead + 2),
                    SyntaxKind::Arrow | SyntaxKind::FatArrow | SyntaxKind::Dot | SyntaxKind::LParen
                )
            }
            _ => false,
        }
    }

    /// `fieldpat ::= "{" (fieldbind ("," fieldbind)* ","?)? "}"`
    pub(super) fn field_patterns(&mut self) {
        self.node(SyntaxKind::FieldPatList, |p| {
            p.list(SyntaxKind::LBrace, Items::Named("the name of a field"), Self::field_bind);
        });
    }

    /// `fieldbind ::= LNAME | FIELD ":" LNAME`
    fn field_bind(&mut self) {
        self.node(SyntaxKind::FieldBind, |p| {
            if p.nth(1) == SyntaxKind::Colon {
                p.field_name(SyntaxKind::NameRef);
                p.bump();
                p.variable("a variable");
            } else {
                p.variable("a variable");
            }
        });
    }
}
