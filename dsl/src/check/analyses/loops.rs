//! Loops: those that may go round for ever within one moment, and those that only a broken limit leaves.
//!
//! Leaves finding them to `check::graph`. Invariant: a loop is reported at most once by each question.

use super::Analysed;
use crate::check::graph::{Graph, IdleCycle};
use crate::diag::Diagnostic;
use crate::diag::catalogue::flows;
use crate::lower::places::Part;
use crate::machine::{FlowIx, Measure, StateIx};

/// Reports the loops of a flow that are wrong, or that are not meant as they stand.
pub(super) fn check(of: &Analysed<'_>, ix: FlowIx, out: &mut Vec<Diagnostic>) {
    let graph = of.graph(ix);
    let unreachable = graph.unreachable();
    for cycle in graph.idle_cycles() {
        if unreachable.contains(&cycle.path[0]) {
            continue;
        }
        let names: Vec<String> =
            cycle.path.iter().map(|state| format!("`{}`", of.state_name(ix, *state))).collect();
        let message =
            format!("{} -> {} may go round for ever without moving on", names.join(" -> "), names[0]);
        let spot = of.spot(ix, Some(cycle.path[0]), &Part::State);
        out.push(super::at(flows::IDLE_CYCLE, spot, message).hint(advice(of, ix, &graph, &cycle)));
    }
    for (limit, state) in graph.left_by_limit_only() {
        let spot = of.spot(ix, None, &Part::Limit(limit));
        let name = of.state_name(ix, state);
        let message = format!("only a limit ends the loop at `{name}`");
        let diagnostic = Diagnostic::warning(flows::LIMIT_AS_EXIT, spot.file, spot.span, message);
        out.push(diagnostic.hint(
            "a limit is for what should not happen: say with an arrow when the loop is done, or use `each … in range(…)`",
        ));
    }
}

/// Why the limits of the flow do not bound a cycle, or how to bound it.
fn advice(of: &Analysed<'_>, ix: FlowIx, graph: &Graph<'_>, cycle: &IdleCycle) -> String {
    let name = |state: StateIx| of.state_name(ix, state);
    let data = |ix_of: crate::machine::DataIx| of.flow(ix).data[ix_of.at()].name.as_str();
    for limit in &of.flow(ix).limits {
        if let Some(field) = graph.cap_moved_within(cycle, limit) {
            return format!("a limit that moves is no bound: `{}` is changed on the way", data(field));
        }
        match limit.measure {
            Measure::Visits(counted, Some(since)) if cycle.holds(counted) && cycle.holds(since) => {
                return format!(
                    "`limit visits({0}) since {1}` is no bound: entering `{1}` sets the count back",
                    name(counted),
                    name(since)
                );
            }
            Measure::Data(counter) if graph.changes_within(cycle, counter) => {
                let counter = data(counter);
                return format!("`limit {counter}` is no bound: `{counter}` is not only raised on the way");
            }
            Measure::Visits(..) | Measure::Data(_) | Measure::Cost | Measure::Age => {}
        }
    }
    match graph.raised_within(cycle) {
        Some(counter) => format!("nothing bounds `{0}`: write `limit {0} <= n else -> …`", data(counter)),
        None => format!("bound it, such as with `limit visits({}) <= n else -> …`", name(cycle.path[0])),
    }
}
