//! Arrows: which one an outcome takes, what it does, and where it leads.
//!
//! Order: sets in text order, limits (a broken one replaces the arrow), leaving, the other acts, the goal. A state's own arrows
//! come before those of its flow; an arrow that names the outcome comes before one on `problem`; a false guard is passed over.

use outlast_dsl::machine::{
    Act, Arm, Arrow, AssignOp, Bind, EachBody, Effect, Goal, Outcome as On, Payload, Slot, Then,
};

use super::enter::index;
use super::parts::{Completion, NodeId, NodeKind, Owner, Parent};
use super::turn::{Spot, Task, Turn};
use crate::eval::{Scope, add, bind_fields, eval, eval_all, fits, holds, sub};
use crate::fault::Fault;
use crate::json::value_to_json;
use crate::operation::{Emit, Way};
use crate::value::Value;

/// An arrow that fits, with its variables bound.
pub(super) struct Chosen<'m> {
    arrow: &'m Arrow,
    scope: Scope,
    payload: Value,
    spot: Spot,
}

impl<'m> Turn<'m> {
    /// Tells a flow instance or a group that a piece of its work ended.
    pub(super) fn complete(&mut self, parent: Parent, completion: Completion) -> Result<(), Fault> {
        let Some(node) = self.s.nodes.get(&parent.node) else { return Ok(()) };
        match (&node.kind, parent.member) {
            (NodeKind::Flow(_), _) => self.take(parent.node, &completion),
            (NodeKind::Group(_), Some(member)) => self.settle_member(parent.node, member, completion),
            (NodeKind::Group(_), None) => Err(Fault::inconsistent("a group has no member")),
        }
    }

    /// Takes the arrow of an outcome.
    pub(super) fn take(&mut self, id: NodeId, completion: &Completion) -> Result<(), Fault> {
        self.spot = (Some(id), Spot::Effect);
        match self.choose(id, completion)? {
            Some(chosen) => self.go_along(id, chosen),
            None => Err(Fault::NoArrow { outcome: format!("{:?}", completion.outcome) }),
        }
    }

