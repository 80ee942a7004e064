//! What is wrong with a whole flow or program although every part is right: unreachable states, no way to an end, cycles.
//!
//! Leaves the graph to `check::graph`. Invariant: runs only on flows that were lowered without a mistake, so that nothing here
//! follows from something that is reported already.

use super::graph::{self, Graph};
use super::outcomes::possible;
use super::tables::{Spot, Tables};
use crate::diag::Diagnostic;
use crate::diag::catalogue::{flows, types};
use crate::lower::places::{Part, PlaceBook};
use crate::machine::link::Program;
use crate::machine::refs::{self, Ref};
use crate::machine::{FlowIx, StateIx};

/// Reports what is wrong with one flow.
pub(crate) fn flow(
    tables: &Tables,
    program: &Program,
    book: &PlaceBook,
    ix: FlowIx,
    out: &mut Vec<Diagnostic>,
) {
    let flow = &program.flows[ix.at()];
    if flow.states.is_empty() {
        return;
    }
    let name = |state: StateIx| flow.states[state.at()].name.clone();
    let spot =
        |state: StateIx| book.spot(ix, Some(state), &Part::State).unwrap_or(tables.flows[ix.at()].spot);
    let graph = Graph::new(flow, |state| possible(tables, &state.effect));
    for state in graph.unreachable() {
        let message = format!("no arrow leads to `{}`", name(state));
        out.push(
            at(flows::UNREACHABLE_STATE, spot(state), message).hint("lead an arrow to it, or take it out"),
        );
    }
    for state in graph.endless() {
        let message = format!("no way leads from `{}` to an end", name(state));
        out.push(
            at(flows::NO_END, spot(state), message)
                .expected("an arrow to `end` or `fail`, here or further on"),
        );
    }
    for cycle in graph.idle_cycles() {
        let names: Vec<String> = cycle.iter().map(|state| format!("`{}`", name(*state))).collect();
        let message = format!("{} may go round for ever without moving on", names.join(", "));
        let hint = format!("bound it, such as with `limit visits({}) <= n else -> …`", name(cycle[0]));
        out.push(at(flows::IDLE_CYCLE, spot(cycle[0]), message).hint(hint));
    }
}

/// Reports flows that run themselves and functions that call themselves.
pub(crate) fn program(tables: &Tables, program: &Program, out: &mut Vec<Diagnostic>) {
    let mut runs = Vec::new();
    for (from, flow) in program.flows.iter().enumerate() {
        for state in &flow.states {
            runs.extend(state.effect.runs().into_iter().map(|to| (from, to.at())));
        }
    }
    for cycle in graph::cycles(program.flows.len(), runs) {
        let names: Vec<String> = cycle.iter().map(|at| format!("`{}`", tables.flows[*at].name)).collect();
        let message = format!("{} would run inside itself without end", names.join(", "));
        out.push(at(flows::FLOW_CYCLE, tables.flows[cycle[0]].spot, message));
    }
    let mut calls = Vec::new();
    for (from, function) in program.functions.iter().enumerate() {
        refs::function(&mut function.clone(), &mut |named| {
            if let Ref::Function(to) = named {
                calls.push((from, to.at()));
            }
        });
    }
    for cycle in graph::cycles(program.functions.len(), calls) {
        let names: Vec<String> =
            cycle.iter().map(|at| format!("`{}`", program.functions[*at].name)).collect();
        let message = format!("{} calls itself", names.join(", "));
        let diagnostic = at(types::RECURSION, tables.functions[cycle[0]].spot, message);
        out.push(diagnostic.hint("go over a list with `[… for x in xs]`, or over numbers with `range`"));
    }
}

fn at(code: crate::diag::Code, spot: Spot, message: String) -> Diagnostic {
    Diagnostic::error(code, spot.file, spot.span, message)
}
