//! Codes F03xx: types of expressions.
//!
//! Leaves which names exist to F02xx, and the words of a single message to the place that reports it.
//! Invariant: the entries are in the order of their codes.

use super::Entry;
use crate::diag::Code;

/// A value of another type than the wanted one.
pub const WRONG_TYPE: Code = Code(301);
/// Too many or too few arguments.
pub const WRONG_COUNT: Code = Code(302);
/// An argument that the callee does not take, or takes once.
pub const WRONG_ARGUMENT: Code = Code(303);
/// A field that has no value.
pub const MISSING_FIELD: Code = Code(304);
/// A field that has two values.
pub const REPEATED_FIELD: Code = Code(305);
/// A value that cannot stand in a text.
pub const NOT_TEXT: Code = Code(306);
/// Operands that the operator does not take.
pub const WRONG_OPERANDS: Code = Code(307);
/// A secret where its value would be shown or stored.
pub const SECRET_USED: Code = Code(308);
/// An option is wanted.
pub const NOT_OPTION: Code = Code(309);
/// Variants without an arm.
pub const NOT_EXHAUSTIVE: Code = Code(310);
/// An arm that is never taken.
pub const UNREACHABLE_ARM: Code = Code(311);
/// A value that has no variants.
pub const NOT_UNION: Code = Code(312);
/// JSON is used as if its shape were known.
pub const DYNAMIC_JSON: Code = Code(313);
/// A default that is not constant.
pub const NOT_CONSTANT: Code = Code(314);
/// A type that contains itself without end.
pub const ENDLESS_TYPE: Code = Code(315);
/// A function that calls itself.
pub const RECURSION: Code = Code(316);
/// A number outside its type's range.
pub const NUMBER_RANGE: Code = Code(317);
/// A type with the wrong argument.
pub const TYPE_ARGUMENTS: Code = Code(318);
/// A field that would hide the tag.
pub const RESERVED_FIELD: Code = Code(319);

/// What the codes mean.
pub const ENTRIES: &[Entry] = &[
    Entry {
        code: WRONG_TYPE,
        title: "wrong type",
        explanation: "Every place wants one type. A value fits where its type is the wanted one, where the wanted one is its option (`T?`), and where an approved value is used as the value.",
    },
    Entry {
        code: WRONG_COUNT,
        title: "wrong number of arguments",
        explanation: "A call gives every parameter that has no default, by position or by name.",
    },
    Entry {
        code: WRONG_ARGUMENT,
        title: "wrong argument",
        explanation: "An argument by name must be a parameter that has no value yet, and no argument by position may follow it.",
    },
    Entry {
        code: MISSING_FIELD,
        title: "missing field",
        explanation: "A record gives every field that has neither a default nor an option as its type.",
    },
    Entry { code: REPEATED_FIELD, title: "repeated field", explanation: "A field is given once." },
    Entry {
        code: NOT_TEXT,
        title: "cannot be shown as text",
        explanation: "Texts, numbers, `bool`, times, durations and JSON can stand in a text. Write `json(v)` for other values and `v ?? \"…\"` for options.",
    },
    Entry {
        code: WRONG_OPERANDS,
        title: "wrong operands",
        explanation: "Both sides of an operator have one type that the operator is made for: numbers, texts, lists, times and durations for `+`; values with an order for `<`.",
    },
    Entry {
        code: SECRET_USED,
        title: "secret used",
        explanation: "A secret is a handle that only a worker can open. It can be handed to an activity, and nothing else can be done with it.",
    },
    Entry {
        code: NOT_OPTION,
        title: "not an option",
        explanation: "`??` and `as` in a condition are for options (`T?`): values that may be `none`.",
    },
    Entry {
        code: NOT_EXHAUSTIVE,
        title: "not every variant has an arm",
        explanation: "Arms cover every variant of the type, the last one of each without a condition. There is no arm for the rest, so that a new variant is never overlooked.",
    },
    Entry {
        code: UNREACHABLE_ARM,
        title: "arm is never taken",
        explanation: "An earlier arm without a condition takes the same variant.",
    },
    Entry {
        code: NOT_UNION,
        title: "not a union",
        explanation: "`match`, `is` and arms tell the variants of a union apart.",
    },
    Entry {
        code: DYNAMIC_JSON,
        title: "json must be narrowed",
        explanation: "Any JSON may be anything. `T.from(value)` gives `T?`: the value if it has that shape.",
    },
    Entry {
        code: NOT_CONSTANT,
        title: "default is not constant",
        explanation: "A default is made of literals, constructors and functions of them. It sees no variables and binds none.",
    },
    Entry {
        code: ENDLESS_TYPE,
        title: "type without end",
        explanation: "A type may contain itself in a list, a map, an option or some variants only. Otherwise no value of it could be written down.",
    },
    Entry {
        code: RECURSION,
        title: "recursive function",
        explanation: "Functions do not call themselves, directly or through others, so that every expression ends. Use a comprehension or a fold.",
    },
    Entry {
        code: NUMBER_RANGE,
        title: "number out of range",
        explanation: "An `int` has 64 bits with sign. A `decimal` has up to 28 digits, 18 of them after the point.",
    },
    Entry {
        code: TYPE_ARGUMENTS,
        title: "wrong type argument",
        explanation: "`list`, `map`, `approved`, `Slot`, `Verdict`, `Ended`, `doubt` and `handle` take one type in angle brackets, all other types none.",
    },
    Entry {
        code: RESERVED_FIELD,
        title: "field named `type`",
        explanation: "A variant, an error and a message are written as JSON with their name in `\"type\"`, so none of their fields can be called that.",
    },
];
