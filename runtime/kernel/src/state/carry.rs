//! Carrying a configuration over to another machine, as planned.
//!
//! Invariant: operations that are carried keep their ids; whatever a blocked run held is applied as part of the same event.

use std::sync::Arc;

use outlast_dsl::machine::{Act, ActivityIx, Ask, EachBody, Effect, FlowIx, Outcome as On, Param};

use super::parts::{Active, Completion, FlowNode, Mail, Member, NodeId, NodeKind, Owner, Parent, Undo, Work};
use super::results::GroupDef;
use super::turn::{Stop, Task, Turn};
use super::{Core, State};
use crate::eval::{Scope, eval, eval_all};
use crate::event::{Event, EventKind, OnOpen};
use crate::fault::Fault;
use crate::ids::OpId;
use crate::migrate::{ArgsFrom, Misfit, NodePlan, Plan, Source};
use crate::operation::Effects;
use crate::program::Program;
use crate::value::Value;

impl State {
    /// Goes on with another machine.
    ///
    /// # Errors
    /// [`Fault`] if an initialiser, default or migration of the new machine fails on the values of this run.
    pub(crate) fn carry(
        &mut self,
        event: &Event,
        program: Arc<Program>,
        hash: Arc<str>,
        plan: &Plan,
        map: &[(OpId, OnOpen)],
    ) -> Result<Effects, Fault> {
        let mut core = self.core.clone();
        core.hash = hash;
        core.blocked = None;
        let held = std::mem::take(&mut core.held);
        renumber(&mut core, plan);
        let mut turn = Turn::new(&program, core, event);
        for (id, node) in &plan.nodes {
            turn.carry_node(*id, node)?;
        }
        turn.carry_questions()?;
        for op in &plan.loose {
            turn.remove(*op);
        }
        for misfit in plan.nodes.values().flat_map(|node| &node.misfits) {
            turn.replace(misfit, map)?;
        }
        turn.settle()?;
        let mut counts = (turn.ops_made, turn.nodes_made, turn.emits_made);
        let (mut core, mut effects) = turn.finish();
        let mut facts = held.iter();
        while let Some(fact) = facts.next() {
            let mut turn = Turn::new(&program, core.clone(), event);
            (turn.ops_made, turn.nodes_made, turn.emits_made) = counts;
            turn.fact = fact.n;
            match turn.begin(&fact.kind).and_then(|()| Ok(turn.settle()?)) {
                Ok(()) => {
                    counts = (turn.ops_made, turn.nodes_made, turn.emits_made);
                    let (next, more) = turn.finish();
                    core = next;
                    effects.and(more);
                }
                Err(Stop::Diverged(expected, found))
                    if matches!(fact.kind, EventKind::Started(_) | EventKind::Message { .. }) =>
                {
                    return Err(Fault::inconsistent(format!("event {}: {expected}, not {found}", fact.n)));
                }
                // It was about an operation that did not survive the migration.
                Err(Stop::Diverged(..)) => {}
                Err(Stop::Fault(fault)) => {
                    let mut blocked = turn.blocked(&fault);
                    blocked.event = fact.n.0;
                    core.blocked = Some(Arc::new(blocked));
                    core.held = std::iter::once(fact).chain(facts.by_ref()).cloned().collect();
                }
            }
        }
        *self = State { program, core };
        Ok(effects)
    }
}

impl Effects {
    /// Adds what happened next in the same event.
    fn and(&mut self, more: Effects) {
        let closed = more.closed;
        self.opened.retain(|op| !closed.contains(op));
        self.opened.extend(more.opened);
        self.closed.extend(closed);
        self.emits.extend(more.emits);
        self.entered.extend(more.entered);
        self.handled.extend(more.handled);
        self.ended |= more.ended;
    }
}

