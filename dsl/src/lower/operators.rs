//! Operators, literals, texts with values in them, indexes.
//!
//! Leaves which types an operator takes to `check::operators`. Invariant: a number literal becomes a literal of the type that
//! its place or its neighbour has.

use super::expr::Typed;
use super::scope::Scope;
use crate::check::operators;
use crate::check::ty::Ty;
use crate::diag::catalogue::{syntax, types};
use crate::diag::{Diagnostic, TextSpan};
use crate::limits::{DECIMAL_DIGITS_MAX, DECIMAL_SCALE_MAX};
use crate::machine::{BinaryOp, Expr, Literal};
use crate::syntax::ast::{self, AstNode as _};

impl Scope<'_> {
    pub(crate) fn literal(&mut self, of: &ast::Literal, want: Option<&Ty>) -> Typed {
        let option_of = want.map_or(&Ty::Unknown, Ty::present);
        let want = want.map_or(&Ty::Unknown, Ty::bare);
        match of.kind() {
            Some(ast::LiteralKind::Int(value)) => self.int(value, of, want),
            Some(ast::LiteralKind::Number(written)) => self.number(&written, want, of.span()),
            Some(ast::LiteralKind::Duration(ms)) => {
                // A malformed duration was reported by the parser.
                let ms = ms.and_then(|ms| u64::try_from(ms).ok()).unwrap_or(1);
                Typed::new(Expr::Lit(Literal::Duration(ms)), Ty::Duration)
            }
            Some(ast::LiteralKind::Bool(value)) => Typed::new(Expr::Lit(Literal::Bool(value)), Ty::Bool),
            Some(ast::LiteralKind::None) => {
                Typed::new(Expr::Lit(Literal::None), Ty::Option(Box::new(option_of.clone())))
            }
            Some(ast::LiteralKind::Nothing) => Typed::new(Expr::Lit(Literal::Nothing), Ty::Nothing),
            None => Typed::unknown(),
        }
    }

    fn int(&mut self, value: Option<i64>, of: &ast::Literal, want: &Ty) -> Typed {
        let digits = of.digits().unwrap_or_default();
        match (want, value) {
            (Ty::Decimal | Ty::Float, _) => self.number(&digits, want, of.span()),
            (_, Some(value)) => Typed::new(Expr::Lit(Literal::Int(value)), Ty::Int),
            (_, None) => {
                let diagnostic = self.error(types::NUMBER_RANGE, of.span(), "this is too large for an `int`");
                self.report(diagnostic.expected("at most 9223372036854775807"));
                Typed::new(Expr::Lit(Literal::Int(0)), Ty::Int)
            }
        }
    }

    /// A number with a point is a decimal unless a float is wanted.
    fn number(&mut self, written: &str, want: &Ty, span: TextSpan) -> Typed {
        if *want == Ty::Float {
            return Typed::new(Expr::Lit(Literal::Float(written.to_owned())), Ty::Float);
        }
        let digits = written.bytes().filter(u8::is_ascii_digit).count();
        let scale = written.split_once('.').map_or(0, |(_, behind)| behind.len());
        if digits > DECIMAL_DIGITS_MAX || scale > DECIMAL_SCALE_MAX {
            let message = format!(
                "a decimal has at most {DECIMAL_DIGITS_MAX} digits, {DECIMAL_SCALE_MAX} after the point"
            );
            let diagnostic = self.error(types::NUMBER_RANGE, span, message);
            self.report(diagnostic);
        }
        Typed::new(Expr::Lit(Literal::Decimal(written.to_owned())), Ty::Decimal)
    }

    pub(crate) fn text(&mut self, of: &ast::StringExpr) -> Typed {
        let mut parts = Vec::new();
        for part in of.pieces() {
            match part {
                ast::StringPiece::Text(text) => parts.push(Expr::Lit(Literal::Text(text))),
                ast::StringPiece::Hole(hole) => {
                    let Some(inner) = hole.expr() else { continue };
                    let (shown, ty) = self.shown(&inner);
                    self.judge_dollar(&ty, hole.span().start);
                    parts.push(shown);
                }
            }
        }
        let expr = match parts.as_slice() {
            [] => Expr::Lit(Literal::Text(String::new())),
            [Expr::Lit(Literal::Text(_))] => parts.remove(0),
            _ => Expr::Text(parts),
        };
        Typed::new(expr, Ty::Text)
    }

    /// A value inside a text.
    fn shown(&mut self, of: &ast::Expr) -> (Expr, Ty) {
        let typed = self.expr(of, None);
        let expr = self.value_of_approved(typed.expr, &typed.ty);
        let ty = &typed.ty;
        if self.tables.holds_secret(ty) {
            let diagnostic = self.error(types::SECRET_USED, of.span(), "a secret cannot stand in a text");
            self.report(diagnostic);
        } else if !ty.shows_as_text() {
            let shown = self.tables.show(ty);
            let diagnostic =
                self.error(types::NOT_TEXT, of.span(), format!("`{shown}` cannot stand in a text"));
            self.report(match ty {
                Ty::Option(_) => diagnostic.hint("say what stands there if there is none: `{… ?? \"\"}`"),
                _ => diagnostic.hint("write `{json(…)}`, or one of its fields"),
            });
        }
        (expr, typed.ty)
    }

    /// A `$` before a hole is a habit of other languages, unless it may be meant: before an amount of money.
    fn judge_dollar(&mut self, ty: &Ty, hole_at: u32) {
        if matches!(ty, Ty::Int | Ty::Decimal | Ty::Float | Ty::Unknown) {
            return;
        }
        let file = self.file;
        let told = |one: &&mut Diagnostic| {
            one.code == syntax::DOLLAR_HOLE && one.file == file && one.span.end == hole_at
        };
        if let Some(fix) = self.out.iter_mut().find(told).and_then(|one| one.fix.as_mut()) {
            fix.safe = true;
        }
    }

    pub(crate) fn binary(&mut self, of: &ast::Binary, want: Option<&Ty>) -> Typed {
        let (Some(left), Some(op), Some(right)) = (of.left(), of.op(), of.right()) else {
            return Typed::unknown();
        };
        let op = match op {
            ast::BinaryOp::Coalesce => return self.else_value(&left, &right, want),
            ast::BinaryOp::And => return self.both(&left, &right),
            ast::BinaryOp::NotIn => {
                let typed = self.binary_of(BinaryOp::In, &left, &right, None, of.span());
                return Typed::new(Expr::Not(Box::new(typed.expr)), typed.ty);
            }
            ast::BinaryOp::Or => BinaryOp::Or,
            ast::BinaryOp::Equal => BinaryOp::Eq,
            ast::BinaryOp::NotEqual => BinaryOp::Ne,
            ast::BinaryOp::Less => BinaryOp::Lt,
            ast::BinaryOp::LessEqual => BinaryOp::Le,
            ast::BinaryOp::Greater => BinaryOp::Gt,
            ast::BinaryOp::GreaterEqual => BinaryOp::Ge,
            ast::BinaryOp::In => BinaryOp::In,
            ast::BinaryOp::Add => BinaryOp::Add,
            ast::BinaryOp::Subtract => BinaryOp::Sub,
            ast::BinaryOp::Multiply => BinaryOp::Mul,
            ast::BinaryOp::Divide => BinaryOp::Div,
            ast::BinaryOp::Remainder => BinaryOp::Rem,
        };
        self.binary_of(op, &left, &right, want, of.span())
    }

    /// `a and b`: what `a` binds is in sight in `b`, and both in what follows.
    fn both(&mut self, left: &ast::Expr, right: &ast::Expr) -> Typed {
        let left_test = self.bool_expr(left);
        let right_test = self.bool_expr(right);
        Typed::new(Expr::Binary(BinaryOp::And, Box::new(left_test), Box::new(right_test)), Ty::Bool)
    }

    fn binary_of(
        &mut self,
        op: BinaryOp,
        left: &ast::Expr,
        right: &ast::Expr,
        want: Option<&Ty>,
        span: TextSpan,
    ) -> Typed {
        let hint = match op {
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div | BinaryOp::Rem => want.cloned(),
            BinaryOp::And | BinaryOp::Or => Some(Ty::Bool),
            BinaryOp::Eq
            | BinaryOp::Ne
            | BinaryOp::Lt
            | BinaryOp::Le
            | BinaryOp::Gt
            | BinaryOp::Ge
            | BinaryOp::In => None,
        };
        let (left_value, right_value) = self.operands(op, left, right, hint.as_ref());
        let (left_ty, right_ty) = (left_value.ty.clone(), right_value.ty.clone());
        let exact = is_nonzero(&right_value.expr);
        let left_expr = self.value_of_approved(left_value.expr, &left_ty);
        let right_expr = self.value_of_approved(right_value.expr, &right_ty);
        if self.tables.holds_secret(&left_ty) || self.tables.holds_secret(&right_ty) {
            let diagnostic = self.error(types::SECRET_USED, span, "a secret cannot be compared or changed");
            self.report(diagnostic);
            return Typed::unknown();
        }
        let Some(ty) = operators::binary(op, plain(&left_ty), plain(&right_ty), exact) else {
            self.report_operands(op, &left_ty, &right_ty, span);
            return Typed::unknown();
        };
        Typed::new(Expr::Binary(op, Box::new(left_expr), Box::new(right_expr)), ty)
    }

    /// Both sides, each a hint for the other's literals and constructors.
    fn operands(
        &mut self,
        op: BinaryOp,
        left: &ast::Expr,
        right: &ast::Expr,
        hint: Option<&Ty>,
    ) -> (Typed, Typed) {
        if op == BinaryOp::In {
            let right = self.expr(right, None);
            let item = match plain(&right.ty) {
                Ty::List(item) => item.as_ref().clone(),
                _ => Ty::Text,
            };
            return (self.expr(left, Some(&item)), right);
        }
        // A literal or a bare constructor learns its type from the other side.
        if takes_hint(left) && !takes_hint(right) {
            let right = self.expr(right, hint);
            let left = self.expr(left, Some(&neighbour(op, &right.ty)));
            return (left, right);
        }
        let left = self.expr(left, hint);
        let right_hint = neighbour(op, &left.ty);
        let right = self.expr(right, Some(&right_hint));
        (left, right)
    }

    fn report_operands(&mut self, op: BinaryOp, left: &Ty, right: &Ty, span: TextSpan) {
        let (left_text, right_text) = (self.tables.show(left), self.tables.show(right));
        let message = format!("the operator does not take `{left_text}` and `{right_text}`");
        let diagnostic = self.error(types::WRONG_OPERANDS, span, message).expected(operators::takes(op));
        let optional = matches!(left, Ty::Option(_)) || matches!(right, Ty::Option(_));
        self.report(if optional {
            diagnostic.hint("a value that may be `none` needs `?? …` first")
        } else if *left == Ty::Json || *right == Ty::Json {
            diagnostic.hint("narrow the JSON first, such as with `text.from(…)` or `int.from(…)`")
        } else {
            diagnostic
        });
    }

    fn else_value(&mut self, left: &ast::Expr, right: &ast::Expr, want: Option<&Ty>) -> Typed {
        let optional = want.map(|want| Ty::option(want.clone()));
        let value = self.expr(left, optional.as_ref());
        if !matches!(value.ty, Ty::Option(_) | Ty::Unknown) {
            let message = format!("this is `{}`, which is never `none`", self.tables.show(&value.ty));
            let diagnostic = self.error(types::NOT_OPTION, left.span(), message);
            self.report(diagnostic.expected("an option (`T?`) before `??`"));
        }
        let present = value.ty.present().clone();
        let otherwise = self.expr(right, Some(&present));
        // `a ?? b ?? c`: the right side may be an option again.
        let ty = match present.join(&otherwise.ty) {
            Some(ty) => ty,
            None => present.clone(),
        };
        let expr = self.fit(otherwise, &ty, right.span());
        let value = self.fit(Typed::new(value.expr, present), &ty, left.span());
        Typed::new(Expr::Else(Box::new(value), Box::new(expr)), ty)
    }

    pub(crate) fn unary(&mut self, of: &ast::Unary, want: Option<&Ty>) -> Typed {
        let Some(operand) = of.operand() else { return Typed::unknown() };
        match of.op() {
            ast::UnaryOp::Not => {
                let inner = self.expr_as(&operand, &Ty::Bool);
                Typed::new(Expr::Not(Box::new(inner)), Ty::Bool)
            }
            ast::UnaryOp::Negate => self.negative(&operand, want),
        }
    }

    fn negative(&mut self, operand: &ast::Expr, want: Option<&Ty>) -> Typed {
        let inner = self.expr(operand, want);
        let expr = match inner.expr {
            // A negative literal is one literal, so that limits and defaults see a constant.
            Expr::Lit(Literal::Int(value)) => Expr::Lit(Literal::Int(-value)),
            Expr::Lit(Literal::Decimal(value)) if !value.starts_with('-') => {
                Expr::Lit(Literal::Decimal(format!("-{value}")))
            }
            Expr::Lit(Literal::Float(value)) if !value.starts_with('-') => {
                Expr::Lit(Literal::Float(format!("-{value}")))
            }
            expr => Expr::Neg(Box::new(expr)),
        };
        if !inner.ty.is_number() && !inner.ty.is_unknown() {
            self.report_mismatch_text(&inner.ty, "a number", operand.span());
            return Typed::unknown();
        }
        Typed::new(expr, inner.ty)
    }

    pub(crate) fn index(&mut self, of: &ast::IndexExpr) -> Typed {
        let (Some(base), Some(index)) = (of.value(), of.index()) else { return Typed::unknown() };
        let typed = self.expr(&base, None);
        let base_expr = self.value_of_approved(typed.expr, &typed.ty);
        let (key, item) = match plain(&typed.ty) {
            Ty::List(item) => (Ty::Int, Ty::option(item.as_ref().clone())),
            Ty::Map(item) => (Ty::Text, Ty::option(item.as_ref().clone())),
            Ty::Unknown => (Ty::Unknown, Ty::Unknown),
            found => {
                let found = found.clone();
                self.report_mismatch_text(&found, "a list or a map", base.span());
                (Ty::Unknown, Ty::Unknown)
            }
        };
        let index = self.expr_as(&index, &key);
        Typed::new(Expr::Index(Box::new(base_expr), Box::new(index)), item)
    }
}

