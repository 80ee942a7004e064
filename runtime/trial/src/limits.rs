//! Every limit of the crate, with its unit and its reason.

/// Events of one test: a test that makes more goes round in circles.
pub(crate) const EVENTS_MAX: usize = 5_000;

/// Characters of a value in a message: the rest is cut off, the difference is named.
pub(crate) const VALUE_CHARS_MAX: usize = 300;

/// States of a path that a message shows from its beginning, and as many from its end.
pub(crate) const PATH_SHOWN: usize = 12;

/// Events that a failure shows.
pub(crate) const EVENTS_SHOWN: usize = 6;

/// Emitted values that a message lists.
pub(crate) const LISTED_MAX: usize = 8;

/// The moment at which tests begin, in milliseconds since 1970: 2026-01-01T00:00:00Z. Fixed, so that a test does the same on every day.
pub(crate) const BEGIN_MS: i64 = 1_767_225_600_000;
