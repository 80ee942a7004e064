//! Snapshots: the state after an event, as data; an optimisation that may be deleted at any time.
//!
//! Leaves encoding to the store. Invariant: `restore(snapshot(s))` behaves like `s` for every later event, and a snapshot of
//! another machine, edition or format is refused.

use std::sync::Arc;

use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use super::parts::{Cancelling, EndedChild, Mail, Node, NodeId, Op, Undo};
use super::{Core, State};
use crate::event::{Config, Event, Tokens};
use crate::ids::{Millis, OpId, RunId, Seq};
use crate::operation::{Blocked, Outcome};
use crate::program::Ready;

/// Counts the version of the snapshot format.
const FORMAT: u32 = 1;

/// The state after an event, without its machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Snapshot {
    format: u32,
    edition: u32,
    machine: Arc<str>,
    run: RunId,
    last: Seq,
    time: Millis,
    seed: u64,
    config: Arc<Config>,
    root: Option<NodeId>,
    nodes: Vec<(NodeId, Arc<Node>)>,
    ops: Vec<Arc<Op>>,
    digest: u64,
    mail: Vec<(Seq, Arc<Mail>)>,
    closed: bool,
    seen: Vec<(Arc<str>, u64, Seq)>,
    spent: String,
    #[serde(default, skip_serializing_if = "Tokens::is_none")]
    tokens: Tokens,
    reserved: String,
    waiting: Vec<OpId>,
    decided: Arc<Vec<(OpId, String)>>,
    ending: Option<Arc<Outcome>>,
    outcome: Option<Arc<Outcome>>,
    cancelling: Option<Arc<Cancelling>>,
    blocked: Option<Arc<Blocked>>,
    held: Vec<Arc<Event>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent: Option<Arc<(RunId, OpId)>>,
    #[serde(default = "no_runs", skip_serializing_if = "<[RunId]>::is_empty")]
    ancestors: Arc<[RunId]>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ended: Vec<(RunId, Arc<EndedChild>)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    undos: Vec<(OpId, Arc<Undo>)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    orphans: Vec<NodeId>,
}

fn no_runs() -> Arc<[RunId]> {
    Arc::default()
}

/// Why a snapshot cannot be used. The history can.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// Another release wrote it.
    #[error("the snapshot has format {found}, this release reads {FORMAT}")]
    Format {
        /// The format found.
        found: u32,
    },
    /// It belongs to another machine.
    #[error("the snapshot is of machine {expected}, not of {found}")]
    Machine {
        /// The machine of the snapshot.
        expected: String,
        /// The machine that was given.
        found: String,
    },
    /// It contradicts itself.
    #[error("the snapshot is damaged: {what}")]
    Damaged {
        /// How.
        what: String,
    },
}

impl Snapshot {
    /// Returns the hash of the machine that it belongs to.
    #[must_use]
    pub fn machine(&self) -> &str {
        &self.machine
    }

    /// Returns the number of the last event in it.
    #[must_use]
    pub fn last(&self) -> Seq {
        self.last
    }
}

impl State {
    /// Returns the state as data.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let core = &self.core;
        Snapshot {
            format: FORMAT,
            edition: self.program.machine.edition,
            machine: Arc::clone(&core.hash),
            run: core.run.clone(),
            last: core.last,
            time: core.time,
            seed: core.seed,
            config: Arc::clone(&core.config),
            root: core.root,
            nodes: core.nodes.iter().map(|(id, node)| (*id, Arc::clone(node))).collect(),
            ops: core.ops.values().cloned().collect(),
            digest: core.digest,
            mail: core.mail.iter().map(|(n, mail)| (*n, Arc::clone(mail))).collect(),
            closed: core.closed,
            seen: core.seen.iter().map(|(id, (hash, n))| (Arc::clone(id), *hash, *n)).collect(),
            spent: core.spent.to_string(),
            tokens: core.tokens,
            reserved: core.reserved.to_string(),
            waiting: core.waiting.iter().copied().collect(),
            decided: Arc::clone(&core.decided),
            ending: core.ending.clone(),
            outcome: core.outcome.clone(),
            cancelling: core.cancelling.clone(),
            blocked: core.blocked.clone(),
            held: core.held.iter().cloned().collect(),
            parent: core.parent.clone(),
            ancestors: Arc::clone(&core.ancestors),
            ended: core.ended.iter().map(|(run, end)| (run.clone(), Arc::clone(end))).collect(),
            undos: core.undos.iter().map(|(op, undo)| (*op, Arc::clone(undo))).collect(),
            orphans: core.orphans.iter().copied().collect(),
        }
    }

    /// Makes a state from a snapshot.
    ///
    /// # Errors
    /// [`SnapshotError`] if it is of another machine or format, or damaged.
    pub fn restore(machine: impl Into<Ready>, snapshot: Snapshot) -> Result<State, SnapshotError> {
        let Ready(program) = machine.into();
        if snapshot.format != FORMAT {
            return Err(SnapshotError::Format { found: snapshot.format });
        }
        let found = program.hash();
        if snapshot.machine != *found {
            let (expected, found) = (snapshot.machine.to_string(), found.to_string());
            return Err(SnapshotError::Machine { expected, found });
        }
        let decimal = |text: &str| {
            let parsed = text.parse::<Decimal>();
            parsed.map_err(|error| SnapshotError::Damaged { what: error.to_string() })
        };
        let (spent, reserved) = (decimal(&snapshot.spent)?, decimal(&snapshot.reserved)?);
        let digest = snapshot.ops.iter().fold(0_u64, |sum, op| sum.wrapping_add(op.hash));
        if digest != snapshot.digest {
            let what = "the digest is not that of the operations".to_owned();
            return Err(SnapshotError::Damaged { what });
        }
        let core = Core {
            run: snapshot.run,
            hash: snapshot.machine,
            last: snapshot.last,
            time: snapshot.time,
            seed: snapshot.seed,
            config: snapshot.config,
            nodes: snapshot.nodes.into_iter().collect(),
            root: snapshot.root,
            due: snapshot.ops.iter().filter_map(|op| Some((op.due?, op.id))).collect(),
            ops: snapshot.ops.into_iter().map(|op| (op.id, op)).collect(),
            digest,
            mail_bytes: snapshot.mail.iter().map(|(_, mail)| mail.value.size()).sum(),
            mail: snapshot.mail.into_iter().collect(),
            closed: snapshot.closed,
            seen: snapshot.seen.into_iter().map(|(id, hash, n)| (id, (hash, n))).collect(),
            spent,
            tokens: snapshot.tokens,
            reserved,
            waiting: snapshot.waiting.into_iter().collect(),
            decided: snapshot.decided,
            ending: snapshot.ending,
            outcome: snapshot.outcome,
            cancelling: snapshot.cancelling,
            blocked: snapshot.blocked,
            held: snapshot.held.into_iter().collect(),
            parent: snapshot.parent,
            ancestors: snapshot.ancestors,
            ended: snapshot.ended.into_iter().collect(),
            undos: snapshot.undos.into_iter().collect(),
            orphans: snapshot.orphans.into_iter().collect(),
        };
        Ok(State { program, core })
    }
}
