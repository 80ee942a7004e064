//! Whether parts of two machines mean the same, though their tables are numbered differently.
//!
//! Invariant: what fits has the same names, and types with the same structure.

use std::collections::BTreeMap;

use outlast_dsl::machine::refs::{self, Ref};
use outlast_dsl::machine::{
    Activity, ActivityIx, CatalogueIx, DataIx, Each, EachBody, Effect, EffectClass, Expr, FieldDef, Flow,
    FlowIx, FunctionIx, Literal, Machine, MessageIx, Param, RetryIx, Slot, StateDef, StateIx, Type, TypeIx,
    TypeKind, Wait,
};

/// Two machines, the old one and the new one.
#[derive(Clone, Copy)]
pub(super) struct Pair<'a> {
    pub(super) old: &'a Machine,
    pub(super) new: &'a Machine,
}

impl Pair<'_> {
    /// Finds the flow of the new machine that has the name of an old one.
    pub(super) fn flow(&self, old: FlowIx) -> Option<FlowIx> {
        let name = &self.old.flows[old.at()].name;
        position(self.new.flows.iter().map(|flow| &flow.name), name).map(FlowIx)
    }

    /// Finds the activity of the new machine that is the same for an open operation.
    pub(super) fn activity(&self, old: ActivityIx) -> Option<ActivityIx> {
        let def = &self.old.activities[old.at()];
        let new = position(self.new.activities.iter().map(|activity| &activity.name), &def.name)?;
        self.activity_fits(def, &self.new.activities[new as usize]).then_some(ActivityIx(new))
    }

    fn activity_fits(&self, old: &Activity, new: &Activity) -> bool {
        let class = match (old.effect, new.effect) {
            (EffectClass::Pure, EffectClass::Pure)
            | (EffectClass::Idempotent, EffectClass::Idempotent)
            | (EffectClass::Once(_), EffectClass::Once(_))
            | (EffectClass::From(..), EffectClass::From(..)) => true,
            (
                EffectClass::Pure | EffectClass::Idempotent | EffectClass::Once(_) | EffectClass::From(..),
                _,
            ) => false,
        };
        class
            && self.same_fields(&old.params, &new.params)
            && self.same_type(&old.result, &new.result)
            && old.undo.is_some() == new.undo.is_some()
    }

    /// Says whether fields have the same names and types in the same order.
    pub(super) fn same_fields(&self, old: &[FieldDef], new: &[FieldDef]) -> bool {
        self.fields(old, new, &mut Vec::new())
    }

    /// Says whether two types have the same values.
    pub(super) fn same_type(&self, old: &Type, new: &Type) -> bool {
        self.types(old, new, &mut Vec::new())
    }

    fn fields(&self, old: &[FieldDef], new: &[FieldDef], seen: &mut Vec<(TypeIx, TypeIx)>) -> bool {
        old.len() == new.len()
            && old.iter().zip(new).all(|(a, b)| a.name == b.name && self.types(&a.ty, &b.ty, seen))
    }

    fn types(&self, old: &Type, new: &Type, seen: &mut Vec<(TypeIx, TypeIx)>) -> bool {
        match (old, new) {
            (Type::List(a), Type::List(b))
            | (Type::Map(a), Type::Map(b))
            | (Type::Option(a), Type::Option(b))
            | (Type::Approved(a), Type::Approved(b))
            | (Type::Slot(a), Type::Slot(b))
            | (Type::Verdict(a), Type::Verdict(b))
            | (Type::Ended(a), Type::Ended(b))
            | (Type::Doubt(a), Type::Doubt(b)) => self.types(a, b, seen),
            (Type::Named(a), Type::Named(b)) => self.named(*a, *b, seen),
            (Type::Handle(a), Type::Handle(b)) => self.flow(*a) == Some(*b),
            (a, b) => a == b && !matches!(a, Type::Named(_) | Type::Handle(_)),
        }
    }

    fn named(&self, old: TypeIx, new: TypeIx, seen: &mut Vec<(TypeIx, TypeIx)>) -> bool {
        if seen.contains(&(old, new)) {
            return true;
        }
        seen.push((old, new));
        match (&self.old.type_def(old).kind, &self.new.type_def(new).kind) {
            (TypeKind::Record(a), TypeKind::Record(b)) => self.fields(a, b, seen),
            (TypeKind::Error(a), TypeKind::Error(b)) => {
                self.old.type_def(old).name == self.new.type_def(new).name && self.fields(a, b, seen)
            }
            // A new variant does no harm to the values that are there.
            (TypeKind::Union(a), TypeKind::Union(b)) => a.iter().all(|variant| {
                b.iter().any(|other| {
                    variant.name == other.name && self.fields(&variant.fields, &other.fields, seen)
                })
            }),
            (TypeKind::Record(_) | TypeKind::Error(_) | TypeKind::Union(_), _) => false,
        }
    }

    /// Finds a parameter by name and type.
    pub(super) fn param(&self, old: &[Param], new: &Param) -> Option<usize> {
        old.iter().position(|param| param.name == new.name && self.same_type(&param.ty, &new.ty))
    }

    /// Says whether what a group takes along means the same: its items, what a member yields, how they are joined. What is asked when
    /// a member starts, and how many may be open, may change.
    pub(super) fn same_group(&self, flows: (&Flow, &Flow), states: (&StateDef, &StateDef)) -> bool {
        let mut shared = Shared::default();
        let old = meaning(Side { machine: self.old, flow: flows.0, state: states.0, at: 0 }, &mut shared);
        let new = meaning(Side { machine: self.new, flow: flows.1, state: states.1, at: 1 }, &mut shared);
        let same = shared.types.values().all(|pair| match pair {
            [Some(old), Some(new)] => self.named(*old, *new, &mut Vec::new()),
            [None, _] | [_, None] => true,
        });
        old == new && same
    }
}

