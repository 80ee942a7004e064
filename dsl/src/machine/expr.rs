//! Expressions: total, typed, resolved.
//!
//! Values are dynamic in the kernel; the checker has proved the types. A binder names the [`Slot`] that it writes, slots are
//! unique within one frame (a state, function or initialiser), so evaluation needs no scopes.
//! `T?` is flat: `none` or the value itself. `approved<T>` used as `T` has become `.value`.

use serde::{Deserialize, Serialize};

use super::{CatalogueIx, DataIx, FunctionIx, Slot, Type, TypeIx};

/// An expression.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expr {
    /// A constant.
    Lit(Literal),
    /// A local variable (arrow bindings, pattern fields, loop items, function parameters).
    Local(Slot),
    /// A parameter of the flow, by position.
    Param(u32),
    /// A parameter of the active state, by position.
    Arg(u32),
    /// A data field of the flow.
    Data(DataIx),
    /// Text with values in it: each part is shown as text and joined.
    Text(Vec<Expr>),
    /// `[a, b]`
    List(Vec<Expr>),
    /// `map {k: v}`
    Map(Vec<(Expr, Expr)>),
    /// `[body for x in over if cond]`
    ListFor(Box<ForIn>, Box<Expr>),
    /// `map {key: value for x in over if cond}`
    MapFor(Box<ForIn>, Box<Expr>, Box<Expr>),
    /// `count|sum|any|all|first|last (body for x in over if cond)`
    Fold(Fold, Box<ForIn>, Box<Expr>),
    /// A record with all its fields in declared order; the type is kept for the name.
    Record(TypeIx, Vec<(String, Expr)>),
    /// A record or variant of a built-in type (`approved`, `Problem`, `Slot`, `Verdict`, `Undo`): tag if a variant, fields.
    BuiltinRecord(Option<String>, Vec<(String, Expr)>),
    /// A variant of a union or an error, all its fields in declared order.
    Variant(TypeIx, String, Vec<(String, Expr)>),
    /// `e.name` of a record or variant.
    Field(Box<Expr>, String),
    /// `xs[i]` or `m[k]`: an option.
    Index(Box<Expr>, Box<Expr>),
    /// `not e`
    Not(Box<Expr>),
    /// `-e`
    Neg(Box<Expr>),
    /// An operator on two values; `and` and `or` evaluate the right side only if needed.
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// `a ?? b`: `b` if `a` is `none`.
    Else(Box<Expr>, Box<Expr>),
    /// `if cond then a else b`
    If(Box<Cond>, Box<Expr>, Box<Expr>),
    /// `match subject { … }`: exhaustive, the first arm that fits.
    Match(Box<Expr>, Vec<MatchArm>),
    /// `e is Tag {fields}`: true if the variant fits; binds the fields.
    Is(Box<Expr>, String, Vec<(String, Slot)>),
    /// A call of a function; its parameters are slots 0.. of a fresh frame.
    Call(FunctionIx, Vec<Expr>),
    /// A call of a builtin.
    Builtin(Builtin, Vec<Expr>),
    /// `T.from(json)`: `none` if it does not fit.
    FromJson(Type, Box<Expr>),
    /// `json(v)`
    ToJson(Box<Expr>),
    /// `catalogue.schemas`: the list of tool schemas (`ToolSchema` records `{name, description, input}`).
    Schemas(CatalogueIx),
    /// `catalogue.allow(call)`: the call as `approved`, or `none` if a person must be asked.
    Allow(CatalogueIx, Box<Expr>),
}

/// A condition that may bind: `if e as x` holds if the option `e` is not `none`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cond {
    /// A boolean, or an option if `bind` is set.
    pub test: Expr,
    /// Where the option's value goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bind: Option<Slot>,
}

/// `for x in over if cond`, `for i, x in over`, `for k, v in map`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ForIn {
    /// The item of a list, or the value of a map entry.
    pub item: Slot,
    /// The position in a list (0-based), or the key of a map entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Slot>,
    /// A list or map.
    pub over: Expr,
    /// Which items take part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cond: Option<Cond>,
}

/// One arm of a `match`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct MatchArm {
    /// The variant's tag; `None` fits `none` of an option, and then `some` fits the rest under the tag `Some`.
    pub tag: String,
    /// Fields to bind.
    pub fields: Vec<(String, Slot)>,
    /// A further condition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<Cond>,
    /// The value.
    pub body: Expr,
}

/// A constant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Literal {
    /// `nothing`
    Nothing,
    /// `none`
    None,
    /// `true`, `false`
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float as written.
    Float(String),
    /// A decimal as written.
    Decimal(String),
    /// Text.
    Text(String),
    /// Milliseconds.
    Duration(u64),
    /// JSON in canonical text (sorted keys, no spaces).
    Json(String),
}

/// An operator on two values of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BinaryOp {
    /// `and`
    And,
    /// `or`
    Or,
    /// `==`, by structure
    Eq,
    /// `!=`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
    /// `x in xs`: member of a list, key of a map, part of a text
    In,
    /// `+`: numbers, text, lists, `time + duration`, durations
    Add,
    /// `-`: numbers, `time - duration`; `time - time` and `duration - duration` clamp at zero
    Sub,
    /// `*`: numbers, `duration * int`
    Mul,
    /// `/`: `none` if the divisor is zero
    Div,
    /// `%`: `none` if the divisor is zero
    Rem,
}

/// How the values of a comprehension are folded into one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fold {
    /// How many items take part (`count(x for x in xs if c)`).
    Count,
    /// Their sum; the zero of the body's type must be the first value (`sum` of nothing is int 0, or decimal/duration by [`Fold::SumDecimal`]/[`Fold::SumDuration`]).
    Sum,
    /// A sum of decimals.
    SumDecimal,
    /// A sum of durations.
    SumDuration,
    /// A sum of floats.
    SumFloat,
    /// A sum of lists: one after the other.
    SumList,
    /// Whether one is true.
    Any,
    /// Whether all are true.
    All,
    /// The first, an option.
    First,
    /// The last, an option.
    Last,
}

/// A builtin function of the edition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Builtin {
    /// `size(list|map|text|bytes) -> int`
    Size,
    /// `first_n(list|text, int)`
    FirstN,
    /// `last_n(list|text, int)`
    LastN,
    /// `range(int from, int to) -> list<int>`, `to` excluded
    Range,
    /// `min(a, b)`
    Min,
    /// `max(a, b)`
    Max,
    /// `sort(list)`: stable, of numbers, text, times, durations
    Sort,
    /// `keys(map) -> list<text>`
    Keys,
    /// `values(map<T>) -> list<T>`
    Values,
    /// `put(map<T>, text, T) -> map<T>`
    Put,
    /// `join(list<text>, text) -> text`
    Join,
    /// `split(text, text) -> list<text>`
    Split,
    /// `starts_with(text, text) -> bool`
    StartsWith,
    /// `contains(text, text) -> bool`
    Contains,
    /// `find(text, text) -> int?`
    Find,
    /// `trim(text) -> text`
    Trim,
    /// `lower(text) -> text`, ASCII only
    Lower,
    /// `parse_int(text) -> int?`
    ParseInt,
    /// `parse_decimal(text) -> decimal?`
    ParseDecimal,
    /// `new_id() -> text`: from the run's seed, the event and a position
    NewId,
    /// `now() -> time`: the time of the event being applied (also written `now`)
    Now,
    /// `done(list<Slot<T>>) -> list<T>`
    Done,
    /// `not_done(list<X>, list<Slot<T>>) -> list<X>`
    NotDone,
}
