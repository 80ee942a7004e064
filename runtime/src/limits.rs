//! Every limit of this crate, each with its unit and its reason. Numbers only; what happens at a limit is said where it is met.

/// Milliseconds of a worker's lease: a worker that is silent for so long has lost its tasks. Long enough for a pause of a laptop's
/// network, short enough that a lost machine does not hold work up for minutes.
pub const LEASE_MS: u64 = 30_000;

/// Milliseconds that one wait for the clock takes at most: a suspend stops the waiting, not the clock, so look again.
pub const SLEEP_MS_MAX: u64 = 10_000;

/// Milliseconds that workers of the last process have for coming back: a few of their reconnect attempts. Those whose process is seen to
/// live have as long as a lease.
pub const ADOPT_WITHIN_MS: u64 = 5_000;

/// Runs in memory, over all shards: finding idle ones looks at all of them.
pub const LIVE_RUNS_MAX: usize = 10_000;

/// Runs in memory, of all shards, in which nothing goes on: enough for the conversations of a day, whose next message need not read them again.
pub const RESTING_RUNS_MAX: usize = 1_000;

/// Bytes of the states of runs in memory, over all shards, if nothing else is said: a part of what a small machine has.
pub const MEMORY_BUDGET_BYTES: usize = 512 << 20;

/// MiB of memory that may be asked for: less does not hold the runs at work.
pub const MEMORY_BUDGET_MIB_MIN: u64 = 16;

/// Bytes that a run in memory has beside its state: what was told of it, its place in maps.
pub const LIVE_BYTES: usize = 2_048;

/// Bytes of a request of a driver or client: flows, inputs and messages are small; bigger values belong in files.
pub const REQUEST_BYTES_MAX: usize = 1024 * 1024;

/// Bytes of a worker's report: one value of the largest size that a history takes (64 MiB), with room for its envelope.
pub const REPORT_BYTES_MAX: usize = 70 * 1024 * 1024;

/// Bytes of an answer that the client reads, and of one line of a stream: the largest report and what surrounds it.
pub const ANSWER_BYTES_MAX: usize = 80 * 1024 * 1024;

/// Of a process's file descriptors, a listener's connections take one in so many: there are two or three listeners, and the store.
pub const CONNECTIONS_SHARE: usize = 4;

/// Connections that a listener serves at once if there are hardly any file descriptors.
pub const CONNECTIONS_MIN: usize = 8;

/// Connections that a listener serves at once; the next ones wait in the system's queue.
pub const CONNECTIONS_MAX: usize = 1_024;

/// Milliseconds that a client has for sending the head of a request.
pub const HEAD_MS_MAX: u64 = 30_000;

/// The same for connections that were accepted when more than half of the places were taken: who has something to say soon gets one.
pub const CROWDED_HEAD_MS_MAX: u64 = 1_000;

/// A body that says it has more bytes than this is refused before it is read.
pub const BODY_BYTES_ABSURD: u64 = 1 << 30;

/// Milliseconds that a client has for sending the body of a request: 70 MiB over a slow line, and no more.
pub const BODY_MS_MAX: u64 = 120_000;

/// Milliseconds that one `wait=` takes at most: below the patience of common proxies; the client asks again.
pub const WAIT_MS_MAX: u64 = 300_000;

/// Milliseconds between signs of life on a silent stream: below the patience of common proxies.
pub const STREAM_PING_MS: u64 = 15_000;

/// Milliseconds that a stream's reader may leave its buffer full before it is dropped; it comes back with its last event id.
pub const STREAM_STALL_MS_MAX: u64 = 30_000;

/// Bytes that wait for a stream's reader: hundreds of slow ones must fit into memory.
pub const STREAM_BYTES_MAX: u32 = 1 << 20;

/// Frames that wait for a stream's reader.
pub const STREAM_FRAMES_MAX: usize = 64;

/// Milliseconds that open requests have for their end when the server stops.
pub const DRAIN_MS_MAX: u64 = 300;

/// Events in one page of a history, if the client names no number, and at most.
pub const EVENTS_PAGE: usize = 200;
/// See [`EVENTS_PAGE`].
pub const EVENTS_PAGE_MAX: usize = 1_000;

/// Ends of reads of histories that are kept, for whoever reads on: as many people as read a history page by page at once.
pub const WALKS_KEPT: usize = 8;
/// Bytes of the state at such an end; a larger one is folded again.
pub const WALK_BYTES_MAX: usize = 2 << 20;
/// States of a run's way that are told: what a picture shows of more would not differ.
pub const WAY_STATES_MAX: usize = 10_000;

/// Runs in one page of a list, at most.
pub const RUNS_PAGE_MAX: usize = 1_000;

/// Bytes of a socket's path that every system takes; longer ones are reached through their directory.
pub const SOCKET_PATH_BYTES_MAX: usize = 100;

