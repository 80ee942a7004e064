//! Types as the checker sees them.
//!
//! Leaves the types that a machine stores to `machine::Type`. Invariant: [`Ty::Unknown`] fits everything, so that one mistake
//! is reported once.

use std::rc::Rc;

use crate::machine::{FlowIx, Type, TypeIx};

/// The type of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ty {
    /// Not known, because of a mistake that is already reported, or because nothing says it (`none`, `[]`).
    Unknown,
    Nothing,
    Text,
    Int,
    Float,
    Decimal,
    Bool,
    Time,
    Duration,
    Bytes,
    Json,
    Secret,
    Problem,
    List(Box<Ty>),
    Map(Box<Ty>),
    Option(Box<Ty>),
    Named(TypeIx),
    Approved(Box<Ty>),
    Slot(Box<Ty>),
    Verdict(Box<Ty>),
    Ended(Box<Ty>),
    Doubt(Box<Ty>),
    Handle(FlowIx),
    /// What an outcome brings along that has no name: the fields of a message, of a refusal, of an answer.
    Payload(Rc<Vec<(String, Ty)>>),
}

/// The scalar types by the word that names them.
const SCALARS: &[(&str, Ty)] = &[
    ("nothing", Ty::Nothing),
    ("text", Ty::Text),
    ("int", Ty::Int),
    ("float", Ty::Float),
    ("decimal", Ty::Decimal),
    ("bool", Ty::Bool),
    ("time", Ty::Time),
    ("duration", Ty::Duration),
    ("bytes", Ty::Bytes),
    ("json", Ty::Json),
    ("secret", Ty::Secret),
];

/// The words of types that take another type.
pub(crate) const GENERIC: &[&str] =
    &["list", "map", "approved", "doubt", "handle", "Slot", "Verdict", "Ended"];

/// What becomes of a value whose type is not quite the wanted one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    /// It fits as it is.
    AsIs,
    /// The approved value itself is wanted.
    Value,
}

impl Ty {
    pub(crate) fn scalar(word: &str) -> Option<Ty> {
        SCALARS.iter().find(|(name, _)| *name == word).map(|(_, ty)| ty.clone())
    }

