//! Every limit of the workers, with its unit and why it is what it is.
//!
//! Leaves limits of flows (`within`, `costs`) to the runtime. Invariant: no other file of this crate holds such a number.

use std::time::Duration;

/// Bytes of a socket's path that every system takes; longer ones are reached through their directory.
pub(crate) const SOCKET_PATH_BYTES_MAX: usize = 100;

// The connection to the runtime.

/// First wait before connecting again: a runtime that restarts is back in well under a second.
pub(crate) const RECONNECT_WAIT_MIN: Duration = Duration::from_millis(50);
/// Longest wait before connecting again: a person who starts the runtime should not wait for its workers.
pub(crate) const RECONNECT_WAIT_MAX: Duration = Duration::from_secs(2);
/// How long a worker that starts waits for the runtime to tell its profile: whoever started it is there, or will not be.
pub(crate) const PROFILE_WAIT: Duration = Duration::from_secs(60);
/// How long the runtime may hold a poll or a control call; a third of the default lease, so that polling alone renews it.
pub(crate) const LONG_POLL_WAIT: Duration = Duration::from_secs(10);
/// Beyond the wait of a long poll, how long its answer may take.
pub(crate) const CALL_SLACK: Duration = Duration::from_secs(5);
/// Shortest time-out of a call: a busy machine is no lost connection.
pub(crate) const CALL_TIMEOUT_MIN: Duration = Duration::from_secs(1);
/// Longest time-out of a short call: syncing a disk under load takes seconds, not minutes.
pub(crate) const CALL_TIMEOUT_MAX: Duration = Duration::from_secs(10);
/// Bytes of one answer of the runtime: a poll's tasks carry whole conversations.
pub(crate) const ANSWER_BYTES_MAX: usize = 256 << 20;
/// Results in one report: enough to keep up, few enough that one bad one is found soon.
pub(crate) const REPORT_BATCH_MAX: usize = 64;
/// Bytes of one result; what is larger should be a file.
pub(crate) const RESULT_BYTES_MAX: usize = 16 << 20;
/// Partial output goes out this often: fast enough to read along, slow enough to cost nothing.
pub(crate) const PROGRESS_EVERY: Duration = Duration::from_millis(250);
/// Bytes of partial output that go out at once.
pub(crate) const PROGRESS_BATCH_BYTES: usize = 16 << 10;
/// Bytes of partial output of one attempt; the runtime shows no more.
pub(crate) const PROGRESS_BYTES_MAX: usize = 1 << 20;
/// How long an attempt that listens for its end may take to tidy up.
pub(crate) const STOP_GRACE: Duration = Duration::from_secs(1);
/// How long the end of an attempt's processes is waited for before the report goes out regardless.
pub(crate) const HOLD_MAX: Duration = Duration::from_secs(10);
/// How long a leaving worker lets attempts run on: what takes longer is handed to another worker.
pub(crate) const DRAIN_MAX: Duration = Duration::from_secs(20);
/// How long a leaving worker tries to deliver its last results.
pub(crate) const DELIVER_MAX: Duration = Duration::from_secs(5);
/// How long a supervised worker with nothing in hand outlives its runtime.
pub(crate) const ORPHAN_AFTER: Duration = Duration::from_secs(60);
/// How many times longer it stays for the sake of results that were not acknowledged: ten minutes, the time to mend a runtime and
/// start it again. What the runtime has cancelled, or what was only stopped, is no reason to stay.
pub(crate) const ORPHAN_FACTOR_WITH_RESULTS: u32 = 10;
/// The lease until the runtime has said its own.
pub(crate) const LEASE_MS_DEFAULT: u64 = 30_000;
/// Attempts at once of the tool worker: tools are many and short.
pub(crate) const TOOL_CONCURRENCY: u32 = 8;
/// Attempts at once of the model worker: they mostly wait.
pub(crate) const MODEL_CONCURRENCY: u32 = 16;

// Secrets.

/// Bytes of a secret that can be hidden: a shorter one stands in every other text.
pub(crate) const SECRET_BYTES_MIN: usize = 4;
/// Bytes of another form of a secret that is hidden.
pub(crate) const SECRET_FORM_BYTES_MIN: usize = 6;
/// Bytes of a line of a secret that is a secret of its own.
pub(crate) const SECRET_LINE_BYTES_MIN: usize = 12;

