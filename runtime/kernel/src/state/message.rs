//! Messages: who listens, what waits in the mailbox.
//!
//! A message is taken at once if a flow instance that declares it listens (from the outermost inward through `run`); else it waits.
//! Invariant: what was accepted is consumed, withdrawn, discarded or unread; the oldest message that is listened to goes first.

use std::sync::Arc;

use outlast_dsl::machine::{Effect, FlowIx, MessageIx, Outcome as On};

use super::Core;
use super::parts::{Active, Completion, FlowNode, Mail, Member, NodeId, NodeKind};
use super::turn::{Stop, Task, Turn};
use crate::Json;
use crate::fault::Fault;
use crate::ids::{OpId, Seq};
use crate::json::{Reader, Unknown, canonical_text, fields_to_values};
use crate::program::Program;
use crate::value::{Record, Shape, Value};

/// Returns the flow instances that may take messages, from the outermost inward.
pub(crate) fn hearers(core: &Core) -> impl Iterator<Item = (NodeId, &FlowNode)> {
    let mut next = core.top();
    std::iter::from_fn(move || {
        let id = next?;
        let NodeKind::Flow(flow) = &core.nodes.get(&id)?.kind else { return None };
        next = match flow.active {
            Active::Child(child) => Some(child),
            Active::Idle | Active::Stopped | Active::Undoing | Active::Op(_) => None,
        };
        Some((id, flow))
    })
}

/// Returns the message of a name that a flow declares.
pub(crate) fn declared(program: &Program, flow: FlowIx, name: &str) -> Option<MessageIx> {
    let at = program.flow(flow).messages.iter().position(|message| message.name == name)?;
    u32::try_from(at).ok().map(MessageIx)
}

/// Returns the flow whose message a name means: the first active one that takes it now, else the first active one that declares
/// it, else the first of the machine.
pub(crate) fn meaning(program: &Program, core: &Core, name: &str) -> Option<(FlowIx, MessageIx)> {
    if let Some((id, message)) = listener(program, core, name)
        && let NodeKind::Flow(flow) = &core.nodes.get(&id)?.kind
    {
        return Some((flow.flow, message));
    }
    let active = hearers(core).find_map(|(_, flow)| Some((flow.flow, declared(program, flow.flow, name)?)));
    active.or_else(|| {
        let all = 0..u32::try_from(program.machine.flows.len()).ok()?;
        all.map(FlowIx).find_map(|flow| Some((flow, declared(program, flow, name)?)))
    })
}

/// Returns the flow instance that takes a message of this name at once.
pub(crate) fn listener(program: &Program, core: &Core, name: &str) -> Option<(NodeId, MessageIx)> {
    hearers(core).find_map(|(id, flow)| {
        let message = declared(program, flow.flow, name)?;
        listens(program, core, flow, message).then_some((id, message))
    })
}

/// Says whether the active state of a flow instance has a place for a message.
pub(crate) fn listens(program: &Program, core: &Core, flow: &FlowNode, message: MessageIx) -> bool {
    if matches!(flow.active, Active::Stopped | Active::Undoing) {
        return false;
    }
    let def = program.flow(flow.flow);
    let state = &def.states[flow.state.at()];
    let has_arrow = |arrows: &[outlast_dsl::machine::Arrow]| {
        arrows.iter().any(|arrow| arrow.on.contains(&On::Message(message)))
    };
    has_arrow(&state.arrows) || has_arrow(&def.arrows) || region_waits(core, flow, &state.effect, message)
}

fn region_waits(core: &Core, flow: &FlowNode, effect: &Effect, message: MessageIx) -> bool {
    let (Effect::Parallel(parallel), Active::Child(child)) = (effect, flow.active) else { return false };
    let Some(NodeKind::Group(group)) = core.nodes.get(&child).map(|node| &node.kind) else { return false };
    parallel.regions.iter().zip(group.members.iter()).any(|(region, member)| {
        matches!(&region.body, outlast_dsl::machine::EachBody::Await(wait)
            if matches!(member, Member::Op(_)) && wait.messages.contains(&message))
    })
}

