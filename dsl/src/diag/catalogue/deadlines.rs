//! Codes F06xx: deadlines and retries.
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
];
