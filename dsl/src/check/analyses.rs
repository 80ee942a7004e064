//! What is wrong with a whole flow or program although every part is right.
//!
//! Each file of `analyses/` holds one question. Leaves the graph to `check::graph`. Invariant: a flow is asked only if it was lowered without a
//! mistake, so that nothing here follows from something that is reported already.

mod cost;
mod deadlines;
mod loops;
mod opening;
mod sagas;
mod tools;
mod unused;

use std::collections::{BTreeMap, BTreeSet};

use super::declare::Texts;
use super::graph::{self, Graph, Passing};
use super::outcomes::possible;
use super::tables::{Spot, Tables};
use crate::diag::Diagnostic;
use crate::diag::catalogue::{flows, types};
use crate::lower::places::{Part, PlaceBook};
use crate::machine::link::Program;
use crate::machine::refs::{self, Ref};
use crate::machine::{Flow, FlowIx, StateDef, StateIx};
use crate::syntax::ast;
use opening::Opening;

/// A program that is lowered, with its texts and places.
pub(crate) struct Analysed<'a> {
    texts: &'a Texts,
    tables: &'a Tables,
    program: &'a Program,
    book: &'a PlaceBook,
    /// What surely happens in each flow before it is over.
    passing: Vec<Passing>,
    /// What may cost something.
    costly: Opening<'a>,
    /// What may change something that nothing undoes.
    lasting: Opening<'a>,
    /// Which flows may fail by themselves although something that nothing undoes was done inside by then.
    fails_late: Vec<bool>,
    /// The effects as they are written, by flow and name of the state.
    effects: BTreeMap<(FlowIx, String), ast::Effect>,
}

/// Reports what is wrong with the flows that are `clean`, and with the program as a whole.
pub(crate) fn check(
    texts: &Texts,
    tables: &Tables,
    program: &Program,
    book: &PlaceBook,
    clean: &[FlowIx],
    out: &mut Vec<Diagnostic>,
) {
    let costly = Opening::of(program, cost::costs);
    let passing = passing(tables, program, &costly);
    let effects = clean.iter().flat_map(|ix| effects(*ix, &texts.flows[ix.at()].1)).collect();
    let lasting = Opening::of(program, sagas::changes_for_good);
    let fails_late = vec![false; program.flows.len()];
    let mut analysed =
        Analysed { texts, tables, program, book, passing, costly, lasting, fails_late, effects };
    sagas::find_late(&mut analysed);
    // What nothing reads is often just what a mistake does not get to.
    let names_count = !out.iter().any(Diagnostic::is_error);
    let clean = clean.iter().filter(|ix| !program.flows[ix.at()].states.is_empty());
    for ix in clean.copied() {
        reachability(&analysed, ix, out);
        loops::check(&analysed, ix, out);
        deadlines::check(&analysed, ix, out);
        cost::check(&analysed, ix, out);
        sagas::check(&analysed, ix, out);
        if names_count {
            unused::flow(&analysed, ix, out);
        }
    }
    if names_count {
        unused::functions(&analysed, out);
    }
    tools::check(&analysed, out);
    flow_cycles(&analysed, out);
    function_cycles(&analysed, out);
}

impl<'a> Analysed<'a> {
    fn flow(&self, ix: FlowIx) -> &'a Flow {
        &self.program.flows[ix.at()]
    }

    fn graph(&self, ix: FlowIx) -> Graph<'_> {
        let costs = |state: &StateDef| self.costly.may_be_in(&state.effect);
        Graph::new(self.flow(ix), |state| possible(self.tables, &state.effect), costs, &self.passing)
    }

    /// Where a part stands; the head of the flow if nobody noted it.
    fn spot(&self, ix: FlowIx, state: Option<StateIx>, part: &Part) -> Spot {
        self.book.spot(ix, state, part).unwrap_or(self.tables.flows[ix.at()].spot)
    }

    fn state_name(&self, ix: FlowIx, state: StateIx) -> &'a str {
        &self.flow(ix).states[state.at()].name
    }

    /// The effect of a state as it is written; of a state that was made from `steps` its step.
    fn effect_text(&self, ix: FlowIx, state: StateIx) -> Option<&ast::Effect> {
        self.effects.get(&(ix, self.state_name(ix, state).to_owned()))
    }
}

