//! What is declared: the names of all files and of the standard library, with their signatures.
//!
//! Leaves bodies to `lower`. Invariant: an index given out here is the index of the definition in the program's tables.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use super::notes::Notes;
use super::tool_types::ToolType;
use super::ty::Ty;
use crate::diag::{FileId, TextSpan, closest};
use crate::limits::SUGGESTIONS_MAX;
use crate::machine::{
    ActivityIx, CatalogueIx, FieldDef, FlowIx, FunctionIx, RetryIx, TypeDef, TypeIx, TypeKind, VariantDef,
};
use crate::syntax::ast;

/// A place in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Spot {
    pub(crate) file: FileId,
    pub(crate) span: TextSpan,
}

/// A field of a record, variant or message, or a parameter.
#[derive(Clone, Debug)]
pub(crate) struct FieldSig {
    pub(crate) name: String,
    pub(crate) ty: Ty,
    /// The text of its default, read anew wherever it is filled in.
    pub(crate) default: Option<(FileId, ast::Expr)>,
    pub(crate) spot: Spot,
}

/// One variant of a union, the fields of `with` first.
#[derive(Clone, Debug)]
pub(crate) struct VariantSig {
    pub(crate) name: String,
    pub(crate) fields: Vec<FieldSig>,
}

/// A variant as a pattern sees it: its tag, and its fields with their types.
pub(crate) type VariantView = (String, Vec<(String, Ty)>);

/// What a named type is.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    Record(Vec<FieldSig>),
    Union(Vec<VariantSig>),
    Error(Vec<FieldSig>),
}

/// A record, union, error or the result of a flow.
#[derive(Clone, Debug)]
pub(crate) struct TypeSig {
    pub(crate) name: String,
    pub(crate) shape: Shape,
    pub(crate) spot: Spot,
}

/// An activity.
#[derive(Clone, Debug)]
pub(crate) struct ActivitySig {
    pub(crate) name: String,
    pub(crate) params: Vec<FieldSig>,
    pub(crate) result: Ty,
    pub(crate) raises: Vec<TypeIx>,
    /// Whether nobody may know if it happened: `once` and `from`.
    pub(crate) doubtful: bool,
    /// Whether a doubt waits for a person.
    pub(crate) unknown_holds: bool,
    /// Whether it says what it costs.
    pub(crate) costly: bool,
}

/// A function.
#[derive(Clone, Debug)]
pub(crate) struct FunctionSig {
    pub(crate) params: Vec<FieldSig>,
    pub(crate) result: Ty,
    pub(crate) spot: Spot,
}

/// A flow.
#[derive(Clone, Debug)]
pub(crate) struct FlowSig {
    pub(crate) name: String,
    pub(crate) params: Vec<FieldSig>,
    pub(crate) result: Ty,
    pub(crate) raises: Vec<TypeIx>,
    pub(crate) emits: Option<Ty>,
    /// Whether it undoes what it did when it is left in another way than by `end`.
    pub(crate) saga: bool,
    pub(crate) spot: Spot,
}

/// What a name with a capital stands for among types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UpperName {
    /// A record, union or error.
    Type(TypeIx),
    /// A flow; as a type it is its result.
    Flow(FlowIx),
}

/// What a name in lower case stands for among declarations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LowerName {
    Activity(ActivityIx),
    Function(FunctionIx),
    Catalogue(CatalogueIx),
}

/// Whose names are in sight: those of one file, imported ones among them, and beneath them those of the prelude, which sees only
/// itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Layer {
    Library,
    File(FileId),
}

/// All declarations.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    pub(crate) types: Vec<TypeSig>,
    pub(crate) activities: Vec<ActivitySig>,
    pub(crate) functions: Vec<FunctionSig>,
    pub(crate) flows: Vec<FlowSig>,
    pub(crate) upper: BTreeMap<(Layer, String), (UpperName, Spot)>,
    pub(crate) lower: BTreeMap<(Layer, String), (LowerName, Spot)>,
    pub(crate) retries: BTreeMap<(Layer, String), (RetryIx, Spot)>,
    /// The types of catalogues, by the name after the dot.
    pub(crate) tool_types: BTreeMap<(CatalogueIx, String), ToolType>,
    /// The texts that a field of a catalogue's type may hold, where they are counted.
    pub(crate) literals: BTreeMap<(TypeIx, String), Vec<String>>,
    /// The number of the first file of the prelude.
    pub(crate) library_from: u32,
    /// What is noted for editors.
    pub(crate) notes: Notes,
    /// How often a near name was looked for.
    pub(crate) suggestions: Cell<u32>,
}

