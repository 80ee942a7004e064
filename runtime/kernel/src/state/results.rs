//! Results of groups: what the result variables of an effect hold, finished or not.
//!
//! Invariant: index i belongs to item i; a member that may have done something is never called `NotStarted`.

use std::sync::Arc;

use outlast_dsl::machine::{Each, EachBody, Effect, Join, Parallel, Slot};

use super::parts::{Active, GroupNode, Member, NodeId, NodeKind};
use super::turn::Turn;
use crate::fault::Fault;
use crate::operation::Class;
use crate::value::{List, Value};

/// The definition of a group.
#[derive(Clone, Copy)]
pub(super) enum GroupDef<'m> {
    Each(&'m Each),
    Parallel(&'m Parallel),
}

/// How a group stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It ended well.
    Ok,
    /// It is open, or ended in another way.
    Partial,
}

impl<'m> Turn<'m> {
    /// Returns the definition of a group.
    pub(super) fn group_def(&self, id: NodeId) -> Result<GroupDef<'m>, Fault> {
        let wrong = || Fault::inconsistent("a group has no definition");
        let parent = self.node(id)?.parent.ok_or_else(wrong)?;
        match &self.node(parent.node)?.kind {
            NodeKind::Flow(flow) => match &self.program.state(flow.flow, flow.state).effect {
                Effect::Each(each) => Ok(GroupDef::Each(each)),
                Effect::Parallel(parallel) => Ok(GroupDef::Parallel(parallel)),
                _ => Err(wrong()),
            },
            NodeKind::Group(_) => match (self.group_def(parent.node)?, parent.member) {
                (GroupDef::Parallel(parallel), Some(at)) => match &parallel.regions[at as usize].body {
                    EachBody::Each(each) => Ok(GroupDef::Each(each)),
                    _ => Err(wrong()),
                },
                (GroupDef::Each(_) | GroupDef::Parallel(_), _) => Err(wrong()),
            },
        }
    }

    /// Returns the result variables of the open effect of a flow instance.
    pub(super) fn results(&self, id: NodeId) -> Result<Vec<(Slot, Value)>, Fault> {
        match self.flow(id)?.active {
            Active::Child(child) if matches!(self.node(child)?.kind, NodeKind::Group(_)) => {
                self.group_results(child, Standing::Partial)
            }
            Active::Idle | Active::Stopped | Active::Undoing | Active::Op(_) | Active::Child(_) => {
                Ok(Vec::new())
            }
        }
    }

    /// Returns the result variables of a group.
    pub(super) fn group_results(&self, id: NodeId, standing: Standing) -> Result<Vec<(Slot, Value)>, Fault> {
        let group = self.group(id)?;
        match self.group_def(id)? {
            GroupDef::Each(each) => {
                let list = if standing == Standing::Ok && !each.keep_going {
                    done_values(group)?
                } else {
                    self.slots(group)?
                };
                Ok(vec![(each.result, list)])
            }
            GroupDef::Parallel(parallel) => {
                let plain = standing == Standing::Ok && parallel.join == Join::All;
                let value = |member: &Member| match member {
                    Member::Done(value) if plain => Ok(value.clone()),
                    member => self.slot(member),
                };
                let regions = parallel.regions.iter().zip(group.members.iter());
                regions.map(|(region, member)| Ok((region.result, value(member)?))).collect()
            }
        }
    }

    /// Returns a `Slot` for each member.
    pub(super) fn slots(&self, group: &GroupNode) -> Result<Value, Fault> {
        let slots: Result<List, Fault> = group.members.iter().map(|member| self.slot(member)).collect();
        Ok(Value::List(slots?).checked()?)
    }

    fn slot(&self, member: &Member) -> Result<Value, Fault> {
        let cut = match member {
            Member::Done(value) => return Ok(Value::record(Some("Done"), [("value", value.clone())])?),
            Member::Failed(problem) => {
                return Ok(Value::record(Some("Failed"), [("error", problem.clone())])?);
            }
            Member::NotStarted => false,
            Member::Cut => true,
            Member::Op(op) => self.may_have_acted(*op),
            Member::Node(node) => self.node_may_have_acted(*node),
        };
        Ok(Value::record(Some(if cut { "Cut" } else { "NotStarted" }), [])?)
    }

    /// Says whether an open operation may have done something outside.
    fn may_have_acted(&self, op: crate::ids::OpId) -> bool {
        // Whether work that may be repeated is in hand is known to the engine only.
        let work = self.s.ops.get(&op).and_then(|op| op.work.activity());
        work.is_some_and(|work| work.class != Class::Once || work.begun)
    }

    fn node_may_have_acted(&self, id: NodeId) -> bool {
        let Some(node) = self.s.nodes.get(&id) else { return false };
        match &node.kind {
            NodeKind::Flow(flow) => {
                flow.acted
                    || match flow.active {
                        Active::Op(op) => self.may_have_acted(op),
                        Active::Child(child) => self.node_may_have_acted(child),
                        Active::Idle | Active::Stopped | Active::Undoing => false,
                    }
            }
            NodeKind::Group(group) => group.members.iter().any(|member| match member {
                Member::Op(op) => self.may_have_acted(*op),
                Member::Node(node) => self.node_may_have_acted(*node),
                Member::Done(_) | Member::Failed(_) | Member::Cut => true,
                Member::NotStarted => false,
            }),
        }
    }
}

/// Returns the values of the members that are done, in item order.
pub(super) fn done_values(group: &GroupNode) -> Result<Value, Fault> {
    let value = |member: &Member| match member {
        Member::Done(value) => Some(value.clone()),
        Member::NotStarted | Member::Op(_) | Member::Node(_) | Member::Failed(_) | Member::Cut => None,
    };
    Ok(Value::List(group.members.iter().filter_map(value).collect()).checked()?)
}

/// Makes room for the members of a group.
pub(super) fn members(count: usize) -> rpds::VectorSync<Member> {
    std::iter::repeat_n(Member::NotStarted, count).collect()
}

/// Returns the items of a list.
pub(super) fn items(value: Value) -> Result<Arc<[Value]>, Fault> {
    match value {
        Value::List(list) => Ok(list.iter().cloned().collect()),
        other => Err(crate::eval::unexpected("`each`", &other)),
    }
}
