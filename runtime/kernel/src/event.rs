//! Events: the only thing that replay reads.
//!
//! A closed list of facts from outside. What follows from them (states, operations, inputs, questions, emits) is derived and
//! never stored. The one- and two-letter keys are the stored form; [`crate::event`] types change only by added optional fields.

mod patterns;
mod tokens;

use serde::{Deserialize, Serialize};

pub use patterns::Patterns;
pub use tokens::Tokens;

use crate::Json;
use crate::ids::{Attempt, Millis, OpId, RunId, Seq};
use crate::operation::Outcome;

/// One immutable record of a run's history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Its number: one more than the event before it.
    #[serde(rename = "n")]
    pub n: Seq,
    /// When it was accepted; never before the event before it.
    #[serde(rename = "t")]
    pub time: Millis,
    /// A digest of the operations that the events before it left open; replay compares it.
    #[serde(rename = "g")]
    pub digest: u64,
    /// What happened.
    #[serde(rename = "k")]
    pub kind: EventKind,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// The run began. Always event 1 (of a run that is no fork).
    Started(Box<Started>),
    /// A fork began: the events before it are its parent's.
    Forked {
        /// The parent.
        #[serde(rename = "p")]
        parent: RunId,
        /// The last event that both share.
        #[serde(rename = "a")]
        at: Seq,
        /// `once` operations that were open at `at` and must count as begun.
        #[serde(rename = "b")]
        begun: Vec<OpId>,
        /// What becomes of the runs that the parent spawned.
        #[serde(rename = "c", default, skip_serializing_if = "ChildrenOfFork::is_unknown")]
        children: ChildrenOfFork,
        /// Who forked.
        #[serde(rename = "y")]
        by: String,
    },
    /// Configuration changed; operations opened later see it.
    Configured {
        /// The whole new configuration.
        #[serde(rename = "c")]
        config: Config,
    },
    /// An activity gave its result.
    Done {
        /// The operation.
        #[serde(rename = "o")]
        op: OpId,
        /// The activity's name, compared by replay.
        #[serde(rename = "f")]
        activity: String,
        /// Which attempt.
        #[serde(rename = "a")]
        attempt: Attempt,
        /// The result, which fits the activity's type.
        #[serde(rename = "v")]
        value: Json,
        /// Money spent, a decimal.
        #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
        cost: Option<String>,
        /// Tokens that a language model read and wrote.
        #[serde(rename = "u", default, skip_serializing_if = "Tokens::is_none")]
        tokens: Tokens,
    },
    /// An attempt failed with an answer, or was given up in time.
    Failed {
        /// The operation.
        #[serde(rename = "o")]
        op: OpId,
        /// The activity's name, compared by replay.
        #[serde(rename = "f")]
        activity: String,
        /// Which attempt.
        #[serde(rename = "a")]
        attempt: Attempt,
        /// What the worker said.
        #[serde(rename = "e")]
        error: Failure,
        /// When the next attempt may start; none if there is none.
        #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
        retry_at: Option<Millis>,
        /// Money spent, a decimal.
        #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
        cost: Option<String>,
        /// Tokens that a language model read and wrote.
        #[serde(rename = "u", default, skip_serializing_if = "Tokens::is_none")]
        tokens: Tokens,
    },
    /// An attempt of a `once` activity is about to be handed out.
    Begun {
        /// The operation.
        #[serde(rename = "o")]
        op: OpId,
        /// Which attempt.
        #[serde(rename = "a")]
        attempt: Attempt,
        /// To whom.
        #[serde(rename = "w")]
        worker: String,
    },
    /// An attempt will never answer.
    Lost {
        /// The operation.
        #[serde(rename = "o")]
        op: OpId,
        /// Which attempt.
        #[serde(rename = "a")]
        attempt: Attempt,
        /// Why.
        #[serde(rename = "y")]
        why: LostWhy,
    },
    /// An attempt that was begun never reached a worker.
    Void {
        /// The operation.
        #[serde(rename = "o")]
        op: OpId,
        /// Which attempt.
        #[serde(rename = "a")]
        attempt: Attempt,
    },
    /// A worker gave something to resume an attempt with.
    Handle {
        /// The operation.
        #[serde(rename = "o")]
        op: OpId,
        /// Which attempt.
        #[serde(rename = "a")]
        attempt: Attempt,
        /// The handle, given to later attempts.
        #[serde(rename = "h")]
        handle: Json,
    },
    /// A person settled a doubt.
    Settled {
        /// The operation.
        #[serde(rename = "o")]
        op: OpId,
        /// What they said.
        #[serde(rename = "v")]
        verdict: Settlement,
        /// Who.
        #[serde(rename = "y")]
        by: String,
    },
    /// A person gave a held operation fresh attempts.
    Released {
        /// The operation.
        #[serde(rename = "o")]
        op: OpId,
        /// Who.
        #[serde(rename = "y")]
        by: String,
    },
    /// A timer or deadline of an operation was due.
    TimerFired {
        /// The operation.
        #[serde(rename = "o")]
        op: OpId,
        /// When it was due.
        #[serde(rename = "d")]
        due: Millis,
    },
    /// A message was accepted.
    Message {
        /// The sender's id, for withdrawal and repetition; `n` if the sender gave none.
        #[serde(rename = "i")]
        id: String,
        /// The message type's name.
        #[serde(rename = "m")]
        name: String,
        /// Its fields, which fit the type.
        #[serde(rename = "v")]
        value: Json,
        /// Who sent it.
        #[serde(rename = "y")]
        from: String,
    },
    /// An unread message was pulled back.
    Withdrawn {
        /// Its id.
        #[serde(rename = "i")]
        id: String,
    },
    /// No more messages will come.
    Closed,
    /// A question was answered.
    Answered {
        /// The question.
        #[serde(rename = "o")]
        op: OpId,
        /// `approve`, `reject` or `answer`.
        #[serde(rename = "h")]
        choice: Choice,
        /// The edited or given value.
        #[serde(
            rename = "v",
            default,
            skip_serializing_if = "Option::is_none",
            deserialize_with = "present"
        )]
        value: Option<Json>,
        /// What the person added.
        #[serde(rename = "x", default, skip_serializing_if = "String::is_empty")]
        note: String,
        /// Who; `policy` if a rule answered.
        #[serde(rename = "y")]
        by: String,
        /// In which role.
        #[serde(rename = "l", default, skip_serializing_if = "Option::is_none")]
        role: Option<String>,
    },
    /// A flow was started as its own run, or was not because its id is taken. Acknowledges the operation.
    Spawned {
        /// The operation; it goes on as the handle of the child.
        #[serde(rename = "o")]
        op: OpId,
        /// What became of it.
        #[serde(rename = "s")]
        result: SpawnResult,
    },
    /// A spawned run ended. The child's side of it is an operation of the child.
    ChildEnded {
        /// The operation that spawned it.
        #[serde(rename = "o")]
        op: OpId,
        /// How it ended.
        #[serde(rename = "e")]
        outcome: Outcome,
    },
    /// News for another run arrived there, or never will. Acknowledges the operation.
    Delivered {
        /// The operation.
        #[serde(rename = "o")]
        op: OpId,
        /// What the other run said.
        #[serde(rename = "s")]
        receipt: Receipt,
    },
    /// The run goes on with another machine.
    Migrated(Box<Migrated>),
    /// The run is to stop.
    Cancelled {
        /// Who.
        #[serde(rename = "y")]
        by: String,
    },
    /// The run stopped, without clean-up.
    Terminated {
        /// Who.
        #[serde(rename = "y")]
        by: String,
    },
}

