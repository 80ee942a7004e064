//! Operations: what a machine has open, as the engine and people see it. All of it is derived from events.

use outlast_dsl::machine::{FlowIx, StateIx};
use serde::{Deserialize, Serialize};

use crate::Json;
use crate::event::Failure;
use crate::ids::{Attempt, Millis, OpId, RunId};

/// Something that the machine has open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Operation {
    /// Its id.
    pub id: OpId,
    /// Where it belongs, such as `Act/OneTool.Run`.
    pub path: String,
    /// When it was opened.
    pub opened_at: Millis,
    /// When its own deadline or timer is due; none: it waits for ever.
    pub due: Option<Millis>,
    /// What it is.
    pub kind: OperationKind,
}

/// What an operation is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OperationKind {
    /// A declared operation outside the machine.
    Activity(Box<ActivityOp>),
    /// A timer arrow, a limit on age, or the deadline of a group or nested flow.
    Timer,
    /// Waits for messages of these types.
    Await(Vec<String>),
    /// Waits for the end of spawned runs.
    AwaitEnded {
        /// Any of these.
        runs: Vec<RunId>,
        /// Messages of these types end the wait too.
        types: Vec<String>,
    },
    /// A question to people.
    Question(Box<Question>),
    /// A flow is to be started as its own run. Stays open until `Spawned` acknowledges it.
    Spawn(Box<SpawnOp>),
    /// A spawned run that has not ended. `ChildEnded` closes it.
    Child(Box<ChildOp>),
    /// A spawned run is to be cancelled. Stays open until `Delivered` acknowledges it.
    CancelChild(Box<ChildOp>),
    /// The run that spawned this one is to be told of its end. Stays open until `Delivered` acknowledges it.
    TellParent(Box<EndNotice>),
}

impl OperationKind {
    /// Says whether it is something for another run that must be delivered, now and after every restart.
    #[must_use]
    pub fn is_outbox(&self) -> bool {
        match self {
            OperationKind::Spawn(_) | OperationKind::CancelChild(_) | OperationKind::TellParent(_) => true,
            OperationKind::Activity(_)
            | OperationKind::Timer
            | OperationKind::Await(_)
            | OperationKind::AwaitEnded { .. }
            | OperationKind::Question(_)
            | OperationKind::Child(_) => false,
        }
    }
}

/// A flow to be started as its own run. [`crate::State::child_start`] gives its first event and its machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpawnOp {
    /// The id that the run gets.
    pub run: RunId,
    /// The flow's name.
    pub flow: String,
    /// The arguments by name.
    pub input: Json,
    /// What happens to it when this run ends.
    pub on_close: OnClose,
}

/// A spawned run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChildOp {
    /// Its id.
    pub run: RunId,
    /// The operation that spawned it, by which it knows its parent.
    pub spawned_by: OpId,
    /// The flow's name.
    pub flow: String,
    /// What happens to it when this run ends.
    pub on_close: OnClose,
}

/// What happens to a spawned run when the one that spawned it ends or is cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnClose {
    /// It is cancelled.
    Cancel,
    /// It goes on.
    Detach,
}

/// The news that a spawned run has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EndNotice {
    /// The run that spawned it.
    pub parent: RunId,
    /// The operation that spawned it.
    pub op: OpId,
    /// How it ended.
    pub outcome: Outcome,
}

/// An open activity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActivityOp {
    /// The activity's name.
    pub activity: String,
    /// The queue that workers poll.
    pub queue: String,
    /// The effect class of this very call.
    pub class: Class,
    /// The arguments by parameter name.
    pub input: Json,
    /// The idempotency key: the same for every attempt, another one in a fork.
    pub key: String,
    /// The attempt that is in hand or comes next.
    pub attempt: Attempt,
    /// How far it is.
    pub phase: Phase,
    /// Milliseconds that one attempt may take, if bounded by itself (`within` beside `in all`).
    pub attempt_ms: Option<u64>,
    /// Milliseconds of silence after which an attempt is given up.
    pub silent_ms: Option<u64>,
    /// What a worker gave to resume with.
    pub handle: Option<Json>,
    /// The last failure, for people.
    pub last: Option<Failure>,
    /// The operation that this one undoes, if it does.
    pub undoes: Option<OpId>,
    /// Whether only the end of what is in hand is awaited, because its saga is about to undo. No attempt may be handed out any
    /// more; if none is in hand, `Void` says so.
    pub settling: bool,
}

