//! Doubts: a `once` attempt was begun and will never answer.
//!
//! In this order: a handle resumes it, a verifier is asked, an arrow on `unknown` is taken, a person is waited for.
//! Invariant: no path leads from a doubt to another attempt without someone who knows that it did not happen.

use std::sync::Arc;

use outlast_dsl::machine::{Activity, ActivityIx, Outcome as On, Type};

use super::parts::{Completion, Happened, NodeId, NodeKind, Op, Owner, Work};
use super::results::GroupDef;
use super::turn::{Stop, Turn};
use crate::event::{Failure, Settlement};
use crate::fault::Fault;
use crate::ids::OpId;
use crate::json::{Reader, Unknown};
use crate::limits::{LOSSES_MAX, NOT_HAPPENED_MAX};
use crate::operation::Phase;
use crate::value::Value;

impl Turn<'_> {
    /// Looks for a way out of a doubt.
    pub(super) fn in_doubt(&mut self, id: OpId) -> Result<(), Fault> {
        let op = self.op(id)?;
        let Work::Activity(work) = &op.work else { return Ok(()) };
        let used = super::activity::attempts_used(work, work.attempt);
        if work.handle.is_some() && !work.expired && !work.forked && !work.settling && used < LOSSES_MAX {
            return self.next_attempt(id, work.attempt, None);
        }
        match work.verify {
            Some(verify) if !work.forked => self.verify(&op, verify),
            Some(_) | None => self.undecided(id),
        }
    }

    /// Asks the verifier, with the same input and idempotency key.
    fn verify(&mut self, op: &Op, verify: ActivityIx) -> Result<(), Fault> {
        let Work::Activity(work) = &op.work else { return Ok(()) };
        let params = &self.program.machine.activities[verify.at()].params;
        // A verifier may take the bare value where the activity wants it approved.
        let plain =
            |(param, arg): (&outlast_dsl::machine::Param, &Value)| match (&param.ty, arg.field("value")) {
                (Type::Approved(_), _) | (_, None) => arg.clone(),
                (_, Some(value)) if arg.tag().is_none() && arg.field("by").is_some() => value.clone(),
                (_, Some(_)) => arg.clone(),
            };
        let args: Arc<[Value]> = params.iter().zip(work.args.iter()).map(plain).collect();
        let verifier = self.open_activity_with(Owner::Verify(op.id), op.flow, verify, args)?;
        let key = work.key;
        self.edit_activity(verifier, |work| work.key = key)?;
        self.edit_activity(op.id, |work| work.phase = Phase::Verifying(verifier))
    }

    /// Takes a verifier's word.
    pub(super) fn verified(&mut self, of: OpId, completion: &Completion) -> Result<(), Fault> {
        let op = self.op(of)?;
        let Work::Activity(work) = &op.work else { return Ok(()) };
        let verdict = if completion.outcome == On::Ok { completion.payload.tag() } else { None };
        match verdict {
            Some("Happened") => {
                let result = completion.payload.field("result").cloned().unwrap_or(Value::Nothing);
                self.complete_op(of, Completion::new(On::Ok, result))
            }
            Some("NotHappened") => {
                let activity = &self.program.machine.activities[work.activity.at()];
                let used = super::activity::attempts_used(work, work.attempt);
                if work.settling {
                    return self.settle_op(of, Happened::No);
                }
                if work.expired {
                    let completion = self.timeout_completion(activity, used)?;
                    return self.complete_op(of, Completion { happened: Happened::No, ..completion });
                }
                if work.not_happened >= NOT_HAPPENED_MAX {
                    let text = "it did not happen, again and again";
                    return self.fail(of, activity, text, used);
                }
                self.edit_activity(of, |work| work.not_happened += 1)?;
                self.next_attempt(of, work.attempt, None)
            }
            Some(_) | None => self.undecided(of),
        }
    }

    fn fail(&mut self, id: OpId, activity: &Activity, text: &str, used: u32) -> Result<(), Fault> {
        let error = Failure { kind: "failed".to_owned(), text: text.to_owned(), ..Failure::default() };
        let completion = self.failed_completion(activity, &error, used)?;
        self.complete_op(id, completion)
    }

    /// Takes the arrow on `unknown`, or waits for a person.
    pub(super) fn undecided(&mut self, id: OpId) -> Result<(), Fault> {
        let op = self.op(id)?;
        let Work::Activity(work) = &op.work else { return Ok(()) };
        if work.settling {
            return self.settle_op(id, Happened::Maybe);
        }
        let activity = &self.program.machine.activities[work.activity.at()];
        if let Owner::Work(parent) = op.owner
            && self.takes_unknown(parent.node, parent.member, activity)?
        {
            let used = super::activity::attempts_used(work, work.attempt);
            let named = self.s.undos.contains_key(&id).then_some(id);
            let completion = self.unknown_completion(activity, named, used)?;
            return self.complete_op(id, completion);
        }
        self.hold(id, "whether it happened is unknown".to_owned())
    }

    /// Says whether someone up to the flow instance has a place for an unknown outcome.
    fn takes_unknown(&self, id: NodeId, member: Option<u32>, activity: &Activity) -> Result<bool, Fault> {
        let node = self.node(id)?;
        let flow = match &node.kind {
            NodeKind::Flow(flow) => flow,
            NodeKind::Group(group) => {
                let (yields, keep_going) = match self.group_def(id)? {
                    GroupDef::Each(each) => (&each.yields, each.keep_going),
                    GroupDef::Parallel(parallel) => {
                        (&parallel.regions[member.unwrap_or(0) as usize].yields, false)
                    }
                };
                if yields.iter().any(|arrow| arrow.on.contains(&On::Unknown)) {
                    return Ok(true);
                }
                if keep_going {
                    return Ok(!activity.unknown_holds);
                }
                // A nested group passes it on to the group around it.
                return match node.parent {
                    Some(parent) if parent.node != group.flow => {
                        self.takes_unknown(parent.node, parent.member, activity)
                    }
                    Some(_) | None => self.takes_unknown(group.flow, None, activity),
                };
            }
        };
        let def = self.program.flow(flow.flow);
        let state = &def.states[flow.state.at()];
        Ok(state.arrows.iter().chain(&def.arrows).any(|arrow| arrow.on.contains(&On::Unknown)))
    }

    /// A person settled a doubt.
    pub(super) fn settled(&mut self, id: OpId, verdict: &Settlement, by: &str) -> Result<(), Stop> {
        let (op, activity) = self.named(id, None)?;
        let Work::Activity(work) = &op.work else { return Ok(()) };
        if let Phase::Verifying(verifier) = work.phase {
            self.close(verifier);
        }
        let verdict = match verdict {
            Settlement::NotHappened if work.settling => {
                return Ok(self.settle_op(id, Happened::No)?);
            }
            verdict => verdict,
        };
        match verdict {
            Settlement::Happened(json) => {
                let reader = Reader {
                    machine: &self.program.machine,
                    shapes: &self.program.shapes,
                    unknown: Unknown::Drop,
                };
                let value = reader.read(&activity.result, json).map_err(|mismatch| {
                    Stop::Diverged(format!("a result of {}", activity.name), mismatch.to_string())
                })?;
                self.complete_op(id, Completion::new(On::Ok, value))?;
            }
            Settlement::NotHappened => {
                if work.forked {
                    // The next attempt is the fork's own, and so is what it does.
                    self.note_undo(id, op.flow, work.activity, Arc::clone(&work.args));
                }
                let due = self.s.time.plus(activity.in_all_ms.unwrap_or(activity.within_ms));
                self.set_due(id, Some(due))?;
                self.edit_activity(id, |work| {
                    work.expired = false;
                    work.forked = false;
                    work.handle = None;
                    work.uncounted = work.attempt.0;
                })?;
                self.next_attempt(id, work.attempt, None)?;
            }
            Settlement::Fail => {
                let used = super::activity::attempts_used(work, work.attempt);
                self.fail(id, activity, &format!("settled as failed by {by}"), used)?;
            }
        }
        Ok(())
    }
}
