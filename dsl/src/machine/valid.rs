//! Whether every index of a machine points into the table that it names.
//!
//! Leaves types and meaning to the checker that made the machine. Invariant: a machine that passes cannot make its reader look
//! outside a table, a frame or a parameter list.

use super::refs::{self, Ref};
use super::{Flow, Machine};

/// The sizes of what may be named at one place.
struct Sizes {
    states: usize,
    messages: usize,
    data: usize,
    params: usize,
    args: usize,
    slots: usize,
}

impl Machine {
    /// Returns the first index that points nowhere, in words.
    #[must_use]
    pub fn first_bad_index(&self) -> Option<String> {
        let mut bad = None;
        if self.root.at() >= self.flows.len() {
            return Some("the root flow".to_owned());
        }
        for flow in &self.flows {
            self.look_at_flow(flow, &mut bad);
        }
        let nothing = Sizes { states: 0, messages: 0, data: 0, params: 0, args: 0, slots: 0 };
        for activity in &self.activities {
            let place = format!("activity {}", activity.name);
            refs::activity(&mut activity.clone(), &mut |named| self.look(&nothing, &place, named, &mut bad));
        }
        for function in &self.functions {
            let place = format!("function {}", function.name);
            let sizes = Sizes { slots: function.frame as usize, ..nothing };
            refs::function(&mut function.clone(), &mut |named| self.look(&sizes, &place, named, &mut bad));
        }
        for def in &self.types {
            let place = format!("type {}", def.name);
            refs::type_def(&mut def.clone(), &mut |named| self.look(&nothing, &place, named, &mut bad));
        }
        bad
    }

    fn look_at_flow(&self, flow: &Flow, bad: &mut Option<String>) {
        let mut own = flow.clone();
        let place = format!("flow {}", flow.name);
        let mut sizes = Sizes {
            states: flow.states.len(),
            messages: flow.messages.len(),
            data: flow.data.len(),
            params: flow.params.len(),
            args: 0,
            slots: flow.frame as usize,
        };
        refs::flow(&mut own, &mut |named| self.look(&sizes, &place, named, bad));
        for state in &mut own.states {
            let place = format!("state {}.{}", flow.name, state.name);
            sizes.args = state.params.len();
            sizes.slots = state.frame as usize;
            refs::state(state, &mut |named| self.look(&sizes, &place, named, bad));
        }
        for migration in &mut own.migrations {
            let place = format!("migration {}.{}", flow.name, migration.from);
            sizes.args = 0;
            sizes.slots = migration.frame as usize;
            refs::migration(migration, &mut |named| self.look(&sizes, &place, named, bad));
        }
    }

    fn look(&self, sizes: &Sizes, place: &str, named: Ref<'_>, bad: &mut Option<String>) {
        let (what, index, size) = match named {
            Ref::Flow(ix) => ("flow", ix.at(), self.flows.len()),
            Ref::Activity(ix) => ("activity", ix.at(), self.activities.len()),
            Ref::Function(ix) => ("function", ix.at(), self.functions.len()),
            Ref::Retry(ix) => ("retry", ix.at(), self.retries.len()),
            Ref::Type(ix) => ("type", ix.at(), self.types.len()),
            Ref::Catalogue(ix) => ("catalogue", ix.at(), self.catalogues.len()),
            Ref::State(ix) => ("state", ix.at(), sizes.states),
            Ref::Message(ix) => ("message", ix.at(), sizes.messages),
            Ref::Data(ix) => ("data", ix.at(), sizes.data),
            Ref::Slot(slot) => ("slot", slot.at(), sizes.slots),
            Ref::Arg(at) => ("parameter of the state", at as usize, sizes.args),
            Ref::Param(at) => ("parameter of the flow", at as usize, sizes.params),
        };
        if index >= size && bad.is_none() {
            *bad = Some(format!("{what} {index} of {size} in {place}"));
        }
    }
}
