//! Editions, catalogues, imports, types, errors, functions, migrations.
//!
//! Leaves activities, flows and tests to their files. Invariant: called only where `at_decl` holds.

use super::Parser;
use super::recover::Items;
use crate::diag::catalogue::syntax as code;
use crate::syntax::kind::SyntaxKind;

impl Parser<'_> {
    /// `edition ::= "edition" INT`
    pub(super) fn edition(&mut self) {
        if self.pos > 0 {
            let diagnostic =
                self.error(code::MISPLACED, self.span(), "the edition is the first line of a file");
            self.report(diagnostic);
        }
        self.node(SyntaxKind::Edition, |p| {
            p.bump();
            p.bump();
        });
    }

    /// `use ::= "use" "tools" STRING "as" LNAME`
    pub(super) fn use_tools(&mut self) {
        self.node(SyntaxKind::Use, |p| {
            p.bump();
            p.bump();
            p.string_or_missing("the catalogue's file in quotes");
            p.expect_word("as");
            p.variable("a catalogue");
        });
    }

    /// `import ::= "use" "std"? STRING "{" (name ("," name)* ","?)? "}"`
    pub(super) fn import(&mut self) {
        self.node(SyntaxKind::Import, |p| {
            p.bump();
            p.eat_word("std");
            p.string_or_missing("the file in quotes");
            if !p.at(SyntaxKind::LBrace) {
                return p.missing("the names that are used, `{ A, b }`");
            }
            p.list(SyntaxKind::LBrace, Items::Named("a name"), Self::imported_name);
        });
    }

    fn imported_name(&mut self) {
        if matches!(self.kind(), SyntaxKind::Lower | SyntaxKind::Upper) {
            return self.node(SyntaxKind::NameRef, Self::bump);
        }
        self.missing("a name");
    }

    /// `typedecl ::= "type" UNAME fields | "type" UNAME ("with" fields)? "=" "|"? variant ("|" variant)*`
    pub(super) fn type_decl(&mut self) {
        self.node(SyntaxKind::TypeDecl, |p| {
            p.bump();
            p.upper_name("a type");
            if p.at(SyntaxKind::LBrace) {
                return p.fields();
            }
            if p.eat_word("with") {
                if p.at(SyntaxKind::LBrace) { p.fields() } else { p.missing("fields `{…}`") }
            }
            if p.expect(SyntaxKind::Eq, "fields `{…}` or `=` and variants") {
                p.eat(SyntaxKind::Pipe);
                p.variants();
            }
        });
    }

    /// `errordecl ::= "error" UNAME fields?`
    pub(super) fn error_decl(&mut self) {
        self.node(SyntaxKind::ErrorDecl, |p| {
            p.bump();
            p.upper_name("an error");
            if p.at(SyntaxKind::LBrace) {
                p.fields();
            }
        });
    }

    /// `fn ::= "fn" LNAME params "->" type "=" expr`
    pub(super) fn fn_decl(&mut self) {
        self.node(SyntaxKind::FnDecl, |p| {
            p.bump();
            p.variable("a function");
            p.params();
            if p.expect(SyntaxKind::Arrow, "`->` and the type of the result") {
                p.type_ref();
            }
            if p.expect(SyntaxKind::Eq, "`=` and an expression") {
                p.expr();
            }
        });
    }

    /// `migrate ::= "migrate" (UNAME ".")? UNAME ("." LNAME)? params ("set" assign ("," assign)*)? "->" place`
    pub(super) fn migrate(&mut self) {
        self.node(SyntaxKind::Migrate, |p| {
            p.bump();
            p.upper_ref("a state of the older version");
            if p.at(SyntaxKind::Dot) && p.nth(1) == SyntaxKind::Upper {
                p.bump();
                p.upper_ref("a state of the older version");
            }
            if p.eat(SyntaxKind::Dot) {
                p.lower_ref("a step");
            }
            p.params();
            if p.at_word("set") {
                p.set();
            }
            if p.expect(SyntaxKind::Arrow, "`->` and a state") {
                p.place();
            }
        });
    }
}
