//! Cancelling: everything open is closed, then each flow that asked for it cleans up, innermost first, then the run ends.
//!
//! Invariant: an accepted cancel never becomes success, and its clean-up has a deadline.

use std::sync::Arc;

use outlast_dsl::machine::MessageIx;

use super::parts::{Active, Cancelling, Mail, Member, NodeId, NodeKind, Owner, Work};
use super::turn::{Spot, Turn};
use crate::event::EventKind;
use crate::fault::Fault;
use crate::operation::Outcome;

impl Turn<'_> {
    /// The run is to stop.
    pub(super) fn cancel(&mut self) -> Result<(), Fault> {
        self.unblock();
        if self.s.cancelling.is_some() {
            // Only a blocked clean-up is cancelled again.
            self.end_run(Arc::new(Outcome::Cancelled));
            return Ok(());
        }
        let open: Vec<_> = self.s.ops.keys().copied().collect();
        for op in open {
            self.close(op);
        }
        let mut left = Vec::new();
        if let Some(root) = self.s.root {
            self.stop(root, &mut left)?;
        }
        // The innermost is next, so it stands last.
        left.reverse();
        self.s.cancelling = Some(Arc::new(Cancelling { left, current: None, deadline: None }));
        self.next_clean_up()
    }

    /// Ends the run without cleaning up.
    pub(super) fn cancel_at_once(&mut self) {
        self.unblock();
        self.end_run(Arc::new(Outcome::Cancelled));
    }

    /// Stops all flow instances of a part of the tree, and lists those that want to clean up, innermost first.
    fn stop(&mut self, id: NodeId, left: &mut Vec<NodeId>) -> Result<(), Fault> {
        let node = self.node_mut(id)?;
        node.deadline = None;
        let children: Vec<NodeId> = match &mut node.kind {
            NodeKind::Flow(flow) => {
                flow.timers.clear();
                flow.limits.clear();
                match std::mem::replace(&mut flow.active, Active::Stopped) {
                    Active::Child(child) => vec![child],
                    Active::Idle | Active::Stopped | Active::Op(_) => Vec::new(),
                }
            }
            NodeKind::Group(group) => {
                let child = |member: &Member| match member {
                    Member::Node(node) => Some(*node),
                    Member::NotStarted
                    | Member::Op(_)
                    | Member::Done(_)
                    | Member::Failed(_)
                    | Member::Cut => None,
                };
                let children = group.members.iter().filter_map(child).collect();
                let closed = |member: &Member| match member {
                    Member::Op(_) => Member::Cut,
                    other => other.clone(),
                };
                group.members = group.members.iter().map(closed).collect();
                children
            }
        };
        for child in children {
            self.stop(child, left)?;
        }
        if let NodeKind::Flow(flow) = &self.node(id)?.kind
            && self.program.flow(flow.flow).on_cancel.is_some()
        {
            left.push(id);
        }
        Ok(())
    }

    /// Lets the next flow clean up, or ends the run.
    pub(super) fn next_clean_up(&mut self) -> Result<(), Fault> {
        let Some(cancelling) = self.s.cancelling.clone() else { return Ok(()) };
        let mut cancelling = (*cancelling).clone();
        if let Some(deadline) = cancelling.deadline.take() {
            self.close(deadline);
        }
        if let Some(before) = cancelling.current.take() {
            self.leave(before)?;
            self.flow_mut(before)?.active = Active::Stopped;
        }
        let Some(id) = cancelling.left.pop() else {
            self.end_run(Arc::new(Outcome::Cancelled));
            return Ok(());
        };
        let def = self.program.flow(self.flow(id)?.flow);
        let Some(on_cancel) = &def.on_cancel else {
            return Err(Fault::inconsistent("a flow without clean-up is to clean up"));
        };
        let due = self.s.time.plus(on_cancel.within_ms);
        self.flow_mut(id)?.active = Active::Idle;
        let deadline = self.open(id, Owner::CleanUp, Some(due), Work::Timer(None))?;
        cancelling.current = Some(id);
        cancelling.deadline = Some(deadline);
        self.s.cancelling = Some(Arc::new(cancelling));
        self.spot = (Some(id), Spot::Cancel);
        let scope = self.flow_scope(id)?;
        self.go(id, scope, &[], &on_cancel.goal)
    }

    /// Frees a blocked run. What it held is not applied any more; messages among it stay unread.
    pub(super) fn unblock(&mut self) {
        if self.s.blocked.take().is_none() {
            return;
        }
        let held = std::mem::take(&mut self.s.held);
        for event in &held {
            match &event.kind {
                EventKind::Message { id, name, value, .. } => {
                    let meaning = super::message::meaning(self.program, &self.s, name);
                    let typed = meaning.and_then(|(flow, message): (_, MessageIx)| {
                        let value = super::message::read(self.program, flow, message, value).ok()?;
                        Some(Mail { id: id.clone(), flow, message: message.0, value })
                    });
                    if let Some(mail) = typed {
                        self.put(event.n, mail);
                    }
                }
                EventKind::Withdrawn { id } => {
                    let found = self.s.mail.iter().find(|(_, mail)| mail.id == *id).map(|(n, _)| *n);
                    if let Some(n) = found {
                        self.drop_mail(n);
                    }
                }
                EventKind::Closed => self.s.closed = true,
                // Facts about operations that are closed now.
                _ => {}
            }
        }
    }
}
