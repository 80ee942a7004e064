//! Cost: what one activity, and one way through a flow, may cost, against `limit cost`.
//!
//! Counts every state once: a loop is what the cap is for. Members of `each` count once too, since their number is not known.
//! Invariant: amounts are exact; what cannot be written exactly is not compared.

use super::Analysed;
use crate::diag::Diagnostic;
use crate::diag::catalogue::deadlines;
use crate::limits::DECIMAL_SCALE_MAX;
use crate::lower::places::Part;
use crate::machine::link::Program;
use crate::machine::{ActivityIx, EachBody, Effect, Expr, FlowIx, Literal, Measure, StateIx};

/// Reports costs above the cap of a flow.
pub(super) fn check(of: &Analysed<'_>, ix: FlowIx, out: &mut Vec<Diagnostic>) {
    let flow = of.flow(ix);
    for (at, way) in of.graph(ix).broken_for_ever() {
        let name = |state: &StateIx| of.state_name(ix, *state);
        let names: Vec<String> = way.path.iter().map(|state| format!("`{}`", name(state))).collect();
        let message = match way.path.as_slice() {
            [only] => format!("`{}` costs something too, and breaks this limit again", name(only)),
            _ => format!("{} costs something too, and breaks this limit again", names.join(" -> ")),
        };
        let spot = of.spot(ix, None, &Part::Limit(at));
        let diagnostic = Diagnostic::error(deadlines::COSTLY_WAY_OUT, spot.file, spot.span, message);
        out.push(
            diagnostic
                .expected("`end`, `fail`, or a state that asks or waits before anything more is spent")
                .hint("what is too dear is never begun, so the run would go round here until it is blocked"),
        );
    }
    for (at, limit) in flow.limits.iter().enumerate() {
        let (Measure::Cost, Expr::Lit(Literal::Decimal(written))) = (limit.measure, &limit.max) else {
            continue;
        };
        let Some(cap) = units(written) else { continue };
        let mut too_dear = false;
        for (number, state) in flow.states.iter().enumerate() {
            let single = of.dearest(&state.effect, &mut vec![ix]);
            if let Some((cost, activity)) = single.filter(|(cost, _)| *cost > cap) {
                too_dear = true;
                let spot = of.spot(ix, Some(super::state_ix(number)), &Part::Effect);
                let name = &of.program.activities[activity.at()].name;
                let message =
                    format!("one `{name}` may cost {}, `{}` may spend {written}", amount(cost), flow.name);
                let diagnostic = Diagnostic::error(deadlines::ABOVE_CAP, spot.file, spot.span, message);
                out.push(
                    diagnostic.expected(format!(
                        "`limit cost <= {}` or more, or less after `costs <=`",
                        amount(cost)
                    )),
                );
            }
        }
        let (cost, way) = of.dearest_way(ix, &mut Vec::new());
        if !too_dear && cost > cap {
            let names: Vec<&str> = way.iter().map(|state| flow.states[state.at()].name.as_str()).collect();
            let spot = of.spot(ix, None, &Part::Limit(at));
            let message =
                format!("one way through `{}` may cost {}, more than {written}", flow.name, amount(cost));
            let diagnostic = Diagnostic::warning(deadlines::WAY_ABOVE_CAP, spot.file, spot.span, message);
            out.push(diagnostic.hint(format!("the way is {}", names.join(" -> "))));
        }
    }
}

/// Whether an activity says that it costs something.
pub(super) fn costs(program: &Program, activity: ActivityIx) -> bool {
    let costs = program.activities[activity.at()].costs.as_deref();
    costs.and_then(units).is_some_and(|cost| cost > 0)
}

