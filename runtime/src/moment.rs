//! Moments as people name them: a time, or how long ago it was.
//!
//! Leaves reading both to the kernel. Invariant: moments are text that orders as they do.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use outlast_kernel::ids::Millis;
use outlast_kernel::text::{parse_duration, parse_time, time_text};

/// Says why text names no moment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is no moment: a time such as `2027-03-09T01:30:00Z`, or how long ago as in `24h`, is expected"
)]
pub struct InvalidMoment {
    /// The refused text, cut to 40 characters.
    pub text: String,
}

/// Reads a moment, as times are written in answers.
///
/// # Errors
/// [`InvalidMoment`].
pub fn parse(text: &str, now: SystemTime) -> Result<String, InvalidMoment> {
    let ago = |ms| now.checked_sub(Duration::from_millis(ms)).unwrap_or(UNIX_EPOCH);
    let before = |ms| {
        let since = ago(ms).duration_since(UNIX_EPOCH).unwrap_or_default();
        Millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    };
    let moment = parse_time(text).or_else(|| parse_duration(text).map(before));
    moment.map(time_text).ok_or_else(|| InvalidMoment { text: text.chars().take(40).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_times_or_so_long_ago() {
        let now = UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        for (text, moment) in [
            ("2027-01-14T08:00:00Z", Some("2027-01-14T08:00:00.000Z")),
            ("1h", Some("2027-01-15T07:00:00.000Z")),
            ("99y", None),
            ("yesterday", None),
            ("", None),
        ] {
            assert_eq!(parse(text, now).ok().as_deref(), moment, "{text}");
        }
        assert_eq!(parse("36500d", now).ok().as_deref(), Some("1970-01-01T00:00:00.000Z"));
    }
}
