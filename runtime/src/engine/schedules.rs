//! The schedules of an engine: one loop that owns them, starts what is due and keeps their records.
//!
//! Leaves what becomes of a due time to `schedule`, runs to the shards. Invariant: a run is started before the record says that its
//! due time was decided, and its id is made of that time; so a crash in between leads to the same run, not to another one.

use std::collections::BTreeMap;
use std::sync::Arc;

use outlast_kernel::check_input;
use outlast_kernel::ids::{Millis, RunId};
use outlast_kernel::input::Input;
use outlast_kernel::text::time_text;
use outlast_protocol::requests::{List, Start};
use outlast_protocol::run::RunView;
use outlast_protocol::schedule::{Kept, KeptSchedule, Schedule, ScheduleView, Skipped};
use outlast_protocol::{ApiError, Code};
use outlast_store::breakage::{Breakage, breaks};
use outlast_store::{Put, Status, Table};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::core::Core;
use super::message::{Message, Reply};
use super::{Engine, errors};
use crate::limits::{QUOTED_CHARS, SCHEDULE_NAME_CHARS_MAX, SCHEDULES_MAX, STORE_RETRY_MS};
use crate::schedule::{Act, Record, Rules};

/// Under which name the runs of schedules are recorded.
const BY: &str = "schedule";

/// What the loop is asked.
pub(crate) enum Ask {
    Put(String, Box<Schedule>, Reply<KeptSchedule>),
    Get(String, Reply<ScheduleView>),
    List(Reply<List<ScheduleView>>),
    Pause(String, bool, Reply<ScheduleView>),
    Remove(String, Reply<()>),
    RunNow(String, Reply<RunView>),
}

impl Engine {
    /// Keeps a schedule. The same definition again changes nothing; another one is due from now on.
    ///
    /// # Errors
    /// [`Code::Invalid`], [`Code::NotFound`] (flow), [`Code::DiskFull`].
    pub async fn put_schedule(&self, name: &str, schedule: Schedule) -> Result<KeptSchedule, ApiError> {
        self.ask_schedules(|reply| Ask::Put(name.to_owned(), Box::new(schedule), reply)).await
    }

    /// Returns a schedule.
    ///
    /// # Errors
    /// [`Code::NotFound`].
    pub async fn schedule(&self, name: &str) -> Result<ScheduleView, ApiError> {
        self.ask_schedules(|reply| Ask::Get(name.to_owned(), reply)).await
    }

    /// Returns all schedules by name.
    ///
    /// # Errors
    /// [`Code::NotReady`] if the engine is stopping.
    pub async fn schedules(&self) -> Result<List<ScheduleView>, ApiError> {
        self.ask_schedules(Ask::List).await
    }

    /// Pauses a schedule, or lets it go on.
    ///
    /// # Errors
    /// [`Code::NotFound`], [`Code::DiskFull`].
    pub async fn pause_schedule(&self, name: &str, paused: bool) -> Result<ScheduleView, ApiError> {
        self.ask_schedules(|reply| Ask::Pause(name.to_owned(), paused, reply)).await
    }

    /// Removes a schedule. Its runs stay.
    ///
    /// # Errors
    /// [`Code::NotFound`].
    pub async fn remove_schedule(&self, name: &str) -> Result<(), ApiError> {
        self.ask_schedules(|reply| Ask::Remove(name.to_owned(), reply)).await
    }

    /// Starts a run of a schedule beside its due times, whatever else runs.
    ///
    /// # Errors
    /// [`Code::NotFound`], and as [`Engine::start`].
    pub async fn run_schedule_now(&self, name: &str) -> Result<RunView, ApiError> {
        self.ask_schedules(|reply| Ask::RunNow(name.to_owned(), reply)).await
    }

    async fn ask_schedules<T>(&self, ask: impl FnOnce(Reply<T>) -> Ask) -> Result<T, ApiError> {
        let (reply, answer) = oneshot::channel();
        self.inner.schedules.send(ask(reply)).await.map_err(|_| errors::stopping())?;
        answer.await.unwrap_or_else(|_| Err(errors::stopping()))
    }
}

/// A schedule, and when to look at it again.
struct Entry {
    record: Record,
    rules: Rules,
    look_at: Millis,
}

