//! A run as every surface shows it.

use outlast_kernel::Json;
use serde::{Deserialize, Serialize};

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunView {
    /// Its id.
    pub id: String,
    /// Its flow's name.
    pub flow: String,
    /// The hash of the machine that it is pinned to.
    pub machine: String,
    /// `running`, `waiting`, `blocked` or `ended`.
    pub status: String,
    /// The active state, such as `Act/OneTool.Run`.
    pub state: String,
    /// Why it does not move by itself; none while a worker has something in hand, or at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<WaitingFor>,
    /// Only when ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<OutcomeView>,
    /// Open questions.
    pub questions: Vec<QuestionView>,
    /// Messages that were accepted and not taken yet.
    pub unread: Vec<Json>,
    /// Money spent, a decimal.
    pub cost: String,
    /// Tokens that language models read and wrote, as far as workers have told.
    #[serde(default)]
    pub tokens: TokensView,
    /// How many events its history has.
    pub events: u64,
    /// RFC 3339.
    pub started_at: String,
    /// RFC 3339.
    pub updated_at: String,
    /// The run and event that it was forked or spawned from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Json>,
    /// The environment profile.
    pub profile: String,
}

/// Tokens of language models.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokensView {
    /// Read.
    pub input: u64,
    /// Written.
    pub output: u64,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutcomeView {
    /// `done`, `failed`, `cancelled` or `terminated`.
    pub kind: String,
    /// The result of `done`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Json>,
    /// The error of `failed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Json>,
}

/// The closed list of reasons why a run does not move.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum WaitingFor {
    /// No free worker polls this queue.
    Worker {
        /// The queue.
        queue: String,
        /// The activity.
        activity: String,
    },
    /// Workers poll the queue, but none offers the activity.
    Activity {
        /// The queue.
        queue: String,
        /// The activity.
        activity: String,
    },
    /// Its queue gives out no task now: a rate is set for it, and used up.
    Rate {
        /// The queue.
        queue: String,
        /// The activity.
        activity: String,
        /// When the queue gives out its next task, which is that of whoever waits longest. RFC 3339.
        until: String,
    },
    /// The next attempt of an activity.
    Retry {
        /// RFC 3339.
        until: String,
        /// The activity.
        activity: String,
        /// What the last attempt said.
        error: String,
    },
    /// A person's answer.
    Question {
        /// The question's id.
        id: String,
    },
    /// A message of one of these types.
    Message {
        /// Their names.
        types: Vec<String>,
    },
    /// A timer.
    Timer {
        /// RFC 3339.
        until: String,
    },
    /// A spawned run.
    Child {
        /// Its id.
        run: String,
    },
    /// Room in the budget.
    Budget {
        /// The activity.
        activity: String,
    },
    /// A worker for the run's environment profile.
    Environment {
        /// The profile.
        profile: String,
        /// What is missing.
        detail: String,
    },
    /// A person's decision on an operation.
    Held {
        /// Why.
        reason: String,
        /// The operation.
        op: String,
    },
    /// A fault of its machine.
    Blocked {
        /// The event that could not be applied.
        event: u64,
        /// The line of Flow, if known: `file:line`.
        line: String,
        /// The source text of the place.
        expression: String,
        /// What went wrong.
        cause: String,
    },
}

/// An open question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuestionView {
    /// Its id, `n.k`.
    pub id: String,
    /// What is asked.
    pub text: String,
    /// What is shown with it.
    pub show: Json,
    /// The hash that an answer must echo when it names one.
    pub shown: String,
    /// Who is asked: roles, with a count if more than one.
    pub to: Vec<String>,
    /// The JSON Schema of the answer, if a value is wanted.
    #[serde(rename = "for", default, skip_serializing_if = "Option::is_none")]
    pub wanted: Option<Json>,
    /// Whether the shown value may be edited.
    pub editable: bool,
    /// When it expires, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<String>,
    /// When it was opened, RFC 3339.
    pub opened_at: String,
    /// Where in the flow, such as `Act/OneTool.Approve`.
    pub path: String,
}

/// A frame of a run's stream. The text after `event:` in server-sent events is the tag.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Frame {
    /// `RUN/n.k`; none for partial output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// What it is.
    pub event: FrameKind,
    /// `emit`: `{run, n, k, kind, value, path}`; `question`: a question; `answered`: the stored event; `state`: `{run, n, state}`;
    /// `ended`: the outcome; `partial`: `{run, op, attempt, offset, text, activity}` or `{run, op, attempt, restart: true}`.
    pub data: Json,
}

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FrameKind {
    /// The flow showed a value.
    Emit,
    /// A question was opened.
    Question,
    /// A question was answered, expired or closed.
    Answered,
    /// States were entered.
    State,
    /// The run ended.
    Ended,
    /// Output of an attempt in hand; never history.
    Partial,
}

impl FrameKind {
    /// Returns the name that is sent.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            FrameKind::Emit => "emit",
            FrameKind::Question => "question",
            FrameKind::Answered => "answered",
            FrameKind::State => "state",
            FrameKind::Ended => "ended",
            FrameKind::Partial => "partial",
        }
    }
}
