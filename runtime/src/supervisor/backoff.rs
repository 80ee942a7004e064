//! How long to wait before a worker is started again.

use std::time::Duration;

use crate::limits::{RESTART_MS_MAX, RESTART_MS_MIN, RESTART_RESET_MS};

/// Waits that double with every early death, and start again after a life that was long enough.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    deaths: u32,
}

impl Backoff {
    /// Returns the wait after a process that lived for `life`.
    pub(super) fn after_life_of(&mut self, life: Duration) -> Duration {
        if life >= Duration::from_millis(RESTART_RESET_MS) {
            self.deaths = 0;
        }
        let doubled = RESTART_MS_MIN.saturating_mul(1_u64.checked_shl(self.deaths).unwrap_or(u64::MAX));
        self.deaths = self.deaths.saturating_add(1);
        Duration::from_millis(doubled.min(RESTART_MS_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_cap_and_start_again_after_a_good_life() {
        let mut backoff = Backoff::default();
        for ms in [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000] {
            assert_eq!(backoff.after_life_of(Duration::ZERO), Duration::from_millis(ms));
        }
        for _ in 0..100 {
            assert_eq!(backoff.after_life_of(Duration::ZERO), Duration::from_millis(5_000));
        }
        assert_eq!(backoff.after_life_of(Duration::from_secs(60)), Duration::from_millis(100));
        assert_eq!(backoff.after_life_of(Duration::from_secs(59)), Duration::from_millis(200));
    }
}
