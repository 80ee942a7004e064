//! What becomes of due times: started, queued or skipped, by the policies of a schedule.
//!
//! Leaves clocks, runs and the store to the engine. Invariant: every due time up to `last` was decided, and what was skipped is
//! recorded with its reason.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use outlast_kernel::ids::Millis;
use outlast_kernel::text::time_text;
use outlast_protocol::schedule::{CatchUp, Overlap, Schedule, ScheduleView, Skipped};
use serde::{Deserialize, Serialize};

use super::Rules;
use crate::limits::{SCHEDULE_LATE_MS, SCHEDULE_NEXT, SCHEDULE_QUEUE_MAX, SCHEDULE_SKIPPED_MAX};

/// A schedule as it is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// What it does.
    pub(crate) definition: Schedule,
    /// Whether it is paused.
    pub(crate) paused: bool,
    /// Due times up to this one were decided.
    pub(crate) last: Millis,
    /// Due times that wait for a run to end.
    pub(crate) queue: VecDeque<Millis>,
    /// Runs that had not ended when they were looked at last.
    pub(crate) active: Vec<String>,
    /// What was skipped last.
    pub(crate) skipped: VecDeque<Skipped>,
}

/// What is to be done for a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// Start the run of this due time.
    Start(Millis),
    /// Cancel the runs that have not ended.
    Cancel,
}

impl Record {
    /// Makes a schedule that is due after a moment.
    pub(crate) fn new(definition: Schedule, now: Millis) -> Record {
        Record {
            definition,
            paused: false,
            last: now,
            queue: VecDeque::new(),
            active: Vec::new(),
            skipped: VecDeque::new(),
        }
    }

    /// Decides what is due by now; `active` must hold only runs that have not ended. Returns what to do, in order; the run of a `Start`
    /// counts as active from then on.
    pub(crate) fn decide(&mut self, rules: &Rules, now: Millis) -> Vec<Act> {
        let mut acts = Vec::new();
        if self.active.is_empty() {
            acts.extend(self.queue.pop_front().map(Act::Start));
        }
        let (missed, on_time) = self.due(rules, now);
        for moment in missed {
            self.make_up(moment, &mut acts);
        }
        for moment in on_time {
            self.decide_one(moment, &mut acts);
        }
        acts
    }

    /// Skips what was due by now while it was paused.
    pub(crate) fn pass_over(&mut self, rules: &Rules, now: Millis) {
        debug_assert!(self.paused, "only then nothing of it is to be started");
        let (missed, on_time) = self.due(rules, now);
        debug_assert!(missed.is_empty() && on_time.is_empty());
    }

    /// Returns what was missed and is to be made up for, and what is due by now; moves `last` on.
    fn due(&mut self, rules: &Rules, now: Millis) -> (VecDeque<Millis>, VecDeque<Millis>) {
        // Of what was missed only the newest can count: keep as many as may.
        let keep = match self.definition.catch_up {
            CatchUp::None => 0,
            CatchUp::Last => 1,
            CatchUp::All(count) => count as usize,
        };
        let (mut missed, mut on_time) = (VecDeque::new(), VecDeque::new());
        let mut dropped: Option<(Millis, Millis, u64)> = None;
        let mut drop = |moment: Millis| {
            let (from, _, count) = dropped.unwrap_or((moment, moment, 0));
            dropped = Some((from, moment, count + 1));
        };
        let paused = self.paused;
        rules.each_after(self.last, |moment| {
            if moment > now {
                return ControlFlow::Break(());
            }
            if paused {
                drop(moment);
            } else if moment.plus(SCHEDULE_LATE_MS) < now {
                missed.push_back(moment);
                if missed.len() > keep {
                    missed.pop_front().into_iter().for_each(&mut drop);
                }
            } else {
                on_time.push_back(moment);
            }
            ControlFlow::Continue(())
        });
        // What is due now makes up for what was missed before it.
        if self.definition.catch_up == CatchUp::Last && !on_time.is_empty() {
            missed.drain(..).for_each(&mut drop);
        }
        if let Some((from, to, count)) = dropped {
            self.skip(from, to, count, if paused { "paused" } else { "missed" });
            self.last = self.last.max(to);
        }
        self.last = missed.iter().chain(&on_time).max().map_or(self.last, |newest| self.last.max(*newest));
        (missed, on_time)
    }