/// Gives everything outside of flow instances its new numbers.
fn renumber(core: &mut Core, plan: &Plan) {
    let flow = |ix: FlowIx| plan.flows.get(&ix).copied().unwrap_or(ix);
    let activity = |ix: ActivityIx| plan.activities.get(&ix).copied().unwrap_or(ix);
    let ops: Vec<_> = core.ops.values().cloned().collect();
    for op in ops {
        let mut op = op.edit();
        match &mut op.work {
            Work::Activity(work) => {
                work.activity = activity(work.activity);
                work.verify = work.verify.map(activity);
            }
            Work::Spawn(child) | Work::Child(child) | Work::CancelChild(_, child) => {
                child.flow = flow(child.flow);
            }
            Work::Timer(_) | Work::Await(_) | Work::AwaitEnded(..) | Work::Ask(_) | Work::TellParent(_) => {}
        }
        core.ops.insert_mut(op.id, Arc::new(op));
    }
    let undos: Vec<_> = core.undos.iter().map(|(op, undo)| (*op, (**undo).clone())).collect();
    for (op, undo) in undos {
        let undo = Undo { activity: activity(undo.activity), ..undo };
        core.undos.insert_mut(op, Arc::new(undo));
    }
    let ended: Vec<_> = core.ended.iter().map(|(run, end)| (run.clone(), (**end).clone())).collect();
    for (run, mut end) in ended {
        end.flow = flow(end.flow);
        core.ended.insert_mut(run, Arc::new(end));
    }
    for (n, (flow, message)) in &plan.mail {
        if let Some(mail) = core.mail.get(n).map(|mail| (**mail).clone()) {
            core.mail.insert_mut(*n, Arc::new(Mail { flow: *flow, message: message.0, ..mail }));
        }
    }
}