/// Hashes a message, to tell a repetition from a conflict.
pub(crate) fn body_hash(name: &str, value: &Json) -> u64 {
    let text = format!("{name} {}", canonical_text(value));
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&blake3::hash(text.as_bytes()).as_bytes()[..8]);
    u64::from_le_bytes(bytes)
}

/// Reads the fields of a message.
pub(crate) fn read(
    program: &Program,
    flow: FlowIx,
    message: MessageIx,
    value: &Json,
) -> Result<Value, crate::json::Mismatch> {
    let fields = &program.flow(flow).messages[message.at()].fields;
    let reader = Reader { machine: &program.machine, shapes: &program.shapes, unknown: Unknown::Refuse };
    let values = fields_to_values(&reader, fields, value)?;
    let shape = Shape::new(None, fields.iter().map(|field| field.name.as_str()));
    Ok(Value::Record(Arc::new(Record::new(shape, values))))
}

impl Turn<'_> {
    /// A message was accepted.
    pub(super) fn message(&mut self, id: &str, name: &str, value: &Json) -> Result<(), Stop> {
        let unknown = || Stop::Diverged("a declared message".to_owned(), name.to_owned());
        let (flow, message) = meaning(self.program, &self.s, name).ok_or_else(unknown)?;
        if id != self.fact.to_string() {
            let hash = body_hash(name, value);
            self.s.seen.insert_mut(id.into(), (hash, self.fact));
        }
        let typed = read(self.program, flow, message, value)
            .map_err(|mismatch| Stop::Diverged(format!("the fields of {name}"), mismatch.to_string()))?;
        let listening: Vec<_> = hearers(&self.s)
            .filter(|(_, hearer)| hearer.flow == flow && listens(self.program, &self.s, hearer, message))
            .map(|(id, _)| id)
            .collect();
        for node in &listening {
            if self.deliver(*node, message, &typed)? {
                self.effects.handled.push(id.to_owned());
                return Ok(());
            }
        }
        if self.program.flow(flow).messages[message.at()].now {
            // Guards may have refused it; then it is over, for it cannot wait.
            return if listening.is_empty() {
                Err(Stop::Diverged(format!("a state that takes {name}"), "one that does not".to_owned()))
            } else {
                self.effects.handled.push(id.to_owned());
                Ok(())
            };
        }
        let mail = Mail { id: id.to_owned(), flow, message: message.0, value: typed };
        self.put(self.fact, mail);
        Ok(())
    }

    /// Puts a message into the mailbox.
    pub(super) fn put(&mut self, n: Seq, mail: Mail) {
        self.s.mail_bytes += mail.value.size();
        self.s.mail.insert_mut(n, Arc::new(mail));
    }

    /// Takes a message out of the mailbox.
    pub(super) fn drop_mail(&mut self, n: Seq) {
        if let Some(mail) = self.s.mail.get(&n).cloned() {
            self.s.mail.remove_mut(&n);
            self.s.mail_bytes = self.s.mail_bytes.saturating_sub(mail.value.size());
        }
    }

    /// Gives a message to a flow instance; says whether an arrow took it.
    fn deliver(&mut self, id: NodeId, message: MessageIx, value: &Value) -> Result<bool, Fault> {
        let mut completion = Completion::new(On::Message(message), value.clone());
        if let Some((group, at)) = self.waiting_region(id, message.0) {
            let Some(Member::Op(op)) = self.group(group)?.members.get(at as usize) else { return Ok(false) };
            let op = *op;
            self.tasks.push(Task::Mail(id));
            self.complete_op(op, completion)?;
            return Ok(true);
        }
        completion.slots = self.results(id)?;
        let Some(chosen) = self.choose(id, &completion)? else { return Ok(false) };
        // After `stay` the next message may be taken as well.
        self.tasks.push(Task::Mail(id));
        self.go_along(id, chosen)?;
        Ok(true)
    }

    /// Takes the oldest unread message that a flow instance listens to, or the news that no more will come.
    pub(super) fn take_mail(&mut self, id: NodeId) -> Result<(), Fault> {
        if !self.s.nodes.contains_key(&id)
            || matches!(self.flow(id)?.active, Active::Stopped | Active::Undoing)
        {
            return Ok(());
        }
        let flow = self.flow(id)?.flow;
        let fitting: Vec<_> = self
            .s
            .mail
            .iter()
            .filter(|(_, mail)| mail.flow == flow)
            .map(|(n, mail)| (*n, mail.clone()))
            .collect();
        self.env.spend(fitting.len())?;
        let mut ended = self.ended_before(id);
        for (n, mail) in fitting {
            // The end of a spawned run has its place among the messages.
            if let Some((_, op, run)) = ended.take_if(|(at, ..)| *at < n) {
                return self.take_ended(op, &run);
            }
            let message = MessageIx(mail.message);
            if !listens(self.program, &self.s, self.flow(id)?, message) {
                continue;
            }
            // It is taken out first: the arrow may discard what is left.
            self.drop_mail(n);
            if self.deliver(id, message, &mail.value)? {
                self.effects.handled.push(mail.id.clone());
                return Ok(());
            }
            self.put(n, (*mail).clone());
        }
        if let Some((_, op, run)) = ended {
            return self.take_ended(op, &run);
        }
        if self.s.closed && self.awaits_closed(id)?.is_some_and(|op| op.0 == self.s.last) {
            self.take_closed(id)?;
        }
        Ok(())
    }

    /// Returns the open wait of a flow instance for the end of all messages.
    fn awaits_closed(&self, id: NodeId) -> Result<Option<OpId>, Fault> {
        let flow = self.flow(id)?;
        match (&self.program.state(flow.flow, flow.state).effect, flow.active) {
            (Effect::Await(wait), Active::Op(op)) if wait.closed => Ok(Some(op)),
            _ => Ok(None),
        }
    }

    fn take_closed(&mut self, id: NodeId) -> Result<bool, Fault> {
        let mut completion = Completion::new(On::Closed, Value::Nothing);
        completion.slots = self.results(id)?;
        let Some(chosen) = self.choose(id, &completion)? else { return Ok(false) };
        self.go_along(id, chosen)?;
        Ok(true)
    }

    /// No more messages will come: whoever waits for that is told, else the first flow instance with an arrow for it.
    pub(super) fn no_more_messages(&mut self) -> Result<(), Fault> {
        self.s.closed = true;
        let hearing: Vec<_> = hearers(&self.s)
            .filter(|(_, flow)| !matches!(flow.active, Active::Stopped | Active::Undoing))
            .map(|(id, _)| id)
            .collect();
        let mut waiting = Vec::new();
        for id in &hearing {
            if self.awaits_closed(*id)?.is_some() {
                waiting.push(*id);
            }
        }
        for id in waiting.into_iter().chain(hearing) {
            if self.take_closed(id)? {
                break;
            }
        }
        Ok(())
    }

    /// An unread message was pulled back.
    pub(super) fn withdrawn(&mut self, id: &str) -> Result<(), Stop> {
        let found = self.s.mail.iter().find(|(_, mail)| mail.id == id).map(|(n, _)| *n);
        match found {
            Some(n) => {
                self.drop_mail(n);
                Ok(())
            }
            None => Err(Stop::Diverged("an unread message".to_owned(), id.to_owned())),
        }
    }

    /// Drops the unread messages of a type.
    pub(super) fn discard(&mut self, flow: FlowIx, message: u32) {
        let fits = |mail: &Mail| mail.flow == flow && mail.message == message;
        let dropped: Vec<_> = self
            .s
            .mail
            .iter()
            .filter(|(_, mail)| fits(mail))
            .map(|(n, mail)| (*n, mail.id.clone()))
            .collect();
        for (n, id) in dropped {
            self.drop_mail(n);
            self.effects.handled.push(id);
        }
    }
}
