//! The plan of a migration: where each part of a configuration goes, and what does not fit.
//!
//! Leaves doing it to the state. Invariant: a plan depends on the two machines and the configuration alone.

use std::collections::{BTreeMap, BTreeSet};

use outlast_dsl::machine::{
    ActivityIx, Ask, EachBody, Effect, Flow, FlowIx, Machine, Measure, MessageIx, Param, StateDef, StateIx,
};

use super::fit::Pair;
use crate::ids::{OpId, Seq};
use crate::program::Program;
use crate::state::{Active, FlowNode, Member, NodeId, NodeKind, Op, Owner, Parent, State, Work};

/// Where everything goes.
pub(crate) struct Plan {
    /// Flow instances, outer ones before inner ones.
    pub(crate) nodes: BTreeMap<NodeId, NodePlan>,
    /// Unread messages by the event that brought them.
    pub(crate) mail: BTreeMap<Seq, (FlowIx, MessageIx)>,
    /// Old flows and activities that are in use, by their old numbers.
    pub(crate) flows: BTreeMap<FlowIx, FlowIx>,
    pub(crate) activities: BTreeMap<ActivityIx, ActivityIx>,
    /// Operations that do not fit and belong to no effect.
    pub(crate) loose: BTreeSet<OpId>,
}

/// Where a flow instance goes.
pub(crate) struct NodePlan {
    pub(crate) flow: FlowIx,
    pub(crate) state: StateIx,
    /// The old position of each parameter; none: its default.
    pub(crate) params: Vec<Option<usize>>,
    /// The old position of each data field; none: its initialiser.
    pub(crate) data: Vec<Option<usize>>,
    pub(crate) args: ArgsFrom,
    /// The old position of each limit; none: it is new.
    pub(crate) limits: Vec<Option<usize>>,
    /// Whether the timers of the state are the same.
    pub(crate) same_timers: bool,
    /// What of the open effect does not fit: the whole of it, or single members of its group.
    pub(crate) misfits: Vec<Misfit>,
}

/// A piece of work that does not fit: the effect of a flow instance, or a member of a group.
pub(crate) struct Misfit {
    pub(crate) of: Parent,
    /// Its open operations.
    pub(crate) ops: Vec<OpId>,
}

/// Where the arguments of a state come from.
pub(crate) enum ArgsFrom {
    /// The old position of each; none: its default.
    Old(Vec<Option<usize>>),
    /// A migration of the flow, and where each of its parameters comes from.
    Migration(usize, Vec<Source>),
}

/// Where a parameter of a migration comes from.
#[derive(Clone, Copy)]
pub(crate) enum Source {
    Arg(usize),
    Data(usize),
    Param(usize),
    Default,
}

impl Plan {
    /// Plans a migration.
    ///
    /// # Errors
    /// Everything for which the new machine has no place, in words.
    pub(crate) fn new(state: &State, program: &Program) -> Result<Plan, Vec<String>> {
        let pair = Pair { old: state.machine(), new: &program.machine };
        let mut planner = Planner {
            pair,
            state,
            plan: Plan {
                nodes: BTreeMap::new(),
                mail: BTreeMap::new(),
                flows: BTreeMap::new(),
                activities: BTreeMap::new(),
                loose: BTreeSet::new(),
            },
            needs: Vec::new(),
            misfits: BTreeSet::new(),
        };
        planner.root();
        state.core.ops.values().for_each(|op| planner.op(op));
        planner.rest();
        for (id, node) in &state.core.nodes {
            if let NodeKind::Flow(flow) = &node.kind {
                planner.node(*id, flow);
            }
        }
        if planner.needs.is_empty() { Ok(planner.plan) } else { Err(planner.needs) }
    }

    /// Returns all operations that do not fit.
    pub(crate) fn misfits(&self) -> Vec<OpId> {
        let of_effects =
            self.nodes.values().flat_map(|node| &node.misfits).flat_map(|misfit| misfit.ops.iter().copied());
        let all: BTreeSet<_> = of_effects.chain(self.loose.iter().copied()).collect();
        all.into_iter().collect()
    }
}

struct Planner<'a> {
    pair: Pair<'a>,
    state: &'a State,
    plan: Plan,
    needs: Vec<String>,
    misfits: BTreeSet<OpId>,
}

