//! Counters and what they are shown as: families of samples, whatever reads them.
//!
//! Leaves counting to those who know what happened, and transport to `http`. Invariant: a count takes no lock that another count holds for
//! itself, except the first of its labels; and a family has a bounded number of samples, whatever is counted.

mod text;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use crate::limits::{COMMIT_SECONDS_BUCKETS, METRIC_LABELS_MAX};

pub(crate) use text::written;

/// What stands for labels for which there was no room.
const OTHER: &str = "other";

/// A number that only grows, from 0 at the start of the process.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Adds one.
    pub(crate) fn count(&self) {
        self.add(1);
    }

    /// Adds some.
    pub(crate) fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// Returns what was counted.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counters by the values of `N` labels.
#[derive(Debug)]
pub(crate) struct Labelled<const N: usize> {
    names: [&'static str; N],
    counters: RwLock<BTreeMap<[Cow<'static, str>; N], Counter>>,
}

impl<const N: usize> Labelled<N> {
    /// Begins empty.
    pub(crate) fn new(names: [&'static str; N]) -> Labelled<N> {
        Labelled { names, counters: RwLock::default() }
    }

    /// Begins with values at 0: who watches a counter that may never move wants to see it all the same.
    pub(crate) fn at_zero(names: [&'static str; N], values: &[[&'static str; N]]) -> Labelled<N> {
        let counters = values.iter().map(|value| (value.map(Cow::Borrowed), Counter::default())).collect();
        Labelled { names, counters: RwLock::new(counters) }
    }

    /// Adds some.
    pub(crate) fn add(&self, values: [&str; N], n: u64) {
        {
            let counters = self.counters.read().unwrap_or_else(PoisonError::into_inner);
            let counters: &BTreeMap<[Cow<'_, str>; N], Counter> = &counters;
            if let Some(counter) = counters.get(&values.map(Cow::Borrowed)) {
                return counter.add(n);
            }
        }
        let mut counters = self.counters.write().unwrap_or_else(PoisonError::into_inner);
        let key = match counters.len() < METRIC_LABELS_MAX {
            true => values.map(|value| Cow::Owned(value.to_owned())),
            false => [(); N].map(|()| Cow::Borrowed(OTHER)),
        };
        counters.entry(key).or_default().add(n);
    }

    /// Adds one.
    pub(crate) fn count(&self, values: [&str; N]) {
        self.add(values, 1);
    }

    /// Returns what was counted.
    pub(crate) fn samples(&self) -> Vec<Sample> {
        let counters = self.counters.read().unwrap_or_else(PoisonError::into_inner);
        let labels = |values: &[Cow<'static, str>; N]| {
            self.names.iter().zip(values).map(|(name, value)| (*name, value.to_string())).collect()
        };
        let sample = |(values, counter): (&[Cow<'static, str>; N], &Counter)| Sample {
            labels: labels(values),
            value: Value::Whole(counter.get()),
        };
        counters.iter().map(sample).collect()
    }
}

/// How long something took, in the buckets of [`COMMIT_SECONDS_BUCKETS`].
#[derive(Debug, Default)]
pub(crate) struct Durations {
    /// One for each bucket, and one for what is beyond the last.
    counts: [Counter; COMMIT_SECONDS_BUCKETS.len() + 1],
    micros: Counter,
}

impl Durations {
    /// Takes note of one.
    pub(crate) fn took(&self, time: Duration) {
        let seconds = time.as_secs_f64();
        let at = COMMIT_SECONDS_BUCKETS.iter().position(|bound| seconds <= *bound);
        self.counts[at.unwrap_or(COMMIT_SECONDS_BUCKETS.len())].count();
        self.micros.add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
    }

    /// Returns what was noted.
    pub(crate) fn value(&self) -> Value {
        let mut sum = 0;
        let mut up_to = |counter: &Counter| {
            sum += counter.get();
            sum
        };
        let counts: Vec<u64> = self.counts.iter().map(&mut up_to).collect();
        let seconds = Duration::from_micros(self.micros.get()).as_secs_f64();
        let buckets = COMMIT_SECONDS_BUCKETS.iter().copied().zip(counts.iter().copied()).collect();
        Value::Histogram { buckets, seconds, count: counts.last().copied().unwrap_or_default() }
    }
}

/// What a family's samples are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// They only grow, from 0 at the start of the process.
    Counter,
    /// They are as they are now.
    Gauge,
    /// They are spread over buckets.
    Histogram,
}

/// Samples of one name.
#[derive(Clone, Debug)]
pub(crate) struct Family {
    pub(crate) name: &'static str,
    /// One sentence in one line.
    pub(crate) help: &'static str,
    pub(crate) kind: Kind,
    pub(crate) samples: Vec<Sample>,
}

/// A value and its labels.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) labels: Vec<(&'static str, String)>,
    pub(crate) value: Value,
}

/// The value of a sample.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Whole(u64),
    Real(f64),
    Histogram {
        /// Bounds, and how many were not above them.
        buckets: Vec<(f64, u64)>,
        /// The sum.
        seconds: f64,
        count: u64,
    },
}

impl Family {
    /// Makes a family of samples.
    pub(crate) fn new(
        name: &'static str,
        help: &'static str,
        kind: Kind,
        samples: impl Into<Vec<Sample>>,
    ) -> Family {
        Family { name, help, kind, samples: samples.into() }
    }

    /// Makes a family of one counter.
    pub(crate) fn counter(name: &'static str, help: &'static str, counter: &Counter) -> Family {
        Family::new(name, help, Kind::Counter, [Sample::bare(Value::Whole(counter.get()))])
    }

    /// Makes a family of counters.
    pub(crate) fn counters<const N: usize>(
        name: &'static str,
        help: &'static str,
        counters: &Labelled<N>,
    ) -> Family {
        Family::new(name, help, Kind::Counter, counters.samples())
    }

    /// Makes a family of one gauge.
    pub(crate) fn gauge(name: &'static str, help: &'static str, value: u64) -> Family {
        Family::new(name, help, Kind::Gauge, [Sample::bare(Value::Whole(value))])
    }
}

impl Sample {
    /// Makes a sample without labels.
    pub(crate) fn bare(value: Value) -> Sample {
        Sample { labels: Vec::new(), value }
    }

    /// Makes a sample with one label.
    pub(crate) fn with(name: &'static str, label: impl Into<String>, value: u64) -> Sample {
        Sample { labels: vec![(name, label.into())], value: Value::Whole(value) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_beyond_the_limit_share_one_counter() {
        let counters = Labelled::new(["queue"]);
        for n in 0..METRIC_LABELS_MAX + 5 {
            counters.count([&format!("q{n}")]);
        }
        let samples = counters.samples();
        assert_eq!(samples.len(), METRIC_LABELS_MAX + 1);
        let other = samples.iter().find(|sample| sample.labels[0].1 == OTHER);
        assert!(matches!(other.map(|sample| &sample.value), Some(Value::Whole(5))), "{other:?}");
    }

    #[test]
    fn a_duration_counts_in_every_bucket_that_it_fits() {
        let durations = Durations::default();
        for ms in [0, 3, 3, 60_000] {
            durations.took(Duration::from_millis(ms));
        }
        let Value::Histogram { buckets, seconds, count } = durations.value() else { panic!("no histogram") };
        assert_eq!((buckets.first(), buckets.last()), (Some(&(0.0005, 1)), Some(&(10.0, 3))));
        assert!(count == 4 && (60.0..60.1).contains(&seconds), "{count} {seconds}");
    }
}
