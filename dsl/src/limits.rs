//! Every limit of the language crate, each with its unit and reason.
//!
//! Leaves the limits that belong to an edition (fuel, sizes of values) to the checker's edition tables.
//! Invariant: nobody else in this crate writes a bound as a bare number.

/// Bytes of one source file. A person writes kilobytes, a generator may write a megabyte. It bounds the memory too: of the text that
/// needs most, a token for every byte, reading takes [`SOURCE_MEMORY_PER_BYTE_MAX`] times as much.
pub const SOURCE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Bytes of memory that reading a source may take for each of its bytes: a token, its place in the tree, and what stands around it.
pub const SOURCE_MEMORY_PER_BYTE_MAX: usize = 512;

/// Names that are looked for among those in sight because one is unknown. Each looks at every name, and nobody reads hundreds.
pub const SUGGESTIONS_MAX: u32 = 200;

/// Names of a file that a message lists. More is a page to read, not a hint.
pub const NAMES_SHOWN_MAX: usize = 12;

/// Levels of nesting in expressions and types. Bounds the stack of every recursive walk over the tree.
pub const NESTING_MAX: u32 = 128;

/// Diagnostics kept for one file by the parser. Nobody reads more; a hostile file could make millions.
pub const DIAGNOSTICS_MAX: usize = 200;

/// Rounds of applying fixes to one file. Every round leaves fewer mistakes; a round of its own is needed only for what another uncovers.
pub const FIX_ROUNDS_MAX: usize = 64;

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

/// Tokens that the search for a misplaced `->` looks at. A line of code is shorter; a hostile one may be endless.
pub const GOAL_SEARCH_TOKENS_MAX: usize = 64;

/// Columns of a label in a diagram. A picture is an outline; the source has the rest.
pub const GRAPH_LABEL_COLUMNS_MAX: usize = 40;

/// Columns of the title of a flow in a diagram.
pub const GRAPH_TITLE_COLUMNS_MAX: usize = 60;

/// Columns of a diagram written as text: a terminal's usual width and some, still readable when printed.
pub const GRAPH_TEXT_COLUMNS_MAX: usize = 100;

/// Lines of one label in a drawn diagram. Further arrows between the same two nodes are counted, not listed.
pub const GRAPH_LABEL_LINES_MAX: usize = 8;

/// Levels of an expression that a label shows. Deeper text would be cut off; bounds the stack of the printer.
pub const GRAPH_NESTING_MAX: usize = 24;

/// Items of one drawn flow (nodes, labels, bends) up to which its rows are ordered with care. Beyond it few passes must do, so
/// that a huge flow is drawn in bounded time.
pub const GRAPH_ITEMS_CAREFUL_MAX: usize = 4_000;

/// Columns of a formatted line. Two files side by side fit on a wide screen; a text literal may be longer.
pub const FORMAT_COLUMNS_MAX: usize = 120;

/// Columns by which a block stands further to the right than what it is in.
pub const FORMAT_INDENT_COLUMNS: usize = 2;

/// The rightmost column to which a long arrow moves the acts of its neighbours.
pub const FORMAT_ACTS_COLUMN_MAX: usize = 50;

/// The rightmost column to which a long arrow moves the goals of its neighbours.
pub const FORMAT_GOALS_COLUMN_MAX: usize = 64;

/// Milliseconds of the longest duration: 100 years, so that a sum with a time never overflows.
pub const DURATION_MS_MAX: i64 = 100 * 366 * 24 * 3_600_000;
