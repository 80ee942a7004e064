//! Answers to questions: who may give them, and whether they fit.
//!
//! Invariant: an answer that names what was shown counts only if that is what the question shows now.

use crate::Json;
use crate::eval::policy::refusal;
use crate::event::{Choice, EventKind};
use crate::ids::OpId;
use crate::input::Refusal;
use crate::json::{Unknown, value_to_json};
use crate::state::{AskWork, State, free_role};
use crate::value::Value;

/// What a person said.
pub(super) struct Given<'a> {
    pub(super) choice: Choice,
    pub(super) value: Option<&'a Json>,
    pub(super) note: &'a str,
    pub(super) by: &'a str,
}

impl State {
    pub(super) fn answer(
        &self,
        question: Option<OpId>,
        given: &Given<'_>,
        role: Option<&str>,
        shown: Option<&str>,
    ) -> Result<EventKind, Refusal> {
        let (op, ask) = self.question_of(question)?;
        if shown.is_some_and(|shown| shown != ask.shown) {
            return Err(Refusal::ShownDiffers { op, shown: ask.shown.clone() });
        }
        if given.choice != Choice::Reject {
            self.held_to_rules(&ask.show)?;
        }
        let role = role_of(op, ask, given, role)?;
        let invalid = |detail: &str| Err(Refusal::Invalid { detail: detail.to_owned() });
        let wanted = match (given.choice, &ask.answer, given.value) {
            (Choice::Approve, Some(_), _) => return invalid("the question wants a value, not a yes"),
            (Choice::Answer, None, _) => return invalid("the question wants a yes or a no, not a value"),
            (Choice::Approve, None, Some(_)) if !ask.editable => {
                return invalid("what the question shows may not be edited");
            }
            (Choice::Approve, None, Some(value)) => Some((&ask.shown_type, value)),
            (Choice::Answer, Some(ty), value) => Some((ty, value.unwrap_or(&Json::Null))),
            (Choice::Approve, None, None) | (Choice::Reject, _, _) => None,
        };
        let value = match wanted {
            Some((ty, value)) => {
                let value = self.reader(Unknown::Refuse).read(ty, value);
                let value = value.map_err(|mismatch| Refusal::Invalid { detail: mismatch.to_string() })?;
                // What a person makes of a call is held to the rules as the call is.
                if given.choice == Choice::Approve {
                    self.held_to_rules(&value)?;
                }
                Some(value_to_json(&value))
            }
            None => None,
        };
        Ok(EventKind::Answered {
            op,
            choice: given.choice,
            value,
            note: given.note.to_owned(),
            by: given.by.to_owned(),
            role,
        })
    }

    /// Refuses a yes to a call that the rules deny.
    fn held_to_rules(&self, shown: &Value) -> Result<(), Refusal> {
        match refusal(&self.program.machine, &self.core.config, shown) {
            Some(note) => Err(Refusal::Invalid { detail: format!("only a no fits: {note}") }),
            None => Ok(()),
        }
    }

    /// Returns the open question that an answer means.
    fn question_of(&self, question: Option<OpId>) -> Result<(OpId, &AskWork), Refusal> {
        let open = |id: OpId| self.core.ops.get(&id)?.work.question().filter(|_| !self.holds_fact_of(id));
        if let Some(id) = question {
            if let Some(ask) = open(id) {
                return Ok((id, ask));
            }
            let decided = self.core.decided.iter().find(|(known, _)| *known == id);
            if let Some((_, how)) = decided {
                return Err(Refusal::AlreadyDecided { op: id, how: how.clone() });
            }
            if self.core.ops.contains_key(&id) && self.holds_fact_of(id) {
                return Err(Refusal::AlreadyDecided { op: id, how: "while the run is blocked".to_owned() });
            }
            self.not_ended()?;
            return Err(Refusal::NotFound { what: "question", id: id.to_string() });
        }
        self.not_ended()?;
        let all: Vec<_> = self.core.ops.keys().filter_map(|id| Some((*id, open(*id)?))).collect();
        match (all.as_slice(), self.core.decided.last()) {
            ([only], _) => Ok(*only),
            // Whoever answers what was the only question comes too late for it.
            ([], Some((id, how))) => Err(Refusal::AlreadyDecided { op: *id, how: how.clone() }),
            (several, _) => Err(Refusal::WhichQuestion { open: several.iter().map(|(id, _)| *id).collect() }),
        }
    }
}

/// Returns the role in which an answer counts.
fn role_of(
    op: OpId,
    ask: &AskWork,
    given: &Given<'_>,
    role: Option<&str>,
) -> Result<Option<String>, Refusal> {
    let by = given.by;
    let has_said_yes = |role: &str| ask.agreed.iter().any(|(name, known)| name == by && known == role);
    let Some(role) = role else {
        // Whoever said yes already repeats it, perhaps because the answer was lost; another role they would name.
        let is_repeated = given.choice != Choice::Reject && ask.agreed.iter().any(|(name, _)| name == by);
        return if is_repeated { Err(Refusal::Repeated) } else { Ok(free_role(ask)) };
    };
    if !ask.to.is_empty() && !ask.to.iter().any(|(_, known)| known == role) {
        let to = ask.to.iter().map(|(_, role)| role.clone()).collect();
        return Err(Refusal::WrongRole { op, to, role: role.to_owned() });
    }
    if has_said_yes(role) {
        return Err(Refusal::Repeated);
    }
    Ok(Some(role.to_owned()))
}
