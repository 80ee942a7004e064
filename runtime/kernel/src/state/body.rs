//! Opening the work of a state or of a member of a group.
//!
//! Leaves groups to `group` and budgets to `budget`. Invariant: all arguments are evaluated before the operation gets its id.

use std::sync::Arc;

use outlast_dsl::machine::{
    ActivityIx, Ask, Await, Effect, EffectClass, Expr, FlowIx, Goal, Outcome as On, ToolEffect, Wait,
};

use super::parts::{Active, ActivityWork, AskWork, Completion, NodeId, Owner, Parent, Work};
use super::turn::{Spot, Turn};
use crate::Json;
use crate::eval::{Scope, eval, eval_all, holds, show};
use crate::fault::Fault;
use crate::ids::{Attempt, Millis, OpId};
use crate::json::{canonical_text, value_to_json};
use crate::operation::{Class, Phase, Way};
use crate::value::Value;

impl<'m> Turn<'m> {
    /// Opens the effect of the state that a flow instance has just entered.
    pub(super) fn open_effect(&mut self, id: NodeId, effect: &'m Effect) -> Result<(), Fault> {
        let parent = Parent { node: id, member: None };
        let mut scope = self.scope(id)?;
        let active = match effect {
            Effect::Wait => Active::Idle,
            Effect::Do(activity, args, _) => {
                Active::Op(self.open_activity(parent, id, &mut scope, *activity, args)?)
            }
            Effect::Run(flow, args, wait, _) => {
                Active::Child(self.open_run(parent, &mut scope, *flow, args, wait.as_ref())?)
            }
            Effect::Each(each) => Active::Child(self.open_each(parent, id, &mut scope, each)?),
            Effect::Parallel(parallel) => {
                Active::Child(self.open_parallel(parent, id, &mut scope, parallel)?)
            }
            Effect::Await(wait) => Active::Op(self.open_await(parent, id, &mut scope, wait)?),
            Effect::Ask(ask) => Active::Op(self.open_ask(parent, id, &mut scope, ask)?),
            Effect::Spawn(spawn) => self.open_spawn(id, &mut scope, spawn)?,
            Effect::Choose(branches) => {
                for (at, branch) in branches.iter().enumerate() {
                    let taken = match &branch.cond {
                        Some(cond) => holds(&mut self.env, &mut scope, cond)?,
                        None => true,
                    };
                    if taken {
                        self.note_branch(id, at)?;
                        return self.follow(id, scope, &branch.acts, &branch.goal);
                    }
                }
                return Err(Fault::NoArrow { outcome: "choose".to_owned() });
            }
            Effect::Match(subject, arms) => {
                let subject = eval(&mut self.env, &mut scope, subject)?;
                let (at, arm) = self.arm_that_fits(&mut scope, &subject, arms)?;
                self.note_branch(id, at)?;
                return self.follow(id, scope, &arm.acts, &arm.goal);
            }
        };
        self.flow_mut(id)?.active = active;
        Ok(())
    }

    fn note_branch(&mut self, id: NodeId, at: usize) -> Result<(), Fault> {
        self.spot = (Some(id), Spot::State(Way::Branch(super::enter::index(at)?)));
        self.note_taken(id, self.spot.1)
    }

    /// Returns the moment at which a wait ends.
    pub(super) fn wait(&mut self, scope: &mut Scope, wait: &Wait) -> Result<Option<Millis>, Fault> {
        let (Wait::Within(expr) | Wait::Until(expr)) = wait else { return Ok(None) };
        match eval(&mut self.env, scope, expr)? {
            Value::Duration(ms) => Ok(Some(self.s.time.plus(ms))),
            Value::Time(time) => Ok(Some(time)),
            other => Err(crate::eval::unexpected("a deadline", &other)),
        }
    }

    /// Opens an activity.
    pub(super) fn open_activity(
        &mut self,
        parent: Parent,
        flow: NodeId,
        scope: &mut Scope,
        ix: ActivityIx,
        args: &[Expr],
    ) -> Result<OpId, Fault> {
        let args = eval_all(&mut self.env, scope, args)?;
        self.open_activity_with(Owner::Work(parent), flow, ix, args)
    }

    /// Opens an activity on arguments; its budget is looked at.
    pub(super) fn open_activity_with(
        &mut self,
        owner: Owner,
        flow: NodeId,
        ix: ActivityIx,
        args: Arc<[Value]>,
    ) -> Result<OpId, Fault> {
        let def = &self.program.machine.activities[ix.at()];
        let (class, verify) = self.class(def.effect, &args);
        let due = self.s.time.plus(def.in_all_ms.unwrap_or(def.within_ms));
        let work = ActivityWork {
            activity: ix,
            args,
            class,
            verify,
            key: OpId(self.s.last, self.ops_made),
            attempt: Attempt::FIRST,
            uncounted: 0,
            begun: false,
            phase: Phase::Ready,
            not_before: None,
            handle: None,
            last: None,
            reserved: false,
            not_happened: 0,
            expired: false,
            forked: false,
            settling: false,
            doubtful: false,
        };
        let undo = matches!(owner, Owner::Work(_) | Owner::Also).then(|| Arc::clone(&work.args));
        let id = self.open(flow, owner, Some(due), Work::Activity(Box::new(work)))?;
        if let Some(args) = undo {
            self.note_undo(id, flow, ix, args);
        }
        self.queue_for_budget(id)?;
        Ok(id)
    }

