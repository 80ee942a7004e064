//! Every limit of this crate, with unit and reason. Leaves the engine's limits (batch targets, mailboxes) to the engine.

/// Bytes that must stay free for a commit to be taken: reopening after a full disk needs room for a flush.
pub const FREE_BYTES_MIN: u64 = 32 << 20;

/// Bytes that even a commit leaves free which only stops runs: a commit that fails half-way ends the process.
pub const FREE_BYTES_LAST: u64 = 1 << 20;

/// Bytes below which `Stats::nearly_full` asks the engine to refuse new runs, so that the running ones can still end.
pub const FREE_BYTES_SOFT: u64 = 256 << 20;

/// Bytes of the ballast file, given back when a disk is too full to reopen the store.
pub const BALLAST_BYTES: u64 = 16 << 20;

/// Bytes of one step or snapshot: the journal counts value bytes in 32 bits, and one commit is held in memory whole.
pub const VALUE_BYTES_MAX: usize = 1 << 30;

/// Events of one step; far above any real step, it only keeps a caller's bug from becoming a giant value.
pub const STEP_EVENTS_MAX: usize = 100_000;

/// Bytes of a table key: far below the journal's 65,535, over which it panics.
pub const TABLE_KEY_BYTES_MAX: usize = 1_024;

/// Segments of one fork's history: a fork of a fork of a fork, far deeper than a person would go. Reading one looks at each.
pub const SEGMENTS_MAX: usize = 1_000;

/// Levels of nesting of a stored value: twice what the JSON parser accepts from outside.
pub const NESTING_MAX: usize = 256;

/// Summaries on one page when the caller names no limit.
pub const PAGE_DEFAULT: usize = 100;

/// Summaries on one page at most.
pub const PAGE_MAX: usize = 1_000;

/// Summaries that one page may look at: a filter that fits nothing must not read the whole store in one call.
pub const PAGE_SCAN_MAX: usize = 4_000;

/// Events, runs or due times that one read returns at most, whatever the caller asks for.
pub const READ_MAX: usize = 100_000;

/// Bytes of a keyspace's memtable: more than all of them get before they are flushed.
pub const MEMTABLE_BYTES: u64 = 32 << 20;

/// Bytes of keys and values after which memtables are turned into tables: what is in none is read from the journals again when the store
/// is opened, at about 100 MiB/s, and new work waits for that.
pub const UNFLUSHED_BYTES: u64 = 8 << 20;

/// Bytes of all journals, the least that the database takes; what is flushed by bytes keeps them below it.
pub const JOURNAL_BYTES_MAX: u64 = 64 << 20;

/// Tables in level 0 before they are merged.
pub const L0_TABLES: u8 = 8;

/// Bytes that a backup writes at once.
pub const BACKUP_BATCH_BYTES: usize = 4 << 20;

/// Bytes of the block cache.
pub const CACHE_BYTES: u64 = 32 << 20;

/// Background threads that flush and merge.
pub const WORKER_THREADS: usize = 2;

/// Milliseconds between two tries to take a held lock.
pub const LOCK_RETRY_MS: u64 = 20;

/// Findings that one check lists; more would say nothing new.
pub const FINDINGS_MAX: usize = 100;

/// Copies of damaged journals that are kept; further starts on the same damage add none.
pub const EVIDENCE_MAX: usize = 8;

/// Keys that one portion of a purge takes away: a commit between those of runs that go on, which should not wait for it.
pub const PURGE_KEYS: usize = 1_000;

/// Runs that one portion of a purge looks at, for the same reason.
pub const PURGE_RUNS: usize = 200;

/// Bytes that must have been taken away before tables are written anew to give their room back.
pub const RECLAIM_BYTES_MIN: u64 = 1 << 20;

/// One in so many bytes of the tables must have been taken away before they are written anew: that costs reading and writing all of them.
pub const RECLAIM_SHARE: u64 = 4;

/// Bytes of a value of an event from which on it stands under its hash: a reference and a look-up cost some 100 bytes and 5 us.
pub const BLOB_BYTES_MIN: usize = 4 << 10;

/// Bytes of a blob that is kept on request: it is held in memory whole, and carried about as one line of an export.
pub const BLOB_BYTES_MAX: usize = 32 << 20;

/// Blobs that the texts of one event keep: more than a tool gives at once.
pub const BLOBS_NAMED_MAX: usize = 1_000;

/// Milliseconds that a blob without an event that names it stays: a worker reports within that.
pub const BLOB_UNNAMED_MS: u64 = 3_600_000;
