//! Every limit of the kernel, with its unit and its reason.
//!
//! Leaves limits of workers, stores and the network to their crates. Invariant: limits are part of the edition; changing one
//! changes what old histories mean, so a new value needs a new edition.

/// Bytes of one value: what still fits a report, a message and a snapshot.
pub const VALUE_BYTES_MAX: u64 = 64 << 20;

/// Levels of nesting in one value: decoders of stored values recurse, and JSON readers stop at 128 levels.
pub const VALUE_DEPTH_MAX: u16 = 64;

/// Steps of evaluation in one event: about a tenth of a second.
pub const FUEL_MAX: u64 = 2_000_000;

/// Levels of nested evaluation: the stack of a thread is the bound.
pub const EVAL_DEPTH_MAX: u32 = 160;

/// Transitions in one event; more is a loop that takes no input.
pub const TRANSITIONS_MAX: u32 = 10_000;

/// Operations that one run may have open: each costs memory and a place in the index of due times.
pub const OPERATIONS_MAX: usize = 100_000;

/// Levels of nested flows and groups: paths and walks over the tree stay short.
pub const NESTING_MAX: u32 = 32;

/// Unread messages of one run.
pub const MAILBOX_MESSAGES_MAX: usize = 1_000;

/// Bytes of the unread messages of one run.
pub const MAILBOX_BYTES_MAX: u64 = 8 << 20;

/// How deep runs may spawn runs.
pub const SPAWN_DEPTH_MAX: usize = 32;

/// Milliseconds that a cancelled or failing run waits for the runs that it spawned to stop, before it undoes what it did.
pub const CHILDREN_STOP_MS_MAX: u64 = 5 * 60_000;

/// Losses of one operation before it counts as failed, if no retry policy says otherwise.
pub const LOSSES_MAX: u32 = 20;

/// How often a verifier's `NotHappened` leads to another attempt.
pub const NOT_HAPPENED_MAX: u32 = 3;

/// Decided questions that a state remembers, so that a late answer is told who was first.
pub const DECIDED_QUESTIONS_MAX: usize = 64;

/// Milliseconds of the shortest period of `every`: a zero period would fill the history.
pub const EVERY_MS_MIN: u64 = 1_000;

/// Milliseconds of the longest duration, as the language has it.
pub const DURATION_MS_MAX: u64 = outlast_dsl::limits::DURATION_MS_MAX.unsigned_abs();

/// Digits after the point of a decimal.
pub const DECIMAL_SCALE_MAX: u32 = 18;

/// Percent by which a retry wait is spread, so that many runs do not retry at once.
pub const JITTER_PERCENT: u64 = 20;

/// Characters of a value that a fault or refusal quotes.
pub const QUOTE_CHARS_MAX: usize = 120;

/// Characters of a failure's text that are kept: people read it, nothing computes with it.
pub const FAILURE_CHARS_MAX: usize = 64 << 10;
