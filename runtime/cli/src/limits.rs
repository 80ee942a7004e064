//! Every limit of this crate, each with its unit and its reason.

/// Milliseconds of one wait for a result: short enough that a lost host is noticed by the way, long enough to cost nothing.
pub(crate) const RESULT_WAIT_MS: u64 = 20_000;

/// Frames that wait for being shown.
pub(crate) const FRAMES_MAX: usize = 256;

/// Milliseconds that the last frames of an ended run have for arriving after its result.
pub(crate) const LAST_FRAMES_MS_MAX: u64 = 2_000;

/// Bytes of a flow file, a catalogue, a script or an input file: what one request may carry.
pub(crate) const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Events asked for at once.
pub(crate) const EVENTS_PAGE: usize = 500;

/// How often a conversation looks for what happened while it showed what happened, before it shows the rest later.
pub(crate) const CATCH_UPS_MAX: usize = 3;

/// Characters of a run's id: longer text names no run, and is not repeated as if it did.
pub(crate) const RUN_CHARS_MAX: usize = 128;

/// Runs asked for at once.
pub(crate) const RUNS_PAGE: usize = 200;

/// Characters of a value in a line for people.
pub(crate) const VALUE_CHARS_MAX: usize = 160;

/// Milliseconds of the first wait for a result: an environment that is missing should be told soon.
pub(crate) const FIRST_WAIT_MS: u64 = 2_000;

/// Milliseconds between two looks at a run that did not need to be waited for.
pub(crate) const AGAIN_MS: u64 = 50;

/// Lines of a conversation that are shown when it is found again.
pub(crate) const TRANSCRIPT_LINES: usize = 60;

/// Lines of one message that are shown; it may carry whole files.
pub(crate) const MESSAGE_LINES: usize = 20;

/// Bytes of the files that one message may carry: what a model reads at once, and well below what one request may carry.
pub(crate) const MENTION_BYTES_MAX: usize = 256 * 1024;

/// Characters of a file's hash that a question shows: enough for a person to see that it is another one.
pub(crate) const HASH_CHARS_SHOWN: usize = 8;
/// Lines of a difference that are shown with a question before the person asks for the rest.
pub(crate) const DIFF_LINES_MAX: usize = 40;

/// Milliseconds that a difference may take; a coarser one is shown then.
pub(crate) const DIFF_MS_MAX: u64 = 200;

/// Lines and bytes that are shown of what a person's own command writes.
pub(crate) const OUTPUT_LINES_MAX: usize = 1_000;
/// See [`OUTPUT_LINES_MAX`].
pub(crate) const OUTPUT_BYTES_MAX: usize = 256 * 1024;
/// Bytes of one line of it: a longer one is cut into several.
pub(crate) const OUTPUT_LINE_BYTES_MAX: usize = 4 * 1024;

/// Bytes that are printed when a conversation in the background has its terminal again.
pub(crate) const HELD_BYTES_MAX: usize = 256 * 1024;

/// Lines of the history of what was typed.
pub(crate) const HISTORY_LINES_MAX: usize = 1_000;
/// Bytes of its file, which is shortened beyond them.
pub(crate) const HISTORY_BYTES_MAX: u64 = 1024 * 1024;
/// Bytes of one line of it: longer ones, such as pasted files, are kept for one conversation only.
pub(crate) const HISTORY_LINE_BYTES_MAX: usize = 16 * 1024;

/// Rows of what is typed that are shown at once.
pub(crate) const INPUT_ROWS_MAX: usize = 8;

/// Patterns of one rule that `/tools` shows.
pub(crate) const PATTERNS_SHOWN_MAX: usize = 8;

/// Messages that wait for their turn and are shown by their beginnings.
pub(crate) const QUEUE_ROWS_MAX: usize = 3;

/// Pages of runs of one status that are asked for to find some to pick from: one may hold none that fits, where there are many others.
pub(crate) const PICK_PAGES_MAX: usize = 50;

/// Runs or messages that can be picked from: the newest ones.
pub(crate) const CHOICES_MAX: usize = 100;
/// Rows of a list that is picked from, if the terminal has as many.
pub(crate) const PICKER_ROWS_MAX: usize = 12;

/// Words that can complete what is typed and are shown.
pub(crate) const COMPLETIONS_SHOWN_MAX: usize = 40;
/// Entries of a directory that are looked at for them.
pub(crate) const COMPLETIONS_READ_MAX: usize = 2_000;

/// Runs that are named when a conversation begins.
pub(crate) const FOUND_RUNS_MAX: usize = 5;

/// Milliseconds between looks at a run that says nothing: what it waits for changes without a word.
pub(crate) const LOOK_MS: u64 = 1_000;

/// Milliseconds within which a second Esc or Ctrl-C means to leave.
pub(crate) const TWICE_MS: u64 = 2_000;

/// Lines that were read and wait to be said.
pub(crate) const LINES_MAX: usize = 64;

/// Items of a batch that are read ahead, each of at most 1 MiB.
pub(crate) const BATCH_READ_AHEAD: usize = 16;

/// Lines that wait for being written: a slow reader of results holds the batch up rather than filling memory.
pub(crate) const BATCH_WRITES_MAX: usize = 16;

