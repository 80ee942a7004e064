//! Codes F06xx: deadlines, retries and cost.
//!
//! Leaves what may be retried to F05xx, and the words of a single message to the place that reports it.
//! Invariant: the entries are in the order of their codes.

use super::Entry;
use crate::diag::Code;

/// An attempt may take longer than the whole operation.
pub const ATTEMPT_LONGER: Code = Code(601);
/// The retries do not fit into the deadline.
pub const RETRIES_LONGER: Code = Code(602);
/// Silence may last longer than the attempt.
pub const SILENCE_LONGER: Code = Code(603);
/// A retry rule that can never count.
pub const BAD_RETRY: Code = Code(604);
/// A deadline of zero.
pub const ZERO_DEADLINE: Code = Code(605);
/// A deadline that is over before what is inside it.
pub const NOT_NESTED: Code = Code(606);
/// An activity that costs more than the flow may spend.
pub const ABOVE_CAP: Code = Code(607);
/// A way through a flow that costs more than the flow may spend.
pub const WAY_ABOVE_CAP: Code = Code(608);
/// A limit on cost whose way out costs something.
pub const COSTLY_WAY_OUT: Code = Code(609);

/// What the codes mean.
pub const ENTRIES: &[Entry] = &[
    Entry {
        code: ATTEMPT_LONGER,
        title: "`within` above `in all`",
        explanation: "`within` bounds one attempt, `in all` everything: queueing, attempts, waits.",
    },
    Entry {
        code: RETRIES_LONGER,
        title: "retries do not fit",
        explanation: "All waits, and for `on timeout` all attempts too, must fit into `in all` (or into `within`, if it stands alone).",
    },
    Entry {
        code: SILENCE_LONGER,
        title: "`silent` above `within`",
        explanation: "`silent` notices early that a worker is gone, so it is shorter than the attempt.",
    },
    Entry {
        code: BAD_RETRY,
        title: "retry rule without effect",
        explanation: "A rule names errors that the activity raises, `failed`, `timeout` or `problem`. Waits are above zero and double up to a cap above the first one.",
    },
    Entry {
        code: ZERO_DEADLINE,
        title: "deadline of zero",
        explanation: "A deadline is above zero; `within forever` waits without one.",
    },
    Entry {
        code: NOT_NESTED,
        title: "deadlines do not nest",
        explanation: "A deadline around something that may take longer cuts it off. If that is meant, a shorter deadline inside says so. `within` of `run`, `each` and `parallel`, `limit age` and `on cancel within` are at least as long as each deadline inside: `in all` (or `within`) of an activity, `within` of a question or of another flow. Literals are compared; `within forever` takes the bound that is around it.",
    },
    Entry {
        code: ABOVE_CAP,
        title: "dearer than the cap",
        explanation: "An activity is opened only if `costs <=` fits into what `limit cost` leaves, so this one never would be.",
    },
    Entry {
        code: WAY_ABOVE_CAP,
        title: "one way costs more than the cap",
        explanation: "If everything on one way from the start to an end costs the most that it may, `limit cost` is broken before the end, although nothing is done twice. Raise the cap, or lower `costs <=`. This is a warning, not an error: what the activities really cost may be less, and the limit says what happens if it is not.",
    },
    Entry {
        code: COSTLY_WAY_OUT,
        title: "way out that costs",
        explanation: "An activity that does not fit into what `limit cost` leaves is never begun: the way after `else` is taken instead. If that way leads, without a message, an answer or a passing of time, to something that costs, the limit is broken again and again. Lead it to an end, or ask somebody first. A cap that arrows raise (a `data` field) is not looked at.",
    },
];
