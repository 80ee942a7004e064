//! A world of one runtime, some workers and a few people, to which deeds happen one after the other.
//!
//! Invariant: after each deed everything that can go on has gone on, so the same deeds give the same world; a runtime that died is
//! followed by the next one, over what was durable.

use std::sync::Arc;

use outlast_kernel::ids::Millis;
use outlast_protocol::ApiError;
use outlast_protocol::requests::{Answer, Deploy, FileText, Send, Start};
use outlast_protocol::run::{RunView, WaitingFor};
use outlast_runtime::engine::{Clock, Engine, ManualClock, Options, Watch};
use outlast_store::MemoryStore;
use serde_json::{Value as Json, json};

use crate::deed::{Deed, WORKERS};
use crate::flows::{FLOWS, NAMES};
use crate::seen::{Seen, Verdict, demand};
use crate::worker::Worker;

/// A moment in 2027.
const START: Millis = Millis(1_800_000_000_000);
/// Milliseconds between two signs of life.
const BEAT_MS: u64 = 2_000;
/// Rounds to the disk and back after which a world counts as one that never comes to rest.
const SETTLE_MAX: usize = 50;
/// Turns of all tasks after which a process that still puts runs back to work counts as one that never will.
const RECOVERY_TURNS_MAX: u32 = 5_000_000;
/// How often everybody does all they can before a run that has not ended counts as stuck.
const ROUNDS_MAX: usize = 200;

/// See the module.
pub(crate) struct World {
    pub(crate) store: MemoryStore,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) engine: Engine,
    pub(crate) workers: Vec<Worker>,
    pub(crate) seen: Seen,
    /// Streams that somebody follows, until the runtime dies.
    pub(crate) watches: Vec<(String, Watch)>,
    /// How many processes the runtime was so far.
    pub(crate) life: u32,
    /// When the last one opened the store.
    pub(crate) opened_at: Millis,
    said: u64,
}

/// Plays deeds to their end, heals the world, and returns what was seen.
pub(crate) async fn play(deeds: &[Deed]) -> Result<String, String> {
    let mut world = World::new().await?;
    let mut peek = None;
    for deed in deeds {
        if let Deed::Peek { run, dies } = *deed {
            peek = Some((run, dies));
            continue;
        }
        let happened = match peek.take() {
            Some(peek) => world.happen_in_sight(*deed, peek).await,
            None => world.happen(*deed).await,
        };
        happened.map_err(|why| format!("{deed:?}: {why}"))?;
        world.read_streams().await;
        world.go_on().await?;
    }
    world.heal().await?;
    world.check().await?;
    Ok(world.seen.digest())
}

pub(crate) fn in_words(error: ApiError) -> String {
    format!("{:?}: {}", error.code, error.message)
}

/// Opens the store, as the process with this number: none makes the ids that another one made.
async fn open(store: &MemoryStore, clock: &Arc<ManualClock>, life: u32) -> Result<Engine, String> {
    let clock: Arc<dyn Clock> = clock.clone();
    let options = Options { clock, seed: Some(life.into()), ..Options::default() };
    Engine::open(Arc::new(store.clone()), options).await.map_err(in_words)
}

pub(crate) fn name(run: u8) -> String {
    format!("r{run}")
}

fn flow(run: u8) -> &'static str {
    NAMES[usize::from(run) % NAMES.len()]
}

impl World {
    async fn new() -> Result<World, String> {
        let (store, clock) = (MemoryStore::new(), Arc::new(ManualClock::new(START)));
        let engine = open(&store, &clock, 1).await?;
        let files = vec![FileText { name: "sim.flow".into(), text: FLOWS.into() }];
        engine.deploy(Deploy { files, profile: None }).await.map_err(|error| format!("{error:?}"))?;
        let workers = (0..WORKERS).map(Worker::new).collect();
        let (seen, watches, opened_at) = (Seen::default(), Vec::new(), clock.now());
        Ok(World { store, clock, engine, workers, seen, watches, life: 1, opened_at, said: 0 })
    }

