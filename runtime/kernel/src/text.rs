//! Text forms of times, durations and bytes, both ways.
//!
//! Leaves text of other values to [`crate::json`]. Invariant: `parse(text(x)) == x`; no time zones beside a fixed offset.

use std::fmt::Write;

use crate::ids::Millis;
use crate::limits::DURATION_MS_MAX;

const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// Writes a time as RFC 3339 in UTC with milliseconds, such as `2027-03-14T02:30:00.000Z`.
#[must_use]
pub fn time_text(time: Millis) -> String {
    let (days, ms) = (time.0.div_euclid(86_400_000), time.0.rem_euclid(86_400_000));
    let (year, month, day) = civil_of_days(days);
    let (hour, minute, second, milli) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60, ms % 1000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

/// Reads an RFC 3339 time; digits after the millisecond are dropped.
#[must_use]
pub fn parse_time(text: &str) -> Option<Millis> {
    if !text.is_ascii() || text.len() < 20 {
        return None;
    }
    let number = |from: usize, to: usize| -> Option<i64> {
        let digits = text.get(from..to)?;
        digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok())?
    };
    let mark = |at: usize, c: &[u8]| c.contains(&text.as_bytes()[at]);
    if !(mark(4, b"-") && mark(7, b"-") && mark(10, b"Tt ") && mark(13, b":") && mark(16, b":")) {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let mut rest = &text[19..];
    let mut milli = 0;
    if let Some(fraction) = rest.strip_prefix('.') {
        let end = fraction.bytes().position(|b| !b.is_ascii_digit())?;
        let digits = format!("{:0<3}", &fraction[..end.min(3)]);
        milli = if end == 0 { return None } else { digits.parse::<i64>().ok()? };
        rest = &fraction[end..];
    }
    let offset = offset_minutes(rest)?;
    let days = days_of_civil(year, month, day)?;
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let minutes = (days * 24 + hour) * 60 + minute - offset;
    Some(Millis((minutes * 60 + second) * 1000 + milli))
}

fn offset_minutes(text: &str) -> Option<i64> {
    if text == "Z" || text == "z" {
        return Some(0);
    }
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, minutes) = text[1..].split_once(':')?;
    let two = |digits: &str| (digits.len() == 2).then(|| digits.parse::<u8>().ok())?;
    let (hours, minutes) = (two(hours)?, two(minutes)?);
    (hours < 24 && minutes < 60).then_some(sign * (i64::from(hours) * 60 + i64::from(minutes)))
}

// Years are counted from March, so that the leap day is the last day of a year; eras have 400 years.
fn civil_of_days(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

fn days_of_civil(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let march_year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (march_year.div_euclid(400), march_year.rem_euclid(400));
    let march_month = (month + 9) % 12;
    let of_year = (153 * march_month + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    (civil_of_days(days) == (year, month, day)).then_some(days)
}

/// Writes a duration in the language's form, such as `1h30m`.
#[must_use]
pub fn duration_text(ms: u64) -> String {
    let mut rest = ms;
    let mut text = String::new();
    for (unit, size) in UNITS {
        let count = rest / size;
        rest %= size;
        if count > 0 {
            // Writing to a string cannot fail.
            let _ = write!(text, "{count}{unit}");
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

/// Reads a duration such as `90s`, `1h30m` or `250ms`; units fall, each stands at most once.
#[must_use]
pub fn parse_duration(text: &str) -> Option<u64> {
    let mut rest = text;
    let mut total: u64 = 0;
    let mut last = u64::MAX;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let count: u64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let letters = rest.bytes().take_while(u8::is_ascii_lowercase).count();
        let (_, size) = UNITS.into_iter().find(|(unit, _)| *unit == &rest[..letters])?;
        rest = &rest[letters..];
        if size >= last {
            return None;
        }
        last = size;
        total = total.checked_add(count.checked_mul(size)?)?;
    }
    (last != u64::MAX && total <= DURATION_MS_MAX).then_some(total)
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Writes bytes as base64 with padding.
#[must_use]
pub fn base64_text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let at = |i: usize| chunk.get(i).copied().map_or(0, u32::from);
        let word = at(0) << 16 | at(1) << 8 | at(2);
        for digit in 0..4 {
            let sextet = BASE64[(word >> (18 - 6 * digit) & 63) as usize];
            text.push(if digit > chunk.len() { '=' } else { char::from(sextet) });
        }
    }
    text
}

/// Reads base64 with padding.
#[must_use]
pub fn parse_base64(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let body = text.trim_end_matches('=');
    if text.len() - body.len() > 2 {
        return None;
    }
    let (mut bytes, mut word, mut bits) = (Vec::with_capacity(body.len() / 4 * 3 + 2), 0u32, 0);
    for byte in body.bytes() {
        let sextet = BASE64.iter().position(|known| *known == byte)?;
        word = word << 6 | u32::try_from(sextet).ok()?;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from(word >> bits & 0xff).ok()?);
            word &= (1 << bits) - 1;
        }
    }
    (word == 0).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_back_as_written() {
        for (text, ms) in [
            ("1970-01-01T00:00:00.000Z", 0),
            ("2027-03-14T02:30:00.007Z", 1_804_991_400_007),
            ("1969-12-31T23:59:59.999Z", -1),
            ("2000-02-29T12:00:00.000Z", 951_825_600_000),
            ("9999-12-31T23:59:59.999Z", 253_402_300_799_999),
        ] {
            assert_eq!((time_text(Millis(ms)).as_str(), parse_time(text)), (text, Some(Millis(ms))));
        }
        assert_eq!(parse_time("2027-03-14T04:30:00+02:00"), Some(Millis(1_804_991_400_000)));
        assert_eq!(parse_time("2027-03-14T02:30:00.0079Z"), Some(Millis(1_804_991_400_007)));
        for text in ["2027-02-29T00:00:00Z", "2027-13-01T00:00:00Z", "2027-01-01", "2027-01-01T00:00:00", "x"]
        {
            assert_eq!(parse_time(text), None, "{text}");
        }
    }

    #[test]
    fn durations_read_back_as_written() {
        for (text, ms) in
            [("0s", 0), ("5m", 300_000), ("1h30m", 5_400_000), ("30d", 2_592_000_000), ("1s250ms", 1250)]
        {
            assert_eq!((duration_text(ms).as_str(), parse_duration(text)), (text, Some(ms)));
        }
        assert_eq!(parse_duration("90s"), Some(90_000));
        for text in ["", "5", "m", "5x", "5m5h", "-5m", "5 m", "5m5m", "99999999999999999999s", "40000d"] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }

    #[test]
    fn bytes_read_back_as_written() {
        for (text, bytes) in [("", ""), ("Zg==", "f"), ("Zm8=", "fo"), ("Zm9v", "foo"), ("Zm9vYg==", "foob")]
        {
            assert_eq!(base64_text(bytes.as_bytes()), text);
            assert_eq!(parse_base64(text).as_deref(), Some(bytes.as_bytes()));
        }
        for text in ["Zg", "Zg=", "Z===", "Zh==", "Zm9v!"] {
            assert_eq!(parse_base64(text), None, "{text}");
        }
    }
}
