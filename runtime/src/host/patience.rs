//! How long a caller looks for a host before it gives its error back.
//!
//! Invariant: only time without a host counts. A call that was answered late, or that waited long for its result, has used up nothing
//! when its host is lost; and every new host begins the count anew.

use std::time::{Duration, Instant};

use crate::limits::ATTACH_MS_MAX;

/// What one call has gone through.
#[derive(Debug, Default)]
pub(super) struct Patience {
    since: Option<Instant>,
    host: Option<u64>,
}

impl Patience {
    /// Notes a loss; returns whether there is time for another look.
    pub(super) fn lost(&mut self, now: Instant) -> bool {
        let since = *self.since.get_or_insert(now);
        now.duration_since(since) < Duration::from_millis(ATTACH_MS_MAX)
    }

    /// Notes which process hosts now. The same one as before is no news: it may answer, and yet refuse or lose every call.
    pub(super) fn found(&mut self, host: u64) {
        if self.host.replace(host).is_some_and(|before| before != host) {
            self.since = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_time_without_a_host_counts() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut patience = Patience::default();
        assert!(patience.lost(after(20)), "the first loss, however late");
        patience.found(1);
        assert!(patience.lost(after(29)), "within the time");
        patience.found(2);
        assert!(patience.lost(after(60)), "another host was lost");
        patience.found(2);
        assert!(patience.lost(after(69)), "it is still there, and refuses");
        patience.found(2);
        assert!(!patience.lost(after(71)), "enough of it");
    }
}
