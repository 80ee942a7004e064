//! Groups: fan-outs and regions side by side.
//!
//! Invariant: members start in item order, at most so many are open at once, and a group that is over has nothing open.

use std::sync::Arc;

use outlast_dsl::machine::{Each, EachBody, Join, Outcome as On, Parallel, Yield};

use super::arrow::{bind, body_slot, names_of, payload};
use super::enter::index;
use super::parts::{Active, Completion, GroupNode, Member, Node, NodeId, NodeKind, Parent};
use super::results::{GroupDef, Standing, done_values, items, members};
use super::turn::{Task, Turn};
use crate::eval::{Scope, eval, holds};
use crate::fault::Fault;
use crate::ids::Millis;
use crate::limits::NESTING_MAX;
use crate::value::Value;

impl<'m> Turn<'m> {
    /// Opens a fan-out.
    pub(super) fn open_each(
        &mut self,
        parent: Parent,
        flow: NodeId,
        scope: &mut Scope,
        each: &Each,
    ) -> Result<NodeId, Fault> {
        let items = items(eval(&mut self.env, scope, &each.over)?)?;
        self.env.spend(items.len())?;
        let at_most = match eval(&mut self.env, scope, &each.at_most)? {
            Value::Int(most) => u32::try_from(most.max(1)).unwrap_or(u32::MAX),
            other => return Err(crate::eval::unexpected("`at most`", &other)),
        };
        let due = match &each.within {
            Some(wait) => self.wait(scope, wait)?,
            None => None,
        };
        let count = items.len();
        self.open_group(parent, due, GroupNode { items, at_most, ..empty(flow, count) })
    }

    /// Opens regions side by side.
    pub(super) fn open_parallel(
        &mut self,
        parent: Parent,
        flow: NodeId,
        scope: &mut Scope,
        parallel: &Parallel,
    ) -> Result<NodeId, Fault> {
        let due = match &parallel.within {
            Some(wait) => self.wait(scope, wait)?,
            None => None,
        };
        self.open_group(parent, due, empty(flow, parallel.regions.len()))
    }

    fn open_group(&mut self, parent: Parent, due: Option<Millis>, group: GroupNode) -> Result<NodeId, Fault> {
        let level = self.node(parent.node)?.level + 1;
        if level > NESTING_MAX {
            return Err(Fault::Nesting);
        }
        index(group.members.len())?;
        let id =
            self.add_node(Node { parent: Some(parent), level, deadline: None, kind: NodeKind::Group(group) });
        if let Some(due) = due {
            // The deadline belongs to the group, its path to the state.
            let flow = self.group(id)?.flow;
            let owner = super::parts::Owner::Deadline(id);
            let op = self.open(flow, owner, Some(due), super::parts::Work::Timer(None))?;
            self.node_mut(id)?.deadline = Some(op);
        }
        self.tasks.push(Task::Fill(id));
        Ok(id)
    }

    /// Starts the next member of a group, or ends the group if nothing is left to do.
    pub(super) fn fill(&mut self, id: NodeId) -> Result<(), Fault> {
        if !self.s.nodes.contains_key(&id) {
            return Ok(());
        }
        let group = self.group(id)?;
        let next = group.next;
        let left = !group.draining && (next as usize) < group.members.len();
        if !left {
            if group.open == 0 {
                return self.group_met(id);
            }
            return Ok(());
        }
        if group.open >= group.at_most {
            return Ok(());
        }
        let group = self.group_mut(id)?;
        group.next += 1;
        group.open += 1;
        // The member comes to rest before the one after it is started.
        self.tasks.push(Task::Fill(id));
        let member = self.open_member(id, next)?;
        let group = self.group_mut(id)?;
        group.members.set_mut(next as usize, member);
        Ok(())
    }

