//! Every example, on a real disk, with a process that dies at each commit: before it is written and after, before anybody is told.
//!
//! Leaves what workers and people do to `stories`. Their worker outlives the runtime, as a process of its own does. `OUTLAST_WHOLE` tries
//! every commit, as `tests/night` does; otherwise some of each example. Invariant: wherever it dies, the end is that of a calm life, what was
//! read before is still there, and what must not happen twice has happened once.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use outlast_protocol::requests::{Answer, Deploy, FileText, Send};
use outlast_protocol::run::{RunView, WaitingFor};
use outlast_protocol::worker::{Offer, Outcome, Poll, ReceiptStatus, Register, Report, Task};
use outlast_protocol::{ApiError, Code};
use outlast_runtime::engine::{Engine, ManualClock, Options};
use outlast_store::{Side, StoreError};
use serde_json::{Value as Json, json};
use tempfile::TempDir;

use super::stories::{Story, stories};
use super::watched::Watched;
use super::world::{START, done, start};

/// Commits of an example that are tried if not all are.
const SAMPLE: u64 = 2;
/// Rounds after which an example counts as one that does not end.
const ROUNDS_MAX: usize = 400;
/// What passes when nobody has anything to do.
const IDLE_MS: u64 = 12 * 3_600_000;

#[tokio::test]
async fn every_example_ends_as_in_a_calm_life_wherever_its_process_dies() {
    for story in stories() {
        let (calm, commits) = Play::new(&story).play(None).await;
        assert_eq!(calm["kind"], "done", "{}: {calm}", story.file);
        let is_whole = std::env::var_os("OUTLAST_WHOLE").is_some();
        let stride = if is_whole { 1 } else { commits.div_ceil(SAMPLE).max(1) };
        for commit in (stride.div_ceil(2)..=commits).step_by(usize::try_from(stride).unwrap()) {
            for side in [Side::BeforeSync, Side::AfterSync] {
                let (end, _) = Play::new(&story).play(Some((commit, side))).await;
                assert_eq!(end, calm, "{} dies at commit {commit} of {commits}, {side:?}", story.file);
            }
        }
    }
}

/// One example, on its way from its start to its end.
struct Play<'a> {
    story: &'a Story,
    place: TempDir,
    clock: Arc<ManualClock>,
    /// Results that were not taken yet.
    outbox: Vec<(Task, Json)>,
    /// How often each operation was carried out that must not be repeated.
    effects: BTreeMap<String, u32>,
    said: usize,
    /// The longest history that was read.
    read: Vec<Json>,
}

