//! What one run tells another: start, stop, it is over.
//!
//! The open operation of the sender is the outbox: it is told now and after every restart until an event of the sender acknowledges it.
//! Leaves taking it to the shard of the receiver. Invariant: a parcel names its sender and operation, so that the receiver does the same
//! thing once, however often it is told.

use std::sync::Arc;

use outlast_dsl::machine::Machine;
use outlast_kernel::event::{Receipt, SpawnResult, Started};
use outlast_kernel::ids::{OpId, RunId};
use outlast_kernel::input::Input;
use outlast_kernel::operation::{Operation, OperationKind, Outcome};
use outlast_kernel::{ChildStart, State};

use super::dispatch::WorkId;

/// What one run tells another.
#[derive(Debug)]
pub(crate) struct Parcel {
    /// The operation that tells it.
    pub(crate) from: WorkId,
    /// The run that is told.
    pub(crate) to: RunId,
    pub(crate) news: News,
}

/// What is told.
#[derive(Debug)]
pub(crate) enum News {
    /// Begin, with this first event and its machine, whose text is that of the sender's machine.
    Begin(Box<Started>, Arc<Machine>, String),
    /// Stop, if this operation spawned you.
    Stop(OpId),
    /// The run that this operation spawned has ended.
    Ended(OpId, Outcome),
    /// Tell me when you have ended.
    Await,
}

/// The kinds of news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Begin,
    Stop,
    Ended,
    Await,
}

/// Returns what an open operation tells another run; `shared`: it stems from before the run was forked.
pub(crate) fn kind(operation: &Operation, shared: bool) -> Option<Kind> {
    match &operation.kind {
        OperationKind::Spawn(_) => Some(Kind::Begin),
        OperationKind::CancelChild(_) => Some(Kind::Stop),
        OperationKind::TellParent(_) => Some(Kind::Ended),
        OperationKind::Child(_) => shared.then_some(Kind::Await),
        OperationKind::Activity(_)
        | OperationKind::Timer
        | OperationKind::Await(_)
        | OperationKind::AwaitEnded { .. }
        | OperationKind::Question(_) => None,
    }
}

/// Makes what an open operation of a run tells another one; none if it tells nothing.
pub(crate) fn of(state: &State, op: OpId) -> Option<Parcel> {
    let from = WorkId { run: state.run().clone(), op };
    let (to, news) = match &state.operation(op)?.kind {
        OperationKind::Spawn(spawn) => {
            let ChildStart { started, machine, run: _ } = state.child_start(op)?;
            let text_of = state.machine().hash().0;
            (spawn.run.clone(), News::Begin(Box::new(started), Arc::new(machine), text_of))
        }
        OperationKind::CancelChild(child) => (child.run.clone(), News::Stop(child.spawned_by)),
        OperationKind::TellParent(end) => (end.parent.clone(), News::Ended(end.op, end.outcome.clone())),
        OperationKind::Child(child) => (child.run.clone(), News::Await),
        OperationKind::Activity(_)
        | OperationKind::Timer
        | OperationKind::Await(_)
        | OperationKind::AwaitEnded { .. }
        | OperationKind::Question(_) => return None,
    };
    Some(Parcel { from, to, news })
}

/// Says to a run that the one which it spawned has begun, or that another one has its id.
pub(crate) fn spawned(op: OpId, result: SpawnResult) -> Box<Input> {
    Box::new(Input::Spawned { op, result })
}

/// Says to a run that its news arrived.
pub(crate) fn arrived(op: OpId) -> Box<Input> {
    Box::new(Input::Delivered { op, receipt: Receipt::Ok })
}

/// Says to a run that its news is not taken, for good.
pub(crate) fn refused(op: OpId, why: impl Into<String>) -> Box<Input> {
    Box::new(Input::Delivered { op, receipt: Receipt::Refused(why.into()) })
}

/// Says to a run how one ended that it asked about.
pub(crate) fn ended(op: OpId, outcome: &Outcome) -> Box<Input> {
    Box::new(Input::ChildEnded { op, outcome: outcome.clone() })
}
