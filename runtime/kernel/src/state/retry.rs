//! Retry policies: which rule a failure falls under, whether it leaves an attempt, and when.
//!
//! Leaves randomness to the caller. Invariant: the wait is never zero and never above the rule's cap; a hint above the cap ends
//! the retries instead of hiding a long wait.

use outlast_dsl::machine::{Activity, Machine, RetryRule};

use crate::Json;
use crate::event::Failure;
use crate::ids::Millis;
use crate::limits::JITTER_PERCENT;
use crate::text::parse_duration;

/// Returns the first rule of an activity's policy that names a failure.
pub(crate) fn rule<'m>(machine: &'m Machine, activity: &'m Activity, kind: &str) -> Option<&'m RetryRule> {
    let known = kind == "timeout" || super::failure::declared(machine, activity, kind).is_some();
    let kind = if known { kind } else { "failed" };
    let policy = &machine.retries[activity.retry?.at()];
    policy.rules.iter().find(|rule| rule.on.iter().any(|name| name == kind || name == "problem"))
}

/// Says whether a rule leaves another attempt after so many.
pub(crate) fn attempts_left(rule: &RetryRule, used: u32) -> bool {
    used < rule.attempts_max
}

/// Returns when the attempt after `used` ones may start; none if the other side wants a longer wait than the rule allows.
pub(crate) fn wait_until(
    rule: &RetryRule,
    error: &Failure,
    used: u32,
    now: Millis,
    random: u64,
) -> Option<Millis> {
    let cap = rule.wait_ms_max.unwrap_or(rule.wait_ms).max(1);
    let doublings = if rule.wait_ms_max.is_some() { used.saturating_sub(1).min(63) } else { 0 };
    let base = rule.wait_ms.saturating_mul(1 << doublings).clamp(1, cap);
    let spread = base.saturating_mul(JITTER_PERCENT) / 100;
    let jittered = base - spread + random % (2 * spread + 1);
    let hint = hint(rule, error).unwrap_or(0);
    (hint <= cap).then(|| now.plus(jittered.clamp(1, cap).max(hint)))
}

fn hint(rule: &RetryRule, error: &Failure) -> Option<u64> {
    error.retry_after_ms.or_else(|| match error.fields.get(rule.hint.as_deref()?)? {
        Json::String(text) => parse_duration(text),
        Json::Number(ms) => ms.as_u64(),
        Json::Null | Json::Bool(_) | Json::Array(_) | Json::Object(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_cap_and_heed_hints() {
        let rule = RetryRule {
            on: vec!["problem".to_owned()],
            attempts_max: 4,
            wait_ms: 100,
            wait_ms_max: Some(250),
            hint: Some("retry_after".to_owned()),
        };
        let hinted = |text: &str| Failure {
            fields: [("retry_after".to_owned(), Json::from(text))].into_iter().collect(),
            ..Failure::default()
        };
        let plain = Failure::default();
        // The middle of the spread is the wait itself.
        for (used, error, random, wait) in [
            (1, &plain, 20, Some(100)),
            (1, &plain, 0, Some(80)),
            (1, &plain, 40, Some(120)),
            (2, &plain, 40, Some(200)),
            (3, &plain, 50, Some(250)),
            (3, &plain, 100, Some(250)),
            (60, &plain, 50, Some(250)),
            (1, &hinted("240ms"), 20, Some(240)),
            (1, &hinted("10ms"), 20, Some(100)),
            (1, &hinted("251ms"), 20, None),
        ] {
            let due = wait_until(&rule, error, used, Millis(7), random);
            assert_eq!(due, wait.map(|ms| Millis(7 + ms)), "after {used} attempts, random {random}");
        }
        let flat = RetryRule { wait_ms: 0, wait_ms_max: None, ..rule };
        assert_eq!(wait_until(&flat, &plain, 3, Millis(7), 5), Some(Millis(8)), "never zero");
        assert!(attempts_left(&flat, 3) && !attempts_left(&flat, 4));
    }

    /// Case RTY-05: however many attempts there were, a wait is never zero, never negative, and never beyond its cap.
    #[test]
    fn waits_are_sound_after_a_hundred_attempts() {
        for (wait_ms_max, cap) in [(None, 1), (Some(1_000), 1_000), (Some(u64::MAX), u64::MAX)] {
            let (on, hint) = (Vec::new(), None);
            let rule = RetryRule { on, attempts_max: u32::MAX, wait_ms: 1, wait_ms_max, hint };
            let mut before = 0;
            for used in (1..=100).chain([u32::MAX]) {
                for random in [0, u64::MAX / 3, u64::MAX] {
                    let due = wait_until(&rule, &Failure::default(), used, Millis(0), random).unwrap();
                    let wait = u64::try_from(due.0).unwrap();
                    assert!((1..=cap).contains(&wait), "{wait} ms after {used} attempts, at most {cap}");
                    assert!(wait >= before / 4, "{wait} ms after {used} attempts, {before} ms before");
                    before = before.max(wait.min(1_000));
                }
            }
        }
    }
}
