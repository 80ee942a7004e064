//! A shard: one loop that owns its runs and is their only writer.
//!
//! Leaves durability to the committer and workers to the dispatch. Invariant: an input is decided, its events are applied to the
//! state in memory at once and queued to the committer; everything that would tell the outside of them waits in the outbox until the
//! committer says that they are durable. Start at [`Shard::run`]; inputs are in `intake`, work for workers in `tasks`.

mod bringing;
mod deleting;
mod forking;
mod intake;
mod memory;
mod migrating;
mod news;
mod release;
mod reports;
mod starting;
mod tasks;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use outlast_kernel::ids::{Millis, RunId};
use tokio::sync::{mpsc, oneshot};

use super::committer::Done;
use super::context::{Context, Random};
use super::desk::Desk;
use super::dispatch::WorkId;
use super::hydrated::{Budget, Hydrated};
use super::message::{Consequence, Gone, Message};
use super::outbox::Outbox;
use super::timers::Timers;
use super::watchers::Watchers;
use crate::limits;
use reports::Remembered;

pub(crate) use migrating::{MigrateRun, Migration};

/// One of the loops that share the runs.
pub(crate) struct Shard {
    ctx: Arc<Context>,
    number: usize,
    shards: usize,
    /// Its own, so that what it draws does not hang on how far other shards are.
    random: Random,
    desk: Desk,
    live: Hydrated,
    /// Runs that the kernel cannot go on with, and why.
    broken: HashMap<RunId, String>,
    outbox: Outbox,
    watchers: Watchers,
    timers: Timers,
    reports: Remembered,
    /// Runs whose start is not durable, by their id in lower case.
    starting: HashMap<String, RunId>,
    /// Runs whose deletion is on its way.
    deleting: HashSet<RunId>,
    /// What follows from what was taken: done before the next message.
    todo: VecDeque<Message>,
    /// Counts uses, to find the runs that nobody needs.
    used: u64,
    /// Who asked to be told of a run's end, beside the run that spawned it.
    awaited: HashMap<RunId, Vec<WorkId>>,
    /// Runs to be read again although nothing of theirs is due: the disk refused a step.
    revive: HashSet<RunId>,
    /// Attempts of which the disk refused to keep that they will not answer.
    unkept: HashMap<RunId, Vec<Gone>>,
    /// The disk is full: nothing is taken before this moment.
    full_until: Option<Millis>,
    /// Until when it is known whether the disk has room for new runs; the bytes left if it has not.
    looked_for_room: Option<(Millis, Option<u64>)>,
    messages: mpsc::Receiver<Message>,
    done: mpsc::UnboundedReceiver<Done>,
    stopped: Option<oneshot::Sender<()>>,
}

impl Shard {
    /// Makes a shard.
    pub(crate) fn new(
        ctx: Arc<Context>,
        (number, shards): (usize, usize),
        budget: Budget,
        desk: Desk,
        messages: mpsc::Receiver<Message>,
    ) -> Shard {
        let (sender, done) = mpsc::unbounded_channel();
        Shard {
            outbox: Outbox::new(ctx.committer.clone(), sender),
            live: Hydrated::new(budget, Arc::clone(&ctx.hydrated)),
            random: ctx.random.stream(number),
            ctx,
            number,
            shards,
            desk,
            broken: HashMap::new(),
            watchers: Watchers::default(),
            timers: Timers::new(),
            reports: Remembered::default(),
            starting: HashMap::new(),
            deleting: HashSet::new(),
            todo: VecDeque::new(),
            used: 0,
            awaited: HashMap::new(),
            revive: HashSet::new(),
            unkept: HashMap::new(),
            full_until: None,
            looked_for_room: None,
            messages,
            done,
            stopped: None,
        }
    }

    /// Runs until it is told to stop, or nobody is left to tell it, and everything taken is durable.
    pub(crate) async fn run(mut self) {
        let mut open = true;
        while open || self.outbox.len() > 0 {
            let sleep = self.ctx.clock.sleep_until(self.timers.next());
            let room = !self.is_pressed();
            tokio::select! {
                Some(done) = self.done.recv() => self.released(done),
                message = self.messages.recv(), if open && room => match message {
                    Some(message) => open = self.take_burst(message),
                    None => open = false,
                },
                () = sleep, if open && room => self.wake(),
            }
            self.do_todo();
            self.desk.clear();
        }
        if let Some(stopped) = self.stopped.take() {
            // Whoever asked may be gone; the shard ends all the same.
            let _ = stopped.send(());
        }
    }