/// All schedules.
pub(crate) struct Schedules {
    core: Arc<Core>,
    entries: BTreeMap<String, Entry>,
    /// Whether runs are started when they are due; otherwise due times are left to the next engine that does.
    starts: bool,
}

impl Schedules {
    /// Reads the schedules of a store.
    ///
    /// # Errors
    /// [`Code::Internal`] if one cannot be read.
    pub(crate) fn open(core: Arc<Core>, starts: bool) -> Result<Schedules, ApiError> {
        let mut entries = BTreeMap::new();
        for (name, bytes) in core.ctx.store.list(Table::Schedule).map_err(|e| errors::store(&e))? {
            let name = String::from_utf8_lossy(&name).into_owned();
            let broken =
                |why: String| ApiError::new(Code::Internal, format!("schedule {name} cannot be read: {why}"));
            let record: Record = serde_json::from_slice(&bytes).map_err(|e| broken(e.to_string()))?;
            let rules = rules(&record.definition).map_err(|error| broken(error.message))?;
            // What was due while nothing ran is looked at first of all.
            entries.insert(name.clone(), Entry { record, rules, look_at: Millis(i64::MIN) });
        }
        Ok(Schedules { core, entries, starts })
    }

    /// Starts what is due and answers questions, for ever.
    pub(crate) async fn run(mut self, mut asks: mpsc::Receiver<Ask>) {
        loop {
            let (mut next, mut ends) = (Millis(i64::MAX), JoinSet::new());
            if self.starts {
                self.look().await;
                next = self.entries.values().map(|entry| entry.look_at).min().unwrap_or(next);
                ends = self.ends();
            }
            tokio::select! {
                ask = asks.recv() => match ask {
                    Some(ask) => self.answer(ask).await,
                    None => return,
                },
                () = self.core.ctx.clock.sleep_until(next) => {}
                Some(_) = ends.join_next() => self.look_at_queues(),
            }
        }
    }

    /// Looks at every schedule for which it is time.
    async fn look(&mut self) {
        let now = self.core.ctx.clock.now();
        let due = |entry: &Entry| entry.look_at <= now;
        let names: Vec<String> =
            self.entries.iter().filter(|(_, entry)| due(entry)).map(|(name, _)| name.clone()).collect();
        for name in names {
            let Some(entry) = self.entries.get_mut(&name) else { continue };
            let before = entry.record.clone();
            if let Err(error) = look_at(&self.core, &name, entry, now).await {
                self.core.ctx.counters.schedule_failures.count();
                tracing::error!(schedule = name, %error, "a schedule is late; trying again");
                entry.record = before;
                entry.look_at = now.plus(STORE_RETRY_MS);
            }
        }
    }

    /// Waits for the end of a run for which a due time waits.
    fn ends(&self) -> JoinSet<()> {
        let mut ends = JoinSet::new();
        for entry in self.entries.values().filter(|entry| !entry.record.queue.is_empty()) {
            for run in &entry.record.active {
                ends.spawn(ended(Arc::clone(&self.core), run.clone()));
            }
        }
        ends
    }

    fn look_at_queues(&mut self) {
        for entry in self.entries.values_mut().filter(|entry| !entry.record.queue.is_empty()) {
            entry.look_at = Millis(i64::MIN);
        }
    }

    async fn answer(&mut self, ask: Ask) {
        // Whoever asked may be gone.
        match ask {
            Ask::Put(name, schedule, reply) => drop(reply.send(self.put(&name, *schedule).await)),
            Ask::Get(name, reply) => drop(reply.send(self.view(&name))),
            Ask::List(reply) => {
                let items = self.entries.iter().map(|(name, entry)| self.shown(name, entry)).collect();
                drop(reply.send(Ok(List { items, next: None })));
            }
            Ask::Pause(name, paused, reply) => drop(reply.send(self.pause(&name, paused).await)),
            Ask::Remove(name, reply) => drop(reply.send(self.remove(&name).await)),
            Ask::RunNow(name, reply) => drop(reply.send(self.run_now(&name).await)),
        }
    }

