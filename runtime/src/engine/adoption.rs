//! What workers of the last epoch may still have in hand, after a restart.
//!
//! Leaves registering to `dispatch` and judging operations to the shard. Invariant: an operation is kept back only while a process
//! that could have it in hand may still live and has not come back; new work is never kept back.

use std::collections::BTreeMap;

use outlast_kernel::ids::{Attempt, Millis};

use super::dispatch::{Lane, WorkId};
use super::session::Record;

/// Sessions of the last epoch, and what waits for them.
#[derive(Debug)]
pub(crate) struct Adoption {
    prior: Vec<Prior>,
    /// When waiting ends.
    pub(crate) until: Millis,
    /// When every lease of the last epoch has ended.
    leases_end: Millis,
    held: BTreeMap<WorkId, Lane>,
    begun: BTreeMap<WorkId, (Attempt, String)>,
}

#[derive(Debug)]
struct Prior {
    record: Record,
    fate: Fate,
    /// Whether its durable record was dropped.
    told: bool,
}

/// What is known of a session of the last epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Awaited,
    /// It did not come back in time; what it began is still kept for it.
    Late,
    Back,
    Gone,
}

impl Fate {
    /// Whether anything is still kept for it.
    fn is_awaited(self) -> bool {
        matches!(self, Fate::Awaited | Fate::Late)
    }
}

/// What need not wait any more.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Freed {
    /// May be handed out.
    pub(crate) offer: Vec<(WorkId, Lane)>,
    /// Was begun and never reached its worker.
    pub(crate) void: Vec<(WorkId, Attempt)>,
    /// Was begun by a process that is gone.
    pub(crate) lost: Vec<(WorkId, Attempt)>,
}

/// What to do about an operation that was begun in an earlier epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begun {
    /// Its worker may come back.
    Wait,
    /// Its worker came back without it: it never arrived.
    Void,
    /// Its worker is gone.
    Lost,
}

impl Adoption {
    /// Begins to wait for sessions; those whose process is gone are not waited for.
    pub(crate) fn new(records: Vec<Record>, until: Millis, leases_end: Millis) -> Adoption {
        let prior =
            records.into_iter().map(|record| Prior { record, fate: Fate::Awaited, told: false }).collect();
        let mut adoption =
            Adoption { prior, until, leases_end, held: BTreeMap::new(), begun: BTreeMap::new() };
        adoption.look_at_processes();
        adoption
    }

    /// Tells whether somebody is waited for.
    pub(crate) fn waits(&self) -> bool {
        self.prior.iter().any(|prior| prior.fate.is_awaited())
    }

    /// Keeps a ready operation back if a session that is waited for may have it in hand; tells whether it did.
    pub(crate) fn hold(&mut self, work: &WorkId, lane: &Lane) -> bool {
        let could = self.could_have(lane);
        if could {
            self.held.insert(work.clone(), lane.clone());
        }
        could
    }

    /// Judges an operation that was begun in an earlier epoch, and keeps it if it must wait.
    pub(crate) fn begun(&mut self, work: &WorkId, attempt: Attempt, holder: &str) -> Begun {
        match self.fate(holder) {
            Some(Fate::Awaited | Fate::Late) => {
                self.begun.insert(work.clone(), (attempt, holder.to_owned()));
                Begun::Wait
            }
            Some(Fate::Back) => Begun::Void,
            // Also if nothing is known of its worker: whoever had it would have it in hand.
            Some(Fate::Gone) | None => Begun::Lost,
        }
    }

    /// Tells whether an operation waits here.
    pub(crate) fn keeps(&self, work: &WorkId) -> bool {
        self.held.contains_key(work) || self.begun.contains_key(work)
    }

    /// Forgets an operation: it is in hand, or closed.
    pub(crate) fn forget(&mut self, work: &WorkId) {
        self.held.remove(work);
        self.begun.remove(work);
    }