impl Planner<'_> {
    fn root(&mut self) {
        let (old, new) = (self.pair.old.root(), self.pair.new.root());
        if old.name != new.name {
            self.needs.push(format!("a flow {}: the new machine is one of {}", old.name, new.name));
        }
    }

    fn flow(&mut self, old: FlowIx) -> Option<FlowIx> {
        let new = self.pair.flow(old);
        match new {
            Some(new) => {
                self.plan.flows.insert(old, new);
            }
            None => self.needs.push(format!("a flow {}", self.pair.old.flows[old.at()].name)),
        }
        new
    }

    fn activity(&mut self, old: ActivityIx) -> bool {
        let new = self.pair.activity(old);
        if let Some(new) = new {
            self.plan.activities.insert(old, new);
        }
        new.is_some()
    }

    /// Notes whether an operation fits by itself.
    fn op(&mut self, op: &Op) {
        let fits = match &op.work {
            Work::Activity(work) => {
                let verify = work.verify.is_none_or(|verify| self.activity(verify));
                self.activity(work.activity) && verify
            }
            Work::Spawn(child) => {
                let flow = self.flow(child.flow);
                flow.is_some_and(|new| {
                    let (old, new) = (&self.pair.old.flows[child.flow.at()], &self.pair.new.flows[new.at()]);
                    self.pair.same_fields(&old.params, &new.params)
                })
            }
            Work::Child(child) | Work::CancelChild(_, child) => self.flow(child.flow).is_some(),
            Work::Timer(_) | Work::Await(_) | Work::AwaitEnded(..) | Work::Ask(_) | Work::TellParent(_) => {
                true
            }
        };
        if fits {
            return;
        }
        match op.owner {
            Owner::Work(_) => {
                self.misfits.insert(op.id);
            }
            Owner::Verify(of) => {
                self.misfits.insert(of);
            }
            Owner::Undo(..) => self.needs.push(format!("what undoes as operation {}", op.id)),
            Owner::Timer(..)
            | Owner::Limit(..)
            | Owner::Deadline(_)
            | Owner::Also
            | Owner::CleanUp
            | Owner::Run
            | Owner::Children
            | Owner::Settling => {
                self.plan.loose.insert(op.id);
            }
        }
    }

    /// Looks at unread messages, ended runs and undo stacks.
    fn rest(&mut self) {
        let core = &self.state.core;
        for (n, mail) in &core.mail {
            let old = &self.pair.old.flows[mail.flow.at()];
            let def = &old.messages[mail.message as usize];
            let new = self.pair.flow(mail.flow).and_then(|flow| {
                let messages = &self.pair.new.flows[flow.at()].messages;
                let at = messages.iter().position(|new| {
                    new.name == def.name && self.pair.same_fields(&def.fields, &new.fields)
                })?;
                Some((flow, MessageIx(u32::try_from(at).ok()?)))
            });
            match new {
                Some(place) => {
                    self.plan.mail.insert(*n, place);
                }
                None => self.needs.push(format!("a message {} of {}, which is unread", def.name, old.name)),
            }
        }
        for end in core.ended.values() {
            self.flow(end.flow);
        }
        for undo in core.undos.values() {
            if !self.activity(undo.activity) {
                let name = &self.pair.old.activities[undo.activity.at()].name;
                self.needs.push(format!("an activity {name} with an undo"));
            }
        }
    }

    /// Plans one flow instance.
    fn node(&mut self, id: NodeId, node: &FlowNode) {
        let Some(new_ix) = self.flow(node.flow) else { return };
        let (old, new) = (&self.pair.old.flows[node.flow.at()], &self.pair.new.flows[new_ix.at()]);
        let params = self.params_of(&old.params, &new.params, &format!("flow {}", new.name));
        let rests = matches!(node.active, Active::Stopped | Active::Undoing);
        let old_state = &old.states[node.state.at()];
        let migration = new.migrations.iter().position(|migration| migration.from == old_state.name);
        let same = new.states.iter().position(|state| state.name == old_state.name);
        let same = same.or_else(|| {
            new.states.iter().position(|state| state.was.as_deref() == Some(old_state.name.as_str()))
        });
        let (state, args) = match (migration, same) {
            (Some(ix), _) if !rests => {
                let migration = &new.migrations[ix];
                let from = self.sources(old, old_state, &migration.params);
                (migration.to.state.at(), ArgsFrom::Migration(ix, from))
            }
            (_, Some(at)) if !rests => {
                let what = format!("state {}.{}", new.name, new.states[at].name);
                (at, ArgsFrom::Old(self.params_of(&old_state.params, &new.states[at].params, &what)))
            }
            (_, at) if rests => (at.unwrap_or(new.start.state.at()), ArgsFrom::Old(Vec::new())),
            _ => {
                self.needs.push(format!("a place for the state {}.{}", old.name, old_state.name));
                return;
            }
        };
        let data = self.data(old, new, migration.is_some());
        let target = &new.states[state];
        let fits = rests || self.effect_fits((old, new), (old_state, target));
        let misfits = if fits { self.misfits_of(id, node) } else { whole(id, self.under(node)) };
        let kinds = |state: &StateDef| state.timers.iter().map(|timer| timer.kind).collect::<Vec<_>>();
        let plan = NodePlan {
            flow: new_ix,
            state: StateIx(u32::try_from(state).unwrap_or(u32::MAX)),
            params: params.clone(),
            data,
            args,
            limits: limits(old, new),
            same_timers: kinds(old_state) == kinds(target),
            misfits,
        };
        self.plan.nodes.insert(id, plan);
    }

    /// Returns where each new parameter comes from.
    fn params_of(&mut self, old: &[Param], new: &[Param], what: &str) -> Vec<Option<usize>> {
        for param in old.iter().filter(|param| !new.iter().any(|new| new.name == param.name)) {
            self.needs.push(format!("a place for `{}` in {what}", param.name));
        }
        let mut from = Vec::new();
        for param in new {
            let at = self.pair.param(old, param);
            if at.is_none() && (param.default.is_none() || old.iter().any(|old| old.name == param.name)) {
                self.needs.push(format!("a value for `{}` of {what}", param.name));
            }
            from.push(at);
        }
        from
    }

    fn data(&mut self, old: &Flow, new: &Flow, migrates: bool) -> Vec<Option<usize>> {
        let found = |name: &str, fields: &[outlast_dsl::machine::DataDef]| {
            fields.iter().position(|field| field.name == name)
        };
        if !migrates {
            for field in &old.data {
                let same = found(&field.name, &new.data)
                    .is_some_and(|at| self.pair.same_type(&field.ty, &new.data[at].ty));
                if !same {
                    self.needs.push(format!("what becomes of the data `{}` of {}", field.name, new.name));
                }
            }
        }
        let from = |field: &outlast_dsl::machine::DataDef| {
            found(&field.name, &old.data).filter(|at| self.pair.same_type(&old.data[*at].ty, &field.ty))
        };
        new.data.iter().map(from).collect()
    }

    fn sources(&mut self, flow: &Flow, state: &StateDef, params: &[Param]) -> Vec<Source> {
        let mut sources = Vec::new();
        for param in params {
            let data =
                flow.data.iter().position(|d| d.name == param.name && self.pair.same_type(&d.ty, &param.ty));
            let source =
                match (self.pair.param(&state.params, param), data, self.pair.param(&flow.params, param)) {
                    (Some(at), _, _) => Source::Arg(at),
                    (None, Some(at), _) => Source::Data(at),
                    (None, None, Some(at)) => Source::Param(at),
                    (None, None, None) => {
                        if param.default.is_none() {
                            let place = format!("{}.{}", flow.name, state.name);
                            self.needs.push(format!("`{}` of the migration from {place}", param.name));
                        }
                        Source::Default
                    }
                };
            sources.push(source);
        }
        sources
    }

    fn effect_fits(&self, flows: (&Flow, &Flow), (old, new): (&StateDef, &StateDef)) -> bool {
        match (&old.effect, &new.effect) {
            (Effect::Wait, Effect::Wait) | (Effect::Await(_), Effect::Await(_)) => true,
            (Effect::Do(a, ..), Effect::Do(b, ..)) => self.pair.activity(*a) == Some(*b),
            (Effect::Run(a, ..), Effect::Run(b, ..)) => self.run_fits(*a, *b),
            (Effect::Ask(a), Effect::Ask(b)) => self.ask_fits(a, b),
            (Effect::Spawn(a), Effect::Spawn(b)) => self.pair.flow(a.flow) == Some(b.flow),
            // Which of its members fit is another matter.
            (Effect::Each(a), Effect::Each(b)) => {
                self.pair.same_group(flows, (old, new)) && self.body_fits(&a.body, &b.body)
            }
            (Effect::Parallel(a), Effect::Parallel(b)) => {
                self.pair.same_group(flows, (old, new))
                    && a.regions.iter().zip(&b.regions).all(|(a, b)| self.body_fits(&a.body, &b.body))
            }
            _ => false,
        }
    }

    /// Says whether what members of a group have come to, and may still come to, is the same.
    fn body_fits(&self, old: &EachBody, new: &EachBody) -> bool {
        match (old, new) {
            (EachBody::Do(a, ..), EachBody::Do(b, ..)) => {
                let result = |machine: &Machine, ix: ActivityIx| machine.activities[ix.at()].result.clone();
                self.pair.same_type(&result(self.pair.old, *a), &result(self.pair.new, *b))
            }
            (EachBody::Run(a, ..), EachBody::Run(b, ..)) => self.run_fits(*a, *b),
            (EachBody::Ask(a), EachBody::Ask(b)) => self.ask_fits(a, b),
            (EachBody::Await(_), EachBody::Await(_)) => true,
            (EachBody::Each(a), EachBody::Each(b)) => self.body_fits(&a.body, &b.body),
            (
                EachBody::Do(..)
                | EachBody::Run(..)
                | EachBody::Ask(_)
                | EachBody::Await(_)
                | EachBody::Each(_),
                _,
            ) => false,
        }
    }

    fn run_fits(&self, old: FlowIx, new: FlowIx) -> bool {
        let result = |machine: &Machine, ix: FlowIx| machine.flows[ix.at()].result.clone();
        self.pair.flow(old) == Some(new)
            && self.pair.same_type(&result(self.pair.old, old), &result(self.pair.new, new))
    }

    fn ask_fits(&self, old: &Ask, new: &Ask) -> bool {
        let answers = match (&old.answer, &new.answer) {
            (Some(a), Some(b)) => self.pair.same_type(a, b),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        answers && self.pair.same_type(&old.shown, &new.shown)
    }

    /// Returns what of a fitting effect does not fit by itself; flows inside it have plans of their own.
    fn misfits_of(&self, id: NodeId, node: &FlowNode) -> Vec<Misfit> {
        match node.active {
            Active::Op(op) if self.misfits.contains(&op) => whole(id, vec![op]),
            Active::Child(child) => self.misfits_in(child),
            Active::Op(_) | Active::Idle | Active::Stopped | Active::Undoing => Vec::new(),
        }
    }

    fn misfits_in(&self, id: NodeId) -> Vec<Misfit> {
        let Some(NodeKind::Group(group)) = self.state.core.nodes.get(&id).map(|node| &node.kind) else {
            return Vec::new();
        };
        let of_member = |(at, member): (u32, &Member)| match member {
            Member::Op(op) if self.misfits.contains(op) => {
                vec![Misfit { of: Parent { node: id, member: Some(at) }, ops: vec![*op] }]
            }
            Member::Node(node) => self.misfits_in(*node),
            Member::Op(_) | Member::NotStarted | Member::Done(_) | Member::Failed(_) | Member::Cut => {
                Vec::new()
            }
        };
        (0..).zip(group.members.iter()).flat_map(of_member).collect()
    }

    /// Returns the operations of the open effect of a flow instance, those of flows inside it included.
    fn under(&self, node: &FlowNode) -> Vec<OpId> {
        match node.active {
            Active::Op(op) => vec![op],
            Active::Child(child) => self.under_node(child),
            Active::Idle | Active::Stopped | Active::Undoing => Vec::new(),
        }
    }

    fn under_node(&self, id: NodeId) -> Vec<OpId> {
        match self.state.core.nodes.get(&id).map(|node| &node.kind) {
            Some(NodeKind::Flow(flow)) => self.under(flow),
            Some(NodeKind::Group(group)) => group
                .members
                .iter()
                .flat_map(|member| match member {
                    Member::Op(op) => vec![*op],
                    Member::Node(node) => self.under_node(*node),
                    Member::NotStarted | Member::Done(_) | Member::Failed(_) | Member::Cut => Vec::new(),
                })
                .collect(),
            None => Vec::new(),
        }
    }
}