/// Secrets that a worker hides beside those it was started with: the tokens of logins, of which a new one replaces an old one.
pub(crate) const LEARNED_SECRETS_MAX: usize = 64;

// Tools.

/// Bytes of output that a model sees of one tool call: about 12,000 tokens.
pub(crate) const MODEL_OUTPUT_BYTES: usize = 48 << 10;
/// Bytes of an output that are searched for secrets at once.
pub(crate) const PIECE_BYTES: usize = 64 << 10;
/// Bytes that are kept beside a result: the runtime takes no more.
pub(crate) const BLOB_BYTES_MAX: usize = 32 << 20;
/// How long bringing or fetching such bytes may take at once.
pub(crate) const BLOB_CALL_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a runtime that is away is waited for with them: one that restarts is back before, and a result is worth more.
pub(crate) const BLOB_PATIENCE: Duration = Duration::from_secs(30);
/// Entries of `list`, `find` and `grep` that are looked for where what a model does not see is kept.
pub(crate) const ENTRIES_KEPT_MAX: usize = 20_000;
/// Lines of output that a model sees of one tool call.
pub(crate) const MODEL_OUTPUT_LINES: usize = 1_500;
/// Bytes of output that a flow gets of one tool call.
pub(crate) const FLOW_OUTPUT_BYTES: usize = 1 << 20;
/// Lines of output that a flow gets of one tool call.
pub(crate) const FLOW_OUTPUT_LINES: usize = 50_000;
/// Bytes of one line of output: beyond this it is data, not text to read.
pub(crate) const LINE_BYTES_MAX: usize = 4 << 10;
/// Bytes of a file that `edit` changes and `append_effect` searches.
pub(crate) const FILE_BYTES_MAX: u64 = 32 << 20;
/// Lines around the text to replace that a difference shows, so that an approved edit rests on them.
pub(crate) const SHOWN_LINES: usize = 3;
/// Bytes of files that are read when a call is looked at: half a second. Beyond, length and time of change stand for the content.
pub(crate) const LOOK_BYTES_MAX: u64 = 256 << 20;
/// Directories in which the paths of a command are looked for: the working directory and those that it names.
pub(crate) const LOOK_BASES_MAX: usize = 8;
/// Bytes of a file that `grep` looks into; larger ones are not source text.
pub(crate) const GREP_FILE_BYTES_MAX: u64 = 8 << 20;
/// Entries that `list`, `find` and `grep` give a flow.
pub(crate) const ENTRIES_MAX: usize = 2_000;
/// Files that `find` and `grep` look at: a whole disk is a mistake.
pub(crate) const WALK_FILES_MAX: usize = 200_000;
/// How long a page may take if the call says nothing.
pub(crate) const FETCH_TIMEOUT: Duration = Duration::from_secs(30);
/// How long connecting to a page's server may take.
pub(crate) const FETCH_CONNECT: Duration = Duration::from_secs(10);
/// Bytes of a page that are read.
pub(crate) const FETCH_BYTES_MAX: usize = 8 << 20;
/// Bytes of a page's address.
pub(crate) const FETCH_URL_BYTES_MAX: usize = 8 << 10;
/// Redirects within one host that are followed.
pub(crate) const FETCH_REDIRECTS_MAX: usize = 5;
/// How long a shell command may take if the call says nothing.
pub(crate) const SHELL_TIMEOUT: Duration = Duration::from_secs(120);
/// How long before the end of the attempt a command is ended, so that its output still becomes a result.
pub(crate) const SHELL_MARGIN: Duration = Duration::from_millis(500);
/// How long processes may take to obey the polite signal before they are killed.
pub(crate) const TERM_GRACE: Duration = Duration::from_millis(250);
/// How long killed processes may take to be gone (one in an uninterruptible wait cannot be killed).
pub(crate) const KILL_MAX: Duration = Duration::from_secs(3);
/// How often the guard looks for processes that are left.
pub(crate) const KILL_EVERY: Duration = Duration::from_millis(5);
/// How often the guard looks at the memory of a command and all that it started: a machine fills at about a gigabyte a second.
pub(crate) const MEMORY_LOOK_EVERY: Duration = Duration::from_millis(250);
/// Bytes of memory of a command where nobody knows how much the machine has.
pub(crate) const UNCONFINED_MEMORY_BYTES: u64 = 8 << 30;
/// Places that a command's sandbox lists: what is hidden among more entries than that hides them all.
pub(crate) const SANDBOX_PLACES_MAX: usize = 4_000;
/// Bytes of the guard's last word.
pub(crate) const GUARD_WORD_MAX: usize = 4 << 10;
/// Characters of arguments that an error quotes.
pub(crate) const QUOTE_CHARS_MAX: usize = 200;