    /// Takes note that a worker registered, after the tokens that it listed were looked at.
    pub(crate) fn registered(&mut self, worker: &str, boot: &str) {
        for prior in &mut self.prior {
            // Names are unique among workers that live at once: another boot of the name means that the old process is gone.
            if prior.record.worker == worker {
                prior.fate = if prior.record.boot == boot { Fate::Back } else { Fate::Gone };
            }
        }
    }

    /// Takes note that a process ended; returns the names of its workers.
    pub(crate) fn gone(&mut self, boot: &str) -> Vec<String> {
        let mut workers = Vec::new();
        for prior in self.prior.iter_mut().filter(|prior| prior.record.boot == boot) {
            prior.fate = Fate::Gone;
            workers.push(prior.record.worker.clone());
        }
        workers
    }

    /// Takes out the sessions that are known to be gone: worker and boot.
    pub(crate) fn take_gone(&mut self) -> Vec<(String, String)> {
        let gone = self.prior.iter_mut().filter(|prior| prior.fate == Fate::Gone && !prior.told);
        gone.map(|prior| {
            prior.told = true;
            (prior.record.worker.clone(), prior.record.boot.clone())
        })
        .collect()
    }

    /// Looks whether the processes that are waited for still live.
    pub(crate) fn look_at_processes(&mut self) {
        for prior in self.prior.iter_mut().filter(|prior| prior.fate.is_awaited()) {
            if prior.record.process.is_some_and(|process| !process.lives()) {
                prior.fate = Fate::Gone;
            }
        }
    }

    /// Ends the waiting if it was long enough: for what was begun, until its worker has lost its lease, since until then it may be at
    /// it; for work that may be repeated not so long, unless the worker's process is seen to live and is only slow.
    pub(crate) fn end(&mut self, now: Millis) {
        if now < self.until {
            return;
        }
        let over = self.leases_end <= now;
        for prior in &mut self.prior {
            prior.fate = match prior.fate {
                Fate::Awaited | Fate::Late if over => Fate::Gone,
                Fate::Awaited if prior.record.process.is_none() => Fate::Late,
                fate @ (Fate::Awaited | Fate::Late | Fate::Back | Fate::Gone) => fate,
            };
        }
        if self.waits() {
            self.until = self.leases_end;
        }
    }

    /// Takes out what need not wait any more.
    pub(crate) fn free(&mut self) -> Freed {
        let mut freed = Freed::default();
        for (work, lane) in std::mem::take(&mut self.held) {
            if self.could_have(&lane) {
                self.held.insert(work, lane);
            } else {
                freed.offer.push((work, lane));
            }
        }
        for (work, (attempt, holder)) in std::mem::take(&mut self.begun) {
            match self.fate(&holder) {
                Some(Fate::Awaited | Fate::Late) => {
                    self.begun.insert(work, (attempt, holder));
                }
                Some(Fate::Back) => freed.void.push((work, attempt)),
                Some(Fate::Gone) | None => freed.lost.push((work, attempt)),
            }
        }
        freed
    }

    fn could_have(&self, lane: &Lane) -> bool {
        self.prior.iter().any(|prior| prior.fate == Fate::Awaited && prior.record.serves(lane))
    }

    fn fate(&self, holder: &str) -> Option<Fate> {
        self.prior.iter().find(|prior| prior.record.holder() == holder).map(|prior| prior.fate)
    }
}

#[cfg(test)]
mod tests {
    use outlast_kernel::ids::{OpId, RunId, Seq};

    use super::*;
    use crate::engine::session::Process;

    fn record(worker: &str, queue: &str, process: Option<Process>) -> Record {
        Record {
            worker: worker.into(),
            boot: format!("{worker}-boot"),
            queues: [queue.into()].into(),
            profile: None,
            offers: [("f".into(), 2)].into(),
            process,
        }
    }

