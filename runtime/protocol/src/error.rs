//! One error shape on every surface: `{"error": {code, message, run?, at?, hint?}}`.

use serde::{Deserialize, Serialize};

/// What went wrong, by what the caller should do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// The request does not fit: mend it.
    Invalid,
    /// The cursor or event id belongs elsewhere.
    InvalidCursor,
    /// No or a wrong token.
    Unauthorized,
    /// The token does not allow this.
    Forbidden,
    /// No such run, question, flow.
    NotFound,
    /// There is something, but nothing that can be done in this way.
    MethodNotAllowed,
    /// The same id with other content.
    Conflict,
    /// The run has ended.
    RunEnded,
    /// The run takes no such message now.
    NotListening,
    /// The question is decided.
    AlreadyDecided,
    /// The attempt no longer counts.
    Superseded,
    /// A cancel came before.
    AlreadyEnding,
    /// The value is over a limit.
    TooLarge,
    /// The run's mailbox is full: later.
    MailboxFull,
    /// Too much at once: later.
    Overloaded,
    /// Starting or stopping: later.
    NotReady,
    /// The disk is nearly full.
    DiskFull,
    /// A bug or a failed disk here; the log says more.
    Internal,
}

impl Code {
    /// Returns the HTTP status.
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            Code::Invalid => 422,
            Code::InvalidCursor => 400,
            Code::Unauthorized => 401,
            Code::Forbidden => 403,
            Code::NotFound => 404,
            Code::MethodNotAllowed => 405,
            Code::Conflict
            | Code::RunEnded
            | Code::NotListening
            | Code::AlreadyDecided
            | Code::Superseded
            | Code::AlreadyEnding => 409,
            Code::TooLarge => 413,
            Code::MailboxFull => 429,
            Code::Overloaded | Code::NotReady | Code::DiskFull => 503,
            Code::Internal => 500,
        }
    }
}

/// An error as every surface shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// What went wrong.
    pub code: Code,
    /// For people: what happened and what was expected.
    pub message: String,
    /// The run that it concerns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The place: a state, a line of Flow, a field of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// What to do next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl ApiError {
    /// Makes an error from its code and message.
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> ApiError {
        ApiError { code, message: message.into(), run: None, at: None, hint: None }
    }

    /// Names the run.
    #[must_use]
    pub fn of_run(mut self, run: impl std::fmt::Display) -> ApiError {
        self.run = Some(run.to_string());
        self
    }

    /// Names the place.
    #[must_use]
    pub fn at(mut self, at: impl Into<String>) -> ApiError {
        self.at = Some(at.into());
        self
    }

    /// Says what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> ApiError {
        self.hint = Some(hint.into());
        self
    }
}

/// The body of an answer that is an error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// The error.
    pub error: ApiError,
}
