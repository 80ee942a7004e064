//! The checked machine: what a run pins, stores and replays.
//!
//! Built by the checker, read by the kernel; it knows nothing of text. Names are resolved to indexes, sugar is gone, defaults
//! are filled in, and every order is fixed, so that replay never needs a parser, a checker or a graph.
//! Invariant: every index points into the table it names, and the bytes of [`Machine::encode`] are canonical.

mod arrow;
mod codec;
mod differ;
mod effect;
mod expr;
mod flow;
pub(crate) mod link;
pub mod refs;
mod types;
mod valid;

pub use arrow::{
    Act, Arm, Arrow, Assign, AssignOp, Bind, Goal, Outcome, Payload, Then, TimerArrow, TimerKind,
};
pub use codec::{MachineError, MachineHash};
pub use differ::{Change, Difference, differences};
pub use effect::{
    Ask, Await, Branch, Each, EachBody, Effect, Join, Parallel, Region, Spawn, Wait, Who, Yield,
};
pub use expr::{BinaryOp, Builtin, Cond, Expr, Fold, ForIn, Literal, MatchArm};
pub use flow::{
    Activity, DataDef, EffectClass, Flow, Function, Limit, Measure, MessageDef, Migration, OnCancel, Place,
    Retry, RetryRule, StateDef,
};
pub(crate) use types::Mention;
pub use types::{FieldDef, Param, Type, TypeDef, TypeKind, VariantDef};

use serde::{Deserialize, Serialize};

/// Counts the version of this format; a reader refuses a newer one.
pub const FORMAT: u32 = 1;

/// Defines an index into one of the machine's tables.
macro_rules! index {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// Returns the index as a position in its table.
            #[must_use]
            pub const fn at(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

index! {
    /// Names a flow in [`Machine::flows`].
    FlowIx;
    /// Names an activity in [`Machine::activities`].
    ActivityIx;
    /// Names a function in [`Machine::functions`].
    FunctionIx;
    /// Names a retry policy in [`Machine::retries`].
    RetryIx;
    /// Names a type in [`Machine::types`].
    TypeIx;
    /// Names a tool catalogue in [`Machine::catalogues`].
    CatalogueIx;
    /// Names a state of its flow.
    StateIx;
    /// Names a message type of its flow.
    MessageIx;
    /// Names a data field of its flow.
    DataIx;
    /// Names a local variable: a place in the frame of the state, function or initialiser that is evaluated.
    Slot;
}

/// A flow with everything it can reach, ready to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// The version of this format, [`FORMAT`].
    pub format: u32,
    /// The edition that fixes builtins, fuel and limits.
    pub edition: u32,
    /// The flow that a run of this machine starts.
    pub root: FlowIx,
    /// All flows that `root` can run, in the order of first use; `root` first.
    pub flows: Vec<Flow>,
    /// All activities in use.
    pub activities: Vec<Activity>,
    /// All functions in use; calls are acyclic.
    pub functions: Vec<Function>,
    /// All retry policies in use.
    pub retries: Vec<Retry>,
    /// All records, unions and errors in use.
    pub types: Vec<TypeDef>,
    /// All tool catalogues in use.
    pub catalogues: Vec<Catalogue>,
}

/// The tools that `use tools "FILE" as NAME` brought in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Catalogue {
    /// The name after `as`.
    pub name: String,
    /// The tools, in the order of the file.
    pub tools: Vec<Tool>,
}

/// One tool of a catalogue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    /// The name that a model calls.
    pub name: String,
    /// What a model is told of it.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub input: serde_json::Value,
    /// Its effect class: `pure`, `idempotent` or `once`.
    pub effect: ToolEffect,
    /// Whether a call needs a person's approval.
    pub permission: Permission,
}

/// The effect class of one tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolEffect {
    /// Reads only.
    Pure,
    /// May be repeated with the same key.
    Idempotent,
    /// Must not be repeated blindly.
    Once,
}

/// What MCP servers say of a tool.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Annotations {
    read_only_hint: bool,
    idempotent_hint: bool,
    destructive_hint: bool,
}

impl ToolEffect {
    /// Returns the class that an MCP server's annotations of a tool speak for. They may be wrong, so what harms most counts: who says
    /// nothing, or nothing that can be read, means `once`, and who says both that it only reads and that it destroys is not believed.
    #[must_use]
    pub fn of_annotations(annotations: &serde_json::Value) -> ToolEffect {
        let says = Annotations::deserialize(annotations).unwrap_or_default();
        match (says.read_only_hint && !says.destructive_hint, says.idempotent_hint) {
            (true, _) => ToolEffect::Pure,
            (false, true) => ToolEffect::Idempotent,
            (false, false) => ToolEffect::Once,
        }
    }

    /// Returns its name, as catalogues and rules write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ToolEffect::Pure => "pure",
            ToolEffect::Idempotent => "idempotent",
            ToolEffect::Once => "once",
        }
    }
}

/// What a catalogue says of calls to a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Permission {
    /// Runs without asking.
    Allow,
    /// A person is asked first.
    Ask,
}

impl Machine {
    /// Returns the flow that a run starts.
    #[must_use]
    pub fn root(&self) -> &Flow {
        &self.flows[self.root.at()]
    }

    /// Returns a type by its index.
    #[must_use]
    pub fn type_def(&self, ix: TypeIx) -> &TypeDef {
        &self.types[ix.at()]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::ToolEffect;

    #[test]
    fn annotations_become_classes_and_no_word_means_the_worst() {
        for (annotations, class) in [
            (json!(null), "once"),
            (json!({}), "once"),
            (json!("odd"), "once"),
            (json!({"title": "t", "openWorldHint": false}), "once"),
            (json!({"destructiveHint": false}), "once"),
            (json!({"idempotentHint": true}), "idempotent"),
            (json!({"idempotentHint": true, "destructiveHint": true}), "idempotent"),
            (json!({"readOnlyHint": true}), "pure"),
            (json!({"readOnlyHint": true, "destructiveHint": false}), "pure"),
            (json!({"readOnlyHint": true, "idempotentHint": true}), "pure"),
            // Who says both is not believed.
            (json!({"readOnlyHint": true, "destructiveHint": true}), "once"),
            (json!({"readOnlyHint": "yes"}), "once"),
        ] {
            assert_eq!(ToolEffect::of_annotations(&annotations).name(), class, "{annotations}");
        }
    }
}