    async fn put(&mut self, name: &str, schedule: Schedule) -> Result<KeptSchedule, ApiError> {
        check_name(name)?;
        let rules = rules(&schedule)?;
        let ctx = &self.core.ctx;
        let missing =
            || ApiError::new(Code::NotFound, format!("no flow {:?} is deployed", cut(&schedule.flow)));
        let flow = ctx.flows.get(&schedule.flow).ok_or_else(missing)?;
        let machine = ctx.flows.machine(&flow.machine)?;
        check_input(&machine, schedule.input.clone())
            .map_err(|detail| ApiError::new(Code::Invalid, detail).at("input"))?;
        let now = ctx.clock.now();
        let (kept, record) = match self.entries.get(name) {
            Some(entry) if entry.record.definition == schedule => (Kept::Unchanged, None),
            Some(entry) => {
                let last = entry.record.last.max(now);
                (Kept::Changed, Some(Record { definition: schedule, last, ..entry.record.clone() }))
            }
            None if self.entries.len() >= SCHEDULES_MAX => {
                return Err(ApiError::new(Code::Overloaded, format!("there are {SCHEDULES_MAX} schedules")));
            }
            None => (Kept::Created, Some(Record::new(schedule, now))),
        };
        if let Some(record) = record {
            keep(&self.core, name, Some(&record)).await?;
            self.entries.insert(name.to_owned(), Entry { record, rules, look_at: Millis(i64::MIN) });
        }
        Ok(KeptSchedule { kept, schedule: self.view(name)? })
    }

    async fn pause(&mut self, name: &str, paused: bool) -> Result<ScheduleView, ApiError> {
        let now = self.core.ctx.clock.now();
        let entry = self.entries.get_mut(name).ok_or_else(|| errors::no_schedule(name))?;
        // What was due until now is decided by what held until now, as far as nothing has to be started for that.
        if self.starts {
            look_at(&self.core, name, entry, now).await?;
        } else if entry.record.paused {
            entry.record.pass_over(&entry.rules, now);
        }
        let record = Record { paused, ..entry.record.clone() };
        keep(&self.core, name, Some(&record)).await?;
        entry.record = record;
        self.view(name)
    }

    async fn remove(&mut self, name: &str) -> Result<(), ApiError> {
        self.entries.get(name).ok_or_else(|| errors::no_schedule(name))?;
        keep(&self.core, name, None).await?;
        self.entries.remove(name);
        Ok(())
    }

    async fn run_now(&mut self, name: &str) -> Result<RunView, ApiError> {
        let entry = self.entries.get_mut(name).ok_or_else(|| errors::no_schedule(name))?;
        let id = format!("{name}~{}", self.core.ctx.random.id(self.core.ctx.clock.now()));
        let (view, _) = self.core.start(start(&entry.record.definition, id), BY).await?;
        let mut record = entry.record.clone();
        record.active.push(view.id.clone());
        keep(&self.core, name, Some(&record)).await?;
        entry.record = record;
        Ok(view)
    }

    fn view(&self, name: &str) -> Result<ScheduleView, ApiError> {
        self.entries.get(name).map(|entry| self.shown(name, entry)).ok_or_else(|| errors::no_schedule(name))
    }

    fn shown(&self, name: &str, entry: &Entry) -> ScheduleView {
        entry.record.view(name, &entry.rules, self.core.ctx.clock.now())
    }
}

/// Does what is due for a schedule.
async fn look_at(core: &Arc<Core>, name: &str, entry: &mut Entry, now: Millis) -> Result<(), ApiError> {
    let before = entry.record.clone();
    let mut active = Vec::new();
    for run in std::mem::take(&mut entry.record.active) {
        if !has_ended(core, &run)? {
            active.push(run);
        }
    }
    entry.record.active = active;
    let acts = entry.record.decide(&entry.rules, now);
    if breaks(Breakage::DecideBeforeStart) {
        keep(core, name, Some(&entry.record)).await?;
    }
    for act in acts {
        match act {
            Act::Start(moment) => start_due(core, name, &mut entry.record, moment).await?,
            Act::Cancel => {
                for run in &entry.record.active {
                    // It may be ending, or have ended, by now.
                    let cancel = vec![Input::Cancel { by: BY.to_owned() }];
                    let run = errors::run_id(run)?;
                    let _moved_on = core.ask(&run, |reply| Message::Inputs(run.clone(), cancel, reply)).await;
                }
            }
        }
    }
    if entry.record != before {
        keep(core, name, Some(&entry.record)).await?;
        let kept = |skipped: &&Skipped| !before.skipped.contains(*skipped);
        for Skipped { reason, count, .. } in entry.record.skipped.iter().rev().take_while(kept) {
            let reason = reason.split(':').next().unwrap_or_default();
            core.ctx.counters.schedule_skips.add([reason], *count);
        }
    }
    entry.look_at = entry.rules.next(entry.record.last.max(now)).unwrap_or(Millis(i64::MAX));
    Ok(())
}

