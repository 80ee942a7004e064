//! Migrations: where runs of older versions of a flow go on.
//!
//! Leaves to the runtime which runs can follow. Invariant: a flow has at most one migration for each state of its older versions.

use super::flows::FlowCx;
use super::places::{Part, PlaceBook};
use super::scope::Scope;
use crate::check::declare::Texts;
use crate::check::tables::{FieldSig, Tables};
use crate::diag::catalogue::beside;
use crate::diag::{Diagnostic, FileId, TextSpan};
use crate::machine::link::Program;
use crate::machine::{Act, Flow, FlowIx, Goal, Migration, Place};
use crate::syntax::ast::{self, AstNode as _};

/// The state of an older version as it is written.
struct From {
    flow: Option<ast::NameRef>,
    /// The state's name; that of a step is `S.a`.
    state: String,
    span: TextSpan,
}

/// Lowers all migrations into their flows; `contexts` holds what belongs to each flow.
pub(crate) fn migrations(
    texts: &Texts,
    tables: &Tables,
    program: &mut Program,
    contexts: &[FlowCx<'_>],
    book: &mut PlaceBook,
    out: &mut Vec<Diagnostic>,
) {
    for (file, text) in &texts.migrations {
        let mut scope = Scope::new(tables, tables.layer_of(*file), *file, out);
        let Some(from) = from(text) else { continue };
        let of_file = texts.flows.iter().zip(contexts).filter(|((one, _), _)| one == file);
        let of_file: Vec<&FlowCx<'_>> = of_file.map(|(_, cx)| cx).collect();
        let Some(ix) = scope.migrated_flow(&from, text, &of_file) else { continue };
        let Some(migration) = scope.migration(&contexts[ix.at()], from.state.clone(), text) else { continue };
        let all = &mut program.flows[ix.at()].migrations;
        if all.iter().any(|one| one.from == from.state) {
            let message = format!("`{}` goes on somewhere already", from.state);
            out.push(Diagnostic::error(beside::MIGRATED_TWICE, *file, from.span, message));
            continue;
        }
        all.push(migration);
        note(book, ix, &from, *file);
    }
    for ((file, text), cx) in texts.flows.iter().zip(contexts) {
        Scope::new(tables, tables.layer_of(*file), *file, out).renamed(cx, text, &program.flows[cx.ix.at()]);
    }
}

fn note(book: &mut PlaceBook, ix: FlowIx, from: &From, file: FileId) {
    let spot = crate::check::tables::Spot { file, span: from.span };
    book.add(ix, None, Part::Migration(from.state.clone()), spot);
}

fn from(text: &ast::Migrate) -> Option<From> {
    let is_upper = |name: &ast::NameRef| name.text().starts_with(|first: char| first.is_ascii_uppercase());
    let (mut upper, mut lower): (Vec<_>, Vec<_>) = text.from().partition(is_upper);
    let (state, step) = (upper.pop()?, lower.pop());
    let flow = upper.pop();
    let span = flow.as_ref().map_or_else(|| state.span(), |flow| flow.span().cover(state.span()));
    let span = step.as_ref().map_or(span, |step| span.cover(step.span()));
    let state = step.map_or_else(|| state.text(), |step| format!("{}.{}", state.text(), step.text()));
    Some(From { flow, state, span })
}

impl Scope<'_> {
    /// The flow that is meant: the one that is named, else the only one of the file that has the new state.
    fn migrated_flow(&mut self, from: &From, text: &ast::Migrate, of_file: &[&FlowCx<'_>]) -> Option<FlowIx> {
        if let Some(name) = &from.flow {
            return self.flow_named(name);
        }
        if let [only] = of_file {
            return Some(only.ix);
        }
        let to = text.to()?.state()?.text();
        let meant: Vec<&&FlowCx<'_>> = of_file.iter().filter(|cx| cx.names.state(&to).is_some()).collect();
        if let [only] = meant.as_slice() {
            return Some(only.ix);
        }
        let message = if meant.is_empty() {
            format!("no flow of this file has a state `{to}`")
        } else {
            format!("several flows of this file have a state `{to}`")
        };
        let known = if meant.is_empty() { of_file.iter().collect() } else { meant };
        let known: Vec<String> =
            known.iter().map(|cx| format!("`{}.{}`", cx.signature.name, from.state)).collect();
        let diagnostic = self.error(beside::WHICH_FLOW, from.span, message);
        self.report(if known.is_empty() { diagnostic } else { diagnostic.expected(known.join(" or ")) });
        None
    }

    /// Reports states whose old name leads to another place as well.
    fn renamed(&mut self, cx: &FlowCx<'_>, text: &ast::Flow, flow: &Flow) {
        let mut seen: Vec<String> = Vec::new();
        for state in text.states() {
            let (Some(was), Some(name)) = (state.was(), state.name()) else { continue };
            let here = cx.names.state(&name.text());
            let word = was.text();
            let message = if cx.names.state(&word).is_some() {
                format!("`{word}` is still a state of this flow")
            } else if seen.contains(&word) {
                format!("another state says already that it was `{word}`")
            } else if flow.migrations.iter().any(|one| one.from == word && Some(one.to.state) != here) {
                format!("`migrate` says that `{word}` goes on somewhere else")
            } else {
                seen.push(word);
                continue;
            };
            let diagnostic = self.error(beside::MIGRATED_TWICE, was.span(), message);
            self.report(diagnostic);
        }
    }

    fn migration(&mut self, cx: &FlowCx<'_>, from: String, text: &ast::Migrate) -> Option<Migration> {
        let signatures: Vec<FieldSig> = self.param_sigs(text.params());
        let params = self.field_defs(&signatures);
        self.show_flow(cx);
        for param in &signatures {
            // It hides what has the same name in the new version.
            self.bind(&param.name, param.ty.clone());
        }
        let sets = text.assigns().filter_map(|assign| match self.assign(cx, &assign)? {
            Act::Set(assign) => Some(assign),
            Act::Discard(_) | Act::Settle(..) | Act::AlsoDo(..) | Act::Emit(_) => None,
        });
        let sets = sets.collect();
        match self.place(cx, &text.to()?)? {
            Goal::State(state, args) => {
                let frame = self.frame();
                Some(Migration { from, params, sets, to: Place { state, args }, frame })
            }
            Goal::Stay | Goal::End(_) | Goal::Fail(_) => None,
        }
    }
}