/// A state of one of the machines.
#[derive(Clone, Copy)]
struct Side<'a> {
    machine: &'a Machine,
    flow: &'a Flow,
    state: &'a StateDef,
    at: usize,
}

/// Returns what the group of a state takes along, its names numbered, and the parameters that it reads.
fn meaning(side: Side<'_>, shared: &mut Shared) -> (Effect, Vec<String>) {
    let mut effect = side.state.effect.clone();
    carried(&mut effect);
    let mut names = Names { side, shared, slots: BTreeMap::new(), reads: Vec::new() };
    refs::effect(&mut effect, &mut |named| names.renumber(named));
    (effect, names.reads)
}

/// Leaves of a group what it takes along; nothing else need be the same.
fn carried(effect: &mut Effect) {
    match effect {
        Effect::Each(each) => carried_each(each),
        Effect::Parallel(parallel) => {
            parallel.within = None;
            parallel.regions.iter_mut().for_each(|region| carried_body(&mut region.body));
        }
        Effect::Wait
        | Effect::Do(..)
        | Effect::Run(..)
        | Effect::Await(_)
        | Effect::Ask(_)
        | Effect::Spawn(_)
        | Effect::Choose(_)
        | Effect::Match(..) => {}
    }
}

fn carried_each(each: &mut Each) {
    each.at_most = Expr::Lit(Literal::Nothing);
    (each.index, each.until, each.draining, each.within) = (None, None, false, None);
    carried_body(&mut each.body);
}

fn carried_body(body: &mut EachBody) {
    match body {
        EachBody::Do(_, args, _) => args.clear(),
        EachBody::Run(_, args, wait, _) => {
            args.clear();
            *wait = None;
        }
        EachBody::Ask(ask) => {
            (ask.text, ask.show, ask.wait) = (Expr::Lit(Literal::Nothing), None, Wait::Forever);
            (ask.editable, ask.to) = (false, Vec::new());
        }
        EachBody::Await(wait) => wait.wait = Wait::Forever,
        EachBody::Each(each) => carried_each(each),
    }
}

/// Numbers for names, the same for both machines.
#[derive(Default)]
struct Shared {
    numbers: BTreeMap<String, u32>,
    types: BTreeMap<String, [Option<TypeIx>; 2]>,
}

impl Shared {
    fn number(&mut self, name: String) -> u32 {
        let next = u32::try_from(self.numbers.len()).unwrap_or(u32::MAX);
        *self.numbers.entry(name).or_insert(next)
    }
}

/// The names of one side; its variables are numbered as they come.
struct Names<'a, 's> {
    side: Side<'a>,
    shared: &'s mut Shared,
    slots: BTreeMap<u32, u32>,
    reads: Vec<String>,
}

impl Names<'_, '_> {
    fn renumber(&mut self, named: Ref<'_>) {
        let Side { machine, flow, state, at } = self.side;
        let mut number = |kind: &str, name: &str| self.shared.number(format!("{kind} {name}"));
        match named {
            Ref::Flow(FlowIx(ix)) => *ix = number("flow", &machine.flows[*ix as usize].name),
            Ref::Activity(ActivityIx(ix)) => {
                *ix = number("activity", &machine.activities[*ix as usize].name);
            }
            Ref::Function(FunctionIx(ix)) => *ix = number("fn", &machine.functions[*ix as usize].name),
            Ref::Retry(RetryIx(ix)) => *ix = number("retry", &machine.retries[*ix as usize].name),
            Ref::Type(ty) => {
                let name = machine.type_def(*ty).name.clone();
                self.shared.types.entry(name.clone()).or_default()[at] = Some(*ty);
                ty.0 = self.shared.number(format!("type {name}"));
            }
            Ref::Catalogue(CatalogueIx(ix)) => {
                *ix = number("catalogue", &machine.catalogues[*ix as usize].name);
            }
            Ref::State(StateIx(ix)) => *ix = number("state", &flow.states[*ix as usize].name),
            Ref::Message(MessageIx(ix)) => *ix = number("message", &flow.messages[*ix as usize].name),
            Ref::Data(DataIx(ix)) => *ix = number("data", &flow.data[*ix as usize].name),
            Ref::Slot(Slot(ix)) => {
                let next = u32::try_from(self.slots.len()).unwrap_or(u32::MAX);
                *ix = *self.slots.entry(*ix).or_insert(next);
            }
            Ref::Arg(ix) => self.reads.extend(state.params.get(ix as usize).map(|param| param.name.clone())),
            Ref::Param(ix) => self.reads.extend(flow.params.get(ix as usize).map(|param| param.name.clone())),
        }
    }
}

fn position<'a>(mut names: impl Iterator<Item = &'a String>, name: &str) -> Option<u32> {
    names.position(|known| known == name).and_then(|at| u32::try_from(at).ok())
}