    /// Decides about what was missed. Several that are made up for do not overlap: where a run that is due beside another one would be
    /// skipped, they follow each other.
    fn make_up(&mut self, moment: Millis, acts: &mut Vec<Act>) {
        let all = matches!(self.definition.catch_up, CatchUp::All(_));
        let waits = !acts.is_empty() || !self.active.is_empty() || !self.queue.is_empty();
        if all && waits && self.definition.overlap == Overlap::Skip && self.queue.len() < SCHEDULE_QUEUE_MAX {
            self.queue.push_back(moment);
        } else {
            self.decide_one(moment, acts);
        }
    }

    fn decide_one(&mut self, moment: Millis, acts: &mut Vec<Act>) {
        let starting = acts.iter().any(|act| matches!(act, Act::Start(_)));
        let free = self.active.is_empty() && !starting && self.queue.is_empty();
        match self.definition.overlap {
            Overlap::Allow => acts.push(Act::Start(moment)),
            _ if free => acts.push(Act::Start(moment)),
            Overlap::Skip => self.skip(moment, moment, 1, "overlap"),
            Overlap::QueueOne if self.queue.is_empty() => self.queue.push_back(moment),
            Overlap::QueueOne => self.skip(moment, moment, 1, "overlap"),
            Overlap::QueueAll if self.queue.len() < SCHEDULE_QUEUE_MAX => self.queue.push_back(moment),
            Overlap::QueueAll => self.skip(moment, moment, 1, "queue_full"),
            Overlap::CancelPrevious => {
                // Of several that are due at once only the newest is worth a start.
                let begun = acts.drain(..).filter_map(started);
                let replaced: Vec<Millis> = begun.chain(self.queue.drain(..)).collect();
                for replaced in replaced {
                    self.skip(replaced, replaced, 1, "replaced");
                }
                if self.active.is_empty() {
                    acts.push(Act::Start(moment));
                } else {
                    acts.push(Act::Cancel);
                    self.queue.push_back(moment);
                }
            }
        }
    }

    /// Records what was skipped.
    pub(crate) fn skip(&mut self, from: Millis, to: Millis, count: u64, reason: &str) {
        while self.skipped.len() >= SCHEDULE_SKIPPED_MAX {
            self.skipped.pop_front();
        }
        let (from, to) = (time_text(from), time_text(to));
        self.skipped.push_back(Skipped { from, to, count, reason: reason.to_owned() });
    }

    /// Shows it.
    pub(crate) fn view(&self, name: &str, rules: &Rules, now: Millis) -> ScheduleView {
        let texts = |moments: &mut dyn Iterator<Item = Millis>| moments.map(time_text).collect();
        ScheduleView {
            name: name.to_owned(),
            definition: self.definition.clone(),
            paused: self.paused,
            last: time_text(self.last),
            next: texts(&mut rules.first(now.max(self.last), SCHEDULE_NEXT).into_iter()),
            queue: texts(&mut self.queue.iter().copied()),
            active: self.active.clone(),
            skipped: self.skipped.iter().cloned().collect(),
        }
    }
}