/// Milliseconds for opening a connection.
pub const CONNECT_MS_MAX: u64 = 5_000;

/// Milliseconds for the answer to a request that does not wait for anything.
pub const ANSWER_MS_MAX: u64 = 60_000;

/// Seconds that a `Retry-After` asks for.
pub const RETRY_AFTER_S: u64 = 1;

/// Milliseconds before a worker is started again after its first early death; doubled after each further one.
pub const RESTART_MS_MIN: u64 = 100;

/// Milliseconds before a worker is started again, at most: a person who repairs the cause should not wait long.
pub const RESTART_MS_MAX: u64 = 5_000;

/// Milliseconds of life after which a worker's earlier deaths are forgotten.
pub const RESTART_RESET_MS: u64 = 60_000;

/// Workers that one runtime supervises: two for each environment that is in use at once.
pub const SUPERVISED_MAX: usize = 64;

/// Milliseconds between looks at what cannot tell by itself: directories that were missing.
pub const SUPERVISOR_LOOK_MS: u64 = 2_000;

/// Milliseconds between looks at a process that is not our child.
pub const WORKER_LOOK_MS: u64 = 50;

/// Milliseconds that idle workers have for their end before they are killed.
pub const WORKER_STOP_MS_MAX: u64 = 2_000;

/// Bytes of a worker's log before it is begun anew.
pub const WORKER_LOG_BYTES_MAX: u64 = 1024 * 1024;

/// Milliseconds that opening a data directory waits for an owner that does not answer (yet).
pub const ATTACH_MS_MAX: u64 = 10_000;

/// Milliseconds between two tries to open or attach, at least and at most: jittered, so that those who race do not go in step.
pub const ATTACH_RETRY_MS: (u64, u64) = (20, 120);

/// Milliseconds between flushes of the store, so that a quiet keyspace does not keep old journals alive.
pub const FLUSH_EVERY_MS: u64 = 300_000;

/// Milliseconds for reading a whole store: at about a million events a second, and some for a cold disk.
pub const DOCTOR_MS_MAX: u64 = 600_000;
/// Bytes of a task token: a run id, a boot id and some numbers fit several times.
pub const TOKEN_BYTES_MAX: usize = 2_048;

/// Bytes of a worker's name and of its boot id: they stand in events and keys.
pub const NAME_BYTES_MAX: usize = 200;

/// Milliseconds for which the rates of queues are told: a minute.
pub const RATE_WINDOW_MS: i64 = 60_000;

/// Milliseconds for which one task holds its queue at most: a count of tokens that is worth more is a mistake of whoever counted.
pub const RATE_DEBT_MS_MAX: i64 = 3_600_000;

/// Bytes of a task's input that make a token, roughly; what its worker reports puts it right.
pub const TOKEN_BYTES: u64 = 4;

/// Milliseconds between two looks whether a process of the last epoch still lives, while it is waited for: with all of them dead,
/// work goes on within a second.
pub const PROCESS_LOOK_MS: u64 = 100;

/// Milliseconds between two looks whether a process that has tasks in hand still lives: a loss shows in seconds, not after the lease.
pub const HOLDER_LOOK_MS: u64 = 1_000;

/// Milliseconds after which a worker is told again to stop an attempt: an answer of `control` may have been lost.
pub const STOP_AGAIN_MS: u64 = 5_000;

/// Tokens that one worker is told to stop although it does not have their tasks: it registers again if there are more.
pub const UNWANTED_MAX: usize = 1_000;

/// Bytes after which a group commit takes no further step: larger groups cost latency and gain nothing.
pub const BATCH_BYTES: usize = 1 << 20;

/// Events after which a group commit takes no further step, for the same reason.
pub const BATCH_EVENTS: usize = 2_000;

/// Questions that the rules of a run refuse after one event: more than a flow asks at once.
pub const REFUSALS_PER_EVENT: usize = 100;

/// Timers that one step may fire: more than a run can sensibly have due at once; the rest follow in the next step.
pub const TIMERS_PER_STEP: usize = 1_000;

/// Events before the first snapshot: folding fewer is faster than reading a snapshot.
pub const SNAPSHOT_EVENTS_MIN: usize = 64;

/// Events that are read from the store at once.
pub const HISTORY_PAGE: usize = 1_000;

/// Bytes after which a page of an export ends: a client holds a page in memory.
pub const EXPORT_PAGE_BYTES: usize = 8 << 20;

/// Events that an export reads from the store at once.
pub const EXPORT_PAGE_EVENTS: usize = 100;

/// Events of a run that is imported: they are kept in one step.
pub const IMPORT_EVENTS_MAX: usize = 100_000;

/// Bytes of an import: it is checked and kept as a whole.
pub const IMPORT_BYTES_MAX: usize = 256 << 20;

