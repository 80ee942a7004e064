//! Expectations: what must hold at a step.
//!
//! Invariant: nothing here changes a run; a failed expectation says what was found instead.

use outlast_dsl::machine::FunctionIx;
use outlast_dsl::test_case::Expectation;
use outlast_kernel::Json;
use outlast_kernel::operation::Outcome;

use crate::diff::{difference, shown, shown_path};
use crate::failure::Problem;
use crate::limits::LISTED_MAX;
use crate::world::World;

/// Checks an expectation; `refused` is how the step before was refused.
pub(crate) fn check(
    world: &mut World<'_>,
    expectation: &Expectation,
    refused: Option<(&'static str, String)>,
) -> Result<(), Problem> {
    match expectation {
        Expectation::At(path) => at(world, path),
        Expectation::Path(states) => path(world, states),
        Expectation::Calls(activity, count) => {
            let found = world.tally.calls.get(activity).copied().unwrap_or(0);
            counted(found, *count, &format!("calls of `{activity}`"))
        }
        Expectation::Attempts(activity, count) => {
            let found = world.tally.attempts.get(activity).copied().unwrap_or(0);
            counted(found, *count, &format!("attempts of `{activity}`"))
        }
        Expectation::End(value) => {
            let wanted = value_of(world, *value)?;
            match world.outcome() {
                Some(Outcome::Done(found)) => same("the run ended with another result", &wanted, found),
                Some(Outcome::Failed(_) | Outcome::Cancelled | Outcome::Terminated) | None => {
                    Err(elsewhere(world, "the run did not end with a result", &shown(&wanted)))
                }
            }
        }
        Expectation::Fail(error) => {
            let wanted = value_of(world, *error)?;
            match world.outcome() {
                Some(Outcome::Failed(found)) => same("the run failed with another error", &wanted, found),
                Some(Outcome::Done(_) | Outcome::Cancelled | Outcome::Terminated) | None => {
                    Err(elsewhere(world, "the run did not fail", &shown(&wanted)))
                }
            }
        }
        Expectation::Cancelled => match world.outcome() {
            Some(Outcome::Cancelled) => Ok(()),
            Some(Outcome::Done(_) | Outcome::Failed(_) | Outcome::Terminated) | None => {
                Err(elsewhere(world, "the run was not cancelled", "cancelled"))
            }
        },
        Expectation::Data(name, value) => data(world, name, *value),
        Expectation::Emits(value) => emits(world, *value),
        Expectation::Asked(text) => asked(world, *text),
        Expectation::Waiting(kind) => {
            if world.waits_for(*kind) {
                return Ok(());
            }
            Err(elsewhere(world, "the run waits for something else", kind.word()))
        }
        Expectation::Refused(code) => refusal(code, refused),
    }
}

fn value_of(world: &World<'_>, function: FunctionIx) -> Result<Json, Problem> {
    let value = world.values.call(function, world.now);
    value.map_err(|fault| Problem::new(format!("the expected value has none: {fault}")))
}

fn elsewhere(world: &World<'_>, message: &str, expected: &str) -> Problem {
    Problem::new(message).expected(expected).found(world.whereabouts())
}

fn same(message: &str, wanted: &Json, found: &Json) -> Result<(), Problem> {
    match difference(wanted, found) {
        None => Ok(()),
        Some((expected, found)) => Err(Problem::new(message).expected(expected).found(found)),
    }
}

fn counted(found: u64, wanted: u64, what: &str) -> Result<(), Problem> {
    if found == wanted {
        return Ok(());
    }
    Err(Problem::new(format!("another number of {what}"))
        .expected(wanted.to_string())
        .found(found.to_string()))
}

fn at(world: &World<'_>, path: &str) -> Result<(), Problem> {
    if world.is_at(path) {
        return Ok(());
    }
    Err(elsewhere(world, "the run is somewhere else", &path.replace('/', " / ")))
}

fn path(world: &World<'_>, states: &[String]) -> Result<(), Problem> {
    let found = &world.tally.path;
    if found == states {
        return Ok(());
    }
    let differs = found.iter().zip(states).take_while(|(found, wanted)| found == wanted).count();
    let place = match (states.get(differs), found.get(differs)) {
        (Some(wanted), Some(found)) => format!("state {} is {found}, not {wanted}", differs + 1),
        (Some(wanted), None) => format!("{wanted} was not entered; {}", world.whereabouts()),
        (None, Some(found)) => format!("{found} was entered too"),
        (None, None) => "nothing differs".to_owned(),
    };
    Err(Problem::new("the run took another path").expected(shown_path(states)).found(place))
}

fn data(world: &World<'_>, name: &str, value: FunctionIx) -> Result<(), Problem> {
    let wanted = value_of(world, value)?;
    match world.runs.first().and_then(|run| run.state.data(name)) {
        Some(found) => same(&format!("the data field `{name}` is another"), &wanted, &found),
        None => Err(elsewhere(world, &format!("the data field `{name}` is gone"), &shown(&wanted))),
    }
}

fn emits(world: &mut World<'_>, value: FunctionIx) -> Result<(), Problem> {
    let wanted = value_of(world, value)?;
    let met = world.tally.emits_met;
    let rest = world.tally.emits.get(met..).unwrap_or_default();
    if let Some(at) = rest.iter().position(|emitted| *emitted == wanted) {
        world.tally.emits_met += at + 1;
        return Ok(());
    }
    let found = match rest {
        [] => "nothing".to_owned(),
        rest => rest.iter().take(LISTED_MAX).map(shown).collect::<Vec<_>>().join(", "),
    };
    let since = if met == 0 { "" } else { " after what was expected before" };
    Err(Problem::new(format!("this was not emitted{since}")).expected(shown(&wanted)).found(found))
}

fn asked(world: &World<'_>, text: FunctionIx) -> Result<(), Problem> {
    let wanted = value_of(world, text)?;
    let wanted = wanted.as_str().unwrap_or_default();
    if world.tally.asked.iter().any(|(_, asked)| asked == wanted) {
        return Ok(());
    }
    let texts: Vec<String> = world.tally.asked.iter().map(|(_, asked)| format!("{asked:?}")).collect();
    let found =
        if texts.is_empty() { world.whereabouts() } else { format!("asked was {}", texts.join(", ")) };
    Err(Problem::new("this was not asked").expected(format!("{wanted:?}")).found(found))
}

fn refusal(code: &str, refused: Option<(&'static str, String)>) -> Result<(), Problem> {
    match refused {
        Some((found, _)) if found == code => Ok(()),
        Some((found, why)) => Err(Problem::new("it was refused for another reason")
            .expected(code)
            .found(format!("{found}: {why}"))),
        None => Err(Problem::new("the step before was not refused").expected(code).found("it was accepted")),
    }
}
