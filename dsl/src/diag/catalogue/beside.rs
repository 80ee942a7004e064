//! Codes F07xx: what goes on beside a state or after it: regions, other runs, doubts that are settled, older versions.
//!
//! Leaves single effects to F05xx, and the words of a single message to the place that reports it.
//! Invariant: the entries are in the order of their codes.

use super::Entry;
use crate::diag::Code;

/// A `join` that no end of the regions could meet.
pub const BAD_JOIN: Code = Code(701);
/// A region or member that gives different types.
pub const MIXED_RESULTS: Code = Code(702);
/// A flow that cannot be a run of its own.
pub const BOUND_TO_RUN: Code = Code(703);
/// Ends of runs with different results are awaited together.
pub const MIXED_ENDS: Code = Code(704);
/// `also do` with an activity that must not be repeated.
pub const ALSO_ONCE: Code = Code(705);
/// `settle` with a verdict that says nothing.
pub const SETTLES_NOTHING: Code = Code(706);
/// A `migrate` that does not say of which flow.
pub const WHICH_FLOW: Code = Code(707);
/// A state of an older version that would go on in several places.
pub const MIGRATED_TWICE: Code = Code(708);
/// `also do` with an activity that costs something.
pub const ALSO_COSTS: Code = Code(709);

/// What the codes mean.
pub const ENTRIES: &[Entry] = &[
    Entry {
        code: BAD_JOIN,
        title: "`join` cannot be met",
        explanation: "`join all`, `join any`, `join n` with n from 1 to the number of regions, or `join` and the name of a region.",
    },
    Entry {
        code: MIXED_RESULTS,
        title: "results of different types",
        explanation: "A member of a group has one type. Where it may end well in several ways, as with several awaited messages, each of them needs `on X yield v` with a value of that type.",
    },
    Entry {
        code: BOUND_TO_RUN,
        title: "flow cannot be spawned",
        explanation: "A spawned flow is a run of its own: its parameters and its result are written as JSON on the way. An `approved` value or a `doubt` means something only in the run where it came to be, so a flow that takes or gives one is called with `run`.",
    },
    Entry {
        code: MIXED_ENDS,
        title: "ends of different runs",
        explanation: "`on ended { outcome }` has one type, `Ended<T>`, so the runs that are awaited together give results of one type.",
    },
    Entry {
        code: ALSO_ONCE,
        title: "`also do` of what must not be repeated",
        explanation: "Nothing waits for what `also do` opens, so nothing could take its doubt. The activity is `pure` or `idempotent`.",
    },
    Entry {
        code: SETTLES_NOTHING,
        title: "verdict settles nothing",
        explanation: "A doubt is settled as `Happened { result: … }`, then its undo gets the result, or as `NotHappened`, then there is nothing to undo.",
    },
    Entry {
        code: WHICH_FLOW,
        title: "migration of which flow?",
        explanation: "`migrate Flow.Old(…) -> New(…)` says where a run of an older version of `Flow` goes on that is in the state `Old`. The flow may be left out if only one flow of the file has a state `New`.",
    },
    Entry {
        code: MIGRATED_TWICE,
        title: "older state goes on twice",
        explanation: "Each state of an older version goes on in one place: in the state that has its name, in the one that says `was` and its name, or where `migrate` says.",
    },
    Entry {
        code: ALSO_COSTS,
        title: "`also do` of what costs something",
        explanation: "What does not fit into what `limit cost` leaves is not begun: the way after `else` is taken, which leaves the state that opened it. What `also do` opens belongs to no state and would still be there, so it cannot be bounded. Give the activity a state of its own.",
    },
];
