//! Opening, changing and closing operations.
//!
//! Leaves what they mean to their own files. Invariant: the table of operations, the index of due times, the digest, the
//! reservations and the list of waiting operations always agree.

use std::sync::{Arc, OnceLock};

use outlast_dsl::machine::Outcome as On;

use super::parts::{Active, ActivityWork, Completion, NodeId, Op, Owner, Work};
use super::turn::{Task, Turn};
use crate::fault::Fault;
use crate::ids::{Millis, OpId};
use crate::limits::OPERATIONS_MAX;
use crate::operation::{Class, Phase};
use crate::value::Value;

impl Turn<'_> {
    /// Opens an operation in the name of a flow instance.
    pub(super) fn open(
        &mut self,
        flow: NodeId,
        owner: Owner,
        due: Option<Millis>,
        work: Work,
    ) -> Result<OpId, Fault> {
        if self.s.ops.size() >= OPERATIONS_MAX {
            return Err(Fault::Operations);
        }
        let id = OpId(self.s.last, self.ops_made);
        self.ops_made += 1;
        let path = self.path_of(flow).unwrap_or_else(|| Arc::from(""));
        let hash = self.hash(id, &path, due, &work);
        if let Some(due) = due {
            self.s.due.insert_mut((due, id));
        }
        self.s.digest = self.s.digest.wrapping_add(hash);
        let opened_at = self.s.time;
        let op = Op { id, owner, flow, path, opened_at, due, hash, work, view: OnceLock::new() };
        self.s.ops.insert_mut(id, Arc::new(op));
        self.effects.opened.push(id);
        Ok(id)
    }

    /// Hashes what must be the same whenever the history is folded. Inputs count by their size: a full hash would cost the whole
    /// conversation in each turn.
    fn hash(&self, id: OpId, path: &str, due: Option<Millis>, work: &Work) -> u64 {
        let (kind, name, size) = match work {
            Work::Activity(work) => {
                let name = self.program.machine.activities[work.activity.at()].name.as_str();
                ("activity", name.to_owned(), work.args.iter().map(Value::size).sum())
            }
            Work::Timer(_) => ("timer", String::new(), 0),
            Work::Await(names) => ("await", names.join(","), 0),
            Work::Ask(work) => ("ask", work.shown.clone(), work.show.size()),
            Work::AwaitEnded(runs, names) => {
                let runs: Vec<_> = runs.iter().map(crate::ids::RunId::as_str).collect();
                ("await", format!("{},{}", runs.join(","), names.join(",")), 0)
            }
            Work::Spawn(child) | Work::Child(child) => {
                let name = format!("{} {}", self.program.flow(child.flow).name, child.run);
                ("spawn", name, child.args.iter().map(Value::size).sum())
            }
            Work::CancelChild(of, child) => ("cancel_child", format!("{of} {}", child.run), 0),
            Work::TellParent(notice) => ("tell_parent", format!("{} {}", notice.parent, notice.op), 0),
        };
        let text = format!("{id}|{path}|{kind}|{name}|{size}|{}", due.map_or(-1, |due| due.0));
        // FNV-1a, and a final mix because the digest is a sum.
        let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let mixed = (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ mixed >> 29
    }

    /// Returns an open operation.
    pub(super) fn op(&self, id: OpId) -> Result<Arc<Op>, Fault> {
        self.s.ops.get(&id).cloned().ok_or_else(|| Fault::inconsistent(format!("operation {id} is gone")))
    }

    /// Closes an operation that nobody wants any more, and whatever verifies it; nothing if it is closed already. What is for other
    /// runs stays open, and so does for a while what a saga may have to undo.
    pub(super) fn close(&mut self, id: OpId) {
        let Some(op) = self.s.ops.get(&id).cloned() else { return };
        match &op.work {
            Work::Spawn(_) | Work::Child(_) | Work::CancelChild(..) | Work::TellParent(_) => {
                let mut kept = op.edit();
                kept.owner = Owner::Run;
                self.s.ops.insert_mut(id, Arc::new(kept));
            }
            Work::Activity(work) if self.s.undos.contains_key(&id) => self.cut_off(&op, work),
            Work::Activity(_) if op.owner.undoes().is_some() => {}
            Work::Activity(_) | Work::Timer(_) | Work::Await(_) | Work::AwaitEnded(..) | Work::Ask(_) => {
                self.remove(id);
            }
        }
    }

    /// Closes an operation for good, and whatever verifies it.
    pub(super) fn remove(&mut self, id: OpId) {
        let Some(op) = self.s.ops.get(&id).cloned() else { return };
        self.s.ops.remove_mut(&id);
        if let Some(due) = op.due {
            self.s.due.remove_mut(&(due, id));
        }
        self.s.digest = self.s.digest.wrapping_sub(op.hash);
        self.effects.closed.push(id);
        if let Work::Activity(work) = &op.work {
            self.release(id, work);
            if let Phase::Verifying(verifier) = work.phase {
                self.remove(verifier);
            }
        }
    }

    /// Changes an open activity.
    pub(super) fn edit_activity(
        &mut self,
        id: OpId,
        change: impl FnOnce(&mut ActivityWork),
    ) -> Result<(), Fault> {
        let mut op = self.op(id)?.edit();
        let Work::Activity(work) = &mut op.work else {
            return Err(Fault::inconsistent(format!("operation {id} is no activity")));
        };
        change(work);
        self.s.ops.insert_mut(id, Arc::new(op));
        Ok(())
    }

    /// Sets or clears the due time of an operation.
    pub(super) fn set_due(&mut self, id: OpId, due: Option<Millis>) -> Result<(), Fault> {
        let mut op = self.op(id)?.edit();
        if let Some(old) = op.due {
            self.s.due.remove_mut(&(old, id));
        }
        op.due = due;
        if let Some(due) = due {
            self.s.due.insert_mut((due, id));
        }
        self.s.ops.insert_mut(id, Arc::new(op));
        Ok(())
    }

    /// Closes an operation with its outcome and tells whoever opened it.
    pub(super) fn complete_op(&mut self, id: OpId, completion: Completion) -> Result<(), Fault> {
        let op = self.op(id)?;
        if let Owner::Undo(saga, _) = op.owner
            && completion.outcome != On::Ok
            && self.s.orphans.contains(&saga)
        {
            // Nobody would be told, so a person is.
            return self.hold(id, "it cannot be undone, and nothing waits for it".to_owned());
        }
        let saga = self.s.undos.get(&id).map(|undo| undo.saga);
        self.note_end(id, &completion);
        self.remove(id);
        if let Some(saga) = saga.filter(|saga| self.is_undoing(*saga)) {
            self.tasks.push(Task::Undo(saga));
        }
        if matches!(&op.work, Work::Activity(work) if work.class != Class::Pure) {
            self.mark_acted(op.flow);
        }
        match op.owner {
            Owner::Work(parent) => {
                if parent.member.is_none() {
                    self.flow_mut(parent.node)?.active = Active::Idle;
                }
                self.tasks.push(Task::Complete(parent, completion));
            }
            Owner::Verify(of) => self.verified(of, &completion)?,
            Owner::Also | Owner::Settling => {}
            Owner::Undo(saga, of) => self.undone(saga, of, &completion)?,
            Owner::Timer(..)
            | Owner::Limit(..)
            | Owner::Deadline(_)
            | Owner::CleanUp
            | Owner::Run
            | Owner::Children => {
                return Err(Fault::inconsistent(format!("operation {id} has no outcome")));
            }
        }
        Ok(())
    }

    /// Remembers that something outside may have changed on behalf of a flow instance.
    pub(super) fn mark_acted(&mut self, flow: NodeId) {
        if let Ok(flow) = self.flow_mut(flow) {
            flow.acted = true;
        }
    }
}
