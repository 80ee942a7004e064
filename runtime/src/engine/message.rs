//! What a shard is told, and what it withholds until it is true.

use outlast_kernel::event::{Config, LostWhy};
use outlast_kernel::ids::{Attempt, Millis, OpId, RunId, Seq};
use outlast_kernel::input::{Input, Report};
use outlast_kernel::{Json, Ready};
use outlast_protocol::ApiError;
use outlast_protocol::run::{Frame, RunView};
use outlast_protocol::worker::{ReceiptStatus, Task};
use tokio::sync::{mpsc, oneshot, watch};

use super::dispatch::{InHand, Lane, WorkId};
use super::forks::ForkRun;
use super::parcel::Parcel;
use super::shard::{MigrateRun, Migration};
use super::token::Claim;
use super::transfer::BringRun;
use super::waiting::Motion;
use super::watchers::Waiting;

/// Where an answer goes.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, ApiError>>;

/// What a shard is told.
pub(crate) enum Message {
    /// Start a run, or find it.
    Start(Box<StartRun>, Reply<(RunView, bool)>),
    /// Begin a fork, or find it.
    Fork(Box<ForkRun>, Reply<(RunView, bool)>),
    /// Keep a run that was carried here, or find it.
    Bring(Box<BringRun>, Reply<(RunView, bool)>),
    /// Let a run go on with another machine, or say why not.
    Migrate(Box<MigrateRun>, Reply<Migration>),
    /// Delete a run that has ended.
    Delete(RunId, Reply<()>),
    /// Take inputs together: all of them or none. The answer is the number of the last one's event.
    Inputs(RunId, Vec<Input>, Reply<Seq>),
    /// Show a run.
    Look(RunId, Reply<Look>),
    /// Tell whether an accepted message was taken, by its id.
    Unread(RunId, String, Reply<Unread>),
    /// Give a task that was reserved to a session.
    HandOut(WorkId, Taker, Reply<Option<Task>>),
    /// Take a worker's report.
    Report(Box<Reported>, Reply<ReceiptStatus>),
    /// Judge a token that a worker lists: does its task stay with it?
    Adopt(Claim, String, Taker, Reply<Listed>),
    /// An attempt will never answer.
    Lost(WorkId, Attempt, LostWhy),
    /// A begun attempt never reached its worker.
    Void(WorkId, Attempt),
    /// Take news of another run.
    News(Box<Parcel>),
    /// Another run took news, or refused it: tell the sender.
    Receipt(RunId, Box<Input>),
    /// News could not be taken now: send it again later.
    Undelivered(WorkId),
    /// Put a run back to work after a restart.
    Recover(RunId, Reply<()>),
    /// Put a run back to work that was quarantined.
    Release(RunId, Reply<()>),
    /// Send frames from now on.
    Subscribe(RunId, Reply<Subscription>),
    /// Partial output of a task in hand.
    Partial(Box<Partial>),
    /// End, when everything taken is durable.
    Stop(oneshot::Sender<()>),
}

impl Message {
    /// Returns the run that it is about.
    pub(crate) fn run(&self) -> Option<&RunId> {
        match self {
            Message::Start(start, _) => Some(&start.run),
            Message::Fork(fork, _) => Some(&fork.run),
            Message::Bring(brought, _) => Some(&brought.run),
            Message::Migrate(migrate, _) => Some(&migrate.run),
            Message::Report(reported, _) => Some(&reported.claim.run),
            Message::Adopt(claim, ..) => Some(&claim.run),
            Message::News(parcel) => Some(&parcel.to),
            Message::Partial(partial) => Some(&partial.work.run),
            Message::Inputs(run, ..)
            | Message::Delete(run, _)
            | Message::Look(run, _)
            | Message::Unread(run, ..)
            | Message::Receipt(run, _)
            | Message::Recover(run, _)
            | Message::Release(run, _)
            | Message::Subscribe(run, _) => Some(run),
            Message::HandOut(work, ..)
            | Message::Lost(work, ..)
            | Message::Void(work, _)
            | Message::Undelivered(work) => Some(&work.run),
            Message::Stop(_) => None,
        }
    }
}

/// A run to start.
pub(crate) struct StartRun {
    pub(crate) run: RunId,
    pub(crate) flow: String,
    pub(crate) hash: String,
    pub(crate) machine: Ready,
    /// The arguments as they were given.
    pub(crate) input: Json,
    pub(crate) config: Config,
    pub(crate) seed: u64,
    /// First messages.
    pub(crate) messages: Vec<Input>,
    /// Who starts it.
    pub(crate) by: String,
}

/// A session that takes a task.
#[derive(Clone, Debug)]
pub(crate) struct Taker {
    pub(crate) session: String,
    pub(crate) worker: String,
    pub(crate) boot: String,
}