impl Analysed<'_> {
    /// The dearest activity that an effect may open.
    fn dearest(&self, effect: &Effect, around: &mut Vec<FlowIx>) -> Option<(i128, ActivityIx)> {
        match effect {
            Effect::Do(activity, ..) => {
                let costs = self.program.activities[activity.at()].costs.as_deref();
                costs.and_then(units).map(|cost| (cost, *activity))
            }
            Effect::Run(flow, ..) => {
                if around.contains(flow) {
                    return None;
                }
                around.push(*flow);
                let states = self.flow(*flow).states.iter();
                let dearest = states.filter_map(|state| self.dearest(&state.effect, around)).max();
                around.pop();
                dearest
            }
            Effect::Each(each) => self.dearest_of(&each.body, around),
            Effect::Parallel(parallel) => {
                parallel.regions.iter().filter_map(|region| self.dearest_of(&region.body, around)).max()
            }
            Effect::Wait
            | Effect::Await(_)
            | Effect::Ask(_)
            | Effect::Spawn(_)
            | Effect::Choose(_)
            | Effect::Match(..) => None,
        }
    }

    fn dearest_of(&self, body: &EachBody, around: &mut Vec<FlowIx>) -> Option<(i128, ActivityIx)> {
        self.dearest(&crate::check::outcomes::as_effect(body), around)
    }

    /// The most that one way through a flow may cost, and its states.
    fn dearest_way(&self, ix: FlowIx, around: &mut Vec<FlowIx>) -> (i128, Vec<StateIx>) {
        if around.contains(&ix) {
            return (0, Vec::new());
        }
        around.push(ix);
        let states = self.flow(ix).states.iter();
        let costs: Vec<i128> = states.map(|state| self.cost_of(&state.effect, around)).collect();
        around.pop();
        self.graph(ix).dearest_way(&costs)
    }

    fn cost_of(&self, effect: &Effect, around: &mut Vec<FlowIx>) -> i128 {
        let body = |body: &EachBody, around: &mut Vec<FlowIx>| {
            self.cost_of(&crate::check::outcomes::as_effect(body), around)
        };
        match effect {
            Effect::Do(activity, ..) => {
                self.program.activities[activity.at()].costs.as_deref().and_then(units).unwrap_or(0)
            }
            Effect::Run(flow, ..) => self.dearest_way(*flow, around).0,
            Effect::Each(each) => body(&each.body, around),
            Effect::Parallel(parallel) => parallel
                .regions
                .iter()
                .fold(0, |sum: i128, region| sum.saturating_add(body(&region.body, around))),
            Effect::Wait
            | Effect::Await(_)
            | Effect::Ask(_)
            | Effect::Spawn(_)
            | Effect::Choose(_)
            | Effect::Match(..) => 0,
        }
    }
}

/// A decimal in units of its last possible digit.
fn units(written: &str) -> Option<i128> {
    let (whole, part) = written.split_once('.').unwrap_or((written, ""));
    let digits = DECIMAL_SCALE_MAX.checked_sub(part.len())?;
    let all: i128 = format!("{whole}{part}").parse().ok()?;
    all.checked_mul(10_i128.checked_pow(u32::try_from(digits).ok()?)?)
}

/// Units as they are written, with at least two digits after the point.
fn amount(units: i128) -> String {
    let digits = format!("{units:0>width$}", width = DECIMAL_SCALE_MAX + 1);
    let (whole, part) = digits.split_at(digits.len() - DECIMAL_SCALE_MAX);
    let part = part.trim_end_matches('0');
    format!("{whole}.{part:0<2}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_exact() {
        for (written, shown) in [
            ("0.4", "0.40"),
            ("5", "5.00"),
            ("0.000000000000000001", "0.000000000000000001"),
            ("12.3456", "12.3456"),
        ] {
            assert_eq!(units(written).map(amount).as_deref(), Some(shown), "{written}");
        }
        assert_eq!(units("0.1").zip(units("0.2")).map(|(a, b)| amount(a + b)).as_deref(), Some("0.30"));
        assert_eq!(units("99999999999999999999999999999999999999"), None);
        assert_eq!(units("x"), None);
    }
}