    /// Finds the arrow of an outcome.
    pub(super) fn choose(
        &mut self,
        id: NodeId,
        completion: &Completion,
    ) -> Result<Option<Chosen<'m>>, Fault> {
        let program = self.program;
        let flow = self.flow(id)?;
        let state = program.state(flow.flow, flow.state);
        let mut own = self.scope(id)?;
        for (slot, value) in &completion.slots {
            own.bind(*slot, value.clone());
        }
        if let (On::Ok, Some(slot)) = (completion.outcome, result_slot(&state.effect)) {
            own.bind(slot, completion.payload.clone());
        }
        if let Some(chosen) = self.choose_from(id, &state.arrows, own, completion, Spot::State)? {
            return Ok(Some(chosen));
        }
        self.choose_in_flow(id, completion)
    }

    /// Finds the arrow of an outcome among those of the flow.
    pub(super) fn choose_in_flow(
        &mut self,
        id: NodeId,
        completion: &Completion,
    ) -> Result<Option<Chosen<'m>>, Fault> {
        let def = self.program.flow(self.flow(id)?.flow);
        let scope = self.flow_scope(id)?;
        self.choose_from(id, &def.arrows, scope, completion, Spot::Flow)
    }

    fn choose_from(
        &mut self,
        id: NodeId,
        arrows: &'m [Arrow],
        base: Scope,
        completion: &Completion,
        spot: fn(Way) -> Spot,
    ) -> Result<Option<Chosen<'m>>, Fault> {
        for on in names_of(completion.outcome) {
            for (at, arrow) in arrows.iter().enumerate().filter(|(_, arrow)| arrow.on.contains(&on)) {
                let spot = spot(Way::Arrow(index(at)?));
                self.spot = (Some(id), spot);
                self.env.spend(1)?;
                let mut scope = base.clone();
                let payload = payload(arrow.payload, completion);
                bind(&mut scope, &arrow.bind, &payload)?;
                let passes = match &arrow.guard {
                    Some(guard) => holds(&mut self.env, &mut scope, guard)?,
                    None => true,
                };
                if passes {
                    return Ok(Some(Chosen { arrow, scope, payload, spot }));
                }
            }
        }
        Ok(None)
    }

    /// Goes along an arrow.
    pub(super) fn go_along(&mut self, id: NodeId, chosen: Chosen<'m>) -> Result<(), Fault> {
        let Chosen { arrow, mut scope, payload, spot } = chosen;
        self.spot = (Some(id), spot);
        self.note_taken(id, spot)?;
        self.sets(&mut scope, &arrow.acts)?;
        match &arrow.then {
            Then::Goal(goal) => self.go(id, scope, &[&arrow.acts], goal),
            Then::Arms(arms) => {
                let (at, arm) = self.arm_that_fits(&mut scope, &payload, arms)?;
                if let Spot::State(Way::Arrow(arrow)) = spot {
                    self.spot = (Some(id), Spot::State(Way::Arm(arrow, index(at)?)));
                    self.note_taken(id, self.spot.1)?;
                }
                self.sets(&mut scope, &arm.acts)?;
                self.go(id, scope, &[&arrow.acts, &arm.acts], &arm.goal)
            }
        }
    }

    /// Finds the first arm that fits a variant, with its position, and binds its fields.
    pub(super) fn arm_that_fits(
        &mut self,
        scope: &mut Scope,
        subject: &Value,
        arms: &'m [Arm],
    ) -> Result<(usize, &'m Arm), Fault> {
        for (at, arm) in arms.iter().enumerate().filter(|(_, arm)| fits(subject, &arm.tag)) {
            bind_fields(scope, subject, &arm.tag, &arm.fields)?;
            let passes = match &arm.guard {
                Some(guard) => holds(&mut self.env, scope, guard)?,
                None => true,
            };
            if passes {
                return Ok((at, arm));
            }
        }
        Err(Fault::NoArrow { outcome: subject.tag().unwrap_or(subject.kind()).to_owned() })
    }

    /// Executes the assignments among some acts.
    pub(super) fn sets(&mut self, scope: &mut Scope, acts: &[Act]) -> Result<(), Fault> {
        for act in acts {
            let Act::Set(assign) = act else { continue };
            let value = eval(&mut self.env, scope, &assign.value)?;
            let Some(old) = scope.data.get(assign.data.at()) else {
                return Err(Fault::inconsistent("a set names no data field"));
            };
            let value = match assign.op {
                AssignOp::Set => value,
                AssignOp::Add => add(&mut self.env, old, &value)?,
                AssignOp::Sub => sub(old, &value)?,
            };
            scope.data[assign.data.at()] = value;
        }
        Ok(())
    }

    /// Goes on after the sets of an arrow: limits, leaving, the other acts, the goal.
    pub(super) fn go(
        &mut self,
        id: NodeId,
        scope: Scope,
        acts: &[&'m [Act]],
        goal: &'m Goal,
    ) -> Result<(), Fault> {
        self.count_transition()?;
        if self.s.cleans_up().is_some_and(|current| self.gives_up.contains(&current)) {
            return self.give_up_clean_up();
        }
        let spot = self.spot;
        self.flow_mut(id)?.data.clone_from(&scope.data);
        if let Some(limit) = self.broken_limit(id, goal)? {
            return self.take_limit(id, limit);
        }
        self.spot = spot;
        self.go_unlimited(id, scope, acts, goal, Cause::Arrow)
    }

    /// Goes on after the limits of an arrow.
    pub(super) fn go_unlimited(
        &mut self,
        id: NodeId,
        mut scope: Scope,
        acts: &[&'m [Act]],
        goal: &'m Goal,
        cause: Cause,
    ) -> Result<(), Fault> {
        let undoes = self.program.flow(self.flow(id)?.flow).saga
            && match goal {
                Goal::Fail(_) => true,
                Goal::End(_) => cause == Cause::Limit,
                Goal::State(..) | Goal::Stay => false,
            };
        if undoes {
            self.begin_undoing(id)?;
        }
        if !matches!(goal, Goal::Stay) {
            self.leave(id)?;
        }
        for act in acts.iter().copied().flatten() {
            self.act(id, &mut scope, act)?;
        }
        match goal {
            Goal::Stay => Ok(()),
            Goal::State(state, args) => {
                let args = eval_all(&mut self.env, &mut scope, args)?;
                self.tasks.push(Task::Enter(id, *state, args));
                Ok(())
            }
            Goal::End(value) => {
                let value = eval(&mut self.env, &mut scope, value)?;
                let completion = Completion::new(On::Ok, value);
                if undoes { self.leave_saga(id, completion) } else { self.end_node(id, completion) }
            }
            Goal::Fail(error) => {
                let error = eval(&mut self.env, &mut scope, error)?;
                let completion = self.flow_failed(id, error)?;
                self.end_node(id, completion)
            }
        }
    }

    fn act(&mut self, id: NodeId, scope: &mut Scope, act: &'m Act) -> Result<(), Fault> {
        match act {
            // Assignments came before the limits.
            Act::Set(_) => Ok(()),
            Act::Discard(message) => {
                let flow = self.flow(id)?.flow;
                self.discard(flow, message.0);
                Ok(())
            }
            Act::Settle(doubt, verdict) => {
                let doubt = eval(&mut self.env, scope, doubt)?;
                let verdict = eval(&mut self.env, scope, verdict)?;
                self.settle_doubt(&doubt, &verdict);
                Ok(())
            }
            Act::AlsoDo(activity, args) => {
                let args = eval_all(&mut self.env, scope, args)?;
                self.open_activity_with(Owner::Also, id, *activity, args)?;
                Ok(())
            }
            Act::Emit(value) => {
                let value = eval(&mut self.env, scope, value)?;
                self.env.spend_on(&value)?;
                let flow = self.flow(id)?;
                let path = match flow.prefix.strip_suffix('.') {
                    Some(path) => path.to_owned(),
                    None => self.program.flow(flow.flow).name.clone(),
                };
                self.effects.emits.push(Emit { k: self.emits_made, path, value: value_to_json(&value) });
                self.emits_made += 1;
                Ok(())
            }
        }
    }
}

/// What leads to a goal.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    Arrow,
    Limit,
}