    fn waiting_for(records: Vec<Record>) -> Adoption {
        Adoption::new(records, Millis(5_000), Millis(30_000))
    }

    fn lane(queue: &str) -> Lane {
        Lane { queue: queue.into(), profile: "p".into(), activity: "f".into(), promise: 2 }
    }

    fn work(n: u64) -> WorkId {
        WorkId { run: RunId::new("r").unwrap(), op: OpId(Seq(n), 0) }
    }

    #[test]
    fn only_what_a_living_session_could_hold_waits() {
        let dead = Process { pid: std::process::id(), started: 1 };
        let mut adoption = waiting_for(vec![record("here", "a", None), record("dead", "b", Some(dead))]);
        assert!(adoption.hold(&work(1), &lane("a")));
        assert!(!adoption.hold(&work(2), &lane("b")), "its process is gone");
        assert!(!adoption.hold(&work(3), &lane("c")), "nobody polled it");
        assert_eq!(adoption.begun(&work(4), Attempt(1), "dead@dead-boot"), Begun::Lost);
        assert_eq!(adoption.begun(&work(5), Attempt(1), "here@here-boot"), Begun::Wait);
        assert_eq!(adoption.begun(&work(6), Attempt(1), "here@older-boot"), Begun::Lost);
        assert_eq!(adoption.free(), Freed::default());

        adoption.registered("here", "here-boot");
        let freed = adoption.free();
        assert_eq!(freed.offer, [(work(1), lane("a"))]);
        assert_eq!(freed.void, [(work(5), Attempt(1))]);
        assert!(!adoption.waits());
    }

    #[test]
    fn who_does_not_come_back_in_time_has_lost_its_tasks() {
        let mut adoption = waiting_for(vec![record("w", "a", None)]);
        assert!(adoption.hold(&work(1), &lane("a")));
        assert_eq!(adoption.begun(&work(2), Attempt(2), "w@w-boot"), Begun::Wait);
        adoption.end(Millis(4_999));
        assert_eq!(adoption.free(), Freed::default());
        adoption.end(Millis(5_000));
        assert_eq!(adoption.free(), Freed { offer: vec![(work(1), lane("a"))], ..Freed::default() });
        assert_eq!(adoption.begun(&work(3), Attempt(1), "w@w-boot"), Begun::Wait, "it may be at it");
        adoption.end(Millis(30_000));
        assert_eq!(adoption.free().lost, [(work(2), Attempt(2)), (work(3), Attempt(1))]);
        assert!(!adoption.waits());
    }

    #[test]
    fn a_process_that_lives_is_waited_for_as_long_as_a_lease() {
        let lives = Process::find(std::process::id());
        let mut adoption = waiting_for(vec![record("slow", "a", lives), record("far", "b", None)]);
        assert!(adoption.hold(&work(1), &lane("a")) && adoption.hold(&work(2), &lane("b")));
        assert_eq!(adoption.begun(&work(3), Attempt(1), "slow@slow-boot"), Begun::Wait);
        adoption.look_at_processes();
        adoption.end(Millis(5_000));
        assert_eq!(adoption.free(), Freed { offer: vec![(work(2), lane("b"))], ..Freed::default() });
        assert_eq!(adoption.until, Millis(30_000));
        adoption.look_at_processes();
        adoption.end(Millis(30_000));
        let freed = adoption.free();
        assert_eq!((freed.offer, freed.lost), (vec![(work(1), lane("a"))], vec![(work(3), Attempt(1))]));
    }

    #[test]
    fn another_boot_of_the_same_worker_ends_the_wait_for_the_old_one() {
        let mut adoption = waiting_for(vec![record("w", "a", None)]);
        assert_eq!(adoption.begun(&work(2), Attempt(1), "w@w-boot"), Begun::Wait);
        adoption.registered("w", "new-boot");
        assert_eq!(adoption.free().lost, [(work(2), Attempt(1))]);
    }
}
