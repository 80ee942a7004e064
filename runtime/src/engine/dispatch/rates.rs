//! How fast a queue gives out its tasks: so many a minute, and of so many tokens.
//!
//! Leaves order to `lanes`, and the count of tokens to what workers report. Invariant: what a queue gave out never exceeds its rate by
//! more than one minute's worth, but for a task that is larger by itself: it goes when a whole minute is free, and what comes after it
//! waits for all of it. A queue begins with nothing saved up: the process before this one may have used it all.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use outlast_kernel::ids::Millis;
use outlast_protocol::rates::Rate;

use crate::limits::{RATE_DEBT_MS_MAX, RATE_WINDOW_MS};

/// The rates of queues, as far as they are set.
#[derive(Debug, Default)]
pub(crate) struct Rates(BTreeMap<String, Queue>);

/// What a queue may give out.
#[derive(Debug)]
struct Queue {
    rate: Rate,
    tasks: Option<Pace>,
    tokens: Option<Pace>,
    /// The tokens for which the task waits that is next and did not fit.
    wanted: u64,
}

impl Rates {
    /// Begins with nothing saved up.
    pub(crate) fn new(rates: BTreeMap<String, Rate>, now: Millis) -> Rates {
        let queue = |rate: Rate| {
            let pace = |per_minute: Option<NonZeroU64>| per_minute.map(|most| Pace::new(most, now));
            let (tasks, tokens) = (pace(rate.requests_per_minute), pace(rate.tokens_per_minute));
            Queue { rate, tasks, tokens, wanted: 0 }
        };
        Rates(rates.into_iter().map(|(name, rate)| (name, queue(rate))).collect())
    }

    /// Returns when a queue gives out its next task; none: now.
    pub(crate) fn held_until(&self, queue: &str, now: Millis) -> Option<Millis> {
        let Queue { tasks, tokens, wanted, .. } = self.0.get(queue)?;
        let tasks = tasks.as_ref().map(|pace| pace.ready_at(1));
        let tokens = tokens.as_ref().map(|pace| pace.ready_at(*wanted));
        tasks.max(tokens).filter(|at| *at > now)
    }

    /// Takes a task of a queue, if it may give one now.
    pub(crate) fn take(&mut self, queue: &str, now: Millis) -> bool {
        if self.held_until(queue, now).is_some() {
            return false;
        }
        if let Some(pace) = self.0.get_mut(queue).and_then(|queue| queue.tasks.as_mut()) {
            pace.take(1, now);
        }
        true
    }

    /// Gives a task back that came to nobody.
    pub(crate) fn give_back(&mut self, queue: &str, tokens: u64) {
        let Some(queue) = self.0.get_mut(queue) else { return };
        if let Some(pace) = &mut queue.tasks {
            pace.correct(1, 0);
        }
        if let Some(pace) = &mut queue.tokens {
            pace.correct(tokens, 0);
        }
    }

    /// Tells whether tokens of a queue count.
    pub(crate) fn count_tokens(&self, queue: &str) -> bool {
        self.0.get(queue).is_some_and(|queue| queue.tokens.is_some())
    }

    /// Takes the tokens that a task of a queue is thought to need; if there are not enough, the queue waits for them.
    pub(crate) fn take_tokens(&mut self, queue: &str, tokens: u64, now: Millis) -> bool {
        let Some(queue) = self.0.get_mut(queue) else { return true };
        let Some(pace) = &mut queue.tokens else { return true };
        let fits = pace.ready_at(tokens) <= now;
        queue.wanted = if fits { 0 } else { tokens };
        if fits {
            pace.take(tokens, now);
        }
        fits
    }

    /// Puts right how many tokens a task took.
    pub(crate) fn correct(&mut self, queue: &str, estimated: u64, actual: u64) {
        if let Some(pace) = self.0.get_mut(queue).and_then(|queue| queue.tokens.as_mut()) {
            pace.correct(estimated, actual);
        }
    }

    /// Returns the queues that have a rate.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, Rate)> {
        self.0.iter().map(|(name, queue)| (name.as_str(), queue.rate))
    }
}

/// A rate that is kept. Its moments are microseconds of engine time.
#[derive(Debug)]
struct Pace {
    per_minute: NonZeroU64,
    /// When all that was let through will have been worth its time; one window ahead of now, nothing is left.
    spent_until: i64,
}

const WINDOW: i64 = RATE_WINDOW_MS * 1_000;

impl Pace {
    fn new(per_minute: NonZeroU64, now: Millis) -> Pace {
        Pace { per_minute, spent_until: micros(now) + WINDOW }
    }

    /// Returns when so much may go.
    fn ready_at(&self, amount: u64) -> Millis {
        let ready = self.spent_until.saturating_add(self.worth(amount).min(WINDOW)) - WINDOW;
        Millis(ready.div_euclid(1_000) + i64::from(ready.rem_euclid(1_000) > 0))
    }

