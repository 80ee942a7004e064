//! Whether parts of two machines mean the same, though their tables are numbered differently.
//!
//! Invariant: what fits has the same names, and types with the same structure.

use std::collections::BTreeMap;

use outlast_dsl::machine::refs::{self, Ref};
use outlast_dsl::machine::{
    Activity, ActivityIx, CatalogueIx, DataIx, Effect, EffectClass, FieldDef, Flow, FlowIx, FunctionIx,
    Machine, MessageIx, Param, RetryIx, StateIx, Type, TypeIx, TypeKind,
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

    /// Says whether two effects are the same but for the numbers of what they name.
    pub(super) fn same_effect(&self, flows: (&Flow, &Flow), old: &Effect, new: &Effect) -> bool {
        let mut names = Names::default();
        let mut a = old.clone();
        refs::effect(&mut a, &mut |named| names.renumber(self.old, flows.0, 0, named));
        let mut b = new.clone();
        refs::effect(&mut b, &mut |named| names.renumber(self.new, flows.1, 1, named));
        let types = names.types.values().all(|pair| match pair {
            [Some(old), Some(new)] => self.named(*old, *new, &mut Vec::new()),
            [None, _] | [_, None] => true,
        });
        a == b && types
    }
}

/// Numbers for names, the same for both machines.
#[derive(Default)]
struct Names {
    known: BTreeMap<String, u32>,
    types: BTreeMap<String, [Option<TypeIx>; 2]>,
}

impl Names {
    fn number(&mut self, name: String) -> u32 {
        let next = u32::try_from(self.known.len()).unwrap_or(u32::MAX);
        *self.known.entry(name).or_insert(next)
    }

    fn renumber(&mut self, machine: &Machine, flow: &Flow, side: usize, named: Ref<'_>) {
        match named {
            Ref::Flow(FlowIx(ix)) => *ix = self.number(format!("flow {}", machine.flows[*ix as usize].name)),
            Ref::Activity(ActivityIx(ix)) => {
                *ix = self.number(format!("activity {}", machine.activities[*ix as usize].name));
            }
            Ref::Function(FunctionIx(ix)) => {
                *ix = self.number(format!("fn {}", machine.functions[*ix as usize].name));
            }
            Ref::Retry(RetryIx(ix)) => {
                *ix = self.number(format!("retry {}", machine.retries[*ix as usize].name));
            }
            Ref::Type(ty) => {
                let name = machine.type_def(*ty).name.clone();
                self.types.entry(name.clone()).or_default()[side] = Some(*ty);
                ty.0 = self.number(format!("type {name}"));
            }
            Ref::Catalogue(CatalogueIx(ix)) => {
                *ix = self.number(format!("catalogue {}", machine.catalogues[*ix as usize].name));
            }
            Ref::State(StateIx(ix)) => *ix = self.number(format!("state {}", flow.states[*ix as usize].name)),
            Ref::Message(MessageIx(ix)) => {
                *ix = self.number(format!("message {}", flow.messages[*ix as usize].name));
            }
            Ref::Data(DataIx(ix)) => *ix = self.number(format!("data {}", flow.data[*ix as usize].name)),
            Ref::Slot(_) | Ref::Arg(_) | Ref::Param(_) => {}
        }
    }
}

fn position<'a>(mut names: impl Iterator<Item = &'a String>, name: &str) -> Option<u32> {
    names.position(|known| known == name).and_then(|at| u32::try_from(at).ok())
}