fn started(act: Act) -> Option<Millis> {
    match act {
        Act::Start(moment) => Some(moment),
        Act::Cancel => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Noon on a day in 2027.
    const NOON: Millis = Millis(1_800_014_400_000);
    const MINUTE: u64 = 60_000;

    fn at(minutes: u64) -> Millis {
        NOON.plus(minutes * MINUTE)
    }

    fn rules(rules: &[&str]) -> Rules {
        let rules: Vec<String> = rules.iter().map(|rule| (*rule).to_owned()).collect();
        Rules::parse(&rules, "UTC").unwrap()
    }

    fn record(overlap: Overlap, catch_up: CatchUp) -> Record {
        Record::new(Schedule { overlap, catch_up, ..Schedule::default() }, NOON)
    }

    fn starts(acts: &[Act]) -> Vec<Millis> {
        acts.iter().cloned().filter_map(started).collect()
    }

    fn reasons(record: &Record) -> Vec<(u64, &str)> {
        record.skipped.iter().map(|skipped| (skipped.count, skipped.reason.as_str())).collect()
    }

    /// Case CRN-05: five minutes without an engine, with one rule and with three.
    #[test]
    fn what_was_missed_is_made_up_for_as_the_policy_says() {
        let now = Millis(at(5).0 + 45_000);
        for (catch_up, expected, skipped) in [
            (CatchUp::None, vec![], vec![(5, "missed")]),
            (CatchUp::Last, vec![at(5)], vec![(4, "missed")]),
            (CatchUp::All(3), vec![at(3), at(4), at(5)], vec![(2, "missed")]),
            (CatchUp::All(9), vec![at(1), at(2), at(3), at(4), at(5)], vec![]),
        ] {
            for rules in [rules(&["* * * * *"]), rules(&["1-59/2 * * * *", "*/2 * * * *", "3 * * * *"])] {
                let mut record = record(Overlap::Allow, catch_up);
                assert_eq!(starts(&record.decide(&rules, now)), expected, "{catch_up:?}");
                assert_eq!(reasons(&record), skipped, "{catch_up:?}");
                assert_eq!(record.decide(&rules, now), [], "each is decided once");
            }
        }
        // What is due now needs no catching up, and makes up for what was missed.
        for catch_up in [CatchUp::None, CatchUp::Last] {
            let mut record = record(Overlap::Allow, catch_up);
            assert_eq!(starts(&record.decide(&rules(&["* * * * *"]), at(5))), [at(5)]);
            assert_eq!(reasons(&record), [(4, "missed")]);
        }
    }

    /// Case CRN-07: a run takes two and a half minutes, and one is due every minute.
    #[test]
    fn runs_that_take_longer_than_their_period_overlap_as_the_policy_says() {
        for (overlap, expected, skipped, waiting) in [
            (Overlap::Skip, vec![1, 4, 7], vec!["overlap"; 4], 0),
            (Overlap::QueueOne, vec![1, 2, 4], vec!["overlap"; 3], 1),
            (Overlap::QueueAll, vec![1, 2, 3], vec![], 4),
            (Overlap::Allow, vec![1, 2, 3, 4, 5, 6, 7], vec![], 0),
            (Overlap::CancelPrevious, vec![1, 2, 3, 4, 5, 6, 7], vec![], 0),
        ] {
            let rules = rules(&["* * * * *"]);
            let mut record = record(overlap, CatchUp::Last);
            // Runs end by themselves after 150 s, and 10 s after they were cancelled.
            let mut ends: Vec<(String, Millis)> = Vec::new();
            let mut begun = Vec::new();
            for seconds in 0..=(7 * 60 + 10) {
                let now = NOON.plus(seconds * 1_000);
                ends.retain(|(_, end)| *end > now);
                record.active = ends.iter().map(|(run, _)| run.clone()).collect();
                for act in record.decide(&rules, now) {
                    match act {
                        Act::Start(due) => {
                            begun.push((due.0 - NOON.0) / 60_000);
                            ends.push((due.0.to_string(), now.plus(150_000)));
                        }
                        Act::Cancel => ends.iter_mut().for_each(|end| end.1 = now.plus(10_000)),
                    }
                }
                // Whatever is stored survives a restart at any moment.
                record = serde_json::from_value(serde_json::to_value(&record).unwrap()).unwrap();
            }
            assert_eq!(begun, expected, "{overlap:?}");
            let reasons: Vec<&str> = reasons(&record).into_iter().map(|(_, reason)| reason).collect();
            assert_eq!((reasons, record.queue.len()), (skipped, waiting), "{overlap:?}");
        }
    }

    #[test]
    fn what_is_made_up_for_follows_one_after_the_other_where_runs_must_not_overlap() {
        let (rules, mut record) = (rules(&["* * * * *"]), record(Overlap::Skip, CatchUp::All(3)));
        assert_eq!(starts(&record.decide(&rules, Millis(at(5).0 + 45_000))), [at(3)]);
        record.active = vec!["first".to_owned()];
        assert_eq!(record.decide(&rules, at(6)), [], "what is due beside them is skipped");
        for next in [at(4), at(5)] {
            record.active.clear();
            assert_eq!(starts(&record.decide(&rules, Millis(at(6).0 + 1))), [next]);
        }
        assert_eq!(reasons(&record), [(2, "missed"), (1, "overlap")]);
    }

    #[test]
    fn what_is_due_in_a_pause_is_skipped_as_paused() {
        let (rules, mut record) = (rules(&["* * * * *"]), record(Overlap::Skip, CatchUp::All(9)));
        record.paused = true;
        assert_eq!(record.decide(&rules, at(3)), []);
        record.paused = false;
        assert_eq!(starts(&record.decide(&rules, at(4))), [at(4)]);
        assert_eq!(reasons(&record), [(3, "paused")]);
    }
}