impl EventKind {
    /// Returns its name on every surface.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            EventKind::Started(_) => "started",
            EventKind::Forked { .. } => "forked",
            EventKind::Configured { .. } => "configured",
            EventKind::Done { .. } => "done",
            EventKind::Failed { .. } => "failed",
            EventKind::Begun { .. } => "begun",
            EventKind::Lost { .. } => "lost",
            EventKind::Void { .. } => "void",
            EventKind::Handle { .. } => "handle",
            EventKind::Settled { .. } => "settled",
            EventKind::Released { .. } => "released",
            EventKind::TimerFired { .. } => "timer_fired",
            EventKind::Message { .. } => "message",
            EventKind::Withdrawn { .. } => "withdrawn",
            EventKind::Closed => "closed",
            EventKind::Answered { .. } => "answered",
            EventKind::Spawned { .. } => "spawned",
            EventKind::ChildEnded { .. } => "child_ended",
            EventKind::Delivered { .. } => "delivered",
            EventKind::Migrated(_) => "migrated",
            EventKind::Cancelled { .. } => "cancelled",
            EventKind::Terminated { .. } => "terminated",
        }
    }
}

/// The first event of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Started {
    /// The flow's name.
    #[serde(rename = "f")]
    pub flow: String,
    /// The hash of its machine.
    #[serde(rename = "m")]
    pub machine: String,
    /// The edition of the language.
    #[serde(rename = "e")]
    pub edition: u32,
    /// The arguments by name, defaults filled in.
    #[serde(rename = "i")]
    pub input: Json,
    /// The seed of `new_id`.
    #[serde(rename = "s")]
    pub seed: u64,
    /// Environment, permissions and grants.
    #[serde(rename = "c")]
    pub config: Config,
    /// The run and operation that spawned it.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<(RunId, OpId)>,
    /// All runs above it, from the first one down to its parent; empty if nothing spawned it.
    #[serde(rename = "l", default, skip_serializing_if = "Vec::is_empty")]
    pub ancestors: Vec<RunId>,
    /// Who started it; empty if another run did, or in histories from before this was written down.
    #[serde(rename = "y", default, skip_serializing_if = "String::is_empty")]
    pub by: String,
}