/// Starts the run of a due time, or finds it; a start that is refused for good is a reason to skip.
async fn start_due(core: &Core, name: &str, record: &mut Record, moment: Millis) -> Result<(), ApiError> {
    let mut run = run_of(name, moment);
    if breaks(Breakage::RenameDueRuns) {
        run.push_str(&core.ctx.random.id(moment));
    }
    let started = core.start(start(&record.definition, run), BY).await;
    if started.as_ref().is_ok_and(|(_, existing)| !existing) {
        core.ctx.counters.schedule_starts.count();
    }
    match started {
        Ok((view, _)) if view.outcome.is_none() => record.active.push(view.id),
        Ok(_) => {}
        Err(error)
            if matches!(error.code, Code::Invalid | Code::NotFound | Code::Conflict | Code::TooLarge) =>
        {
            record.skip(moment, moment, 1, &format!("refused: {}", error.message));
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

fn start(definition: &Schedule, id: String) -> Start {
    Start {
        flow: definition.flow.clone(),
        input: definition.input.clone(),
        id: Some(id),
        profile: definition.profile.clone(),
        permissions: definition.permissions.clone(),
        ..Start::default()
    }
}

/// Returns the id of the run of a due time.
fn run_of(name: &str, moment: Millis) -> String {
    // Due times are whole minutes.
    let time = time_text(moment);
    format!("{name}@{}Z", time.get(..16).unwrap_or(&time))
}

fn has_ended(core: &Core, run: &str) -> Result<bool, ApiError> {
    let run = errors::run_id(run)?;
    let summary = core.ctx.store.summary(&run).map_err(|e| errors::store(&e))?;
    // What is gone from the store does not run.
    Ok(summary.is_none_or(|summary| summary.status == Status::Ended))
}

/// Waits until a run has ended, or cannot be looked at.
async fn ended(core: Arc<Core>, run: String) {
    let Ok(run) = RunId::new(&run) else { return };
    loop {
        let Ok(look) = core.ask(&run, |reply| Message::Look(run.clone(), reply)).await else { return };
        let mut changed = look.changed;
        if look.view.outcome.is_some() || changed.changed().await.is_err() {
            return;
        }
    }
}

async fn keep(core: &Core, name: &str, record: Option<&Record>) -> Result<(), ApiError> {
    let value = record.map(serde_json::to_vec).transpose();
    let value = value.map_err(|error| ApiError::new(Code::Internal, error.to_string()))?;
    let put = Put { table: Table::Schedule, key: name.as_bytes().to_vec(), value };
    core.ctx.committer.put(vec![put]).await.map_err(|refused| errors::refused(&refused))
}

fn rules(schedule: &Schedule) -> Result<Rules, ApiError> {
    if schedule.cron.is_empty() {
        let hint = "give rules such as \"30 2 * * *\"";
        return Err(ApiError::new(Code::Invalid, "a schedule needs a cron rule").at("cron").hint(hint));
    }
    Rules::parse(&schedule.cron, &schedule.time_zone).map_err(|e| ApiError::new(Code::Invalid, e.to_string()))
}

fn check_name(name: &str) -> Result<(), ApiError> {
    let fits = RunId::new(name).is_ok() && name.len() <= SCHEDULE_NAME_CHARS_MAX && !name.contains('@');
    if fits {
        return Ok(());
    }
    let message = format!(
        "{:?} is no name of a schedule: 1 to {SCHEDULE_NAME_CHARS_MAX} letters, digits, `.`, `_`, `~` or `-` are expected",
        cut(name)
    );
    Err(ApiError::new(Code::Invalid, message).at("name"))
}

fn cut(text: &str) -> String {
    text.chars().take(QUOTED_CHARS).collect()
}
