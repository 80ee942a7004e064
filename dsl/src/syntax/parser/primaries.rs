//! Operands: literals, names, calls, values built with braces, lists, maps, texts with holes.
//!
//! Leaves operators to `exprs`. Invariant: called where `at_expr` holds, so at least one token is taken.

use super::Parser;
use super::recover::Items;
use crate::diag::TextSpan;
use crate::diag::catalogue::syntax as code;
use crate::syntax::kind::SyntaxKind;
use crate::syntax::words;

impl Parser<'_> {
    /// A postfix expression where the grammar wants one and no operators.
    pub(super) fn postfix_or_missing(&mut self, what: &str) {
        if !self.at_expr() || self.at_word_in(&["if", "match", "not"]) || self.at(SyntaxKind::LBrace) {
            return self.missing(what);
        }
        self.nested(|p| {
            let outer = std::mem::replace(&mut p.deepest, p.depth);
            p.postfix();
            p.deepest = p.deepest.max(outer);
        });
    }

    /// `postfix ::= primary ("." FIELD args? | "[" expr "]")*`
    pub(super) fn postfix(&mut self) {
        let start = self.checkpoint();
        let from = self.span().start;
        self.primary();
        loop {
            let is_access = matches!(self.kind(), SyntaxKind::Dot | SyntaxKind::LBrack);
            if !is_access || !self.goes_deeper() {
                return;
            }
            if self.at(SyntaxKind::LBrack) {
                self.node_from(start, SyntaxKind::IndexExpr, |p| {
                    let opened = p.span();
                    p.bump();
                    p.expr();
                    p.close_or_skip(SyntaxKind::RBrack, opened);
                });
            } else {
                self.access(start, from);
            }
        }
    }

    fn access(&mut self, start: rowan::Checkpoint, from: u32) {
        let value = TextSpan::new(from, self.previous_end());
        self.node_from(start, SyntaxKind::FieldExpr, |p| {
            p.bump();
            let field = p.nth_text(0);
            p.field_name(SyntaxKind::NameRef);
            if !p.at(SyntaxKind::LParen) {
                return;
            }
            let asks_length = words::is_length(field) && p.nth(1) == SyntaxKind::RParen;
            p.args();
            if asks_length {
                let whole = TextSpan::new(from, p.previous_end());
                let message = format!("`.{field}()` is written `size(…)`");
                let diagnostic = p.error(code::LENGTH, whole, message);
                p.report(diagnostic.fix(whole, format!("size({})", value.of(p.text))));
            }
        });
    }

    fn primary(&mut self) {
        match self.kind() {
            SyntaxKind::Int | SyntaxKind::Number | SyntaxKind::Dur => {
                self.node(SyntaxKind::Literal, Self::bump);
            }
            SyntaxKind::StringOpen => self.string(),
            SyntaxKind::Upper => self.construct(),
            SyntaxKind::Lower => self.lower_primary(),
            SyntaxKind::LParen => self.paren(),
            SyntaxKind::LBrack => self.node(SyntaxKind::List, |p| {
                p.list_or_comprehension(SyntaxKind::LBrack, "a value", Self::expr);
            }),
            SyntaxKind::LBrace => self.bare_map(),
            _ => self.missing("an expression"),
        }
    }

    fn lower_primary(&mut self) {
        let word = self.nth_text(0);
        let called = self.nth(1) == SyntaxKind::LParen;
        if matches!(word, "true" | "false" | "none" | "nothing") {
            self.node(SyntaxKind::Literal, Self::bump);
        } else if word == "map" && self.nth(1) == SyntaxKind::LBrace {
            self.node(SyntaxKind::Map, |p| {
                p.bump();
                p.list_or_comprehension(SyntaxKind::LBrace, "an entry `key: value`", Self::map_entry);
            });
        } else if words::is_null(word) && !called {
            self.null();
        } else if words::is_reserved(word) {
            self.unexpected("an expression");
            self.node(SyntaxKind::Error, Self::bump);
        } else if self.after_type_path(0).is_some() {
            self.construct();
        } else if called {
            self.node(SyntaxKind::Call, |p| {
                p.node(SyntaxKind::NameRef, Self::bump);
                p.args();
            });
        } else {
            self.node(SyntaxKind::NameExpr, |p| p.node(SyntaxKind::NameRef, Self::bump));
        }
    }

    fn paren(&mut self) {
        self.node(SyntaxKind::Paren, |p| {
            let opened = p.span();
            p.bump();
            p.expr();
            p.close_or_skip(SyntaxKind::RParen, opened);
        });
    }

    /// Closes a bracket around one expression; what else stands in it is skipped.
    fn close_or_skip(&mut self, close: SyntaxKind, opened: TextSpan) {
        if !self.at(close) && !self.kind().is_closer() && !self.at_end() && !self.at_list_stop() {
            self.unexpected(if close == SyntaxKind::RParen { "`)`" } else { "`]`" });
            self.skip(|p| p.kind().is_closer() || p.at_list_stop());
        }
        self.close(close, opened);
    }

    /// `construct ::= typepath ("{" (init ("," init)* ","?)? "}")?`
    pub(super) fn construct(&mut self) {
        self.node(SyntaxKind::Construct, |p| {
            p.type_path();
            if p.at(SyntaxKind::LBrace) && p.are_fields_at(0) {
                p.inits();
            } else if p.at(SyntaxKind::LParen) {
                let opened = p.span();
                p.node(SyntaxKind::Error, Self::args);
                let span = opened.cover(TextSpan::empty(p.previous_end()));
                let diagnostic = p.error(code::CALLED_CONSTRUCTOR, span, "a value is built with braces");
                p.report(diagnostic.expected("`{ field: value }`"));
            }
        });
    }

    /// `"{" (init ("," init)* ","?)? "}"`
    pub(super) fn inits(&mut self) {
        self.node(SyntaxKind::InitList, |p| {
            p.list(SyntaxKind::LBrace, Items::Named("a field `name: value`"), Self::init);
        });
    }

    /// `init ::= FIELD (":" expr)?`
    fn init(&mut self) {
        self.node(SyntaxKind::Init, |p| {
            p.field_name(SyntaxKind::NameRef);
            if matches!(p.kind(), SyntaxKind::Colon | SyntaxKind::Eq) && p.colon() {
                p.expr();
            }
        });
    }

    pub(super) fn quoted_field(&mut self) {
        let from = self.span();
        self.node(SyntaxKind::Error, Self::string);
        let span = from.cover(TextSpan::empty(self.previous_end()));
        let name = span.of(self.text).trim_matches('"');
        let diagnostic = self.error(code::QUOTED_FIELD, span, "the names of fields have no quotes");
        let is_name = !name.is_empty()
            && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
        self.report(if is_name { diagnostic.fix(span, name) } else { diagnostic });
    }

    fn bare_map(&mut self) {
        let brace = self.span();
        let diagnostic = self.error(code::BARE_MAP, brace, "a map begins with the word `map`");
        let before = TextSpan::empty(brace.start);
        self.report(diagnostic.fix(before, "map "));
        self.node(SyntaxKind::Map, |p| {
            p.list_or_comprehension(SyntaxKind::LBrace, "an entry `key: value`", Self::map_entry);
        });
    }

    fn map_entry(&mut self) {
        self.node(SyntaxKind::MapEntry, |p| {
            p.expr();
            if p.colon() {
                p.expr();
            }
        });
    }

    /// `args ::= "(" (arg ("," arg)* ","?)? ")" | "(" expr forin ")"`
    pub(super) fn args(&mut self) {
        self.node(SyntaxKind::ArgList, |p| {
            p.list_or_comprehension(SyntaxKind::LParen, "an argument", Self::arg);
        });
    }

    /// `arg ::= (FIELD ":")? expr`
    fn arg(&mut self) {
        self.node(SyntaxKind::Arg, |p| {
            if p.at(SyntaxKind::Lower) && matches!(p.nth(1), SyntaxKind::Colon | SyntaxKind::Eq) {
                p.field_name(SyntaxKind::NameRef);
                p.colon();
            }
            p.expr();
        });
    }

    /// A list whose first part may be followed by `for`.
    fn list_or_comprehension(&mut self, open: SyntaxKind, what: &'static str, part: impl Fn(&mut Self)) {
        let mut first = true;
        self.list(open, Items::Values(what), |p| {
            part(p);
            if p.at_word("for") && std::mem::replace(&mut first, false) {
                p.for_in();
            }
            first = false;
        });
    }

    /// `forin ::= "for" LNAME ("," LNAME)? "in" expr ("if" expr)?`
    fn for_in(&mut self) {
        self.node(SyntaxKind::ForIn, |p| {
            p.bump();
            p.loop_names();
            if p.expect_word("in") {
                p.expr();
            }
            if p.eat_word("if") {
                p.expr();
            }
        });
    }

    pub(super) fn string_or_missing(&mut self, what: &str) {
        if self.at(SyntaxKind::StringOpen) { self.string() } else { self.missing(what) }
    }

    /// A text; the lexer has made sure that it and its holes are closed.
    pub(super) fn string(&mut self) {
        self.node(SyntaxKind::StringExpr, |p| {
            p.bump();
            loop {
                match p.kind() {
                    SyntaxKind::StringText | SyntaxKind::StringEscape => p.bump(),
                    SyntaxKind::HoleOpen => p.hole(),
                    _ => break,
                }
            }
            let was_closed = !p.span().is_empty();
            p.eat(SyntaxKind::StringClose);
            if !was_closed {
                // The lexer has reported it; what is missing behind it was swallowed by the text.
                p.error_at = Some(p.pos);
            }
        });
    }

    fn hole(&mut self) {
        let end =
            self.solid.get(self.pos).and_then(|token| token.partner).map_or(self.pos, |end| end as usize);
        // The lexer closes a forgotten hole by an empty token and has reported it.
        let was_closed = self.solid.get(end).is_some_and(|token| token.end > token.start);
        if !was_closed {
            self.error_at = Some(self.pos + 1);
        }
        self.node(SyntaxKind::Hole, |p| {
            p.bump();
            let arms = std::mem::take(&mut p.among_arms);
            p.expr();
            p.among_arms = arms;
            if p.pos < end {
                if was_closed {
                    p.unexpected("`}`, the end of the expression in the text");
                }
                p.node(SyntaxKind::Error, |p| {
                    while p.pos < end {
                        p.bump();
                    }
                });
            }
            p.eat(SyntaxKind::HoleClose);
        });
    }
}
