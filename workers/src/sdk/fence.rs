//! The lease: how long the runtime believes that this worker lives, measured so that the worker gives up first.
//!
//! Leaves killing to the attempts. Invariant: the lease runs from the *sending* of the last call that was answered, on a clock that
//! goes on while the machine sleeps, and attempts are stopped a quarter before it ends; so the runtime, which waits for the whole
//! of it, never hands out work beside an attempt that still runs.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::time::{ClockId, clock_gettime};

use crate::limits::LEASE_MS_DEFAULT;

/// See the module.
#[derive(Debug)]
pub(crate) struct Fence {
    renewed_at_ms: AtomicU64,
    lease_ms: AtomicU64,
    failing: AtomicBool,
}

impl Fence {
    pub(crate) fn new() -> Fence {
        Fence {
            renewed_at_ms: AtomicU64::new(boot_ms()),
            lease_ms: AtomicU64::new(LEASE_MS_DEFAULT),
            failing: AtomicBool::new(false),
        }
    }

    pub(crate) fn lease_ms(&self) -> u64 {
        self.lease_ms.load(Ordering::Acquire)
    }

    pub(crate) fn set_lease(&self, lease_ms: u64) {
        self.lease_ms.store(lease_ms.max(1), Ordering::Release);
    }

    /// A call that was sent at `sent_ms` was answered.
    pub(crate) fn renewed(&self, sent_ms: u64) {
        self.renewed_at_ms.fetch_max(sent_ms, Ordering::AcqRel);
        self.failing.store(false, Ordering::Release);
    }

    /// A call was not answered.
    pub(crate) fn failed(&self) {
        self.failing.store(true, Ordering::Release);
    }

    /// Whether attempts must end now: three quarters of the lease are over and the runtime does not answer. A machine that slept
    /// finds the lease over but nothing failed yet; it asks first.
    pub(crate) fn is_over(&self, now_ms: u64) -> bool {
        let renewed = self.renewed_at_ms.load(Ordering::Acquire);
        let lease = self.lease_ms();
        self.failing.load(Ordering::Acquire) && now_ms.saturating_sub(renewed) >= lease - lease / 4
    }
}

/// Milliseconds since boot, time asleep included.
pub(crate) fn boot_ms() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000 + u64::try_from(now.tv_nsec).unwrap_or(0) / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_end_a_quarter_before_the_lease_and_only_if_calls_fail() {
        let fence = Fence::new();
        fence.set_lease(400);
        let sent = boot_ms() + 1_000;
        fence.renewed(sent);
        assert!(!fence.is_over(sent + 10_000), "slept, but nothing failed yet");
        fence.failed();
        for (after, over) in [(0, false), (299, false), (300, true), (400, true)] {
            assert_eq!(fence.is_over(sent + after), over, "{after} ms after the last answered call was sent");
        }
        fence.renewed(sent - 500);
        fence.failed();
        assert!(!fence.is_over(sent + 299), "an older call that is answered late takes nothing back");
    }
}
