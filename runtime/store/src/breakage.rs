//! Promises that can be broken on purpose, one at a time, so that a test can show that the tests notice each of them.
//!
//! Leaves naming a witness for each to the tests of the runtime (`tests/engine/promises.rs`). Invariant: without the feature
//! `breakages`, which nothing but that test turns on, [`breaks`] is the constant `false`, and the compiler removes what depends on it.

/// A promise to break: what is done instead of what was promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breakage {
    /// A commit returns before its sync: a crash forgets it. (In memory; for the disk the source is looked at.)
    SkipSync,
    /// A write is taken although the history is not where the writer thinks.
    AcceptStaleWrite,
    /// A step does not name the one before it.
    UnlinkChain,
    /// Runs with work are not listed for recovery.
    DropReadyView,
    /// Due times are not listed for recovery.
    DropDueView,
    /// Due times that are over stay listed.
    KeepOldDueView,
    /// A fork does not know whose history it shares.
    ForgetLineage,
    /// A run does not know its forks.
    ForgetForkReference,
    /// The events that forks share with a deleted run are taken away.
    PurgeWhatForksShare,
    /// It is forgotten what a deleted run had begun of its forks' operations.
    ForgetBegunOfDeleted,
    /// A step does not say which blobs it holds or names.
    ForgetBlobReference,
    /// Blobs go an hour after they came, whoever names them.
    SweepNamedBlobs,
    /// What deleted runs left is taken away by the process that deleted them only.
    SkipPurge,
    /// A backup lacks events that were acknowledged before it.
    BackUpLess,
    /// Two processes own one data directory.
    SkipLock,
    /// Nothing outside the database says which commit was the last.
    SkipMark,
    /// The last bytes of the disk are taken.
    IgnoreFullDisk,
    /// Requests and reports are answered before what they caused is durable.
    AnswerEarly,
    /// What changes nothing is answered before that which makes it so is durable.
    AnswerBeforeEarlierSteps,
    /// A `once` attempt is handed out before its beginning is durable.
    HandOutEarly,
    /// Streams show what is not durable.
    ShowEarly,
    /// A run is told that its news arrived before what they caused is durable.
    AcknowledgeNewsEarly,
    /// A commit that failed is acknowledged.
    AcknowledgeFailedSync,
    /// A commit that was refused for lack of room is acknowledged.
    AcknowledgeOnFullDisk,
    /// A `once` attempt is handed out without a record of it.
    SkipBegun,
    /// A `once` attempt that was begun and lost is run again.
    RunBegunAgain,
    /// Each attempt has an idempotency key of its own.
    ChangeKeyWithAttempt,
    /// Tokens are believed, whoever made them.
    AcceptForgedToken,
    /// A worker keeps an attempt that is not the open one.
    AdoptStaleAttempt,
    /// What a worker of the last epoch may have in hand is handed out at once.
    SkipAdoption,
    /// A deadline that fell due during an outage does not wait for workers to come back.
    ExpireBeforeAdoption,
    /// Workers are given up before their leases end.
    EndLeasesEarly,
    /// What a dead worker had in hand is not given back.
    KeepTasksOfTheDead,
    /// A late input goes before the deadline that it missed.
    TakeLateInputFirst,
    /// Timers fire before they are due.
    FireEarly,
    /// Runs are not put back to work after a restart.
    SkipRecovery,
    /// A start takes a run that is there for new.
    StartAgain,
    /// Ids that differ only in case are taken for different runs.
    IgnoreCase,
    /// A fork runs what its parent has begun since.
    ForgetBegunSince,
    /// A run takes a stranger that has the name of its child for its child.
    TakeStrangersForChildren,
    /// A run stops a stranger that has the name of its child.
    StopStrangers,
    /// News for another run is forgotten by a restart.
    ForgetNews,
    /// A migrated run is replayed with the machine that it left.
    ReplayWithOldMachine,
    /// An export lacks an event.
    ExportLess,
    /// An export has an event twice.
    ExportMore,
    /// An import keeps all but the last event.
    ImportLess,
    /// What was in hand where a run was exported is not in doubt where it is imported.
    ForgetDoubtOnImport,
    /// The item of a batch that has its row is done again.
    ForgetRows,
    /// The run of a due time has another name each time that it is started.
    RenameDueRuns,
    /// A due time counts as decided before its run is started.
    DecideBeforeStart,
    /// The clock goes on from the wall, wherever the newest event is.
    SetClockBack,
}

/// Whether promises can be broken in this build.
pub const ENABLED: bool = cfg!(feature = "breakages");

/// Tells whether a promise is broken.
#[cfg(not(feature = "breakages"))]
#[inline]
#[must_use]
pub const fn breaks(_: Breakage) -> bool {
    false
}

/// Tells whether a promise is broken: the variable `OUTLAST_BREAKS` of the process names one, or none.
#[cfg(feature = "breakages")]
#[must_use]
pub fn breaks(promise: Breakage) -> bool {
    static BROKEN: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    *BROKEN.get_or_init(|| std::env::var("OUTLAST_BREAKS").unwrap_or_default()) == format!("{promise:?}")
}
