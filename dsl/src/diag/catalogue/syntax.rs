//! Codes F01xx: what the lexer and the parser report.
//!
//! Leaves the words of a single message to the place that reports it. F0140 and above are habits from other
//! languages; each has a fix. Invariant: the entries are in the order of their codes.

use super::Entry;
use crate::diag::Code;

/// Something else was expected.
pub const UNEXPECTED: Code = Code(101);
/// A bracket is never closed.
pub const UNCLOSED: Code = Code(102);
/// A closing bracket without an opening one.
pub const STRAY_CLOSER: Code = Code(103);
/// A text is never closed.
pub const UNTERMINATED_TEXT: Code = Code(104);
/// An expression inside a text is never closed.
pub const UNTERMINATED_HOLE: Code = Code(105);
/// An unknown escape in a text.
pub const BAD_ESCAPE: Code = Code(106);
/// A character that has no meaning.
pub const BAD_CHARACTER: Code = Code(107);
/// A character that reorders the text.
pub const BIDI_CONTROL: Code = Code(108);
/// A malformed number or duration.
pub const BAD_NUMBER: Code = Code(109);
/// A name in the wrong style.
pub const BAD_NAME: Code = Code(110);
/// A reserved word as a name.
pub const RESERVED_NAME: Code = Code(111);
/// Too many levels of nesting.
pub const TOO_DEEP: Code = Code(112);
/// The file is too long.
pub const TOO_LONG: Code = Code(113);
/// Parts in another order than the grammar's.
pub const WRONG_ORDER: Code = Code(114);
/// A part that may stand once stands twice.
pub const REPEATED: Code = Code(115);
/// A clause is missing.
pub const MISSING_CLAUSE: Code = Code(116);
/// A wait without a bound.
pub const MISSING_BOUND: Code = Code(117);
/// A declaration at the wrong level.
pub const MISPLACED: Code = Code(118);
/// Comparisons do not chain.
pub const CHAINED_COMPARISON: Code = Code(119);
/// An operand that needs parentheses.
pub const NEEDS_PARENTHESES: Code = Code(120);
/// A comma is missing.
pub const MISSING_COMMA: Code = Code(121);
/// A state has one effect, and it stands first.
pub const SECOND_EFFECT: Code = Code(122);
/// No value is written `none`.
pub const NULL: Code = Code(140);
/// And is written `and`.
pub const AND_SIGN: Code = Code(141);
/// Or is written `or`.
pub const OR_SIGN: Code = Code(142);
/// Not is written `not`.
pub const NOT_SIGN: Code = Code(143);
/// An expression in a text needs no dollar.
pub const DOLLAR_HOLE: Code = Code(144);
/// A match names every variant.
pub const CATCH_ALL: Code = Code(145);
/// A map begins with the word `map`.
pub const BARE_MAP: Code = Code(146);
/// An arrow ends with where it goes.
pub const MISSING_GOAL: Code = Code(147);
/// Equality is written `==`.
pub const SINGLE_EQUALS: Code = Code(148);
/// A length is asked with `size`.
pub const LENGTH: Code = Code(149);
/// No semicolons.
pub const SEMICOLON: Code = Code(150);
/// Texts stand in double quotes.
pub const SINGLE_QUOTES: Code = Code(151);
/// Comments begin with two slashes.
pub const FOREIGN_COMMENT: Code = Code(152);
/// `->` moves, `=>` gives a value.
pub const WRONG_ARROW: Code = Code(153);
/// A second branch is another `if`.
pub const ELSE_IF: Code = Code(154);
/// A choice between values is written with words.
pub const TERNARY: Code = Code(155);
/// A value is built with braces.
pub const CALLED_CONSTRUCTOR: Code = Code(156);
/// Two names without parentheses.
pub const TUPLE: Code = Code(157);
/// Equality is written `==`.
pub const TRIPLE_EQUALS: Code = Code(158);
/// Names of fields have no quotes.
pub const QUOTED_FIELD: Code = Code(159);