/// Milliseconds for what reads or writes a whole run or store: minutes for gigabytes.
pub const WHOLE_MS_MAX: u64 = 3_600_000;

/// Runs that are weighed at once: each history is read whole.
pub const USAGE_PAGE: usize = 100;

/// Runs that one look at a tree of forks shows: more than anyone reads.
pub const TREE_RUNS_MAX: usize = 1_000;

/// Milliseconds that due times are read from the store ahead: a run that waits longer costs no memory.
pub const DUE_WINDOW_MS: u64 = 60_000;

/// Due times that are read at once.
pub const DUE_PAGE: usize = 1_000;

/// Frames that a watcher may lag behind before it has to resume from the store.
pub const WATCH_FRAMES: usize = 1_024;

/// Bytes that a watcher may lag behind before it has to resume from the store.
pub const WATCH_BYTES_MAX: u32 = 1 << 20;

/// Frames of the past that are folded ahead of their watcher.
pub const PAST_FRAMES: usize = 16;

/// Bytes of partial output that are kept for one operation; the whole comes with its result.
pub const PARTIAL_BYTES_MAX: usize = 1 << 20;

/// Steps of a shard that may be on their way to the disk; no further message is taken beyond it.
pub const WITHHELD_STEPS: usize = 4_096;

/// Messages or due runs that are taken at once, before durable steps are looked at.
pub const BURST: usize = 256;

/// Messages that wait for a shard; senders wait beyond it.
pub const SHARD_MESSAGES: usize = 4_096;

/// One in so many runs in memory is dropped when there are too many: finding idle ones looks at all of them.
pub const EVICT_SHARE: usize = 10;

/// Milliseconds after which a full disk is tried again.
pub const FULL_RETRY_MS: u64 = 1_000;

/// Milliseconds after which reading due times is tried again.
pub const STORE_RETRY_MS: u64 = 1_000;

/// Accepted reports that a shard remembers, to know them again while they are not in the store's history.
pub const REPORTS_REMEMBERED: usize = 10_000;

/// Runs that are put back to work at once after a restart: new work goes on between them.
pub const RECOVERY_PAGE: usize = 64;

/// Milliseconds that the wall clock may be behind the newest event; more means that one of them is wrong.
pub const CLOCK_BEHIND_MS_MAX: i64 = 3_600_000;

/// Results, tokens or signs of life in one call of a worker.
pub const CALL_ITEMS_MAX: usize = 10_000;

/// Tasks that one poll gives at most.
pub const POLL_TASKS_MAX: usize = 1_000;

/// Characters of a refused text that an error repeats.
pub const QUOTED_CHARS: usize = 80;

/// Milliseconds between two looks whether the disk has room for new runs.
pub const ROOM_LOOK_MS: u64 = 1_000;

/// Bytes of one line of a batch's input: what a request to start a run may carry, with room for what surrounds the input.
pub const BATCH_LINE_BYTES_MAX: usize = REQUEST_BYTES_MAX - 64 * 1024;

/// Characters of an id in a batch's input: a run's id may have 128, and later attempts add to it.
pub const BATCH_ID_CHARS_MAX: usize = 120;

/// Characters of a flow's name in the ids of a batch: for people; the hash says the rest.
pub const BATCH_PREFIX_CHARS: usize = 24;

/// Bytes of one line of a JSON-RPC client: what a request may carry.
pub const RPC_LINE_BYTES_MAX: usize = REQUEST_BYTES_MAX;

/// Requests in one batch of JSON-RPC: each has an answer, which may be large.
pub const RPC_BATCH_MAX: usize = 1_000;

/// Requests of one client over pipes that are in hand at once; further ones are refused until one is answered.
pub const RPC_REQUESTS_MAX: usize = 256;

/// Runs that one client over pipes follows at once: each has a connection.
pub const RPC_WATCHES_MAX: usize = 256;

/// Lines that wait on either side of a client over pipes.
pub const RPC_LINES_MAX: usize = 64;

/// Bytes that wait for a client over pipes to be read.
pub const RPC_OUT_BYTES_MAX: u32 = 4 << 20;

/// Milliseconds that requests in hand have for their answers after the client's input has ended.
pub const RPC_LEAVE_MS_MAX: u64 = 2_000;

/// Schedules of one store: each is looked at whenever one is due.
pub const SCHEDULES_MAX: usize = 10_000;

/// Characters of a schedule's name: the ids of its runs add a time to it.
pub const SCHEDULE_NAME_CHARS_MAX: usize = 100;

/// Milliseconds after which a due time counts as missed: a restart in between should not lose what is due in that minute.
pub const SCHEDULE_LATE_MS: u64 = 30_000;

/// Due times that wait for a run to end.
pub const SCHEDULE_QUEUE_MAX: usize = 1_000;

