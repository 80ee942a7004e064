//! Types, functions and retry policies as the machine stores them.
//!
//! Leaves activities and flows to their files. Invariant: definitions stand at the index of their signature.

use super::scope::Scope;
use crate::check::declare::Texts;
use crate::check::tables::{FieldSig, Shape, Tables};
use crate::check::ty::Ty;
use crate::diag::Diagnostic;
use crate::diag::catalogue::{deadlines, effects};
use crate::machine::link::Program;
use crate::machine::{Expr, FieldDef, Function, Literal, Retry, RetryRule, TypeDef, TypeKind, VariantDef};
use crate::syntax::ast::{self, AstNode as _};

impl Scope<'_> {
    /// Fields or parameters with their defaults; mistakes in defaults are reported here and only here.
    pub(crate) fn field_defs(&mut self, fields: &[FieldSig]) -> Vec<FieldDef> {
        fields
            .iter()
            .map(|field| {
                let default = field.default.as_ref().map(|(file, default)| {
                    let mut scope = Scope::new(self.tables, self.layer, *file, self.out);
                    scope.constant = true;
                    scope.expr_as(default, &field.ty)
                });
                FieldDef { name: field.name.clone(), ty: field.ty.stored(), default }
            })
            .collect()
    }
}

/// Lowers all named types.
pub(crate) fn types(tables: &Tables, program: &mut Program, out: &mut Vec<Diagnostic>) {
    for def in &tables.types {
        let file = def.spot.file;
        let mut scope = Scope::new(tables, tables.layer_of(file), file, out);
        let kind = match &def.shape {
            Shape::Record(fields) => TypeKind::Record(scope.field_defs(fields)),
            Shape::Error(fields) => TypeKind::Error(scope.field_defs(fields)),
            Shape::Union(variants) => {
                let defs = variants.iter().map(|variant| VariantDef {
                    name: variant.name.clone(),
                    fields: scope.field_defs(&variant.fields),
                });
                TypeKind::Union(defs.collect())
            }
        };
        program.types.push(TypeDef { name: def.name.clone(), kind });
    }
}

/// Lowers all functions.
pub(crate) fn functions(texts: &Texts, tables: &Tables, program: &mut Program, out: &mut Vec<Diagnostic>) {
    for (at, (file, text)) in texts.functions.iter().enumerate() {
        let signature = &tables.functions[at];
        let mut scope = Scope::new(tables, tables.layer_of(*file), *file, out);
        scope.field_defs(&signature.params);
        for param in &signature.params {
            scope.bind(&param.name, param.ty.clone());
        }
        let body = match text.body() {
            Some(body) => scope.expr_as(&body, &signature.result),
            None => Expr::Lit(Literal::Nothing),
        };
        let name = text.name().map(|name| name.text()).unwrap_or_default();
        let params = u32::try_from(signature.params.len()).unwrap_or(u32::MAX);
        program.functions.push(Function { name, params, body, frame: scope.frame() });
    }
}

/// Lowers all retry policies.
pub(crate) fn retries(texts: &Texts, tables: &Tables, program: &mut Program, out: &mut Vec<Diagnostic>) {
    for (file, text) in &texts.retries {
        let mut scope = Scope::new(tables, tables.layer_of(*file), *file, out);
        let rules = text.rules().map(|rule| scope.retry_rule(&rule)).collect();
        let name = text.name().map(|name| name.text()).unwrap_or_default();
        program.retries.push(Retry { name, rules, then_hold: text.then_hold() });
    }
}

impl Scope<'_> {
    fn retry_rule(&mut self, of: &ast::RetryRule) -> RetryRule {
        let mut on = Vec::new();
        for name in of.outcomes().filter_map(|outcome| outcome.name()) {
            let word = name.text();
            let known = matches!(word.as_str(), "failed" | "timeout" | "problem");
            if !known && word.starts_with(|first: char| first.is_ascii_lowercase()) {
                let message = format!("`{word}` is not retried");
                let diagnostic = self.error(deadlines::BAD_RETRY, name.span(), message);
                self.report(diagnostic.expected("the name of an error, `failed`, `timeout` or `problem`"));
            } else if !known {
                self.error_named(&name);
            }
            on.push(word);
        }
        let attempts_max = of
            .attempts()
            .and_then(|count| count.value())
            .map_or(1, |count| u32::try_from(count).unwrap_or(u32::MAX));
        if attempts_max == 0 {
            let diagnostic = self.error(effects::BAD_COUNT, of.span(), "`up to 0 attempts` would never try");
            self.report(diagnostic.expected("at least 1"));
        }
        let ms = |written: ast::DurLiteral| written.ms().and_then(|ms| u64::try_from(ms).ok()).unwrap_or(1);
        let (wait_ms, wait_ms_max) = (of.wait().map_or(1, ms), of.doubling_to().map(ms));
        if wait_ms == 0 {
            let diagnostic =
                self.error(deadlines::BAD_RETRY, of.span(), "the wait before the next attempt is zero");
            self.report(diagnostic.expected("a wait above zero, such as `1s`"));
        }
        if wait_ms_max.is_some_and(|cap| cap <= wait_ms) {
            let diagnostic =
                self.error(deadlines::BAD_RETRY, of.span(), "the wait cannot double up to less than itself");
            self.report(diagnostic.expected("a cap above the first wait"));
        }
        let hint = of.hint();
        if let Some(hint) = &hint {
            self.check_hint(&on, hint);
        }
        RetryRule { on, attempts_max, wait_ms, wait_ms_max, hint: hint.map(|hint| hint.text()) }
    }

    /// The hint must be a duration in one of the errors.
    fn check_hint(&mut self, on: &[String], hint: &ast::NameRef) {
        let word = hint.text();
        let tables = self.tables;
        let errors = on.iter().filter_map(|name| tables.error(self.layer, name));
        let gives = |ix: crate::machine::TypeIx| {
            tables.types[ix.at()]
                .all_fields()
                .any(|field| field.name == word && *field.ty.present() == Ty::Duration)
        };
        if !errors.into_iter().any(gives) {
            let message = format!("none of the errors has a field `{word}: duration`");
            let diagnostic = self.error(deadlines::BAD_RETRY, hint.span(), message);
            self.report(diagnostic);
        }
    }
}
