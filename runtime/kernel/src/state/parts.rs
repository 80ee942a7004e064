//! What a state consists of: nodes (flow instances and groups) and operations.
//!
//! Leaves all behaviour to the files beside it. Invariant: everything here is shared and cheap to clone, and can be written to a
//! snapshot without loss.

use std::sync::{Arc, OnceLock};

use outlast_dsl::machine::{ActivityIx, FlowIx, Outcome as On, Slot, StateIx, Type};
use rpds::VectorSync;
use serde::{Deserialize, Serialize};

use crate::Json;
use crate::event::Failure;
use crate::ids::{Attempt, Millis, OpId, RunId, Seq};
use crate::operation::{Class, EndNotice, OnClose, Operation, Outcome, Phase};
use crate::value::Value;

/// Names a node: the j-th that was made while event n was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct NodeId(pub(crate) Seq, pub(crate) u32);

/// Whom a node or an operation reports to: the effect of a flow instance, or a member of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Parent {
    pub(crate) node: NodeId,
    pub(crate) member: Option<u32>,
}

/// A flow instance or a group, in the tree of what is active.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Node {
    /// None for the root.
    pub(crate) parent: Option<Parent>,
    /// How deep it is in the tree.
    pub(crate) level: u32,
    /// The timer that ends it.
    pub(crate) deadline: Option<OpId>,
    pub(crate) kind: NodeKind,
}

/// What a node is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum NodeKind {
    Flow(FlowNode),
    Group(GroupNode),
}

/// An instance of a flow.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct FlowNode {
    pub(crate) flow: FlowIx,
    /// What stands before its state's name in paths.
    pub(crate) prefix: Arc<str>,
    pub(crate) params: Arc<[Value]>,
    pub(crate) data: Vec<Value>,
    /// One figure for each limit of the flow: how many visits; of cost and age, 1 while it is broken and its way out was taken.
    pub(crate) visits: Vec<i64>,
    pub(crate) started_at: Millis,
    /// Whether something outside may have changed on its behalf.
    pub(crate) acted: bool,
    pub(crate) state: StateIx,
    pub(crate) args: Arc<[Value]>,
    pub(crate) active: Active,
    /// Armed timers of the active state: index and operation.
    pub(crate) timers: Vec<(u32, OpId)>,
    /// Armed limits on age: index and operation.
    pub(crate) limits: Vec<(u32, OpId)>,
    /// A saga that is being left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) undoing: Option<Box<Undoing>>,
}

/// How far a saga is that is being left.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Undoing {
    /// How it ends when everything is undone; none if nobody is told.
    pub(crate) then: Option<Completion>,
    /// Whether flows inside it clean up first, because the run is cancelled.
    pub(crate) queued: bool,
    /// The operation that undoes.
    pub(crate) current: Option<OpId>,
    /// What was undone, and what could not be, as `Undo` records.
    pub(crate) undone: Vec<Value>,
    pub(crate) failed: Vec<Value>,
}

/// Something that a saga undoes if it is left: an operation that may have happened. Named by the operation's id.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Undo {
    /// The saga.
    pub(crate) saga: NodeId,
    pub(crate) activity: ActivityIx,
    pub(crate) args: Arc<[Value]>,
    /// The result, if it is known.
    pub(crate) result: Option<Value>,
}

/// What the effect of a state has open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Active {
    /// Only messages and timers move it on.
    Idle,
    /// The run is cancelled; this flow has no state any more, but may clean up later.
    Stopped,
    /// A saga that is being left: it has no state any more, and undoes.
    Undoing,
    Op(OpId),
    Child(NodeId),
}

/// A fan-out or regions side by side.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct GroupNode {
    /// The flow instance whose state it belongs to.
    pub(crate) flow: NodeId,
    /// Items of a fan-out; empty for regions.
    pub(crate) items: Arc<[Value]>,
    #[serde(with = "seq")]
    pub(crate) members: VectorSync<Member>,
    /// The first member that was not started.
    pub(crate) next: u32,
    pub(crate) at_most: u32,
    pub(crate) open: u32,
    pub(crate) done: u32,
    pub(crate) failed: u32,
    /// No new members start; open ones may end.
    pub(crate) draining: bool,
}

/// A member of a group.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Member {
    NotStarted,
    Op(OpId),
    Node(NodeId),
    Done(Value),
    /// With its problem.
    Failed(Value),
    Cut,
}