/// What became of an operation that spawns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpawnResult {
    /// The run was started, by this operation; its id is compared by replay.
    Run(RunId),
    /// Another run has the id.
    Exists,
}

/// What became of news for another run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Receipt {
    /// It is in the other run's history, or was there already.
    Ok,
    /// The other run does not take it, for good: why.
    Refused(String),
}

/// A change of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Migrated {
    /// The hash of the machine that explains the events before.
    #[serde(rename = "f")]
    pub from: String,
    /// The hash of the machine that explains this event and all later ones.
    #[serde(rename = "t")]
    pub to: String,
    /// What happens to open operations that do not fit the new machine, by id.
    #[serde(rename = "m", default, skip_serializing_if = "Vec::is_empty")]
    pub map: Vec<(OpId, OnOpen)>,
    /// Who.
    #[serde(rename = "y")]
    pub by: String,
}

/// What a migration does with an open operation that the new machine does not carry on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnOpen {
    /// It is closed like on leaving its state; what it was a part of goes on as if it had failed.
    Cut,
    /// It is closed and opened again, under a new id, as the new machine has it.
    Again,
}

/// What a run knows of its surroundings; changed only by events.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// The environment profile whose workers run its tasks (see the engine).
    #[serde(rename = "p")]
    pub profile: String,
    /// Tool patterns that are refused, such as `shell(rm *)`.
    #[serde(rename = "d", default, skip_serializing_if = "Patterns::is_empty")]
    pub deny: Patterns,
    /// Tool patterns that a person is asked about.
    #[serde(rename = "q", default, skip_serializing_if = "Patterns::is_empty")]
    pub ask: Patterns,
    /// Tool patterns that need no question, by policy.
    #[serde(rename = "w", default, skip_serializing_if = "Patterns::is_empty")]
    pub allow: Patterns,
    /// Tool patterns that a person allowed for this run; not carried to forks.
    #[serde(rename = "g", default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<String>,
    /// Whether nobody is asked about tool calls: what would be asked is refused.
    #[serde(rename = "k", default, skip_serializing_if = "std::ops::Not::not")]
    pub deny_asks: bool,
}

/// What a fork does with the runs that its parent spawned and that have not ended at the fork point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChildrenOfFork {
    /// They are the parent's; the fork never learns of their end.
    #[default]
    Unknown,
    /// The fork awaits the same runs; it never cancels them.
    Share,
    /// The fork spawns them again, as runs of its own.
    Again,
}

impl ChildrenOfFork {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the shape that the serialiser wants")]
    fn is_unknown(&self) -> bool {
        *self == ChildrenOfFork::Unknown
    }
}

/// What a worker says of a failed attempt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// The error's name (`RateLimited`), or `failed`, `timeout`.
    #[serde(rename = "k")]
    pub kind: String,
    /// For people.
    #[serde(rename = "x")]
    pub text: String,
    /// Whether another attempt might help; `false` overrides any policy.
    #[serde(rename = "r")]
    pub retryable: bool,
    /// Milliseconds that the other side asked to wait.
    #[serde(rename = "a", default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// Further fields of a declared error, by name.
    #[serde(rename = "f", default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub fields: serde_json::Map<String, Json>,
}

/// Why an attempt will never answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LostWhy {
    /// Its worker's process ended.
    WorkerGone,
    /// Its worker was silent for a whole lease.
    Lease,
    /// It was told to stop in time and did, its outcome unknown.
    Timeout,
    /// The engine restarted and nobody holds it.
    Restart,
    /// Its worker lives, but what it had started was ended by somebody else, or its code panicked: nobody saw how far it came.
    BrokenOff,
}

/// What a person says of an operation in doubt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Settlement {
    /// It happened, with this result.
    Happened(Json),
    /// It did not happen: another attempt.
    NotHappened,
    /// It counts as failed.
    Fail,
}

/// The choice of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// Yes.
    Approve,
    /// No.
    Reject,
    /// A value (`ask … for T`).
    Answer,
}

/// Reads an optional value that is there: a stored `null` is an answer, not the lack of one.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Json>, D::Error> {
    Json::deserialize(deserializer).map(Some)
}
