//! Spawned runs: starting them, their end, and what becomes of them at the end of the run that spawned them.
//!
//! Leaves carrying news from run to run to the engine: what is to be carried is an open operation, and stays open until an event
//! acknowledges it. Invariant: leaving a state never forgets a run that may have been started.

use std::sync::Arc;

use outlast_dsl::machine::{Expr, Machine, Outcome as On, Spawn};

use super::State;
use super::parts::{
    Active, ChildWork, Completion, EndedChild, Member, NodeId, NodeKind, Owner, Parent, Work,
};
use super::turn::{Stop, Turn};
use crate::Json;
use crate::eval::{Scope, eval, eval_all, show};
use crate::event::{Config, Receipt, SpawnResult, Started};
use crate::fault::Fault;
use crate::ids::{OpId, RunId};
use crate::json::{Reader, Unknown, canonical_text, value_to_json};
use crate::limits::{CHILDREN_STOP_MS_MAX, QUOTE_CHARS_MAX, SPAWN_DEPTH_MAX};
use crate::operation::{EndNotice, OnClose, Outcome};
use crate::value::Value;

/// What the engine needs to start a spawned run.
#[derive(Clone, Debug)]
pub struct ChildStart {
    /// The run's id.
    pub run: RunId,
    /// Its machine.
    pub machine: Machine,
    /// Its first event.
    pub started: Started,
}

impl State {
    /// Returns how the run of an open spawn operation starts; the same whenever it is asked.
    #[must_use]
    pub fn child_start(&self, op: OpId) -> Option<ChildStart> {
        let Work::Spawn(child) = &self.core.ops.get(&op)?.work else { return None };
        let def = self.program.flow(child.flow);
        let machine = self.program.machine.rooted_at(child.flow);
        let named = def.params.iter().zip(child.args.iter());
        let input = named.map(|(param, arg)| (param.name.clone(), value_to_json(arg))).collect();
        let mut seed = [0; 8];
        let text = format!("{} {op} {}", self.core.seed, child.run);
        seed.copy_from_slice(&blake3::hash(text.as_bytes()).as_bytes()[..8]);
        let started = Started {
            flow: def.name.clone(),
            machine: machine.hash().0,
            edition: machine.edition,
            input: Json::Object(input),
            seed: u64::from_le_bytes(seed),
            // What a person allowed for this run is not allowed for another one.
            config: Config { grants: Vec::new(), ..(*self.core.config).clone() },
            parent: Some((self.core.run.clone(), op)),
            ancestors: self.core.ancestors.iter().chain([&self.core.run]).cloned().collect(),
            by: String::new(),
        };
        Some(ChildStart { run: child.run.clone(), machine, started })
    }
}

