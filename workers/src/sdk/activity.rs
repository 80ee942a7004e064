//! What a worker can do: activities, and how their attempts end.
//!
//! Leaves the connection to the other modules. Invariant: an attempt ends with a result, with an answer that it failed, or is
//! stopped from outside; there is no fourth way.

use std::time::Duration;

use outlast_protocol::worker::{Offer, TaskError};

use super::context::TaskContext;
use crate::Json;

/// Something that a worker does for flows.
#[async_trait::async_trait]
pub trait Activity: Send + Sync + 'static {
    /// Says what it is: name, JSON Schemas of input and output, effect class (empty: whatever the flow declares).
    fn offer(&self) -> Offer;

    /// Runs one attempt.
    ///
    /// The future is dropped when the attempt is stopped (cancelled, out of time, worker leaving), unless it has asked for
    /// [`TaskContext::cancelled`]: then it gets a moment to end by itself.
    ///
    /// # Errors
    /// [`Failure`] is an answer: the attempt is over, and the flow's retry policy decides. For a `once` activity it says that the
    /// effect did not happen.
    async fn run(&self, task: TaskContext) -> Result<Done, Failure>;
}

/// The result of an attempt.
#[derive(Clone, Debug, PartialEq)]
pub struct Done {
    /// The value.
    pub value: Json,
    /// Money spent, a decimal.
    pub cost: Option<String>,
    /// What it took: `input_tokens` and `output_tokens` are counted for the run.
    pub usage: Option<Json>,
}

impl Done {
    /// Makes a result that cost nothing.
    pub fn new(value: impl Into<Json>) -> Done {
        Done { value: value.into(), cost: None, usage: None }
    }
}

/// Why an attempt failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{kind}: {text}")]
pub struct Failure {
    /// The error's name; a flow that declares it can react to it.
    pub kind: String,
    /// For people and models.
    pub text: String,
    /// Whether another attempt might help.
    pub retryable: bool,
    /// How long the other side asked to wait.
    pub retry_after: Option<Duration>,
    /// Fields of a declared error.
    pub fields: serde_json::Map<String, Json>,
    /// Money spent, a decimal.
    pub cost: Option<Box<str>>,
    /// As of [`Done`].
    pub usage: Option<Box<Json>>,
}

impl Failure {
    /// Makes a failure that another attempt would not mend.
    pub fn new(kind: impl Into<String>, text: impl Into<String>) -> Failure {
        Failure {
            kind: kind.into(),
            text: text.into(),
            retryable: false,
            retry_after: None,
            fields: serde_json::Map::new(),
            cost: None,
            usage: None,
        }
    }

    /// Makes the failure of a task whose input does not fit.
    pub fn bad_input(text: impl Into<String>) -> Failure {
        Failure::new("BadInput", text)
    }

    /// Says that another attempt might help.
    #[must_use]
    pub fn retryable(mut self) -> Failure {
        self.retryable = true;
        self
    }

    /// Adds a field of a declared error.
    #[must_use]
    pub fn field(mut self, name: &str, value: impl Into<Json>) -> Failure {
        self.fields.insert(name.to_owned(), value.into());
        self
    }

    pub(crate) fn into_error(self) -> TaskError {
        let mut fields = self.fields;
        // The names of the frame win: a field of the same name would make the JSON ambiguous.
        for taken in ["kind", "text", "retryable", "retry_after"] {
            fields.remove(taken);
        }
        TaskError {
            kind: self.kind,
            text: self.text,
            retryable: self.retryable,
            retry_after: self.retry_after.map(duration_text),
            fields,
        }
    }
}

/// Writes a duration as Flow does: `"20s"`, `"1500ms"`.
#[must_use]
pub fn duration_text(duration: Duration) -> String {
    let ms = duration.as_millis();
    if ms.is_multiple_of(1_000) { format!("{}s", ms / 1_000) } else { format!("{ms}ms") }
}