/// The type behind `approved<…>`: operators look at the value.
fn plain(ty: &Ty) -> &Ty {
    match ty {
        Ty::Approved(of) => of,
        of => of,
    }
}

/// Whether the type of an expression depends on what is wanted of it.
fn takes_hint(of: &ast::Expr) -> bool {
    match of {
        ast::Expr::Literal(_) | ast::Expr::Construct(_) | ast::Expr::List(_) | ast::Expr::Map(_) => true,
        ast::Expr::Paren(paren) => paren.inner().is_some_and(|inner| takes_hint(&inner)),
        ast::Expr::Unary(unary) => unary.operand().is_some_and(|inner| takes_hint(&inner)),
        ast::Expr::String(_)
        | ast::Expr::Name(_)
        | ast::Expr::If(_)
        | ast::Expr::Match(_)
        | ast::Expr::Is(_)
        | ast::Expr::Binary(_)
        | ast::Expr::Index(_)
        | ast::Expr::Field(_)
        | ast::Expr::Call(_) => false,
    }
}

/// What the other operand would like to be: a duration is multiplied by an int, not by a duration.
fn neighbour(op: BinaryOp, ty: &Ty) -> Ty {
    match (op, plain(ty)) {
        (BinaryOp::Mul, Ty::Duration) => Ty::Int,
        (_, ty) => ty.clone(),
    }
}

fn is_nonzero(expr: &Expr) -> bool {
    match expr {
        Expr::Lit(Literal::Int(value)) => *value != 0,
        Expr::Lit(Literal::Decimal(value) | Literal::Float(value)) => {
            value.bytes().any(|digit| matches!(digit, b'1'..=b'9'))
        }
        _ => false,
    }
}
