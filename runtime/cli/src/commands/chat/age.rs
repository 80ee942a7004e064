//! How long ago something was, in one short word.
//!
//! Invariant: pure.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns how long before `now` an RFC 3339 time in UTC was, such as `5m`; empty if it is no such time.
pub(super) fn age(time: &str, now: SystemTime) -> String {
    let now = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let Some(then) = seconds(time) else { return String::new() };
    let seconds = now.saturating_sub(then);
    let units = [(86_400, "d"), (3_600, "h"), (60, "m")];
    let unit = units.iter().find(|(length, _)| seconds >= *length);
    unit.map_or_else(|| format!("{seconds}s"), |(length, name)| format!("{}{name}", seconds / length))
}

/// Reads `YYYY-MM-DDThh:mm:ss` and whatever follows as seconds since 1970.
fn seconds(time: &str) -> Option<u64> {
    let part = |from: usize, to: usize| time.get(from..to)?.parse::<u64>().ok();
    let (year, month, day) = (part(0, 4)?, part(5, 7)?, part(8, 10)?);
    let (hour, minute, second) = (part(11, 13)?, part(14, 16)?, part(17, 19)?);
    if year < 1970 || !(1..=12).contains(&month) || day == 0 {
        return None;
    }
    // Counted from the first of March, so that the leap day is a year's last one.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1;
    let days = days.checked_sub(719_468)?;
    Some(((days * 24 + hour) * 60 + minute) * 60 + second)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn times_are_counted_from_1970() {
        for (time, expected) in [
            ("1970-01-01T00:00:00.000Z", Some(0)),
            ("2000-03-01T00:00:00Z", Some(951_868_800)),
            ("2024-02-29T12:34:56Z", Some(1_709_210_096)),
            ("2026-11-30T05:59:45.555Z", Some(1_796_018_385)),
            ("soon", None),
            ("2026-13-30T05:59:45Z", None),
        ] {
            assert_eq!(seconds(time), expected, "{time}");
        }
    }

    #[test]
    fn an_age_is_one_word() {
        let now = |after: u64| UNIX_EPOCH + Duration::from_secs(1_709_210_096 + after);
        for (after, expected) in [(0, "0s"), (59, "59s"), (60, "1m"), (7_300, "2h"), (200_000, "2d")] {
            assert_eq!(age("2024-02-29T12:34:56Z", now(after)), expected);
        }
        assert_eq!(age("2024-02-29T12:34:56Z", UNIX_EPOCH), "0s");
        assert_eq!(age("never", UNIX_EPOCH), "");
    }
}