impl Tables {
    pub(crate) fn upper(&self, layer: Layer, name: &str) -> Option<UpperName> {
        let own = self.upper.get(&(layer, name.to_owned()));
        own.or_else(|| self.upper.get(&(Layer::Library, name.to_owned()))).map(|(found, _)| *found)
    }

    pub(crate) fn lower(&self, layer: Layer, name: &str) -> Option<LowerName> {
        let own = self.lower.get(&(layer, name.to_owned()));
        own.or_else(|| self.lower.get(&(Layer::Library, name.to_owned()))).map(|(found, _)| *found)
    }

    pub(crate) fn error(&self, layer: Layer, name: &str) -> Option<TypeIx> {
        match self.upper(layer, name)? {
            UpperName::Type(ix) => matches!(self.types[ix.at()].shape, Shape::Error(_)).then_some(ix),
            UpperName::Flow(_) => None,
        }
    }

    pub(crate) fn is_error(&self, ix: TypeIx) -> bool {
        matches!(self.types[ix.at()].shape, Shape::Error(_))
    }

    pub(crate) fn retry(&self, layer: Layer, name: &str) -> Option<RetryIx> {
        self.retries.get(&(layer, name.to_owned())).map(|(found, _)| *found)
    }

    /// The nearest name in sight with a capital that `wanted` accepts.
    pub(crate) fn near_upper(
        &self,
        layer: Layer,
        name: &str,
        wanted: impl Fn(UpperName) -> bool,
    ) -> Option<&str> {
        self.closest(
            name,
            in_sight(&self.upper, layer).filter(|(_, found)| wanted(*found)).map(|(name, _)| name),
        )
    }

    /// The nearest name in sight in lower case that `wanted` accepts.
    pub(crate) fn near_lower(
        &self,
        layer: Layer,
        name: &str,
        wanted: impl Fn(LowerName) -> bool,
    ) -> Option<&str> {
        self.closest(
            name,
            in_sight(&self.lower, layer).filter(|(_, found)| wanted(*found)).map(|(name, _)| name),
        )
    }

    /// The nearest retry policy in sight.
    pub(crate) fn near_retry(&self, layer: Layer, name: &str) -> Option<&str> {
        self.closest(name, in_sight(&self.retries, layer).map(|(name, _)| name))
    }

    /// The types in sight: those with a name, and what flows in sight give.
    fn types_in_sight(&self, layer: Layer) -> BTreeSet<TypeIx> {
        let own_result = |ix: FlowIx| match self.flows[ix.at()].result {
            // A result that is spelt out after the arrow is declared where the flow is.
            Ty::Named(result) if self.types[result.at()].spot == self.flows[ix.at()].spot => Some(result),
            _ => None,
        };
        in_sight(&self.upper, layer)
            .filter_map(|(_, found)| match found {
                UpperName::Type(ix) => Some(ix),
                UpperName::Flow(ix) => own_result(ix),
            })
            .collect()
    }

    /// The unions in sight that have a variant of this name, with its position.
    pub(crate) fn unions_with(&self, layer: Layer, variant: &str) -> Vec<(TypeIx, usize)> {
        let mut found = Vec::new();
        for ix in self.types_in_sight(layer) {
            let Shape::Union(variants) = &self.types[ix.at()].shape else { continue };
            found.extend(variants.iter().position(|one| one.name == variant).map(|at| (ix, at)));
        }
        found
    }

    /// The nearest name that builds a value.
    pub(crate) fn near_constructor(&self, layer: Layer, name: &str) -> Option<&str> {
        let mut known = Vec::new();
        if self.suggestions.get() >= SUGGESTIONS_MAX {
            return None;
        }
        for ix in self.types_in_sight(layer) {
            let def = &self.types[ix.at()];
            match &def.shape {
                Shape::Record(_) | Shape::Error(_) => known.push(def.name.as_str()),
                Shape::Union(variants) => known.extend(variants.iter().map(|one| one.name.as_str())),
            }
        }
        self.closest(name, known)
    }

