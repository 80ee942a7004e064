//! What this server takes and does at most.

/// Bytes of a request's head: clients send some hundred.
pub(crate) const HEAD_BYTES_MAX: u64 = 64 << 10;
/// Bytes of a request's body: many times what fits into the model's context.
pub(crate) const BODY_BYTES_MAX: usize = 1 << 20;
/// Answers that are made at once: each has a cache of its own.
pub(crate) const ANSWERS_MAX: usize = 8;
/// Tokens of a conversation with its answer. The model could take twice as many, in four times the time.
pub(crate) const CONTEXT_TOKENS_MAX: usize = 4096;
/// How long a client may take to send its request, in seconds.
pub(crate) const REQUEST_SECONDS_MAX: u64 = 10;
