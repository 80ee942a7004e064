//! Cuts one flow with all that it reaches out of the definitions and numbers it anew.
//!
//! Leaves making the definitions to the checker. Invariant: the numbers depend only on what the root flow uses and
//! in which order, so a declaration that is moved, or that the flow does not use, does not change the machine.

use std::collections::BTreeMap;
use std::ops::Range;

use super::refs::{self, Ref};
use super::{
    Activity, ActivityIx, Catalogue, CatalogueIx, FORMAT, Flow, FlowIx, Function, FunctionIx, Machine, Retry,
    RetryIx, TypeDef, TypeIx,
};

/// All definitions of a program; every index in them points into these tables.
#[derive(Clone, Debug, Default)]
pub(crate) struct Program {
    pub(crate) flows: Vec<Flow>,
    pub(crate) activities: Vec<Activity>,
    pub(crate) functions: Vec<Function>,
    pub(crate) retries: Vec<Retry>,
    pub(crate) types: Vec<TypeDef>,
    pub(crate) catalogues: Vec<Catalogue>,
}

/// A definition that is numbered but not yet walked, by its old number.
#[derive(Clone, Copy)]
enum Pending {
    Flow(u32),
    Activity(u32),
    Function(u32),
    Retry(u32),
    Type(u32),
    Catalogue(u32),
}

/// The new numbers of one table: old number to new one, given in the order of first use.
#[derive(Default)]
struct Numbers(BTreeMap<u32, u32>);

impl Numbers {
    /// Returns the new number of `old`, and whether it was given just now.
    fn take(&mut self, old: u32) -> (u32, bool) {
        let next = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        let new = *self.0.entry(old).or_insert(next);
        (new, new == next)
    }
}

#[derive(Default)]
struct Linker {
    flows: Numbers,
    activities: Numbers,
    functions: Numbers,
    retries: Numbers,
    types: Numbers,
    catalogues: Numbers,
    pending: Vec<Pending>,
}

impl Linker {
    fn rename(&mut self, named: Ref<'_>) {
        let (number, numbers, pending): (&mut u32, &mut Numbers, fn(u32) -> Pending) = match named {
            Ref::Flow(FlowIx(ix)) => (ix, &mut self.flows, Pending::Flow),
            Ref::Activity(ActivityIx(ix)) => (ix, &mut self.activities, Pending::Activity),
            Ref::Function(FunctionIx(ix)) => (ix, &mut self.functions, Pending::Function),
            Ref::Retry(RetryIx(ix)) => (ix, &mut self.retries, Pending::Retry),
            Ref::Type(TypeIx(ix)) => (ix, &mut self.types, Pending::Type),
            Ref::Catalogue(CatalogueIx(ix)) => (ix, &mut self.catalogues, Pending::Catalogue),
            Ref::State(_) | Ref::Message(_) | Ref::Data(_) | Ref::Slot(_) | Ref::Arg(_) | Ref::Param(_) => {
                return;
            }
        };
        let old = *number;
        let (new, first) = numbers.take(old);
        *number = new;
        if first {
            self.pending.push(pending(old));
        }
    }
}

/// Returns the machine of the flow at `root`, and which flow of the program each of its flows is.
pub(crate) fn link(program: &Program, edition: u32, root: FlowIx) -> (Machine, Vec<FlowIx>) {
    link_with(program, edition, root, 0..0)
}

/// Like [`link`], with some functions, which come before those that the flow uses.
pub(crate) fn link_with(
    program: &Program,
    edition: u32,
    root: FlowIx,
    functions: Range<u32>,
) -> (Machine, Vec<FlowIx>) {
    let mut machine = Machine {
        format: FORMAT,
        edition,
        root: FlowIx(0),
        flows: Vec::new(),
        activities: Vec::new(),
        functions: Vec::new(),
        retries: Vec::new(),
        types: Vec::new(),
        catalogues: Vec::new(),
    };
    let mut linker = Linker::default();
    let mut first = root;
    linker.rename(Ref::Flow(&mut first));
    for at in functions {
        linker.rename(Ref::Function(&mut FunctionIx(at)));
    }
    // First in, first out: each table fills in the order of its numbers.
    let mut next = 0;
    while let Some(pending) = linker.pending.get(next).copied() {
        next += 1;
        add(program, &mut machine, &mut linker, pending);
    }
    let flows = linker.pending.iter().filter_map(|pending| match pending {
        Pending::Flow(old) => Some(FlowIx(*old)),
        Pending::Activity(_)
        | Pending::Function(_)
        | Pending::Retry(_)
        | Pending::Type(_)
        | Pending::Catalogue(_) => None,
    });
    let flows = flows.collect();
    (machine, flows)
}

impl Machine {
    /// Returns the machine of one of its flows: the same as if that flow had been the root from the beginning.
    ///
    /// A spawned run has this machine.
    #[must_use]
    pub fn rooted_at(&self, flow: FlowIx) -> Machine {
        let Machine { format: _, edition, root: _, flows, activities, functions, retries, types, catalogues } =
            self.clone();
        let program = Program { flows, activities, functions, retries, types, catalogues };
        link(&program, edition, flow).0
    }
}

fn add(program: &Program, machine: &mut Machine, linker: &mut Linker, pending: Pending) {
    let mut visit = |named: Ref<'_>| linker.rename(named);
    match pending {
        Pending::Flow(old) => {
            let mut flow = program.flows[old as usize].clone();
            refs::flow(&mut flow, &mut visit);
            flow.states.iter_mut().for_each(|state| refs::state(state, &mut visit));
            flow.migrations.iter_mut().for_each(|one| refs::migration(one, &mut visit));
            machine.flows.push(flow);
        }
        Pending::Activity(old) => {
            let mut activity = program.activities[old as usize].clone();
            refs::activity(&mut activity, &mut visit);
            machine.activities.push(activity);
        }
        Pending::Function(old) => {
            let mut function = program.functions[old as usize].clone();
            refs::function(&mut function, &mut visit);
            machine.functions.push(function);
        }
        Pending::Retry(old) => machine.retries.push(program.retries[old as usize].clone()),
        Pending::Type(old) => {
            let mut def = program.types[old as usize].clone();
            refs::type_def(&mut def, &mut visit);
            machine.types.push(def);
        }
        Pending::Catalogue(old) => machine.catalogues.push(program.catalogues[old as usize].clone()),
    }
}
