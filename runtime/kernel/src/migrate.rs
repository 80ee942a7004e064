//! Migration: whether a run can go on with another machine, and what it takes along.
//!
//! Leaves choosing runs to the caller. Invariant: pure; what [`State::migration`] allows, [`State::apply_migrated`] can apply,
//! and the values that are carried have the types that the new machine says.

mod fit;
mod plan;

use std::sync::Arc;

use outlast_dsl::machine::Machine;

use crate::event::{Event, EventKind, Migrated, OnOpen};
use crate::ids::OpId;
use crate::operation::Effects;
use crate::program::Program;
use crate::state::{Diverged, State};

pub(crate) use plan::{ArgsFrom, Misfit, NodePlan, Plan, Source};

/// Whether a run can go on with another machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compatibility {
    /// It can, as it is now.
    Safe,
    /// Not before the new version says how: what does not fit, in words.
    NeedsMigrate(Vec<String>),
    /// These operations do not fit: it can when they are closed, or if each is to be cut or opened again.
    Drain(Vec<OpId>),
}

impl State {
    /// Says whether the run can go on with another machine.
    #[must_use]
    pub fn compatibility(&self, machine: &Arc<Machine>) -> Compatibility {
        let program = Program::new(Arc::clone(machine));
        let plan = match Plan::new(self, &program) {
            Ok(plan) => plan,
            Err(needs) => return Compatibility::NeedsMigrate(needs),
        };
        let misfits = plan.misfits();
        if !misfits.is_empty() {
            return Compatibility::Drain(misfits);
        }
        match self.migration(machine, Vec::new(), String::new()) {
            Ok(_) => Compatibility::Safe,
            Err(needs) => needs,
        }
    }

    /// Returns the event that lets the run go on with another machine; `map` says what happens to operations that do not fit.
    ///
    /// # Errors
    /// What does not fit.
    pub fn migration(
        &self,
        machine: &Arc<Machine>,
        map: Vec<(OpId, OnOpen)>,
        by: String,
    ) -> Result<EventKind, Compatibility> {
        if self.outcome().is_some() {
            return Err(Compatibility::NeedsMigrate(vec!["the run has ended".to_owned()]));
        }
        let kind = EventKind::Migrated(Box::new(Migrated {
            from: self.core.hash.to_string(),
            to: machine.hash().0,
            map,
            by,
        }));
        // A function of the new version may still fail on the values of this very run.
        let event = Event { n: self.last().next(), time: self.time(), digest: self.digest(), kind };
        match self.clone().try_migrate(&event, machine) {
            Ok(_) => Ok(event.kind),
            Err(Refused::Misfits(ops)) => Err(Compatibility::Drain(ops)),
            Err(Refused::Needs(needs)) => Err(Compatibility::NeedsMigrate(needs)),
            Err(Refused::Diverged(diverged)) => Err(Compatibility::NeedsMigrate(vec![diverged.to_string()])),
        }
    }

    /// Applies a `Migrated` event: what came before is explained by the old machine, this event and what follows by the new one.
    ///
    /// # Errors
    /// [`Diverged`] if the event cannot follow or the machine is not the one that it names; nothing is changed.
    pub fn apply_migrated(&mut self, event: &Event, machine: &Arc<Machine>) -> Result<Effects, Diverged> {
        let diverged =
            |expected: &str, found: String| Diverged { n: event.n, expected: expected.to_owned(), found };
        self.try_migrate(event, machine).map_err(|refused| match refused {
            Refused::Diverged(diverged) => diverged,
            Refused::Needs(needs) => diverged("a configuration that fits the new machine", needs.join("; ")),
            Refused::Misfits(ops) => {
                let ops: Vec<_> = ops.iter().map(OpId::to_string).collect();
                diverged("operations that fit the new machine", ops.join(", "))
            }
        })
    }

    fn try_migrate(&mut self, event: &Event, machine: &Arc<Machine>) -> Result<Effects, Refused> {
        self.follows(event).map_err(Refused::Diverged)?;
        let diverged =
            |expected: String, found: String| Refused::Diverged(Diverged { n: event.n, expected, found });
        let EventKind::Migrated(migrated) = &event.kind else {
            return Err(diverged("migrated".to_owned(), event.kind.name().to_owned()));
        };
        if migrated.from != *self.core.hash {
            return Err(diverged(
                format!("machine {}", self.core.hash),
                format!("machine {}", migrated.from),
            ));
        }
        let found = machine.hash().0;
        if migrated.to != found {
            return Err(diverged(format!("machine {}", migrated.to), format!("machine {found}")));
        }
        let program = Program::new(Arc::clone(machine));
        let plan = Plan::new(self, &program).map_err(Refused::Needs)?;
        let misfits = plan.misfits();
        let left: Vec<_> =
            misfits.iter().copied().filter(|op| !migrated.map.iter().any(|(known, _)| known == op)).collect();
        if !left.is_empty() {
            return Err(Refused::Misfits(left));
        }
        let hash = Arc::from(migrated.to.as_str());
        self.carry(event, program, hash, &plan, &migrated.map)
            .map_err(|cause| Refused::Needs(vec![cause.to_string()]))
    }
}

/// Why a run cannot go on with another machine.
enum Refused {
    Diverged(Diverged),
    Needs(Vec<String>),
    Misfits(Vec<OpId>),
}
