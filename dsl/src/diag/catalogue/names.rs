//! Codes F02xx: names and what they stand for.
//!
//! Leaves the names themselves and the nearest known one, and the words of a single message to the place that reports it.
//! Invariant: the entries are in the order of their codes.

use super::Entry;
use crate::diag::Code;

/// A variable or function that does not exist.
pub const UNKNOWN_NAME: Code = Code(201);
/// A name that is taken.
pub const DUPLICATE: Code = Code(202);
/// A type or variant that does not exist.
pub const UNKNOWN_TYPE: Code = Code(203);
/// An error that does not exist.
pub const UNKNOWN_ERROR: Code = Code(204);
/// A state that does not exist.
pub const UNKNOWN_STATE: Code = Code(205);
/// A message that does not exist.
pub const UNKNOWN_MESSAGE: Code = Code(206);
/// An activity, flow, retry policy or catalogue that does not exist.
pub const UNKNOWN_DECLARATION: Code = Code(207);
/// A field that does not exist.
pub const UNKNOWN_FIELD: Code = Code(208);
/// A variant that several types have.
pub const AMBIGUOUS_VARIANT: Code = Code(209);
/// An edition that this release does not know.
pub const UNKNOWN_EDITION: Code = Code(210);
/// A tool catalogue that cannot be read.
pub const BAD_CATALOGUE: Code = Code(211);
/// A file that cannot be used.
pub const BAD_IMPORT: Code = Code(212);
/// A name that the other file does not declare.
pub const UNKNOWN_IMPORT: Code = Code(213);
/// Files that use each other.
pub const IMPORT_RING: Code = Code(214);
/// An import that nobody needs.
pub const UNUSED_IMPORT: Code = Code(215);
/// A tool's type that says less than its schema.
pub const TOOL_TYPE: Code = Code(216);
/// A name that nothing reads.
pub const UNUSED: Code = Code(220);

/// What the codes mean.
pub const ENTRIES: &[Entry] = &[
    Entry {
        code: UNKNOWN_NAME,
        title: "unknown name",
        explanation: "A variable is visible where a parameter, a `data` field, an arrow or a pattern brings it in, and only there. The result of an effect (`as r`) is visible on `on ok`.",
    },
    Entry {
        code: DUPLICATE,
        title: "declared twice",
        explanation: "One name means one thing in a file, and the types of the prelude are taken too. Within one machine the names of flows differ, since they tell what a run is doing.",
    },
    Entry {
        code: UNKNOWN_TYPE,
        title: "unknown type",
        explanation: "Types are the built-in ones, those of the prelude, those that the file declares or imports, and the results of flows under the flow's name.",
    },
    Entry {
        code: UNKNOWN_ERROR,
        title: "unknown error",
        explanation: "Errors are declared with `error Name { … }`; `raises`, `on` and `fail` name them.",
    },
    Entry {
        code: UNKNOWN_STATE,
        title: "unknown state",
        explanation: "An arrow leads to a state of the same flow.",
    },
    Entry {
        code: UNKNOWN_MESSAGE,
        title: "unknown message",
        explanation: "Messages are declared in the flow that takes them with `message Name { … }`.",
    },
    Entry {
        code: UNKNOWN_DECLARATION,
        title: "unknown declaration",
        explanation: "`do` names an activity, `run` a flow, `retry` a retry policy, `from` a catalogue.",
    },
    Entry {
        code: UNKNOWN_FIELD,
        title: "unknown field",
        explanation: "A record has the fields of its declaration. A union has those that all its variants share; the others are seen in an arm, a `match` or after `is`.",
    },
    Entry {
        code: AMBIGUOUS_VARIANT,
        title: "ambiguous variant",
        explanation: "Where nothing says which type is wanted, write the type before the variant: `Reply.Text { … }`.",
    },
    Entry {
        code: UNKNOWN_EDITION,
        title: "unknown edition",
        explanation: "An edition fixes the built-in functions and limits for ever. This release knows edition 1.",
    },
    Entry {
        code: BAD_CATALOGUE,
        title: "bad tool catalogue",
        explanation: "A catalogue is a JSON file `{\"tools\": [{\"name\", \"description\", \"input\", \"effect\", \"permission\"}]}`: `input` is a JSON Schema (`inputSchema` and `parameters` are read too), `effect` is `pure`, `idempotent` or `once` (the default), `permission` is `allow` or `ask` (the default).",
    },
    Entry {
        code: BAD_IMPORT,
        title: "bad import",
        explanation: "`use \"lib/refunds.flow\" { Refund, refund_card }` names a file by its path relative to the file that it stands in, with `/` between the parts. `use std \"agents\" { Agent }` names a part of the standard library.",
    },
    Entry {
        code: UNKNOWN_IMPORT,
        title: "unknown import",
        explanation: "Types, errors, retry policies, activities, functions and flows that a file declares can be imported from it; what it imports itself is imported from where it is declared, and a tool catalogue is named by `use tools`.",
    },
    Entry {
        code: IMPORT_RING,
        title: "files in a ring",
        explanation: "Files do not use each other in a ring. Put what both need into a file of its own.",
    },
    Entry {
        code: UNUSED_IMPORT,
        title: "unused import",
        explanation: "What an imported declaration needs comes along by itself, so only names that stand in the file are imported.",
    },
    Entry {
        code: TOOL_TYPE,
        title: "less than the schema says",
        explanation: "A tool's JSON Schema can say more than a type of Flow. What a type cannot tell is `json`, or left out if the tool does not need it; the rest is checked.",
    },
    Entry {
        code: UNUSED,
        title: "never used",
        explanation: "What nothing reads is often a slip: another name was meant, or an arrow is missing. Take it out, or begin its name with `_` if it should stay.",
    },
];
