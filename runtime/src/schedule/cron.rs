//! Cron rules with a time zone: when a schedule is due.
//!
//! Leaves reading the five fields (minute, hour, day of month, month, day of week; names, lists, ranges, steps, `L`, `W`, `#`, `@daily`)
//! and the days of a rule to the library, and what to do with a due time to `decide`. What happens when clocks change is said here, because
//! the library calls a rule that names two hours a rhythm, and so would leave out one of them on such a day:
//! - a rule whose hour field begins with `*` keeps its rhythm: it is due in both passes of an hour that happens twice, and not in one
//!   that does not happen;
//! - every other rule is due once for each local time that it names: in the first pass of an hour that happens twice; a time that the
//!   clock skips is read as if it had not been moved yet (02:30 becomes 03:30).
//!
//! Invariant: due times come in order, each once, and a rule without any is refused.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use croner::time::Weekday;
use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{AmbiguousOffset, TimeZone};

use outlast_kernel::ids::Millis;

/// Days after which a rule without a due time has none: the 29th of February on a given day of the week is away at most forty years.
const DAYS_MAX: u32 = 366 * 41;

/// The fields of a rule, with what each takes.
const FIELDS: [(&str, &str); 5] = [
    ("minute", "0 to 59"),
    ("hour", "0 to 23"),
    ("day of month", "1 to 31, L, or 15W"),
    ("month", "1 to 12 or jan to dec"),
    ("day of week", "0 to 7, sun to sat, or mon#2"),
];

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
    /// A field.
    #[error(
        "{text:?} does not fit the field {field}: {expected}, with lists (1,15), ranges (1-5) and steps (*/10), or * are expected"
    )]
    Field {
        /// The field's text.
        text: String,
        /// The field's name.
        field: &'static str,
        /// What it takes.
        expected: &'static str,
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
    cron: Cron,
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
        let cron = read(text).ok_or_else(|| fault(text))?;
        let keeps_rhythm = cron.pattern.hours.from_wildcard;
        let rule = Rule { cron, keeps_rhythm };
        let mut date = Date::constant(2000, 1, 1);
        for _ in 0..DAYS_MAX {
            if rule.fits(date) {
                return Ok(rule);
            }
            date = date.tomorrow().unwrap_or(date);
        }
        Err(InvalidCron::Never { text: cut(text) })
    }

    fn fits(&self, date: Date) -> bool {
        let number = |part: i8| u32::from(part.unsigned_abs());
        let (month, day) = (number(date.month()), number(date.day()));
        let weekday = Weekday::from_days_from_sunday(number(date.weekday().to_sunday_zero_offset()));
        let pattern = &self.cron.pattern;
        let fits = pattern
            .month_match(month)
            .and_then(|fits| Ok(fits && pattern.day_match(i32::from(date.year()), month, day, weekday)?));
        fits.unwrap_or(false)
    }

    /// Adds the due times of a day.
    fn on(&self, date: Date, zone: &TimeZone, due: &mut BTreeSet<Millis>) {
        let numbers = |values: Vec<u16>| values.into_iter().filter_map(|value| i8::try_from(value).ok());
        let minutes: Vec<i8> = numbers(self.cron.pattern.minutes.values()).collect();
        for hour in numbers(self.cron.pattern.hours.values()) {
            for minute in &minutes {
                let Ok(time) = Time::new(hour, *minute, 0, 0) else { continue };
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

fn read(text: &str) -> Option<Cron> {
    CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build().parse(text).ok()
}

/// Finds the field that keeps text from being a rule: the first that does not fit alone either.
fn fault(text: &str) -> InvalidCron {
    let fields: Vec<&str> = text.split_ascii_whitespace().collect();
    if fields.len() != FIELDS.len() {
        return InvalidCron::Fields { text: cut(text), found: fields.len() };
    }
    let alone = |at: usize| {
        let mut rule = ["*"; FIELDS.len()];
        rule[at] = fields[at];
        read(&rule.join(" "))
    };
    let at = (0..FIELDS.len()).find(|at| alone(*at).is_none()).unwrap_or(0);
    let (field, expected) = FIELDS[at];
    InvalidCron::Field { text: cut(fields[at]), field, expected }
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
        assert_eq!(days("0 0 */10 * mon", 3), ["2027-02-08", "2027-02-11", "2027-02-15"]);
        assert_eq!(days("0 0 L * *", 2), ["2027-02-28", "2027-03-31"]);
        assert_eq!(days("0 0 * * fri#1", 2), ["2027-02-05", "2027-03-05"]);
    }

    #[test]
    fn names_lists_steps_and_several_rules_make_one_schedule() {
        let from = "2027-01-01T00:00:00Z";
        let due = first(&["5-59/20 9-11/2 * JAN,mar Sun-Tue"], "UTC", from, 4);
        let expected = ["09:05", "09:25", "09:45", "11:05"].map(|time| format!("2027-01-03T{time}:00Z"));
        assert_eq!(due, expected);
        assert_eq!(first(&["0 0 * * 7"], "UTC", from, 1), ["2027-01-03T00:00:00Z"]);
        assert_eq!(
            first(&["@daily", "0 12 * * *", "0 0 2 * *"], "UTC", from, 2),
            ["2027-01-01T12:00:00Z", "2027-01-02T00:00:00Z"]
        );
    }
}
