//! Starting runs: each id once.

use outlast_kernel::event::{EventKind, Started};
use outlast_kernel::ids::{Millis, RunId};
use outlast_kernel::json::canonical_text;
use outlast_kernel::{Json, check_input};
use outlast_protocol::run::RunView;
use outlast_protocol::{ApiError, Code};
use outlast_store::breakage::{Breakage, breaks};
use outlast_store::{Put, Table};

use super::Shard;
use crate::engine::draft::{Draft, Failure};
use crate::engine::errors;
use crate::engine::live::Live;
use crate::engine::message::{Consequence, Reply, StartRun};
use crate::engine::view::{self, Facts};
use crate::limits;

/// What stands before the lower-case form of a run id in [`Table::Setting`].
const ALIAS: &str = "id/";

impl Shard {
    /// Starts a run, or finds the one that the same request started before.
    pub(super) fn start(&mut self, start: StartRun, reply: Reply<(RunView, bool)>) {
        let run = start.run.clone();
        let tried = self.try_start(start);
        self.begun_or_found(&run, tried, reply);
    }

    /// Keeps the first step of a run, or answers with the one that was found.
    pub(super) fn begun_or_found(
        &mut self,
        run: &RunId,
        tried: Result<Start, ApiError>,
        reply: Reply<(RunView, bool)>,
    ) {
        match tried {
            Ok(Start::New(draft, puts, view)) => {
                let answer = Box::new(Ok((*view, false)));
                self.keep(run, *draft, puts, vec![Consequence::Started(reply, answer)]);
            }
            Ok(Start::Existing(view)) => {
                self.after(run, Consequence::Started(reply, Box::new(Ok((*view, true)))));
            }
            // What it is compared with may not be durable yet.
            Err(error) => self.after(run, Consequence::Started(reply, Box::new(Err(error)))),
        }
    }

    fn try_start(&mut self, start: StartRun) -> Result<Start, ApiError> {
        self.refuse_other_case(&start.run)?;
        if self.is_known(&start.run)? && !breaks(Breakage::StartAgain) {
            return self.existing(&start).map(|view| Start::Existing(Box::new(view)));
        }
        let now = self.ctx.clock.now();
        self.refuse_remains(&start.run)?;
        self.refuse_to_begin(&start.run, now)?;
        let input = check_input(&start.machine, start.input.clone())
            .map_err(|detail| ApiError::new(Code::Invalid, detail).at("input"))?;
        let kind = EventKind::Started(Box::new(Started {
            flow: start.flow.clone(),
            machine: start.hash.clone(),
            edition: start.machine.edition,
            input: input.clone(),
            seed: start.seed,
            config: start.config.clone(),
            parent: None,
            ancestors: Vec::new(),
            by: start.by.clone(),
        }));
        let draft = self.first_step(&start, now, kind)?;
        let facts = Facts { flow: start.flow, machine: start.hash, started_at: draft.at, parent: None };
        let view = view::view(&facts, &draft.fold.state, now, &self.ctx.flows, Some(&self.ctx.dispatch)).0;
        let mut live = Live::new(draft.fold.clone(), facts);
        live.input = Some(input);
        self.take_in(&start.run, live);
        Ok(Start::New(Box::new(draft), alias(&start.run).into_iter().collect(), Box::new(view)))
    }

    /// Makes the first step: the start and its messages, all or nothing.
    fn first_step(&mut self, start: &StartRun, now: Millis, kind: EventKind) -> Result<Draft, ApiError> {
        let told = |failure| match failure {
            Failure::Refused(refusal) => errors::refusal(&start.run, &refusal),
            // There is no run yet that could be blocked.
            Failure::Broken(why) => ApiError::new(Code::Internal, why).of_run(&start.run),
        };
        let mut draft = Draft::start(start.machine.clone(), start.run.clone(), now, kind).map_err(told)?;
        for message in &start.messages {
            draft.input(message).map_err(told)?;
        }
        Ok(draft)
    }

