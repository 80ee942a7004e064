//! Keeping runs that were carried here from another store.

use outlast_kernel::ids::Seq;
use outlast_protocol::run::RunView;
use outlast_protocol::{ApiError, Code};
use outlast_store::breakage::{Breakage, breaks};
use outlast_store::{Put, Table};

use super::Shard;
use super::starting::{Start, alias};
use crate::engine::draft::Draft;
use crate::engine::errors;
use crate::engine::live::Live;
use crate::engine::message::Reply;
use crate::engine::transfer::BringRun;
use crate::engine::view;

impl Shard {
    /// Keeps a run with all its events, or finds it.
    pub(super) fn bring(&mut self, brought: BringRun, reply: Reply<(RunView, bool)>) {
        let run = brought.run.clone();
        let tried = self.try_bring(brought);
        let is_new = matches!(tried, Ok(Start::New(..)));
        self.begun_or_found(&run, tried, reply);
        if is_new && !breaks(Breakage::ForgetDoubtOnImport) {
            // Nobody here has what was in hand there.
            self.judge_begun(&run);
        }
    }

    fn try_bring(&mut self, brought: BringRun) -> Result<Start, ApiError> {
        self.refuse_other_case(&brought.run)?;
        if self.is_known(&brought.run)? {
            return self.existing_copy(&brought).map(|view| Start::Existing(Box::new(view)));
        }
        let now = self.ctx.clock.now();
        self.refuse_remains(&brought.run)?;
        self.refuse_to_begin(&brought.run, now)?;
        let BringRun { run, fold, events, facts, origin, puts, blobs: _ } = brought;
        let mut missing = Vec::with_capacity(puts.len());
        for put in puts {
            if put.table == Table::Machine || self.lacks(&put)? {
                missing.push(put);
            }
        }
        missing.extend(alias(&run));
        let draft = Draft::brought(fold, events);
        let view = view::view(&facts, &draft.fold.state, now, &self.ctx.flows, Some(&self.ctx.dispatch)).0;
        let mut live = Live::new(draft.fold.clone(), facts);
        live.origin = origin;
        self.take_in(&run, live);
        Ok(Start::New(Box::new(draft), missing, Box::new(view)))
    }

    /// Texts and environments that are here stay as they are.
    fn lacks(&self, put: &Put) -> Result<bool, ApiError> {
        let found = self.ctx.store.get(put.table, &put.key).map_err(|e| errors::store(&e))?;
        Ok(found.is_none())
    }

    /// Compares a run with the one that has its id: the same events, after which it may have gone on here.
    fn existing_copy(&mut self, brought: &BringRun) -> Result<RunView, ApiError> {
        let BringRun { run, events, .. } = brought;
        let look = self.looked_at(run)?;
        let here = self.ctx.store.history(run, Seq(0), events.len()).map_err(|e| errors::store(&e))?;
        if here == *events {
            return Ok(look.view);
        }
        let same = here.iter().zip(events).take_while(|(here, there)| here == there).count();
        let message = if same == here.len() {
            format!("run {run} is here, but only its first {same} events")
        } else {
            format!("run {run} is here, and is another one from event {} on", same + 1)
        };
        let hint = "import it into another data directory; a run is never replaced";
        Err(ApiError::new(Code::Conflict, message).of_run(run).hint(hint))
    }
}