impl Turn<'_> {
    /// Carries one flow instance.
    fn carry_node(&mut self, id: NodeId, plan: &NodePlan) -> Result<(), Fault> {
        let def = self.program.flow(plan.flow);
        let old = self.flow(id)?.clone();
        let params = self.carry_params(&def.params, &plan.params, &old.params)?;
        let prefix = match self.node(id)?.parent {
            None => String::new(),
            Some(parent) => {
                format!("{}/{}.", self.path_of(parent.node).unwrap_or_else(|| Arc::from("")), def.name)
            }
        };
        let mut data = Vec::new();
        for (field, from) in def.data.iter().zip(&plan.data) {
            let value = match from.and_then(|at| old.data.get(at)) {
                Some(value) => value.clone(),
                None => {
                    let mut scope = scope(&params, data.clone(), def.frame);
                    eval(&mut self.env, &mut scope, &field.init)?
                }
            };
            data.push(value);
        }
        let state = self.program.state(plan.flow, plan.state);
        let args: Arc<[Value]> = match &plan.args {
            ArgsFrom::Old(from) => self.carry_params(&state.params, from, &old.args)?,
            ArgsFrom::Migration(ix, from) => {
                let migration = &def.migrations[*ix];
                let mut scope = scope(&params, data, migration.frame);
                for (slot, (param, source)) in migration.params.iter().zip(from).enumerate() {
                    scope.frame[slot] = self.source(param, *source, &old)?;
                }
                let sets: Vec<Act> = migration.sets.iter().cloned().map(Act::Set).collect();
                self.sets(&mut scope, &sets)?;
                let args = eval_all(&mut self.env, &mut scope, &migration.to.args)?;
                data = scope.data;
                args
            }
        };
        let visits =
            plan.limits.iter().map(|from| from.and_then(|at| old.visits.get(at)).copied().unwrap_or(0));
        let visits = visits.collect();
        let carried = FlowNode {
            flow: plan.flow,
            state: plan.state,
            prefix: prefix.into(),
            params,
            data,
            args,
            visits,
            timers: Vec::new(),
            limits: Vec::new(),
            ..old.clone()
        };
        self.node_mut(id)?.kind = NodeKind::Flow(carried);
        self.carry_clocks(id, plan, &old)?;
        self.carry_paths(id)
    }

    fn carry_params(
        &mut self,
        params: &[Param],
        from: &[Option<usize>],
        old: &[Value],
    ) -> Result<Arc<[Value]>, Fault> {
        let mut values = Vec::new();
        for (param, from) in params.iter().zip(from) {
            values.push(match from.and_then(|at| old.get(at)) {
                Some(value) => value.clone(),
                None => self.default(param)?,
            });
        }
        Ok(values.into())
    }

    fn default(&mut self, param: &Param) -> Result<Value, Fault> {
        let none: Arc<[Value]> = Arc::default();
        match &param.default {
            Some(default) => eval(&mut self.env, &mut scope(&none, Vec::new(), 0), default),
            None => Err(Fault::inconsistent(format!("`{}` has no value", param.name))),
        }
    }

    fn source(&mut self, param: &Param, source: Source, old: &FlowNode) -> Result<Value, Fault> {
        let found = match source {
            Source::Arg(at) => old.args.get(at),
            Source::Data(at) => old.data.get(at),
            Source::Param(at) => old.params.get(at),
            Source::Default => None,
        };
        match found {
            Some(value) => Ok(value.clone()),
            None => self.default(param),
        }
    }

    /// Carries timers and limits on age; new ones are armed, others are closed.
    fn carry_clocks(&mut self, id: NodeId, plan: &NodePlan, old: &FlowNode) -> Result<(), Fault> {
        let rests = matches!(old.active, Active::Stopped | Active::Undoing);
        let program = self.program;
        let state = program.state(plan.flow, plan.state);
        if plan.same_timers {
            self.flow_mut(id)?.timers.clone_from(&old.timers);
        } else {
            for (_, op) in &old.timers {
                self.remove(*op);
            }
            for (at, timer) in state.timers.iter().enumerate().filter(|_| !rests) {
                self.arm(id, at, timer)?;
            }
        }
        for (at, limit) in program.flow(plan.flow).limits.iter().enumerate() {
            let from = plan.limits.get(at).copied().flatten();
            let armed = from.and_then(|from| old.limits.iter().find(|(known, _)| *known as usize == from));
            if let Some((_, op)) = armed {
                let index = super::enter::index(at)?;
                let mut edited = self.op(*op)?.edit();
                edited.owner = Owner::Limit(id, index);
                self.s.ops.insert_mut(*op, Arc::new(edited));
                self.flow_mut(id)?.limits.push((index, *op));
            } else if limit.measure == outlast_dsl::machine::Measure::Age && from.is_none() && !rests {
                self.arm_limit(id, at)?;
            }
        }
        for at in 0..program.flow(plan.flow).limits.len() {
            // The new version may allow more.
            if !rests && self.was_broken(id, at)? {
                self.mark(id, at)?;
            }
        }
        let kept = self.flow(id)?.limits.clone();
        for (_, op) in old.limits.iter().filter(|(_, op)| !kept.iter().any(|(_, known)| known == op)) {
            self.remove(*op);
        }
        Ok(())
    }

    /// Shows the operations of a flow instance where it is now.
    fn carry_paths(&mut self, id: NodeId) -> Result<(), Fault> {
        let Some(path) = self.path_of(id) else { return Ok(()) };
        let own: Vec<_> =
            self.s.ops.values().filter(|op| op.flow == id && op.path != path).cloned().collect();
        for op in own {
            let mut op = op.edit();
            op.path = Arc::clone(&path);
            self.s.ops.insert_mut(op.id, Arc::new(op));
        }
        Ok(())
    }

    /// Gives open questions the types of the new machine.
    fn carry_questions(&mut self) -> Result<(), Fault> {
        let open: Vec<_> = self.s.ops.values().filter(|op| op.work.question().is_some()).cloned().collect();
        for op in open {
            let (mut op, Owner::Work(parent)) = (op.edit(), op.owner) else { continue };
            if let (Some(def), Work::Ask(ask)) = (self.question_of(parent)?, &mut op.work) {
                ask.shown_type = def.shown.clone();
                ask.answer.clone_from(&def.answer);
                self.s.ops.insert_mut(op.id, Arc::new(op));
            }
        }
        Ok(())
    }

    /// Returns the definition of the question that a flow instance or a member has open.
    fn question_of(&self, parent: Parent) -> Result<Option<Ask>, Fault> {
        let asked = |body: &EachBody| match body {
            EachBody::Ask(ask) => Some((**ask).clone()),
            EachBody::Do(..) | EachBody::Run(..) | EachBody::Await(_) | EachBody::Each(_) => None,
        };
        match (&self.node(parent.node)?.kind, parent.member) {
            (NodeKind::Flow(flow), _) => Ok(match &self.program.state(flow.flow, flow.state).effect {
                Effect::Ask(ask) => Some((**ask).clone()),
                _ => None,
            }),
            (NodeKind::Group(_), Some(at)) => Ok(match self.group_def(parent.node) {
                Ok(GroupDef::Each(each)) => asked(&each.body),
                Ok(GroupDef::Parallel(parallel)) => {
                    parallel.regions.get(at as usize).and_then(|region| asked(&region.body))
                }
                // It does not fit, and goes with its group.
                Err(_) => None,
            }),
            (NodeKind::Group(_), None) => Ok(None),
        }
    }

    /// Cuts what does not fit, or opens it again.
    fn replace(&mut self, misfit: &Misfit, map: &[(OpId, OnOpen)]) -> Result<(), Fault> {
        let how = misfit.ops.iter().find_map(|op| map.iter().find(|(known, _)| known == op));
        // It is gone if something around it was replaced.
        let (Some((_, how)), true) = (how, self.s.nodes.contains_key(&misfit.of.node)) else { return Ok(()) };
        match misfit.of.member {
            None => self.replace_effect(misfit.of.node, *how),
            Some(at) => self.replace_member(misfit.of.node, at, *how),
        }
    }

    fn replace_effect(&mut self, id: NodeId, how: OnOpen) -> Result<(), Fault> {
        match std::mem::replace(&mut self.flow_mut(id)?.active, Active::Idle) {
            Active::Op(op) => self.remove(op),
            Active::Child(child) => self.close_node(child),
            Active::Idle | Active::Stopped | Active::Undoing => return Ok(()),
        }
        match how {
            OnOpen::Cut => self.tasks.push(Task::Complete(Parent { node: id, member: None }, cut()?)),
            OnOpen::Again => {
                let flow = self.flow_mut(id)?;
                let (state, args) = (flow.state, Arc::clone(&flow.args));
                let timers = std::mem::take(&mut flow.timers);
                for (_, op) in timers {
                    self.remove(op);
                }
                self.tasks.push(Task::Enter(id, state, args));
            }
        }
        Ok(())
    }

    /// Replaces one open member of a group; the others go on.
    fn replace_member(&mut self, group: NodeId, at: u32, how: OnOpen) -> Result<(), Fault> {
        let Some(Member::Op(op)) = self.group(group)?.members.get(at as usize).cloned() else {
            return Ok(());
        };
        self.remove(op);
        match how {
            OnOpen::Cut => self.tasks.push(Task::Complete(Parent { node: group, member: Some(at) }, cut()?)),
            OnOpen::Again => {
                let member = self.open_member(group, at)?;
                self.group_mut(group)?.members.set_mut(at as usize, member);
            }
        }
        Ok(())
    }
}

/// What work comes to that a migration cuts.
fn cut() -> Result<Completion, Fault> {
    let text = "it was cut by a migration to another version";
    let problem = super::failure::problem(text, "failed", None, None, 0)?;
    Ok(Completion { problem: Some(problem.clone()), ..Completion::new(On::Failed, problem) })
}

fn scope(params: &Arc<[Value]>, data: Vec<Value>, frame: u32) -> Scope {
    Scope {
        params: Arc::clone(params),
        args: Arc::default(),
        data,
        frame: vec![Value::Nothing; frame as usize],
    }
}