    /// Returns the effect class of one call, and who can tell whether it happened.
    fn class(&self, effect: EffectClass, args: &[Value]) -> (Class, Option<ActivityIx>) {
        match effect {
            EffectClass::Pure => (Class::Pure, None),
            EffectClass::Idempotent => (Class::Idempotent, None),
            EffectClass::Once(verify) => (Class::Once, verify),
            EffectClass::From(catalogue, param, verify) => {
                let arg = args.get(param as usize);
                let call = arg.and_then(|arg| arg.field("value")).or(arg);
                let name = call.and_then(|call| call.field("name")).and_then(Value::as_text);
                let tools = &self.program.machine.catalogues[catalogue.at()].tools;
                let tool = tools.iter().find(|tool| Some(tool.name.as_str()) == name);
                match tool.map(|tool| tool.effect) {
                    Some(ToolEffect::Pure) => (Class::Pure, verify),
                    Some(ToolEffect::Idempotent) => (Class::Idempotent, verify),
                    // A tool that the catalogue does not know may do anything.
                    Some(ToolEffect::Once) | None => (Class::Once, verify),
                }
            }
        }
    }

    /// Starts a nested flow.
    pub(super) fn open_run(
        &mut self,
        parent: Parent,
        scope: &mut Scope,
        flow: FlowIx,
        args: &[Expr],
        wait: Option<&Wait>,
    ) -> Result<NodeId, Fault> {
        let params = eval_all(&mut self.env, scope, args)?;
        let due = match wait {
            Some(wait) => self.wait(scope, wait)?,
            None => None,
        };
        let id = self.start_flow(Some(parent), flow, params)?;
        self.arm_deadline(id, due)?;
        Ok(id)
    }

    /// Gives a node a deadline.
    pub(super) fn arm_deadline(&mut self, id: NodeId, due: Option<Millis>) -> Result<(), Fault> {
        if let Some(due) = due {
            let op = self.open(id, Owner::Deadline(id), Some(due), Work::Timer(None))?;
            self.node_mut(id)?.deadline = Some(op);
        }
        Ok(())
    }

    /// Opens a wait for messages.
    pub(super) fn open_await(
        &mut self,
        parent: Parent,
        flow: NodeId,
        scope: &mut Scope,
        wait: &Await,
    ) -> Result<OpId, Fault> {
        let runs = self.handles(scope, &wait.ended)?;
        let due = self.wait(scope, &wait.wait)?;
        let messages = &self.program.flow(self.flow(flow)?.flow).messages;
        let names = wait.messages.iter().map(|ix| messages[ix.at()].name.clone());
        let closed = wait.closed.then(|| "closed".to_owned());
        let names = names.chain(closed).collect();
        let work = if runs.is_empty() { Work::Await(names) } else { Work::AwaitEnded(runs, names) };
        self.open(flow, Owner::Work(parent), due, work)
    }

    /// Opens a question.
    pub(super) fn open_ask(
        &mut self,
        parent: Parent,
        flow: NodeId,
        scope: &mut Scope,
        ask: &Ask,
    ) -> Result<OpId, Fault> {
        let mut text = String::new();
        show(&eval(&mut self.env, scope, &ask.text)?, &mut text);
        let shown = match &ask.show {
            Some(expr) => eval(&mut self.env, scope, expr)?,
            None => Value::Nothing,
        };
        self.env.spend_on(&shown)?;
        let mut to = Vec::new();
        for who in &ask.to {
            let mut role = String::new();
            show(&eval(&mut self.env, scope, &who.role)?, &mut role);
            to.push((who.count.max(1), role));
        }
        let due = self.wait(scope, &ask.wait)?;
        let work = AskWork {
            shown: shown_hash(&text, &shown),
            text: text.into(),
            show: shown,
            shown_type: ask.shown.clone(),
            editable: ask.editable,
            answer: ask.answer.clone(),
            to,
            agreed: Vec::new(),
        };
        self.open(flow, Owner::Work(parent), due, Work::Ask(Box::new(work)))
    }

    /// Ends a node whose deadline is over.
    pub(super) fn deadline(&mut self, id: NodeId) -> Result<(), Fault> {
        self.spot = (Some(id), Spot::Effect);
        let problem = super::failure::problem("its time is over", "timeout", None, None, 0)?;
        let completion =
            Completion { problem: Some(problem), ..Completion::new(On::Timeout, Value::Nothing) };
        match &self.node(id)?.kind {
            super::parts::NodeKind::Flow(_) => self.end_node(id, completion),
            super::parts::NodeKind::Group(_) => self.end_group(id, completion),
        }
    }

    /// Follows one arrow without arms.
    pub(super) fn follow(
        &mut self,
        id: NodeId,
        mut scope: Scope,
        acts: &'m [outlast_dsl::machine::Act],
        goal: &'m Goal,
    ) -> Result<(), Fault> {
        self.sets(&mut scope, acts)?;
        self.go(id, scope, &[acts], goal)
    }
}

/// Hashes what a person is shown.
pub(super) fn shown_hash(text: &str, show: &Value) -> String {
    let json: Json = serde_json::json!({ "show": value_to_json(show), "text": text });
    blake3::hash(canonical_text(&json).as_bytes()).to_hex().to_string()
}
