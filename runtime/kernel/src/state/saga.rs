//! Sagas: what may have happened is undone when the flow is left by failure, cancel or a broken limit.
//!
//! An operation with an undo is noted when it opens; a failure with an answer strikes it off, a result is kept for the undo.
//! A saga that is left lets what is in hand settle, then undoes one operation at a time, the latest first. Invariant: whatever
//! is noted when a saga is left is undone, or reported as failed or left; a saga that is cut off from outside undoes on its own.

use std::sync::Arc;

use outlast_dsl::machine::{ActivityIx, Outcome as On};

use super::parts::{
    Active, ActivityWork, Completion, Happened, NodeId, NodeKind, Op, Owner, Report, Undo, Undoing,
};
use super::turn::{Task, Turn};
use crate::Json;
use crate::fault::Fault;
use crate::ids::OpId;
use crate::json::value_to_json;
use crate::operation::{Class, Outcome, Phase};
use crate::value::Value;

impl Turn<'_> {
    /// Returns the innermost saga that a flow instance is part of, itself included.
    pub(super) fn saga_of(&self, id: NodeId) -> Option<NodeId> {
        let mut next = Some(id);
        while let Some(id) = next {
            let node = self.s.nodes.get(&id)?;
            if let NodeKind::Flow(flow) = &node.kind
                && self.program.flow(flow.flow).saga
            {
                return Some(id);
            }
            next = node.parent.map(|parent| parent.node);
        }
        None
    }

    /// Notes an operation that was opened, if it has an undo and is part of a saga.
    pub(super) fn note_undo(&mut self, op: OpId, flow: NodeId, activity: ActivityIx, args: Arc<[Value]>) {
        if self.program.machine.activities[activity.at()].undo.is_none() {
            return;
        }
        if let Some(saga) = self.saga_of(flow) {
            let undo = Undo { saga, activity, args, result: None };
            self.s.undos.insert_mut(op, Arc::new(undo));
        }
    }

    /// Notes how an operation ended.
    pub(super) fn note_end(&mut self, op: OpId, completion: &Completion) {
        let Some(undo) = self.s.undos.get(&op) else { return };
        let always =
            self.program.machine.activities[undo.activity.at()].undo.is_some_and(|(_, always)| always);
        match completion.happened {
            Happened::Yes => self.note_result(op, Some(completion.payload.clone())),
            Happened::No if always => {}
            Happened::No => {
                self.s.undos.remove_mut(&op);
            }
            Happened::Maybe => {}
        }
    }

    /// Notes the result of an operation that happened.
    pub(super) fn note_result(&mut self, op: OpId, result: Option<Value>) {
        if let Some(undo) = self.s.undos.get(&op) {
            let undo = Undo { result, ..(**undo).clone() };
            self.s.undos.insert_mut(op, Arc::new(undo));
        }
    }

    /// An arrow says what became of an operation in doubt; that matters to the undo stack only.
    pub(super) fn settle_doubt(&mut self, doubt: &Value, verdict: &Value) {
        let op = doubt.field("op").and_then(Value::as_text).and_then(|text| text.parse::<OpId>().ok());
        let Some(op) = op else { return };
        match verdict.tag() {
            Some("Happened") => self.note_result(op, verdict.field("result").cloned()),
            Some("NotHappened") => {
                self.s.undos.remove_mut(&op);
            }
            Some(_) | None => {}
        }
    }

    /// Closes an operation with an undo that is cut off: what is in hand may have to settle first.
    pub(super) fn cut_off(&mut self, op: &Op, work: &ActivityWork) {
        if matches!(op.owner, Owner::Settling | Owner::Undo(..)) {
            return;
        }
        if self.in_hand(work) {
            let mut settling = op.edit();
            settling.owner = Owner::Settling;
            self.s.ops.insert_mut(op.id, Arc::new(settling));
            self.cut.push(op.id);
            return;
        }
        let always = self
            .s
            .undos
            .get(&op.id)
            .and_then(|undo| self.program.machine.activities[undo.activity.at()].undo)
            .is_some_and(|(_, always)| always);
        let kept = work.begun || work.doubtful || (always && work.attempt.0 > 1);
        if !kept {
            self.s.undos.remove_mut(&op.id);
        }
        self.remove(op.id);
    }

    /// Says whether a worker may have an attempt in hand.
    fn in_hand(&self, work: &ActivityWork) -> bool {
        match (&work.phase, work.class) {
            (Phase::Begun { .. } | Phase::Verifying(_), _) => true,
            (Phase::Ready, class) => class != Class::Once,
            (Phase::RetryAt(time), class) => class != Class::Once && *time <= self.s.time,
            (Phase::Held(_) | Phase::Budget, _) => false,
        }
    }

    /// Decides what becomes of everything that this event cut off, now that all else is at rest.
    pub(super) fn settle_cuts(&mut self) -> Result<(), Fault> {
        for id in std::mem::take(&mut self.cut) {
            let saga = self.s.undos.get(&id).map(|undo| undo.saga);
            let leaving = saga.is_some_and(|saga| self.is_undoing(saga));
            if leaving && self.s.ops.contains_key(&id) {
                self.edit_activity(id, |work| work.settling = true)?;
            } else {
                self.remove(id);
            }
        }
        for (saga, _) in std::mem::take(&mut self.cut_sagas) {
            self.tasks.push(Task::Undo(saga));
        }
        Ok(())
    }

    pub(super) fn is_undoing(&self, id: NodeId) -> bool {
        self.flow(id).is_ok_and(|flow| flow.undoing.is_some())
    }

    /// Returns the saga around a node that is being left, if one is.
    pub(super) fn heir(&self, id: NodeId) -> Option<NodeId> {
        let saga = self.saga_of(self.s.nodes.get(&id)?.parent?.node)?;
        if self.is_undoing(saga) { Some(saga) } else { self.heir(saga) }
    }

    /// Begins to leave a saga: from now on it takes over what is cut off inside it.
    pub(super) fn begin_undoing(&mut self, id: NodeId) -> Result<(), Fault> {
        // One that undoes already goes on by itself.
        let inside =
            |(cut, outer): &&(NodeId, Option<NodeId>)| *outer == Some(id) && !self.is_in_progress(*cut);
        let cut: Vec<_> = self.cut_sagas.iter().filter(inside).map(|(cut, _)| *cut).collect();
        for inner in cut {
            self.cut_sagas.retain(|(known, _)| *known != inner);
            self.inherit(inner, Some(id));
            self.s.orphans.remove_mut(&inner);
            self.s.nodes.remove_mut(&inner);
        }
        let flow = self.flow_mut(id)?;
        if flow.undoing.is_none() {
            flow.undoing = Some(Box::default());
        }
        Ok(())
    }

    /// Leaves a saga: everything in it is closed, then undone, then `then` is told.
    pub(super) fn leave_saga(&mut self, id: NodeId, then: Completion) -> Result<(), Fault> {
        self.begin_undoing(id)?;
        self.leave(id)?;
        let deadline = self.node_mut(id)?.deadline.take();
        let flow = self.flow_mut(id)?;
        let limits = std::mem::take(&mut flow.limits);
        flow.active = Active::Undoing;
        let undoing = flow.undoing.get_or_insert_default();
        undoing.then = Some(then);
        for op in limits.into_iter().map(|(_, op)| op).chain(deadline) {
            self.close(op);
        }
        let has_undos = self.s.undos.values().any(|undo| undo.saga == id);
        if self.s.root == Some(id) && has_undos && self.stop_children()? {
            self.bound_children(id)?;
        }
        self.tasks.push(Task::Undo(id));
        Ok(())
    }

    /// Gives the undo stack of a saga to the one around it, or drops it.
    pub(super) fn inherit(&mut self, from: NodeId, to: Option<NodeId>) {
        let own = self.s.undos.iter().filter(|(_, undo)| undo.saga == from);
        let own: Vec<_> = own.map(|(op, undo)| (*op, Arc::clone(undo))).collect();
        for (op, undo) in own {
            match to {
                Some(saga) => {
                    self.s.undos.insert_mut(op, Arc::new(Undo { saga, ..(*undo).clone() }));
                }
                None => {
                    self.s.undos.remove_mut(&op);
                }
            }
        }
    }

    /// Cuts a saga off from outside: it undoes on its own. Its node is closed already, except for itself.
    pub(super) fn cut_off_saga(&mut self, id: NodeId, outer: Option<NodeId>) {
        if !self.s.undos.values().any(|undo| undo.saga == id) && !self.is_in_progress(id) {
            self.s.nodes.remove_mut(&id);
            return;
        }
        let Ok(node) = self.node_mut(id) else { return };
        node.parent = None;
        node.deadline = None;
        let NodeKind::Flow(flow) = &mut node.kind else { return };
        flow.timers.clear();
        flow.limits.clear();
        flow.active = Active::Undoing;
        let undoing = flow.undoing.get_or_insert_default();
        undoing.then = None;
        undoing.queued = false;
        self.s.orphans.insert_mut(id);
        self.cut_sagas.push((id, outer));
    }

    fn is_in_progress(&self, id: NodeId) -> bool {
        let undoing = self.flow(id).ok().and_then(|flow| flow.undoing.as_ref());
        undoing.is_some_and(|undoing| undoing.current.is_some())
    }

    /// Undoes the next operation of a saga, or ends it if none is left.
    pub(super) fn undo_next(&mut self, id: NodeId) -> Result<(), Fault> {
        let Some(undoing) = self.flow(id).ok().and_then(|flow| flow.undoing.clone()) else { return Ok(()) };
        let is_orphan = self.s.orphans.contains(&id);
        let waits = undoing.queued
            || undoing.current.is_some()
            || (self.s.root == Some(id) && self.s.ops.values().any(|op| op.owner == Owner::Children))
            || self.s.undos.iter().any(|(op, undo)| undo.saga == id && self.s.ops.contains_key(op))
            // What was cut off inside it comes first.
            || (!is_orphan && !self.s.orphans.is_empty());
        if waits {
            return Ok(());
        }
        let next = self.s.undos.iter().rev().find(|(_, undo)| undo.saga == id);
        let next = next.map(|(op, undo)| (*op, Arc::clone(undo)));
        let Some((op, undo)) = next.filter(|_| undoing.failed.is_empty()) else {
            return self.all_undone(id, *undoing);
        };
        let Some((by, _)) = self.program.machine.activities[undo.activity.at()].undo else {
            return Err(Fault::inconsistent("an operation without undo is to be undone"));
        };
        let result = undo.result.clone().unwrap_or(Value::None);
        let args = undo.args.iter().cloned().chain([result]).collect();
        let current = self.open_activity_with(Owner::Undo(id, op), id, by, args)?;
        if let Some(undoing) = &mut self.flow_mut(id)?.undoing {
            undoing.current = Some(current);
        }
        Ok(())
    }

    /// An operation was undone, or could not be.
    pub(super) fn undone(&mut self, saga: NodeId, op: OpId, completion: &Completion) -> Result<(), Fault> {
        let record = match self.s.undos.get(&op) {
            Some(undo) => self.undo_record(undo, completion.problem.clone())?,
            None => return Err(Fault::inconsistent("what was undone is not known")),
        };
        self.s.undos.remove_mut(&op);
        if let Some(undoing) = &mut self.flow_mut(saga)?.undoing {
            undoing.current = None;
            let list = if completion.outcome == On::Ok { &mut undoing.undone } else { &mut undoing.failed };
            list.push(record);
        }
        self.tasks.push(Task::Undo(saga));
        Ok(())
    }

    fn undo_record(&self, undo: &Undo, problem: Option<Value>) -> Result<Value, Fault> {
        let def = &self.program.machine.activities[undo.activity.at()];
        let named = def.params.iter().zip(undo.args.iter());
        let input = named.map(|(param, arg)| (param.name.clone(), value_to_json(arg))).collect();
        let fields = [
            ("activity", Value::text(&def.name)),
            ("input", Value::json(Json::Object(input))?),
            ("problem", problem.unwrap_or(Value::None)),
        ];
        Ok(Value::record(None, fields)?)
    }

    /// Takes what is left of the stacks of some sagas, the latest first.
    pub(super) fn left_of(&mut self, of: impl Fn(NodeId) -> bool) -> Result<Vec<Value>, Fault> {
        let left = self.s.undos.iter().rev().filter(|(_, undo)| of(undo.saga));
        let left: Vec<_> = left.map(|(op, undo)| (*op, Arc::clone(undo))).collect();
        let mut records = Vec::new();
        for (op, undo) in left {
            records.push(self.undo_record(&undo, None)?);
            self.s.undos.remove_mut(&op);
        }
        Ok(records)
    }

    /// A saga has undone all that it could.
    fn all_undone(&mut self, id: NodeId, undoing: Undoing) -> Result<(), Fault> {
        let Undoing { then, undone, failed, .. } = undoing;
        let left = self.left_of(|saga| saga == id)?;
        let report = Report { undone, failed, left };
        if self.s.orphans.contains(&id) {
            self.s.orphans.remove_mut(&id);
            self.s.nodes.remove_mut(&id);
            let waiting = self
                .s
                .nodes
                .iter()
                .filter(|(_, node)| matches!(&node.kind, NodeKind::Flow(flow) if flow.undoing.is_some()));
            let waiting: Vec<_> = waiting.map(|(id, _)| Task::Undo(*id)).collect();
            self.tasks.extend(waiting);
            return Ok(());
        }
        let Some(then) = then else {
            // Those that a cancel stopped tell nobody; one that a clean-up runs tells it.
            if self.s.cancelling.is_none() {
                return Err(Fault::inconsistent("nobody is told that a saga is undone"));
            }
            return self.cancelled_saga_undone(id, report);
        };
        let flow = self.flow_mut(id)?;
        flow.undoing = None;
        flow.active = Active::Idle;
        if report.failed.is_empty() {
            return self.end_node_at_last(id, then);
        }
        let completion = Completion::new(On::UndoFailed, report_value(report)?);
        // The saga may go on from there by itself; it has nothing to undo any more.
        match self.choose_in_flow(id, &completion)? {
            Some(chosen) => self.go_along(id, chosen),
            None => self.end_node_at_last(id, completion),
        }
    }

    /// Returns how a run ends that is stopped at once: what could have been undone is left.
    pub(super) fn cancelled_outcome(&mut self, mut report: Report) -> Outcome {
        let left = self.left_of(|_| true).unwrap_or_default();
        report.left.extend(left);
        self.cancelled_outcome_of(&report)
    }

    /// Returns how a cancelled run ends.
    pub(super) fn cancelled_outcome_of(&self, report: &Report) -> Outcome {
        if report.failed.is_empty() && report.left.is_empty() {
            return Outcome::Cancelled;
        }
        match report_value(report.clone()) {
            Ok(report) => undo_failed(&report),
            Err(_) => Outcome::Cancelled,
        }
    }
}

/// Returns the payload of `undo_failed`.
fn report_value(report: Report) -> Result<Value, Fault> {
    let Report { undone, failed, left } = report;
    let fields =
        [("undone", Value::list(undone)?), ("failed", Value::list(failed)?), ("left", Value::list(left)?)];
    Ok(Value::record(None, fields)?)
}

/// Returns how a run ends whose outermost saga could not undo everything.
pub(super) fn undo_failed(report: &Value) -> Outcome {
    let mut json = value_to_json(report);
    json["type"] = Json::from("UndoFailed");
    Outcome::Failed(json)
}
