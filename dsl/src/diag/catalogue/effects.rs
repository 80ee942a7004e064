//! Codes F05xx: activities and effects.
//!
//! Leaves deadlines and retries in time to F06xx, and the words of a single message to the place that reports it.
//! Invariant: the entries are in the order of their codes.

use super::Entry;
use crate::diag::Code;

/// `retry` on a `once` activity that cannot be verified.
pub const BLIND_RETRY: Code = Code(501);
/// A doubt that nobody settles.
pub const UNSETTLED_DOUBT: Code = Code(502);
/// A `verify` or `undo` activity of the wrong shape.
pub const WRONG_HELPER: Code = Code(503);
/// `effect from` on an activity without a tool call.
pub const NO_TOOL_CALL: Code = Code(504);
/// Something is awaited twice.
pub const REPEATED_AWAIT: Code = Code(505);
/// A count that must be at least one.
pub const BAD_COUNT: Code = Code(506);
/// Parts of a question that do not go together.
pub const BAD_ASK: Code = Code(507);
/// A test names something that does not exist.
pub const TEST_NAME: Code = Code(508);
/// A step of a saga that nothing undoes.
pub const NO_UNDO: Code = Code(520);
/// A tool call that no tool would take.
pub const TOOL_ARGUMENTS: Code = Code(530);

/// What the codes mean.
pub const ENTRIES: &[Entry] = &[
    Entry {
        code: BLIND_RETRY,
        title: "blind retry",
        explanation: "What must not be done twice is not tried again before somebody looked whether it happened: `effect once verify f`.",
    },
    Entry {
        code: UNSETTLED_DOUBT,
        title: "doubt is not settled",
        explanation: "After a crash nobody knows whether a `once` activity happened. Give it an arrow (`on unknown -> …`), or say `unknown holds` on the activity: then the run waits for a person.",
    },
    Entry {
        code: WRONG_HELPER,
        title: "wrong verify or undo",
        explanation: "`verify f` takes the same parameters and gives `Verdict<T>`; `undo f` takes them and `result: T?`. What is approved may be taken plain. Both are `pure` or `idempotent`.",
    },
    Entry {
        code: NO_TOOL_CALL,
        title: "no tool call",
        explanation: "The class is looked up by the called tool, so one parameter must be a `ToolCall` or an `approved<ToolCall>`.",
    },
    Entry {
        code: REPEATED_AWAIT,
        title: "awaited twice",
        explanation: "Each message type, and `closed`, is awaited once.",
    },
    Entry {
        code: BAD_COUNT,
        title: "count below one",
        explanation: "`at most`, `attempts` and the number of people count from one.",
    },
    Entry {
        code: BAD_ASK,
        title: "question does not fit together",
        explanation: "A question shows a value for approval, which may be `editable`, or asks for a value of a type with `for T`.",
    },
    Entry {
        code: TEST_NAME,
        title: "unknown name in a test",
        explanation: "A test names flows, activities, states and messages of the checked files.",
    },
    Entry {
        code: NO_UNDO,
        title: "step that nothing undoes",
        explanation: "A saga that fails undoes what it did, so a step that changes something has `undo f` if the flow may still fail after it, or be left by a broken limit. Put what cannot be undone last.",
    },
    Entry {
        code: TOOL_ARGUMENTS,
        title: "call that no tool takes",
        explanation: "A `ToolCall` that is written out names a tool of a catalogue, and its arguments fit the tool's JSON Schema as far as they are literals.",
    },
];
