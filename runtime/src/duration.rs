//! Durations as people and requests write them: `250ms`, `30s`, `5m`, `2h`, `7d`, and sums such as `1h30m`.
//!
//! Leaves the durations of Flow text to the language. Invariant: what is read is at most a hundred years.

use std::time::Duration;

/// A hundred years: the longest duration of the language.
const SECONDS_MAX: u64 = 100 * 366 * 24 * 60 * 60;

/// Says why text is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a duration: a number and a unit are expected, as in `250ms`, `30s`, `5m`, `2h` or `7d`"
)]
pub struct InvalidDuration {
    /// The refused text, cut to 40 characters.
    pub text: String,
}

/// Reads a duration.
///
/// # Errors
/// [`InvalidDuration`] if the text is none, or is longer than a hundred years.
pub fn parse(text: &str) -> Result<Duration, InvalidDuration> {
    read(text).ok_or_else(|| InvalidDuration { text: text.chars().take(40).collect() })
}

fn read(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() || text.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let number: u64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let unit_ms: u64 = match &rest[..letters] {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return None,
        };
        rest = &rest[letters..];
        total = total.checked_add(Duration::from_millis(number.checked_mul(unit_ms)?))?;
    }
    (total.as_secs() <= SECONDS_MAX).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_numbers_with_units() {
        for (text, ms) in [
            ("0s", Some(0)),
            ("250ms", Some(250)),
            ("30s", Some(30_000)),
            ("5m", Some(300_000)),
            ("1h30m", Some(5_400_000)),
            ("2d", Some(172_800_000)),
            ("", None),
            ("30", None),
            ("s", None),
            ("-5s", None),
            ("5 s", None),
            ("5y", None),
            ("99999999999999999999s", None),
            ("18446744073709551615d", None),
            ("200000d", None),
            ("5sé", None),
        ] {
            assert_eq!(parse(text).ok(), ms.map(Duration::from_millis), "{text:?}");
        }
    }
}
