//! Codes F04xx: states, arrows and limits of flows.
//!
//! Leaves what effects need to F05xx, and the words of a single message to the place that reports it.
//! Invariant: the entries are in the order of their codes.

use super::Entry;
use crate::diag::Code;

/// An outcome without an arrow.
pub const UNHANDLED: Code = Code(401);
/// An outcome that the effect cannot have.
pub const IMPOSSIBLE: Code = Code(402);
/// An arrow that is never taken.
pub const NEVER_TAKEN: Code = Code(403);
/// The last arrow of an outcome has a condition.
pub const GUARDED_LAST: Code = Code(404);
/// An arrow binds what its outcomes do not bring along.
pub const CANNOT_BIND: Code = Code(405);
/// `stay` where nothing stays open.
pub const NO_STAY: Code = Code(406);
/// `set` of something that is no data.
pub const NOT_DATA: Code = Code(407);
/// `emit` in a flow that emits nothing.
pub const NO_EMITS: Code = Code(408);
/// A state that no arrow leads to.
pub const UNREACHABLE_STATE: Code = Code(410);
/// A state from which no way leads to an end.
pub const NO_END: Code = Code(411);
/// A cycle that may go round for ever without moving on.
pub const IDLE_CYCLE: Code = Code(412);
/// A flow that runs itself.
pub const FLOW_CYCLE: Code = Code(413);
/// `fail` with an error that the flow does not declare.
pub const UNDECLARED_ERROR: Code = Code(414);
/// A limit on something that cannot be measured.
pub const BAD_LIMIT: Code = Code(415);
/// A flow without exactly one start.
pub const NO_START: Code = Code(416);
/// An outcome that only a state's own arrow can take.
pub const SCOPE_OUTCOME: Code = Code(417);
/// A loop that only a broken limit ends.
pub const LIMIT_AS_EXIT: Code = Code(430);

/// What the codes mean.
pub const ENTRIES: &[Entry] = &[
    Entry {
        code: UNHANDLED,
        title: "unhandled outcome",
        explanation: "Every outcome that an effect can have needs an arrow, in the state or in the flow. `on problem` covers declared errors, `failed` and `timeout`.",
    },
    Entry {
        code: IMPOSSIBLE,
        title: "impossible outcome",
        explanation: "An arrow names an outcome of the state's effect or a message of the flow.",
    },
    Entry {
        code: NEVER_TAKEN,
        title: "arrow is never taken",
        explanation: "An earlier arrow without a condition takes the same outcome.",
    },
    Entry {
        code: GUARDED_LAST,
        title: "last arrow has a condition",
        explanation: "If all conditions are false there must still be a way. Give the last arrow of each outcome no condition.",
    },
    Entry {
        code: CANNOT_BIND,
        title: "nothing to bind",
        explanation: "An arrow on one outcome sees what that outcome brings along. On several failures at once it sees a `Problem`. On other mixtures it sees nothing.",
    },
    Entry {
        code: NO_STAY,
        title: "`stay` is not possible here",
        explanation: "`stay` keeps the open operation and its deadline, so it can only follow a message or a timer.",
    },
    Entry {
        code: NOT_DATA,
        title: "only data can be set",
        explanation: "`set` changes a `data` field of the flow. Parameters and variables never change.",
    },
    Entry {
        code: NO_EMITS,
        title: "flow does not emit",
        explanation: "A flow that emits says of which type: `flow F(…) -> T emits text { … }`.",
    },
    Entry {
        code: UNREACHABLE_STATE,
        title: "unreachable state",
        explanation: "Every state can be reached from the start.",
    },
    Entry {
        code: NO_END,
        title: "no way to an end",
        explanation: "From every state some way leads to `end` or `fail`.",
    },
    Entry {
        code: IDLE_CYCLE,
        title: "cycle without progress",
        explanation: "A cycle must take a message or an answer, let a timer above zero pass, enter a state whose `limit visits(…)` is not set back on the way, or raise a limited counter by a positive constant.",
    },
    Entry {
        code: FLOW_CYCLE,
        title: "flow runs itself",
        explanation: "`run` puts a flow inside this one, so it cannot come back to itself, directly or through others.",
    },
    Entry {
        code: UNDECLARED_ERROR,
        title: "error is not declared",
        explanation: "A flow fails only with the errors of its `raises`.",
    },
    Entry {
        code: BAD_LIMIT,
        title: "cannot be limited",
        explanation: "A limit measures `visits(State)`, `cost`, `age`, or a `data` field that is a number or a duration.",
    },
    Entry {
        code: NO_START,
        title: "no single start",
        explanation: "A flow says once where it starts: `start State`.",
    },
    Entry {
        code: SCOPE_OUTCOME,
        title: "belongs to a state",
        explanation: "What `ok`, `approve` and `answer` bring along differs from state to state, so arrows of the flow cannot bind it.",
    },
    Entry {
        code: LIMIT_AS_EXIT,
        title: "limit used as a loop exit",
        explanation: "A limit is a guard against what should not happen, and what follows it is an emergency exit. Say with an arrow when a loop is done (`on ok if … -> end`), and go over lists and numbers with `each x in range(0, n)`. This is a warning, not an error: the flow does end.",
    },
];
