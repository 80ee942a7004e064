//! How fast a provider may be asked: requests and tokens a minute.
//!
//! Leaves refusals of the provider, which may count otherwise, to the flow. Invariant: what was let through never exceeds the rate by
//! more than one minute's worth, but for a request that is larger by itself: it goes alone, when a whole minute is free, and what
//! comes after it waits for all of it. A worker that has just started has saved up nothing: the one before it may have used it all.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::error::{Kind, ModelError};
use crate::limits::{PACE_DEBT_MAX, PACE_WAIT_MAX, PACE_WINDOW};

/// The rates of one endpoint, as far as they are set.
#[derive(Debug)]
pub(crate) struct Paces(Mutex<(Option<Pace>, Option<Pace>)>);

impl Paces {
    pub(crate) fn new(requests_per_minute: Option<u64>, tokens_per_minute: Option<u64>) -> Paces {
        let pace = |rate: Option<u64>| rate.map(|rate| Pace::new(rate, Instant::now()));
        Paces(Mutex::new((pace(requests_per_minute), pace(tokens_per_minute))))
    }

    /// Waits for the turn of a request of so many tokens.
    ///
    /// # Errors
    /// [`Kind::RateLimited`] if that takes long: then the runtime waits, and the place here is free.
    pub(crate) async fn admit(&self, tokens: u64) -> Result<(), ModelError> {
        let wait = {
            let now = Instant::now();
            let (requests, volume) = &mut *self.lock();
            let of =
                |pace: &Option<Pace>, amount| pace.as_ref().map_or(Duration::ZERO, |p| p.wait(amount, now));
            let wait = of(requests, 1).max(of(volume, tokens));
            if wait > PACE_WAIT_MAX {
                let text = "the rate that is set for this model is used up";
                return Err(ModelError::new(Kind::RateLimited, text).after(Some(wait)));
            }
            for (pace, amount) in [(requests, 1), (volume, tokens)] {
                if let Some(pace) = pace {
                    pace.take(amount, now);
                }
            }
            wait
        };
        tokio::time::sleep(wait).await;
        Ok(())
    }

    /// Puts right how many tokens a request took.
    pub(crate) fn correct(&self, estimated: u64, actual: u64) {
        if let Some(volume) = &mut self.lock().1 {
            volume.correct(estimated, actual);
        }
    }

    fn lock(&self) -> MutexGuard<'_, (Option<Pace>, Option<Pace>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A rate that is kept.
#[derive(Debug)]
pub(crate) struct Pace {
    per_minute: u64,
    /// When all that was let through will have been worth its time; one window ahead of now, nothing is left.
    spent_until: Instant,
}

impl Pace {
    /// Begins with nothing saved up.
    pub(crate) fn new(per_minute: u64, now: Instant) -> Pace {
        Pace { per_minute: per_minute.max(1), spent_until: now + PACE_WINDOW }
    }

    /// How long so much must wait. Nothing is taken yet.
    pub(crate) fn wait(&self, amount: u64, now: Instant) -> Duration {
        let worth = self.worth(amount).min(PACE_WINDOW);
        (self.spent_until.max(now) + worth).saturating_duration_since(now + PACE_WINDOW)
    }

    /// Takes so much.
    pub(crate) fn take(&mut self, amount: u64, now: Instant) {
        self.spent_until = self.spent_until.max(now) + self.worth(amount);
    }

    /// Puts right what was estimated.
    pub(crate) fn correct(&mut self, estimated: u64, actual: u64) {
        let (more, less) =
            (self.worth(actual.saturating_sub(estimated)), self.worth(estimated.saturating_sub(actual)));
        self.spent_until += more;
        self.spent_until = self.spent_until.checked_sub(less).unwrap_or(self.spent_until);
    }

    fn worth(&self, amount: u64) -> Duration {
        let seconds = PACE_WINDOW.as_secs_f64() * amount as f64 / self.per_minute as f64;
        Duration::try_from_secs_f64(seconds).unwrap_or(PACE_DEBT_MAX).min(PACE_DEBT_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_kept_and_nothing_is_saved_up_at_the_start() {
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let mut pace = Pace::new(60, start);
        assert_eq!(pace.wait(1, start), Duration::from_secs(1));
        pace.take(1, start);
        assert_eq!(pace.wait(1, start), Duration::from_secs(2));
        // After a minute of rest a minute's worth may go at once, and no more.
        assert_eq!(pace.wait(60, at(61)), Duration::ZERO);
        pace.take(60, at(61));
        assert_eq!(pace.wait(1, at(61)), Duration::from_secs(1));
        assert_eq!(pace.wait(60, at(1_000)), Duration::ZERO, "rest is not saved up for longer");
    }

    #[test]
    fn what_is_larger_than_a_minutes_worth_goes_alone() {
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let mut pace = Pace::new(60, start);
        assert_eq!(pace.wait(600, start), Duration::from_secs(60), "when a whole minute is free");
        assert_eq!(pace.wait(600, at(60)), Duration::ZERO);
        pace.take(600, at(60));
        assert_eq!(pace.wait(1, at(60)), Duration::from_secs(541), "the next one waits for all of it");
        assert_eq!(pace.wait(u64::MAX, at(60)), Duration::from_secs(600));
    }

    #[test]
    fn absurd_amounts_are_no_end_of_the_model() {
        let start = Instant::now();
        let mut pace = Pace::new(1, start);
        pace.correct(0, u64::MAX);
        pace.take(u64::MAX, start);
        assert!(pace.wait(1, start) <= PACE_DEBT_MAX * 3, "{pace:?}");
    }

    #[test]
    fn estimates_are_put_right() {
        let start = Instant::now();
        let mut pace = Pace::new(60, start);
        pace.take(10, start);
        pace.correct(10, 4);
        assert_eq!(pace.wait(1, start), Duration::from_secs(5));
        pace.correct(4, 10);
        assert_eq!(pace.wait(1, start), Duration::from_secs(11));
    }

    #[tokio::test]
    async fn what_would_wait_long_is_told_so_and_takes_nothing() {
        let paces = Paces::new(None, Some(60));
        for _ in 0..2 {
            let error = paces.admit(50).await.unwrap_err();
            let wait = error.retry_after.unwrap();
            assert!(error.kind == Kind::RateLimited && wait > Duration::from_secs(40), "{wait:?}");
            assert!(wait <= Duration::from_secs(50), "{wait:?}");
        }
        assert_eq!(Paces::new(None, None).admit(1 << 40).await, Ok(()));
    }
}
