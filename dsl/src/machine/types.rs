//! The types of a machine: enough to read a value from JSON and to write its JSON Schema.

use serde::{Deserialize, Serialize};

use super::{Expr, FlowIx, TypeIx};

/// The type of a value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Type {
    /// The result of what has no result; JSON `null`.
    Nothing,
    /// Unicode text; JSON string.
    Text,
    /// 64-bit signed integer; JSON number.
    Int,
    /// Finite 64-bit float; JSON number.
    Float,
    /// 96-bit decimal with a scale of at most 18; JSON string, numbers are read too.
    Decimal,
    /// JSON boolean.
    Bool,
    /// A moment in milliseconds since 1970; JSON RFC 3339 text.
    Time,
    /// A non-negative span in milliseconds; JSON text such as `"5m"`.
    Duration,
    /// Bytes; JSON base64 text.
    Bytes,
    /// Any JSON.
    Json,
    /// An opaque secret, resolved only in workers.
    Secret,
    /// JSON array.
    List(Box<Type>),
    /// JSON object with text keys.
    Map(Box<Type>),
    /// `T?`; JSON `null` or the value. Never nested.
    Option(Box<Type>),
    /// A record, union or error of the machine.
    Named(TypeIx),
    /// `approved<T>`: a record `{value: T, by: list<text>}` that only a person or a policy can make.
    Approved(Box<Type>),
    /// `Slot<T>`: union of `Done {value: T}`, `Failed {error: Problem}`, `Cut`, `NotStarted`.
    Slot(Box<Type>),
    /// `Verdict<T>`: union of `Happened {result: T}`, `NotHappened`, `CannotTell`.
    Verdict(Box<Type>),
    /// `Ended<T>`: how a spawned run with the result `T` ended: union of `Done {value: T}`, `Failed {error: Problem}`, `Cancelled`.
    Ended(Box<Type>),
    /// `doubt<T>`: an operation whose outcome is unknown; a record `{text, kind, activity}`.
    Doubt(Box<Type>),
    /// `handle<F>`: a spawned run.
    Handle(FlowIx),
    /// `Problem`: a record `{text: text, kind: text, activity: text?, retry_after: duration?, attempts: int}`.
    Problem,
}

/// What a type mentions by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mention {
    /// A record, union or error.
    Type(TypeIx),
    /// The flow of a handle.
    Flow(FlowIx),
}

impl Type {
    /// Returns the type as text; `name` says how what it mentions is called.
    pub(crate) fn written<E>(
        &self,
        name: &mut impl FnMut(Mention) -> Result<String, E>,
    ) -> Result<String, E> {
        let (word, of) = match self {
            Type::Nothing => ("nothing", None),
            Type::Text => ("text", None),
            Type::Int => ("int", None),
            Type::Float => ("float", None),
            Type::Decimal => ("decimal", None),
            Type::Bool => ("bool", None),
            Type::Time => ("time", None),
            Type::Duration => ("duration", None),
            Type::Bytes => ("bytes", None),
            Type::Json => ("json", None),
            Type::Secret => ("secret", None),
            Type::Problem => ("Problem", None),
            Type::List(of) => ("list", Some(of)),
            Type::Map(of) => ("map", Some(of)),
            Type::Approved(of) => ("approved", Some(of)),
            Type::Slot(of) => ("Slot", Some(of)),
            Type::Verdict(of) => ("Verdict", Some(of)),
            Type::Ended(of) => ("Ended", Some(of)),
            Type::Doubt(of) => ("doubt", Some(of)),
            Type::Option(of) => return Ok(format!("{}?", of.written(name)?)),
            Type::Handle(flow) => return Ok(format!("handle<{}>", name(Mention::Flow(*flow))?)),
            Type::Named(ix) => return name(Mention::Type(*ix)),
        };
        Ok(match of {
            Some(of) => format!("{word}<{}>", of.written(name)?),
            None => word.to_owned(),
        })
    }
}

/// A named type: record, union or error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TypeDef {
    /// Its name, unique in the machine (a flow's own result type is named `Flow.result`).
    pub name: String,
    /// What it is.
    pub kind: TypeKind,
}

/// What a named type is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TypeKind {
    /// JSON object.
    Record(Vec<FieldDef>),
    /// JSON object with the variant's name in `"type"`. The fields of `with` are part of each variant, before its own.
    Union(Vec<VariantDef>),
    /// An error that activities and flows raise; as a value a variant tagged with the error's name.
    Error(Vec<FieldDef>),
}

/// One variant of a union, the fields of `with` included.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VariantDef {
    /// The tag.
    pub name: String,
    /// All its fields, those of `with` first.
    pub fields: Vec<FieldDef>,
}

/// A field of a record, variant, error or message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldDef {
    /// Its name, also in JSON.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub ty: Type,
    /// The value where JSON has none: a constant expression. An option without default reads a missing field as `none`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Expr>,
}

/// A parameter of an activity, function, flow or state.
pub type Param = FieldDef;