    /// Lets one thing happen.
    pub(crate) async fn happen(&mut self, deed: Deed) -> Verdict {
        match deed {
            Deed::Start { run } => self.start(run).await,
            Deed::StartWithOtherInput { run } => self.start_with_other_input(run).await,
            Deed::Say { run } => self.say(run, "Say").await,
            Deed::Close { run } => self.say(run, "closed").await,
            Deed::Answer { run, approve } => self.answer(&name(run), approve).await,
            Deed::Cancel { run } => self.cancel(&name(run)).await,
            Deed::Watch { run } => self.watch(&name(run)).await,
            Deed::Poll { worker, lost } => self.poll(worker, lost).await,
            Deed::Work { worker, hand } => self.work(worker, hand),
            Deed::Fail { worker, hand } => self.fail(worker, hand),
            Deed::Report { worker, lost } => self.report(worker, lost).await,
            Deed::Repeat { worker } => self.repeat(worker).await,
            Deed::Cut { worker } => self.change(worker, |worker| worker.is_cut = true),
            Deed::Mend { worker } => self.change(worker, |worker| worker.is_cut = false),
            Deed::Stop { worker } => self.change(worker, |worker| worker.is_stopped = true),
            Deed::Continue { worker } => self.wake(worker).await,
            Deed::Kill { worker, noticed } => self.kill(worker, noticed).await,
            Deed::Pass { ms } => self.pass(ms.into()).await,
            Deed::Slip { ms } => {
                self.clock.slip(ms.into());
                Ok(())
            }
            Deed::Crash => self.crash().await,
            Deed::CrashAt { commits, side } => {
                self.store.crash_at(commits.into(), side);
                Ok(())
            }
            Deed::FailSync { outcome } => {
                self.store.fail_next_sync(outcome);
                Ok(())
            }
            Deed::WriteAgain { run } => self.write_again(run),
            Deed::Fork { run, at } => self.fork(run, at).await,
            Deed::Delete { which } => self.delete(which).await,
            // It is about what happens next.
            Deed::Peek { .. } => Ok(()),
            Deed::RefuseAt { commits, times } => {
                self.store.refuse_at(commits.into(), times);
                Ok(())
            }
            Deed::FillDisk => {
                self.store.fill_disk();
                Ok(())
            }
            Deed::EmptyDisk => {
                self.store.empty_disk();
                Ok(())
            }
        }
    }

    fn change(&mut self, worker: u8, how: impl FnOnce(&mut Worker)) -> Verdict {
        how(&mut self.workers[usize::from(worker)]);
        Ok(())
    }

    async fn start(&mut self, run: u8) -> Verdict {
        let input = json!({ "x": i64::from(run) * 100 });
        let start = Start {
            id: Some(name(run)),
            flow: flow(run).into(),
            input,
            profile: Some("p".into()),
            ..Start::default()
        };
        if self.seen.is_gone(&name(run)) {
            return Ok(());
        }
        let was_there = self.seen.started.contains(&name(run));
        let Ok((_, existing)) = self.engine.start(start, "test").await else { return Ok(()) };
        self.seen.started.insert(name(run));
        demand(existing || !was_there, || format!("{} was started twice", name(run)))
    }

    async fn start_with_other_input(&mut self, run: u8) -> Verdict {
        if !self.seen.started.contains(&name(run)) || self.seen.is_gone(&name(run)) {
            return Ok(());
        }
        let start = Start {
            id: Some(name(run)),
            flow: flow(run).into(),
            input: json!({ "x": -1 }),
            profile: Some("p".into()),
            ..Start::default()
        };
        let answer = self.engine.start(start, "test").await;
        demand(answer.is_err(), || format!("{} was started anew with other input", name(run)))
    }

    async fn say(&mut self, run: u8, what: &str) -> Verdict {
        self.said += 1;
        let value = if what == "Say" { json!({ "text": format!("m{}", self.said) }) } else { Json::Null };
        let send = Send { name: what.into(), value, id: None };
        if let Ok(accepted) = self.engine.message(&name(run), send, "ann").await
            && accepted.accepted > 0
        {
            let kind = if what == "Say" { "message" } else { "closed" };
            self.seen.acknowledge(&name(run), accepted.accepted, kind);
        }
        Ok(())
    }

    async fn answer(&mut self, run: &str, approve: bool) -> Verdict {
        let Ok(view) = self.engine.get(run).await else { return Ok(()) };
        let Some(question) = view.questions.first() else { return Ok(()) };
        let choice = if approve { "approve" } else { "reject" };
        let answer =
            Answer { question: Some(question.id.clone()), choice: choice.into(), ..Answer::default() };
        if let Ok(accepted) = self.engine.answer(run, answer, "ann").await {
            self.seen.acknowledge(run, accepted.accepted, "answered");
        }
        Ok(())
    }