/// An operation.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Op {
    pub(crate) id: OpId,
    pub(crate) owner: Owner,
    /// The flow instance in whose name it was opened.
    pub(crate) flow: NodeId,
    pub(crate) path: Arc<str>,
    pub(crate) opened_at: Millis,
    pub(crate) due: Option<Millis>,
    /// Its part of the digest; never changes while it is open.
    pub(crate) hash: u64,
    pub(crate) work: Work,
    /// What the outside sees; made when someone looks, because it copies the input.
    #[serde(skip)]
    pub(crate) view: OnceLock<Operation>,
}

impl Op {
    /// Returns a copy without the view, to be changed.
    pub(crate) fn edit(&self) -> Op {
        Op {
            id: self.id,
            owner: self.owner,
            flow: self.flow,
            path: Arc::clone(&self.path),
            opened_at: self.opened_at,
            due: self.due,
            hash: self.hash,
            work: self.work.clone(),
            view: OnceLock::new(),
        }
    }
}

/// Who is told of the end of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Owner {
    /// The effect of a flow instance or a member of a group.
    Work(Parent),
    /// A timer arrow of the active state.
    Timer(NodeId, u32),
    /// A limit on age.
    Limit(NodeId, u32),
    /// The deadline of a node.
    Deadline(NodeId),
    /// Nobody: `also do`.
    Also,
    /// The operation that is verified.
    Verify(OpId),
    /// The deadline of a clean-up.
    CleanUp,
    /// The run: spawned runs, and what other runs are to be told.
    Run,
    /// How long a cancel waits for spawned runs.
    Children,
    /// A saga that waits for its end before it undoes; whoever opened it is gone.
    Settling,
    /// The saga that undoes an operation.
    Undo(NodeId, OpId),
}

impl Owner {
    /// Returns the operation that is undone for it.
    pub(crate) fn undoes(self) -> Option<OpId> {
        match self {
            Owner::Undo(_, of) => Some(of),
            Owner::Work(_)
            | Owner::Timer(..)
            | Owner::Limit(..)
            | Owner::Deadline(_)
            | Owner::Also
            | Owner::Verify(_)
            | Owner::CleanUp
            | Owner::Run
            | Owner::Children
            | Owner::Settling => None,
        }
    }
}

/// What an operation is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Work {
    Activity(Box<ActivityWork>),
    /// A timer; with the period of `every`.
    Timer(Option<u64>),
    Await(Arc<[String]>),
    Ask(Box<AskWork>),
    /// A wait for the end of spawned runs, by their handles; messages end it too.
    AwaitEnded(Arc<[RunId]>, Arc<[String]>),
    /// A run is to be started.
    Spawn(Box<ChildWork>),
    /// It was started and has not ended.
    Child(Box<ChildWork>),
    /// It is to be cancelled; by the operation that spawned it.
    CancelChild(OpId, Box<ChildWork>),
    /// The run that spawned this one is to be told of its end.
    TellParent(Box<EndNotice>),
}

impl ActivityWork {
    /// Tells whether an attempt was begun and nobody knows whether it happened.
    pub(crate) fn in_doubt(&self) -> bool {
        self.begun && matches!(self.phase, Phase::Held(_) | Phase::Verifying(_))
    }
}

impl Work {
    /// Returns the activity that it is.
    pub(crate) fn activity(&self) -> Option<&ActivityWork> {
        match self {
            Work::Activity(work) => Some(work),
            Work::Timer(_)
            | Work::Await(_)
            | Work::Ask(_)
            | Work::AwaitEnded(..)
            | Work::Spawn(_)
            | Work::Child(_)
            | Work::CancelChild(..)
            | Work::TellParent(_) => None,
        }
    }

    /// Returns the question that it is.
    pub(crate) fn question(&self) -> Option<&AskWork> {
        match self {
            Work::Ask(ask) => Some(ask),
            Work::Activity(_)
            | Work::Timer(_)
            | Work::Await(_)
            | Work::AwaitEnded(..)
            | Work::Spawn(_)
            | Work::Child(_)
            | Work::CancelChild(..)
            | Work::TellParent(_) => None,
        }
    }
}

/// A spawned run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ChildWork {
    /// Its id.
    pub(crate) run: RunId,
    /// The value by which the machine knows it: the id, unless a fork spawned it again.
    pub(crate) handle: RunId,
    /// Whether the id was made from the run's id and the operation.
    pub(crate) derived: bool,
    pub(crate) flow: FlowIx,
    pub(crate) args: Arc<[Value]>,
    pub(crate) on_close: OnClose,
    /// Whether it was told to stop.
    pub(crate) cancelled: bool,
}