impl Turn<'_> {
    /// Opens the operation that starts a run.
    pub(super) fn open_spawn(
        &mut self,
        id: NodeId,
        scope: &mut Scope,
        spawn: &Spawn,
    ) -> Result<Active, Fault> {
        let args = eval_all(&mut self.env, scope, &spawn.args)?;
        if self.s.ancestors.len() + 1 > SPAWN_DEPTH_MAX {
            return Err(Fault::SpawnDepth);
        }
        let run = match &spawn.named {
            Some(name) => {
                let mut text = String::new();
                show(&eval(&mut self.env, scope, name)?, &mut text);
                RunId::new(&text)?
            }
            None => derived_id(&self.s.run, OpId(self.s.last, self.ops_made)),
        };
        let parent = Parent { node: id, member: None };
        if run == self.s.run || self.s.ancestors.contains(&run) {
            self.tasks.push(super::turn::Task::Complete(parent, Completion::new(On::Exists, Value::Nothing)));
            return Ok(Active::Idle);
        }
        let child = ChildWork {
            handle: run.clone(),
            run,
            derived: spawn.named.is_none(),
            flow: spawn.flow,
            args,
            on_close: if spawn.cancel { OnClose::Cancel } else { OnClose::Detach },
            cancelled: false,
        };
        let work = Work::Spawn(Box::new(child));
        Ok(Active::Op(self.open(id, Owner::Work(parent), None, work)?))
    }

    /// A run was started, or its id is taken.
    pub(super) fn spawned(&mut self, id: OpId, result: &SpawnResult) -> Result<(), Stop> {
        let op = self.s.ops.get(&id).cloned();
        let Some((op, child)) = op.as_ref().and_then(|op| match &op.work {
            Work::Spawn(child) => Some((op, child)),
            _ => None,
        }) else {
            return Err(not_open(id, "a run to be started"));
        };
        let completion = match result {
            SpawnResult::Run(run) if *run != child.run => {
                return Err(Stop::Diverged(format!("run {} of {id}", child.run), run.to_string()));
            }
            SpawnResult::Run(_) => {
                let mut running = op.edit();
                running.owner = Owner::Run;
                running.work = Work::Child(child.clone());
                self.s.ops.insert_mut(id, Arc::new(running));
                Completion::new(On::Ok, Value::text(child.handle.as_str()))
            }
            SpawnResult::Exists => {
                self.remove(id);
                Completion::new(On::Exists, Value::Nothing)
            }
        };
        if let Owner::Work(parent) = op.owner {
            self.flow_mut(parent.node)?.active = Active::Idle;
            self.tasks.push(super::turn::Task::Complete(parent, completion));
        }
        Ok(self.children_moved()?)
    }

    /// A start is acknowledged that nobody waits for any more.
    pub(super) fn child_runs(&mut self, id: OpId) {
        let Some(op) = self.s.ops.get(&id) else { return };
        let mut running = op.edit();
        running.owner = Owner::Run;
        if let Work::Spawn(child) = running.work {
            running.work = Work::Child(child);
            self.s.ops.insert_mut(id, Arc::new(running));
        }
    }

    /// A spawned run ended.
    pub(super) fn child_ended(&mut self, id: OpId, outcome: &Outcome) -> Result<(), Stop> {
        let op = self.s.ops.get(&id).cloned();
        let Some(child) = op.as_ref().and_then(|op| match &op.work {
            Work::Child(child) => Some(child),
            _ => None,
        }) else {
            return Err(not_open(id, "a spawned run"));
        };
        self.remove(id);
        let told = self.s.ops.values().find(|op| matches!(&op.work, Work::CancelChild(of, _) if *of == id));
        if let Some(told) = told.map(|op| op.id) {
            // There is nothing to cancel any more.
            self.remove(told);
        }
        let end = EndedChild { n: self.fact, flow: child.flow, outcome: outcome.clone() };
        self.s.ended.insert_mut(child.handle.clone(), Arc::new(end));
        let waits = |op: &&Arc<super::Op>| match &op.work {
            Work::AwaitEnded(runs, _) => runs.contains(&child.handle),
            _ => false,
        };
        let waiting: Vec<_> = self.s.ops.values().filter(waits).map(|op| op.id).collect();
        for op in waiting {
            self.take_ended(op, &child.handle)?;
        }
        Ok(self.children_moved()?)
    }

    /// News for another run arrived, or never will.
    pub(super) fn delivered(&mut self, id: OpId, receipt: &Receipt) -> Result<(), Stop> {
        let Some(op) = self.s.ops.get(&id).cloned() else { return Err(not_open(id, "news")) };
        match &op.work {
            Work::CancelChild(of, _) => {
                self.remove(id);
                if matches!(receipt, Receipt::Refused(_)) {
                    // It has ended or is gone: it is not waited for, but may still tell its end.
                    self.edit_child(*of, |child| child.on_close = OnClose::Detach)?;
                }
                Ok(self.children_moved()?)
            }
            Work::TellParent(notice) => {
                let outcome = Arc::new(notice.outcome.clone());
                self.remove(id);
                self.end_run(outcome);
                Ok(())
            }
            _ => Err(not_open(id, "news")),
        }
    }

    fn edit_child(&mut self, id: OpId, change: impl FnOnce(&mut ChildWork)) -> Result<(), Fault> {
        let Some(op) = self.s.ops.get(&id) else { return Ok(()) };
        let mut op = op.edit();
        if let Work::Child(child) = &mut op.work {
            change(child);
            self.s.ops.insert_mut(id, Arc::new(op));
        }
        Ok(())
    }

    /// Lets an open wait take the end of a run.
    pub(super) fn take_ended(&mut self, id: OpId, handle: &RunId) -> Result<(), Fault> {
        let Some(op) = self.s.ops.get(&id).cloned() else { return Ok(()) };
        let (Work::AwaitEnded(runs, types), Owner::Work(parent)) = (&op.work, op.owner) else {
            return Ok(());
        };
        let completion = Completion::new(On::Ended, self.ended_payload(handle)?);
        if parent.member.is_some() {
            return self.complete_op(id, completion);
        }
        // An arrow may stay: then the wait goes on for the others.
        let mut rest = op.edit();
        let left = runs.iter().filter(|run| *run != handle).cloned().collect();
        rest.work = Work::AwaitEnded(left, Arc::clone(types));
        self.s.ops.insert_mut(id, Arc::new(rest));
        self.tasks.push(super::turn::Task::Mail(parent.node));
        self.take(parent.node, &completion)
    }

    /// Returns the earliest end that an open wait of a flow instance has not taken.
    pub(super) fn ended_before(&self, id: NodeId) -> Option<(crate::ids::Seq, OpId, RunId)> {
        if self.s.ended.is_empty() {
            return None;
        }
        let of_op = |op: OpId| {
            let Work::AwaitEnded(runs, _) = &self.s.ops.get(&op)?.work else { return None };
            runs.iter().filter_map(|run| Some((self.s.ended.get(run)?.n, op, run.clone()))).min()
        };
        match &self.s.nodes.get(&id)?.kind {
            NodeKind::Flow(flow) => match flow.active {
                Active::Op(op) => of_op(op),
                Active::Child(child) => match &self.s.nodes.get(&child)?.kind {
                    NodeKind::Group(group) => {
                        let ops = group.members.iter().filter_map(|member| match member {
                            Member::Op(op) => Some(*op),
                            Member::NotStarted
                            | Member::Node(_)
                            | Member::Done(_)
                            | Member::Failed(_)
                            | Member::Cut => None,
                        });
                        ops.filter_map(of_op).min()
                    }
                    NodeKind::Flow(_) => None,
                },
                Active::Idle | Active::Stopped | Active::Undoing => None,
            },
            NodeKind::Group(_) => None,
        }
    }

    /// Returns what an arrow on `ended` sees.
    fn ended_payload(&self, handle: &RunId) -> Result<Value, Fault> {
        let end = self.s.ended.get(handle);
        let end = end.ok_or_else(|| Fault::inconsistent("a run has not ended"))?;
        let failed = |text: &str, kind: &str| -> Result<Value, Fault> {
            let problem = super::failure::problem(text, kind, None, None, 0)?;
            Ok(Value::record(Some("Failed"), [("error", problem)])?)
        };
        let outcome = match &end.outcome {
            Outcome::Done(json) => {
                let reader = Reader {
                    machine: &self.program.machine,
                    shapes: &self.program.shapes,
                    unknown: Unknown::Drop,
                };
                match reader.read(&self.program.flow(end.flow).result, json) {
                    Ok(value) => Value::record(Some("Done"), [("value", value)])?,
                    // Another version of the flow may give something else.
                    Err(mismatch) => failed(&format!("its result does not fit: {mismatch}"), "failed")?,
                }
            }
            Outcome::Failed(json) => {
                let text = |name: &str| json.get(name).and_then(Json::as_str).map(str::to_owned);
                let shown = text("text")
                    .or_else(|| text("detail"))
                    .unwrap_or_else(|| canonical_text(json).chars().take(QUOTE_CHARS_MAX).collect());
                failed(&shown, &text("type").unwrap_or_else(|| "failed".to_owned()))?
            }
            Outcome::Cancelled | Outcome::Terminated => Value::record(Some("Cancelled"), [])?,
        };
        Ok(Value::record(None, [("outcome", outcome), ("handle", Value::text(handle.as_str()))])?)
    }

    /// Evaluates the handles of a wait.
    pub(super) fn handles(&mut self, scope: &mut Scope, handles: &[Expr]) -> Result<Arc<[RunId]>, Fault> {
        let mut runs = Vec::new();
        for handle in handles {
            let value = eval(&mut self.env, scope, handle)?;
            let run = value.as_text().and_then(|text| RunId::new(text).ok());
            runs.push(run.ok_or_else(|| Fault::inconsistent("a handle names no run"))?);
        }
        Ok(runs.into())
    }

    /// Tells the spawned runs that are to stop with this one; says whether one is still to be waited for.
    pub(super) fn stop_children(&mut self) -> Result<bool, Fault> {
        let mut waits = false;
        let open: Vec<_> = self.s.ops.values().cloned().collect();
        for op in open {
            match &op.work {
                Work::Spawn(child) if child.on_close == OnClose::Cancel => waits = true,
                Work::Child(child) if child.on_close == OnClose::Cancel => {
                    waits = true;
                    if !child.cancelled {
                        self.edit_child(op.id, |child| child.cancelled = true)?;
                        let work = Work::CancelChild(op.id, child.clone());
                        self.open(op.flow, Owner::Run, None, work)?;
                    }
                }
                Work::Spawn(_)
                | Work::Child(_)
                | Work::Activity(_)
                | Work::Timer(_)
                | Work::Await(_)
                | Work::AwaitEnded(..)
                | Work::Ask(_)
                | Work::CancelChild(..)
                | Work::TellParent(_) => {}
            }
        }
        Ok(waits)
    }

    /// Opens the bound of the wait for spawned runs that stop.
    pub(super) fn bound_children(&mut self, id: NodeId) -> Result<OpId, Fault> {
        let due = self.s.time.plus(CHILDREN_STOP_MS_MAX);
        self.open(id, Owner::Children, Some(due), Work::Timer(None))
    }

    /// Something about spawned runs changed while the run is being left.
    fn children_moved(&mut self) -> Result<(), Fault> {
        let bound = self.s.ops.values().find(|op| op.owner == Owner::Children).map(|op| op.id);
        if let Some(bound) = bound
            && !self.stop_children()?
        {
            self.children_stopped(bound)?;
        }
        Ok(())
    }

    /// Spawned runs stopped, or took too long: what was waiting for them goes on.
    pub(super) fn children_stopped(&mut self, bound: OpId) -> Result<(), Fault> {
        self.remove(bound);
        if self.s.cancelling.as_ref().is_some_and(|cancelling| cancelling.children == Some(bound)) {
            return self.next_clean_up();
        }
        if let Some(root) = self.s.root {
            self.tasks.push(super::turn::Task::Undo(root));
        }
        Ok(())
    }

    /// Opens the operation that tells the run above of the end; says whether there is one.
    pub(super) fn tell_parent(&mut self, outcome: &Outcome) -> Result<bool, Fault> {
        let Some(parent) = self.s.parent.clone() else { return Ok(false) };
        let (run, op) = (parent.0.clone(), parent.1);
        let notice = EndNotice { parent: run, op, outcome: outcome.clone() };
        let nobody = NodeId(self.s.last, 0);
        self.open(nobody, Owner::Run, None, Work::TellParent(Box::new(notice)))?;
        Ok(true)
    }

    /// A fork has no part in the runs that its parent spawned, unless it is to share them or spawn them again.
    pub(super) fn fork_child(
        &mut self,
        id: OpId,
        children: crate::event::ChildrenOfFork,
    ) -> Result<(), Fault> {
        use crate::event::ChildrenOfFork::{Again, Share, Unknown};
        let op = self.op(id)?;
        let mut edited = op.edit();
        edited.work = match (&op.work, children) {
            (Work::CancelChild(..) | Work::TellParent(_), _) | (Work::Child(_), Unknown) => {
                self.remove(id);
                return Ok(());
            }
            (Work::Child(child), Share) => {
                Work::Child(Box::new(ChildWork { on_close: OnClose::Detach, ..(**child).clone() }))
            }
            // A start that is not acknowledged is the parent's; the fork starts its own.
            (Work::Child(child), Again) | (Work::Spawn(child), _) => {
                let run = if child.derived { derived_id(&self.s.run, id) } else { child.run.clone() };
                let handle =
                    if matches!(op.work, Work::Spawn(_)) { run.clone() } else { child.handle.clone() };
                Work::Spawn(Box::new(ChildWork { run, handle, cancelled: false, ..(**child).clone() }))
            }
            (
                Work::Activity(_) | Work::Timer(_) | Work::Await(_) | Work::AwaitEnded(..) | Work::Ask(_),
                _,
            ) => {
                return Ok(());
            }
        };
        self.s.ops.insert_mut(id, Arc::new(edited));
        Ok(())
    }
}

/// Makes the id of a run from the id of the run that spawns it and the operation.
fn derived_id(run: &RunId, op: OpId) -> RunId {
    let text = format!("{run}~{op}");
    RunId::new(&text).unwrap_or_else(|_| {
        // Too long, as it happens deep down: a part stays readable, the hash tells them apart.
        let hash = blake3::hash(text.as_bytes()).to_hex();
        let kept: String = text.chars().take(RunId::LENGTH_MAX - 34).collect();
        let short = format!("{kept}~{}", &hash[..32]);
        RunId::new(&short).unwrap_or_else(|_| unreachable!("a part of a run id and digits are a run id"))
    })
}

fn not_open(id: OpId, what: &str) -> Stop {
    Stop::Diverged(format!("{what} as an open operation"), format!("{id}, which is not that"))
}
