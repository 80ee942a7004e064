//! Events: the only thing that replay reads.
//!
//! A closed list of facts from outside. What follows from them (states, operations, inputs, questions, emits) is derived and
//! never stored. The one- and two-letter keys are the stored form; [`crate::event`] types change only by added optional fields.

use serde::{Deserialize, Serialize};

use crate::Json;
use crate::ids::{Attempt, Millis, OpId, RunId, Seq};

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
}

/// What a run knows of its surroundings; changed only by events.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// The environment profile whose workers run its tasks (see the engine).
    #[serde(rename = "p")]
    pub profile: String,
    /// Tool patterns that are never allowed without a person, such as `shell(rm *)`.
    #[serde(rename = "d", default, skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
    /// Tool patterns that a person is asked about.
    #[serde(rename = "q", default, skip_serializing_if = "Vec::is_empty")]
    pub ask: Vec<String>,
    /// Tool patterns that need no question, by policy.
    #[serde(rename = "w", default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// Tool patterns that a person allowed for this run; not carried to forks.
    #[serde(rename = "g", default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<String>,
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
