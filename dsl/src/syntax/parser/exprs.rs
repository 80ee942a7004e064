//! Expressions: operators, `if`, `match`.
//!
//! Binary operators are read by precedence climbing. Leaves operands to `primaries` and types to the checker.
//! Invariant: the tree is at most `NESTING_MAX` expressions deep, also where operators lean to the left.

use super::Parser;
use crate::diag::catalogue::syntax as code;
use crate::diag::{Code, TextSpan};
use crate::syntax::kind::SyntaxKind;
use crate::syntax::words;

/// How strongly operators bind, weakest first.
mod power {
    pub(super) const OR: u8 = 1;
    pub(super) const AND: u8 = 2;
    pub(super) const NOT: u8 = 3;
    pub(super) const COMPARE: u8 = 4;
    pub(super) const COALESCE: u8 = 5;
    pub(super) const SUM: u8 = 6;
    pub(super) const PRODUCT: u8 = 7;
    pub(super) const UNARY: u8 = 8;
}

/// Reserved words that no expression begins with.
const NOT_EXPR: &[&str] = &[
    "then", "else", "and", "or", "in", "is", "as", "for", "on", "after", "at", "every", "until", "within",
    "forever", "set", "emit", "end", "fail", "stay",
];

impl Parser<'_> {
    /// Whether an expression, or what is written as one by habit, begins here.
    pub(super) fn at_expr(&self) -> bool {
        match self.kind() {
            SyntaxKind::Lower => !NOT_EXPR.contains(&self.nth_text(0)) && !self.at_block_start(),
            SyntaxKind::Int
            | SyntaxKind::Number
            | SyntaxKind::Dur
            | SyntaxKind::StringOpen
            | SyntaxKind::Upper
            | SyntaxKind::LParen
            | SyntaxKind::LBrack
            | SyntaxKind::LBrace
            | SyntaxKind::Minus
            | SyntaxKind::Bang => true,
            _ => false,
        }
    }

    /// `expr ::= if | match | or`
    pub(super) fn expr(&mut self) {
        if !self.at_expr() {
            return self.missing("an expression");
        }
        self.nested(|p| {
            let start = p.checkpoint();
            let from = p.span().start;
            if p.at_word("if") {
                p.if_expr();
            } else if p.at_word("match") {
                p.match_expr();
            } else {
                p.binary(power::OR);
            }
            if p.at(SyntaxKind::Question) {
                p.ternary(start, from);
            }
        });
    }

    fn if_expr(&mut self) {
        self.node(SyntaxKind::IfExpr, |p| {
            p.bump();
            p.cond();
            if p.expect_word("then") {
                p.expr();
            }
            if p.expect_word("else") {
                p.expr();
            }
        });
    }

    /// `"match" postfix "{" (pattern guard? "=>" expr ","?)+ "}"`
    fn match_expr(&mut self) {
        self.node(SyntaxKind::MatchExpr, |p| {
            p.bump();
            p.postfix_or_missing("the value to match");
            let opened = p.span();
            if !p.expect(SyntaxKind::LBrace, "`{` and an arm for each variant") {
                return;
            }
            p.among_arms += 1;
            if p.at(SyntaxKind::RBrace) {
                p.missing("an arm `Variant { field } => value`");
            }
            while !p.at(SyntaxKind::RBrace) && !p.at_end() && !p.at_word("on") {
                if p.at_pattern() {
                    p.match_arm();
                } else {
                    p.unexpected("an arm `Variant { field } => value`");
                    p.skip(|p| p.at(SyntaxKind::Upper) || p.at_word("on"));
                }
                p.eat(SyntaxKind::Comma);
            }
            p.among_arms -= 1;
            p.close(SyntaxKind::RBrace, opened);
        });
    }

    fn match_arm(&mut self) {
        self.node(SyntaxKind::MatchArm, |p| {
            p.pattern();
            p.guard();
            if p.at(SyntaxKind::Arrow) {
                let span = p.span();
                let diagnostic =
                    p.error(code::WRONG_ARROW, span, "the arms of `match` give a value with `=>`");
                p.report(diagnostic.fix(span, "=>"));
                p.bump();
            } else if !p.expect(SyntaxKind::FatArrow, "`=>` and a value") {
                return;
            }
            p.expr();
        });
    }

    /// `cond ? a : b`, a habit.
    fn ternary(&mut self, start: rowan::Checkpoint, from: u32) {
        let sign = self.span();
        let cond = TextSpan::new(from, self.previous_end()).of(self.text);
        self.error_at = Some(self.pos);
        self.node_from(start, SyntaxKind::Error, |p| {
            p.bump();
            let then = p.read_text(Self::expr);
            let mut diagnostic = p.error(code::TERNARY, sign, "`? :` is written `if … then … else …`");
            if p.eat(SyntaxKind::Colon) {
                let otherwise = p.read_text(Self::expr);
                let span = TextSpan::new(from, p.previous_end());
                diagnostic = diagnostic.unsure_fix(span, format!("if {cond} then {then} else {otherwise}"));
            }
            p.report(diagnostic);
        });
    }

    /// The text of what `parse` takes.
    fn read_text(&mut self, parse: impl FnOnce(&mut Self)) -> String {
        let from = self.span().start;
        parse(self);
        TextSpan::new(from, self.previous_end()).of(self.text).to_owned()
    }

    /// Operators that bind at least as strongly as `least`, and their operands.
    pub(super) fn binary(&mut self, least: u8) {
        let outer = std::mem::replace(&mut self.deepest, self.depth);
        let start = self.checkpoint();
        self.operand(least);
        let mut compared = false;
        while let Some(power) = self.operator_power().filter(|power| *power >= least) {
            // What was read moves one level down; it could be as deep as the limit already.
            if !self.goes_deeper() {
                break;
            }
            if power == power::COMPARE && std::mem::replace(&mut compared, true) {
                let message = "comparisons do not chain";
                let diagnostic = self.error(code::CHAINED_COMPARISON, self.span(), message);
                self.report(diagnostic.hint("write `a < b and b < c`"));
            }
            if self.at_word("is") {
                self.node_from(start, SyntaxKind::IsExpr, |p| {
                    p.bump();
                    p.pattern();
                });
                continue;
            }
            self.node_from(start, SyntaxKind::Binary, |p| {
                p.operator();
                if p.at_expr() {
                    p.nested(|p| p.binary(power + 1));
                } else {
                    p.missing("an operand");
                }
            });
        }
        self.deepest = self.deepest.max(outer);
    }

    /// Counts one more level around what was read; false, and the rest skipped, if that is too deep.
    pub(super) fn goes_deeper(&mut self) -> bool {
        self.deepest += 1;
        let fits = self.deepest <= crate::limits::NESTING_MAX;
        if !fits {
            self.skip_too_deep();
        }
        fits
    }

    /// How strongly the operator here binds; none if an expression ends here.
    fn operator_power(&self) -> Option<u8> {
        Some(match self.kind() {
            SyntaxKind::Lower => match self.nth_text(0) {
                "or" => power::OR,
                "and" => power::AND,
                "in" | "is" => power::COMPARE,
                "not" if self.nth_word(1, "in") => power::COMPARE,
                _ => return None,
            },
            SyntaxKind::PipePipe => power::OR,
            SyntaxKind::AmpAmp => power::AND,
            SyntaxKind::EqEq | SyntaxKind::NotEq | SyntaxKind::Lt | SyntaxKind::LtEq | SyntaxKind::Gt => {
                power::COMPARE
            }
            SyntaxKind::Eq => power::COMPARE,
            SyntaxKind::Coalesce => power::COALESCE,
            SyntaxKind::Plus | SyntaxKind::Minus => power::SUM,
            SyntaxKind::Star | SyntaxKind::Slash | SyntaxKind::Percent => power::PRODUCT,
            _ => return None,
        })
    }

    /// Takes an operator, with a diagnostic if it is a habit.
    fn operator(&mut self) {
        match self.kind() {
            SyntaxKind::AmpAmp => self.sign_for_word(code::AND_SIGN, "and"),
            SyntaxKind::PipePipe => self.sign_for_word(code::OR_SIGN, "or"),
            SyntaxKind::Eq => {
                let span = self.span();
                let diagnostic = self.error(code::SINGLE_EQUALS, span, "two values are compared with `==`");
                self.report(diagnostic.fix(span, "=="));
            }
            // The lexer leaves `>=` in two, for the sake of `list<int>= []`.
            SyntaxKind::Gt if self.next_is_glued(SyntaxKind::Eq) => return self.bump_glued(SyntaxKind::GtEq),
            SyntaxKind::Gt if self.next_is_glued(SyntaxKind::EqEq) => self.bump(),
            SyntaxKind::Lower if self.at_word("not") => self.bump(),
            _ => {}
        }
        self.bump();
    }

    fn next_is_glued(&self, kind: SyntaxKind) -> bool {
        let (first, second) = (self.solid.get(self.pos), self.solid.get(self.pos + 1));
        first.zip(second).is_some_and(|(first, second)| second.kind == kind && first.end == second.start)
    }

    fn sign_for_word(&mut self, code: Code, word: &str) {
        let span = self.span();
        let sign = self.nth_text(0);
        let diagnostic = self.error(code, span, format!("`{sign}` is written `{word}`"));
        self.report(diagnostic.fix(span, self.spaced(word, span)));
    }

    /// `word`, with spaces where it would grow together with its neighbours.
    pub(super) fn spaced(&self, word: &str, span: TextSpan) -> String {
        let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        let before = TextSpan::new(0, span.start).of(self.text).chars().next_back();
        let after = self.text.get(span.end as usize..).unwrap_or_default().chars().next();
        let (left, right) = (if is_word(before) { " " } else { "" }, if is_word(after) { " " } else { "" });
        format!("{left}{word}{right}")
    }

    /// `not ::= "not" not | compare`, `unary ::= "-" unary | postfix`
    fn operand(&mut self, least: u8) {
        if self.at_word("not") {
            if least > power::NOT {
                self.needs_parentheses("not");
            }
            self.unary(power::NOT);
        } else if self.at(SyntaxKind::Minus) {
            self.unary(power::UNARY);
        } else if self.at(SyntaxKind::Bang) {
            self.bang(least);
        } else if self.at_word("if") {
            self.needs_parentheses("if");
            self.nested(Self::if_expr);
        } else if self.at_word("match") {
            self.needs_parentheses("match");
            self.nested(Self::match_expr);
        } else {
            self.postfix();
        }
    }

    fn unary(&mut self, least: u8) {
        self.node(SyntaxKind::Unary, |p| {
            p.bump();
            if p.at_expr() {
                p.nested(|p| p.binary(least));
            } else {
                p.missing("an operand");
            }
        });
    }

    /// `!x`, a habit. `not` binds weaker, so the replacement is sure only where nothing follows that it would
    /// take in.
    fn bang(&mut self, least: u8) {
        let span = self.span();
        self.unary(power::UNARY);
        let diagnostic = self.error(code::NOT_SIGN, span, "`!` is written `not`");
        let changes = self.operator_power().is_some_and(|power| power > power::NOT);
        let mut replacement = self.spaced("not", span);
        if !replacement.ends_with(' ') {
            replacement.push(' ');
        }
        self.report(if least > power::NOT || changes {
            diagnostic
                .hint("`not` binds weaker than comparison: use parentheses")
                .unsure_fix(span, replacement)
        } else {
            diagnostic.fix(span, replacement)
        });
    }

    fn needs_parentheses(&mut self, word: &str) {
        let message = format!("`{word}` needs parentheses to be an operand");
        self.report(self.error(code::NEEDS_PARENTHESES, self.span(), message));
    }

    /// Takes `null` and its like as the literal that they mean.
    pub(super) fn null(&mut self) {
        let span = self.span();
        let word = self.nth_text(0);
        debug_assert!(words::is_null(word));
        let diagnostic = self.error(code::NULL, span, format!("`{word}` is written `none`"));
        self.report(diagnostic.fix(span, "none"));
        self.node(SyntaxKind::Literal, Self::bump);
    }
}