    /// The nearest of some names, unless enough was suggested already.
    pub(crate) fn closest<'c>(
        &self,
        name: &str,
        candidates: impl IntoIterator<Item = &'c str>,
    ) -> Option<&'c str> {
        let made = self.suggestions.get();
        if made >= SUGGESTIONS_MAX {
            return None;
        }
        self.suggestions.set(made + 1);
        closest(name, candidates)
    }

    /// Which layer a file belongs to: the prelude's files are numbered after all others.
    pub(crate) fn layer_of(&self, file: FileId) -> Layer {
        if file.0 >= self.library_from { Layer::Library } else { Layer::File(file) }
    }

    /// A type of the standard library.
    pub(crate) fn library_type(&self, name: &str) -> Ty {
        match self.upper.get(&(Layer::Library, name.to_owned())) {
            Some((UpperName::Type(ix), _)) => Ty::Named(*ix),
            Some((UpperName::Flow(_), _)) | None => unreachable!("the standard library declares `{name}`"),
        }
    }

    /// The types as a machine stores them, without defaults: enough for schemas.
    pub(crate) fn stored_types(&self) -> Vec<TypeDef> {
        let fields = |all: &[FieldSig]| -> Vec<FieldDef> {
            all.iter()
                .map(|one| FieldDef { name: one.name.clone(), ty: one.ty.stored(), default: None })
                .collect()
        };
        let stored = |def: &TypeSig| {
            let kind = match &def.shape {
                Shape::Record(all) => TypeKind::Record(fields(all)),
                Shape::Error(all) => TypeKind::Error(fields(all)),
                Shape::Union(variants) => TypeKind::Union(
                    variants
                        .iter()
                        .map(|one| VariantDef { name: one.name.clone(), fields: fields(&one.fields) })
                        .collect(),
                ),
            };
            TypeDef { name: def.name.clone(), kind }
        };
        self.types.iter().map(stored).collect()
    }

    /// Whether a type holds a secret, by itself or in its fields.
    pub(crate) fn holds_secret(&self, ty: &Ty) -> bool {
        self.holds(ty, &|ty| *ty == Ty::Secret, &mut Vec::new())
    }

    fn holds(&self, ty: &Ty, wanted: &dyn Fn(&Ty) -> bool, seen: &mut Vec<TypeIx>) -> bool {
        if wanted(ty) {
            return true;
        }
        match ty {
            Ty::Named(ix) if seen.contains(ix) => false,
            Ty::Named(ix) => {
                seen.push(*ix);
                self.types[ix.at()].all_fields().any(|field| self.holds(&field.ty, wanted, seen))
            }
            Ty::List(of)
            | Ty::Map(of)
            | Ty::Option(of)
            | Ty::Approved(of)
            | Ty::Slot(of)
            | Ty::Verdict(of)
            | Ty::Ended(of) => self.holds(of, wanted, seen),
            Ty::Payload(fields) => fields.iter().any(|(_, ty)| self.holds(ty, wanted, seen)),
            Ty::Unknown
            | Ty::Nothing
            | Ty::Text
            | Ty::Int
            | Ty::Float
            | Ty::Decimal
            | Ty::Bool
            | Ty::Time
            | Ty::Duration
            | Ty::Bytes
            | Ty::Json
            | Ty::Secret
            | Ty::Problem
            | Ty::Doubt(_)
            | Ty::Handle(_) => false,
        }
    }

    /// Whether a value of this type means something only in the run where it came to be: an approval or a doubt, by itself or in
    /// its fields.
    pub(crate) fn is_bound_to_run(&self, ty: &Ty) -> bool {
        self.holds(ty, &|ty| matches!(ty, Ty::Approved(_) | Ty::Doubt(_)), &mut Vec::new())
    }

    /// The type as it is written.
    pub(crate) fn show(&self, ty: &Ty) -> String {
        let of = |word: &str, of: &Ty| format!("{word}<{}>", self.show(of));
        match ty {
            Ty::Unknown => "?".to_owned(),
            Ty::Problem => "Problem".to_owned(),
            Ty::List(item) => of("list", item),
            Ty::Map(item) => of("map", item),
            Ty::Option(item) => format!("{}?", self.show(item)),
            Ty::Named(ix) => self.types[ix.at()].name.clone(),
            Ty::Approved(item) => of("approved", item),
            Ty::Slot(item) => of("Slot", item),
            Ty::Verdict(item) => of("Verdict", item),
            Ty::Ended(item) => of("Ended", item),
            Ty::Doubt(item) => of("doubt", item),
            Ty::Handle(ix) => format!("handle<{}>", self.flows[ix.at()].name),
            Ty::Payload(fields) => {
                let fields: Vec<String> =
                    fields.iter().map(|(name, ty)| format!("{name}: {}", self.show(ty))).collect();
                format!("{{ {} }}", fields.join(", "))
            }
            Ty::Nothing
            | Ty::Text
            | Ty::Int
            | Ty::Float
            | Ty::Decimal
            | Ty::Bool
            | Ty::Time
            | Ty::Duration
            | Ty::Bytes
            | Ty::Json
            | Ty::Secret => ty.scalar_word().unwrap_or("?").to_owned(),
        }
    }

    /// The fields of a value of this type: name and type; of a union those that all variants share.
    pub(crate) fn fields(&self, ty: &Ty) -> Vec<(String, Ty)> {
        match ty {
            Ty::Named(ix) => self.types[ix.at()].shared_fields(),
            Ty::Payload(fields) => fields.as_ref().clone(),
            Ty::Problem => problem_fields(),
            Ty::Doubt(_) => owned(&[("text", Ty::Text), ("kind", Ty::Text), ("activity", Ty::Text)]),
            Ty::Approved(of) => {
                let mut all = owned(&[("value", (**of).clone()), ("by", Ty::list(Ty::Text))]);
                all.extend(self.fields(of));
                all
            }
            _ => Vec::new(),
        }
    }

    /// The variants of a value of this type: tag and fields.
    pub(crate) fn variants(&self, ty: &Ty) -> Option<Vec<VariantView>> {
        let plain = |name: &str, fields: &[(&str, &Ty)]| {
            let fields = fields.iter().map(|(name, ty)| ((*name).to_owned(), (*ty).clone()));
            (name.to_owned(), fields.collect())
        };
        match ty {
            Ty::Named(ix) => match &self.types[ix.at()].shape {
                Shape::Union(variants) => Some(
                    variants.iter().map(|one| (one.name.clone(), names_and_types(&one.fields))).collect(),
                ),
                Shape::Record(_) | Shape::Error(_) => None,
            },
            Ty::Slot(of) => Some(vec![
                plain("Done", &[("value", of)]),
                plain("Failed", &[("error", &Ty::Problem)]),
                plain("Cut", &[]),
                plain("NotStarted", &[]),
            ]),
            Ty::Ended(of) => Some(vec![
                plain("Done", &[("value", of)]),
                plain("Failed", &[("error", &Ty::Problem)]),
                plain("Cancelled", &[]),
            ]),
            Ty::Verdict(of) => Some(vec![
                plain("Happened", &[("result", of)]),
                plain("NotHappened", &[]),
                plain("CannotTell", &[]),
            ]),
            _ => None,
        }
    }
}

