//! What is written together.

use std::sync::Arc;

use outlast_kernel::Json;
use outlast_kernel::event::{Event, EventKind};
use outlast_kernel::ids::{Millis, RunId, Seq};
use serde::{Deserialize, Serialize};

use crate::BlobPut;

/// Everything that one group commit makes durable, all or nothing.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Steps of runs; a run may appear more than once, in order.
    pub runs: Vec<RunWrite>,
    /// Records beside histories.
    pub puts: Vec<Put>,
    /// Bytes to keep by their hash until an event names them.
    pub blobs: Vec<BlobPut>,
    /// Runs that are no more from this commit on; none of them is among `runs`.
    pub deletes: Vec<Delete>,
}

impl Batch {
    /// Whether it stops and deletes runs, and does nothing else to any. Such a batch may take the last room of a full disk: that is how room
    /// is made.
    pub(crate) fn makes_room(&self) -> bool {
        let stops = |write: &RunWrite| write.events.iter().any(|event| is_stop(&event.kind));
        !(self.runs.is_empty() && self.deletes.is_empty()) && self.runs.iter().all(stops)
    }

    /// Whether there is nothing to make durable.
    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.puts.is_empty() && self.blobs.is_empty() && self.deletes.is_empty()
    }
}

/// A run to delete. Its events stay as far as forks use them; [`crate::Store::purge`] takes the rest away, portion by portion.
#[derive(Clone, Debug)]
pub struct Delete {
    /// The run.
    pub run: RunId,
    /// Where its history stands; the deletion is refused if it stands elsewhere.
    pub before: Head,
}

fn is_stop(kind: &EventKind) -> bool {
    matches!(kind, EventKind::Cancelled { .. } | EventKind::Terminated { .. })
}

/// One step of a run: the events that became facts together, with the views that follow from them.
#[derive(Clone, Debug)]
pub struct RunWrite {
    /// The run.
    pub run: RunId,
    /// Where its history stood; the write is refused if it stands elsewhere.
    pub before: Head,
    /// The new events; numbers follow `before`. Not empty.
    pub events: Vec<Event>,
    /// The views before this step, as the engine knows them. What is removed is what the store holds, so views cannot drift.
    pub index_before: Index,
    /// The views after this step.
    pub index: Index,
    /// What lists and look-ups show.
    pub summary: Arc<Summary>,
    /// A snapshot of the state after this step, if it is time for one: opaque bytes of the engine.
    pub snapshot: Option<Vec<u8>>,
    /// Where events come from; in the first step of a fork only.
    pub origin: Option<Origin>,
}

/// Where the events before, or among, a new run's own come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It is a fork: the events up to `at` are its parent's, and are not copied.
    Fork {
        /// The parent.
        parent: RunId,
        /// The last event that both share.
        at: Seq,
    },
    /// It is a fork that was brought from another store with all its events.
    Copy {
        /// The runs that it shared its first events with there, and the last of them for each; oldest first.
        lineage: Vec<(RunId, Seq)>,
        /// Its parent and the last event that both share.
        parent: (RunId, Seq),
    },
}

/// A part of a fork's history that stands in another run's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// The run whose events they are.
    #[serde(rename = "r")]
    pub run: RunId,
    /// The last of them; the first is the one after the segment before.
    #[serde(rename = "t")]
    pub to: Seq,
    /// The run under which they are stored.
    #[serde(rename = "h")]
    pub held_by: RunId,
}

/// The end of a run's history: its last number and the chain hash over all its events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The last event's number; 0 before the first.
    pub seq: Seq,
    /// BLAKE3 over the chain so far and the encoded events of each step; zeroes before the first.
    #[serde(with = "serde_bytes")]
    pub chain: [u8; 32],
}

/// Where a run stands in the views that recovery reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Index {
    /// Whether it has an activity that may be handed out, or is in hand.
    pub ready: bool,
    /// When its next timer, deadline or retry is due.
    pub due: Option<Millis>,
}

/// What lists and look-ups show of a run without reading its history. It is written with every step of every run, so its names are short;
/// the long ones are those of older stores.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The run.
    #[serde(rename = "r", alias = "run")]
    pub run: RunId,
    /// The flow's name.
    #[serde(rename = "f", alias = "flow")]
    pub flow: String,
    /// The machine's hash.
    #[serde(rename = "m", alias = "machine")]
    pub machine: String,
    /// The environment profile that it was started with.
    #[serde(rename = "p", alias = "profile")]
    pub profile: String,
    /// The coarse status.
    #[serde(rename = "s", alias = "status")]
    pub status: Status,
    /// When it started.
    #[serde(rename = "a", alias = "started_at")]
    pub started_at: Millis,
    /// When its last event was accepted.
    #[serde(rename = "u", alias = "updated_at")]
    pub updated_at: Millis,
    /// The run as the contract shows it.
    #[serde(rename = "v", alias = "view")]
    pub view: Json,
}

/// The coarse status of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// A worker has something in hand or could take it.
    Running,
    /// It waits for a person, a message, a timer.
    Waiting,
    /// A fault of its machine stops it.
    Blocked,
    /// It has an outcome.
    Ended,
}

/// A record beside histories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Put {
    /// Which table.
    pub table: Table,
    /// Its key, 1 to 1,024 bytes.
    pub key: Vec<u8>,
    /// Its value; none removes it.
    pub value: Option<Vec<u8>>,
}

/// The tables beside histories.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// Machines by hash: canonical bytes.
    Machine,
    /// Sources by machine hash: text and places, for people.
    Source,
    /// Deployed flows by name.
    Flow,
    /// Worker sessions by worker id.
    Session,
    /// Environment profiles by name.
    Profile,
    /// The engine's own settings: keys, epoch.
    Setting,
    /// Schedules by name.
    Schedule,
    /// Runs that nobody may touch, and those of which a worker's word proves nothing.
    Quarantine,
    /// Access tokens by id: their hashes, never their secrets.
    Token,
}
