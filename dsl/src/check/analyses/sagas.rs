//! Sagas: steps that nothing undoes, although the flow may still fail after them.
//!
//! Leaves the shape of `undo f` to `lower::activities`. Invariant: a step that only reads, or after which nothing fails, needs no undo.

use super::Analysed;
use crate::check::outcomes::as_effect;
use crate::diag::Diagnostic;
use crate::diag::catalogue::effects;
use crate::lower::places::Part;
use crate::machine::{ActivityIx, Effect, EffectClass, FlowIx, ToolEffect};

/// Reports the steps of a saga that would be left as they are.
pub(super) fn check(of: &Analysed<'_>, ix: FlowIx, out: &mut Vec<Diagnostic>) {
    let flow = of.flow(ix);
    if !flow.saga {
        return;
    }
    let may_be_undone = of.graph(ix).may_be_undone();
    for (at, state) in flow.states.iter().enumerate() {
        let state_ix = super::state_ix(at);
        let Some(activity) = of.left_behind(&state.effect, &mut vec![ix]) else { continue };
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

impl Analysed<'_> {
    /// An activity that an effect may open, that changes something and that nothing undoes.
    fn left_behind(&self, effect: &Effect, around: &mut Vec<FlowIx>) -> Option<ActivityIx> {
        match effect {
            Effect::Do(activity, ..) => self.changes_for_good(*activity).then_some(*activity),
            Effect::Run(flow, ..) => {
                if around.contains(flow) {
                    return None;
                }
                around.push(*flow);
                let mut states = self.flow(*flow).states.iter();
                let found = states.find_map(|state| self.left_behind(&state.effect, around));
                around.pop();
                found
            }
            Effect::Each(each) => self.left_behind(&as_effect(&each.body), around),
            Effect::Parallel(parallel) => {
                parallel.regions.iter().find_map(|region| self.left_behind(&as_effect(&region.body), around))
            }
            // A spawned run is undone by its own flow, if at all.
            Effect::Wait
            | Effect::Await(_)
            | Effect::Ask(_)
            | Effect::Spawn(_)
            | Effect::Choose(_)
            | Effect::Match(..) => None,
        }
    }

    fn changes_for_good(&self, activity: ActivityIx) -> bool {
        let activity = &self.program.activities[activity.at()];
        let changes = match activity.effect {
            EffectClass::Pure => false,
            EffectClass::Idempotent | EffectClass::Once(_) => true,
            EffectClass::From(catalogue, ..) => {
                let tools = &self.program.catalogues[catalogue.at()].tools;
                tools.iter().any(|tool| tool.effect != ToolEffect::Pure)
            }
        };
        changes && activity.undo.is_none()
    }
}