/// The effects of a flow as they are written, by the names of the states that they became.
fn effects(ix: FlowIx, text: &ast::Flow) -> Vec<((FlowIx, String), ast::Effect)> {
    let mut all = Vec::new();
    for state in text.states() {
        let (Some(name), Some(effect)) = (state.name(), state.effect()) else { continue };
        if let ast::Effect::Steps(steps) = &effect {
            let named =
                steps.steps().filter_map(|step| Some((step.name()?.text().to_owned(), step.effect()?)));
            all.extend(named.map(|(step, effect)| ((ix, format!("{}.{step}", name.text())), effect)));
        }
        all.push(((ix, name.text().to_owned()), effect));
    }
    all
}

/// Finds out what surely happens inside flows: a flow that is not known to let anything happen lets nothing happen.
fn passing(tables: &Tables, program: &Program, costly: &Opening<'_>) -> Vec<Passing> {
    let mut known = vec![Passing::default(); program.flows.len()];
    let callers = callers(program);
    let mut pending: BTreeSet<usize> = (0..program.flows.len()).collect();
    while let Some(at) = pending.pop_first() {
        let flow = &program.flows[at];
        if flow.states.is_empty() {
            continue;
        }
        let costs = |state: &StateDef| costly.may_be_in(&state.effect);
        let next = Graph::new(flow, |state| possible(tables, &state.effect), costs, &known).passing();
        if next != known[at] {
            known[at] = next;
            pending.extend(&callers[at]);
        }
    }
    known
}

/// Which flows run each flow.
fn callers(program: &Program) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new(); program.flows.len()];
    for (from, flow) in program.flows.iter().enumerate() {
        for to in flow.states.iter().flat_map(|state| state.effect.runs()) {
            all[to.at()].push(from);
        }
    }
    all
}

fn reachability(of: &Analysed<'_>, ix: FlowIx, out: &mut Vec<Diagnostic>) {
    let graph = of.graph(ix);
    for state in graph.unreachable() {
        let message = format!("no arrow leads to `{}`", of.state_name(ix, state));
        let diagnostic = at(flows::UNREACHABLE_STATE, of.spot(ix, Some(state), &Part::State), message);
        out.push(diagnostic.hint("lead an arrow to it, or take it out"));
    }
    for state in graph.endless() {
        let message = format!("no way leads from `{}` to an end", of.state_name(ix, state));
        let diagnostic = at(flows::NO_END, of.spot(ix, Some(state), &Part::State), message);
        out.push(diagnostic.expected("an arrow to `end` or `fail`, here or further on"));
    }
}

/// Reports flows that run themselves.
fn flow_cycles(of: &Analysed<'_>, out: &mut Vec<Diagnostic>) {
    let mut runs = Vec::new();
    for (from, flow) in of.program.flows.iter().enumerate() {
        for state in &flow.states {
            runs.extend(state.effect.runs().into_iter().map(|to| (from, to.at())));
        }
    }
    for cycle in graph::cycles(of.program.flows.len(), runs) {
        let names: Vec<String> = cycle.iter().map(|at| format!("`{}`", of.tables.flows[*at].name)).collect();
        let message = format!("{} would run inside itself without end", names.join(", "));
        out.push(at(flows::FLOW_CYCLE, of.tables.flows[cycle[0]].spot, message));
    }
}

/// Reports functions that call themselves.
fn function_cycles(of: &Analysed<'_>, out: &mut Vec<Diagnostic>) {
    let mut calls = Vec::new();
    for (from, function) in of.program.functions.iter().enumerate() {
        refs::function(&mut function.clone(), &mut |named| {
            if let Ref::Function(to) = named {
                calls.push((from, to.at()));
            }
        });
    }
    for cycle in graph::cycles(of.program.functions.len(), calls) {
        let names: Vec<String> =
            cycle.iter().map(|at| format!("`{}`", of.program.functions[*at].name)).collect();
        let message = format!("{} calls itself", names.join(", "));
        let diagnostic = at(types::RECURSION, of.tables.functions[cycle[0]].spot, message);
        out.push(diagnostic.hint("go over a list with `[… for x in xs]`, or over numbers with `range`"));
    }
}

fn at(code: crate::diag::Code, spot: Spot, message: String) -> Diagnostic {
    Diagnostic::error(code, spot.file, spot.span, message)
}

fn state_ix(at: usize) -> StateIx {
    StateIx(crate::lower::flows::position(at))
}
