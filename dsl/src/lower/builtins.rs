//! The functions of the edition: their arguments and results.
//!
//! Leaves what they compute to the kernel. Invariant: every [`Builtin`] of the machine has a word here, but `now`, which is also
//! a plain name.

use super::calls::counted;
use super::expr::Typed;
use super::scope::Scope;
use super::word::Word;
use crate::check::ty::Ty;
use crate::diag::catalogue::{names, types};
use crate::machine::{Builtin, Expr};
use crate::syntax::ast::{self, AstNode as _};

/// The builtins by their words, with the number of arguments.
const BUILTINS: &[(&str, Builtin, usize)] = &[
    ("size", Builtin::Size, 1),
    ("first_n", Builtin::FirstN, 2),
    ("last_n", Builtin::LastN, 2),
    ("range", Builtin::Range, 2),
    ("min", Builtin::Min, 2),
    ("max", Builtin::Max, 2),
    ("sort", Builtin::Sort, 1),
    ("keys", Builtin::Keys, 1),
    ("values", Builtin::Values, 1),
    ("put", Builtin::Put, 3),
    ("join", Builtin::Join, 2),
    ("split", Builtin::Split, 2),
    ("starts_with", Builtin::StartsWith, 2),
    ("contains", Builtin::Contains, 2),
    ("find", Builtin::Find, 2),
    ("trim", Builtin::Trim, 1),
    ("lower", Builtin::Lower, 1),
    ("parse_int", Builtin::ParseInt, 1),
    ("parse_decimal", Builtin::ParseDecimal, 1),
    ("new_id", Builtin::NewId, 0),
    ("now", Builtin::Now, 0),
    ("done", Builtin::Done, 1),
    ("not_done", Builtin::NotDone, 2),
];

/// The other words that stand for a function.
const OTHER: &[&str] = &["json", "count", "sum", "any", "all", "first", "last"];

/// Whether a word is taken by the edition.
pub(crate) fn is_builtin(word: &str) -> bool {
    OTHER.contains(&word) || BUILTINS.iter().any(|(one, ..)| *one == word)
}

/// The words of all functions of the edition.
pub(crate) fn words() -> impl Iterator<Item = &'static str> {
    OTHER.iter().copied().chain(BUILTINS.iter().map(|(word, ..)| *word))
}

/// Whether a word is a builtin whose first argument is a value.
pub(crate) fn takes_values(word: &str) -> bool {
    BUILTINS.iter().any(|(one, _, count)| *one == word && *count > 0)
}

