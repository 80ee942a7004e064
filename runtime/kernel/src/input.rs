//! Inputs: what the outside wants to happen, before it has a number; and the typed refusals.

use crate::Json;
use crate::event::{Choice, Failure, LostWhy, Receipt, Settlement, SpawnResult, Tokens};
use crate::ids::{Attempt, OpId, Seq};
use crate::operation::Outcome;

/// Something from outside that may become an event.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// A worker reported on an attempt.
    Reported {
        /// The operation.
        op: OpId,
        /// Which attempt.
        attempt: Attempt,
        /// What it said.
        report: Report,
    },
    /// The engine is about to hand out an attempt of a `once` operation.
    Begin {
        /// The operation.
        op: OpId,
        /// Which attempt.
        attempt: Attempt,
        /// To whom.
        worker: String,
    },
    /// An attempt will never answer.
    Lost {
        /// The operation.
        op: OpId,
        /// Which attempt.
        attempt: Attempt,
        /// Why.
        why: LostWhy,
    },
    /// A begun attempt never reached its worker.
    Void {
        /// The operation.
        op: OpId,
        /// Which attempt.
        attempt: Attempt,
    },
    /// A message.
    Message {
        /// The sender's id for it.
        id: Option<String>,
        /// The message type's name.
        name: String,
        /// Its fields.
        value: Json,
        /// Who sends it.
        from: String,
    },
    /// Pull back an unread message.
    Withdraw {
        /// Its id.
        id: String,
    },
    /// No more messages will come.
    Close,
    /// An answer to a question.
    Answer {
        /// The question; may be left out if exactly one is open.
        question: Option<OpId>,
        /// Yes, no or a value.
        choice: Choice,
        /// The edited or given value.
        value: Option<Json>,
        /// What the person adds.
        note: String,
        /// Who.
        by: String,
        /// In which role; none: any role that the question is put to.
        role: Option<String>,
        /// The hash of what they were shown; compared if given.
        shown: Option<String>,
    },
    /// A person allows a tool pattern for this run.
    Grant {
        /// The exact pattern, such as `shell(git status)`.
        pattern: String,
    },
    /// A person settles a doubt.
    Settle {
        /// The operation.
        op: OpId,
        /// What they say.
        verdict: Settlement,
        /// Who.
        by: String,
    },
    /// A person gives a held operation fresh attempts.
    Release {
        /// The operation.
        op: OpId,
        /// Who.
        by: String,
    },
    /// The engine started a spawned run, or found its id taken by another one.
    Spawned {
        /// The operation.
        op: OpId,
        /// Which of the two.
        result: SpawnResult,
    },
    /// A spawned run tells that it ended.
    ChildEnded {
        /// The operation that spawned it.
        op: OpId,
        /// How.
        outcome: Outcome,
    },
    /// Another run took what was sent to it, or refused it for good.
    Delivered {
        /// The operation.
        op: OpId,
        /// Which of the two.
        receipt: Receipt,
    },
    /// Stop with clean-up.
    Cancel {
        /// Who.
        by: String,
    },
    /// Stop at once.
    Terminate {
        /// Who.
        by: String,
    },
}

/// What a worker says of an attempt.
#[derive(Clone, Debug, PartialEq)]
pub enum Report {
    /// The result.
    Done {
        /// The value, not yet checked against the activity's type.
        value: Json,
        /// Money spent, a decimal.
        cost: Option<String>,
        /// Tokens that a language model read and wrote.
        tokens: Tokens,
    },
    /// It failed and says so.
    Failed {
        /// How.
        error: Failure,
        /// Money spent, a decimal.
        cost: Option<String>,
        /// Tokens that a language model read and wrote.
        tokens: Tokens,
    },
    /// Something to resume with, should this attempt be lost.
    Handle(Json),
    /// It was told to stop; its processes are gone.
    Stopped(Stopped),
}

/// Why an attempt stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// Its time was over.
    Timeout,
    /// Nobody wants its result any more.
    Cancelled,
    /// Its worker is leaving.
    Leaving,
    /// Its worker stays, but could not see how far it came.
    BrokenOff,
}

/// Why an input becomes no event. Nothing changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The run has ended.
    #[error("the run has ended: {outcome}")]
    RunEnded {
        /// Its outcome's kind: done, failed, cancelled, terminated.
        outcome: String,
    },
    /// A cancel came before.
    #[error("the run is already ending")]
    AlreadyEnding,
    /// A report for an attempt that no longer counts.
    #[error("attempt {attempt} of operation {op} no longer counts")]
    Superseded {
        /// The operation.
        op: OpId,
        /// Which attempt.
        attempt: Attempt,
    },
    /// The same report was accepted before.
    #[error("this report was accepted before")]
    Repeated,
    /// The same message id was accepted before with the same body.
    #[error("message {id} was accepted before as event {n}")]
    MessageRepeated {
        /// The sender's id.
        id: String,
        /// The event that it became.
        n: Seq,
    },
    /// The same message id was accepted before with another body.
    #[error("message id {id} was used before with another body; give a new id")]
    MessageConflict {
        /// The sender's id.
        id: String,
    },
    /// The flow has no such message, or its fields do not fit; says what was expected.
    #[error("{detail}")]
    Invalid {
        /// What was wrong and what was expected.
        detail: String,
    },
    /// A `now` message that the active states do not take.
    #[error("the run takes no {name} now; it is in {state}")]
    NotListening {
        /// The message type.
        name: String,
        /// The active state's path.
        state: String,
    },
    /// The mailbox is full.
    #[error("the mailbox holds {held} unread messages, the most it may")]
    MailboxFull {
        /// How many.
        held: usize,
    },
    /// The question was answered, expired or closed.
    #[error("question {op} is decided: {how}")]
    AlreadyDecided {
        /// The question.
        op: OpId,
        /// How.
        how: String,
    },
    /// An answer without a question id while not exactly one is open.
    #[error("{}", which(open))]
    WhichQuestion {
        /// The open ones.
        open: Vec<OpId>,
    },
    /// Nothing like it is open in this run.
    #[error("{what} {id} is not open in this run")]
    NotFound {
        /// What was looked for: question, message, operation.
        what: &'static str,
        /// Its id.
        id: String,
    },
    /// The answerer was shown something else.
    #[error("question {op} now shows {shown}, the answer is for something else; look again")]
    ShownDiffers {
        /// The question.
        op: OpId,
        /// The hash of what it shows.
        shown: String,
    },
    /// The answerer's role is not asked.
    #[error("question {op} is put to {to:?}, not to {role}")]
    WrongRole {
        /// The question.
        op: OpId,
        /// Who is asked.
        to: Vec<String>,
        /// Who answered.
        role: String,
    },
}

fn which(open: &[OpId]) -> String {
    if open.is_empty() {
        return "no question is open".to_owned();
    }
    let mut text = format!("name the question: {} are open", open.len());
    for (i, op) in open.iter().enumerate() {
        text.push_str(if i == 0 { ": " } else { ", " });
        text.push_str(&op.to_string());
    }
    text
}
