//! Durations as people and requests write them: `250ms`, `30s`, `5m`, `2h`, `7d`, and sums such as `1h30m`.
//!
//! Leaves reading them to the kernel. Invariant: what is read is at most a hundred years.

use std::time::Duration;

use outlast_kernel::text::parse_duration;

/// Says why text is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a duration: a number and a unit are expected, as in `250ms`, `30s`, `5m`, `2h` or `7d`, at most a hundred years"
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
    parse_duration(text)
        .map(Duration::from_millis)
        .ok_or_else(|| InvalidDuration { text: text.chars().take(40).collect() })
}

/// Reads a duration that is not zero; says why it cannot.
///
/// # Errors
/// As [`parse`], and for zero.
pub fn parse_positive(text: &str) -> Result<Duration, String> {
    match parse(text) {
        Ok(duration) if duration.is_zero() => Err("more than nothing is expected, such as `30s`".to_owned()),
        Ok(duration) => Ok(duration),
        Err(error) => Err(error.to_string()),
    }
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
            let positive = ms.filter(|ms| *ms > 0).map(Duration::from_millis);
            assert_eq!(parse_positive(text).ok(), positive, "{text:?}");
        }
    }
}
