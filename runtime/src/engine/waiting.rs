//! Why a run does not move: one closed list of reasons, and it must be true.
//!
//! Leaves the rest of the view to `view`. Invariant: a reason is given only if nothing moves the run now; of several the one that can
//! end soonest without a person comes first.

use outlast_kernel::ids::{Millis, RunId};
use outlast_kernel::operation::{ActivityOp, Operation, OperationKind, Phase};
use outlast_kernel::text::time_text;
use outlast_protocol::run::WaitingFor;

use super::dispatch::{Dispatch, Lane, Standing, WorkId};
use super::session::demanded;

/// What can move a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Motion {
    /// It moves: a worker has something in hand or will take it now.
    Moves,
    /// It will move by itself: a worker, a retry, a timer or a budget.
    Waits,
    /// Only people, or whoever sends messages, can move it.
    People,
    /// It has ended or is blocked.
    Still,
}

impl Motion {
    /// Tells whether the run goes no further by itself: whoever waits for it hears so.
    pub(crate) fn is_for_the_caller(self) -> bool {
        match self {
            Motion::People | Motion::Still => true,
            Motion::Moves | Motion::Waits => false,
        }
    }
}

/// Returns what a worker must offer to take an operation.
pub(crate) fn lane_of(activity: &ActivityOp, profile: &str) -> Lane {
    Lane {
        queue: activity.queue.clone(),
        profile: profile.to_owned(),
        activity: activity.activity.clone(),
        promise: demanded(activity.class),
    }
}

/// Returns what open operations wait for. Without a `dispatch` nothing is known of workers: ready work then waits for one.
pub(crate) fn waiting_for<'a>(
    run: &RunId,
    profile: &str,
    operations: impl Iterator<Item = &'a Operation>,
    now: Millis,
    dispatch: Option<&Dispatch>,
) -> (Option<WaitingFor>, Motion) {
    let mut best: Option<(Rank, WaitingFor)> = None;
    let mut people = false;
    let (mut moves, mut children) = (false, false);
    for operation in operations {
        let found = match &operation.kind {
            OperationKind::Activity(activity) => {
                let work = WorkId { run: run.clone(), op: operation.id };
                match of_activity(&work, activity, profile, now, dispatch) {
                    Activity::Moves => {
                        moves = true;
                        None
                    }
                    Activity::Waits(rank, reason) => Some((rank, reason)),
                    Activity::Elsewhere => None,
                }
            }
            OperationKind::Question(_) => {
                Some((Rank::Question, WaitingFor::Question { id: operation.id.to_string() }))
            }
            OperationKind::Await(types) => {
                Some((Rank::Message, WaitingFor::Message { types: types.clone() }))
            }
            OperationKind::AwaitEnded { runs, types: _ } => runs.first().map(|run| child(Rank::Ended, run)),
            // What else is open says more: a child alone is waited for only where the run cannot end without it.
            OperationKind::Child(open) => Some(child(Rank::Child, &open.run)),
            OperationKind::Spawn(_) | OperationKind::CancelChild(_) | OperationKind::TellParent(_) => {
                moves = true;
                None
            }
            OperationKind::Timer => {
                operation.due.map(|due| (Rank::Timer(due), WaitingFor::Timer { until: time_text(due) }))
            }
        };
        let Some((rank, reason)) = found else { continue };
        people |= matches!(rank, Rank::Question | Rank::Held | Rank::Message);
        children |= rank == Rank::Ended;
        if best.as_ref().is_none_or(|(least, _)| rank < *least) {
            best = Some((rank, reason));
        }
    }
    if moves {
        return (None, Motion::Moves);
    }
    let by_itself = children || matches!(best, Some((Rank::Worker | Rank::Rate(_) | Rank::Retry(_), _)));
    let motion = if people && !by_itself { Motion::People } else { Motion::Waits };
    (best.map(|(_, reason)| reason), motion)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Worker,
    Rate(Millis),
    Retry(Millis),
    Ended,
    Question,
    Held,
    Message,
    Budget,
    Timer(Millis),
    Child,
}

fn child(rank: Rank, run: &RunId) -> (Rank, WaitingFor) {
    (rank, WaitingFor::Child { run: run.to_string() })
}

enum Activity {
    Moves,
    Waits(Rank, WaitingFor),
    /// Another open operation says it.
    Elsewhere,
}

fn of_activity(
    work: &WorkId,
    activity: &ActivityOp,
    profile: &str,
    now: Millis,
    dispatch: Option<&Dispatch>,
) -> Activity {
    let name = || activity.activity.clone();
    match &activity.phase {
        Phase::RetryAt(at) if *at > now => {
            let error = activity.last.as_ref().map(|last| format!("{}: {}", last.kind, last.text));
            let until = time_text(*at);
            let reason = WaitingFor::Retry { until, activity: name(), error: error.unwrap_or_default() };
            Activity::Waits(Rank::Retry(*at), reason)
        }
        Phase::Ready | Phase::RetryAt(_) => of_ready(work, activity, profile, now, dispatch),
        // Begun means in hand, or its worker is waited for after a restart: both end by themselves.
        Phase::Begun { .. } => Activity::Moves,
        Phase::Verifying(_) => Activity::Elsewhere,
        Phase::Held(reason) => {
            let op = work.op.to_string();
            Activity::Waits(Rank::Held, WaitingFor::Held { reason: reason.clone(), op })
        }
        Phase::Budget => Activity::Waits(Rank::Budget, WaitingFor::Budget { activity: name() }),
    }
}

fn of_ready(
    work: &WorkId,
    activity: &ActivityOp,
    profile: &str,
    now: Millis,
    dispatch: Option<&Dispatch>,
) -> Activity {
    let lane = lane_of(activity, profile);
    let standing = dispatch.map_or(Standing::NoWorker, |dispatch| dispatch.standing(work, &lane, now));
    let Lane { queue, activity, .. } = lane;
    match standing {
        Standing::InHand(_) | Standing::Coming | Standing::Kept => Activity::Moves,
        Standing::Busy | Standing::NoWorker => {
            Activity::Waits(Rank::Worker, WaitingFor::Worker { queue, activity })
        }
        Standing::Held(at) => {
            Activity::Waits(Rank::Rate(at), WaitingFor::Rate { queue, activity, until: time_text(at) })
        }
        Standing::NotOffered => Activity::Waits(Rank::Worker, WaitingFor::Activity { queue, activity }),
        Standing::OtherProfiles => {
            let detail = format!("workers poll queue {queue}, but none serves this profile");
            let profile = profile.to_owned();
            Activity::Waits(Rank::Worker, WaitingFor::Environment { profile, detail })
        }
    }
}
