//! A worker that does what the protocol asks: it names what it has, gives it up before the lease since then ends, stops what it must stop,
//! and delivers results until they are taken, over a network that loses calls and answers.
//!
//! Invariant: an effect happens in one moment, and only while the worker may believe that the attempt is its own.

use std::collections::BTreeMap;

use outlast_kernel::ids::Millis;
use outlast_protocol::worker::{Offer, Outcome, OutcomeKind, Register, StoppedWhy, Task};

/// What the runtime grants for each lease; the worker gives attempts up when six eighths of it are over.
pub(crate) const LEASE_MS: i64 = 30_000;
/// How long after a restart the runtime waits for workers of the process before.
pub(crate) const ADOPT_WITHIN_MS: i64 = 5_000;

/// See the module.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) name: String,
    /// How often it was started.
    pub(crate) life: u32,
    pub(crate) session: Option<String>,
    /// When the last call was sent that was answered.
    pub(crate) renewed_at: Millis,
    /// The process of the runtime that answered it, by its number.
    pub(crate) life_seen: u32,
    /// Whether the last call was not answered.
    pub(crate) fails: bool,
    /// Whether it reaches nobody.
    pub(crate) is_cut: bool,
    pub(crate) is_stopped: bool,
    /// Attempts that it has and has not carried out.
    pub(crate) hands: Vec<Task>,
    /// When the last call was sent that was answered and named the attempt, by its token: the one that brought it, or a sign of life.
    pub(crate) named_at: BTreeMap<String, Millis>,
    /// Results that were not taken yet, each with its attempt.
    pub(crate) outbox: Vec<(Task, OutcomeKind)>,
    /// Results that were taken.
    pub(crate) sent: Vec<Outcome>,
}

impl Worker {
    pub(crate) fn new(number: u8) -> Worker {
        Worker {
            name: format!("w{number}"),
            life: 0,
            session: None,
            renewed_at: Millis(0),
            life_seen: 0,
            fails: false,
            is_cut: false,
            is_stopped: false,
            hands: Vec::new(),
            named_at: BTreeMap::new(),
            outbox: Vec::new(),
            sent: Vec::new(),
        }
    }

    pub(crate) fn boot(&self) -> String {
        format!("{}-{}", self.name, self.life)
    }

    /// What it says when it comes, or comes back.
    pub(crate) fn register(&self) -> Register {
        let names = ["look", "put", "pay", "paid", "wire", "book", "unbook"];
        let offer = |name: &str| Offer { name: name.into(), ..Offer::default() };
        let held = self.hands.iter().map(|task| task.token.clone());
        Register {
            worker: self.name.clone(),
            boot: self.boot(),
            queues: vec!["q".into()],
            profile: Some("p".into()),
            concurrency: 4,
            activities: names.map(offer).into(),
            holding: held.chain(self.outbox.iter().map(|(task, _)| task.token.clone())).collect(),
            pid: None,
        }
    }

    /// A call was answered that was sent at this moment, by a process of the runtime.
    pub(crate) fn answered(&mut self, at: Millis, life: u32) {
        (self.renewed_at, self.life_seen, self.fails) = (at, life, false);
    }

    /// A call was answered that was sent at this moment and named all that it has.
    pub(crate) fn named_all(&mut self, at: Millis) {
        self.named_at = self.hands.iter().map(|task| (task.token.clone(), at)).collect();
    }

    /// Gives attempts up that the runtime may soon believe to be with nobody.
    pub(crate) fn fence(&mut self, now: Millis) {
        let hands = std::mem::take(&mut self.hands);
        self.hands = hands.into_iter().filter(|task| !self.is_over(task, now)).collect();
    }

    fn is_over(&self, task: &Task, now: Millis) -> bool {
        let named_at = self.named_at.get(&task.token).copied().unwrap_or_default();
        self.fails && now.0 - named_at.0 >= LEASE_MS * 6 / 8
    }

    /// Stops an attempt, if it has it, and says so.
    pub(crate) fn stop(&mut self, token: &str) {
        if let Some(at) = self.hands.iter().position(|task| task.token == token) {
            self.outbox.push((self.hands.remove(at), OutcomeKind::Stopped { why: StoppedWhy::Cancelled }));
        }
    }

    /// It dies, with all that it has, and is started again.
    pub(crate) fn die(&mut self) {
        let (name, life) = (self.name.clone(), self.life + 1);
        *self = Worker { name, life, is_cut: self.is_cut, ..Worker::new(0) };
    }

    /// Whether it is about to carry out an attempt of this operation.
    pub(crate) fn may_act_on(&self, run: &str, op: &str, now: Millis) -> bool {
        let has_it = |task: &Task| task.run == run && task.op == op && !self.is_over(task, now);
        !self.is_stopped && self.hands.iter().any(has_it)
    }
}