// MCP servers.

/// Bytes of the file that names servers; it is written by hand.
pub(crate) const CONFIG_BYTES_MAX: u64 = 1 << 20;
/// Characters of a server's name: they are the beginning of all its tools' names.
pub(crate) const SERVER_NAME_CHARS_MAX: usize = 24;
/// Characters of a tool's name: what providers of models take.
pub(crate) const TOOL_NAME_CHARS_MAX: usize = 64;
/// How long a server may take until it can be called if its entry says nothing: some fetch themselves first.
pub(crate) const MCP_START: Duration = Duration::from_secs(60);
/// How long one request to an authorization server may take.
pub(crate) const LOGIN_REQUEST: Duration = Duration::from_secs(30);
/// How long logging out waits for a worker that renews the login just then: for a few of its requests.
pub(crate) const LOGOUT_PATIENCE: Duration = Duration::from_secs(60);
/// How long a person may take to log in with a browser.
pub(crate) const LOGIN_PATIENCE: Duration = Duration::from_secs(600);
/// Bytes of one answer of an authorization server.
pub(crate) const LOGIN_ANSWER_BYTES_MAX: usize = 1 << 20;
/// Bytes of the head of the request by which a browser brings the code.
pub(crate) const CALLBACK_BYTES_MAX: usize = 16 << 10;
/// How long a browser may take to send it.
pub(crate) const CALLBACK_PATIENCE: Duration = Duration::from_secs(10);
/// Redirects of an authorization server that are followed.
pub(crate) const LOGIN_REDIRECTS_MAX: usize = 5;
/// Before its end, how long a token is not used any more: a request takes time to arrive. At most half of its life.
pub(crate) const TOKEN_MARGIN_S: u64 = 30;
/// When it makes sense to look again whether a person has logged in.
pub(crate) const LOGIN_LOOK_EVERY: Duration = Duration::from_secs(5);
/// How long connecting to a server may take.
pub(crate) const MCP_CONNECT: Duration = Duration::from_secs(15);
/// How often a broken stream of a service is asked for again.
pub(crate) const STREAM_TRIES_MAX: usize = 3;
/// First wait before a broken stream is asked for again; it doubles.
pub(crate) const STREAM_WAIT: Duration = Duration::from_millis(200);
/// How long the end of a server is waited for, to tell how it ended.
pub(crate) const MCP_LAST_WORDS: Duration = Duration::from_secs(1);
/// How long a server may take to end by itself once its input is closed.
pub(crate) const MCP_LEAVE: Duration = Duration::from_millis(500);
/// Bytes of a server's input that are passed on at once.
pub(crate) const SERVER_PIECE_BYTES: usize = 64 << 10;
/// First wait before a server that failed twice is started again.
pub(crate) const RESTART_WAIT_MIN: Duration = Duration::from_millis(500);
/// Longest wait before a server is started again: who mends it should not wait for long.
pub(crate) const RESTART_WAIT_MAX: Duration = Duration::from_secs(30);
/// A server that lived this long is started again at once.
pub(crate) const STEADY_AFTER: Duration = Duration::from_secs(30);
/// Bytes of one message of a server.
pub(crate) const MESSAGE_BYTES_MAX: usize = 16 << 20;
/// Bytes that are kept of either end of a message that is longer: its id stands there.
pub(crate) const MESSAGE_EDGE_BYTES: usize = 1 << 10;
/// Bytes before the last brace of such a message in which its id stands, if it stands at the end.
pub(crate) const MESSAGE_ID_BYTES: usize = 40;
/// Bytes that are kept of what a server says on its standard error.
pub(crate) const STDERR_TAIL_BYTES: usize = 4 << 10;
/// Pages of a list of tools.
pub(crate) const LIST_PAGES_MAX: usize = 200;
/// Tools of one server, those that cannot be read too; a model is lost long before.
pub(crate) const LIST_TOOLS_MAX: usize = 5_000;
/// Characters of a tool's description: about 2,500 tokens of every request to a model.
pub(crate) const DESCRIPTION_CHARS_MAX: usize = 10_000;
/// Bytes of a tool's own name, input and annotations: a catalogue is read by people too.
pub(crate) const TOOL_BYTES_MAX: usize = 128 << 10;
/// How often a call is made again in one attempt after its connection was lost, if its class allows that.
pub(crate) const LOST_CALLS_MAX: u32 = 1;
/// Rounds in which a server may ask for more before it answers a call, and questions to a person that one answer tells.
pub(crate) const INPUT_ROUNDS_MAX: u32 = 8;
/// Bytes of the form of one question that a person is shown.
pub(crate) const FORM_BYTES_MAX: usize = 16 << 10;
/// Characters of one question or one note of progress of a server that are passed on.
pub(crate) const REMARK_CHARS_MAX: usize = 1_000;
/// Bytes of the address of a page that a server wants a person to open.
pub(crate) const ADDRESS_BYTES_MAX: usize = 2_000;
/// Bytes of the id of a server's task: it goes into the run's history.
pub(crate) const TASK_ID_BYTES_MAX: usize = 1 << 10;
/// Shortest wait between two looks at a server's task.
pub(crate) const TASK_POLL_MIN: Duration = Duration::from_millis(100);
/// Longest wait between two looks at a server's task.
pub(crate) const TASK_POLL_MAX: Duration = Duration::from_secs(30);

