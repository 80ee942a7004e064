//! Leaving states and ending nodes.
//!
//! Invariant: no operation stays open in a state that is not active (`also do` belongs to the run).

use std::sync::Arc;

use outlast_dsl::machine::Outcome as On;

use super::parts::{Active, Completion, Member, NodeId, NodeKind};
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
            Active::Idle | Active::Stopped => {}
        }
        for (_, op) in timers {
            self.close(op);
        }
        Ok(())
    }

    /// Closes a node with everything in it; nothing if it is closed already.
    pub(super) fn close_node(&mut self, id: NodeId) {
        let Some(node) = self.s.nodes.get(&id).cloned() else { return };
        self.s.nodes.remove_mut(&id);
        match &node.kind {
            NodeKind::Flow(flow) => {
                match flow.active {
                    Active::Op(op) => self.close(op),
                    Active::Child(child) => self.close_node(child),
                    Active::Idle | Active::Stopped => {}
                }
                for (_, op) in flow.timers.iter().chain(&flow.limits) {
                    self.close(*op);
                }
            }
            NodeKind::Group(group) => {
                for member in &group.members {
                    match member {
                        Member::Op(op) => self.close(*op),
                        Member::Node(child) => self.close_node(*child),
                        Member::NotStarted | Member::Done(_) | Member::Failed(_) | Member::Cut => {}
                    }
                }
            }
        }
        if let Some(op) = node.deadline {
            self.close(op);
        }
    }

    /// Ends a node and tells its parent; the root ends the run.
    pub(super) fn end_node(&mut self, id: NodeId, completion: Completion) -> Result<(), Fault> {
        if self.s.cancelling.as_ref().is_some_and(|cancelling| cancelling.current == Some(id)) {
            return self.next_clean_up();
        }
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
            let json = value_to_json(&completion.payload);
            let outcome =
                if completion.outcome == On::Ok { Outcome::Done(json) } else { Outcome::Failed(json) };
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

    /// Ends the run if its end is due and nothing is open.
    pub(super) fn end_if_settled(&mut self) {
        if self.s.ops.is_empty()
            && let Some(outcome) = self.s.ending.take()
        {
            self.end_run(outcome);
        }
    }

    /// Ends the run at once.
    pub(super) fn end_run(&mut self, outcome: Arc<Outcome>) {
        let open: Vec<_> = self.s.ops.keys().copied().collect();
        for op in open {
            self.close(op);
        }
        self.s.nodes = rpds::RedBlackTreeMapSync::new_sync();
        self.s.root = None;
        self.s.ending = None;
        self.s.cancelling = None;
        self.s.outcome = Some(outcome);
        self.tasks.clear();
        self.effects.ended = true;
    }
}