/// How a spawned run ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct EndedChild {
    pub(crate) n: Seq,
    pub(crate) flow: FlowIx,
    pub(crate) outcome: Outcome,
}

/// An open activity.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ActivityWork {
    pub(crate) activity: ActivityIx,
    pub(crate) args: Arc<[Value]>,
    pub(crate) class: Class,
    pub(crate) verify: Option<ActivityIx>,
    /// The operation whose id makes the idempotency key.
    pub(crate) key: OpId,
    pub(crate) attempt: Attempt,
    /// Attempts that do not count: voided, or ended by a restart of the engine.
    pub(crate) uncounted: u32,
    /// Whether the attempt was begun and has not answered (`once` only).
    pub(crate) begun: bool,
    pub(crate) phase: Phase,
    /// When the next attempt may start.
    pub(crate) not_before: Option<Millis>,
    pub(crate) handle: Option<Json>,
    pub(crate) last: Option<Failure>,
    /// Whether its `costs` are reserved.
    pub(crate) reserved: bool,
    /// How often a verifier said that it did not happen.
    pub(crate) not_happened: u32,
    /// Whether its deadline has passed: no further attempt.
    pub(crate) expired: bool,
    /// Whether a fork took it over in doubt: only a person or an arrow settles it.
    pub(crate) forked: bool,
    /// Whether only the end of the attempt in hand is awaited.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) settling: bool,
    /// Whether an attempt before ended without an answer; known for what has an undo.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) doubtful: bool,
}

/// An open question.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct AskWork {
    pub(crate) text: Arc<str>,
    pub(crate) show: Value,
    pub(crate) shown_type: Type,
    pub(crate) shown: String,
    pub(crate) editable: bool,
    pub(crate) answer: Option<Type>,
    pub(crate) to: Vec<(u32, String)>,
    pub(crate) agreed: Vec<(String, String)>,
}

/// An unread message.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Mail {
    pub(crate) id: String,
    /// The flow whose message type it has.
    pub(crate) flow: FlowIx,
    pub(crate) message: u32,
    pub(crate) value: Value,
}

/// A cancel in progress.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Cancelling {
    /// Flow instances that still want to clean up, the last one next.
    pub(crate) left: Vec<NodeId>,
    /// The one that cleans up.
    pub(crate) current: Option<NodeId>,
    pub(crate) deadline: Option<OpId>,
    /// How long spawned runs are waited for; they come first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) children: Option<OpId>,
    /// The saga whose turn it is to undo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) undoing: Option<NodeId>,
    /// What sagas undid, could not undo, and did not try, as `Undo` records.
    #[serde(default, skip_serializing_if = "Report::is_empty")]
    pub(crate) report: Report,
}

/// What became of undo stacks, as `Undo` records.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) undone: Vec<Value>,
    pub(crate) failed: Vec<Value>,
    pub(crate) left: Vec<Value>,
}

impl Report {
    fn is_empty(&self) -> bool {
        self.undone.is_empty() && self.failed.is_empty() && self.left.is_empty()
    }
}

/// What is known of whether an operation did what it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Happened {
    Yes,
    No,
    Maybe,
}

/// The end of a piece of work.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Completion {
    pub(crate) outcome: On,
    pub(crate) payload: Value,
    pub(crate) happened: Happened,
    /// The same as a `Problem`, for failures.
    pub(crate) problem: Option<Value>,
    /// Result variables of the effect.
    pub(crate) slots: Vec<(Slot, Value)>,
}

impl Completion {
    /// Makes a completion that is no failure.
    pub(crate) fn new(outcome: On, payload: Value) -> Completion {
        let happened = match outcome {
            On::Ok => Happened::Yes,
            On::Unknown | On::Timeout => Happened::Maybe,
            On::Error(_)
            | On::Failed
            | On::Problem
            | On::Message(_)
            | On::Closed
            | On::Ended
            | On::Approve
            | On::Answer
            | On::Reject
            | On::Exists
            | On::UndoFailed => Happened::No,
        };
        Completion { outcome, payload, happened, problem: None, slots: Vec::new() }
    }
}

mod seq {
    //! Persistent vectors as plain sequences.

    use rpds::VectorSync;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<T: Serialize, S: Serializer>(
        items: &VectorSync<T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(items.iter())
    }

    pub(super) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<VectorSync<T>, D::Error> {
        Ok(Vec::<T>::deserialize(deserializer)?.into_iter().collect())
    }
}
