//! Fewer deeds that fail as well: what is left shows why.

use std::fmt::Write as _;

use crate::deed::{Deed, draw};

/// How often deeds are played for it at most.
const PLAYS_MAX: usize = 300;

/// Returns what to say of a seed that fails: why, and with which deeds.
pub(crate) fn report(seed: u64, why: &str, plays: impl Fn(&[Deed]) -> Option<String>) -> String {
    let (deeds, last) = shrink(draw(seed), why.to_owned(), plays);
    let mut text = format!("seed {seed} fails: {why}\nthese {} deeds are enough: {last}\n", deeds.len());
    for deed in deeds {
        let _infallible = writeln!(text, "  {deed:?}");
    }
    text + &format!("to play it again: OUTLAST_SIM_FROM={seed} OUTLAST_SIM_SEEDS=1")
}

/// Leaves out parts, smaller and smaller ones, for as long as it still fails.
fn shrink(
    mut deeds: Vec<Deed>,
    mut why: String,
    plays: impl Fn(&[Deed]) -> Option<String>,
) -> (Vec<Deed>, String) {
    let (mut part, mut played) = (deeds.len().div_ceil(2), 0);
    while part > 0 && played < PLAYS_MAX {
        let mut at = 0;
        while at < deeds.len() && played < PLAYS_MAX {
            let mut fewer = deeds.clone();
            fewer.drain(at..(at + part).min(deeds.len()));
            played += 1;
            match plays(&fewer) {
                Some(other) => (deeds, why) = (fewer, other),
                None => at += part,
            }
        }
        part = if part == 1 { 0 } else { part.div_ceil(2) };
    }
    (deeds, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_needed_is_left_out() {
        let deeds = draw(7);
        let needed = [deeds[3], deeds[11]];
        let fails = |deeds: &[Deed]| {
            let first = deeds.iter().position(|deed| *deed == needed[0])?;
            deeds[first + 1..].contains(&needed[1]).then(|| "both".to_owned())
        };
        let (left, why) = shrink(deeds.clone(), String::new(), fails);
        assert_eq!((left.as_slice(), why.as_str()), (&needed[..], "both"));
    }
}