/// The names that a layer sees, with what they stand for.
fn in_sight<T: Copy>(
    names: &BTreeMap<(Layer, String), (T, Spot)>,
    layer: Layer,
) -> impl Iterator<Item = (&str, T)> {
    let seen = names.iter().filter(move |((of, _), _)| *of == layer || *of == Layer::Library);
    seen.map(|((_, name), (found, _))| (name.as_str(), *found))
}

/// The fields of `Problem`, in declared order.
pub(crate) fn problem_fields() -> Vec<(String, Ty)> {
    owned(&[
        ("text", Ty::Text),
        ("kind", Ty::Text),
        ("activity", Ty::option(Ty::Text)),
        ("retry_after", Ty::option(Ty::Duration)),
        ("attempts", Ty::Int),
    ])
}

fn owned(fields: &[(&str, Ty)]) -> Vec<(String, Ty)> {
    fields.iter().map(|(name, ty)| ((*name).to_owned(), ty.clone())).collect()
}

impl TypeSig {
    /// Every field of every variant.
    pub(crate) fn all_fields(&self) -> Box<dyn Iterator<Item = &FieldSig> + '_> {
        match &self.shape {
            Shape::Record(fields) | Shape::Error(fields) => Box::new(fields.iter()),
            Shape::Union(variants) => Box::new(variants.iter().flat_map(|variant| &variant.fields)),
        }
    }

    fn shared_fields(&self) -> Vec<(String, Ty)> {
        match &self.shape {
            Shape::Record(fields) | Shape::Error(fields) => names_and_types(fields),
            Shape::Union(variants) => {
                let Some((first, rest)) = variants.split_first() else { return Vec::new() };
                let shared = |field: &&FieldSig| {
                    rest.iter().all(|one| one.fields.iter().any(|f| f.name == field.name && f.ty == field.ty))
                };
                first
                    .fields
                    .iter()
                    .filter(shared)
                    .map(|field| (field.name.clone(), field.ty.clone()))
                    .collect()
            }
        }
    }
}

pub(crate) fn names_and_types(fields: &[FieldSig]) -> Vec<(String, Ty)> {
    fields.iter().map(|field| (field.name.clone(), field.ty.clone())).collect()
}
