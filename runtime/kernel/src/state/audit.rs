//! Whether the parts of a state agree with each other.
//!
//! Leaves repair to nobody: a state that fails is a bug of the kernel or a damaged snapshot. Invariant: looks, changes nothing.

use std::collections::BTreeSet;

use outlast_dsl::machine::Effect;
use rust_decimal::Decimal;

use super::State;
use super::parts::{Active, Member, NodeId, NodeKind, Op, Owner, Work};
use crate::ids::OpId;
use crate::operation::{Class, Phase};

impl State {
    /// Checks that tables, indexes, sums and the tree of what is active agree.
    ///
    /// # Errors
    /// Says what does not.
    pub fn audit(&self) -> Result<(), String> {
        let core = &self.core;
        let digest = core.ops.values().fold(0_u64, |sum, op| sum.wrapping_add(op.hash));
        ensure(digest == core.digest, || "the digest is not the sum of the operations".to_owned())?;
        let due: BTreeSet<_> = core.ops.values().filter_map(|op| Some((op.due?, op.id))).collect();
        ensure(core.due.iter().copied().eq(due), || {
            "the index of due times is not that of the operations".to_owned()
        })?;
        self.audit_money()?;
        let bytes: u64 = core.mail.values().map(|mail| mail.value.size()).sum();
        ensure(bytes == core.mail_bytes, || "the bytes of the mailbox are miscounted".to_owned())?;
        if core.outcome.is_some() {
            return ensure(core.ops.is_empty() && core.nodes.is_empty(), || {
                "an ended run has something open".to_owned()
            });
        }
        let mut owned = BTreeSet::new();
        let mut nodes = BTreeSet::new();
        // A stopped flow no longer knows what cleans up inside it.
        if let Some(top) = core.top() {
            self.audit_node(top, &mut nodes, &mut owned)?;
        }
        for (id, op) in &core.ops {
            match op.owner {
                Owner::Also | Owner::CleanUp | Owner::Run | Owner::Children => {}
                Owner::Settling => {
                    let saga = core.undos.get(id).map(|undo| undo.saga);
                    let waits = saga.is_some_and(|saga| self.is_undoing(saga, None));
                    ensure(waits, || format!("{id} settles for nobody"))?;
                }
                Owner::Undo(saga, of) => {
                    ensure(self.is_undoing(saga, Some(*id)), || format!("{id} undoes for nobody"))?;
                    ensure(core.undos.contains_key(&of), || format!("{id} undoes nothing"))?;
                }
                Owner::Verify(of) => {
                    let work = core.ops.get(&of).and_then(|of| of.work.activity());
                    let verified = work.is_some_and(|work| work.phase == Phase::Verifying(*id));
                    ensure(verified, || format!("{id} verifies nothing"))?;
                }
                Owner::Work(_) | Owner::Timer(..) | Owner::Limit(..) | Owner::Deadline(_) => {
                    ensure(owned.contains(id), || format!("{id} is open in a state that is not active"))?;
                }
            }
            self.audit_op(op)?;
        }
        let all = core.cancelling.is_some() || nodes.len() + core.orphans.size() == core.nodes.size();
        ensure(all, || "a part of the state belongs to nothing".to_owned())
    }

    /// Says whether a saga is being left, and by which operation it undoes, if one is given.
    fn is_undoing(&self, saga: NodeId, by: Option<OpId>) -> bool {
        match self.core.nodes.get(&saga).map(|node| &node.kind) {
            Some(NodeKind::Flow(flow)) => {
                flow.undoing.as_ref().is_some_and(|undoing| by.is_none() || undoing.current == by)
            }
            Some(NodeKind::Group(_)) | None => false,
        }
    }

    fn audit_money(&self) -> Result<(), String> {
        let core = &self.core;
        let activities = || core.ops.iter().filter_map(|(id, op)| Some((*id, op.work.activity()?)));
        let costs = |work: &super::ActivityWork| {
            let text = self.program.machine.activities[work.activity.at()].costs.as_deref();
            text.and_then(crate::json::parse_decimal).unwrap_or_default()
        };
        let reserved: Decimal =
            activities().filter(|(_, work)| work.reserved).map(|(_, work)| costs(work)).sum();
        ensure(reserved == core.reserved, || format!("{reserved} is reserved, not {}", core.reserved))?;
        let waiting = activities().filter(|(_, work)| work.phase == Phase::Budget).map(|(id, _)| id);
        ensure(core.waiting.iter().copied().eq(waiting), || "the queue for the budget is wrong".to_owned())
    }

    fn audit_op(&self, op: &Op) -> Result<(), String> {
        let Work::Activity(work) = &op.work else { return Ok(()) };
        let id = op.id;
        ensure(!work.begun || work.class == Class::Once, || format!("{id} is begun and not `once`"))?;
        match work.phase {
            Phase::Begun { .. } => ensure(work.begun, || format!("{id} is not begun")),
            Phase::Verifying(verifier) => {
                ensure(self.core.ops.contains_key(&verifier), || format!("nothing verifies {id}"))
            }
            Phase::Ready | Phase::RetryAt(_) | Phase::Budget => {
                ensure(!work.begun, || format!("{id} is begun and may be handed out"))
            }
            Phase::Held(_) => Ok(()),
        }
    }

    /// Walks over the tree and collects the operations that something waits for.
    fn audit_node(
        &self,
        id: NodeId,
        nodes: &mut BTreeSet<NodeId>,
        owned: &mut BTreeSet<OpId>,
    ) -> Result<(), String> {
        let Some(node) = self.core.nodes.get(&id) else {
            return Err("a part of the state is gone".to_owned());
        };
        nodes.insert(id);
        let mut own = |op: OpId| {
            owned.insert(op);
            ensure(self.core.ops.contains_key(&op), || format!("{op} is awaited and not open"))
        };
        if let Some(op) = node.deadline {
            own(op)?;
        }
        let mut children = Vec::new();
        match &node.kind {
            NodeKind::Flow(flow) => {
                for (_, op) in flow.timers.iter().chain(&flow.limits) {
                    own(*op)?;
                }
                match flow.active {
                    Active::Op(op) => own(op)?,
                    Active::Child(child) => children.push(child),
                    Active::Idle | Active::Stopped | Active::Undoing => {}
                }
                let effect = &self.program.state(flow.flow, flow.state).effect;
                let passes = matches!(effect, Effect::Choose(_) | Effect::Match(..));
                let stands = !matches!(flow.active, Active::Stopped | Active::Undoing);
                ensure(!passes || !stands, || "a choice came to rest".to_owned())?;
            }
            NodeKind::Group(group) => {
                let mut open = 0;
                for member in &group.members {
                    match member {
                        Member::Op(op) => own(*op)?,
                        Member::Node(child) => children.push(*child),
                        Member::NotStarted | Member::Done(_) | Member::Failed(_) | Member::Cut => continue,
                    }
                    open += 1;
                }
                let limit = self.core.cancelling.is_some() || (open == group.open && open <= group.at_most);
                ensure(limit, || format!("{open} members are open, {} counted", group.open))?;
            }
        }
        children.into_iter().try_for_each(|child| self.audit_node(child, nodes, owned))
    }
}

fn ensure(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}
