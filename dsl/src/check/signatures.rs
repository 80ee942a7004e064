//! Fills in what the declarations say of their types: fields, parameters, results, errors.
//!
//! Leaves bodies, defaults and clauses to `lower`. Invariant: names are all declared before, so the order of declarations does
//! not matter.

use std::collections::BTreeSet;

use super::declare::{Texts, TypeText};
use super::tables::{FieldSig, Shape, Tables, VariantSig};
use super::ty::Ty;
use crate::diag::catalogue::types;
use crate::diag::{Diagnostic, FileId};
use crate::lower::scope::Scope;
use crate::syntax::ast::{self, AstNode as _};

/// Fills in all signatures.
pub(crate) fn fill(texts: &Texts, tables: &mut Tables, out: &mut Vec<Diagnostic>) {
    flow_results(texts, tables, out);
    for (at, (file, text)) in texts.types.iter().enumerate() {
        let shape = shape_of(&mut scope(tables, *file, out), text);
        tables.types[at].shape = shape;
    }
    for (at, (file, text)) in texts.activities.iter().enumerate() {
        let mut scope = scope(tables, *file, out);
        let params = scope.param_sigs(text.params());
        let result = text.result().map_or(Ty::Nothing, |ty| scope.ty(&ty));
        let raises = scope.raised(text.raises());
        let signature = &mut tables.activities[at];
        let class = text.effect().and_then(|class| class.word());
        signature.doubtful = matches!(class, Some(ast::EffectWord::Once | ast::EffectWord::From));
        signature.unknown_holds = text.unknown_holds().is_some();
        signature.costly = text.costs().is_some();
        (signature.params, signature.result, signature.raises) = (params, result, raises);
    }
    for (at, (file, text)) in texts.functions.iter().enumerate() {
        let mut scope = scope(tables, *file, out);
        let params = scope.param_sigs(text.params());
        let result = text.result().map_or(Ty::Unknown, |ty| scope.ty(&ty));
        let signature = &mut tables.functions[at];
        (signature.params, signature.result) = (params, result);
    }
    for (at, (file, text)) in texts.flows.iter().enumerate() {
        let mut scope = scope(tables, *file, out);
        let params = scope.param_sigs(text.params());
        let raises = scope.raised(text.raises());
        let emits = text.emits().map(|ty| scope.ty(&ty));
        let signature = &mut tables.flows[at];
        (signature.params, signature.raises, signature.emits) = (params, raises, emits);
        signature.saga = text.is_saga();
    }
    endless_types(tables, out);
}

fn scope<'t>(tables: &'t Tables, file: FileId, out: &'t mut Vec<Diagnostic>) -> Scope<'t> {
    Scope::new(tables, tables.layer_of(file), file, out)
}

/// The results of flows, which may be the results of other flows.
fn flow_results(texts: &Texts, tables: &mut Tables, out: &mut Vec<Diagnostic>) {
    // Each round settles the flows whose result is that of a settled one; a ring stays unknown.
    for round in 0..=texts.flows.len() {
        let mut found = Vec::new();
        let mut changed = false;
        for (at, (file, text)) in texts.flows.iter().enumerate() {
            let before = &tables.flows[at].result;
            let ty = match text.result() {
                None => Ty::Nothing,
                Some(written) => match written.ty() {
                    Some(ty) => scope(tables, *file, &mut found).ty(&ty),
                    None => before.clone(),
                },
            };
            changed |= ty != *before;
            tables.flows[at].result = ty;
        }
        if !changed || round == texts.flows.len() {
            out.append(&mut found);
            return;
        }
    }
}

fn shape_of(scope: &mut Scope<'_>, text: &TypeText) -> Shape {
    match text {
        TypeText::Error(decl) => {
            let fields = scope.field_sigs(decl.fields());
            refuse_tag(scope, &fields);
            Shape::Error(fields)
        }
        TypeText::Type(decl) => {
            if !decl.is_union() {
                return Shape::Record(scope.field_sigs(decl.fields()));
            }
            let shared = scope.field_sigs(decl.fields());
            refuse_tag(scope, &shared);
            variants(scope, decl.variants(), &shared)
        }
        TypeText::Result(decl) => variants(scope, decl.variants(), &[]),
    }
}

fn variants(
    scope: &mut Scope<'_>,
    variants: impl Iterator<Item = ast::Variant>,
    shared: &[FieldSig],
) -> Shape {
    let mut all: Vec<VariantSig> = Vec::new();
    for variant in variants {
        let Some(name) = variant.name() else { continue };
        let own = scope.field_sigs(variant.fields());
        refuse_tag(scope, &own);
        for field in own.iter().filter(|field| shared.iter().any(|one| one.name == field.name)) {
            let message = format!("`{}` is a field of every variant already", field.name);
            let diagnostic = scope.error(crate::diag::catalogue::names::DUPLICATE, field.spot.span, message);
            scope.report(diagnostic);
        }
        if all.iter().any(|one| one.name == name.text()) {
            let message = format!("`{}` is a variant already", name.text());
            let diagnostic = scope.error(crate::diag::catalogue::names::DUPLICATE, name.span(), message);
            scope.report(diagnostic);
            continue;
        }
        let fields = shared.iter().chain(&own).cloned().collect();
        all.push(VariantSig { name: name.text(), fields });
    }
    Shape::Union(all)
}

/// The tag of a variant is its field `type` in JSON.
fn refuse_tag(scope: &mut Scope<'_>, fields: &[FieldSig]) {
    for field in fields.iter().filter(|field| field.name == "type") {
        let message = "`type` holds the variant's name in JSON";
        let diagnostic = scope.error(types::RESERVED_FIELD, field.spot.span, message);
        scope.report(diagnostic.hint("choose another name, such as `kind`"));
    }
}

/// Reports types of which no value could be written down.
fn endless_types(tables: &Tables, out: &mut Vec<Diagnostic>) {
    let mut finite: BTreeSet<usize> = BTreeSet::new();
    loop {
        let is_finite = |fields: &[FieldSig]| fields.iter().all(|field| ends(&field.ty, &finite));
        let more: Vec<usize> = (0..tables.types.len())
            .filter(|at| !finite.contains(at))
            .filter(|at| match &tables.types[*at].shape {
                Shape::Record(fields) | Shape::Error(fields) => is_finite(fields),
                Shape::Union(variants) => {
                    variants.is_empty() || variants.iter().any(|one| is_finite(&one.fields))
                }
            })
            .collect();
        if more.is_empty() {
            break;
        }
        finite.extend(more);
    }
    for (_, def) in tables.types.iter().enumerate().filter(|(at, _)| !finite.contains(at)) {
        let message = format!("every `{}` would contain another one, without end", def.name);
        let diagnostic = Diagnostic::error(types::ENDLESS_TYPE, def.spot.file, def.spot.span, message);
        out.push(
            diagnostic.hint("put it into a list, a map or an option, or into some of the variants only"),
        );
    }
}

fn ends(ty: &Ty, finite: &BTreeSet<usize>) -> bool {
    match ty {
        Ty::Named(ix) => finite.contains(&ix.at()),
        Ty::Approved(of) => ends(of, finite),
        _ => true,
    }
}
