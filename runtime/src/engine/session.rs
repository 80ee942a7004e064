//! Worker sessions: who polls, what they offer, what they have in hand, and until when they are believed.
//!
//! Leaves queues and hand-outs to `dispatch`. Invariant: what is durable of a session names the worker's process well enough to tell,
//! after a restart, whether it can still be at work.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use outlast_kernel::ids::Millis;
use outlast_kernel::operation::Class;
use outlast_protocol::worker::Register;
use outlast_protocol::{ApiError, Code};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use super::dispatch::{Lane, WorkId};
use crate::limits;

/// A process of this computer that cannot be mistaken for a later one with the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Process {
    /// Its number.
    pub(crate) pid: u32,
    /// When it started, in clock ticks since the computer booted.
    pub(crate) started: u64,
}

impl Process {
    /// Finds a process; none if there is none with this number here.
    pub(crate) fn find(pid: u32) -> Option<Process> {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The command's name may hold anything; the last `)` ends it. Field 3 comes next, 22 is the start.
        let mut fields = text.rsplit_once(')')?.1.split_ascii_whitespace();
        let state = fields.next()?;
        let started = fields.nth(18)?.parse().ok()?;
        (state != "Z" && state != "X").then_some(Process { pid, started })
    }

    /// Tells whether it still lives.
    pub(crate) fn lives(self) -> bool {
        Process::find(self.pid) == Some(self)
    }
}

/// What is durable of a session: enough to know, after a restart, what it could have in hand.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The worker's name.
    pub(crate) worker: String,
    /// Its process's boot id.
    pub(crate) boot: String,
    /// The queues that it polls.
    pub(crate) queues: BTreeSet<String>,
    /// The profile that it serves; none: all.
    pub(crate) profile: Option<String>,
    /// What it offers, with the strongest promise that it keeps: 0 once, 1 idempotent, 2 pure.
    pub(crate) offers: BTreeMap<String, u8>,
    /// Its process, if it is on this computer.
    pub(crate) process: Option<Process>,
}

impl Record {
    /// Reads a registration.
    ///
    /// # Errors
    /// [`Code::Invalid`] if a name is missing or too long, or an effect class is none.
    pub(crate) fn new(request: &Register) -> Result<Record, ApiError> {
        for (what, name) in [("worker", &request.worker), ("boot", &request.boot)] {
            let fits = (1..=limits::NAME_BYTES_MAX).contains(&name.len()) && !name.contains(['@', '\n']);
            if !fits {
                let most = limits::NAME_BYTES_MAX;
                let message = format!("{what} is {name:?}; 1 to {most} bytes without `@` are expected");
                return Err(ApiError::new(Code::Invalid, message).at(what));
            }
        }
        let mut offers = BTreeMap::new();
        for offer in &request.activities {
            let promise = match offer.effect.as_str() {
                "once" => 0,
                "idempotent" => 1,
                "pure" | "" => 2,
                other => {
                    let message = format!("effect {other:?}; `pure`, `idempotent` or `once` is expected");
                    return Err(ApiError::new(Code::Invalid, message).at(format!("activity {}", offer.name)));
                }
            };
            offers.insert(offer.name.clone(), promise);
        }
        Ok(Record {
            worker: request.worker.clone(),
            boot: request.boot.clone(),
            queues: request.queues.iter().cloned().collect(),
            profile: request.profile.clone(),
            offers,
            process: request.pid.and_then(Process::find),
        })
    }

    /// Returns the name that a `Begun` event gives to the worker: the process, not only the worker.
    pub(crate) fn holder(&self) -> String {
        holder(&self.worker, &self.boot)
    }

    /// Tells whether it polls a queue for a profile.
    pub(crate) fn polls(&self, queue: &str, profile: &str) -> bool {
        self.queues.contains(queue) && self.profile.as_deref().is_none_or(|own| own == profile)
    }

