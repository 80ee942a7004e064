//! Codes F09xx: parts of the language that this version does not run.
//!
//! Leaves everything else to the other areas, and the words of a single message to the place that reports it.
//! Invariant: the entries are in the order of their codes.

use super::Entry;
use crate::diag::Code;

/// `parallel`.
pub const PARALLEL: Code = Code(901);
/// `spawn` and `await ended`.
pub const SPAWN: Code = Code(902);
/// `saga flow`.
pub const SAGA: Code = Code(903);
/// `settle`.
pub const SETTLE: Code = Code(904);
/// `also do`.
pub const ALSO_DO: Code = Code(905);
/// `migrate`.
pub const MIGRATE: Code = Code(906);

/// What the codes mean.
pub const ENTRIES: &[Entry] = &[
    Entry {
        code: PARALLEL,
        title: "`parallel` is not in this version",
        explanation: "This version has no `parallel`. Use `each` for the same effect on many values, or states one after the other.",
    },
    Entry {
        code: SPAWN,
        title: "`spawn` is not in this version",
        explanation: "This version starts no other runs. Use `run` for a flow inside this run.",
    },
    Entry {
        code: SAGA,
        title: "`saga` is not in this version",
        explanation: "This version undoes nothing by itself. `undo` on an activity is read, but only a saga would call it.",
    },
    Entry {
        code: SETTLE,
        title: "`settle` is not in this version",
        explanation: "In this version a person settles a doubt, or a `verify` activity does.",
    },
    Entry {
        code: ALSO_DO,
        title: "`also do` is not in this version",
        explanation: "This version has no effects beside the state's own. Use a state.",
    },
    Entry {
        code: MIGRATE,
        title: "`migrate` is not in this version",
        explanation: "This version keeps a run on the machine that it was started with.",
    },
];
