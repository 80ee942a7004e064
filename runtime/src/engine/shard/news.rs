//! News between runs: spawned runs begin, are stopped, and tell of their end.
//!
//! Leaves what follows to the kernel. Invariant: the sender is told that its news arrived only when what it caused is durable; the same
//! news again causes nothing and is acknowledged again.

use std::sync::Arc;

use outlast_dsl::machine::Machine;
use outlast_kernel::event::{EventKind, SpawnResult, Started};
use outlast_kernel::ids::{OpId, RunId};
use outlast_kernel::input::{Input, Refusal};
use outlast_kernel::operation::Outcome;
use outlast_protocol::{ApiError, Code};
use outlast_store::breakage::{Breakage, breaks};
use outlast_store::{Put, Table};

use super::Shard;
use super::starting::alias;
use crate::engine::dispatch::WorkId;
use crate::engine::draft::{Draft, Failure};
use crate::engine::errors;
use crate::engine::live::Live;
use crate::engine::message::{Consequence, Message};
use crate::engine::parcel::{self, News, Parcel};
use crate::engine::view::{Facts, spawned_from};

/// What a run does about news: a step, or nothing; and what its sender hears then.
type Taken = (Option<(Draft, Vec<Put>)>, Box<Input>);

impl Shard {
    /// Tells another run of an open operation.
    pub(super) fn send(&mut self, run: &RunId, op: OpId) {
        let parcel = self.hydrate(run).ok().and_then(|live| parcel::of(live.state(), op));
        if let Some(parcel) = parcel {
            self.ctx.post.send(parcel.to.clone(), Message::News(Box::new(parcel)));
        }
    }

    /// Takes news of another run.
    pub(super) fn news(&mut self, parcel: Parcel) {
        let Parcel { from, to, news } = parcel;
        let taken = match news {
            News::Begin(started, machine, text_of) => {
                self.begin_spawned(&from, &to, *started, (machine, &text_of))
            }
            News::Stop(spawned_by) => self.stop_spawned(&from, &to, spawned_by),
            News::Ended(op, outcome) => self.take_end(&from, &to, Input::ChildEnded { op, outcome }),
            News::Await => return self.await_end(from, &to),
        };
        match taken {
            Ok((Some((draft, puts)), input)) => {
                self.keep(&to, draft, puts, vec![Consequence::Acknowledge(from, input)]);
            }
            // What makes it nothing new may not be durable yet.
            Ok((None, input)) => self.after(&to, Consequence::Acknowledge(from, input)),
            Err(error) if self.may_be_taken_later(&to, &error) => {
                self.ctx.post.send(from.run.clone(), Message::Undelivered(from));
            }
            Err(error) => {
                tracing::error!(run = %to, from = %from.run, op = %from.op, %error, "news of a run is not taken");
            }
        }
    }

    /// Takes what another run said of this one's news.
    pub(super) fn receipt(&mut self, run: &RunId, input: &Input) {
        match self.step_of(run, input) {
            Ok(Some(draft)) => self.keep(run, draft, Vec::new(), Vec::new()),
            // It was told twice, or the operation is gone.
            Ok(None) | Err(Untaken::Refused(_)) => {}
            Err(Untaken::Failed(error)) => {
                tracing::error!(run = %run, %error, "a receipt is not kept");
            }
        }
    }

    fn begin_spawned(
        &mut self,
        from: &WorkId,
        run: &RunId,
        started: Started,
        (machine, text_of): (Arc<Machine>, &str),
    ) -> Result<Taken, ApiError> {
        let found = match self.refuse_other_case(run).and_then(|()| self.refuse_remains(run)) {
            Ok(()) => self.is_known(run)?,
            Err(error) if error.code == Code::Conflict => true,
            Err(error) => return Err(error),
        };
        if found {
            let ours = self.spawned_by(run)? == Some(spawned_from(&from.run, from.op));
            let ours = ours || breaks(Breakage::TakeStrangersForChildren);
            let result = if ours { SpawnResult::Run(run.clone()) } else { SpawnResult::Exists };
            return Ok((None, parcel::spawned(from.op, result)));
        }
        let now = self.ctx.clock.now();
        self.refuse_to_begin(run, now)?;
        let (flow, hash) = (started.flow.clone(), started.machine.clone());
        let mut puts: Vec<Put> = alias(run).into_iter().collect();
        if self.ctx.flows.machine(&hash).is_err() {
            let text =
                self.ctx.store.get(Table::Source, text_of.as_bytes()).map_err(|e| errors::store(&e))?;
            let put = |table, value| Put { table, key: hash.clone().into_bytes(), value: Some(value) };
            puts.push(put(Table::Machine, machine.encode()));
            puts.extend(text.map(|text| put(Table::Source, text)));
        }
        let input = started.input.clone();
        let kind = EventKind::Started(Box::new(started));
        let draft = Draft::start(machine, run.clone(), now, kind).map_err(|failure| match failure {
            Failure::Refused(refusal) => errors::refusal(run, &refusal),
            Failure::Broken(why) => ApiError::new(Code::Internal, why).of_run(run),
        })?;
        let parent = Some(spawned_from(&from.run, from.op));
        let mut live =
            Live::new(draft.fold.clone(), Facts { flow, machine: hash, started_at: draft.at, parent });
        live.input = Some(input);
        self.take_in(run, live);
        Ok((Some((draft, puts)), parcel::spawned(from.op, SpawnResult::Run(run.clone()))))
    }

