//! Deadlines that do not nest: an outer one that is over before what is inside it may end.
//!
//! Compares only what is written as a literal; leaves the clauses of one activity to `lower::activities`. Invariant: what waits
//! `forever` is bounded by whatever is around it, so it never stands in the way.

use super::Analysed;
use crate::check::tables::Spot;
use crate::diag::Diagnostic;
use crate::diag::catalogue::deadlines;
use crate::lower::activities::shown;
use crate::lower::places::Part;
use crate::machine::{
    Each, EachBody, Effect, Expr, Flow, FlowIx, Goal, Literal, Measure, StateDef, StateIx, Wait,
};
use crate::syntax::ast::{self, AstNode as _};

/// The longest wait inside something.
#[derive(Clone, Debug)]
struct Longest {
    ms: u64,
    /// What waits, as a message names it.
    what: String,
    spot: Option<Spot>,
}

/// An outer deadline with what it is around.
struct Outer {
    ms: u64,
    clause: &'static str,
    spot: Spot,
    inside: Option<Longest>,
}

/// Reports the deadlines of a flow that are shorter than what they are around.
pub(super) fn check(of: &Analysed<'_>, ix: FlowIx, out: &mut Vec<Diagnostic>) {
    let flow = of.flow(ix);
    for at in 0..flow.states.len() {
        let state = super::state_ix(at);
        let text = of.effect_text(ix, state);
        report_all(of.bounds_of(ix, state, &flow.states[at].effect, text), out);
    }
    report_all(of.ages(ix), out);
    report_all(of.clean_up(ix).into_iter().collect(), out);
}

fn report_all(outers: Vec<Outer>, out: &mut Vec<Diagnostic>) {
    for Outer { ms, clause, spot, inside } in outers {
        let Some(Longest { ms: needed, what, spot: inner }) = inside.filter(|inside| inside.ms > ms) else {
            continue;
        };
        let message =
            format!("`{clause} {}` is over before {what} may end, after {}", shown(ms), shown(needed));
        let diagnostic = Diagnostic::error(deadlines::NOT_NESTED, spot.file, spot.span, message)
            .expected(format!("at least `{clause} {}`, or a shorter deadline inside", shown(needed)));
        out.push(match inner.filter(|inner| inner.file == spot.file) {
            Some(inner) => diagnostic.related(inner.span, "this may take longer"),
            None => diagnostic,
        });
    }
}

