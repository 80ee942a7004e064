//! A store that survives crashes, an engine over it, and workers that are called by hand.

use std::sync::Arc;
use std::time::Duration;

use outlast_kernel::ids::Millis;
use outlast_protocol::requests::{Deploy, FileText, Send, Start};
use outlast_protocol::run::{Frame, RunView};
use outlast_protocol::worker::{
    Offer, Outcome, OutcomeKind, Poll, Progress, ReceiptStatus, Register, Registered, Report, Task,
    TaskError, TaskProgress,
};
use outlast_protocol::{ApiError, Code};
use outlast_runtime::engine::{Clock, DeployError, Engine, ManualClock, Options};
use outlast_store::MemoryStore;
use serde_json::Value as Json;

/// A moment in 2027, as good as any.
pub(crate) const START: Millis = Millis(1_800_000_000_000);

/// How long a test waits for what a broken promise would keep from coming.
const PATIENCE: Duration = Duration::from_secs(5);

/// Flows with every kind of thing that an engine has to do with.
pub(crate) const FLOWS: &str = r#"
edition 1
error Busy
retry Gently { on Busy, timeout up to 3 attempts wait 1s doubling to 10s }

activity look(x: int) -> int raises Busy within 1m in all 1h retry Gently queue "q" effect pure
activity put(x: int) -> int within 1m in all 1h retry Gently queue "q" effect idempotent
activity pay(x: int) -> text within 10m queue "q" effect once
activity slow(x: int) -> int within 10s in all 5m silent 4s retry Gently queue "q" effect pure
activity brief(x: int) -> int within 10s in all 5m queue "q" effect pure
activity toll(x: int) -> int within 10s in all 5m queue "q" effect once

flow Two(x: int) -> int emits text version 1 {
  start Look
  state Look { do look(x) as y   on ok emit "looked" -> Put(y)   on problem -> end 0 }
  state Put(y: int) { do put(y) as z   on ok -> end z   on problem -> end 0 }
}

flow Pay(x: int) -> text version 1 {
  start Work
  state Work { do pay(x) as t   on ok -> end t   on unknown -> end "unknown"   on problem as p -> end p.text }
}

flow Slow(x: int) -> text version 1 {
  start Work
  state Work { do slow(x) as y   on ok -> end "done"   on problem as p -> end p.kind }
}

flow Brief(x: int) -> text version 1 {
  start Work
  state Work { do brief(x) as y   on ok -> end "done"   on problem as p -> end p.kind }
}

flow Toll(x: int) -> text version 1 {
  start Work
  state Work { do toll(x) as y   on ok -> end "done"   on unknown -> end "unknown"   on problem as p -> end p.kind }
}

flow Ask(x: int) -> text version 1 {
  start Ask
  state Ask {
    ask "Pay {x}?" to "owner" within 1h
    on approve           -> end "yes"
    on reject { note }   -> end note
    on timeout           -> end "expired"
  }
}

flow Many(xs: list<int>) -> list<int> version 1 {
  start All
  state All { each x in xs at most 10 as ys { do look(x) }   on ok -> end ys   on problem -> end [] }
}

flow Chat(topic: text) -> text emits text version 1 {
  message Say { text: text }
  data log: text = topic
  start Wait
  state Wait {
    await Say, closed within 30d
    on Say { text: said }  set log = "{log} {said}"  emit said  -> Wait
    on closed, timeout                                           -> end log
  }
}
"#;

/// A store, an engine over it, a clock.
pub(crate) struct World {
    pub(crate) store: MemoryStore,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) engine: Engine,
}

impl World {
    /// Begins with the flows deployed.
    pub(crate) async fn new() -> World {
        let world = World::over(MemoryStore::new(), Arc::new(ManualClock::new(START))).await;
        world.deploy(FLOWS).await;
        world
    }

    pub(crate) async fn over(store: MemoryStore, clock: Arc<ManualClock>) -> World {
        let engine = open(&store, &clock).await.expect("the store opens");
        World { store, clock, engine }
    }

    pub(crate) async fn deploy(&self, text: &str) {
        let files = vec![FileText { name: "test.flow".into(), text: text.into() }];
        match self.engine.deploy(Deploy { files, profile: None }).await {
            Ok(_) => {}
            Err(DeployError::Invalid { diagnostics, sources }) => {
                panic!("{:#}", outlast_dsl::diag::json(&diagnostics, &sources))
            }
            Err(other) => panic!("{other}"),
        }
    }

    /// The process dies: what was not synced is gone. The next one opens the store.
    pub(crate) async fn crash(self) -> World {
        let World { store, clock, engine } = self;
        let next = store.crash();
        drop(engine);
        World::over(next, clock).await
    }