    /// Tells whether steps must become durable before anything more is taken: too many are on their way, or they hold too many runs in memory.
    fn is_pressed(&self) -> bool {
        let withheld = self.outbox.len();
        withheld >= limits::WITHHELD_STEPS || (withheld > 0 && self.live.is_over())
    }

    /// Takes a message and what came right behind it. Tells whether to go on.
    fn take_burst(&mut self, first: Message) -> bool {
        let mut next = Some(first);
        for _ in 0..limits::BURST {
            let Some(message) = next.take() else { break };
            if let Message::Stop(stopped) = message {
                self.stopped = Some(stopped);
                return false;
            }
            self.take(message);
            self.do_todo();
            if self.is_pressed() {
                break;
            }
            next = self.messages.try_recv().ok();
        }
        if let Some(message) = next {
            self.todo.push_back(message);
        }
        true
    }

    fn do_todo(&mut self) {
        while let Some(message) = self.todo.pop_front() {
            self.take(message);
        }
    }

    fn take(&mut self, message: Message) {
        if let Message::Release(run, _) = &message {
            // Whoever releases it says that the cause is mended: what it did before counts no more.
            self.desk.trust(run);
        }
        match message.run().cloned() {
            Some(run) => self.work_on(&run, |shard| shard.act_on(message)),
            None => self.act_on(message),
        }
    }

    /// Does something about a run, which lies on the desk until another one does, or the shard has nothing more to do. What is
    /// quarantined is only answered for, not worked on.
    fn work_on(&mut self, run: &RunId, work: impl FnOnce(&mut Shard)) {
        match self.ctx.quarantine.holds(run) {
            true => self.desk.clear(),
            false => self.desk.take(run),
        }
        work(self);
    }

    fn act_on(&mut self, message: Message) {
        match message {
            Message::Start(start, reply) => self.start(*start, reply),
            Message::Fork(fork, reply) => self.fork(*fork, reply),
            Message::Bring(brought, reply) => self.bring(*brought, reply),
            Message::Migrate(migrate, reply) => self.migrate(&migrate, reply),
            Message::Delete(run, reply) => self.after(&run, Consequence::Delete(reply)),
            Message::Inputs(run, inputs, reply) => self.inputs(&run, &inputs, reply),
            Message::Look(run, reply) => self.look(&run, reply),
            Message::Unread(run, id, reply) => self.unread(&run, &id, reply),
            Message::HandOut(work, taker, reply) => self.hand_out(&work, &taker, reply),
            Message::Report(reported, reply) => self.report(&reported, reply),
            Message::Adopt(claim, token, taker, reply) => self.adopt(&claim, token, &taker, reply),
            Message::Lost(work, attempt, why) => self.lost(&work, attempt, why),
            Message::Void(work, attempt) => self.void(&work, attempt),
            Message::News(parcel) => self.news(*parcel),
            Message::Receipt(run, input) => self.receipt(&run, &input),
            Message::Undelivered(work) => self.forget_told(&work),
            Message::Recover(run, reply) | Message::Release(run, reply) => self.recover(&run, reply),
            Message::Subscribe(run, reply) => self.subscribe(&run, reply),
            Message::Partial(partial) => self.partial(&partial),
            Message::Stop(stopped) => self.stopped = Some(stopped),
        }
    }

    /// Does what time demands.
    fn wake(&mut self) {
        let now = self.ctx.clock.now();
        let store = Arc::clone(&self.ctx.store);
        if let Err(error) = self.timers.refill(&*store, now, self.number, self.shards) {
            tracing::error!(%error, "due times cannot be read; trying again");
            return self.timers.retry_at(now.plus(limits::STORE_RETRY_MS));
        }
        for _ in 0..limits::BURST {
            if self.is_pressed() {
                break;
            }
            let Some(run) = self.timers.pop(now) else { break };
            match self.full_until {
                Some(until) if until > now => self.timers.note(until, &run),
                Some(_) | None => self.work_on(&run, |shard| shard.due(&run, now)),
            }
        }
    }
}
