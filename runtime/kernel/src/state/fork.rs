//! The first event of a fork, applied to the configuration of its parent's prefix.
//!
//! Invariant: nothing `once` that the parent has begun runs in the fork, and nothing that the parent did is undone by it; timers have
//! the time left that they had; grants, request ids and ids of questions are not shared.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::parts::{NodeKind, Work};
use super::turn::Turn;
use crate::event::{ChildrenOfFork, Config};
use crate::fault::Fault;
use crate::ids::{Millis, OpId, RunId};
use crate::operation::{Class, Phase};

impl Turn<'_> {
    /// A fork begins here; `before` is the time of the last shared event.
    pub(super) fn forked(
        &mut self,
        parent: &RunId,
        before: Millis,
        begun: &[OpId],
        children: ChildrenOfFork,
    ) -> Result<(), Fault> {
        let mut seed = [0; 8];
        let text = format!("{} {parent} {}", self.s.seed, self.s.run);
        seed.copy_from_slice(&blake3::hash(text.as_bytes()).as_bytes()[..8]);
        self.s.seed = u64::from_le_bytes(seed);
        self.env.seed = self.s.seed;
        self.s.config = Arc::new(Config { grants: Vec::new(), ..(*self.s.config).clone() });
        self.env.config = Arc::clone(&self.s.config);
        self.s.seen = rpds::RedBlackTreeMapSync::new_sync();
        self.s.decided = Arc::default();
        self.s.parent = None;
        self.leave_undos_to_the_parent();
        let elapsed = self.s.time.0.saturating_sub(before.0).max(0).unsigned_abs();
        self.shift_ages(elapsed)?;
        let open: Vec<_> = self.s.ops.values().cloned().collect();
        for op in open {
            if !self.s.ops.contains_key(&op.id) {
                continue;
            }
            if let Some(due) = op.due {
                self.set_due(op.id, Some(due.plus(elapsed)))?;
            }
            match &op.work {
                Work::Ask(_) => self.ask_anew(op.id)?,
                Work::Activity(work)
                    if work.class == Class::Once && (work.begun || begun.contains(&op.id)) =>
                {
                    if let Phase::Verifying(verifier) = work.phase {
                        self.close(verifier);
                    }
                    self.edit_activity(op.id, |work| {
                        work.begun = true;
                        work.forked = true;
                    })?;
                    // Whatever became of it, the parent did it.
                    self.s.undos.remove_mut(&op.id);
                    self.undecided(op.id)?;
                }
                Work::Activity(_) | Work::Timer(_) | Work::Await(_) | Work::AwaitEnded(..) => {}
                Work::Spawn(_) | Work::Child(_) | Work::CancelChild(..) | Work::TellParent(_) => {
                    self.fork_child(op.id, children)?;
                }
            }
        }
        Ok(())
    }

    /// What was done before the fork point is the parent's, which may rely on it: the fork undoes what it opens itself. An undo that
    /// is open at the fork point is an open operation like any other, and comes to its end.
    fn leave_undos_to_the_parent(&mut self) {
        let undone: BTreeSet<OpId> = self.s.ops.values().filter_map(|op| op.owner.undoes()).collect();
        let over = self.s.undos.keys().filter(|op| !self.s.ops.contains_key(op) && !undone.contains(op));
        let over: Vec<OpId> = over.copied().collect();
        for op in over {
            self.s.undos.remove_mut(&op);
        }
    }

    /// Time does not pass between the fork point and the fork.
    fn shift_ages(&mut self, elapsed: u64) -> Result<(), Fault> {
        let nodes: Vec<_> = self.s.nodes.keys().copied().collect();
        for id in nodes {
            if let NodeKind::Flow(flow) = &mut self.node_mut(id)?.kind {
                flow.started_at = flow.started_at.plus(elapsed);
            }
        }
        Ok(())
    }
}
