//! How far a batch is: a line that is written over on a terminal, plain lines now and then elsewhere.

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use tokio::time::{Interval, MissedTickBehavior, interval_at};

use super::tally::Tally;
use crate::limits::{PROGRESS_LINE_MS, PROGRESS_MS};
use crate::out;

/// Tells how far a batch is.
#[derive(Debug)]
pub(super) struct Progress {
    /// Bytes of the whole input, if known.
    bytes: Option<u64>,
    terminal: bool,
    began: Instant,
    ticks: Interval,
}

/// How far it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reached {
    /// Bytes of the input that were read.
    pub(super) bytes: u64,
    /// Lines that were read.
    pub(super) lines: u64,
    /// Items that ended since this command began.
    pub(super) ended: u64,
    /// Items that go on now.
    pub(super) running: usize,
}

impl Progress {
    /// Begins now.
    pub(super) fn new(bytes: Option<u64>) -> Progress {
        let terminal = std::io::stderr().is_terminal();
        let every = Duration::from_millis(if terminal { PROGRESS_MS } else { PROGRESS_LINE_MS });
        let mut ticks = interval_at(tokio::time::Instant::now() + every, every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Progress { bytes, terminal, began: Instant::now(), ticks }
    }

    /// Waits until it is time to tell.
    pub(super) async fn tick(&mut self) {
        self.ticks.tick().await;
    }

    /// Tells.
    pub(super) fn show(&self, tally: &Tally, reached: Reached) {
        let text = self.text(tally, reached, self.began.elapsed());
        if self.terminal { out::status(&text) } else { out::say(&text) }
    }

    fn text(&self, tally: &Tally, reached: Reached, elapsed: Duration) -> String {
        let seconds = elapsed.as_secs_f64().max(0.001);
        let rate = reached.ended as f64 / seconds;
        let mut text = format!("{}, {} running, {rate:.1}/s", tally.line(), reached.running);
        if let Some(left) = self.lines_left(reached)
            && rate > 0.0
        {
            text = text + ", about " + &span(Duration::from_secs_f64(left / rate)) + " left";
        }
        text
    }

    /// Returns how many items are to end yet, judged by the bytes of those that were read.
    fn lines_left(&self, reached: Reached) -> Option<f64> {
        let rest = self.bytes?.saturating_sub(reached.bytes) as f64;
        let unread = rest * reached.lines as f64 / reached.bytes.max(1) as f64;
        Some(unread + reached.running as f64)
    }
}

/// Returns a span of time in its two largest units.
fn span(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{}h{:02}m", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds / 3_600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_time_left_is_judged_by_the_bytes_that_are_left() {
        let tally = Tally { done: 10, ..Tally::default() };
        let reached = Reached { bytes: 100, lines: 12, ended: 10, running: 2 };
        let text = |bytes| Progress::new(bytes).text(&tally, reached, Duration::from_secs(5));
        assert_eq!(text(None), "10 done, 2 running, 2.0/s");
        assert_eq!(text(Some(1_100)), "10 done, 2 running, 2.0/s, about 1m01s left");
        let first = Progress::new(Some(10)).text(&Tally::default(), Reached::default(), Duration::ZERO);
        assert_eq!(first, "0 done, 0 running, 0.0/s");
    }

    #[test]
    fn spans_have_two_units() {
        for (seconds, expected) in [(59, "59s"), (61, "1m01s"), (7_260, "2h01m"), (90_000, "1d01h")] {
            assert_eq!(span(Duration::from_secs(seconds)), expected);
        }
    }
}