impl Analysed<'_> {
    /// The outer deadlines of an effect.
    fn bounds_of(
        &self,
        ix: FlowIx,
        state: StateIx,
        effect: &Effect,
        text: Option<&ast::Effect>,
    ) -> Vec<Outer> {
        let spot = self.spot(ix, Some(state), &Part::Effect);
        let at = |text: Option<&ast::Effect>| {
            let bound = text.and_then(bound_of);
            bound.map_or(spot, |bound| Spot { span: bound.span(), ..spot })
        };
        let run = |flow: FlowIx, wait: Option<&Wait>, text: Option<&ast::Effect>| {
            let ms = literal(wait?)?;
            Some(Outer { ms, clause: "within", spot: at(text), inside: self.longest(flow, &mut vec![ix]) })
        };
        match effect {
            Effect::Run(flow, _, wait, _) => run(*flow, wait.as_ref(), text).into_iter().collect(),
            Effect::Each(each) => self.bounds_of_each(ix, state, each, text),
            Effect::Parallel(parallel) => {
                let texts: Vec<ast::Effect> = match text {
                    Some(ast::Effect::Parallel(text)) => {
                        text.regions().filter_map(|one| one.effect()).collect()
                    }
                    Some(_) | None => Vec::new(),
                };
                let mut all = Vec::new();
                let mut longest = None;
                for (number, region) in parallel.regions.iter().enumerate() {
                    let text = texts.get(number);
                    all.extend(self.bounds_of_body(ix, state, &region.body, text));
                    longest = longer(longest, self.body_longest(ix, state, &region.body, &mut vec![ix]));
                }
                if let Some(ms) = parallel.within.as_ref().and_then(literal) {
                    all.push(Outer { ms, clause: "within", spot: at(text), inside: longest });
                }
                all
            }
            Effect::Wait
            | Effect::Do(..)
            | Effect::Await(_)
            | Effect::Ask(_)
            | Effect::Spawn(_)
            | Effect::Choose(_)
            | Effect::Match(..) => Vec::new(),
        }
    }

    fn bounds_of_each(
        &self,
        ix: FlowIx,
        state: StateIx,
        each: &Each,
        text: Option<&ast::Effect>,
    ) -> Vec<Outer> {
        let inner = match text {
            Some(ast::Effect::Each(text)) => text.effect(),
            Some(_) | None => None,
        };
        let mut all = self.bounds_of_body(ix, state, &each.body, inner.as_ref());
        if let Some(ms) = each.within.as_ref().and_then(literal) {
            let spot = self.spot(ix, Some(state), &Part::Effect);
            let bound = text.and_then(bound_of);
            let spot = bound.map_or(spot, |bound| Spot { span: bound.span(), ..spot });
            let inside = self.body_longest(ix, state, &each.body, &mut vec![ix]);
            all.push(Outer { ms, clause: "within", spot, inside });
        }
        all
    }

    fn bounds_of_body(
        &self,
        ix: FlowIx,
        state: StateIx,
        body: &EachBody,
        text: Option<&ast::Effect>,
    ) -> Vec<Outer> {
        let effect = crate::check::outcomes::as_effect(body);
        self.bounds_of(ix, state, &effect, text)
    }

    /// `limit age <= D`, which is around the whole flow.
    fn ages(&self, ix: FlowIx) -> Vec<Outer> {
        let limits = self.flow(ix).limits.iter().enumerate();
        let ages = limits.filter(|(_, limit)| limit.measure == Measure::Age);
        let outer = |(at, limit): (usize, &crate::machine::Limit)| {
            let Expr::Lit(Literal::Duration(ms)) = limit.max else { return None };
            let spot = self.spot(ix, None, &Part::Limit(at));
            Some(Outer { ms, clause: "limit age <=", spot, inside: self.longest(ix, &mut Vec::new()) })
        };
        ages.filter_map(outer).collect()
    }

    /// `on cancel within D -> S`, which is around what can be reached from `S`.
    fn clean_up(&self, ix: FlowIx) -> Option<Outer> {
        let flow = self.flow(ix);
        let cancel = flow.on_cancel.as_ref()?;
        let Goal::State(first, _) = &cancel.goal else { return None };
        let graph = self.graph(ix);
        let mut inside = None;
        for state in graph.from(*first) {
            inside = longer(inside, self.state_longest(ix, state, flow, &mut vec![ix]));
        }
        let (file, text) = &self.texts.flows[ix.at()];
        let span = text.on_cancels().next()?.span();
        Some(Outer { ms: cancel.within_ms, clause: "within", spot: Spot { file: *file, span }, inside })
    }

    /// The longest wait of a flow that runs inside another; `around` holds the flows around it.
    fn longest(&self, ix: FlowIx, around: &mut Vec<FlowIx>) -> Option<Longest> {
        // A flow that runs itself is reported elsewhere.
        if around.contains(&ix) {
            return None;
        }
        around.push(ix);
        let flow = self.flow(ix);
        let mut longest = None;
        for at in 0..flow.states.len() {
            longest = longer(longest, self.state_longest(ix, super::state_ix(at), flow, around));
        }
        around.pop();
        longest
    }

    fn state_longest(
        &self,
        ix: FlowIx,
        state: StateIx,
        flow: &Flow,
        around: &mut Vec<FlowIx>,
    ) -> Option<Longest> {
        let StateDef { effect, .. } = flow.states.get(state.at())?;
        match effect {
            Effect::Do(..) | Effect::Run(..) | Effect::Await(_) | Effect::Ask(_) | Effect::Each(_) => {
                self.effect_longest(ix, state, effect, around)
            }
            Effect::Parallel(parallel) => match parallel.within.as_ref().and_then(literal) {
                Some(ms) => Some(self.here(ix, state, ms, "the regions")),
                None => parallel.regions.iter().fold(None, |longest, region| {
                    longer(longest, self.body_longest(ix, state, &region.body, around))
                }),
            },
            Effect::Wait | Effect::Spawn(_) | Effect::Choose(_) | Effect::Match(..) => None,
        }
    }

    fn body_longest(
        &self,
        ix: FlowIx,
        state: StateIx,
        body: &EachBody,
        around: &mut Vec<FlowIx>,
    ) -> Option<Longest> {
        let effect = crate::check::outcomes::as_effect(body);
        self.effect_longest(ix, state, &effect, around)
    }

    fn effect_longest(
        &self,
        ix: FlowIx,
        state: StateIx,
        effect: &Effect,
        around: &mut Vec<FlowIx>,
    ) -> Option<Longest> {
        let waits = |wait: &Wait, what: &str| literal(wait).map(|ms| self.here(ix, state, ms, what));
        match effect {
            Effect::Do(activity, ..) => {
                let activity = &self.program.activities[activity.at()];
                let ms = activity.in_all_ms.unwrap_or(activity.within_ms);
                Some(self.here(ix, state, ms, &format!("`do {}`", activity.name)))
            }
            Effect::Run(flow, _, wait, _) => match wait.as_ref().and_then(literal) {
                Some(ms) => Some(self.here(ix, state, ms, &format!("`run {}`", self.flow(*flow).name))),
                None => self.longest(*flow, around),
            },
            Effect::Await(one) => waits(&one.wait, "`await`"),
            Effect::Ask(ask) => waits(&ask.wait, "`ask`"),
            Effect::Each(each) => match each.within.as_ref().and_then(literal) {
                Some(ms) => Some(self.here(ix, state, ms, "`each`")),
                None => self.body_longest(ix, state, &each.body, around),
            },
            Effect::Wait | Effect::Parallel(_) | Effect::Spawn(_) | Effect::Choose(_) | Effect::Match(..) => {
                None
            }
        }
    }

    fn here(&self, ix: FlowIx, state: StateIx, ms: u64, what: &str) -> Longest {
        let flow = self.flow(ix);
        let what = format!("{what} in `{}.{}`", flow.name, flow.states[state.at()].name);
        Longest { ms, what, spot: Some(self.spot(ix, Some(state), &Part::Effect)) }
    }
}

fn longer(a: Option<Longest>, b: Option<Longest>) -> Option<Longest> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if b.ms > a.ms { b } else { a }),
        (a, b) => a.or(b),
    }
}

fn literal(wait: &Wait) -> Option<u64> {
    match wait {
        Wait::Within(Expr::Lit(Literal::Duration(ms))) => Some(*ms),
        Wait::Within(_) | Wait::Until(_) | Wait::Forever => None,
    }
}

/// The deadline of an effect as it is written.
fn bound_of(effect: &ast::Effect) -> Option<ast::Bound> {
    match effect {
        ast::Effect::Run(one) => one.bound(),
        ast::Effect::Each(one) => one.bound(),
        ast::Effect::Parallel(one) => one.bound(),
        ast::Effect::Await(one) => one.bound(),
        ast::Effect::Ask(one) => one.bound(),
        ast::Effect::Do(_) | ast::Effect::Spawn(_) | ast::Effect::Steps(_) | ast::Effect::Choose(_) => None,
    }
}