    /// Compares a request with the run that has its id: the same flow and the same arguments, whatever the version.
    fn existing(&mut self, start: &StartRun) -> Result<RunView, ApiError> {
        let (facts, pending) = match self.live.get(&start.run) {
            Some(live) => (live.facts.clone(), live.input.clone()),
            None => {
                let summary = self.ctx.store.summary(&start.run).map_err(|e| errors::store(&e))?;
                (Facts::of(summary.ok_or_else(|| errors::no_run(&start.run))?), None)
            }
        };
        let Facts { flow, machine, parent, .. } = facts;
        let conflict = |message: String| {
            let hint = "give another id, or repeat the request as it was";
            Err(ApiError::new(Code::Conflict, message).of_run(&start.run).hint(hint))
        };
        if let Some(parent) = parent {
            let parent = parent["run"].as_str().unwrap_or_default().to_owned();
            return conflict(format!(
                "run {} was not started by a request; it came from run {parent}",
                start.run
            ));
        }
        if flow != start.flow {
            return conflict(format!("run {} is of flow {flow}, not {}", start.run, start.flow));
        }
        let had: Json = match pending {
            Some(input) => input,
            None => self.started_with(&start.run)?,
        };
        let machine = self.ctx.flows.machine(&machine)?;
        let same = check_input(&machine, start.input.clone())
            .is_ok_and(|input| canonical_text(&input) == canonical_text(&had));
        if !same {
            return conflict(format!("run {} was started with another input", start.run));
        }
        self.looked_at(&start.run).map(|look| look.view)
    }

    /// Refuses an id that differs only in case from one that is taken: on many disks and screens they would be the same.
    pub(super) fn refuse_other_case(&self, run: &RunId) -> Result<(), ApiError> {
        self.refuse_if_deleting(run)?;
        let lower = run.as_str().to_ascii_lowercase();
        let taken = match self.starting.get(&lower) {
            Some(other) => Some(other.to_string()),
            None => {
                let get = |table, key: &str| self.ctx.store.get(table, key.as_bytes());
                let alias = get(Table::Setting, &format!("{ALIAS}{lower}")).map_err(|e| errors::store(&e))?;
                match alias {
                    Some(other) => Some(String::from_utf8_lossy(&other).into_owned()),
                    None if lower == run.as_str() => None,
                    None => {
                        let plain = errors::run_id(&lower)?;
                        let head = self.ctx.store.head(&plain).map_err(|e| errors::store(&e))?;
                        head.map(|_| lower)
                    }
                }
            }
        };
        match taken {
            Some(other) if other != run.as_str() && !breaks(Breakage::IgnoreCase) => {
                let message = format!("run {other} exists; ids may not differ only in case");
                Err(ApiError::new(Code::Conflict, message).of_run(run))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Refuses a new run if there is no room for one, or if its first step ended the process again and again.
    pub(super) fn refuse_to_begin(&mut self, run: &RunId, now: Millis) -> Result<(), ApiError> {
        self.ctx.quarantine.refuse(run)?;
        self.refuse_if_full(now)?;
        self.refuse_if_nearly_full(now)
    }

    fn refuse_if_nearly_full(&mut self, now: Millis) -> Result<(), ApiError> {
        // Figures of the store wait for the commit that is under way, so they are not asked for at every start.
        if self.looked_for_room.is_none_or(|(until, _)| until <= now) {
            let stats = self.ctx.store.stats().map_err(|e| errors::store(&e))?;
            let left = stats.nearly_full.then_some(stats.free_bytes);
            self.looked_for_room = Some((now.plus(limits::ROOM_LOOK_MS), left));
        }
        if let Some((_, Some(left))) = self.looked_for_room {
            let message = format!("the disk has {left} bytes left; no new runs are taken");
            return Err(ApiError::new(Code::DiskFull, message).hint("make room and try again"));
        }
        Ok(())
    }
}

/// A run that is begun, or was before.
pub(super) enum Start {
    New(Box<Draft>, Vec<Put>, Box<RunView>),
    Existing(Box<RunView>),
}

/// Makes the record by which an id with capitals is found from its lower-case form.
pub(super) fn alias(run: &RunId) -> Option<Put> {
    let lower = run.as_str().to_ascii_lowercase();
    (lower != run.as_str()).then(|| Put {
        table: Table::Setting,
        key: format!("{ALIAS}{lower}").into_bytes(),
        value: Some(run.as_str().as_bytes().to_vec()),
    })
}
