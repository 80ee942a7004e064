//! Writes the sugar of a text out: a state with `steps` becomes the chain of states that it stands for.
//!
//! What is in the chain is read from the checked machine (its states, parameters and outcomes), how it is written from the text,
//! whose comments are kept. The first state keeps the name of the block, so that whatever leads to it still does; the others
//! follow behind all states of the flow, where the machine has them. Leaves the layout to the formatter and the cutting to `chain`.
//! Invariant: the machines stay the same except for the names of the states of a chain. Start with [`expand`].

mod chain;

use std::collections::{BTreeMap, BTreeSet};

use super::format;
use crate::check::notes::Notes;
use crate::check::tables::{Tables, UpperName};
use crate::check::{Checked, CheckedFlow, noted};
use crate::diag::{Diagnostic, FileId, Fix, LineIndex, Position, TextSpan};
use crate::files::SourceFile;
use crate::fix::apply;
use crate::machine::{Flow, Machine, Mention, Type};
use crate::syntax::ast::{self, AstNode as _};
use crate::syntax::kind::SyntaxKind;
use crate::syntax::parse;
use crate::syntax::words::to_upper_name;
use chain::{Chain, Link};

/// Why the sugar of a text was not written out.
#[derive(Clone, Debug, PartialEq)]
pub enum ExpandError {
    /// The text has errors; the diagnostics say which.
    Wrong(Box<Checked>),
    /// The chain has something that cannot be written by hand.
    Unwritable {
        /// Where in the text.
        at: Position,
        /// What it is, and what to do.
        message: String,
    },
    /// The text would not mean the same: a mistake of this function.
    Changed,
}

/// Something that cannot be written by hand: where, and what it is.
struct Unwritable(TextSpan, String);

/// Writes out every `steps` of `file` and lays the text out; `attachments` holds what the file uses.
///
/// # Errors
/// [`ExpandError`] if the text has errors, or if it says what can be said with sugar only.
pub fn expand(file: &SourceFile, attachments: &BTreeMap<String, String>) -> Result<String, ExpandError> {
    let (checked, tables) = noted(std::slice::from_ref(file), attachments, Notes::default());
    if checked.diagnostics.iter().any(Diagnostic::is_error) {
        return Err(ExpandError::Wrong(Box::new(checked)));
    }
    let tree = parse(FileId(0), &file.text).syntax();
    let tokens = tree.descendants_with_tokens().filter_map(|element| element.into_token());
    let upper = tokens.filter(|token| token.kind() == SyntaxKind::Upper);
    let taken = upper.map(|token| token.text().to_owned()).collect();
    let mut writer =
        Writer { text: &file.text, tables: &tables, taken, edits: Vec::new(), names: BTreeMap::new() };
    for flow in tree.children().filter_map(ast::Flow::cast) {
        let name = ast::text_of(flow.name());
        let Some(found) = checked.flows.iter().find(|one| Some(&one.name) == name.as_ref()) else { continue };
        writer.flow(&flow, found).map_err(|Unwritable(span, message)| {
            let at = LineIndex::new(&file.text).position(span.start, &file.text);
            ExpandError::Unwritable { at, message }
        })?;
    }
    let Writer { edits, names, .. } = writer;
    let (text, _) = apply(&file.text, &edits.iter().collect::<Vec<_>>());
    let text = format(FileId(0), &text).map_err(|_| ExpandError::Changed)?;
    let after = SourceFile { name: file.name.clone(), text };
    let machines = noted(std::slice::from_ref(&after), attachments, Notes::default()).0.flows;
    let alike = machines.len() == checked.flows.len()
        && machines.iter().zip(&checked.flows).all(|(new, old)| new.machine == renamed(&old.machine, &names));
    if alike { Ok(after.text) } else { Err(ExpandError::Changed) }
}

/// The names that states get, by flow and by the name that the machine has for them.
type Names = BTreeMap<(String, String), String>;

fn renamed(machine: &Machine, names: &Names) -> Machine {
    let mut machine = machine.clone();
    for flow in &mut machine.flows {
        for state in &mut flow.states {
            if let Some(name) = names.get(&(flow.name.clone(), state.name.clone())) {
                state.name.clone_from(name);
            }
        }
    }
    machine
}

/// Collects what is to be changed.
struct Writer<'t> {
    text: &'t str,
    tables: &'t Tables,
    /// Names with a capital that mean something in the text.
    taken: BTreeSet<String>,
    edits: Vec<Fix>,
    names: Names,
}

