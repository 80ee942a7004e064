//! Cron rules with a time zone: when a schedule is due.
//!
//! Five fields: minute, hour, day of month, month, day of week; `*`, lists, ranges, steps, English names, 0 and 7 for Sunday. If both
//! day fields are restricted (do not begin with `*`), a day that fits either of them fits. When clocks change:
//! - a rule whose hour field begins with `*` keeps its rhythm: it is due in both passes of an hour that happens twice, and not in one
//!   that does not happen;
//! - every other rule is due once for each local time that it names: in the first pass of an hour that happens twice; a time that the
//!   clock skips is read as if it had not been moved yet (02:30 becomes 03:30).
//!
//! Leaves what to do with a due time to `decide`. Invariant: due times come in order, each once, and a rule without any is refused.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{AmbiguousOffset, TimeZone};

use outlast_kernel::ids::Millis;

/// Days after which a rule without a due time has none: the 29th of February is away at most eight years.
const DAYS_MAX: u32 = 366 * 9;

/// A field: its name, its least and greatest value, its names.
struct Field(&'static str, i8, i8, &'static [&'static str]);

const MINUTE: Field = Field("minute", 0, 59, &[]);
const HOUR: Field = Field("hour", 0, 23, &[]);
const DAY: Field = Field("day of month", 1, 31, &[]);
const MONTH: Field = Field(
    "month",
    1,
    12,
    &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
);
const WEEKDAY: Field = Field("day of week", 0, 7, &["sun", "mon", "tue", "wed", "thu", "fri", "sat"]);

/// Says why text is no rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCron {
    /// The number of fields.
    #[error("{text:?} has {found} fields; five are expected: minute, hour, day of month, month, day of week")]
    Fields {
        /// The rule.
        text: String,
        /// How many it has.
        found: usize,
    },
    /// A part of a field.
    #[error(
        "{text:?} does not fit the field {field}: numbers from {min} to {max}, ranges, steps and lists are expected"
    )]
    Part {
        /// The part.
        text: String,
        /// The field's name.
        field: &'static str,
        /// The least value.
        min: i8,
        /// The greatest value.
        max: i8,
    },
    /// No day fits.
    #[error("{text:?} is never due: no such day exists")]
    Never {
        /// The rule.
        text: String,
    },
    /// The time zone.
    #[error("{text:?} is not a time zone: a name such as Europe/Berlin, America/New_York or UTC is expected")]
    TimeZone {
        /// The name.
        text: String,
    },
}

/// Some rules in a time zone, which make one schedule.
#[derive(Clone, Debug)]
pub struct Rules {
    rules: Vec<Rule>,
    zone: TimeZone,
}

#[derive(Clone, Debug)]
struct Rule {
    minutes: BTreeSet<i8>,
    hours: BTreeSet<i8>,
    days: BTreeSet<i8>,
    months: BTreeSet<i8>,
    weekdays: BTreeSet<i8>,
    /// Whether one fitting day field is enough.
    either_day: bool,
    /// Whether it follows the time that passes rather than the clock on the wall.
    keeps_rhythm: bool,
}

impl Rules {
    /// Reads rules.
    ///
    /// # Errors
    /// [`InvalidCron`].
    pub fn parse(rules: &[String], zone: &str) -> Result<Rules, InvalidCron> {
        let zone = TimeZone::get(zone).map_err(|_| InvalidCron::TimeZone { text: cut(zone) })?;
        let rules = rules.iter().map(|rule| Rule::parse(rule)).collect::<Result<_, _>>()?;
        Ok(Rules { rules, zone })
    }

    /// Visits due times after a moment, in order, until told to stop.
    pub fn each_after(&self, after: Millis, mut visit: impl FnMut(Millis) -> ControlFlow<()>) {
        let Ok(start) = Timestamp::from_millisecond(after.0) else { return };
        let Ok(mut date) = self.zone.to_datetime(start).date().yesterday() else { return };
        let (mut last, mut silent) = (after, 0);
        while silent < DAYS_MAX {
            let mut due = BTreeSet::new();
            for rule in self.rules.iter().filter(|rule| rule.fits(date)) {
                rule.on(date, &self.zone, &mut due);
            }
            silent = if due.is_empty() { silent + 1 } else { 0 };
            for moment in due {
                if moment <= last {
                    continue;
                }
                last = moment;
                if visit(moment).is_break() {
                    return;
                }
            }
            let Ok(next) = date.tomorrow() else { return };
            date = next;
        }
    }

    /// Returns the first due time after a moment; none at the end of the calendar.
    #[must_use]
    pub fn next(&self, after: Millis) -> Option<Millis> {
        self.first(after, 1).pop()
    }

