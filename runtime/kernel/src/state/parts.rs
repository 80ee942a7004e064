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
use crate::ids::{Attempt, Millis, OpId, Seq};
use crate::operation::{Class, Operation, Phase};
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
    /// One count for each limit of the flow; zero for limits that count no visits.
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
}

/// What the effect of a state has open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Active {
    /// Only messages and timers move it on.
    Idle,
    /// The run is cancelled; this flow has no state any more, but may clean up later.
    Stopped,
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
}

/// What an operation is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Work {
    Activity(Box<ActivityWork>),
    /// A timer; with the period of `every`.
    Timer(Option<u64>),
    Await(Arc<[String]>),
    Ask(Box<AskWork>),
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
}

/// The end of a piece of work.
#[derive(Clone, Debug)]
pub(crate) struct Completion {
    pub(crate) outcome: On,
    pub(crate) payload: Value,
    /// The same as a `Problem`, for failures.
    pub(crate) problem: Option<Value>,
    /// Result variables of the effect.
    pub(crate) slots: Vec<(Slot, Value)>,
}

impl Completion {
    /// Makes a completion that is no failure.
    pub(crate) fn new(outcome: On, payload: Value) -> Completion {
        Completion { outcome, payload, problem: None, slots: Vec::new() }
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
