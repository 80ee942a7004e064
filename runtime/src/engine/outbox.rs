//! Steps on their way to the disk, each with what must wait for it.
//!
//! Leaves doing it to the shard. Invariant: a consequence is let go only when its step, and so every step before it, is durable.

use std::collections::VecDeque;
use std::sync::Arc;

use outlast_kernel::ids::RunId;
use outlast_store::{Delete, Put, RunWrite};
use tokio::sync::mpsc;

use super::committer::{Committer, Deletion, Done, HeadCell, Step, Work};
use super::counters::Tally;
use super::message::Consequence;

/// Steps that are not durable.
pub(crate) struct Outbox {
    committer: Committer,
    done: mpsc::UnboundedSender<Done>,
    next: u64,
    withheld: VecDeque<Withheld>,
}

/// A step that is not durable.
pub(crate) struct Withheld {
    ticket: u64,
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
        Outbox { committer, done, next: 0, withheld: VecDeque::new() }
    }

    /// Queues a step.
    pub(crate) fn queue(
        &mut self,
        head: HeadCell,
        write: RunWrite,
        puts: Vec<Put>,
        (weight, tally): (usize, Tally),
        consequences: Vec<Consequence>,
    ) {
        let ticket = self.next;
        self.next += 1;
        self.withheld.push_back(Withheld {
            ticket,
            run: write.run.clone(),
            head: Arc::clone(&head),
            deletes: false,
            consequences,
        });
        let done = self.done.clone();
        self.committer.queue(Work::Step(Box::new(Step { head, write, puts, weight, tally, ticket, done })));
    }

    /// Queues the deletion of a run of which nothing is on its way.
    pub(crate) fn delete(&mut self, delete: Delete, puts: Vec<Put>, consequences: Vec<Consequence>) {
        let ticket = self.next;
        self.next += 1;
        let (run, head) = (delete.run.clone(), HeadCell::default());
        self.withheld.push_back(Withheld { ticket, run, head, deletes: true, consequences });
        let done = self.done.clone();
        self.committer.queue(Work::Delete(Box::new(Deletion { delete, puts, ticket, done })));
    }

    /// Lets a consequence wait for the newest step of a run; gives it back if none is on its way.
    pub(crate) fn wait(&mut self, run: &RunId, consequence: Consequence) -> Option<Consequence> {
        match self.withheld.iter_mut().rfind(|withheld| withheld.run == *run) {
            Some(withheld) => {
                withheld.consequences.push(consequence);
                None
            }
            None => Some(consequence),
        }
    }

    /// Takes out a step.
    pub(crate) fn take(&mut self, ticket: u64) -> Option<Withheld> {
        let at = self.withheld.iter().position(|withheld| withheld.ticket == ticket)?;
        self.withheld.remove(at)
    }

    /// Returns how many steps are on their way.
    pub(crate) fn len(&self) -> usize {
        self.withheld.len()
    }
}