    pub(crate) async fn start(&self, id: &str, flow: &str, input: Json) -> RunView {
        self.try_start(id, flow, input).await.expect("it starts").0
    }

    pub(crate) async fn try_start(
        &self,
        id: &str,
        flow: &str,
        input: Json,
    ) -> Result<(RunView, bool), ApiError> {
        self.engine.start(start(id, flow, input), "test").await
    }

    pub(crate) async fn view(&self, id: &str) -> RunView {
        self.engine.get(id).await.expect("the run is there")
    }

    /// The run's result; it must have ended.
    pub(crate) async fn value(&self, id: &str) -> Json {
        let result = self.engine.result(id, Duration::from_secs(60));
        let view = in_time("the end", result).await.expect("the run is there");
        let outcome = view.outcome.unwrap_or_else(|| panic!("{id} has not ended: {:?}", view.waiting_for));
        assert_eq!(outcome.kind, "done", "{outcome:?}");
        outcome.value.unwrap_or_default()
    }

    /// The kind of what the run waits for; `running` while it moves, `ended` at the end.
    pub(crate) async fn waits_for(&self, id: &str) -> String {
        let view = self.view(id).await;
        match serde_json::to_value(&view.waiting_for).expect("it is JSON") {
            Json::Null => view.status,
            reason => reason["kind"].as_str().unwrap_or_default().into(),
        }
    }

    pub(crate) async fn kinds(&self, id: &str) -> Vec<String> {
        let events = self.engine.events(id, 0, 1_000).await.expect("the run is there").items;
        events.iter().map(|event| event["kind"].as_str().unwrap_or_default().to_owned()).collect()
    }

    pub(crate) async fn say(&self, id: &str, name: &str, value: Json) -> Result<u64, ApiError> {
        let request = Send { name: name.into(), value, id: None };
        self.engine.message(id, request, "ann").await.map(|accepted| accepted.accepted)
    }

    /// Moves the clock, in steps so that whoever waits gets its turn.
    pub(crate) async fn advance(&self, ms: u64) {
        self.clock.advance(ms);
        self.settle().await;
    }

    /// Lets everything that can go on go on: to the disk and back, twice, because one step may cause another.
    pub(crate) async fn settle(&self) {
        // Reading what there is to put back to work happens aside.
        while self.engine.status()["recovering"] == true && self.engine.status()["failed"].is_null() {
            tokio::task::yield_now().await;
        }
        for round in 0..2 {
            self.turn().await;
            let record = serde_json::json!({ "round": round, "now": self.clock.now() });
            let kept = self.engine.put_profile("settle", record).await;
            if kept.is_err() && !self.engine.status()["failed"].is_null() {
                return; // The process died; nothing goes on. A full disk has refused all that came before.
            }
        }
        self.turn().await;
    }

    /// Gives every task of this thread several turns, without waiting for the disk.
    pub(crate) async fn turn(&self) {
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
    }

    pub(crate) async fn worker(&self, name: &str) -> Worker {
        self.worker_again(name, &format!("{name}-boot"), Vec::new()).await.0
    }

    /// Registers a worker that lists tokens which it holds.
    pub(crate) async fn worker_again(
        &self,
        name: &str,
        boot: &str,
        holding: Vec<String>,
    ) -> (Worker, Registered) {
        let registered = self.engine.register(register(name, boot, holding)).await.expect("it registers");
        let worker = Worker { engine: self.engine.clone(), session: registered.session.clone() };
        (worker, registered)
    }

    /// Registers a worker if the process lives.
    pub(crate) async fn try_worker(&self, name: &str, boot: &str) -> Option<Worker> {
        let registered = self.engine.register(register(name, boot, Vec::new())).await.ok()?;
        Some(Worker { engine: self.engine.clone(), session: registered.session })
    }

    /// Waits, aside, until a commit of the store is held.
    pub(crate) async fn wait_until_held(&self) {
        let store = self.store.clone();
        tokio::task::spawn_blocking(move || store.wait_until_held()).await.expect("it is held");
    }

    /// Tells whether a sync made event `n` of a run durable.
    pub(crate) fn synced(&self, run: &str, n: u64) -> bool {
        self.store
            .syncs()
            .iter()
            .any(|sync| sync.steps.iter().any(|(of, last)| of.as_str() == run && last.0 >= n))
    }
}

/// Waits for something that comes by itself, with this thread's patience: the clock of the engine stands still meanwhile.
pub(crate) async fn in_time<T>(what: &str, waits: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, waits).await.unwrap_or_else(|_| panic!("waited in vain for {what}"))
}

pub(crate) async fn open(store: &MemoryStore, clock: &Arc<ManualClock>) -> Result<Engine, ApiError> {
    let clock: Arc<dyn Clock> = clock.clone();
    Engine::open(Arc::new(store.clone()), Options { clock, seed: Some(1), ..Options::default() }).await
}

