//! Names that nothing reads: data, messages, parameters and variables. All of these are warnings.
//!
//! Compares names within one declaration, or one state, as they are written; two variables of one name count as one. Invariant: a
//! name that begins with `_` is never reported, and neither is one that something reads.

use std::collections::BTreeSet;

use super::Analysed;
use crate::check::tables::Layer;
use crate::diag::catalogue::names;
use crate::diag::{Diagnostic, FileId};
use crate::machine::FlowIx;
use crate::syntax::ast::{self, AstNode as _};
use crate::syntax::kind::{SyntaxKind, SyntaxNode};

/// What helps against a name that nobody sees from outside.
const RENAME: &str = "take it out, or begin its name with `_`";
/// The input of a run names its parameters.
const FLOW_PARAM: &str = "take it out, or begin its name with `_`, in the inputs of its runs too";
/// Names of messages begin with a capital.
const MESSAGE: &str = "take it out, or add an arrow `on` it";

/// Reports what a flow declares and never reads.
pub(super) fn flow(of: &Analysed<'_>, ix: FlowIx, out: &mut Vec<Diagnostic>) {
    let (file, text) = &of.texts.flows[ix.at()];
    if of.tables.layer_of(*file) == Layer::Library {
        return;
    }
    let mut unused = Unused { file: *file, out };
    let all = reads(text.syntax());
    for data in text.data().filter_map(|data| data.name()) {
        unused.name(&all, &data, "reads the data", RENAME);
    }
    for param in text.params().filter_map(|param| param.name()) {
        unused.name(&all, &param, "reads the parameter", FLOW_PARAM);
    }
    let taken = words(text.syntax(), SyntaxKind::NameRef);
    for message in text.messages().filter_map(|message| message.name()) {
        unused.name(&taken, &message, "takes the message", MESSAGE);
    }
    for state in text.states() {
        let own = reads(state.syntax());
        for param in state.params().filter_map(|param| param.name()) {
            unused.name(&own, &param, "reads the parameter", RENAME);
        }
        unused.bindings(&own, state.syntax());
    }
    for arrow in text.arrows() {
        unused.bindings(&reads(arrow.syntax()), arrow.syntax());
    }
}

/// Reports what functions take or bind and never read.
pub(super) fn functions(of: &Analysed<'_>, out: &mut Vec<Diagnostic>) {
    for (file, text) in &of.texts.functions {
        if of.tables.layer_of(*file) == Layer::Library {
            continue;
        }
        let mut unused = Unused { file: *file, out };
        let own = reads(text.syntax());
        for param in text.params().filter_map(|param| param.name()) {
            unused.name(&own, &param, "reads the parameter", RENAME);
        }
        unused.bindings(&own, text.syntax());
    }
}

struct Unused<'o> {
    file: FileId,
    out: &'o mut Vec<Diagnostic>,
}

impl Unused<'_> {
    /// Reports a name that is not among those that are `read`; `idle` says what it is, `advice` what to do.
    fn name(&mut self, read: &BTreeSet<String>, name: &ast::Name, idle: &str, advice: &str) {
        let word = name.text();
        if word.starts_with('_') || read.contains(&word) {
            return;
        }
        let message = format!("nothing {idle} `{word}`");
        let diagnostic = Diagnostic::warning(names::UNUSED, self.file, name.span(), message);
        self.out.push(diagnostic.hint(advice));
    }

    /// The variables that arrows, effects, patterns and loops bring into sight.
    fn bindings(&mut self, read: &BTreeSet<String>, within: &SyntaxNode) {
        // A comprehension may count without looking.
        let owners = [SyntaxKind::Binding, SyntaxKind::FieldBind, SyntaxKind::Each];
        // The result of a member is what the group yields, named or not.
        let of_member = |node: &SyntaxNode| {
            let around = node.parent().and_then(|effect| effect.parent());
            node.kind() == SyntaxKind::Binding
                && around.is_some_and(|one| matches!(one.kind(), SyntaxKind::Each | SyntaxKind::Region))
        };
        // Without a variable a condition would not ask whether an option holds something.
        let of_cond = |node: &SyntaxNode| node.parent().is_some_and(|one| one.kind() == SyntaxKind::Cond);
        let owners = within
            .descendants()
            .filter(|node| owners.contains(&node.kind()) && !of_member(node) && !of_cond(node));
        for owner in owners {
            for name in owner.children().filter_map(ast::Name::cast) {
                let field = ast::FieldBind::cast(owner.clone()).and_then(|bind| bind.field());
                let advice = match field {
                    Some((field, span)) if span == name.span() => {
                        format!("take it out, or bind the field to a name of its own: `{field}: _{field}`")
                    }
                    Some(_) | None => RENAME.to_owned(),
                };
                self.name(read, &name, "reads the variable", &advice);
            }
        }
    }
}

/// The names that expressions, limits and shorthand fields read.
fn reads(node: &SyntaxNode) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for one in node.descendants() {
        let holds = match one.kind() {
            SyntaxKind::NameExpr | SyntaxKind::Measure | SyntaxKind::Settle => true,
            SyntaxKind::Init => ast::Init::cast(one.clone()).is_some_and(|init| init.is_shorthand()),
            _ => false,
        };
        if holds {
            all.extend(one.children().filter_map(ast::NameRef::cast).map(|name| name.text()));
        }
    }
    all
}

/// The texts of all nodes of a kind.
fn words(node: &SyntaxNode, kind: SyntaxKind) -> BTreeSet<String> {
    let nodes = node.descendants().filter(|one| one.kind() == kind);
    nodes.map(|one| one.text().to_string().trim().to_owned()).collect()
}
