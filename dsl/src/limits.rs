//! Every limit of the language crate, each with its unit and reason.
//!
//! Leaves the limits that belong to an edition (fuel, sizes of values) to the checker's edition tables.
//! Invariant: nobody else in this crate writes a bound as a bare number.

/// Bytes of one source file. Offsets are `u32`; a person writes kilobytes, a generator may write megabytes.
pub const SOURCE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Levels of nesting in expressions and types. Bounds the stack of every recursive walk over the tree.
pub const NESTING_MAX: u32 = 128;

/// Diagnostics kept for one file by the parser. Nobody reads more; a hostile file could make millions.
pub const DIAGNOSTICS_MAX: usize = 200;

/// Columns of a source line that a rendered diagnostic shows. Longer lines are cut around the span.
pub const SNIPPET_COLUMNS_MAX: usize = 120;

/// Bytes of a name that the "did you mean" search looks at. The edit distance costs the product of two lengths.
pub const SUGGESTION_BYTES_MAX: usize = 64;

/// Characters of a found token that a message quotes.
pub const QUOTED_CHARS_MAX: usize = 32;

/// Digits of a decimal. 96 bits hold 28 of them whatever they are.
pub const DECIMAL_DIGITS_MAX: usize = 28;

/// Digits of a decimal after the point, as the edition fixes it.
pub const DECIMAL_SCALE_MAX: usize = 18;

/// Defaults that are filled in within each other. Declared defaults can name each other in a ring; people nest two or three.
pub const DEFAULTS_WITHIN_MAX: u32 = 16;
