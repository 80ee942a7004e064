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
        explanation: "One name means one thing. All files that are checked together share their names, and the types of the standard library are taken too.",
    },
    Entry {
        code: UNKNOWN_TYPE,
        title: "unknown type",
        explanation: "Types are the built-in ones, those of the standard library, those declared in the files, and the results of flows under the flow's name.",
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
        explanation: "A catalogue is a JSON file `{\"tools\": [{\"name\", \"description\", \"input\", \"effect\", \"permission\"}]}`: `input` is a JSON Schema, `effect` is `pure`, `idempotent` or `once` (the default), `permission` is `allow` or `ask` (the default).",
    },
];