    pub(super) fn open_member(&mut self, id: NodeId, at: u32) -> Result<Member, Fault> {
        let flow = self.group(id)?.flow;
        let parent = Parent { node: id, member: Some(at) };
        let mut scope = self.member_scope(id, at)?;
        let body = match self.group_def(id)? {
            GroupDef::Each(each) => &each.body,
            GroupDef::Parallel(parallel) => &parallel.regions[at as usize].body,
        };
        Ok(match body {
            EachBody::Do(activity, args, _) => {
                Member::Op(self.open_activity(parent, flow, &mut scope, *activity, args)?)
            }
            EachBody::Run(run, args, wait, _) => {
                Member::Node(self.open_run(parent, &mut scope, *run, args, wait.as_ref())?)
            }
            EachBody::Ask(ask) => Member::Op(self.open_ask(parent, flow, &mut scope, ask)?),
            EachBody::Await(wait) => Member::Op(self.open_await(parent, flow, &mut scope, wait)?),
            EachBody::Each(each) => Member::Node(self.open_each(parent, flow, &mut scope, each)?),
        })
    }

    /// Returns the variables that a member sees.
    fn member_scope(&self, id: NodeId, at: u32) -> Result<Scope, Fault> {
        let group = self.group(id)?;
        let mut scope = self.scope(group.flow)?;
        if let GroupDef::Each(each) = self.group_def(id)? {
            let item = group.items.get(at as usize).cloned();
            scope.bind(each.item, item.ok_or_else(|| Fault::inconsistent("a member has no item"))?);
            if let Some(slot) = each.index {
                scope.bind(slot, Value::Int(i64::from(at)));
            }
        }
        Ok(scope)
    }

    /// Takes the end of a member into account.
    pub(super) fn settle_member(&mut self, id: NodeId, at: u32, completion: Completion) -> Result<(), Fault> {
        let def = self.group_def(id)?;
        let (body, yields, keep_going) = match def {
            GroupDef::Each(each) => (&each.body, &each.yields, each.keep_going),
            GroupDef::Parallel(parallel) => {
                let region = &parallel.regions[at as usize];
                (&region.body, &region.yields, true)
            }
        };
        let mut scope = self.member_scope(id, at)?;
        for (slot, value) in &completion.slots {
            scope.bind(*slot, value.clone());
        }
        if let (On::Ok, Some(slot)) = (completion.outcome, body_slot(body)) {
            scope.bind(slot, completion.payload.clone());
        }
        let yielded = self.yielded(&mut scope, yields, &completion)?;
        let member = match (yielded, completion.outcome) {
            (Some(value), _) => Member::Done(value),
            (None, On::Ok | On::Approve | On::Answer | On::Message(_) | On::Ended | On::Closed) => {
                Member::Done(completion.payload.clone())
            }
            (None, On::Unknown) if keep_going => Member::Cut,
            (
                None,
                On::Error(_)
                | On::Failed
                | On::Timeout
                | On::Problem
                | On::Unknown
                | On::Reject
                | On::Exists
                | On::UndoFailed,
            ) => Member::Failed(problem_of(&completion)?),
        };
        let failed = !matches!(member, Member::Done(_));
        let group = self.group_mut(id)?;
        group.members.set_mut(at as usize, member);
        group.open -= 1;
        if failed {
            group.failed += 1;
        } else {
            group.done += 1;
        }
        match def {
            GroupDef::Each(_) if failed && !keep_going => self.end_group(id, completion),
            GroupDef::Each(each) => self.each_goes_on(id, each),
            GroupDef::Parallel(parallel) => self.parallel_goes_on(id, at, parallel),
        }
    }

    /// Returns what a member yields by its own arrows.
    fn yielded(
        &mut self,
        scope: &mut Scope,
        yields: &[Yield],
        completion: &Completion,
    ) -> Result<Option<Value>, Fault> {
        for on in names_of(completion.outcome) {
            for arrow in yields.iter().filter(|arrow| arrow.on.contains(&on)) {
                bind(scope, &arrow.bind, &payload(arrow.payload, completion))?;
                let passes = match &arrow.guard {
                    Some(guard) => holds(&mut self.env, scope, guard)?,
                    None => true,
                };
                if passes {
                    return Ok(Some(eval(&mut self.env, scope, &arrow.value)?));
                }
            }
        }
        Ok(None)
    }

