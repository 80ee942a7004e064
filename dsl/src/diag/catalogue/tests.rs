//! Codes F08xx: tests.
//!
//! Leaves what a test names to F0508, and the words of a single message to the place that reports it. Invariant: the entries are
//! in the order of their codes.

use super::Entry;
use crate::diag::Code;

/// A test ran and something was not as expected.
pub const FAILED: Code = Code(801);
/// A step that cannot be done where it stands.
pub const MISPLACED_STEP: Code = Code(802);
/// A reply that the stubbed activity cannot give.
pub const WRONG_REPLY: Code = Code(803);

/// What the codes mean.
pub const ENTRIES: &[Entry] = &[
    Entry {
        code: FAILED,
        title: "a test failed",
        explanation: "The test ran on the real kernel, and at this step something else was found than is expected. The path \
                      shows the states that the run went through. If the failure is one of a crash, the same steps hold \
                      without it: what the flow does after the crash differs.",
    },
    Entry {
        code: MISPLACED_STEP,
        title: "a step cannot be done here",
        explanation: "A test starts one flow, with its first step or after some `stub` and `allow` steps. Everything else \
                      happens to the run that was started.",
    },
    Entry {
        code: WRONG_REPLY,
        title: "a stub gives what its activity cannot give",
        explanation: "An activity fails with the errors that it `raises`, or with a text (`fail \"disk full\"`). Only what is \
                      declared `once`, or takes its effect `from` a catalogue, can be in doubt (`unknown`).",
    },
];