impl Writer<'_> {
    fn flow(&mut self, text: &ast::Flow, checked: &CheckedFlow) -> Result<(), Unwritable> {
        let mut behind = String::new();
        let flow = checked.machine.root();
        for state in text.states() {
            let Some(ast::Effect::Steps(steps)) = state.effect() else { continue };
            let Some(name) = state.name() else { continue };
            let links = self.links(&name.text(), &steps, flow);
            let chain = Chain::of(self.text, &state, &steps, &checked.machine);
            for (at, link) in links.iter().enumerate() {
                let body = chain.body(link, at, links.get(at + 1))?;
                if at == 0 {
                    self.replace(chain.span(), body);
                } else {
                    let params = self.params(link, &checked.machine)?;
                    behind.push_str(self.gap_before(&state));
                    behind.push_str(&format!("state {}{params} {{\n{body}}}\n", link.name));
                }
            }
        }
        let close = text.syntax().last_token().filter(|token| token.kind() == SyntaxKind::RBrace);
        if let (false, Some(close)) = (behind.is_empty(), close) {
            let start = TextSpan::from(close.text_range()).start;
            self.replace(TextSpan::empty(start), format!("\n{behind}"));
        }
        Ok(())
    }

    /// The states of the machine that a block of steps stands for, with names for them.
    fn links<'m>(&mut self, name: &str, steps: &ast::Steps, flow: &'m Flow) -> Vec<Link<'m>> {
        let mut links = Vec::new();
        for step in steps.steps() {
            let Some(word) = ast::text_of(step.name()) else { continue };
            let known = format!("{name}.{word}");
            let Some(state) = flow.states.iter().find(|state| state.name == known) else { continue };
            let new = if links.is_empty() { name.to_owned() } else { self.free_name(name, &word) };
            self.names.insert((flow.name.clone(), known), new.clone());
            links.push(Link { name: new, step, state });
        }
        links
    }

    fn free_name(&mut self, state: &str, step: &str) -> String {
        let name = format!("{state}{}", to_upper_name(step));
        let mut free = name.clone();
        let mut count = 1;
        while !self.taken.insert(free.clone()) {
            count += 1;
            free = format!("{name}{count}");
        }
        free
    }

    /// White space as it stands before the written state, so that states with empty lines between them have them here too.
    fn gap_before(&self, state: &ast::State) -> &'static str {
        let before = &self.text[..state.span().start as usize];
        let gap = &before[before.trim_end().len()..];
        if gap.matches('\n').count() > 1 { "\n" } else { "" }
    }

    fn params(&self, link: &Link<'_>, machine: &Machine) -> Result<String, Unwritable> {
        let mut all = Vec::new();
        for param in &link.state.params {
            let ty = self.ty(&param.ty, machine, link.step.span())?;
            all.push(format!("{}: {ty}", param.name));
        }
        Ok(if all.is_empty() { String::new() } else { format!("({})", all.join(", ")) })
    }
}

impl Writer<'_> {
    /// A type as it is written in this file.
    fn ty(&self, ty: &Type, machine: &Machine, at: TextSpan) -> Result<String, Unwritable> {
        ty.written(&mut |named| match named {
            Mention::Type(ix) => self.in_sight(&machine.type_def(ix).name, at),
            Mention::Flow(ix) => self.in_sight(&machine.flows[ix.at()].name, at),
        })
    }

    /// The name of a type or flow, if this file can say it.
    fn in_sight(&self, name: &str, at: TextSpan) -> Result<String, Unwritable> {
        // As a type, a flow's name is its result.
        let (word, is_result) = name.strip_suffix(".result").map_or((name, false), |flow| (flow, true));
        let is_same = match self.tables.upper(self.tables.layer_of(FileId(0)), word) {
            Some(UpperName::Type(ix)) => !is_result && self.tables.types[ix.at()].name == word,
            Some(UpperName::Flow(ix)) => self.tables.flows[ix.at()].name == word,
            // The types of a catalogue are named by it.
            None => word.contains('.'),
        };
        let message = format!("the type `{word}` has no name in this file; import it with `use`");
        if is_same { Ok(word.to_owned()) } else { Err(Unwritable(at, message)) }
    }

    fn replace(&mut self, span: TextSpan, replacement: String) {
        self.edits.push(Fix { span, replacement, safe: true });
    }
}
