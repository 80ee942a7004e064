//! Leaving states and ending nodes.
//!
//! Invariant: no operation stays open in a state that is not active (`also do`, spawned runs and what a saga waits for belong to
//! the run).

use std::sync::Arc;

use outlast_dsl::machine::Outcome as On;

use super::parts::{Active, Completion, Member, NodeId, NodeKind, Work};
use super::turn::{Task, Turn};
use crate::fault::Fault;
use crate::json::value_to_json;
use crate::operation::Outcome;

impl Turn<'_> {
    /// Closes what the active state of a flow instance has open.
    pub(super) fn leave(&mut self, id: NodeId) -> Result<(), Fault> {
        let flow = self.flow_mut(id)?;
        let active = std::mem::replace(&mut flow.active, Active::Idle);
        let timers = std::mem::take(&mut flow.timers);
        match active {
            Active::Op(op) => self.close(op),
            Active::Child(child) => self.close_node(child),
            Active::Idle | Active::Stopped | Active::Undoing => {}
        }
        for (_, op) in timers {
            self.close(op);
        }
        Ok(())
    }

    /// Closes a node with everything in it; nothing if it is closed already.
    pub(super) fn close_node(&mut self, id: NodeId) {
        let heir = self.heir(id);
        let outer = self.s.nodes.get(&id).and_then(|node| self.saga_of(node.parent?.node));
        self.close_inside(id, heir, outer);
    }

    /// Closes a node; the undo stacks of sagas in it go to the heir, or stay with the outermost one that is closed.
    fn close_inside(&mut self, id: NodeId, heir: Option<NodeId>, outer: Option<NodeId>) {
        let Some(node) = self.s.nodes.get(&id).cloned() else { return };
        let flow = match &node.kind {
            NodeKind::Flow(flow) => Some(flow),
            NodeKind::Group(_) => None,
        };
        let is_saga = flow.is_some_and(|flow| self.program.flow(flow.flow).saga);
        let undoes = flow.is_some_and(|flow| flow.undoing.is_some());
        let inner_heir = if is_saga { heir.or(Some(id)) } else { heir };
        if !is_saga {
            self.s.nodes.remove_mut(&id);
        }
        match &node.kind {
            NodeKind::Flow(flow) => {
                match flow.active {
                    Active::Op(op) => self.close(op),
                    Active::Child(child) => self.close_inside(child, inner_heir, outer),
                    Active::Idle | Active::Stopped | Active::Undoing => {}
                }
                for (_, op) in flow.timers.iter().chain(&flow.limits) {
                    self.close(*op);
                }
            }
            NodeKind::Group(group) => {
                for member in &group.members {
                    match member {
                        Member::Op(op) => self.close(*op),
                        Member::Node(child) => self.close_inside(*child, heir, outer),
                        Member::NotStarted | Member::Done(_) | Member::Failed(_) | Member::Cut => {}
                    }
                }
            }
        }
        if let Some(op) = node.deadline {
            self.close(op);
        }
        match heir {
            Some(heir) if is_saga && !undoes => {
                self.inherit(id, Some(heir));
                self.s.nodes.remove_mut(&id);
            }
            Some(_) | None if is_saga => self.cut_off_saga(id, outer),
            Some(_) | None => {}
        }
    }

    /// Ends a node and tells its parent; the root ends the run.
    pub(super) fn end_node(&mut self, id: NodeId, completion: Completion) -> Result<(), Fault> {
        if self.s.cleans_up() == Some(id) {
            return self.next_clean_up();
        }
        if let NodeKind::Flow(flow) = &self.node(id)?.kind
            && self.program.flow(flow.flow).saga
        {
            if completion.outcome != On::Ok {
                return self.leave_saga(id, completion);
            }
            // What is inside another saga may still have to be undone.
            let outer = self.node(id)?.parent.and_then(|parent| self.saga_of(parent.node));
            self.inherit(id, outer);
        }
        self.end_node_at_last(id, completion)
    }

    /// Ends a node that has nothing to undo.
    pub(super) fn end_node_at_last(&mut self, id: NodeId, completion: Completion) -> Result<(), Fault> {
        let node = self.node(id)?;
        let parent = node.parent;
        if let NodeKind::Flow(flow) = &node.kind
            && let (true, Some(parent)) = (flow.acted, parent)
        {
            let up = match &self.node(parent.node)?.kind {
                NodeKind::Flow(_) => parent.node,
                NodeKind::Group(group) => group.flow,
            };
            self.mark_acted(up);
        }
        self.close_node(id);
        let Some(parent) = parent else {
            let json = || value_to_json(&completion.payload);
            let outcome = match completion.outcome {
                On::Ok => Outcome::Done(json()),
                On::UndoFailed => super::saga::undo_failed(&completion.payload),
                _ => Outcome::Failed(json()),
            };
            self.s.root = None;
            self.s.ending = Some(Arc::new(outcome));
            return Ok(());
        };
        if parent.member.is_none() {
            self.flow_mut(parent.node)?.active = Active::Idle;
        }
        self.tasks.push(Task::Complete(parent, completion));
        Ok(())
    }

    /// Ends the run if its end is due and nothing is open that must settle, be undone or be delivered.
    pub(super) fn end_if_settled(&mut self) -> Result<(), Fault> {
        let Some(outcome) = self.s.ending.clone() else { return Ok(()) };
        self.stop_children()?;
        let settled = self.s.ops.values().all(|op| matches!(op.work, Work::Child(_)));
        if settled && self.s.orphans.is_empty() && !self.tell_parent(&outcome)? {
            self.end_run(outcome);
        }
        Ok(())
    }

    /// Ends the run at once.
    pub(super) fn end_run(&mut self, outcome: Arc<Outcome>) {
        let open: Vec<_> = self.s.ops.keys().copied().collect();
        for op in open {
            self.remove(op);
        }
        self.s.undos = rpds::RedBlackTreeMapSync::new_sync();
        self.s.orphans = rpds::RedBlackTreeSetSync::new_sync();
        self.s.ended = rpds::RedBlackTreeMapSync::new_sync();
        self.s.nodes = rpds::RedBlackTreeMapSync::new_sync();
        self.s.root = None;
        self.s.ending = None;
        self.s.cancelling = None;
        self.s.outcome = Some(outcome);
        self.tasks.clear();
        self.effects.ended = true;
    }
}
