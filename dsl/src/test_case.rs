//! Checked `test` blocks: what a runner of tests does step by step.
//!
//! Leaves running them, and evaluating their values, to the runner. Invariant: names are resolved and values are typed; a value is
//! a function of [`TestCase::values`], so that it is evaluated by the same code as the flow's own expressions. Nothing of a test
//! is part of a flow's machine.

use crate::diag::{FileId, TextSpan};
use crate::machine::{FunctionIx, Machine};

/// A checked `test` block.
#[derive(Clone, Debug, PartialEq)]
pub struct TestCase {
    /// What it shows.
    pub name: String,
    /// The position of its file among those that were checked.
    pub file: FileId,
    /// Where its name stands.
    pub span: TextSpan,
    /// The flow that it starts.
    pub flow: String,
    /// The functions that give its values, beside the flow whose types they share.
    pub values: Machine,
    /// What it does, in the order of the text.
    pub steps: Vec<TestStep>,
}

/// One step of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestStep {
    /// Where it stands.
    pub span: TextSpan,
    /// What it does.
    pub kind: StepKind,
}

/// What a step does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// `start F(…)`: the arguments by name.
    Start(Vec<(String, FunctionIx)>),
    /// `stub a … gives …`.
    Stub(Stub),
    /// `allow e`: a pattern of tool calls that need no question.
    Allow(FunctionIx),
    /// `send M { … }`.
    Send(String, Vec<(String, FunctionIx)>),
    /// `close`.
    Close,
    /// `cancel`.
    Cancel,
    /// `answer "…" approve { … } by "…"`.
    Answer(Reaction),
    /// `advance D`: milliseconds.
    Advance(u64),
    /// `crash at P`: the path as the kernel writes it.
    CrashAt(String),
    /// `lose worker`.
    LoseWorker,
    /// `settle a as …`.
    Settle(String, Verdict),
    /// `release a`.
    Release(String),
    /// `expect …`.
    Expect(Expectation),
}

/// What answers the calls of an activity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stub {
    /// The activity.
    pub activity: String,
    /// Where its name stands.
    pub span: TextSpan,
    /// Whether its values are functions of the call's arguments, in the order of the parameters.
    pub takes_input: bool,
    /// Which calls it answers; all if there is none.
    pub guard: Option<FunctionIx>,
    /// What it gives, in order.
    pub replies: Vec<StubReply>,
    /// Whether the one reply is given again and again; a list is used up.
    pub repeats: bool,
}

/// One reply of a stub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StubReply {
    /// Milliseconds that the attempt takes; none: it is answered at once.
    pub after_ms: Option<u64>,
    /// What the attempt reports to have cost, as a decimal; none: it reports no cost.
    pub cost: Option<String>,
    /// What it is.
    pub gives: Reply,
}

/// What an attempt comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A result.
    Value(FunctionIx),
    /// A declared error.
    Fail(FunctionIx),
    /// A failure that is not declared, with its text.
    FailText(FunctionIx),
    /// No report in time.
    Timeout,
    /// It was begun and will never answer.
    Unknown,
}

/// What a person does with a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reaction {
    /// The text of the question; left out if only one is open.
    pub question: Option<FunctionIx>,
    /// Yes, no or a value.
    pub choice: Choice,
    /// The edited or given value.
    pub value: Option<FunctionIx>,
    /// What the person adds.
    pub note: Option<FunctionIx>,
    /// In which role; any that is asked if left out.
    pub by: Option<FunctionIx>,
}

/// The choice of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Yes.
    Approve,
    /// No.
    Reject,
    /// A value.
    Answer,
}

/// What a person says of a doubt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A `Verdict<T>`.
    Value(FunctionIx),
    /// It counts as failed.
    Fail,
}

/// What must hold at a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// `at P`: the path as the kernel writes it.
    At(String),
    /// `path S -> T`: all states of the started flow that were entered.
    Path(Vec<String>),
    /// `calls a == n`.
    Calls(String, u64),
    /// `attempts a == n`.
    Attempts(String, u64),
    /// `end e`.
    End(FunctionIx),
    /// `fail E { … }`.
    Fail(FunctionIx),
    /// `cancelled`.
    Cancelled,
    /// `data x == e`.
    Data(String, FunctionIx),
    /// `emits e`.
    Emits(FunctionIx),
    /// `asked "…"`.
    Asked(FunctionIx),
    /// `waiting w`.
    Waiting(WaitKind),
    /// `refused w`: the step before was refused, with this code.
    Refused(String),
}

/// What a run can wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitKind {
    /// An attempt is in hand and takes its time.
    Activity,
    /// A person must answer.
    Question,
    /// A message is awaited.
    Message,
    /// A timer runs.
    Timer,
    /// An operation waits for a person.
    Held,
    /// An operation waits for room in the budget.
    Budget,
    /// A fault has stopped the run.
    Blocked,
}

impl WaitKind {
    /// All of them.
    pub const ALL: [WaitKind; 7] = [
        WaitKind::Activity,
        WaitKind::Question,
        WaitKind::Message,
        WaitKind::Timer,
        WaitKind::Held,
        WaitKind::Budget,
        WaitKind::Blocked,
    ];

    /// Returns its word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            WaitKind::Activity => "activity",
            WaitKind::Question => "question",
            WaitKind::Message => "message",
            WaitKind::Timer => "timer",
            WaitKind::Held => "held",
            WaitKind::Budget => "budget",
            WaitKind::Blocked => "blocked",
        }
    }
}

/// The codes with which a run refuses what is sent to it.
pub const REFUSALS: &[&str] = &[
    "run_ended",
    "already_ending",
    "not_listening",
    "already_decided",
    "mailbox_full",
    "conflict",
    "invalid",
    "not_found",
    "forbidden",
];