    /// Tells whether it could take work of a lane.
    pub(crate) fn serves(&self, lane: &Lane) -> bool {
        self.polls(&lane.queue, &lane.profile)
            && self.offers.get(&lane.activity).is_some_and(|promise| *promise >= lane.promise)
    }
}

/// Returns the name that a `Begun` event gives to a worker's process.
pub(crate) fn holder(worker: &str, boot: &str) -> String {
    format!("{worker}@{boot}")
}

/// Returns the promise that a class of calls demands of its worker: a weaker one would repeat what it must not.
pub(crate) fn demanded(class: Class) -> u8 {
    match class {
        Class::Once => 0,
        Class::Idempotent => 1,
        Class::Pure => 2,
    }
}

/// A session of this epoch.
#[derive(Debug)]
pub(crate) struct Session {
    /// Who it is.
    pub(crate) record: Record,
    /// How many attempts it runs at once.
    pub(crate) concurrency: usize,
    /// When it is believed to be gone.
    pub(crate) lease_until: Millis,
    /// What it has in hand.
    pub(crate) hand: BTreeSet<WorkId>,
    /// How many tasks are on their way to it.
    pub(crate) coming: usize,
    /// It takes no more.
    pub(crate) leaving: bool,
    /// Whether it names its tasks by `progress`; then a task that it leaves out is not with it.
    pub(crate) names_tasks: bool,
    /// Tokens that it named but does not have: it must stop those attempts.
    pub(crate) unwanted: BTreeSet<String>,
    /// Wakes its polls.
    pub(crate) work: Arc<Notify>,
    /// Wakes its control calls.
    pub(crate) stops: Arc<Notify>,
}

impl Session {
    /// Begins a session.
    pub(crate) fn new(record: Record, concurrency: u32, lease_until: Millis) -> Session {
        Session {
            record,
            concurrency: concurrency as usize,
            lease_until,
            hand: BTreeSet::new(),
            coming: 0,
            leaving: false,
            names_tasks: false,
            unwanted: BTreeSet::new(),
            work: Arc::default(),
            stops: Arc::default(),
        }
    }

    /// Returns when to look whether its process still lives; none if it has nothing in hand, or is on another computer.
    pub(crate) fn look_at(&self, now: Millis) -> Option<Millis> {
        let wanted = self.record.process.is_some() && !self.hand.is_empty();
        wanted.then(|| now.plus(limits::HOLDER_LOOK_MS))
    }

    /// Tells whether it has something in hand and its process is gone.
    pub(crate) fn is_gone(&self) -> bool {
        !self.hand.is_empty() && self.record.process.is_some_and(|process| !process.lives())
    }

    /// Returns how many tasks it can take now.
    pub(crate) fn room(&self) -> usize {
        if self.leaving { 0 } else { self.concurrency.saturating_sub(self.hand.len() + self.coming) }
    }
}

#[cfg(test)]
mod tests {
    use outlast_protocol::worker::Offer;

    use super::*;

    #[test]
    fn a_process_is_known_by_its_start_too() {
        let own = Process::find(std::process::id()).unwrap();
        assert!(own.lives());
        assert!(!Process { started: own.started + 1, ..own }.lives());
    }

    #[test]
    fn a_weaker_promise_than_the_flow_declares_is_not_enough() {
        for (effect, class, takes) in [
            ("", Class::Pure, true),
            ("pure", Class::Once, true),
            ("idempotent", Class::Idempotent, true),
            ("idempotent", Class::Pure, false),
            ("once", Class::Idempotent, false),
            ("once", Class::Once, true),
        ] {
            let offer = Offer { name: "f".into(), effect: effect.into(), ..Offer::default() };
            let request = Register {
                worker: "w".into(),
                boot: "b".into(),
                queues: vec!["q".into()],
                activities: vec![offer],
                ..Register::default()
            };
            let lane = Lane {
                queue: "q".into(),
                profile: "p".into(),
                activity: "f".into(),
                promise: demanded(class),
            };
            assert_eq!(Record::new(&request).unwrap().serves(&lane), takes, "{effect:?} for {class:?}");
        }
    }
}
