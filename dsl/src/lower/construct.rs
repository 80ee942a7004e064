//! Values built with braces: records, variants, errors.
//!
//! Leaves which fields a type has to `check::tables`. Invariant: a lowered value has all its fields, in declared order.

use super::expr::Typed;
use super::scope::Scope;
use super::word::Word;
use crate::check::tables::{FieldSig, Shape, UpperName, VariantSig, problem_fields};
use crate::check::ty::Ty;
use crate::diag::TextSpan;
use crate::diag::catalogue::{names, types};
use crate::machine::{Expr, Literal, TypeIx};
use crate::syntax::ast::{self, AstNode as _};

/// What a construct turned out to build.
enum Built {
    Record(TypeIx),
    Error(TypeIx),
    Variant(TypeIx, usize),
    /// A variant of `Slot<T>` or `Verdict<T>`, or `Problem`: tag, fields, type.
    Builtin(Option<String>, Vec<(String, Ty)>, Ty),
}

impl Scope<'_> {
    pub(crate) fn construct(&mut self, of: &ast::Construct, want: Option<&Ty>) -> Typed {
        let Some(built) = self.resolve(of, want) else {
            of.inits().filter_map(|init| init.value()).for_each(|value| drop(self.expr(&value, None)));
            return Typed::unknown();
        };
        let tables = self.tables;
        match built {
            Built::Record(ix) => match &tables.types[ix.at()].shape {
                Shape::Record(fields) => {
                    self.check_literals(ix, of);
                    let fields = self.inits(of, fields, &tables.types[ix.at()].name);
                    Typed::new(Expr::Record(ix, fields), Ty::Named(ix))
                }
                Shape::Union(_) | Shape::Error(_) => Typed::unknown(),
            },
            Built::Error(ix) => match &tables.types[ix.at()].shape {
                Shape::Error(fields) => {
                    let name = tables.types[ix.at()].name.clone();
                    let fields = self.inits(of, fields, &name);
                    Typed::new(Expr::Variant(ix, name, fields), Ty::Named(ix))
                }
                Shape::Union(_) | Shape::Record(_) => Typed::unknown(),
            },
            Built::Variant(ix, at) => match &tables.types[ix.at()].shape {
                Shape::Union(variants) => {
                    let VariantSig { name, fields } = &variants[at];
                    self.check_literals(ix, of);
                    let fields = self.inits(of, fields, name);
                    Typed::new(Expr::Variant(ix, name.clone(), fields), Ty::Named(ix))
                }
                Shape::Record(_) | Shape::Error(_) => Typed::unknown(),
            },
            Built::Builtin(tag, fields, ty) => {
                let spot = self.spot(of.span());
                let fields: Vec<FieldSig> =
                    fields.into_iter().map(|(name, ty)| FieldSig { name, ty, default: None, spot }).collect();
                let name = tag.clone().unwrap_or_else(|| "Problem".to_owned());
                let fields = self.inits(of, &fields, &name);
                Typed::new(Expr::BuiltinRecord(tag, fields), ty)
            }
        }
    }

    /// Finds what a construct builds: by its qualifier, else by the wanted type, else by its name alone.
    fn resolve(&mut self, of: &ast::Construct, want: Option<&Ty>) -> Option<Built> {
        let path = of.path()?;
        let name = Word::from(path.last()?);
        let word = name.text();
        if let Some(catalogue) = path.catalogue() {
            return match self.tool_type(&catalogue.into(), &name) {
                Ty::Unknown => None,
                ty => self.built_of_tool(&ty, &name),
            };
        }
        if let Some(qualifier) = path.qualifier() {
            return self.resolve_qualified(&qualifier.into(), &name);
        }
        if let Some(found) = want.and_then(|want| self.in_type(want.bare(), &word)) {
            return Some(found);
        }
        if let Some(found) = self.by_name(&word) {
            return Some(found);
        }
        self.by_variant(&name, want)
    }

    fn built_of_tool(&mut self, ty: &Ty, name: &Word) -> Option<Built> {
        let found = self.in_type(ty, &name.text());
        if found.is_none() {
            let message = format!("`{}` is `{}` and has no fields", name.text(), self.tables.show(ty));
            let diagnostic = self.error(types::WRONG_TYPE, name.span(), message);
            self.report(diagnostic);
        }
        found
    }

    fn resolve_qualified(&mut self, qualifier: &Word, name: &Word) -> Option<Built> {
        let (owner, word) = (qualifier.text(), name.text());
        let ty = match self.tables.upper(self.layer, &owner) {
            Some(UpperName::Type(ix)) => Ty::Named(ix),
            Some(UpperName::Flow(ix)) => self.tables.flows[ix.at()].result.clone(),
            None if owner == "Slot" => Ty::Slot(Box::new(Ty::Unknown)),
            None if owner == "Verdict" => Ty::Verdict(Box::new(Ty::Unknown)),
            None if owner == "Ended" => Ty::Ended(Box::new(Ty::Unknown)),
            None => {
                let near = self.tables.near_upper(self.layer, &owner, |_| true).map(str::to_owned);
                let message = format!("there is no type `{owner}`");
                self.report_unknown(names::UNKNOWN_TYPE, qualifier.span(), message, near.as_deref());
                return None;
            }
        };
        let found = self.in_type(&ty, &word);
        if found.is_none() {
            self.report_no_variant(&ty, name);
        }
        found
    }

    /// What `word` builds where a value of type `ty` is wanted.
    fn in_type(&self, ty: &Ty, word: &str) -> Option<Built> {
        match ty {
            Ty::Named(ix) => {
                let def = &self.tables.types[ix.at()];
                match &def.shape {
                    Shape::Record(_) => is_named(&def.name, word).then_some(Built::Record(*ix)),
                    Shape::Error(_) => (def.name == word).then_some(Built::Error(*ix)),
                    Shape::Union(variants) => {
                        let at = variants.iter().position(|variant| variant.name == word)?;
                        Some(Built::Variant(*ix, at))
                    }
                }
            }
            Ty::Slot(_) | Ty::Verdict(_) | Ty::Ended(_) => {
                let variants = self.tables.variants(ty)?;
                let (tag, fields) = variants.into_iter().find(|(tag, _)| tag == word)?;
                Some(Built::Builtin(Some(tag), fields, ty.clone()))
            }
            _ => None,
        }
    }

    /// A record, an error or `Problem`.
    fn by_name(&self, word: &str) -> Option<Built> {
        match self.tables.upper(self.layer, word) {
            Some(UpperName::Type(ix)) => self.in_type(&Ty::Named(ix), word),
            Some(UpperName::Flow(_)) => None,
            None if word == "Problem" => Some(Built::Builtin(None, problem_fields(), Ty::Problem)),
            None => None,
        }
    }

    /// The only union in sight that has such a variant.
    fn by_variant(&mut self, name: &Word, want: Option<&Ty>) -> Option<Built> {
        let word = name.text();
        let unions: Vec<(TypeIx, usize)> = self.tables.unions_with(self.layer, &word);
        match (unions.as_slice(), want) {
            // What is wanted has no such variant, so the one that has it is the likelier mistake.
            ([(ix, at)], _) => Some(Built::Variant(*ix, *at)),
            ([], Some(want)) if self.tables.variants(want.bare()).is_some() => {
                let want = want.bare().clone();
                self.report_no_variant(&want, name);
                None
            }
            ([], _) if matches!(word.as_str(), "Done" | "Failed" | "Cut" | "NotStarted") => {
                self.in_type(&Ty::Slot(Box::new(Ty::Unknown)), &word)
            }
            ([], _) if word == "Cancelled" => self.in_type(&Ty::Ended(Box::new(Ty::Unknown)), &word),
            ([], _) if matches!(word.as_str(), "Happened" | "NotHappened" | "CannotTell") => {
                self.in_type(&Ty::Verdict(Box::new(Ty::Unknown)), &word)
            }
            ([], _) => {
                let known = self.tables.near_constructor(self.layer, &word).map(str::to_owned);
                let message = format!("there is no record, variant or error `{word}`");
                self.report_unknown(names::UNKNOWN_TYPE, name.span(), message, known.as_deref());
                None
            }
            (several, _) => {
                let owners: Vec<String> = several
                    .iter()
                    .map(|(ix, _)| format!("`{}.{word}`", self.tables.types[ix.at()].name))
                    .collect();
                let diagnostic = self.error(
                    names::AMBIGUOUS_VARIANT,
                    name.span(),
                    format!("several types have a variant `{word}`"),
                );
                self.report(diagnostic.expected(owners.join(" or ")));
                None
            }
        }
    }

    fn report_no_variant(&mut self, ty: &Ty, name: &Word) {
        let word = name.text();
        let shown = self.tables.show(ty);
        let variants = self.tables.variants(ty).unwrap_or_default();
        let near = self.tables.closest(&word, variants.iter().map(|(tag, _)| tag.as_str()));
        let message = format!("`{shown}` has no variant `{word}`");
        self.report_unknown(names::UNKNOWN_TYPE, name.span(), message, near);
    }

    /// Texts that are written out, where a tool takes only some.
    fn check_literals(&mut self, ix: TypeIx, of: &ast::Construct) {
        let tables = self.tables;
        for init in of.inits() {
            let Some(name) = init.field().map(|name| name.text()) else { continue };
            let Some(allowed) = tables.literals.get(&(ix, name)) else { continue };
            let Some(ast::Expr::String(text)) = init.value() else { continue };
            let Some(plain) = text.plain().filter(|plain| !allowed.contains(plain)) else { continue };
            let near = self.tables.closest(&plain, allowed.iter().map(String::as_str));
            let all: Vec<String> = allowed.iter().map(|one| format!("\"{one}\"")).collect();
            let message = "the tool does not take this text";
            let diagnostic = self.error(types::WRONG_TYPE, text.span(), message).expected(all.join(" or "));
            self.report(match near {
                Some(near) => diagnostic.unsure_fix(text.span(), format!("\"{near}\"")),
                None => diagnostic,
            });
        }
    }

    /// The fields of a construct in declared order, defaults filled in.
    pub(crate) fn inits(
        &mut self,
        of: &ast::Construct,
        fields: &[FieldSig],
        owner: &str,
    ) -> Vec<(String, Expr)> {
        let mut values: Vec<Option<Expr>> = vec![None; fields.len()];
        for init in of.inits() {
            let Some(name) = init.field().map(Word::from) else { continue };
            let word = name.text();
            let Some(at) = fields.iter().position(|field| field.name == word) else {
                let near = self.tables.closest(&word, fields.iter().map(|field| field.name.as_str()));
                self.report_unknown(
                    names::UNKNOWN_FIELD,
                    name.span(),
                    format!("`{owner}` has no field `{word}`"),
                    near,
                );
                init.value().iter().for_each(|value| drop(self.expr(value, None)));
                continue;
            };
            let want = &fields[at].ty;
            let value = match init.value() {
                Some(value) => self.expr_as(&value, want),
                None => self.same_named(&name, want),
            };
            if values[at].replace(value).is_some() {
                let diagnostic =
                    self.error(types::REPEATED_FIELD, name.span(), format!("`{word}` has a value already"));
                self.report(diagnostic);
            }
        }
        self.fill(fields, values, owner, of.span())
    }

    /// `{ text }` is short for `{ text: text }`.
    fn same_named(&mut self, name: &Word, want: &Ty) -> Expr {
        let word = name.text();
        match self.find(&word).cloned() {
            Some(variable) => self.fit(Typed::new(variable.read, variable.ty), want, name.span()),
            None => {
                let near = self.near(&word).map(str::to_owned);
                let message = format!("there is no variable `{word}` here that the field could take");
                self.report_unknown(names::UNKNOWN_NAME, name.span(), message, near.as_deref());
                Typed::unknown().expr
            }
        }
    }

    fn fill(
        &mut self,
        fields: &[FieldSig],
        values: Vec<Option<Expr>>,
        owner: &str,
        span: TextSpan,
    ) -> Vec<(String, Expr)> {
        let mut missing = Vec::new();
        let filled = fields.iter().zip(values).map(|(field, value)| {
            let value = match value {
                Some(value) => value,
                None if field.default.is_some() => self.default_of(field),
                None => {
                    if !matches!(field.ty, Ty::Option(_) | Ty::Unknown) {
                        missing.push(format!("`{}`", field.name));
                    }
                    Expr::Lit(Literal::None)
                }
            };
            (field.name.clone(), value)
        });
        let filled = filled.collect();
        if !missing.is_empty() {
            let message = format!("`{owner}` also needs {}", missing.join(", "));
            let diagnostic = self.error(types::MISSING_FIELD, span, message);
            let shape: Vec<String> = fields
                .iter()
                .map(|field| format!("{}: {}", field.name, self.tables.show(&field.ty)))
                .collect();
            self.report(diagnostic.expected(format!("`{owner} {{ {} }}`", shape.join(", "))));
        }
        filled
    }
}

/// Whether a type has this name; that of a catalogue's type stands behind a dot.
fn is_named(full: &str, word: &str) -> bool {
    full == word || full.split_once('.').is_some_and(|(_, name)| name == word)
}