/// Returns the names under which arrows may know an outcome, the most special first.
pub(super) fn names_of(outcome: On) -> impl Iterator<Item = On> {
    let problem = matches!(outcome, On::Error(_) | On::Failed | On::Timeout).then_some(On::Problem);
    std::iter::once(outcome).chain(problem)
}

/// Returns the payload as an arrow wants to see it.
pub(super) fn payload(wanted: Payload, completion: &Completion) -> Value {
    match (wanted, &completion.problem) {
        (Payload::Problem, Some(problem)) => problem.clone(),
        (Payload::Problem | Payload::Own, _) => completion.payload.clone(),
    }
}

/// Binds a payload and its fields.
pub(super) fn bind(scope: &mut Scope, bind: &Bind, payload: &Value) -> Result<(), Fault> {
    if let Some(slot) = bind.whole {
        scope.bind(slot, payload.clone());
    }
    for (name, slot) in &bind.fields {
        let field = payload.field(name);
        let field = field.ok_or_else(|| Fault::inconsistent(format!("a payload has no field {name}")))?;
        scope.bind(*slot, field.clone());
    }
    Ok(())
}

fn result_slot(effect: &Effect) -> Option<Slot> {
    match effect {
        Effect::Do(_, _, slot) | Effect::Run(_, _, _, slot) => *slot,
        Effect::Spawn(spawn) => spawn.handle,
        Effect::Wait
        | Effect::Each(_)
        | Effect::Parallel(_)
        | Effect::Await(_)
        | Effect::Ask(_)
        | Effect::Choose(_)
        | Effect::Match(..) => None,
    }
}

/// Returns the result variable of a member's body.
pub(super) fn body_slot(body: &EachBody) -> Option<Slot> {
    match body {
        EachBody::Do(_, _, slot) | EachBody::Run(_, _, _, slot) => *slot,
        EachBody::Ask(_) | EachBody::Await(_) | EachBody::Each(_) => None,
    }
}
