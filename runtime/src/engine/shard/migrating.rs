//! Migrating runs to another machine: the whole run or nothing of it.

use std::sync::Arc;

use outlast_dsl::machine::Machine;
use outlast_kernel::Compatibility;
use outlast_kernel::event::OnOpen;
use outlast_kernel::ids::{OpId, RunId, Seq};
use outlast_protocol::ApiError;

use super::Shard;
use crate::engine::draft::Draft;
use crate::engine::message::{Consequence, Reply};

/// A run to migrate, or to be looked at for it.
pub(crate) struct MigrateRun {
    pub(crate) run: RunId,
    pub(crate) machine: Arc<Machine>,
    /// What happens to open operations that do not fit; none: the run waits for their ends.
    pub(crate) open: Option<OnOpen>,
    pub(crate) by: String,
    /// Only says whether it could.
    pub(crate) only_look: bool,
}

/// Whether a run can go on with another machine, or does.
#[derive(Debug)]
pub(crate) enum Migration {
    /// It does, from this event on.
    Done(Seq),
    /// It has this machine already.
    Same,
    /// It has ended.
    Ended,
    /// It could, or why not.
    Fit(Compatibility),
}

impl Shard {
    /// Migrates a run, or says why it cannot be.
    pub(super) fn migrate(&mut self, migrate: &MigrateRun, reply: Reply<Migration>) {
        let run = &migrate.run;
        match self.try_migrate(migrate) {
            Ok((Some(draft), migration)) => {
                let done = Consequence::Migrated(reply, Ok(migration));
                self.keep(run, draft, Vec::new(), vec![done]);
            }
            Ok((None, migration)) => self.after(run, Consequence::Migrated(reply, Ok(migration))),
            Err(error) => self.after(run, Consequence::Migrated(reply, Err(error))),
        }
    }

    fn try_migrate(&mut self, migrate: &MigrateRun) -> Result<(Option<Draft>, Migration), ApiError> {
        let MigrateRun { run, machine, open, by, only_look } = migrate;
        let now = self.ctx.clock.now();
        if !only_look {
            self.refuse_if_full(now)?;
        }
        self.ready_for_input(run, now)?;
        let live = self.hydrate(run)?;
        let state = live.state();
        if state.outcome().is_some() {
            return Ok((None, Migration::Ended));
        }
        let hash = machine.hash().0;
        if live.facts.machine == hash {
            return Ok((None, Migration::Same));
        }
        let fit = state.compatibility(machine);
        let map: Vec<(OpId, OnOpen)> = match (&fit, open) {
            (Compatibility::Drain(ops), Some(open)) => ops.iter().map(|op| (*op, *open)).collect(),
            (Compatibility::Safe | Compatibility::Drain(_) | Compatibility::NeedsMigrate(_), _) => Vec::new(),
        };
        let ready = match &fit {
            Compatibility::Safe => true,
            Compatibility::Drain(_) => !map.is_empty(),
            Compatibility::NeedsMigrate(_) => false,
        };
        if *only_look || !ready {
            return Ok((None, Migration::Fit(fit)));
        }
        let kind = match state.migration(machine, map, by.clone()) {
            Ok(kind) => kind,
            Err(fit) => return Ok((None, Migration::Fit(fit))),
        };
        let mut draft = Draft::new(&live.fold, now, 0);
        let migrated = draft.migrate(kind, machine);
        let n = migrated.map_err(|failure| self.failure(run, failure))?;
        if let Some(live) = self.live.get_mut(run) {
            live.facts.machine = hash;
            live.facts.flow.clone_from(&machine.root().name);
        }
        Ok((Some(draft), Migration::Done(n)))
    }
}