    /// Returns the first due times after a moment.
    #[must_use]
    pub fn first(&self, after: Millis, count: usize) -> Vec<Millis> {
        let mut found = Vec::new();
        self.each_after(after, |moment| {
            found.push(moment);
            if found.len() < count { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        found
    }
}

impl Rule {
    fn parse(text: &str) -> Result<Rule, InvalidCron> {
        let lower = text.to_ascii_lowercase();
        let whole = match lower.trim() {
            "@hourly" => "0 * * * *",
            "@daily" | "@midnight" => "0 0 * * *",
            "@weekly" => "0 0 * * 0",
            "@monthly" => "0 0 1 * *",
            "@yearly" | "@annually" => "0 0 1 1 *",
            other => other,
        };
        let fields: Vec<&str> = whole.split_ascii_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = fields.as_slice() else {
            return Err(InvalidCron::Fields { text: cut(text), found: fields.len() });
        };
        let mut rule = Rule {
            minutes: MINUTE.read(minutes)?,
            hours: HOUR.read(hours)?,
            days: DAY.read(days)?,
            months: MONTH.read(months)?,
            weekdays: WEEKDAY.read(weekdays)?,
            either_day: !days.starts_with('*') && !weekdays.starts_with('*'),
            keeps_rhythm: hours.starts_with('*'),
        };
        if rule.weekdays.remove(&7) {
            rule.weekdays.insert(0);
        }
        let longest = |month: i8| match month {
            2 => 29,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        let a_day = rule.months.iter().any(|month| rule.days.iter().any(|day| *day <= longest(*month)));
        if a_day || rule.either_day { Ok(rule) } else { Err(InvalidCron::Never { text: cut(text) }) }
    }

    fn fits(&self, date: Date) -> bool {
        let day = self.days.contains(&date.day());
        let weekday = self.weekdays.contains(&date.weekday().to_sunday_zero_offset());
        let fits = if self.either_day { day || weekday } else { day && weekday };
        fits && self.months.contains(&date.month())
    }

    /// Adds the due times of a day.
    fn on(&self, date: Date, zone: &TimeZone, due: &mut BTreeSet<Millis>) {
        for hour in &self.hours {
            for minute in &self.minutes {
                let Ok(time) = Time::new(*hour, *minute, 0, 0) else { continue };
                let local = DateTime::from_parts(date, time);
                let mut add = |offset: jiff::tz::Offset| {
                    due.extend(offset.to_timestamp(local).map(|moment| Millis(moment.as_millisecond())));
                };
                match zone.to_ambiguous_timestamp(local).offset() {
                    AmbiguousOffset::Unambiguous { offset } => add(offset),
                    AmbiguousOffset::Gap { before, .. } if !self.keeps_rhythm => add(before),
                    AmbiguousOffset::Gap { .. } => {}
                    AmbiguousOffset::Fold { before, after } => {
                        add(before);
                        if self.keeps_rhythm {
                            add(after);
                        }
                    }
                }
            }
        }
    }
}

impl Field {
    fn read(&self, text: &str) -> Result<BTreeSet<i8>, InvalidCron> {
        let Field(field, min, max, _) = *self;
        let mut values = BTreeSet::new();
        for part in text.split(',') {
            let wrong = || InvalidCron::Part { text: cut(part), field, min, max };
            values.extend(self.part(part).ok_or_else(wrong)?);
        }
        Ok(values)
    }

    fn part(&self, text: &str) -> Option<impl Iterator<Item = i8>> {
        let Field(_, min, max, _) = *self;
        let (range, step) = match text.split_once('/') {
            Some((range, step)) => (range, Some(step.parse::<u8>().ok().filter(|step| *step > 0)?)),
            None => (text, None),
        };
        let (from, to) = match range.split_once('-') {
            // Sunday is 7 where a whole week would count it twice.
            None if range == "*" => (min, if max == 7 { 6 } else { max }),
            Some((from, to)) => (self.value(from)?, self.value(to)?),
            // A step without a range goes on to the end.
            None if step.is_some() => (self.value(range)?, max),
            None => (self.value(range)?, self.value(range)?),
        };
        (from <= to).then(|| (from..=to).step_by(usize::from(step.unwrap_or(1))))
    }

    fn value(&self, text: &str) -> Option<i8> {
        let Field(_, min, max, names) = *self;
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let value = match names.iter().position(|name| *name == text) {
            Some(at) => min + i8::try_from(at).ok()?,
            None if digits => text.parse().ok()?,
            None => return None,
        };
        (min..=max).contains(&value).then_some(value)
    }
}

fn cut(text: &str) -> String {
    text.chars().take(crate::limits::QUOTED_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(text: &str) -> Millis {
        Millis(text.parse::<Timestamp>().unwrap().as_millisecond())
    }

    /// Returns the first due times after a moment, as UTC.
    fn first(rules: &[&str], zone: &str, after: &str, count: usize) -> Vec<String> {
        let rules: Vec<String> = rules.iter().map(|rule| (*rule).to_owned()).collect();
        let rules = Rules::parse(&rules, zone).unwrap();
        let text = |moment: Millis| Timestamp::from_millisecond(moment.0).unwrap().to_string();
        rules.first(millis(after), count).into_iter().map(text).collect()
    }

    /// Case CRN-02: a local time that happens twice.
    #[test]
    fn doubled_hours_are_met_once_by_the_clock_and_twice_by_rhythm() {
        let daily = first(&["30 1 * * *"], "America/New_York", "2026-10-31T12:00:00Z", 2);
        assert_eq!(daily, ["2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"]);
        let quarters = first(&["*/15 * * * *"], "America/New_York", "2026-11-01T04:59:00Z", 9);
        assert_eq!(quarters[0], "2026-11-01T05:00:00Z");
        assert_eq!(
            quarters[7..],
            ["2026-11-01T06:45:00Z", "2026-11-01T07:00:00Z"],
            "eight in the doubled hour"
        );
        // Half an hour back, at 2:00.
        let howe = first(&["45 1 * * *"], "Australia/Lord_Howe", "2027-04-03T12:00:00Z", 2);
        assert_eq!(howe, ["2027-04-03T14:45:00Z", "2027-04-04T15:15:00Z"]);
        // Between the two passes nothing is due again.
        let after = first(&["30 1 * * *"], "America/New_York", "2026-11-01T05:30:00Z", 1);
        assert_eq!(after, ["2026-11-02T06:30:00Z"]);
    }

    #[test]
    fn skipped_times_are_read_by_the_clock_as_it_was() {
        let zone = "America/New_York";
        let daily = first(&["30 2 * * *"], zone, "2027-03-13T12:00:00Z", 2);
        assert_eq!(daily, ["2027-03-14T07:30:00Z", "2027-03-15T06:30:00Z"]);
        let hourly = first(&["0 * * * *"], zone, "2027-03-14T06:00:00Z", 2);
        assert_eq!(hourly, ["2027-03-14T07:00:00Z", "2027-03-14T08:00:00Z"]);
        // A rule that names both is due once where they fall together.
        let both = first(&["30 2,3 * * *"], zone, "2027-03-14T05:00:00Z", 2);
        assert_eq!(both, ["2027-03-14T07:30:00Z", "2027-03-15T06:30:00Z"]);
    }

    /// Case CRN-03: dates that do not exist are refused.
    #[test]
    fn rules_that_are_never_due_or_no_rules_are_refused() {
        for (rule, fault) in [
            ("0 0 30 2 *", "never"),
            ("0 0 31 4 *", "never"),
            ("0 0 31 2,4,6 *", "never"),
            ("* * * *", "fields"),
            ("0 0 0 30 2 *", "fields"),
            ("", "fields"),
            ("60 * * * *", "minute"),
            ("* 24 * * *", "hour"),
            ("* * 0 * *", "day of month"),
            ("* * * foo *", "month"),
            ("* * * * 8", "day of week"),
            ("5-1 * * * *", "minute"),
            ("*/0 * * * *", "minute"),
            ("1, * * * *", "minute"),
            ("+1 * * * *", "minute"),
            ("-1 * * * *", "minute"),
        ] {
            let error = Rules::parse(&[rule.to_owned()], "UTC").unwrap_err().to_string();
            assert!(error.contains(fault), "{rule}: {error}");
        }
        assert!(matches!(Rules::parse(&[], "Mars/Olympus"), Err(InvalidCron::TimeZone { .. })));
    }

    /// Case CRN-04: rare days, and both day fields.
    #[test]
    fn either_day_field_is_enough_if_both_are_restricted() {
        let from = "2027-02-01T00:00:00Z";
        let days = |rule: &str, count| -> Vec<String> {
            first(&[rule], "UTC", from, count).into_iter().map(|moment| moment[..10].to_owned()).collect()
        };
        let leap = ["2028-02-29", "2032-02-29", "2036-02-29", "2040-02-29", "2044-02-29"];
        assert_eq!(days("0 0 29 2 *", 5), leap);
        let either = ["2027-02-03", "2027-02-10", "2027-02-17", "2027-02-24", "2028-02-02"];
        assert_eq!(days("0 0 29 2 3", 5), either);
        assert_eq!(days("0 0 31 2 1-5", 2), ["2027-02-02", "2027-02-03"]);
        assert_eq!(days("0 0 */10 * mon", 2), ["2027-03-01", "2027-05-31"]);
    }

    #[test]
    fn names_lists_steps_and_several_rules_make_one_schedule() {
        let from = "2027-01-01T00:00:00Z";
        let due = first(&["5/20 9-11/2 * JAN,mar Sun-Tue"], "UTC", from, 4);
        let expected = ["09:05", "09:25", "09:45", "11:05"].map(|time| format!("2027-01-03T{time}:00Z"));
        assert_eq!(due, expected);
        assert_eq!(first(&["0 0 * * 7"], "UTC", from, 1), ["2027-01-03T00:00:00Z"]);
        assert_eq!(
            first(&["@daily", "0 12 * * *", "0 0 2 * *"], "UTC", from, 2),
            ["2027-01-01T12:00:00Z", "2027-01-02T00:00:00Z"]
        );
    }
}
