//! Arrows: what an outcome does and where it leads.

use serde::{Deserialize, Serialize};

use super::{ActivityIx, Cond, DataIx, Expr, MessageIx, Slot, StateIx, TypeIx};

/// `on X {fields} if cond acts -> goal`, in a state or in a flow's scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrow {
    /// The outcomes that it fits.
    pub on: Vec<Outcome>,
    /// What its payload is.
    pub payload: Payload,
    /// Where the payload and its fields go.
    pub bind: Bind,
    /// A further condition; an arrow whose guard is false is passed over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<Cond>,
    /// What it does first, in text order within each kind: set, discard, settle, also do, emit.
    pub acts: Vec<Act>,
    /// Where it leads.
    pub then: Then,
}

/// One member of an effect's closed set of outcomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The effect did what it should. Payload: its result.
    Ok,
    /// A declared error of the activity or flow. Payload: the error.
    Error(TypeIx),
    /// A failure that is not declared. Payload: `Problem`.
    Failed,
    /// The time is over. Payload: `Problem` for activities, else `nothing`.
    Timeout,
    /// Declared errors, `failed` and `timeout`. Payload: `Problem`.
    Problem,
    /// Nobody knows whether a `once` activity happened. Payload: `doubt<T>`.
    Unknown,
    /// A message arrived. Payload: a record of its fields.
    Message(MessageIx),
    /// Whoever sends messages will send no more. Payload: `nothing`.
    Closed,
    /// A spawned run ended. Payload: a record `{outcome: Ended<T>, handle}`: how, and which one.
    Ended,
    /// A person said yes. Payload: `approved<T>`.
    Approve,
    /// A person gave a value. Payload: a record `{value, by}`.
    Answer,
    /// A person said no. Payload: a record `{note: text, by: text}`.
    Reject,
    /// A run with this name exists already. Payload: `nothing`.
    Exists,
    /// A saga could not undo everything. Payload: a record `{undone, failed, left}` of lists of `Undo`.
    UndoFailed,
}

impl Outcome {
    /// Whether a member of a group ends well with it.
    pub(crate) fn is_good(self) -> bool {
        match self {
            Outcome::Ok
            | Outcome::Approve
            | Outcome::Answer
            | Outcome::Message(_)
            | Outcome::Closed
            | Outcome::Ended => true,
            Outcome::Error(_)
            | Outcome::Failed
            | Outcome::Timeout
            | Outcome::Problem
            | Outcome::Unknown
            | Outcome::Reject
            | Outcome::Exists
            | Outcome::UndoFailed => false,
        }
    }
}

/// How an arrow sees its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Payload {
    /// As the outcome gives it.
    Own,
    /// As `Problem`, whatever the outcome (arrows on `problem`, or on several failures at once).
    Problem,
}

/// Where a payload goes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bind {
    /// The whole payload (`as x`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<Slot>,
    /// Single fields (`{note, by: who}`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<(String, Slot)>,
}

/// Where an arrow leads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Then {
    /// To one goal.
    Goal(Goal),
    /// By the variant of the payload; exhaustive, the first arm that fits. The arrow's acts come first.
    Arms(Vec<Arm>),
}

/// One arm of an arrow or of `choose v { … }`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arm {
    /// The variant's tag.
    pub tag: String,
    /// Fields to bind.
    pub fields: Vec<(String, Slot)>,
    /// A further condition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<Cond>,
    /// What it does first.
    pub acts: Vec<Act>,
    /// Where it leads.
    pub goal: Goal,
}

/// Something that an arrow does on its way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    /// Changes a data field; later acts and the goal's arguments see the new value.
    Set(Assign),
    /// Drops unread messages of a type.
    Discard(MessageIx),
    /// Settles a doubt with a verdict: `Happened` gives the undo the result, `NotHappened` takes it off the undo stack,
    /// `CannotTell` changes nothing.
    Settle(Expr, Expr),
    /// Opens an activity whose outcome moves nothing.
    AlsoDo(ActivityIx, Vec<Expr>),
    /// Shows a value to whoever watches the run.
    Emit(Expr),
}

/// A change of a data field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assign {
    /// The field.
    pub data: DataIx,
    /// How.
    pub op: AssignOp,
    /// With what.
    pub value: Expr,
}

/// How an assignment changes its field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AssignOp {
    /// `=`
    Set,
    /// `+=`, with the meaning of `+`
    Add,
    /// `-=`, with the meaning of `-`
    Sub,
}

/// The end of an arrow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Goal {
    /// Enters a state of the same flow; its effect starts anew.
    State(StateIx, Vec<Expr>),
    /// Stays: the message is taken, the open operation and its deadline go on.
    Stay,
    /// Ends the flow with its result.
    End(Expr),
    /// Fails the flow with one of its declared errors.
    Fail(Expr),
}

/// `after D`, `at T`, `every D`: an arrow that time takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimerArrow {
    /// Which of the three.
    pub kind: TimerKind,
    /// A duration (`after`, `every`) or a time (`at`), evaluated on entry.
    pub due: Expr,
    /// What it does first.
    pub acts: Vec<Act>,
    /// Where it leads.
    pub goal: Goal,
}

/// When a timer arrow is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimerKind {
    /// Once, this long after entry.
    After,
    /// Once, at this time.
    At,
    /// Again and again; with `-> stay` it is armed anew from its nominal time.
    Every,
}