impl Scope<'_> {
    pub(crate) fn builtin(&mut self, name: &Word, args: &ast::ArgList, want: Option<&Ty>) -> Typed {
        let word = name.text();
        if word == "json" {
            return self.json_of(args);
        }
        let given: Vec<ast::Expr> = args.args().filter_map(|arg| arg.value()).collect();
        let Some((_, builtin, count)) = BUILTINS.iter().find(|(one, ..)| *one == word) else {
            given.iter().for_each(|arg| drop(self.expr(arg, None)));
            self.report_no_function(name);
            return Typed::unknown();
        };
        if given.len() != *count {
            given.iter().for_each(|arg| drop(self.expr(arg, None)));
            let message = format!("`{word}` takes {}, not {}", counted(*count, "argument"), given.len());
            let diagnostic = self.error(types::WRONG_COUNT, args.span(), message);
            self.report(diagnostic);
            return Typed::unknown();
        }
        let (args, ty) = self.builtin_args(*builtin, &given, want);
        Typed::new(Expr::Builtin(*builtin, args), ty)
    }

    fn report_no_function(&mut self, name: &Word) {
        let word = name.text();
        let known = BUILTINS.iter().map(|(one, ..)| *one).chain(OTHER.iter().copied());
        let builtin = self.tables.closest(&word, known);
        let near = builtin.or_else(|| {
            let is_function = |found| matches!(found, crate::check::tables::LowerName::Function(_));
            self.tables.near_lower(self.layer, &word, is_function)
        });
        let near = near.map(str::to_owned);
        let message = format!("there is no function `{word}`");
        self.report_unknown(names::UNKNOWN_NAME, name.span(), message, near.as_deref());
    }

    fn json_of(&mut self, args: &ast::ArgList) -> Typed {
        let given: Vec<ast::Expr> = args.args().filter_map(|arg| arg.value()).collect();
        let [arg] = given.as_slice() else {
            let diagnostic = self.error(
                types::WRONG_COUNT,
                args.span(),
                format!("`json` takes 1 argument, not {}", given.len()),
            );
            self.report(diagnostic);
            return Typed::unknown();
        };
        let typed = self.expr(arg, None);
        if self.tables.holds_secret(&typed.ty) {
            let diagnostic = self.error(types::SECRET_USED, arg.span(), "a secret cannot become JSON");
            self.report(diagnostic);
        }
        Typed::new(Expr::ToJson(Box::new(typed.expr)), Ty::Json)
    }

    fn builtin_args(&mut self, builtin: Builtin, given: &[ast::Expr], want: Option<&Ty>) -> (Vec<Expr>, Ty) {
        let texts =
            |scope: &mut Self, ty: Ty| (given.iter().map(|arg| scope.expr_as(arg, &Ty::Text)).collect(), ty);
        match builtin {
            Builtin::StartsWith | Builtin::Contains => texts(self, Ty::Bool),
            Builtin::Find | Builtin::ParseInt => texts(self, Ty::option(Ty::Int)),
            Builtin::ParseDecimal => texts(self, Ty::option(Ty::Decimal)),
            Builtin::Trim | Builtin::Lower => texts(self, Ty::Text),
            Builtin::Split => texts(self, Ty::list(Ty::Text)),
            Builtin::NewId => (Vec::new(), Ty::Text),
            Builtin::Now => (Vec::new(), Ty::Time),
            Builtin::Join => {
                let list = self.expr_as(&given[0], &Ty::list(Ty::Text));
                (vec![list, self.expr_as(&given[1], &Ty::Text)], Ty::Text)
            }
            Builtin::Range => {
                (given.iter().map(|arg| self.expr_as(arg, &Ty::Int)).collect(), Ty::list(Ty::Int))
            }
            Builtin::Size => (vec![self.sized(&given[0]).0], Ty::Int),
            Builtin::FirstN | Builtin::LastN => self.part(given, want),
            Builtin::Min | Builtin::Max => self.extreme(given, want),
            Builtin::Sort => self.sorted(&given[0], want),
            Builtin::Keys | Builtin::Values | Builtin::Put => self.of_map(builtin, given, want),
            Builtin::Done | Builtin::NotDone => self.of_slots(builtin, given),
        }
    }

    /// The argument of `size`.
    fn sized(&mut self, arg: &ast::Expr) -> (Expr, Ty) {
        let typed = self.value(arg, None);
        if !matches!(typed.ty, Ty::List(_) | Ty::Map(_) | Ty::Text | Ty::Bytes | Ty::Unknown) {
            self.report_mismatch_text(&typed.ty, "a list, map, text or bytes", arg.span());
        }
        (typed.expr, typed.ty)
    }

    /// An argument, without `approved<…>`.
    fn value(&mut self, arg: &ast::Expr, want: Option<&Ty>) -> Typed {
        let typed = self.expr(arg, want);
        match typed.ty {
            Ty::Approved(of) => Typed::new(Expr::Field(Box::new(typed.expr), "value".to_owned()), *of),
            ty => Typed::new(typed.expr, ty),
        }
    }

    fn part(&mut self, given: &[ast::Expr], want: Option<&Ty>) -> (Vec<Expr>, Ty) {
        let whole = self.value(&given[0], want);
        let count = self.expr_as(&given[1], &Ty::Int);
        let ty = match whole.ty {
            Ty::List(_) | Ty::Text | Ty::Unknown => whole.ty,
            found => {
                self.report_mismatch_text(&found, "a list or a text", given[0].span());
                Ty::Unknown
            }
        };
        (vec![whole.expr, count], ty)
    }

    fn extreme(&mut self, given: &[ast::Expr], want: Option<&Ty>) -> (Vec<Expr>, Ty) {
        let (args, ty) = self.alike(given, want.map(Ty::present).filter(|want| want.is_ordered()));
        if !ty.is_ordered() {
            self.report_mismatch_text(&ty, "a number, text, time or duration", given[0].span());
            return (args, Ty::Unknown);
        }
        (args, ty)
    }

    fn sorted(&mut self, arg: &ast::Expr, want: Option<&Ty>) -> (Vec<Expr>, Ty) {
        let typed = self.value(arg, want);
        let ty = match &typed.ty {
            Ty::List(item) if item.is_ordered() => typed.ty.clone(),
            Ty::Unknown => Ty::Unknown,
            found => {
                let found = found.clone();
                self.report_mismatch_text(&found, "a list of numbers, texts, times or durations", arg.span());
                Ty::Unknown
            }
        };
        (vec![typed.expr], ty)
    }

    fn of_map(&mut self, builtin: Builtin, given: &[ast::Expr], want: Option<&Ty>) -> (Vec<Expr>, Ty) {
        let hint = if builtin == Builtin::Put { want } else { None };
        let map = self.value(&given[0], hint);
        let item = match &map.ty {
            Ty::Map(item) => item.as_ref().clone(),
            Ty::Unknown => Ty::Unknown,
            found => {
                let found = found.clone();
                self.report_mismatch_text(&found, "a map", given[0].span());
                Ty::Unknown
            }
        };
        let mut args = vec![map.expr];
        let ty = match builtin {
            Builtin::Keys => Ty::list(Ty::Text),
            Builtin::Put => {
                args.push(self.expr_as(&given[1], &Ty::Text));
                let value = self.wanted(&given[2], Some(&item));
                args.push(value.expr);
                Ty::Map(Box::new(value.ty))
            }
            _ => Ty::list(item),
        };
        (args, ty)
    }

    fn of_slots(&mut self, builtin: Builtin, given: &[ast::Expr]) -> (Vec<Expr>, Ty) {
        let any_slots = Ty::list(Ty::Slot(Box::new(Ty::Unknown)));
        if builtin == Builtin::Done {
            let slots = self.expr(&given[0], None);
            let ty = match &slots.ty {
                Ty::List(item) => match item.as_ref() {
                    Ty::Slot(of) => Ty::list(of.as_ref().clone()),
                    _ => Ty::Unknown,
                },
                _ => Ty::Unknown,
            };
            return (vec![self.fit(slots, &any_slots, given[0].span())], ty);
        }
        let items = self.value(&given[0], None);
        if !matches!(items.ty, Ty::List(_) | Ty::Unknown) {
            self.report_mismatch_text(&items.ty, "a list", given[0].span());
        }
        let slots = self.expr_as(&given[1], &any_slots);
        (vec![items.expr, slots], items.ty)
    }
}