    fn each_goes_on(&mut self, id: NodeId, each: &'m Each) -> Result<(), Fault> {
        if let (Some(until), false) = (&each.until, self.group(id)?.draining) {
            let group = self.group(id)?;
            let mut scope = self.scope(group.flow)?;
            let slots = self.slots(group)?;
            self.env.spend(self.group(id)?.members.len())?;
            scope.bind(each.result, slots);
            if holds(&mut self.env, &mut scope, until)? {
                if !each.draining {
                    return self.group_met(id);
                }
                self.group_mut(id)?.draining = true;
            }
        }
        self.tasks.push(Task::Fill(id));
        Ok(())
    }

    fn parallel_goes_on(&mut self, id: NodeId, at: u32, parallel: &Parallel) -> Result<(), Fault> {
        let group = self.group(id)?;
        let (done, failed) = (group.done, group.failed);
        let total = index(parallel.regions.len())?;
        let is_done = matches!(group.members.get(at as usize), Some(Member::Done(_)));
        let (met, lost) = match parallel.join {
            Join::All => (done == total, failed > 0),
            Join::Count(wanted) => (done >= wanted, total - failed < wanted),
            Join::Region(wanted) => (wanted == at && is_done, wanted == at && !is_done),
        };
        if met {
            return self.group_met(id);
        }
        if lost {
            let problem = self.every_cause(id)?;
            let completion =
                Completion { problem: Some(problem.clone()), ..Completion::new(On::Failed, problem) };
            return self.end_group(id, completion);
        }
        self.tasks.push(Task::Fill(id));
        Ok(())
    }

    /// Returns one problem that names the causes of all failed regions.
    fn every_cause(&self, id: NodeId) -> Result<Value, Fault> {
        let mut texts = Vec::new();
        for member in &self.group(id)?.members {
            match member {
                Member::Failed(problem) => {
                    texts.push(problem.field("text").and_then(Value::as_text).unwrap_or("failed"));
                }
                Member::Cut => texts.push("its outcome is unknown"),
                Member::NotStarted | Member::Op(_) | Member::Node(_) | Member::Done(_) => {}
            }
        }
        super::failure::problem(&texts.join("; "), "failed", None, None, 0)
    }

    /// Ends a group that is met.
    fn group_met(&mut self, id: NodeId) -> Result<(), Fault> {
        let slots = self.group_results(id, Standing::Ok)?;
        let payload = match self.group_def(id)? {
            GroupDef::Each(each) if !each.keep_going => done_values(self.group(id)?)?,
            GroupDef::Each(_) => self.slots(self.group(id)?)?,
            GroupDef::Parallel(_) => Value::Nothing,
        };
        self.end_node(id, Completion { slots, ..Completion::new(On::Ok, payload) })
    }

    /// Ends a group that failed or ran out of time; open members are cut.
    pub(super) fn end_group(&mut self, id: NodeId, completion: Completion) -> Result<(), Fault> {
        let slots = self.group_results(id, Standing::Partial)?;
        self.end_node(id, Completion { slots, ..completion })
    }

    /// Returns the member that waits for a message in a region of the open effect.
    pub(super) fn waiting_region(&self, id: NodeId, message: u32) -> Option<(NodeId, u32)> {
        let Active::Child(child) = self.flow(id).ok()?.active else { return None };
        let GroupDef::Parallel(parallel) = self.group_def(child).ok()? else { return None };
        let group = self.group(child).ok()?;
        let waits = |(region, member): (&outlast_dsl::machine::Region, &Member)| {
            matches!(&region.body, EachBody::Await(wait)
                if matches!(member, Member::Op(_)) && wait.messages.iter().any(|ix| ix.0 == message))
        };
        let at = parallel.regions.iter().zip(group.members.iter()).position(waits)?;
        Some((child, index(at).ok()?))
    }
}

fn empty(flow: NodeId, count: usize) -> GroupNode {
    GroupNode {
        flow,
        items: Arc::default(),
        members: members(count),
        next: 0,
        at_most: u32::MAX,
        open: 0,
        done: 0,
        failed: 0,
        draining: false,
    }
}

/// Returns what went wrong with a member.
fn problem_of(completion: &Completion) -> Result<Value, Fault> {
    if let Some(problem) = &completion.problem {
        return Ok(problem.clone());
    }
    let text = match completion.payload.field("note").and_then(Value::as_text) {
        Some(note) if !note.is_empty() => note,
        _ => "refused",
    };
    super::failure::problem(text, "reject", None, None, 0)
}