/// The table of this area.
pub const ENTRIES: &[Entry] = &[
    Entry {
        code: UNEXPECTED,
        title: "something else was expected",
        explanation: "The text does not follow the grammar at this place. The message says what could stand there; the rest of the file was still read, so other diagnostics count.",
    },
    Entry {
        code: UNCLOSED,
        title: "a bracket is never closed",
        explanation: "Every `{`, `(` and `[` needs its closing partner. The note shows where the bracket was opened.",
    },
    Entry {
        code: STRAY_CLOSER,
        title: "a closing bracket without an opening one",
        explanation: "Nothing is open here that this bracket could close. Remove it, or look for a bracket that was closed too early above.",
    },
    Entry {
        code: UNTERMINATED_TEXT,
        title: "a text is never closed",
        explanation: "A text in quotes ends on the line on which it began. For several lines use three quotes: the text begins on the next line, and common indent is removed.",
    },
    Entry {
        code: UNTERMINATED_HOLE,
        title: "an expression inside a text is never closed",
        explanation: "`{` in a text opens an expression that ends with `}` on the same line. A brace that is meant as a character is written `\\{`.",
    },
    Entry {
        code: BAD_ESCAPE,
        title: "an unknown escape in a text",
        explanation: "Texts know the escapes \\n \\t \\r \\\" \\\\ \\{ \\} \\$ and \\u{1F600} (the number of a Unicode character in hexadecimal). A backslash itself is written twice.",
    },
    Entry {
        code: BAD_CHARACTER,
        title: "a character that has no meaning",
        explanation: "The language is written in ASCII; other characters stand in texts and comments only.",
    },
    Entry {
        code: BIDI_CONTROL,
        title: "a character that reorders the text",
        explanation: "Bidirectional control characters make a text look different from what it means, so no source may hold them. In a text they can be written as an escape.",
    },
    Entry {
        code: BAD_NUMBER,
        title: "a malformed number or duration",
        explanation: "Numbers are `12_000` and `0.40`, with underscores between digits only. Durations are whole numbers with the units d h m s ms, each at most once and the largest first: `90s`, `1h30m`.",
    },
    Entry {
        code: BAD_NAME,
        title: "a name in the wrong style",
        explanation: "Types, variants, flows, states, messages and errors are `UpperCamel`; everything else is `lower_snake`. Names are ASCII.",
    },
    Entry {
        code: RESERVED_NAME,
        title: "a reserved word as a name",
        explanation: "A few words cannot name variables, because expressions and arrows begin or end with them. Fields may have any name; a pattern binds such a field to another name: `{ end: finish }`.",
    },
    Entry {
        code: TOO_DEEP,
        title: "too many levels of nesting",
        explanation: "Expressions and types nest at most 128 levels, so that no tool runs out of stack. Move a part into a `fn`.",
    },
    Entry { code: TOO_LONG, title: "the file is too long", explanation: "A source file has at most 16 MiB." },
    Entry {
        code: WRONG_ORDER,
        title: "parts in another order than the grammar's",
        explanation: "There is one order for the clauses of a declaration and for the parts of an arrow, so that every flow reads the same way.",
    },
    Entry {
        code: REPEATED,
        title: "a part that may stand once stands twice",
        explanation: "Merge the two, or remove one.",
    },
    Entry {
        code: MISSING_CLAUSE,
        title: "a clause is missing",
        explanation: "Every activity says how long an attempt may take (`within`) and what a repetition does (`effect`).",
    },
    Entry {
        code: MISSING_BOUND,
        title: "a wait without a bound",
        explanation: "Waits are bounded: write `within 24h`, `until T`, or, if it is meant, `within forever`.",
    },
    Entry {
        code: MISPLACED,
        title: "a declaration at the wrong level",
        explanation: "States, messages and data stand inside a flow; types, activities and flows stand outside. Often a `}` too many or too few is the cause.",
    },
    Entry {
        code: CHAINED_COMPARISON,
        title: "comparisons do not chain",
        explanation: "`a < b < c` has no meaning here. Write `a < b and b < c`.",
    },
    Entry {
        code: NEEDS_PARENTHESES,
        title: "an operand that needs parentheses",
        explanation: "`if`, `match` and `not` bind weaker than operators. Put them in parentheses to use them as an operand.",
    },
    Entry {
        code: MISSING_COMMA,
        title: "a comma is missing",
        explanation: "The parts of a list are separated by commas; the last one may have one too.",
    },
    Entry {
        code: SECOND_EFFECT,
        title: "a state has one effect, and it stands first",
        explanation: "A state has one effect and then its arrows. Make a second state, or use `steps`, `each` or `parallel`.",
    },
    Entry {
        code: NULL,
        title: "no value is written `none`",
        explanation: "There is no null. An optional type `T?` has the value `none`, and `??` gives a default.",
    },
    Entry {
        code: AND_SIGN,
        title: "and is written `and`",
        explanation: "The operators on booleans are words: `and`, `or`, `not`.",
    },
    Entry {
        code: OR_SIGN,
        title: "or is written `or`",
        explanation: "The operators on booleans are words: `and`, `or`, `not`.",
    },
    Entry {
        code: NOT_SIGN,
        title: "not is written `not`",
        explanation: "The operators on booleans are words: `and`, `or`, `not`. `not` binds weaker than comparison.",
    },
    Entry {
        code: DOLLAR_HOLE,
        title: "an expression in a text needs no dollar",
        explanation: "Texts are filled in by `{x}`. For a dollar sign before a value write `\\${x}`.",
    },
    Entry {
        code: CATCH_ALL,
        title: "a match names every variant",
        explanation: "There is no catch-all pattern: a new variant should be a question at every place that matches. Name the variants that are left.",
    },
    Entry {
        code: BARE_MAP,
        title: "a map begins with the word `map`",
        explanation: "Braces alone would be mistaken for blocks. Write `map { key: value }`, or `map {}` for an empty one.",
    },
    Entry {
        code: MISSING_GOAL,
        title: "an arrow ends with where it goes",
        explanation: "Every arrow, branch and limit ends with `-> State`, `-> stay`, `-> end v` or `-> fail E`. To remain in the state, say `-> stay`.",
    },
    Entry {
        code: SINGLE_EQUALS,
        title: "equality is written `==`",
        explanation: "`=` gives a value, `==` compares.",
    },
    Entry {
        code: LENGTH,
        title: "a length is asked with `size`",
        explanation: "Lists, maps and texts have no fields or methods. Write `size(xs)`.",
    },
    Entry {
        code: SEMICOLON,
        title: "no semicolons",
        explanation: "White space separates; nothing ends with a semicolon.",
    },
    Entry {
        code: SINGLE_QUOTES,
        title: "texts stand in double quotes",
        explanation: "Single quotes have no meaning.",
    },
    Entry {
        code: FOREIGN_COMMENT,
        title: "comments begin with two slashes",
        explanation: "A comment is `// …` to the end of the line; a documentation comment is `/// …`.",
    },
    Entry {
        code: WRONG_ARROW,
        title: "`->` moves, `=>` gives a value",
        explanation: "Arrows, branches and limits go somewhere with `->`. The arms of a `match` expression give a value with `=>`.",
    },
    Entry {
        code: ELSE_IF,
        title: "a second branch is another `if`",
        explanation: "The branches of `choose` are `if … -> A if … -> B else -> C`.",
    },
    Entry {
        code: TERNARY,
        title: "a choice between values is written with words",
        explanation: "Write `if cond then a else b`.",
    },
    Entry {
        code: CALLED_CONSTRUCTOR,
        title: "a value is built with braces",
        explanation: "Write `Text { text: \"hello\" }`; parentheses call functions and enter states.",
    },
    Entry {
        code: TUPLE,
        title: "two names without parentheses",
        explanation: "`for key, value in m` takes two names as they are. There are no tuples.",
    },
    Entry {
        code: TRIPLE_EQUALS,
        title: "equality is written `==`",
        explanation: "There is one equality, `==`, and one inequality, `!=`.",
    },
    Entry {
        code: QUOTED_FIELD,
        title: "names of fields have no quotes",
        explanation: "Write `{ name: value }`. A map with keys that are computed is `map { \"key\": value }`.",
    },
];