    pub(crate) fn scalar_words() -> impl Iterator<Item = &'static str> {
        SCALARS.iter().map(|(name, _)| *name)
    }

    /// Returns the word of a type that takes no other and has no definition.
    pub(crate) fn scalar_word(&self) -> Option<&'static str> {
        SCALARS.iter().find(|(_, ty)| ty == self).map(|(name, _)| *name)
    }

    pub(crate) fn list(of: Ty) -> Ty {
        Ty::List(Box::new(of))
    }

    /// `T?`, which is flat: an option of an option is the option.
    pub(crate) fn option(of: Ty) -> Ty {
        match of {
            Ty::Option(_) => of,
            of => Ty::Option(Box::new(of)),
        }
    }

    pub(crate) fn payload(fields: &[(&str, Ty)]) -> Ty {
        Ty::Payload(Rc::new(fields.iter().map(|(name, ty)| ((*name).to_owned(), ty.clone())).collect()))
    }

    /// The type without a `?`.
    pub(crate) fn present(&self) -> &Ty {
        match self {
            Ty::Option(of) => of,
            of => of,
        }
    }

    /// The value behind `approved<…>` and `?`.
    pub(crate) fn bare(&self) -> &Ty {
        match self {
            Ty::Option(of) | Ty::Approved(of) => of.bare(),
            of => of,
        }
    }

    pub(crate) fn is_unknown(&self) -> bool {
        matches!(self, Ty::Unknown)
    }

    pub(crate) fn is_number(&self) -> bool {
        matches!(self, Ty::Int | Ty::Float | Ty::Decimal)
    }

    /// Whether values are ordered by `<`.
    pub(crate) fn is_ordered(&self) -> bool {
        matches!(self, Ty::Int | Ty::Float | Ty::Decimal | Ty::Text | Ty::Time | Ty::Duration | Ty::Unknown)
    }

    /// Whether a value can stand in a text.
    pub(crate) fn shows_as_text(&self) -> bool {
        match self {
            Ty::Unknown
            | Ty::Text
            | Ty::Int
            | Ty::Float
            | Ty::Decimal
            | Ty::Bool
            | Ty::Time
            | Ty::Duration
            | Ty::Json => true,
            Ty::Approved(of) => of.shows_as_text(),
            Ty::Nothing
            | Ty::Bytes
            | Ty::Secret
            | Ty::Problem
            | Ty::List(_)
            | Ty::Map(_)
            | Ty::Option(_)
            | Ty::Named(_)
            | Ty::Slot(_)
            | Ty::Verdict(_)
            | Ty::Ended(_)
            | Ty::Doubt(_)
            | Ty::Handle(_)
            | Ty::Payload(_) => false,
        }
    }

    /// Says how a value of this type becomes one of `wanted`, if it does.
    pub(crate) fn fits(&self, wanted: &Ty) -> Option<Fit> {
        if self.same(wanted) {
            return Some(Fit::AsIs);
        }
        match (self, wanted) {
            (Ty::Option(_), _) => None,
            (_, Ty::Option(wanted)) => self.fits(wanted),
            (Ty::Approved(of), wanted) if !matches!(wanted, Ty::Approved(_)) => {
                of.same(wanted).then_some(Fit::Value)
            }
            _ => None,
        }
    }

    /// Whether a value of this type is one of `wanted` as it stands: the same type, or wider only by `?`.
    pub(crate) fn same(&self, wanted: &Ty) -> bool {
        match (self, wanted) {
            (Ty::Unknown, _) | (_, Ty::Unknown) => true,
            (Ty::Option(a), Ty::Option(b)) => a.same(b),
            (a, Ty::Option(b)) => a.same(b),
            (Ty::List(a), Ty::List(b))
            | (Ty::Map(a), Ty::Map(b))
            | (Ty::Approved(a), Ty::Approved(b))
            | (Ty::Slot(a), Ty::Slot(b))
            | (Ty::Verdict(a), Ty::Verdict(b))
            | (Ty::Ended(a), Ty::Ended(b))
            | (Ty::Doubt(a), Ty::Doubt(b)) => a.same(b),
            (a, b) => a == b,
        }
    }

    /// The narrowest type that values of both types have.
    pub(crate) fn join(&self, other: &Ty) -> Option<Ty> {
        match (self, other) {
            (Ty::Unknown, other) => Some(other.clone()),
            (one, Ty::Unknown) => Some(one.clone()),
            (Ty::List(a), Ty::List(b)) => Some(Ty::list(a.join(b)?)),
            (Ty::Map(a), Ty::Map(b)) => Some(Ty::Map(Box::new(a.join(b)?))),
            (Ty::Slot(a), Ty::Slot(b)) => Some(Ty::Slot(Box::new(a.join(b)?))),
            (Ty::Option(a), b) | (b, Ty::Option(a)) => Some(Ty::option(a.join(b.present())?)),
            (Ty::Approved(a), Ty::Approved(b)) => Some(Ty::Approved(Box::new(a.join(b)?))),
            (Ty::Approved(a), b) | (b, Ty::Approved(a)) if a.same(b) => Some(b.clone()),
            (a, b) => (a == b).then(|| a.clone()),
        }
    }

    /// The type as a machine stores it. What nothing says becomes `json`; a payload has no type there.
    pub(crate) fn stored(&self) -> Type {
        match self {
            Ty::Unknown | Ty::Json | Ty::Payload(_) => Type::Json,
            Ty::Nothing => Type::Nothing,
            Ty::Text => Type::Text,
            Ty::Int => Type::Int,
            Ty::Float => Type::Float,
            Ty::Decimal => Type::Decimal,
            Ty::Bool => Type::Bool,
            Ty::Time => Type::Time,
            Ty::Duration => Type::Duration,
            Ty::Bytes => Type::Bytes,
            Ty::Secret => Type::Secret,
            Ty::Problem => Type::Problem,
            Ty::List(of) => Type::List(Box::new(of.stored())),
            Ty::Map(of) => Type::Map(Box::new(of.stored())),
            Ty::Option(of) => Type::Option(Box::new(of.stored())),
            Ty::Named(ix) => Type::Named(*ix),
            Ty::Approved(of) => Type::Approved(Box::new(of.stored())),
            Ty::Slot(of) => Type::Slot(Box::new(of.stored())),
            Ty::Verdict(of) => Type::Verdict(Box::new(of.stored())),
            Ty::Ended(of) => Type::Ended(Box::new(of.stored())),
            Ty::Doubt(of) => Type::Doubt(Box::new(of.stored())),
            Ty::Handle(ix) => Type::Handle(*ix),
        }
    }
}