/// Notes about what was skipped that a schedule keeps.
pub const SCHEDULE_SKIPPED_MAX: usize = 100;

/// Due times to come that are shown.
pub const SCHEDULE_NEXT: usize = 5;

/// Questions about schedules that wait.
pub const SCHEDULE_ASKS: usize = 64;

/// Workers given up that a supervisor may have yet to hear of: more than it keeps.
pub const GIVEN_UP_KEPT: usize = 256;

/// Processes that end while they work on one run, without a durable step of it between them, before it is left alone.
pub const CRASHES_MAX: u32 = 3;

/// Bytes of a place in the file that says what shards work on: a count, a run id and a word.
pub const DESK_BYTES: usize = 160;

/// Access tokens of one store, revoked ones included: all are in memory, at less than 1 KiB each.
pub const ACCESS_TOKENS_MAX: usize = 10_000;

/// Characters of the name of an access token, and of a flow or role that it is limited to.
pub const ACCESS_NAME_CHARS_MAX: usize = 100;

/// Flows, and roles, that one access token names.
pub const ACCESS_ITEMS_MAX: usize = 100;

/// Milliseconds that requests in hand have for their answers when their token ends: what does not wait is done long before.
pub const ACCESS_GRACE_MS: u64 = 1_000;

/// Milliseconds that a client has for its part of a TLS handshake: two round trips around the world, many times over.
pub const TLS_HANDSHAKE_MS_MAX: u64 = 10_000;

/// Lines that wait for the file of the access log, at some 200 bytes each.
pub const ACCESS_LOG_LINES_MAX: usize = 10_000;

/// Characters of a path that a line of the access log shows: no route of ours is longer, with the longest run id.
pub const ACCESS_LOG_PATH_CHARS_MAX: usize = 256;

/// Milliseconds that the last lines of the access log have for being written when the server ends.
pub const ACCESS_LOG_CLOSE_MS_MAX: u64 = 2_000;

/// Deletions of runs in one group commit.
pub const BATCH_DELETES: usize = 100;

/// Milliseconds between two looks for runs that were kept long enough.
pub const RETENTION_EVERY_MS: u64 = 600_000;

/// Milliseconds that an ended run is kept at least: whoever waits for its result must be able to fetch it.
pub const RETENTION_MS_MIN: u64 = 60_000;

/// Ended runs that one look at the store finds at once.
pub const RETENTION_PAGE: usize = 1_000;

/// Flows with a time of their own for keeping runs.
pub const RETENTION_FLOWS_MAX: usize = 1_000;

/// Deleted runs of which something is left that one weighing shows.
pub const DELETED_SHOWN_MAX: usize = 1_000;

/// Milliseconds between two looks for blobs that nobody names: they have stayed for an hour by then.
pub const PURGE_EVERY_MS: u64 = 600_000;

/// Milliseconds after which it is tried again to take away what deleted runs left.
pub const PURGE_RETRY_MS: u64 = 10_000;

/// Characters of the word that says why a run was cancelled.
pub const WHY_CHARS_MAX: usize = 40;

/// Runs that are looked at to find one of which a caller may know, and so of the blobs that it holds.
pub const BLOB_USERS_MAX: usize = 1_000;

/// Bytes of a blob that is kept on request.
pub const BLOB_BYTES_MAX: usize = outlast_store::limits::BLOB_BYTES_MAX;

/// Values of the labels of one metric: what is beyond them is counted together as `other`. Queues are named by flows, and few.
pub const METRIC_LABELS_MAX: usize = 256;

/// Bounds, in seconds, between which group commits are counted by the time that they took: from a sync into the cache of a fast drive to
/// one of a drive that is about to fail.
pub const COMMIT_SECONDS_BUCKETS: [f64; 14] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// Runs that are counted with one look at a store whose counts are not known.
pub const CENSUS_PAGE: usize = 1_000;

/// Notes of what happened that wait to become spans, at some 200 bytes each.
pub const TELEMETRY_NOTES_MAX: usize = 8_192;

/// Spans that are sent to a collector at once.
pub const TELEMETRY_SPANS_MAX: usize = 512;

/// Attempts in hand whose beginning is remembered for their spans.
pub const TELEMETRY_OPEN_MAX: usize = 10_000;

/// Milliseconds between two sendings of spans.
pub const TELEMETRY_EVERY_MS: u64 = 1_000;

/// Milliseconds that a collector has for taking spans.
pub const TELEMETRY_POST_MS_MAX: u64 = 5_000;

/// Milliseconds that the last spans have for being sent when the process ends.
pub const TELEMETRY_CLOSE_MS_MAX: u64 = 2_000;

/// Random bytes that the system is asked for at once, a multiple of 32: a step needs 32, and asking takes longer than making them.
pub const RANDOM_BYTES: usize = 1_024;