/// The effect of a flow instance, if it has something open.
fn whole(id: NodeId, ops: Vec<OpId>) -> Vec<Misfit> {
    if ops.is_empty() { Vec::new() } else { vec![Misfit { of: Parent { node: id, member: None }, ops }] }
}

/// Returns the old position of each limit of a flow, so that its count goes on.
fn limits(old: &Flow, new: &Flow) -> Vec<Option<usize>> {
    let name = |flow: &Flow, state: StateIx| flow.states[state.at()].name.clone();
    let key = |flow: &Flow, measure: Measure| match measure {
        Measure::Visits(of, since) => {
            format!("visits {} {:?}", name(flow, of), since.map(|since| name(flow, since)))
        }
        Measure::Data(data) => format!("data {}", flow.data[data.at()].name),
        Measure::Cost => "cost".to_owned(),
        Measure::Age => "age".to_owned(),
    };
    let mut taken = BTreeSet::new();
    let mut find = |measure| {
        let wanted = key(new, measure);
        let at = old
            .limits
            .iter()
            .enumerate()
            .position(|(at, limit)| !taken.contains(&at) && key(old, limit.measure) == wanted)?;
        taken.insert(at);
        Some(at)
    };
    new.limits.iter().map(|limit| find(limit.measure)).collect()
}
