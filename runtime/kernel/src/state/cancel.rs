//! Cancelling: spawned runs are told to stop, everything open is closed, then each flow undoes and cleans up as it asked for,
//! innermost first, then the run ends.
//!
//! Invariant: an accepted cancel never becomes success, its clean-up has a deadline, and no undo is skipped silently.

use std::sync::Arc;

use outlast_dsl::machine::MessageIx;

use super::parts::{Active, Cancelling, Mail, Member, NodeId, NodeKind, Owner, Report, Work};
use super::turn::{Spot, Task, Turn};
use crate::event::{EventKind, SpawnResult};
use crate::fault::Fault;
use crate::operation::Outcome;

impl Turn<'_> {
    /// The run is to stop.
    pub(super) fn cancel(&mut self) -> Result<(), Fault> {
        self.unblock();
        if self.s.cancelling.is_some() {
            // Only a blocked clean-up is cancelled again.
            self.stop_at_once(Outcome::Cancelled);
            return Ok(());
        }
        let mut left = Vec::new();
        if let Some(root) = self.s.root {
            self.stop(root, &mut left)?;
        }
        let open: Vec<_> = self.s.ops.values().cloned().collect();
        for op in open {
            // A verifier goes on if what it verifies does.
            let verifies = matches!(op.owner, Owner::Verify(of) if self.s.ops.contains_key(&of));
            if !verifies && op.owner != Owner::Settling {
                self.close(op.id);
            }
        }
        // The innermost is next, so it stands last.
        left.reverse();
        let root = self.s.root;
        let children = match root {
            Some(root) if self.stop_children()? => Some(self.bound_children(root)?),
            Some(_) | None => None,
        };
        let cancelling = Cancelling {
            left,
            current: None,
            deadline: None,
            children,
            undoing: None,
            report: Report::default(),
        };
        self.s.cancelling = Some(Arc::new(cancelling));
        if children.is_some() { Ok(()) } else { self.next_clean_up() }
    }

    /// Ends the run without cleaning up.
    pub(super) fn stop_at_once(&mut self, outcome: Outcome) {
        self.unblock();
        let report = self.s.cancelling.as_ref().map(|cancelling| cancelling.report.clone());
        let outcome = match outcome {
            Outcome::Cancelled => self.cancelled_outcome(report.unwrap_or_default()),
            Outcome::Done(_) | Outcome::Failed(_) | Outcome::Terminated => outcome,
        };
        let open: Vec<_> = self.s.ops.keys().copied().collect();
        for op in open {
            self.remove(op);
        }
        self.tasks.clear();
        if !matches!(self.tell_parent(&outcome), Ok(true)) {
            self.end_run(Arc::new(outcome));
            return;
        }
        self.s.nodes = rpds::RedBlackTreeMapSync::new_sync();
        self.s.undos = rpds::RedBlackTreeMapSync::new_sync();
        self.s.orphans = rpds::RedBlackTreeSetSync::new_sync();
        self.s.root = None;
        self.s.cancelling = None;
        self.s.ending = Some(Arc::new(outcome));
    }

    /// Stops all flow instances of a part of the tree, and lists those that want to undo or clean up, innermost first.
    fn stop(&mut self, id: NodeId, left: &mut Vec<NodeId>) -> Result<(), Fault> {
        let program = self.program;
        let node = self.node_mut(id)?;
        node.deadline = None;
        let children: Vec<NodeId> = match &mut node.kind {
            NodeKind::Flow(flow) => {
                flow.timers.clear();
                flow.limits.clear();
                if program.flow(flow.flow).saga && flow.undoing.is_none() {
                    let undoing = flow.undoing.get_or_insert_default();
                    undoing.queued = true;
                }
                if let Some(undoing) = &mut flow.undoing {
                    // Whoever was to be told is stopped too.
                    undoing.then = None;
                }
                let active = if flow.undoing.is_some() { Active::Undoing } else { Active::Stopped };
                match std::mem::replace(&mut flow.active, active) {
                    Active::Child(child) => vec![child],
                    Active::Idle | Active::Stopped | Active::Undoing | Active::Op(_) => Vec::new(),
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
            && (self.program.flow(flow.flow).on_cancel.is_some() || flow.undoing.is_some())
        {
            left.push(id);
        }
        Ok(())
    }

    /// Lets the next flow undo or clean up, or ends the run.
    pub(super) fn next_clean_up(&mut self) -> Result<(), Fault> {
        let Some(cancelling) = self.s.cancelling.clone() else { return Ok(()) };
        let mut cancelling = (*cancelling).clone();
        cancelling.children = None;
        cancelling.undoing = None;
        if let Some(deadline) = cancelling.deadline.take() {
            self.close(deadline);
        }
        if let Some(before) = cancelling.current.take() {
            self.leave(before)?;
            let flow = self.flow_mut(before)?;
            if flow.undoing.is_some() {
                // It came to no good end: what it opened itself is undone before anything else goes on.
                flow.active = Active::Undoing;
                cancelling.undoing = Some(before);
                self.s.cancelling = Some(Arc::new(cancelling));
                self.tasks.push(Task::Undo(before));
                return Ok(());
            }
            flow.active = Active::Stopped;
        }
        let Some(id) = cancelling.left.pop() else {
            let outcome = self.cancelled_outcome_of(&cancelling.report);
            self.s.cancelling = Some(Arc::new(cancelling));
            self.s.root = None;
            self.s.ending = Some(Arc::new(outcome));
            return Ok(());
        };
        if let Some(undoing) = &mut self.flow_mut(id)?.undoing {
            // Its own clean-up comes when everything is undone.
            undoing.queued = false;
            cancelling.left.push(id);
            cancelling.undoing = Some(id);
            self.s.cancelling = Some(Arc::new(cancelling));
            self.tasks.push(Task::Undo(id));
            return Ok(());
        }
        let def = self.program.flow(self.flow(id)?.flow);
        let Some(on_cancel) = &def.on_cancel else {
            self.s.cancelling = Some(Arc::new(cancelling));
            return self.next_clean_up();
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

    /// A clean-up is given up, or its time is over: that is no good end, so a saga undoes what its clean-up opened.
    pub(super) fn give_up_clean_up(&mut self) -> Result<(), Fault> {
        if let Some(id) = self.s.cleans_up()
            && self.program.flow(self.flow(id)?.flow).saga
        {
            self.begin_undoing(id)?;
        }
        self.next_clean_up()
    }

    /// A saga of a cancelled run has undone all that it could.
    pub(super) fn cancelled_saga_undone(&mut self, id: NodeId, report: Report) -> Result<(), Fault> {
        let flow = self.flow_mut(id)?;
        flow.undoing = None;
        flow.active = Active::Stopped;
        let Some(cancelling) = &mut self.s.cancelling else { return Ok(()) };
        let cancelling = Arc::make_mut(cancelling);
        cancelling.report.undone.extend(report.undone);
        cancelling.report.failed.extend(report.failed);
        cancelling.report.left.extend(report.left);
        if cancelling.undoing == Some(id) { self.next_clean_up() } else { Ok(()) }
    }

    /// Frees a blocked run. What it held is not applied any more, but for news of other runs; messages among it stay unread.
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
                EventKind::Spawned { op, result: SpawnResult::Run(_) } => self.child_runs(*op),
                EventKind::Spawned { op, result: SpawnResult::Exists }
                | EventKind::ChildEnded { op, .. }
                | EventKind::Delivered { op, .. } => self.remove(*op),
                // Facts about operations that are closed now.
                _ => {}
            }
        }
    }
}