/// Opens the store as a command does that looks or acts and leaves again.
pub(crate) async fn open_to_look(store: &MemoryStore, clock: &Arc<ManualClock>) -> Result<Engine, ApiError> {
    let clock: Arc<dyn Clock> = clock.clone();
    let options = Options { clock, seed: Some(1), schedules: false, ..Options::default() };
    Engine::open(Arc::new(store.clone()), options).await
}

pub(crate) fn start(id: &str, flow: &str, input: Json) -> Start {
    Start { id: Some(id.into()), flow: flow.into(), input, profile: Some("p".into()), ..Start::default() }
}

pub(crate) fn register(name: &str, boot: &str, holding: Vec<String>) -> Register {
    let offer = |name: &str| Offer { name: name.into(), ..Offer::default() };
    Register {
        worker: name.into(),
        boot: boot.into(),
        queues: vec!["q".into()],
        profile: Some("p".into()),
        concurrency: 4,
        activities: ["look", "put", "pay", "slow", "brief", "toll"].map(offer).into(),
        holding,
        pid: None,
    }
}

/// A worker that is called by hand.
pub(crate) struct Worker {
    pub(crate) engine: Engine,
    pub(crate) session: String,
}

impl Worker {
    pub(crate) async fn poll(&self, wait_ms: u64) -> Result<Vec<Task>, ApiError> {
        let poll = Poll { session: self.session.clone(), max: 10, wait_ms, leaving: false };
        self.engine.poll(poll).await.map(|polled| polled.tasks)
    }

    /// The tasks that are there now.
    pub(crate) async fn tasks(&self) -> Vec<Task> {
        self.poll(0).await.expect("the session is known")
    }

    /// Waits for exactly one task.
    pub(crate) async fn task(&self) -> Task {
        let mut tasks = in_time("a task", self.poll(60_000)).await.expect("the session is known");
        assert_eq!(tasks.len(), 1, "{tasks:?}");
        tasks.remove(0)
    }

    pub(crate) async fn report(&self, task: &Task, kind: OutcomeKind) -> ReceiptStatus {
        self.report_token(&task.token, kind).await
    }

    pub(crate) async fn report_token(&self, token: &str, kind: OutcomeKind) -> ReceiptStatus {
        let results = vec![Outcome { token: token.into(), kind }];
        let report = Report { session: self.session.clone(), results };
        self.engine.report(report).await.expect("the session is known").results[0].status
    }

    pub(crate) async fn done(&self, task: &Task, value: Json) -> ReceiptStatus {
        self.report(task, done(value)).await
    }

    /// Reports if the process lives.
    pub(crate) async fn try_done(&self, task: &Task, value: Json) -> Option<ReceiptStatus> {
        let results = vec![Outcome { token: task.token.clone(), kind: done(value) }];
        let report = Report { session: self.session.clone(), results };
        self.engine.report(report).await.ok().map(|reported| reported.results[0].status)
    }

    pub(crate) async fn fails(&self, task: &Task, kind: &str) -> ReceiptStatus {
        let error =
            TaskError { kind: kind.into(), text: "no".into(), retryable: true, ..TaskError::default() };
        self.report(task, OutcomeKind::Failed { error, cost: None, usage: None }).await
    }

    pub(crate) async fn progress(&self, tasks: &[(&Task, Option<&str>)]) {
        let tasks = tasks.iter().map(|(task, text)| TaskProgress {
            token: task.token.clone(),
            text: text.map(str::to_owned),
            ..TaskProgress::default()
        });
        let progress = Progress { session: self.session.clone(), tasks: tasks.collect() };
        self.engine.progress(progress).await.expect("the session is known");
    }

    /// The tokens that it must stop now.
    pub(crate) async fn stops(&self) -> Vec<String> {
        self.engine.control(&self.session, 0).await.expect("the session is known").cancel
    }
}

pub(crate) fn done(value: Json) -> OutcomeKind {
    OutcomeKind::Done { value, cost: None, usage: None }
}

pub(crate) fn code(result: Result<impl std::fmt::Debug, ApiError>) -> Code {
    result.expect_err("it is refused").code
}

/// All frames of an ended run after a place, as `id event data`; partial ones left out.
pub(crate) async fn frames(engine: &Engine, run: &str, after: Option<&str>) -> Vec<Frame> {
    let mut watch = engine.watch(run, after).await.expect("the run is there");
    let mut frames = Vec::new();
    while let Some(frame) = watch.next().await {
        frames.push(frame);
    }
    frames
}

pub(crate) fn approve() -> outlast_protocol::requests::Answer {
    outlast_protocol::requests::Answer { choice: "approve".into(), ..Default::default() }
}
