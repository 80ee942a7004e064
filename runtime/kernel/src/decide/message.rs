//! Messages: checked before they are accepted, and accepted once.
//!
//! Invariant: what is refused leaves no trace; what is accepted fits its type.

use outlast_dsl::machine::{FlowIx, MessageIx};

use crate::Json;
use crate::event::EventKind;
use crate::input::Refusal;
use crate::json::value_to_json;
use crate::limits::{MAILBOX_BYTES_MAX, MAILBOX_MESSAGES_MAX};
use crate::state::{State, message};
use crate::value::Value;

impl State {
    pub(super) fn message(
        &self,
        id: Option<&str>,
        name: &str,
        value: &Json,
        from: &str,
    ) -> Result<EventKind, Refusal> {
        let (program, core) = (&self.program, &self.core);
        let read = self.read_message(name, value);
        // Who sent it before may not have heard that it was accepted, even if the run has ended since.
        if let (Some(id), Ok((.., typed))) = (id, &read) {
            self.not_seen(id, name, &value_to_json(typed))?;
        }
        self.alive()?;
        let (flow, ix, typed) = read?;
        let value = value_to_json(&typed);
        if !self.listens(name) {
            let def = &program.flow(flow).messages[ix.at()];
            if def.now {
                return Err(Refusal::NotListening { name: name.to_owned(), state: self.path() });
            }
            let held_messages =
                core.held.iter().filter(|event| matches!(event.kind, EventKind::Message { .. }));
            let held = core.mail.size() + held_messages.count();
            if held >= MAILBOX_MESSAGES_MAX || core.mail_bytes + typed.size() > MAILBOX_BYTES_MAX {
                return Err(Refusal::MailboxFull { held });
            }
        }
        Ok(EventKind::Message {
            id: id.map_or_else(|| core.last.next().to_string(), str::to_owned),
            name: name.to_owned(),
            value,
            from: from.to_owned(),
        })
    }

    /// Reads a message by the type that its flow declares.
    fn read_message(&self, name: &str, value: &Json) -> Result<(FlowIx, MessageIx, Value), Refusal> {
        let (program, core) = (&self.program, &self.core);
        let Some((flow, ix)) = message::meaning(program, core, name) else {
            let known: Vec<_> = program.machine.flows.iter().flat_map(|flow| &flow.messages).collect();
            let known: Vec<_> = known.iter().map(|message| message.name.as_str()).collect();
            let detail = match known.as_slice() {
                [] => format!("the flow takes no messages, so no {name}"),
                known => format!("the flow takes no message {name}, but {}", known.join(", ")),
            };
            return Err(Refusal::Invalid { detail });
        };
        let empty = Json::Object(serde_json::Map::new());
        let value = if value.is_null() { &empty } else { value };
        let typed = message::read(program, flow, ix, value)
            .map_err(|mismatch| Refusal::Invalid { detail: format!("{name}: {mismatch}") })?;
        Ok((flow, ix, typed))
    }

    /// Refuses a message id that was used before.
    fn not_seen(&self, id: &str, name: &str, value: &Json) -> Result<(), Refusal> {
        let hash = message::body_hash(name, value);
        let held = self.core.held.iter().find_map(|event| match &event.kind {
            EventKind::Message { id: known, name, value, .. } if known == id => {
                Some((message::body_hash(name, value), event.n))
            }
            _ => None,
        });
        match self.core.seen.get(id).copied().or(held) {
            None => Ok(()),
            Some((known, n)) if known == hash => Err(Refusal::MessageRepeated { id: id.to_owned(), n }),
            Some(_) => Err(Refusal::MessageConflict { id: id.to_owned() }),
        }
    }

    pub(super) fn withdraw(&self, id: &str) -> Result<Vec<EventKind>, Refusal> {
        self.not_ended()?;
        if self.unread().iter().any(|(known, ..)| known == id) {
            return Ok(vec![EventKind::Withdrawn { id: id.to_owned() }]);
        }
        Err(Refusal::NotFound { what: "message", id: id.to_owned() })
    }
}
