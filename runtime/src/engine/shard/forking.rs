//! Beginning forks: each id once.

use outlast_kernel::event::EventKind;
use outlast_kernel::ids::RunId;
use outlast_protocol::run::RunView;
use outlast_protocol::{ApiError, Code};
use outlast_store::Origin;
use serde_json::json;

use super::Shard;
use super::starting::{Start, alias};
use crate::engine::draft::{Draft, Failure};
use crate::engine::errors;
use crate::engine::forks::{self, ForkRun};
use crate::engine::live::Live;
use crate::engine::message::Reply;
use crate::engine::view::{self, Facts};

impl Shard {
    /// Begins a fork, or finds the one that the same request began before.
    pub(super) fn fork(&mut self, fork: ForkRun, reply: Reply<(RunView, bool)>) {
        let run = fork.run.clone();
        let tried = self.try_fork(fork);
        self.begun_or_found(&run, tried, reply);
    }

    fn try_fork(&mut self, fork: ForkRun) -> Result<Start, ApiError> {
        self.refuse_other_case(&fork.run)?;
        if self.is_known(&fork.run)? {
            return self.existing_fork(&fork).map(|view| Start::Existing(Box::new(view)));
        }
        let now = self.ctx.clock.now();
        self.refuse_remains(&fork.run)?;
        self.refuse_to_begin(&fork.run, now)?;
        let ForkRun { run, parent, at, prefix, head, begun, children, by, asked: _ } = fork;
        let kind = EventKind::Forked { parent: parent.clone(), at, begun, children, by };
        let draft = Draft::fork(&prefix, &run, now, kind).map_err(|failure| match failure {
            Failure::Refused(refusal) => errors::refusal(&run, &refusal),
            // There is no fork yet that could be blocked.
            Failure::Broken(why) => ApiError::new(Code::Internal, why).of_run(&run),
        })?;
        let machine = prefix.machine();
        let facts = Facts {
            flow: machine.root().name.clone(),
            machine: machine.hash().0,
            started_at: draft.at,
            parent: Some(forks::forked_from(&parent, at)),
        };
        let view = view::view(&facts, &draft.fold.state, now, &self.ctx.flows, Some(&self.ctx.dispatch)).0;
        let live = Live::forked(draft.fold.clone(), facts, Origin::Fork { parent, at }, head);
        self.take_in(&run, live);
        Ok(Start::New(Box::new(draft), alias(&run).into_iter().collect(), Box::new(view)))
    }

    /// Compares a request with the run that has its id: a fork of the same run, at the same event if one is named.
    fn existing_fork(&mut self, fork: &ForkRun) -> Result<RunView, ApiError> {
        let ForkRun { run, parent: of, at, asked, .. } = fork;
        let view = self.looked_at(run)?.view;
        let parent = view.parent.clone().unwrap_or_default();
        let same_run = parent["run"] == json!(of) && parent.get("op").is_none();
        if same_run && asked.is_none_or(|at| parent["at"] == json!(at)) {
            return Ok(view);
        }
        let message = format!("run {run} exists, and is no fork of {of} at event {at}");
        let hint = "give another id, or repeat the request as it was";
        Err(ApiError::new(Code::Conflict, message).of_run(run).hint(hint))
    }

    /// Tells whether there is a run with this id, durable or on its way.
    pub(super) fn is_known(&self, run: &RunId) -> Result<bool, ApiError> {
        if self.live.contains_key(run) || self.broken.contains_key(run) {
            return Ok(true);
        }
        Ok(self.ctx.store.head(run).map_err(|e| errors::store(&e))?.is_some())
    }

    /// Takes a run into memory whose first step is about to be kept.
    pub(super) fn take_in(&mut self, run: &RunId, live: Live) {
        self.live.insert(run.clone(), live);
        self.starting.insert(run.as_str().to_ascii_lowercase(), run.clone());
    }
}
