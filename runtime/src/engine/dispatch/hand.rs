//! Tasks in hand of workers: what tells a slow one from a lost one.
//!
//! Leaves the consequences to the shard. Invariant: an attempt is called lost only when its worker is silent for a whole lease, is
//! gone, or was told to stop a whole lease ago; so the next attempt never overlaps a well-behaved worker.

use outlast_kernel::event::LostWhy;
use outlast_kernel::ids::{Attempt, Millis};

use super::Lane;

/// A task in hand.
#[derive(Clone, Debug)]
pub(crate) struct InHand {
    /// The session that has it.
    pub(crate) session: String,
    /// Which attempt.
    pub(crate) attempt: Attempt,
    /// Its token.
    pub(crate) token: String,
    /// Where it came from, if it must be put back.
    pub(crate) lane: Lane,
    /// The tokens that its queue counts for it: what was thought, then what its worker says.
    pub(crate) tokens: u64,
    /// When its worker last named it.
    pub(crate) named_at: Millis,
    /// When the attempt's time is over.
    pub(crate) attempt_until: Option<Millis>,
    /// Milliseconds of silence after which it is given up.
    pub(crate) silent_ms: Option<u64>,
    /// That it must stop.
    pub(crate) stop: Option<Stop>,
    /// Whether it was handed out in an earlier epoch.
    pub(crate) adopted: bool,
}

/// That a task must stop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stop {
    /// Why.
    pub(crate) why: StopWhy,
    /// Since when.
    pub(crate) since: Millis,
    /// When the worker was told last.
    pub(crate) told_at: Option<Millis>,
}

/// Why a task must stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopWhy {
    /// Its time is over: the operation waits for the word that it stopped.
    TimeOver,
    /// Its operation was closed: nobody waits.
    Closed,
}

/// What time does to a task in hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing yet.
    Keep,
    /// It must stop now.
    Stop,
    /// It will never answer.
    Lost(LostWhy),
    /// Forget it; its operation is closed.
    Forget,
}

impl InHand {
    /// Judges a task. `names_tasks`: its worker lists what it has in hand.
    pub(crate) fn judge(&self, now: Millis, lease_ms: u64, names_tasks: bool) -> Verdict {
        match self.stop {
            Some(Stop { why, since, .. }) if since.plus(lease_ms) <= now => match why {
                StopWhy::TimeOver => Verdict::Lost(LostWhy::Timeout),
                StopWhy::Closed => Verdict::Forget,
            },
            Some(_) => Verdict::Keep,
            None if names_tasks && self.named_at.plus(lease_ms) <= now => Verdict::Lost(LostWhy::Lease),
            None if self.stop_at().is_some_and(|at| at <= now) => Verdict::Stop,
            None => Verdict::Keep,
        }
    }

    /// Returns when it must be judged again.
    pub(crate) fn judge_at(&self, lease_ms: u64, names_tasks: bool) -> Option<Millis> {
        let unnamed = names_tasks.then(|| self.named_at.plus(lease_ms));
        match self.stop {
            Some(stop) => Some(stop.since.plus(lease_ms)),
            None => [self.stop_at(), unnamed].into_iter().flatten().min(),
        }
    }

    /// Tells whether it was told to stop because its time is over.
    pub(crate) fn is_over_time(&self) -> bool {
        self.stop.is_some_and(|stop| stop.why == StopWhy::TimeOver)
    }

    fn stop_at(&self) -> Option<Millis> {
        let silent = self.silent_ms.map(|ms| self.named_at.plus(ms));
        [self.attempt_until, silent].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_stops_a_task_first_and_gives_it_up_a_lease_later() {
        let lane = Lane { queue: "q".into(), profile: String::new(), activity: "f".into(), promise: 0 };
        let task = InHand {
            session: "s".into(),
            attempt: Attempt(1),
            token: "t".into(),
            lane,
            tokens: 0,
            named_at: Millis(0),
            attempt_until: Some(Millis(500)),
            silent_ms: Some(200),
            stop: None,
            adopted: false,
        };
        let stopping =
            |why| InHand { stop: Some(Stop { why, since: Millis(100), told_at: None }), ..task.clone() };
        let named = InHand { named_at: Millis(450), ..task.clone() };
        for (task, names, now, verdict, what) in [
            (&task, false, 199, Verdict::Keep, "quiet, not long enough"),
            (&task, false, 200, Verdict::Stop, "silent"),
            (&named, false, 499, Verdict::Keep, "named lately"),
            (&named, false, 500, Verdict::Stop, "its time is over"),
            (&task, true, 1_000, Verdict::Lost(LostWhy::Lease), "left out by its worker for a lease"),
            (&stopping(StopWhy::TimeOver), false, 1_099, Verdict::Keep, "told to stop"),
            (&stopping(StopWhy::TimeOver), false, 1_100, Verdict::Lost(LostWhy::Timeout), "did not say so"),
            (&stopping(StopWhy::Closed), false, 1_100, Verdict::Forget, "closed, did not say so"),
        ] {
            assert_eq!(task.judge(Millis(now), 1_000, names), verdict, "{what}");
        }
        assert_eq!(task.judge_at(1_000, false), Some(Millis(200)));
    }
}