impl<'a> Play<'a> {
    fn new(story: &'a Story) -> Play<'a> {
        let clock = Arc::new(ManualClock::new(START));
        let (outbox, effects, read) = (Vec::new(), BTreeMap::new(), Vec::new());
        Play { story, place: TempDir::new().unwrap(), clock, outbox, effects, said: 0, read }
    }

    /// Plays it; the process dies at one side of one commit with steps. Returns its end, and how many such commits there were.
    async fn play(mut self, dies: Option<(u64, Side)>) -> (Json, u64) {
        let commits = Arc::new(AtomicU64::new(0));
        for life in 1..=3 {
            let dies = dies.filter(|_| life == 1);
            let store = Arc::new(mortal(self.place.path(), Arc::clone(&commits), dies));
            let options = Options { clock: self.clock.clone(), seed: Some(life), ..Options::default() };
            let engine = Engine::open(store.clone(), options).await;
            let end = match &engine {
                Ok(engine) => self.live(engine).await,
                Err(error) => Err(error.clone()),
            };
            let failed = engine.as_ref().is_ok_and(|engine| !engine.status()["failed"].is_null());
            if let Ok(engine) = &engine {
                engine.shutdown().await;
            }
            drop(engine);
            // What the engine's tasks hold of the store goes with them.
            while Arc::strong_count(&store) > 1 {
                tokio::task::yield_now().await;
            }
            match end {
                Ok(end) => return (end, commits.load(Ordering::Relaxed)),
                Err(error) => assert!(failed, "{}: {error:?}", self.story.file),
            }
        }
        panic!("{} dies again and again", self.story.file)
    }

    /// Goes on until the end, or until the process dies.
    async fn live(&mut self, engine: &Engine) -> Result<Json, ApiError> {
        let deploy = Deploy { files: files(self.story.file), profile: None };
        if let Err(error) = engine.deploy(deploy).await {
            assert!(!engine.status()["failed"].is_null(), "{}: {error:?}", self.story.file);
            return Err(ApiError::new(Code::Internal, error.to_string()));
        }
        engine.start(start("r", self.story.flow, self.story.input.clone()), "test").await?;
        let mut session = self.register(engine).await?;
        for _ in 0..ROUNDS_MAX {
            settle(engine).await?;
            let view = engine.get("r").await?;
            self.read(engine).await?;
            if let Some(outcome) = view.outcome {
                let once = self.effects.values().all(|count| *count == 1);
                assert!(once, "{}: {:?}", self.story.file, self.effects);
                return Ok(json!(outcome));
            }
            match self.work(engine, &session).await {
                Ok(true) => {}
                Ok(false) => self.be_a_person(engine, &view).await?,
                // The clock went far, and the lease ended.
                Err(error) if error.code == Code::NotFound => session = self.register(engine).await?,
                Err(error) => return Err(error),
            }
        }
        panic!("{} does not end", self.story.file)
    }

    async fn register(&mut self, engine: &Engine) -> Result<String, ApiError> {
        let names = activities(self.story.file);
        let offers = names.into_iter().map(|name| Offer { name, ..Offer::default() });
        let registered = engine.register(Register {
            worker: "w".into(),
            boot: "boot".into(),
            queues: ["default", "tool", "model", "search"].map(Into::into).into(),
            profile: Some("p".into()),
            concurrency: 8,
            activities: offers.collect(),
            holding: self.outbox.iter().map(|(task, _)| task.token.clone()).collect(),
            pid: None,
        });
        let registered = registered.await?;
        self.outbox.retain(|(task, _)| !registered.drop.contains(&task.token));
        Ok(registered.session)
    }

    /// Reports what is done, and does what there is to do. Tells whether there was anything.
    async fn work(&mut self, engine: &Engine, session: &str) -> Result<bool, ApiError> {
        let had = !self.outbox.is_empty();
        let outcome =
            |(task, value): &(Task, Json)| Outcome { token: task.token.clone(), kind: done(value.clone()) };
        let results = self.outbox.iter().map(outcome).collect();
        let reported = engine.report(Report { session: session.into(), results }).await?;
        let again = |token: &str| {
            let mut open = reported.results.iter().filter(|receipt| receipt.status == ReceiptStatus::Retry);
            open.any(|receipt| receipt.token == token)
        };
        self.outbox.retain(|(task, _)| again(&task.token));
        let poll = Poll { session: session.into(), max: 8, wait_ms: 0, leaving: false };
        let tasks = engine.poll(poll).await?.tasks;
        let has = had || !tasks.is_empty();
        for task in tasks {
            if task.effect == "once" {
                *self.effects.entry(task.op.clone()).or_default() += 1;
            }
            let value = (self.story.gives)(&task.activity, &task.input);
            self.outbox.push((task, value));
        }
        Ok(has)
    }

    /// Answers what is asked, says what is waited for, or lets time pass.
    async fn be_a_person(&mut self, engine: &Engine, view: &RunView) -> Result<(), ApiError> {
        if let Some(question) = view.questions.first() {
            let value = self.story.value.clone();
            let choice = if value.is_some() { "answer" } else { "approve" };
            for role in &question.to {
                let (question, role) = (Some(question.id.clone()), role.clone());
                let by = role.clone();
                let shown = view.questions.first().map(|question| question.shown.clone());
                let answer = Answer {
                    question,
                    choice: choice.into(),
                    value: value.clone(),
                    role: Some(role),
                    shown,
                    ..Answer::default()
                };
                match engine.answer("r", answer, &by).await {
                    // It was taken by the process that died.
                    Err(error) if error.code == Code::Conflict => {}
                    answered => {
                        answered?;
                    }
                }
            }
            return Ok(());
        }
        let next = self.story.says.get(self.said);
        match (&view.waiting_for, next) {
            (Some(WaitingFor::Message { .. }), Some((name, value))) => {
                let id = Some(format!("say-{}", self.said));
                engine.message("r", Send { name: (*name).into(), value: value.clone(), id }, "ann").await?;
                self.said += 1;
            }
            _ => self.clock.advance(IDLE_MS),
        }
        Ok(())
    }

    /// Reads the history: it goes on from what was read before.
    async fn read(&mut self, engine: &Engine) -> Result<(), ApiError> {
        let events = engine.events("r", 0, 1_000).await?.items;
        assert!(events.starts_with(&self.read), "{}: {:?} and then {events:?}", self.story.file, self.read);
        self.read = events;
        Ok(())
    }
}

/// A store that counts its commits with steps, and dies at a side of one of them.
fn mortal(directory: &Path, commits: Arc<AtomicU64>, dies: Option<(u64, Side)>) -> Watched {
    let is_dead = std::sync::atomic::AtomicBool::new(false);
    Watched::open(directory).on_commit(move |side, batch| {
        if side == Side::BeforeSync && !batch.runs.is_empty() {
            commits.fetch_add(1, Ordering::Relaxed);
        }
        let now = Some((commits.load(Ordering::Relaxed), side));
        if (dies.is_some() && now == dies && !batch.runs.is_empty()) || is_dead.load(Ordering::Relaxed) {
            is_dead.store(true, Ordering::Relaxed);
            return Err(StoreError::Disk {
                path: PathBuf::from("here"),
                detail: "it died".into(),
                source: None,
            });
        }
        Ok(())
    })
}

/// To the disk and back, as often as one step may cause another.
async fn settle(engine: &Engine) -> Result<(), ApiError> {
    while engine.status()["recovering"] == true && engine.status()["failed"].is_null() {
        tokio::task::yield_now().await;
    }
    for round in 0..2 {
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
        engine.put_profile("settle", json!({ "round": round })).await?;
    }
    Ok(())
}

fn example(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(file)
}

/// The file of an example, and those that it uses.
fn files(file: &str) -> Vec<FileText> {
    let names = if file == "agent.flow" { vec![file, "dev.tools.json"] } else { vec![file] };
    let text = |name: &&str| std::fs::read_to_string(example(name)).unwrap();
    names.iter().map(|name| FileText { name: (*name).into(), text: text(name) }).collect()
}

/// The names of the activities that an example declares.
fn activities(file: &str) -> Vec<String> {
    let text = std::fs::read_to_string(example(file)).unwrap();
    let declared = text.lines().filter_map(|line| line.strip_prefix("activity ")?.split_once('('));
    declared.map(|(name, _)| name.to_owned()).collect()
}

/// No example is left out.
#[test]
fn every_example_has_a_story() {
    let told: Vec<&str> = stories().iter().map(|story| story.file).collect();
    for folder in ["", "flows/"] {
        for entry in std::fs::read_dir(example(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let file = format!("{folder}{name}");
            assert!(!name.ends_with(".flow") || told.contains(&&*file), "{file} has no story in stories.rs");
        }
    }
}