    fn stop_spawned(&mut self, from: &WorkId, run: &RunId, spawned_by: OpId) -> Result<Taken, ApiError> {
        // An id alone may be a stranger's by now.
        let named = Some(spawned_from(&from.run, spawned_by));
        let strangers = breaks(Breakage::StopStrangers);
        let ours = self.is_known(run)? && (strangers || self.spawned_by(run)? == named);
        if !ours {
            let why = format!("there is no run {run} that was spawned by operation {spawned_by}");
            return Ok((None, parcel::refused(from.op, why)));
        }
        match self.step_of(run, &Input::Cancel { by: from.run.to_string() }) {
            Ok(draft) => Ok((draft.map(|draft| (draft, Vec::new())), parcel::arrived(from.op))),
            // It stops already, or has ended: that is all that was wanted.
            Err(Untaken::Refused(_)) => Ok((None, parcel::arrived(from.op))),
            Err(Untaken::Failed(error)) => Err(error),
        }
    }

    fn take_end(&mut self, from: &WorkId, run: &RunId, input: Input) -> Result<Taken, ApiError> {
        match self.step_of(run, &input) {
            Ok(draft) => Ok((draft.map(|draft| (draft, Vec::new())), parcel::arrived(from.op))),
            Err(Untaken::Refused(Refusal::Repeated)) => Ok((None, parcel::arrived(from.op))),
            Err(Untaken::Refused(refusal)) => Ok((None, parcel::refused(from.op, refusal.to_string()))),
            Err(Untaken::Failed(error)) if error.code == Code::NotFound => {
                Ok((None, parcel::refused(from.op, error.message)))
            }
            Err(Untaken::Failed(error)) => Err(error),
        }
    }

    /// Tells whether news that a run did not take may be sent again in this process: there may be room, or somebody may release it.
    fn may_be_taken_later(&self, run: &RunId, error: &ApiError) -> bool {
        matches!(error.code, Code::DiskFull | Code::NotReady | Code::Overloaded)
            || self.ctx.quarantine.holds(run)
    }

    /// Tells a run how this one ended, now or when it has. Who asked asks again after a restart.
    fn await_end(&mut self, from: WorkId, run: &RunId) {
        let known = self.hydrate(run).map(|live| live.state().outcome().cloned());
        let outcome = match known {
            Ok(outcome) => outcome,
            Err(error) if self.may_be_taken_later(run, &error) => {
                return self.ctx.post.send(from.run.clone(), Message::Undelivered(from));
            }
            Err(error) => {
                return tracing::warn!(run = %run, from = %from.run, %error, "a run that is awaited is not here");
            }
        };
        match outcome {
            Some(outcome) => {
                let input = parcel::ended(from.op, &outcome);
                self.after(run, Consequence::Acknowledge(from, input));
            }
            None => self.awaited.entry(run.clone()).or_default().push(from),
        }
    }

    /// Returns what those hear who asked about the end of a run that has just ended.
    pub(super) fn end_told(&mut self, run: &RunId, outcome: &Outcome) -> Vec<Consequence> {
        let asked = self.awaited.remove(run).unwrap_or_default();
        let tell = |from: WorkId| {
            let input = parcel::ended(from.op, outcome);
            Consequence::Acknowledge(from, input)
        };
        asked.into_iter().map(tell).collect()
    }

    /// Makes the step that an input of another run causes; none if it causes nothing.
    fn step_of(&mut self, run: &RunId, input: &Input) -> Result<Option<Draft>, Untaken> {
        let now = self.ctx.clock.now();
        self.refuse_if_full(now)?;
        self.ready_for_input(run, now)?;
        let random = self.random.number();
        let mut draft = Draft::new(&self.hydrate(run)?.fold, now, random);
        match draft.input(input) {
            Ok(_) => Ok((!draft.events.is_empty()).then_some(draft)),
            Err(Failure::Refused(refusal)) => Err(Untaken::Refused(refusal)),
            Err(failure @ Failure::Broken(_)) => Err(Untaken::Failed(self.failure(run, failure))),
        }
    }

    /// Returns where a run came from, as it is shown.
    fn spawned_by(&self, run: &RunId) -> Result<Option<outlast_kernel::Json>, ApiError> {
        if let Some(live) = self.live.get(run) {
            return Ok(live.facts.parent.clone());
        }
        let summary = self.ctx.store.summary(run).map_err(|e| errors::store(&e))?;
        Ok(summary.and_then(|summary| Facts::of(summary).parent))
    }
}

/// Why an input of another run is not taken.
enum Untaken {
    Refused(Refusal),
    Failed(ApiError),
}

impl From<ApiError> for Untaken {
    fn from(error: ApiError) -> Untaken {
        Untaken::Failed(error)
    }
}
