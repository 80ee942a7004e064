"""Every limit of this package, with its unit and its reason; the same numbers as the worker kit in Rust where both have one."""

SOCKET_PATH_BYTES_MAX = 100
"""Bytes of a socket's path that every system takes; longer ones are reached through their directory."""
RECONNECT_S_MIN = 0.05
"""First wait before connecting again: a runtime that restarts is back in well under a second."""
RECONNECT_S_MAX = 2.0
"""Longest wait before connecting again: a person who starts the runtime should not wait for its workers."""
LONG_POLL_S = 10.0
"""How long the runtime may hold a poll or a control call; a third of the default lease, so that polling alone renews it."""
CALL_SLACK_S = 5.0
"""Beyond the wait of a long poll, how long its answer may take."""
CALL_S_MIN = 1.0
"""Shortest time-out of a call: a busy machine is no lost connection."""
CALL_S_MAX = 10.0
"""Longest time-out of a short call: syncing a disk under load takes seconds, not minutes."""
KEEP_ALIVE_S = 5.0
"""How long a connection that is not used is used again: the server closes idle ones."""
ANSWER_BYTES_MAX = 256 << 20
"""Bytes of one answer: a poll's tasks carry whole conversations."""
REPORT_BATCH_MAX = 64
"""Results in one report: enough to keep up, few enough that one bad one is found soon."""
REPORT_BYTES_MAX = 64 << 20
"""Bytes of one report: the runtime takes 70 MiB, and may hang up on more before it says so."""
RESULT_BYTES_MAX = 16 << 20
"""Bytes of one result; what is larger should be a file."""
PROGRESS_EVERY_S = 0.25
"""Partial output goes out this often: fast enough to read along, slow enough to cost nothing."""
PROGRESS_BATCH_BYTES = 16 << 10
"""Bytes of partial output that go out at once."""
PROGRESS_BYTES_MAX = 1 << 20
"""Bytes of partial output of one attempt; the runtime shows no more."""
STOP_GRACE_S = 1.0
"""How long an attempt that is asked to end may take before that is said in the log, or its process is killed."""
DRAIN_S_MAX = 20.0
"""How long a leaving worker lets attempts run on: what takes longer is handed to another worker."""
DELIVER_S_MAX = 5.0
"""How long a leaving worker tries to deliver its last results."""
LEASE_MS_DEFAULT = 30_000
"""The lease until the runtime has said its own."""
STREAM_SILENT_S = 60.0
"""How long a stream may say nothing: the server gives a sign of life four times as often."""
CLIENT_S = 60.0
"""How long a call of the client may take that does not wait for anything."""
CLIENT_PATIENCE_S = 30.0
"""How long the client tries again while the server is away or busy."""
WAIT_S_MAX = 240
"""How long one request waits for the end of a run; then the client asks again. Below the server's own limit."""
SECRET_BYTES_MIN = 4
"""Characters of a secret that can be hidden: a shorter one stands in every other text."""
SECRET_FORM_BYTES_MIN = 6
"""Characters of another form of a secret that is hidden."""
SECRET_LINE_BYTES_MIN = 12
"""Characters of a line of a secret that is a secret of its own."""
