//! Flows, activities, functions and retry policies of a machine.

use serde::{Deserialize, Serialize};

use super::{
    Act, ActivityIx, Arrow, Assign, CatalogueIx, DataIx, Effect, Expr, FieldDef, Goal, Param, RetryIx,
    StateIx, TimerArrow, Type, TypeIx,
};

/// A state machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// Its name.
    pub name: String,
    /// `version N`, 1 if left out.
    pub version: u32,
    /// Whether leaving by `fail`, cancel or a broken limit undoes what was done.
    pub saga: bool,
    /// Its parameters.
    pub params: Vec<Param>,
    /// What `end` gives.
    pub result: Type,
    /// Errors that `fail` may give.
    pub raises: Vec<TypeIx>,
    /// The type of what it emits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emits: Option<Type>,
    /// The messages that it takes.
    pub messages: Vec<MessageDef>,
    /// Its data, initialised in text order; an initialiser sees parameters and earlier data.
    pub data: Vec<DataDef>,
    /// Checked in text order after an arrow's acts and before its goal.
    pub limits: Vec<Limit>,
    /// Arrows of every state, after the state's own.
    pub arrows: Vec<Arrow>,
    /// What is done when the run is cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_cancel: Option<OnCancel>,
    /// Where it starts.
    pub start: Place,
    /// Its states, in text order.
    pub states: Vec<StateDef>,
    /// How many slots the flow's own expressions need (data, limits, scope arrows, start).
    pub frame: u32,
    /// How runs of older versions go on in this one, in text order; at most one for each old state.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub migrations: Vec<Migration>,
}

/// `migrate Old(params) set … -> New(args)`: where an instance of an older version goes on that is in the state `Old`.
///
/// Before it the instance has the parameters and data of the old version that have the same name and type; data that is new
/// or of another type has the value of its initialiser. Then the assignments are done in order, then the arguments are
/// evaluated; both see parameters and data as they are by then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Migration {
    /// The state of the older version.
    pub from: String,
    /// What is taken from the old configuration, by name: a parameter of the state, a data field, a parameter of the flow. They
    /// fill slots 0.. of the frame. A value whose type has not changed is taken as it is, another one is read anew from its JSON;
    /// a parameter that the old configuration does not have takes its default.
    pub params: Vec<Param>,
    /// Data that gets another value.
    pub sets: Vec<Assign>,
    /// Where the instance goes on.
    pub to: Place,
    /// How many slots the assignments and arguments need.
    pub frame: u32,
}

/// A message type of a flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageDef {
    /// Its name.
    pub name: String,
    /// Its fields.
    pub fields: Vec<FieldDef>,
    /// `now`: taken at once or refused, never kept.
    pub now: bool,
}

/// A data field of a flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataDef {
    /// Its name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub ty: Type,
    /// Its first value.
    pub init: Expr,
}

/// `limit measure <= max else acts -> goal`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    /// What is measured.
    pub measure: Measure,
    /// The most that is allowed: an int, decimal or duration.
    pub max: Expr,
    /// What is done when it is broken.
    pub acts: Vec<Act>,
    /// Where it leads then; wins over the arrow that broke it.
    pub goal: Goal,
}

/// What a limit measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Entries of the first state since the last entry of the second (or since the start), the coming one counted.
    Visits(StateIx, Option<StateIx>),
    /// A data field.
    Data(DataIx),
    /// Money spent and reserved by this run.
    Cost,
    /// Time since the flow started.
    Age,
}

/// `on cancel within D -> S`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnCancel {
    /// Milliseconds for the clean-up.
    pub within_ms: u64,
    /// Where it starts.
    pub goal: Goal,
}

/// A state with its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The state.
    pub state: StateIx,
    /// Its arguments.
    pub args: Vec<Expr>,
}

/// A state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateDef {
    /// Its name; states made from sugar are named `S.a`.
    pub name: String,
    /// Its name in an older version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub was: Option<String>,
    /// Its parameters.
    pub params: Vec<Param>,
    /// What it does.
    pub effect: Effect,
    /// Its own arrows, in text order.
    pub arrows: Vec<Arrow>,
    /// Its timers, in text order.
    pub timers: Vec<TimerArrow>,
    /// How many slots its expressions need.
    pub frame: u32,
}

/// A declared operation outside the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activity {
    /// The name that workers offer.
    pub name: String,
    /// Its parameters; the task's input is an object by their names.
    pub params: Vec<Param>,
    /// Its result.
    pub result: Type,
    /// Errors that it declares.
    pub raises: Vec<TypeIx>,
    /// Milliseconds: of one attempt if `in_all_ms` is set, else of the whole operation.
    pub within_ms: u64,
    /// Milliseconds of the whole operation: queueing, attempts, waits and restarts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_all_ms: Option<u64>,
    /// Milliseconds without a sign of life after which an attempt is given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent_ms: Option<u64>,
    /// How failures are retried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryIx>,
    /// The most that one operation may cost, a decimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub costs: Option<String>,
    /// The queue that workers poll; `default` if left out.
    pub queue: String,
    /// What may be done again after a crash.
    pub effect: EffectClass,
    /// The activity that undoes it, and whether also after a failure with an answer (`always`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<(ActivityIx, bool)>,
    /// `unknown holds`: a doubt waits for a person.
    pub unknown_holds: bool,
}

/// What may be done again after a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectClass {
    /// Reads only: runs again.
    Pure,
    /// Runs again with the same key.
    Idempotent,
    /// Never runs again blindly; the activity tells whether it happened.
    Once(Option<ActivityIx>),
    /// The class of the called tool: the catalogue, the position of the parameter that holds the `ToolCall` (approved or not), and who
    /// tells whether it happened.
    From(CatalogueIx, u32, Option<ActivityIx>),
}

/// A pure function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// How many parameters: slots 0.. of its frame.
    pub params: u32,
    /// Its value.
    pub body: Expr,
    /// How many slots it needs.
    pub frame: u32,
}

/// A retry policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retry {
    /// Its name.
    pub name: String,
    /// The first rule that names the failure counts.
    pub rules: Vec<RetryRule>,
    /// `then hold`: when attempts are used up the operation waits for a person.
    pub then_hold: bool,
}

/// `on X, Y up to N attempts wait D doubling to C hint F`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryRule {
    /// Error names, `failed`, `timeout`, or `problem` for all of them.
    pub on: Vec<String>,
    /// All attempts, the first included; failures and losses count.
    pub attempts_max: u32,
    /// Milliseconds before the second attempt.
    pub wait_ms: u64,
    /// The wait doubles up to this many milliseconds; none: it stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms_max: Option<u64>,
    /// The error's field that says how long to wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}