/// What becomes of a token that a worker lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listed {
    /// Its task stays with the worker.
    Kept,
    /// Nobody waits for it.
    Dropped,
    /// Its run cannot be looked at: whether it is still wanted is not known.
    Unseen,
}

/// A worker's report.
#[derive(Debug)]
pub(crate) struct Reported {
    pub(crate) claim: Claim,
    pub(crate) report: Report,
    /// A hash of what was said, to know it again.
    pub(crate) digest: [u8; 32],
}

/// Partial output.
#[derive(Debug)]
pub(crate) struct Partial {
    pub(crate) work: WorkId,
    pub(crate) attempt: Attempt,
    /// Where it begins, in characters; none: after what came before.
    pub(crate) offset: Option<u64>,
    /// New output; may be empty.
    pub(crate) text: String,
    /// How far the attempt is, if it says so.
    pub(crate) percent: Option<f64>,
}

/// A run as it is now.
#[derive(Debug)]
pub(crate) struct Look {
    pub(crate) view: RunView,
    pub(crate) motion: Motion,
    /// Told with every durable step: what can move the run after it, as far as its history tells.
    pub(crate) changed: watch::Receiver<Motion>,
}

/// Whether a message was taken.
#[derive(Debug)]
pub(crate) enum Unread {
    /// Not yet; changes with every durable step.
    Still(watch::Receiver<Motion>),
    /// It was.
    Taken,
    /// The run ended without it.
    AtEnd,
}

/// A watcher's place in the stream.
#[derive(Debug)]
pub(crate) struct Subscription {
    /// Frames of later events come by `frames`.
    pub(crate) after: Seq,
    /// Where the run stands.
    pub(crate) current: Frame,
    /// Partial output so far of what is in hand.
    pub(crate) partials: Vec<Frame>,
    /// What comes.
    pub(crate) frames: mpsc::Receiver<Waiting>,
    /// Whether the run has ended: nothing will come.
    pub(crate) ended: bool,
}

/// Something that must not happen before the step that explains it is durable.
pub(crate) enum Consequence {
    /// Work may be handed out.
    Offer(WorkId, Lane),
    /// Work is closed.
    Close(WorkId),
    /// A worker is free of a task.
    Unhand(WorkId, Attempt),
    /// Watchers see frames.
    Frames(Vec<Frame>),
    /// Whoever waits for a change of the run hears what can move it now.
    Changed(Motion),
    /// An input was accepted, or refused because of what may not be durable yet.
    Accepted(Reply<Seq>, Result<Seq, ApiError>),
    /// A run was migrated, or was not.
    Migrated(Reply<Migration>, Result<Migration, ApiError>),
    /// A run was started or found.
    Started(Reply<(RunView, bool)>, Box<Result<(RunView, bool), ApiError>>),
    /// A run is deleted, if it has ended.
    Delete(Reply<()>),
    /// A run was deleted.
    Deleted(Reply<()>),
    /// It is said whether a message was taken.
    Unread(Reply<Unread>, Result<Unread, ApiError>),
    /// A run is shown.
    Look(Reply<Look>, Box<Look>),
    /// A report was judged.
    Receipt(Reply<ReceiptStatus>, ReceiptStatus),
    /// A task goes to its worker.
    Deliver(Box<Delivery>),
    /// A watcher begins.
    Subscribe(Reply<Subscription>, Box<Subscribe>),
    /// An attempt is not in hand of anybody: hand it out again.
    OfferAgain(WorkId),
    /// Only the end of what is in hand is awaited.
    Settle(WorkId, Attempt),
    /// An attempt will not answer: this is kept now, or said again when there is room for it.
    Gone(Gone),
    /// Another run hears of an operation of this one.
    Send(OpId),
    /// Another run hears what became of its news.
    Acknowledge(WorkId, Box<Input>),
}

/// An attempt that will not answer.
#[derive(Clone, Debug)]
pub(crate) struct Gone {
    pub(crate) work: WorkId,
    pub(crate) attempt: Attempt,
    /// Why it is lost; none: it never reached its worker.
    pub(crate) why: Option<LostWhy>,
}

/// A task on its way.
pub(crate) struct Delivery {
    pub(crate) work: WorkId,
    pub(crate) task: Task,
    pub(crate) in_hand: InHand,
    pub(crate) begun: bool,
    pub(crate) reply: Reply<Option<Task>>,
}

/// A watcher that begins.
pub(crate) struct Subscribe {
    pub(crate) after: Seq,
    pub(crate) current: Frame,
    pub(crate) ended: bool,
}

/// When something is due, and for which run.
pub(crate) type DueAt = (Millis, RunId);