// Models.

/// How long a model may say nothing of substance: local models read long prompts for minutes.
pub(crate) const MODEL_IDLE: Duration = Duration::from_secs(120);
/// How long the farewell of a model's stream (usage, end marker) is waited for once the answer is whole.
pub(crate) const MODEL_USAGE_WAIT: Duration = Duration::from_secs(5);
/// How long connecting to a model may take.
pub(crate) const MODEL_CONNECT: Duration = Duration::from_secs(15);
/// Bytes of one line of a model's stream; a whole call may come as one.
pub(crate) const STREAM_LINE_BYTES_MAX: usize = 4 << 20;
/// Bytes of one event of a model's stream.
pub(crate) const STREAM_EVENT_BYTES_MAX: usize = 8 << 20;
/// Bytes of one answer of a model, all framing included.
pub(crate) const STREAM_BYTES_MAX: usize = 64 << 20;
/// Bytes of text, reasoning and arguments of one answer of a model.
pub(crate) const REPLY_BYTES_MAX: usize = 8 << 20;
/// Tool calls of one answer of a model.
pub(crate) const REPLY_CALLS_MAX: usize = 128;
/// Bytes of an error's body that are looked at.
pub(crate) const ERROR_BYTES_MAX: usize = 64 << 10;
/// Characters of an error's text that are passed on.
pub(crate) const ERROR_CHARS_MAX: usize = 1_000;
/// The hint of a rate limit that names none.
pub(crate) const RETRY_AFTER_DEFAULT: Duration = Duration::from_secs(1);
/// The longest hint that is believed: a day.
pub(crate) const RETRY_AFTER_MAX: Duration = Duration::from_secs(86_400);
/// A hint longer than this is told in the error's text: nobody expects it.
pub(crate) const RETRY_AFTER_TOLD: Duration = Duration::from_secs(60);
/// How deep a schema of a tool or an answer may be; below, everything is allowed.
pub(crate) const SCHEMA_DEPTH_MAX: usize = 32;
/// Nodes of a schema once its references are written out, which may double at every step.
pub(crate) const SCHEMA_NODES_MAX: usize = 4_000;
/// Characters of a call's id: providers take 40, and a number that tells equal ones apart needs room.
pub(crate) const CALL_ID_CHARS_MAX: usize = 36;
/// Tokens of one answer of Anthropic's models, which want a limit: enough for a long file, and every model that is sold gives them.
pub(crate) const ANTHROPIC_MAX_TOKENS: u64 = 16_000;
/// Characters of the idempotency key that a provider is sent: 128 bits in hexadecimal.
pub(crate) const KEY_CHARS: usize = 32;
/// Bytes of a file of prices.
pub(crate) const PRICES_BYTES_MAX: u64 = 1 << 20;
/// Pieces in which the scripted model streams a delayed reply if the script says nothing.
pub(crate) const SCRIPT_PIECES: u32 = 10;
/// The longest delay of a scripted reply.
pub(crate) const SCRIPT_DELAY_MS_MAX: u64 = 3_600_000;
