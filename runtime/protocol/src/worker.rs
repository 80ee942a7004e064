//! The worker protocol: register, poll, report, progress, control.
//!
//! Every call is a `POST /v1/workers/NAME` with a JSON body (control is a `GET` with a query). A worker can be written with curl.

use outlast_kernel::Json;
use outlast_kernel::json::canonical_text;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// `register`: who the worker is, what it offers, what it still holds from before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Register {
    /// The worker's name, unique among workers that live at once.
    pub worker: String,
    /// New for every process of the worker.
    pub boot: String,
    /// The queues that it polls.
    pub queues: Vec<String>,
    /// The environment profile that it serves; none: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// How many attempts it runs at once.
    pub concurrency: u32,
    /// What it offers.
    pub activities: Vec<Offer>,
    /// Tokens of tasks that it holds from before the connection was lost.
    #[serde(default)]
    pub holding: Vec<String>,
    /// The process id, for supervision on one machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
}

/// An activity that a worker offers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Offer {
    /// Its name.
    pub name: String,
    /// The JSON Schema of its input, `null` if unknown.
    #[serde(default)]
    pub input: Json,
    /// The JSON Schema of its output, `null` if unknown.
    #[serde(default)]
    pub output: Json,
    /// `pure`, `idempotent` or `once`: the strongest promise that it keeps; empty: whatever the flow declares.
    #[serde(default)]
    pub effect: String,
}

/// The answer to `register`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Registered {
    /// The session, named in every later call.
    pub session: String,
    /// The lease in milliseconds, renewed by any call.
    pub lease_ms: u64,
    /// Tokens that stay with the worker.
    pub keep: Vec<String>,
    /// Tokens whose attempts the worker must stop.
    pub drop: Vec<String>,
}

/// `poll`: asks for tasks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Poll {
    /// The session.
    pub session: String,
    /// At most this many tasks.
    pub max: u32,
    /// How long to wait for the first one.
    pub wait_ms: u64,
    /// The worker is draining: no more tasks, please.
    #[serde(default)]
    pub leaving: bool,
}

/// The answer to `poll`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Polled {
    /// The tasks.
    pub tasks: Vec<Task>,
}

/// An attempt as handed to a worker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Names this attempt; unforgeable.
    pub token: String,
    /// The run.
    pub run: String,
    /// The operation, `n.k`.
    pub op: String,
    /// The activity.
    pub activity: String,
    /// 1, 2, 3 …
    pub attempt: u32,
    /// The idempotency key: the same for every attempt.
    pub key: String,
    /// The effect class of this call.
    pub effect: String,
    /// The arguments by parameter name.
    pub input: Json,
    /// When the attempt's time is over, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<String>,
    /// Milliseconds that are left for this attempt, if bounded: clocks may differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_ms: Option<u64>,
    /// A sign of life is wanted this often.
    pub heartbeat_ms: u64,
    /// What an earlier attempt left to resume with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handle: Option<Json>,
    /// The [`definition`] of the called tool as the run's catalogue has it; none if the catalogue does not have the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
}

/// Returns the hash of what a tool is to whoever calls it: 64 hexadecimal digits. A call that was approved for one definition is
/// refused by another.
#[must_use]
pub fn definition(name: &str, description: &str, input: &Json) -> String {
    let whole = json!({ "name": name, "description": description, "input": input });
    blake3::hash(canonical_text(&whole).as_bytes()).to_hex().to_string()
}

/// `report`: results of attempts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// The session.
    pub session: String,
    /// One for each token.
    pub results: Vec<Outcome>,
}

/// The end, or a handle, of one attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The task's token.
    pub token: String,
    /// What happened.
    #[serde(flatten)]
    pub kind: OutcomeKind,
}

/// What happened to an attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum OutcomeKind {
    /// The result.
    Done {
        /// The value.
        value: Json,
        /// Money spent, a decimal.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<String>,
        /// Tokens and the like: `input_tokens` and `output_tokens` are kept with the result and counted for the run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Json>,
    },
    /// It failed.
    Failed {
        /// How.
        error: TaskError,
        /// Money spent, a decimal.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<String>,
        /// As of `Done`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Json>,
    },
    /// Something to resume with; durable before it is acknowledged.
    Handle {
        /// The handle.
        handle: Json,
    },
    /// The attempt's processes are gone.
    Stopped {
        /// `timeout`, `cancelled`, `leaving` or `broken_off`.
        why: StoppedWhy,
    },
}

/// Why an attempt stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoppedWhy {
    /// Its time was over.
    Timeout,
    /// It was cancelled.
    Cancelled,
    /// The worker leaves.
    Leaving,
    /// The worker stays, but could not see how far it came: what it had started was ended by somebody else, or its code panicked.
    BrokenOff,
}

/// How an attempt failed. Fields beyond these are fields of a declared error.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TaskError {
    /// The error's name.
    pub kind: String,
    /// For people.
    pub text: String,
    /// Whether another attempt might help.
    #[serde(default)]
    pub retryable: bool,
    /// A duration such as `"20s"` that the other side asked to wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<String>,
    /// Fields of a declared error.
    #[serde(flatten)]
    pub fields: serde_json::Map<String, Json>,
}

/// The answer to `report`: one for each result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reported {
    /// In the order of the results.
    pub results: Vec<Receipt>,
}

/// What became of one result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The token.
    pub token: String,
    /// What became of it.
    pub status: ReceiptStatus,
}

/// What became of one result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReceiptStatus {
    /// It is durable (or was before: the same report again).
    Accepted,
    /// It no longer counts.
    Superseded,
    /// The token was never given out by this store.
    UnknownToken,
    /// Try again: the runtime is not ready.
    Retry,
}

/// `progress`: signs of life and partial output.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// The session.
    pub session: String,
    /// One for each task in hand.
    pub tasks: Vec<TaskProgress>,
}

/// A sign of life of one task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskProgress {
    /// The token.
    pub token: String,
    /// Where `text` begins in the attempt's output, in characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// New partial output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// How far it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<f64>,
}

/// The answer to `control`: tokens whose attempts must stop.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Control {
    /// The tokens.
    pub cancel: Vec<String>,
}