    async fn cancel(&mut self, run: &str) -> Verdict {
        if let Ok(accepted) = self.engine.cancel(run, "ann").await {
            self.seen.cancelled.insert(run.to_owned());
            self.seen.acknowledge(run, accepted.accepted, "cancelled");
        }
        Ok(())
    }

    /// Lets time pass, with the signs of life that workers give meanwhile.
    pub(crate) async fn pass(&mut self, ms: u64) -> Verdict {
        let mut left = ms;
        while left > 0 {
            let step = left.min(BEAT_MS);
            left -= step;
            self.clock.advance(step);
            self.go_on().await?;
            for worker in 0..WORKERS {
                self.beat(worker).await?;
            }
        }
        Ok(())
    }

    /// The process dies, and the next one opens what was durable.
    pub(crate) async fn crash(&mut self) -> Verdict {
        self.look().await?;
        self.next_life().await
    }

    /// Lets everything that can go on go on; a process that died meanwhile is followed by the next one.
    async fn go_on(&mut self) -> Verdict {
        self.settle().await?;
        while !self.engine.status()["failed"].is_null() {
            self.next_life().await?;
        }
        Ok(())
    }

    async fn next_life(&mut self) -> Verdict {
        self.read_streams().await;
        self.watches.clear();
        self.store = self.store.crash();
        self.life += 1;
        self.engine = open(&self.store, &self.clock, self.life).await?;
        self.opened_at = self.clock.now();
        self.settle().await?;
        self.look().await
    }

    /// To the disk and back, until nothing comes of it any more: one step may cause another.
    async fn settle(&self) -> Verdict {
        let mut turns = 0;
        while self.engine.status()["recovering"] == true && self.engine.status()["failed"].is_null() {
            tokio::task::yield_now().await;
            turns += 1;
            demand(turns < RECOVERY_TURNS_MAX, || "runs are put back to work for ever".to_owned())?;
        }
        let mut calm = 0;
        for round in 0..SETTLE_MAX {
            turn().await;
            let (before, record) =
                (self.store.commit_last(), json!({ "round": round, "now": self.clock.now() }));
            // A process that died, or a full disk: nothing comes of it.
            let _kept = self.engine.put_profile("settle", record).await;
            turn().await;
            calm = if self.store.commit_last() <= before + 1 { calm + 1 } else { 0 };
            if calm == 2 {
                break;
            }
        }
        Ok(())
    }

    /// Ends all faults and lets everybody do all they can, until every run has ended.
    async fn heal(&mut self) -> Verdict {
        self.store.empty_disk();
        for worker in 0..WORKERS {
            self.workers[usize::from(worker)].is_cut = false;
            self.wake(worker).await?;
        }
        for _ in 0..ROUNDS_MAX {
            self.go_on().await?;
            let open: Vec<RunView> =
                self.runs().await?.into_iter().filter(|run| run.outcome.is_none()).collect();
            if !self.engine.status()["failed"].is_null() {
                // It died while it looked.
                continue;
            }
            if open.is_empty() {
                return self.look().await;
            }
            for run in &open {
                // A run that nobody has to touch is not touched: it must go on by itself.
                if !run.questions.is_empty() {
                    self.answer(&run.id, true).await?;
                }
                if matches!(run.waiting_for, Some(WaitingFor::Message { .. })) {
                    let send = Send { name: "closed".into(), value: Json::Null, id: None };
                    let _closed_already = self.engine.message(&run.id, send, "ann").await;
                }
            }
            for worker in 0..WORKERS {
                self.toil(worker).await?;
            }
            self.pass(BEAT_MS).await?;
        }
        let open = self.runs().await?.into_iter().filter(|run| run.outcome.is_none());
        let stuck: Vec<String> = open
            .map(|run| format!("{} of {} in {}: {:?}", run.id, run.flow, run.state, run.waiting_for))
            .collect();
        Err(format!("the world is well and these go nowhere: {stuck:?}"))
    }
}

/// Gives every task of this thread several turns.
pub(crate) async fn turn() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}
