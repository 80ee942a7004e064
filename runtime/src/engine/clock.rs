//! Engine time: what the clock says, and waiting for a moment.
//!
//! Leaves what is due to its callers. Invariant: `now` never goes back, whatever happens to the wall clock; it goes on during a
//! suspend, so what fell due meanwhile is due at once.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use outlast_kernel::ids::Millis;
use tokio::sync::watch;

use crate::limits::SLEEP_MS_MAX;

/// A wait that can be dropped at any time.
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Tells the time and waits for it. Tests drive a [`ManualClock`].
pub trait Clock: Send + Sync + 'static {
    /// Returns the current engine time.
    fn now(&self) -> Millis;

    /// Returns what the wall clock says, which may be far off.
    fn wall(&self) -> Millis;

    /// Makes `now` at least this moment: a store may hold events from "later".
    fn raise(&self, at_least: Millis);

    /// Waits until `now` has reached a moment.
    fn sleep_until(&self, at: Millis) -> Sleep;
}

/// The computer's clock: the wall's time at the start, then the time since boot, which nobody sets.
#[derive(Clone, Debug)]
pub struct SystemClock {
    /// Engine time when the computer booted.
    boot: Arc<AtomicI64>,
}

impl SystemClock {
    /// Starts at the wall's time.
    #[must_use]
    pub fn new() -> SystemClock {
        SystemClock { boot: Arc::new(AtomicI64::new(wall_ms() - since_boot_ms())) }
    }
}

impl Default for SystemClock {
    fn default() -> SystemClock {
        SystemClock::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Millis {
        Millis(self.boot.load(Ordering::Relaxed) + since_boot_ms())
    }

    fn wall(&self) -> Millis {
        Millis(wall_ms())
    }

    fn raise(&self, at_least: Millis) {
        self.boot.fetch_max(at_least.0 - since_boot_ms(), Ordering::Relaxed);
    }

    fn sleep_until(&self, at: Millis) -> Sleep {
        let clock = self.clone();
        Box::pin(async move {
            loop {
                let Ok(left @ 1..) = u64::try_from(at.0.saturating_sub(clock.now().0)) else { return };
                // Long sleeps are cut, so that a suspend, which tokio's timer does not count, delays them by little.
                tokio::time::sleep(Duration::from_millis(left.min(SLEEP_MS_MAX))).await;
            }
        })
    }
}

fn wall_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

fn since_boot_ms() -> i64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    time.tv_sec * 1_000 + time.tv_nsec / 1_000_000
}

/// A clock that a test moves by hand.
#[derive(Debug)]
pub struct ManualClock {
    now: watch::Sender<Millis>,
}

impl ManualClock {
    /// Starts at a moment.
    #[must_use]
    pub fn new(at: Millis) -> ManualClock {
        ManualClock { now: watch::Sender::new(at) }
    }

    /// Moves on by this many milliseconds and wakes whoever waited for it.
    pub fn advance(&self, ms: u64) {
        self.now.send_modify(|now| *now = now.plus(ms));
    }

    /// Moves on and wakes nobody, as on a machine that is too busy to notice the time.
    pub fn slip(&self, ms: u64) {
        self.now.send_if_modified(|now| {
            *now = now.plus(ms);
            false
        });
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Millis {
        *self.now.borrow()
    }

    fn wall(&self) -> Millis {
        self.now()
    }

    fn raise(&self, at_least: Millis) {
        self.now.send_if_modified(|now| {
            let raised = *now < at_least;
            *now = at_least.max(*now);
            raised
        });
    }

    fn sleep_until(&self, at: Millis) -> Sleep {
        let mut now = self.now.subscribe();
        Box::pin(async move {
            // A clock that is gone will reach no moment: wait for ever, as a stopped clock does.
            if now.wait_for(|now| *now >= at).await.is_err() {
                std::future::pending::<()>().await;
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_time_starts_at_the_wall_and_can_only_be_raised() {
        let clock = SystemClock::new();
        let start = clock.now();
        assert!((start.0 - clock.wall().0).abs() < 5_000);
        clock.raise(start.plus(60_000));
        assert!(clock.now() >= start.plus(60_000));
        clock.raise(start);
        assert!(clock.now() >= start.plus(60_000));
    }

    #[tokio::test]
    async fn a_manual_clock_wakes_sleepers_at_their_moment() {
        let clock = ManualClock::new(Millis(100));
        let sleep = tokio::spawn(clock.sleep_until(Millis(150)));
        clock.advance(49);
        tokio::task::yield_now().await;
        assert!(!sleep.is_finished());
        clock.advance(1);
        sleep.await.unwrap();
    }
}