/// Bytes after which waiting lines are written in a further write.
pub(crate) const BATCH_WRITE_BYTES: usize = 1 << 20;

/// Failures and questions that are told by name at the end of a batch: more would not be read.
pub(crate) const BATCH_TOLD_MAX: usize = 20;

/// Items that only people can move which a batch remembers, to look at them again at its end; more are left to the next time.
pub(crate) const PARKED_MAX: usize = 10_000;

/// Items that may be begun after one whose result is awaited in an ordered batch, at least: a slow one should not hold the others up.
pub(crate) const ORDER_WINDOW_MIN: u64 = 64;

/// Milliseconds that the last lines have for being written when it is time to leave: a reader may have stopped to read.
pub(crate) const LAST_WRITES_MS_MAX: u64 = 1_000;

/// Milliseconds between two lines about how far a batch is, on a terminal.
pub(crate) const PROGRESS_MS: u64 = 200;

/// Milliseconds between two such lines elsewhere: often enough to see that it moves, rare enough for a log.
pub(crate) const PROGRESS_LINE_MS: u64 = 10_000;

/// Names of tests that a message lists, where a filter fits none.
pub(crate) const NAMES_MAX: usize = 12;

/// Records of one run that an audit holds: runs that overlap in time are read side by side, and there may be thousands.
pub(crate) const AUDIT_PAGE: usize = 20;

/// Characters of a token that somebody made up: fewer can be guessed.
pub(crate) const TOKEN_CHARS_MIN: usize = 16;

/// How many flows are in flight when steps are measured: few, what a busy service has, and close to what one socket serves.
pub(crate) const BENCH_IN_FLIGHT: [u64; 3] = [64, 256, 1_000];
/// Milliseconds for which steps are measured, and those before, in which caches and pools fill.
pub(crate) const BENCH_STEPS_MS: u64 = 5_000;
/// See [`BENCH_STEPS_MS`].
pub(crate) const BENCH_WARM_MS: u64 = 1_000;
/// Steps a second that are aimed at, on two cores.
pub(crate) const BENCH_STEPS_PER_S: f64 = 50_000.0;
/// Bytes of the answer of a step, and of a turn of a conversation.
pub(crate) const BENCH_STEP_BYTES: usize = 200;
/// See [`BENCH_STEP_BYTES`].
pub(crate) const BENCH_REPLY_BYTES: usize = 1_000;
/// Runs of ten steps whose steps are timed: 1,800 of them, so that one in a hundred is not a single one.
pub(crate) const BENCH_LATENCY_RUNS: u64 = 200;
/// Milliseconds that a step may take beside its sync.
pub(crate) const BENCH_OVER_SYNC_MS: f64 = 0.1;
/// Turns of a conversation: a long afternoon with an agent.
pub(crate) const BENCH_TURNS: u64 = 300;
/// How much longer the last third of the turns may take than the first: what was said is handed over anew in each, which grows.
pub(crate) const BENCH_GROWTH_MAX: f64 = 1.5;
/// Runs that wait.
pub(crate) const BENCH_IDLE_RUNS: u64 = 100_000;
/// Starts a second that are aimed at.
pub(crate) const BENCH_STARTS_PER_S: f64 = 20_000.0;
/// Megabytes that they may take in memory, all together.
pub(crate) const BENCH_IDLE_MEMORY_MB_MAX: f64 = 64.0;
/// Bytes that each may take on the disk, journals apart.
pub(crate) const BENCH_IDLE_BYTES_MAX: f64 = 600.0;
/// Bytes that the start of such a run writes: the size of the values that the database alone takes.
pub(crate) const BENCH_START_BYTES: u64 = 600;
/// Clients that start runs and wait for ends, where it is not they who are measured.
pub(crate) const BENCH_CLIENTS: u64 = 64;
/// Runs that are half way when everything is killed.
pub(crate) const BENCH_HALF_WAY: u64 = 2_000;
/// Seconds after which new work should be served, and those runs should have ended.
pub(crate) const BENCH_SERVED_S_MAX: f64 = 0.5;
/// See [`BENCH_SERVED_S_MAX`].
pub(crate) const BENCH_DONE_S_MAX: f64 = 2.0;
/// Milliseconds between two looks at how far they are.
pub(crate) const BENCH_LOOK_MS: u64 = 2;
/// Bytes of a line of the ledger: a run, an operation and a number, filled up.
pub(crate) const BENCH_LEDGER_LINE_BYTES: usize = 64;
/// Events of a long history.
pub(crate) const BENCH_HISTORY_EVENTS: u64 = 200_000;
/// Activities that make it, side by side.
pub(crate) const BENCH_ITEMS: u64 = 256;
/// Milliseconds that opening it may take.
pub(crate) const BENCH_HISTORY_OPEN_MS_MAX: f64 = 20.0;
/// Megabytes of memory that it may take.
pub(crate) const BENCH_HISTORY_MEMORY_MB_MAX: f64 = 64.0;
/// Syncs of which the middle one counts.
pub(crate) const BENCH_SYNCS: usize = 300;
/// Milliseconds for which the database alone is measured.
pub(crate) const BENCH_FLOOR_MS: u64 = 1_000;
