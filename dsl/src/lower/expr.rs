//! Expressions: what they mean and of which type they are.
//!
//! Leaves operators, calls and constructors to their files. Invariant: whatever is wrong below is reported once, at its
//! cause, and has the type [`Ty::Unknown`].

use super::scope::Scope;
use super::word::Word;
use crate::check::ty::{Fit, Ty};
use crate::diag::TextSpan;
use crate::diag::catalogue::{names, types};
use crate::machine::{Builtin, Cond, Expr, ForIn, Literal, MatchArm, Slot};
use crate::syntax::ast::{self, AstNode as _};

/// An expression with its type.
#[derive(Clone, Debug)]
pub(crate) struct Typed {
    pub(crate) expr: Expr,
    pub(crate) ty: Ty,
}

impl Typed {
    pub(crate) fn new(expr: Expr, ty: Ty) -> Typed {
        Typed { expr, ty }
    }

    /// What stands for something wrong that is already reported.
    pub(crate) fn unknown() -> Typed {
        Typed { expr: Expr::Lit(Literal::None), ty: Ty::Unknown }
    }
}

impl Scope<'_> {
    /// Returns the meaning of an expression where a value of type `want` is wanted.
    pub(crate) fn expr_as(&mut self, of: &ast::Expr, want: &Ty) -> Expr {
        let typed = self.expr(of, Some(want));
        self.fit(typed, want, of.span())
    }

    /// Returns the meaning of an expression; `want` is what its place would like, so that literals and constructors know
    /// their type. The result may still be of another type.
    pub(crate) fn expr(&mut self, of: &ast::Expr, want: Option<&Ty>) -> Typed {
        let mark = self.enter();
        let typed = self.open_expr(of, want);
        self.leave(mark);
        self.tables.notes.add(self.spot(of.span()), &typed.ty);
        typed
    }

    /// Like [`Scope::expr`], but what `is` binds stays in sight: for conditions.
    fn open_expr(&mut self, of: &ast::Expr, want: Option<&Ty>) -> Typed {
        match of {
            ast::Expr::Literal(literal) => self.literal(literal, want),
            ast::Expr::String(text) => self.text(text),
            ast::Expr::Name(name) => self.name(name),
            ast::Expr::Paren(paren) => match paren.inner() {
                Some(inner) => self.open_expr(&inner, want),
                None => Typed::unknown(),
            },
            ast::Expr::List(list) => self.list(list, want),
            ast::Expr::Map(map) => self.map(map, want),
            ast::Expr::If(one) => self.if_expr(one, want),
            ast::Expr::Match(one) => self.match_expr(one, want),
            ast::Expr::Is(is) => self.is_expr(is),
            ast::Expr::Binary(binary) => self.binary(binary, want),
            ast::Expr::Unary(unary) => self.unary(unary, want),
            ast::Expr::Index(index) => self.index(index),
            ast::Expr::Field(field) => self.field(field),
            ast::Expr::Call(call) => self.call(call, want),
            ast::Expr::Construct(construct) => self.construct(construct, want),
        }
    }

    /// Makes a value of type `want` of one whose type is close enough, or reports that it is not.
    pub(crate) fn fit(&mut self, typed: Typed, want: &Ty, span: TextSpan) -> Expr {
        match typed.ty.fits(want) {
            Some(Fit::AsIs) => typed.expr,
            Some(Fit::Value) => Expr::Field(Box::new(typed.expr), "value".to_owned()),
            None => {
                self.report_mismatch(&typed.ty, want, span);
                typed.expr
            }
        }
    }

    fn report_mismatch(&mut self, found: &Ty, want: &Ty, span: TextSpan) {
        let (found_text, want_text) = (self.tables.show(found), self.tables.show(want));
        let code = if *found == Ty::Json { types::DYNAMIC_JSON } else { types::WRONG_TYPE };
        let diagnostic = self.error(code, span, format!("this is `{found_text}`, not `{want_text}`"));
        let diagnostic = diagnostic.expected(format!("`{want_text}`"));
        let hint = match (found, want) {
            (Ty::Option(of), want) if of.fits(want).is_some() => {
                Some("it may be `none`: give a value for that case with `?? …`, or look with `if … as x then … else …`".to_owned())
            }
            (Ty::Json, _) => Some(format!("narrow it first: `{want_text}.from(…)` gives `{want_text}?`")),
            (_, Ty::Json) => Some("write `json(…)` to make JSON of it".to_owned()),
            (of, Ty::Approved(want)) if of.same(want) => {
                Some("only an answered question (`on approve as ok`) or a catalogue's `allow` makes an approved value".to_owned())
            }
            (_, Ty::Text) if found.shows_as_text() => Some("write it inside a text: `\"{…}\"`".to_owned()),
            _ => None,
        };
        self.report(match hint {
            Some(hint) => diagnostic.hint(hint),
            None => diagnostic,
        });
    }

    fn name(&mut self, of: &ast::NameExpr) -> Typed {
        of.name().map_or_else(Typed::unknown, |name| self.variable(&name))
    }

    /// The variable of this name; reports an unknown one.
    pub(crate) fn variable(&mut self, name: &ast::NameRef) -> Typed {
        let (word, span) = (name.text(), name.span());
        if let Some(variable) = self.find(&word) {
            return Typed::new(variable.read.clone(), variable.ty.clone());
        }
        if word == "now" {
            return Typed::new(Expr::Builtin(Builtin::Now, Vec::new()), Ty::Time);
        }
        let message = match self.tables.lower(self.layer, &word) {
            Some(_) => format!("`{word}` is no value"),
            None if self.constant => format!("`{word}` cannot be seen here: a default is constant"),
            None => format!("there is no variable `{word}` here"),
        };
        let code = if self.constant { types::NOT_CONSTANT } else { names::UNKNOWN_NAME };
        let near = self.near(&word).map(str::to_owned);
        self.report_unknown(code, span, message, near.as_deref());
        Typed::unknown()
    }

    fn list(&mut self, of: &ast::List, want: Option<&Ty>) -> Typed {
        let item = match want.map(Ty::present) {
            Some(Ty::List(item)) => Some(item.as_ref().clone()),
            _ => None,
        };
        if let Some(for_in) = of.for_in() {
            let Some(body) = of.elements().next() else { return Typed::unknown() };
            let mark = self.enter();
            let over = self.for_in(&for_in);
            let body = self.wanted(&body, item.as_ref());
            self.leave(mark);
            return Typed::new(Expr::ListFor(Box::new(over), Box::new(body.expr)), Ty::list(body.ty));
        }
        let items: Vec<ast::Expr> = of.elements().collect();
        let (items, ty) = self.alike(&items, item.as_ref());
        Typed::new(Expr::List(items), Ty::list(ty))
    }

    fn map(&mut self, of: &ast::Map, want: Option<&Ty>) -> Typed {
        let value_ty = match want.map(Ty::present) {
            Some(Ty::Map(value)) => Some(value.as_ref().clone()),
            _ => None,
        };
        let entries: Vec<(ast::Expr, ast::Expr)> =
            of.entries().filter_map(|entry| Some((entry.key()?, entry.value()?))).collect();
        if let Some(for_in) = of.for_in() {
            let Some((key, value)) = entries.first() else { return Typed::unknown() };
            let mark = self.enter();
            let over = self.for_in(&for_in);
            let key = self.expr_as(key, &Ty::Text);
            let value = self.wanted(value, value_ty.as_ref());
            self.leave(mark);
            let ty = Ty::Map(Box::new(value.ty));
            return Typed::new(Expr::MapFor(Box::new(over), Box::new(key), Box::new(value.expr)), ty);
        }
        let keys: Vec<Expr> = entries.iter().map(|(key, _)| self.expr_as(key, &Ty::Text)).collect();
        let values: Vec<ast::Expr> = entries.into_iter().map(|(_, value)| value).collect();
        let (values, ty) = self.alike(&values, value_ty.as_ref());
        Typed::new(Expr::Map(keys.into_iter().zip(values).collect()), Ty::Map(Box::new(ty)))
    }

    /// An expression that must have type `want`, if there is one.
    pub(crate) fn wanted(&mut self, of: &ast::Expr, want: Option<&Ty>) -> Typed {
        match want {
            Some(want) if !want.is_unknown() => Typed::new(self.expr_as(of, want), want.clone()),
            Some(_) | None => self.expr(of, None),
        }
    }

    /// Expressions of one type: the wanted one, or the narrowest that fits them all.
    pub(crate) fn alike(&mut self, all: &[ast::Expr], want: Option<&Ty>) -> (Vec<Expr>, Ty) {
        if let Some(want) = want.filter(|want| !want.is_unknown()) {
            return (all.iter().map(|one| self.expr_as(one, want)).collect(), want.clone());
        }
        let mut joined = Ty::Unknown;
        let mut typed = Vec::new();
        for one in all {
            let next = self.expr(one, Some(&joined));
            // The first item that does not go with those before it is the one to report; `fit` below does.
            joined = joined.join(&next.ty).unwrap_or(joined);
            typed.push((next, one.span()));
        }
        (typed.into_iter().map(|(one, span)| self.fit(one, &joined, span)).collect(), joined)
    }

    /// `for x in xs if c`; its variables stay in sight.
    pub(crate) fn for_in(&mut self, of: &ast::ForIn) -> ForIn {
        let over = match of.over() {
            Some(over) => {
                let typed = self.expr(&over, None);
                (typed, over.span())
            }
            None => (Typed::unknown(), TextSpan::default()),
        };
        let (Typed { expr: over, ty }, span) = over;
        let names: Vec<ast::Name> = of.item().into_iter().chain(of.second()).collect();
        self.refuse_in_constant(of.span());
        let (key_ty, item_ty) = match ty.bare() {
            Ty::List(item) if !matches!(ty, Ty::Option(_)) => (Ty::Int, item.as_ref().clone()),
            Ty::Map(value) if !matches!(ty, Ty::Option(_)) => (Ty::Text, value.as_ref().clone()),
            Ty::Unknown => (Ty::Unknown, Ty::Unknown),
            _ => {
                self.report_mismatch_text(&ty, "a list or a map", span);
                (Ty::Unknown, Ty::Unknown)
            }
        };
        let over = self.value_of_approved(over, &ty);
        let (key, item) = match names.as_slice() {
            [item] => (None, self.bind(&item.text(), item_ty)),
            [key, item] => (Some(self.bind(&key.text(), key_ty)), self.bind(&item.text(), item_ty)),
            _ => (None, self.take_slot()),
        };
        let cond = of.cond().map(|cond| self.bool_cond(&cond));
        ForIn { item, key, over, cond }
    }

    /// The value behind `approved<…>`, where that is what is looked at.
    pub(crate) fn value_of_approved(&mut self, expr: Expr, ty: &Ty) -> Expr {
        match ty {
            Ty::Approved(_) => Expr::Field(Box::new(expr), "value".to_owned()),
            _ => expr,
        }
    }

    pub(crate) fn report_mismatch_text(&mut self, found: &Ty, expected: &str, span: TextSpan) {
        let found_text = self.tables.show(found);
        let code = if *found == Ty::Json { types::DYNAMIC_JSON } else { types::WRONG_TYPE };
        let diagnostic = self.error(code, span, format!("this is `{found_text}`, not {expected}"));
        self.report(diagnostic.expected(expected));
    }

    /// A plain condition, as after `for … if`.
    fn bool_cond(&mut self, of: &ast::Expr) -> Cond {
        Cond { test: self.bool_expr(of), bind: None }
    }

    /// A condition whose bindings stay in sight.
    pub(crate) fn bool_expr(&mut self, of: &ast::Expr) -> Expr {
        let typed = self.open_expr(of, Some(&Ty::Bool));
        self.fit(typed, &Ty::Bool, of.span())
    }

    /// `e`, or `e as x`; what it binds stays in sight.
    pub(crate) fn cond(&mut self, of: &ast::Cond) -> Cond {
        let Some(test) = of.expr() else { return Cond { test: Typed::unknown().expr, bind: None } };
        let Some(name) = of.binding() else { return self.bool_cond(&test) };
        let typed = self.expr(&test, None);
        self.refuse_in_constant(of.span());
        let ty = match &typed.ty {
            Ty::Option(of) => of.as_ref().clone(),
            Ty::Unknown => Ty::Unknown,
            found => {
                let message = format!("this is `{}`, which is never `none`", self.tables.show(found));
                let diagnostic = self.error(types::NOT_OPTION, test.span(), message);
                self.report(diagnostic.expected("an option (`T?`) before `as`"));
                found.clone()
            }
        };
        Cond { test: typed.expr, bind: Some(self.bind(&name.text(), ty)) }
    }

    fn if_expr(&mut self, of: &ast::IfExpr, want: Option<&Ty>) -> Typed {
        let mark = self.enter();
        let (Some(cond), Some(then), Some(otherwise)) = (of.cond(), of.then(), of.otherwise()) else {
            return Typed::unknown();
        };
        let cond = self.cond(&cond);
        let yes = self.wanted(&then, want);
        self.leave(mark);
        let no = self.wanted(&otherwise, want.or(Some(&yes.ty)));
        let (yes, no, ty) = self.join_two((yes, then.span()), (no, otherwise.span()));
        Typed::new(Expr::If(Box::new(cond), Box::new(yes), Box::new(no)), ty)
    }

    /// Makes two values one type.
    pub(crate) fn join_two(&mut self, left: (Typed, TextSpan), right: (Typed, TextSpan)) -> (Expr, Expr, Ty) {
        let ty = left.0.ty.join(&right.0.ty).unwrap_or_else(|| left.0.ty.clone());
        (self.fit(left.0, &ty, left.1), self.fit(right.0, &ty, right.1), ty)
    }

    fn is_expr(&mut self, of: &ast::IsExpr) -> Typed {
        let (Some(subject), Some(pattern)) = (of.value(), of.pattern()) else { return Typed::unknown() };
        let typed = self.expr(&subject, None);
        let ty = typed.ty.bare().clone();
        let Some(subject_expr) = self.union_subject(typed, subject.span()) else {
            // What the pattern binds is in sight all the same, so that the mistake is told once.
            self.pattern(&pattern, &Ty::Unknown);
            return Typed::new(Typed::unknown().expr, Ty::Bool);
        };
        match self.pattern(&pattern, &ty) {
            Some((tag, fields)) => Typed::new(Expr::Is(Box::new(subject_expr), tag, fields), Ty::Bool),
            None => Typed::new(Typed::unknown().expr, Ty::Bool),
        }
    }

    fn match_expr(&mut self, of: &ast::MatchExpr, want: Option<&Ty>) -> Typed {
        let Some(subject) = of.value() else { return Typed::unknown() };
        let typed = self.expr(&subject, None);
        let ty = typed.ty.bare().clone();
        let Some(subject_expr) = self.union_subject(typed, subject.span()) else { return Typed::unknown() };
        let mut arms = Vec::new();
        let mut tags = Vec::new();
        let mut joined = want.cloned().unwrap_or(Ty::Unknown);
        for arm in of.arms() {
            let mark = self.enter();
            let bound =
                arm.pattern().and_then(|pattern| Some((self.pattern(&pattern, &ty)?, pattern.span())));
            let guard = arm.guard().and_then(|guard| guard.cond()).map(|cond| self.cond(&cond));
            let Some(value) = arm.value() else { continue };
            let body = match want {
                Some(want) => self.wanted(&value, Some(want)),
                None => self.expr(&value, Some(&joined)),
            };
            self.leave(mark);
            joined = joined.join(&body.ty).unwrap_or(joined);
            let Some(((tag, fields), span)) = bound else { continue };
            tags.push((tag.clone(), guard.is_some(), span));
            arms.push((tag, fields, guard, (body, value.span())));
        }
        self.check_arms(&ty, &tags, subject.span());
        let arms = arms.into_iter().map(|(tag, fields, guard, (body, span))| {
            let body = self.fit(body, &joined, span);
            MatchArm { tag, fields, guard, body }
        });
        let arms = arms.collect();
        Typed::new(Expr::Match(Box::new(subject_expr), arms), joined)
    }

    /// The value whose variants are told apart, or nothing if it has none.
    pub(crate) fn union_subject(&mut self, typed: Typed, span: TextSpan) -> Option<Expr> {
        if typed.ty.is_unknown() {
            // Names in the arms are still worth looking at, but nothing can be said about the variants.
            return Some(typed.expr);
        }
        if matches!(typed.ty, Ty::Option(_)) {
            let message = format!("this is `{}`, which may be `none`", self.tables.show(&typed.ty));
            let diagnostic = self.error(types::NOT_UNION, span, message);
            self.report(diagnostic.hint("look first: `if … as x then … else …`"));
            return None;
        }
        if self.tables.variants(typed.ty.bare()).is_none() {
            let message = format!("this is `{}`, which has no variants", self.tables.show(&typed.ty));
            let diagnostic = self.error(types::NOT_UNION, span, message);
            self.report(diagnostic.expected("a union"));
            return None;
        }
        Some(self.value_of_approved(typed.expr, &typed.ty))
    }

    /// A pattern: its tag and the fields that it binds, in the order of the text.
    pub(crate) fn pattern(&mut self, of: &ast::Pattern, ty: &Ty) -> Option<(String, Vec<(String, Slot)>)> {
        let path = of.path()?;
        let name = Word::from(path.last()?);
        let tag = name.text();
        let Some(variants) = self.tables.variants(ty) else {
            self.bind_fields(of.fields(), &[], true, &tag);
            return None;
        };
        if let Some(qualifier) = path.qualifier() {
            self.check_qualifier(&qualifier.into(), ty);
        }
        let Some((_, fields)) = variants.iter().find(|(one, _)| *one == tag) else {
            let near =
                self.tables.closest(&tag, variants.iter().map(|(one, _)| one.as_str())).map(str::to_owned);
            let message = format!("`{}` has no variant `{tag}`", self.tables.show(ty));
            self.report_unknown(names::UNKNOWN_TYPE, name.span(), message, near.as_deref());
            self.bind_fields(of.fields(), &[], true, &tag);
            return None;
        };
        let fields = self.bind_fields(of.fields(), fields, false, &tag);
        Some((tag, fields))
    }

    fn check_qualifier(&mut self, qualifier: &Word, ty: &Ty) {
        let wanted = self.tables.show(ty);
        let word = qualifier.text();
        // The result of a flow is also known by the flow's name.
        if word != wanted && wanted.strip_suffix(".result") != Some(&word) {
            let message = format!("this is `{wanted}`, not `{word}`");
            let diagnostic = self.error(types::WRONG_TYPE, qualifier.span(), message);
            self.report(diagnostic.expected(format!("`{wanted}`")));
        }
    }

    /// Binds `{ a, b: c }`. With `lenient` every name is bound to something unknown, since the mistake is elsewhere.
    pub(crate) fn bind_fields(
        &mut self,
        binds: Option<ast::FieldPatList>,
        known: &[(String, Ty)],
        lenient: bool,
        owner: &str,
    ) -> Vec<(String, Slot)> {
        let mut bound: Vec<(String, Slot)> = Vec::new();
        for bind in binds.iter().flat_map(|binds| binds.binds()) {
            let (Some(field), Some(name)) = (bind.field().map(Word::from), bind.name()) else { continue };
            self.refuse_in_constant(name.span());
            let word = field.text();
            let ty = match known.iter().find(|(one, _)| *one == word) {
                Some((_, ty)) => ty.clone(),
                None if lenient => Ty::Unknown,
                None => {
                    let near = self.tables.closest(&word, known.iter().map(|(one, _)| one.as_str()));
                    let message = format!("`{owner}` has no field `{word}`");
                    self.report_unknown(names::UNKNOWN_FIELD, field.span(), message, near);
                    Ty::Unknown
                }
            };
            if bound.iter().any(|(one, _)| *one == word) {
                let diagnostic =
                    self.error(types::REPEATED_FIELD, field.span(), format!("`{word}` is bound twice"));
                self.report(diagnostic);
                continue;
            }
            let slot = self.bind(&name.text(), ty);
            bound.push((word, slot));
        }
        bound
    }

    /// Reports variants without an arm and arms that are never taken.
    pub(crate) fn check_arms(&mut self, ty: &Ty, arms: &[(String, bool, TextSpan)], span: TextSpan) {
        let Some(variants) = self.tables.variants(ty) else { return };
        for (at, (tag, _, span)) in arms.iter().enumerate() {
            if arms[..at].iter().any(|(before, guarded, _)| before == tag && !guarded) {
                let message = format!("`{tag}` has an arm already");
                let diagnostic = self.error(types::UNREACHABLE_ARM, *span, message);
                self.report(diagnostic);
            }
        }
        let open: Vec<String> = variants
            .iter()
            .filter(|(tag, _)| !arms.iter().any(|(arm, guarded, _)| arm == tag && !guarded))
            .map(|(tag, _)| format!("`{tag}`"))
            .collect();
        if !open.is_empty() {
            let message = format!("no arm takes {} of `{}`", open.join(", "), self.tables.show(ty));
            let diagnostic = self.error(types::NOT_EXHAUSTIVE, span, message);
            self.report(diagnostic.expected(format!("an arm without a condition for {}", open.join(", "))));
        }
    }

    /// A default is evaluated where nothing can be bound.
    pub(crate) fn refuse_in_constant(&mut self, span: TextSpan) {
        if self.constant {
            let diagnostic = self.error(types::NOT_CONSTANT, span, "a default cannot bind names");
            self.report(diagnostic);
        }
    }
}