/// The effect class of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Reads only: runs again.
    Pure,
    /// Runs again with the same key.
    Idempotent,
    /// Never runs again blindly.
    Once,
}

/// How far an activity is. For `pure` and `idempotent` work, whether a worker has it in hand is known to the engine only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// May be handed out.
    Ready,
    /// May be handed out from this moment on.
    RetryAt(Millis),
    /// A `once` attempt was begun; only its answer, its loss or a void moves it.
    Begun {
        /// The worker that has it.
        worker: String,
    },
    /// A `once` attempt ended without an answer; a verifying operation is open.
    Verifying(OpId),
    /// Waits for a person: why.
    Held(String),
    /// Waits until the budget has room.
    Budget,
}

/// A question to people.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// What is asked.
    pub text: String,
    /// What is shown with it, `null` if nothing.
    pub show: Json,
    /// The hash of what is shown (64 hexadecimal digits), which binds the answer.
    pub shown: String,
    /// Who must agree: how many of which role.
    pub to: Vec<(u32, String)>,
    /// The JSON Schema of the answer, for `ask … for T`.
    pub wanted: Option<Json>,
    /// Whether the shown value may be edited.
    pub editable: bool,
    /// Who has agreed so far: name and role.
    pub agreed: Vec<(String, String)>,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It reached `end`; the result.
    Done(Json),
    /// It reached `fail`; the error.
    Failed(Json),
    /// It was cancelled and cleaned up.
    Cancelled,
    /// It was stopped at once.
    Terminated,
}

/// A value that a flow showed to whoever watches, addressed (n, k).
#[derive(Clone, Debug, PartialEq)]
pub struct Emit {
    /// Its index within the event that caused it.
    pub k: u32,
    /// The path of the flow that emitted it.
    pub path: String,
    /// The value.
    pub value: Json,
}

/// What applying one event did; derived, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Effects {
    /// Operations that were opened.
    pub opened: Vec<OpId>,
    /// Operations that were closed; a worker that holds an attempt of one is told to stop.
    pub closed: Vec<OpId>,
    /// What was shown.
    pub emits: Vec<Emit>,
    /// States that were entered, as paths.
    pub entered: Vec<String>,
    /// Arrows that were taken, those of limits and timers too.
    pub taken: Vec<Taken>,
    /// Ids of messages that were taken by an arrow or discarded, unread before or just arrived.
    pub handled: Vec<String>,
    /// Whether the run ended with this event.
    pub ended: bool,
}

/// An arrow that was taken, by its place in the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Taken {
    /// The flow.
    pub flow: FlowIx,
    /// The state; none for an arrow or limit of the flow itself.
    pub state: Option<StateIx>,
    /// Which arrow.
    pub way: Way,
}

/// An arrow among those of its kind, by position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// `on …`.
    Arrow(u32),
    /// An arm of an arrow with a block: the arrow, the arm.
    Arm(u32, u32),
    /// A branch or an arm of `choose`.
    Branch(u32),
    /// `after`, `at`, `every`.
    Timer(u32),
    /// The way out of a limit.
    Limit(u32),
}

impl std::fmt::Display for Way {
    /// Writes it as the source map names it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Way::Arrow(at) => write!(f, "arrow {at}"),
            Way::Arm(arrow, at) => write!(f, "arrow {arrow} arm {at}"),
            Way::Branch(at) => write!(f, "branch {at}"),
            Way::Timer(at) => write!(f, "timer {at}"),
            Way::Limit(at) => write!(f, "limit {at}"),
        }
    }
}

/// Why a run is blocked: a fault of the machine. Derived, so replay blocks at the same event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Blocked {
    /// The event that could not be applied.
    pub event: u64,
    /// The path of the state.
    pub path: String,
    /// The place in the machine: flow name, state name, arrow (`arrow 2`, `effect`, `data x`); the source map turns it into a line.
    pub place: (String, Option<String>, String),
    /// What went wrong.
    pub cause: String,
}
