//! Steps on their way to the disk, each with what must wait for it.
//!
//! Leaves doing it to the shard. Invariant: a consequence is let go only when its step, and so every step before it, is durable.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use outlast_kernel::ids::RunId;
use outlast_store::{Delete, Put, RunWrite};
use tokio::sync::mpsc;

use super::committer::{Committer, Deletion, Done, HeadCell, Step, Work};
use super::message::Consequence;

/// Steps that are not durable.
pub(crate) struct Outbox {
    committer: Committer,
    done: mpsc::UnboundedSender<Done>,
    next: u64,
    /// By their tickets: in the order of their queueing.
    withheld: BTreeMap<u64, Withheld>,
    /// The newest one of each run.
    newest: HashMap<RunId, u64>,
}

/// A step that is not durable.
pub(crate) struct Withheld {
    /// The run.
    pub(crate) run: RunId,
    /// Its head cell: tells this life of the run in memory from a later one.
    pub(crate) head: HeadCell,
    /// Whether it deletes the run.
    pub(crate) deletes: bool,
    /// What waits.
    pub(crate) consequences: Vec<Consequence>,
}

impl Outbox {
    /// Begins empty.
    pub(crate) fn new(committer: Committer, done: mpsc::UnboundedSender<Done>) -> Outbox {
        Outbox { committer, done, next: 0, withheld: BTreeMap::new(), newest: HashMap::new() }
    }

    /// Queues a step.
    pub(crate) fn queue(
        &mut self,
        head: HeadCell,
        write: RunWrite,
        puts: Vec<Put>,
        weight: usize,
        consequences: Vec<Consequence>,
    ) {
        let (run, head_then) = (write.run.clone(), Arc::clone(&head));
        let ticket = self.withhold(Withheld { run, head: head_then, deletes: false, consequences });
        let done = self.done.clone();
        self.committer.queue(Work::Step(Box::new(Step { head, write, puts, weight, ticket, done })));
    }

    /// Queues the deletion of a run of which nothing is on its way.
    pub(crate) fn delete(&mut self, delete: Delete, puts: Vec<Put>, consequences: Vec<Consequence>) {
        let (run, head) = (delete.run.clone(), HeadCell::default());
        let ticket = self.withhold(Withheld { run, head, deletes: true, consequences });
        let done = self.done.clone();
        self.committer.queue(Work::Delete(Box::new(Deletion { delete, puts, ticket, done })));
    }

    fn withhold(&mut self, withheld: Withheld) -> u64 {
        let ticket = self.next;
        self.next += 1;
        self.newest.insert(withheld.run.clone(), ticket);
        self.withheld.insert(ticket, withheld);
        ticket
    }

    /// Lets a consequence wait for the newest step of a run; gives it back if none is on its way.
    pub(crate) fn wait(&mut self, run: &RunId, consequence: Consequence) -> Option<Consequence> {
        let newest = self.newest.get(run);
        match newest.and_then(|ticket| self.withheld.get_mut(ticket)) {
            Some(withheld) => {
                withheld.consequences.push(consequence);
                None
            }
            None => Some(consequence),
        }
    }

    /// Takes out a step.
    pub(crate) fn take(&mut self, ticket: u64) -> Option<Withheld> {
        let withheld = self.withheld.remove(&ticket)?;
        if self.newest.get(&withheld.run) == Some(&ticket) {
            self.newest.remove(&withheld.run);
        }
        Some(withheld)
    }

    /// Returns how many steps are on their way.
    pub(crate) fn len(&self) -> usize {
        self.withheld.len()
    }
}
