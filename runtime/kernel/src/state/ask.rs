//! Answers to questions.
//!
//! Invariant: the first reject decides; a yes counts once for each person and role, and only for what the question shows now:
//! an edit starts the agreement anew with the editor.

use std::sync::Arc;

use outlast_dsl::machine::Outcome as On;

use super::parts::{AskWork, Completion, Owner, Work};
use super::turn::{Stop, Turn};
use crate::Json;
use crate::event::Choice;
use crate::fault::Fault;
use crate::ids::OpId;
use crate::json::{Reader, Unknown};
use crate::limits::DECIDED_QUESTIONS_MAX;
use crate::value::Value;

/// An answer, as the event has it.
pub(super) struct Answer<'a> {
    pub(super) choice: Choice,
    pub(super) value: Option<&'a Json>,
    pub(super) note: &'a str,
    pub(super) by: &'a str,
    pub(super) role: Option<&'a str>,
}

impl Turn<'_> {
    /// A question was answered.
    pub(super) fn answered(&mut self, id: OpId, answer: &Answer<'_>) -> Result<(), Stop> {
        let Some(op) = self.s.ops.get(&id).cloned() else {
            return Err(Stop::Diverged("an open question".to_owned(), format!("{id}, which is not open")));
        };
        let Work::Ask(ask) = &op.work else {
            return Err(Stop::Diverged("an open question".to_owned(), format!("{id}, which is none")));
        };
        let mut ask = (**ask).clone();
        let wanted = match answer.choice {
            Choice::Reject => {
                let fields = [("note", Value::text(answer.note)), ("by", Value::text(answer.by))];
                let payload = Value::record(None, fields).map_err(Fault::from)?;
                let how = format!("rejected by {}", answer.by);
                return Ok(self.decided(id, Completion::new(On::Reject, payload), how)?);
            }
            Choice::Approve => Some(&ask.shown_type).filter(|_| answer.value.is_some()),
            Choice::Answer => ask.answer.as_ref(),
        };
        let given = match (wanted, answer.value) {
            (Some(ty), value) => {
                let reader = Reader {
                    machine: &self.program.machine,
                    shapes: &self.program.shapes,
                    unknown: Unknown::Refuse,
                };
                let value = reader.read(ty, value.unwrap_or(&Json::Null)).map_err(|mismatch| {
                    Stop::Diverged("a value that fits the question".to_owned(), mismatch.to_string())
                })?;
                Some(value)
            }
            (None, _) => None,
        };
        if let (Choice::Approve, Some(edited)) = (answer.choice, &given)
            && *edited != ask.show
        {
            ask.show = edited.clone();
            ask.shown = super::body::shown_hash(&ask.text, &ask.show);
            ask.agreed.clear();
        }
        let role = answer.role.map_or_else(|| free_role(&ask), |role| Some(role.to_owned()));
        ask.agreed.push((answer.by.to_owned(), role.unwrap_or_default()));
        if !is_agreed(&ask) {
            let mut op = op.edit();
            op.work = Work::Ask(Box::new(ask));
            self.s.ops.insert_mut(id, Arc::new(op));
            return Ok(());
        }
        Ok(self.agreed(id, &ask, given, answer)?)
    }

    fn agreed(
        &mut self,
        id: OpId,
        ask: &AskWork,
        given: Option<Value>,
        answer: &Answer<'_>,
    ) -> Result<(), Fault> {
        let (completion, how) = match answer.choice {
            Choice::Answer => {
                let fields = [("value", given.unwrap_or(Value::Nothing)), ("by", Value::text(answer.by))];
                let payload = Value::record(None, fields)?;
                (Completion::new(On::Answer, payload), format!("answered by {}", answer.by))
            }
            Choice::Approve | Choice::Reject => {
                let by = Value::list(ask.agreed.iter().map(|(by, _)| Value::text(by)))?;
                let payload = Value::record(None, [("value", ask.show.clone()), ("by", by)])?;
                (Completion::new(On::Approve, payload), format!("approved by {}", answer.by))
            }
        };
        self.decided(id, completion, how)
    }

    /// Closes a question and remembers how it was decided.
    pub(super) fn decided(&mut self, id: OpId, completion: Completion, how: String) -> Result<(), Fault> {
        let decided = Arc::make_mut(&mut self.s.decided);
        if decided.len() >= DECIDED_QUESTIONS_MAX {
            decided.remove(0);
        }
        decided.push((id, how));
        self.complete_op(id, completion)
    }

    /// Puts an open question again under a new id; who agreed before does not count.
    pub(super) fn ask_anew(&mut self, id: OpId) -> Result<(), Fault> {
        let op = self.op(id)?;
        let (Work::Ask(ask), Owner::Work(parent)) = (&op.work, op.owner) else { return Ok(()) };
        let ask = AskWork { agreed: Vec::new(), ..(**ask).clone() };
        self.close(id);
        let anew = self.open(op.flow, op.owner, op.due, Work::Ask(Box::new(ask)))?;
        match parent.member {
            None => self.flow_mut(parent.node)?.active = super::parts::Active::Op(anew),
            Some(at) => {
                let members = &mut self.group_mut(parent.node)?.members;
                members.set_mut(at as usize, super::parts::Member::Op(anew));
            }
        }
        Ok(())
    }
}

/// Returns the first role of which someone is still missing.
pub(crate) fn free_role(ask: &AskWork) -> Option<String> {
    ask.to.iter().find(|(count, role)| agreed_of(ask, role) < *count).map(|(_, role)| role.clone())
}

fn agreed_of(ask: &AskWork, role: &str) -> u32 {
    let count = ask.agreed.iter().filter(|(_, known)| known == role).count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn is_agreed(ask: &AskWork) -> bool {
    ask.to.iter().all(|(count, role)| agreed_of(ask, role) >= *count)
}