    fn take(&mut self, amount: u64, now: Millis) {
        self.spent_until = self.spent_until.max(micros(now)).saturating_add(self.worth(amount));
    }

    fn correct(&mut self, estimated: u64, actual: u64) {
        let (more, less) =
            (self.worth(actual.saturating_sub(estimated)), self.worth(estimated.saturating_sub(actual)));
        self.spent_until = self.spent_until.saturating_add(more).saturating_sub(less);
    }

    /// Returns the time that so much is worth. No count is worth more than an hour: such a one is a mistake of whoever counted.
    fn worth(&self, amount: u64) -> i64 {
        let micros = u128::from(amount) * WINDOW.unsigned_abs() as u128 / u128::from(self.per_minute.get());
        i64::try_from(micros).unwrap_or(i64::MAX).min(RATE_DEBT_MS_MAX * 1_000)
    }
}

fn micros(at: Millis) -> i64 {
    at.0.saturating_mul(1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Millis = Millis(1_800_000_000_000);

    fn at(seconds: u64) -> Millis {
        START.plus(seconds * 1_000)
    }

    fn pace(per_minute: u64) -> Pace {
        Pace::new(NonZeroU64::new(per_minute).unwrap(), START)
    }

    fn rates(requests: Option<u64>, tokens: Option<u64>) -> Rates {
        let of = |count: Option<u64>| count.and_then(NonZeroU64::new);
        let rate = Rate { requests_per_minute: of(requests), tokens_per_minute: of(tokens) };
        Rates::new(BTreeMap::from([("q".to_owned(), rate)]), START)
    }

    #[test]
    fn nothing_is_saved_up_at_the_start_and_a_minutes_worth_at_most() {
        let mut pace = pace(60);
        assert_eq!(pace.ready_at(1), at(1));
        pace.take(1, at(1));
        assert_eq!(pace.ready_at(1), at(2));
        // After a minute of rest a minute's worth may go at once, and no more.
        assert_eq!(pace.ready_at(60), at(61));
        pace.take(60, at(61));
        assert_eq!(pace.ready_at(1), at(62));
        pace.take(1, at(1_000));
        assert_eq!(pace.ready_at(59), at(1_000), "rest is not saved up for longer");
        assert_eq!(pace.ready_at(60), at(1_001));
    }

    #[test]
    fn what_is_larger_than_a_minutes_worth_goes_alone() {
        let mut pace = pace(60);
        assert_eq!(pace.ready_at(600), at(60), "when a whole minute is free");
        pace.take(600, at(60));
        assert_eq!(pace.ready_at(1), at(601), "the next one waits for all of it");
    }

    #[test]
    fn absurd_amounts_hold_a_queue_for_an_hour_at_most() {
        let mut pace = pace(1);
        pace.correct(0, u64::MAX);
        assert!(pace.ready_at(u64::MAX) <= at(3_600 + 60), "{pace:?}");
        pace.correct(u64::MAX, 0);
        assert_eq!(pace.ready_at(1), at(60));
    }

    #[test]
    fn a_queue_gives_as_many_tasks_as_its_rate_and_others_are_free() {
        let mut rates = rates(Some(60), None);
        assert_eq!((rates.held_until("q", START), rates.held_until("other", START)), (Some(at(1)), None));
        assert!(!rates.take("q", START) && rates.take("other", START));
        assert!(rates.take("q", at(1)) && !rates.take("q", at(1)));
        rates.give_back("q", 0);
        assert!(rates.take("q", at(1)), "what came to nobody does not count");
        let given = (0..600).filter(|tenth| rates.take("q", at(1).plus(tenth * 100))).count();
        assert_eq!(given, 59);
        assert!(!rates.count_tokens("q") && rates.take_tokens("q", u64::MAX, START));
    }

    #[test]
    fn tokens_are_estimated_put_right_and_waited_for() {
        let mut rates = rates(None, Some(600));
        assert!(rates.take("q", START), "of what the next one needs nothing is known yet");
        assert!(!rates.take_tokens("q", 50, START));
        assert_eq!(rates.held_until("q", START), Some(at(5)), "now it is");
        assert!(!rates.take("q", at(4)) && rates.take("q", at(5)) && rates.take_tokens("q", 50, at(5)));
        // It took twice as many: they are paid for before anything else goes.
        rates.correct("q", 50, 100);
        assert_eq!(rates.held_until("q", at(5)), Some(at(10)));
        rates.correct("q", 100, 20);
        assert_eq!(rates.held_until("q", at(5)), None);
        rates.give_back("q", 20);
        assert!(rates.take_tokens("q", 50, at(5)));
    }
}
