//! Sagas: steps that nothing undoes, although the flow may still fail after them.
//!
//! Leaves the shape of `undo f` to `lower::activities`. Invariant: a step that only reads, or after which nothing fails, needs no undo.

use std::collections::BTreeSet;

use super::Analysed;
use crate::diag::Diagnostic;
use crate::diag::catalogue::effects;
use crate::lower::flows::position;
use crate::lower::places::Part;
use crate::machine::link::Program;
use crate::machine::{ActivityIx, EffectClass, FlowIx, ToolEffect};

/// Reports the steps of a saga that would be left as they are.
pub(super) fn check(of: &Analysed<'_>, ix: FlowIx, out: &mut Vec<Diagnostic>) {
    let flow = of.flow(ix);
    if !flow.saga {
        return;
    }
    let may_be_undone = of.graph(ix).may_be_undone(&of.fails_late);
    for (at, state) in flow.states.iter().enumerate() {
        let state_ix = super::state_ix(at);
        let Some(activity) = of.lasting.first_in(&state.effect) else { continue };
        if !may_be_undone[at] {
            continue;
        }
        let name = &of.program.activities[activity.at()].name;
        let spot = of.spot(ix, Some(state_ix), &Part::Effect);
        let message = format!("nothing undoes `{name}`, and `{}` may fail after it", flow.name);
        let diagnostic = Diagnostic::error(effects::NO_UNDO, spot.file, spot.span, message);
        out.push(
            diagnostic
                .expected(format!("`undo f` on `{name}`, or nothing behind it that leads to `fail`"))
                .hint("put the step that cannot be undone last"),
        );
    }
}

/// Finds out which flows may fail by themselves after a step that nothing undoes. A saga that does is wrong itself.
pub(super) fn find_late(of: &mut Analysed<'_>) {
    let flows = &of.program.flows;
    if !flows.iter().any(|flow| flow.saga) {
        return;
    }
    let callers = super::callers(of.program);
    let mut pending: BTreeSet<usize> = (0..flows.len()).filter(|at| !flows[*at].saga).collect();
    while let Some(at) = pending.pop_first() {
        let ix = FlowIx(position(at));
        if flows[at].states.is_empty() || flows[at].saga || of.fails_late[at] {
            continue;
        }
        let after = of.graph(ix).may_be_undone(&of.fails_late);
        let lasts = |at: usize| of.lasting.may_be_in(&flows[ix.at()].states[at].effect);
        if (0..after.len()).any(|state| after[state] && lasts(state)) {
            of.fails_late[at] = true;
            pending.extend(&callers[at]);
        }
    }
}

/// Whether an activity may change something, and nothing undoes it.
pub(super) fn changes_for_good(program: &Program, activity: ActivityIx) -> bool {
    let activity = &program.activities[activity.at()];
    let changes = match activity.effect {
        EffectClass::Pure => false,
        EffectClass::Idempotent | EffectClass::Once(_) => true,
        EffectClass::From(catalogue, ..) => {
            let tools = &program.catalogues[catalogue.at()].tools;
            tools.iter().any(|tool| tool.effect != ToolEffect::Pure)
        }
    };
    changes && activity.undo.is_none()
}
