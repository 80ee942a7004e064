//! How a command ends when it does not succeed: an exit code for scripts, and for people what happened, to which run, and what to do.

use std::process::ExitCode;

use outlast_protocol::error::ErrorBody;
use outlast_protocol::{ApiError, Code};
use outlast_runtime::client::ClientError;
use outlast_runtime::host::{OpenError, SessionError, StoreError};

use crate::limits::RUN_CHARS_MAX;

/// Exit codes. Scripts rely on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Done,
    /// The run, or the command, failed.
    Failed,
    /// The command line, the flow or the input is wrong.
    Usage,
    /// Only a person can move the run.
    Waiting,
    /// The run was cancelled or terminated.
    Cancelled,
    /// Some items of a batch failed.
    SomeFailed,
    /// The time was over; the run goes on when somebody lets it.
    TimedOut,
    /// The store is busy or cannot be used.
    Unavailable,
    /// A signal asked for the end.
    Signal(u8),
}

impl Exit {
    /// Returns the number that the shell sees.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Waiting => 3,
            Exit::Cancelled => 4,
            Exit::SomeFailed => 5,
            Exit::TimedOut => 124,
            Exit::Unavailable => 75,
            Exit::Signal(signal) => 128 + signal,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}

/// Why a command did not succeed.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    /// None: everything was said already, or nobody listens.
    error: Option<ApiError>,
}

impl Failure {
    /// Makes a failure that is told.
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Failure {
        let code = match exit {
            Exit::Usage => Code::Invalid,
            Exit::Unavailable => Code::NotReady,
            Exit::Done
            | Exit::Failed
            | Exit::Waiting
            | Exit::Cancelled
            | Exit::SomeFailed
            | Exit::TimedOut
            | Exit::Signal(_) => Code::Internal,
        };
        Failure { exit, error: Some(ApiError::new(code, message)) }
    }

    /// Makes the failure of a wrong command line, file or input.
    pub(crate) fn usage(message: impl Into<String>) -> Failure {
        Failure::new(Exit::Usage, message)
    }

    /// Ends with a code and says nothing more.
    pub(crate) fn silent(exit: Exit) -> Failure {
        Failure { exit, error: None }
    }

    /// Names the run. Text of any length is no run's id: then the message says so, and repeats only its beginning.
    pub(crate) fn of_run(mut self, run: &str) -> Failure {
        let nameless = |error: &ApiError| error.run.is_none() && run.len() <= RUN_CHARS_MAX;
        self.error = self.error.map(|error| if nameless(&error) { error.of_run(run) } else { error });
        self
    }

    /// Says what to do next.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.error = self.error.map(|error| if error.hint.is_some() { error } else { error.hint(hint) });
        self
    }

    /// Returns the exit code.
    pub(crate) fn exit(&self) -> Exit {
        self.exit
    }

    /// Returns what is told.
    pub(crate) fn error(&self) -> Option<&ApiError> {
        self.error.as_ref()
    }

    /// Tells people, or a machine, on stderr; returns the exit code.
    pub(crate) fn report(self, json: bool) -> Exit {
        if let Some(error) = self.error {
            let text = if json { as_json(error) } else { as_text(&error) };
            crate::out::say(&text);
        }
        self.exit
    }
}

fn as_json(error: ApiError) -> String {
    serde_json::to_string(&ErrorBody { error }).unwrap_or_default()
}

fn as_text(error: &ApiError) -> String {
    let mut text = format!("error: {}", error.message);
    if let Some(run) = error.run.as_ref().filter(|run| !error.message.contains(run.as_str())) {
        text = format!("error: run {run}: {}", error.message);
    }
    if let Some(at) = &error.at {
        text = text + "\n  at: " + at;
    }
    if let Some(hint) = &error.hint {
        text = text + "\n  do: " + hint;
    }
    text
}

impl From<ApiError> for Failure {
    fn from(error: ApiError) -> Failure {
        let exit = match error.code {
            Code::Invalid
            | Code::InvalidCursor
            | Code::NotFound
            | Code::MethodNotAllowed
            | Code::Conflict
            | Code::TooLarge
            | Code::Unauthorized
            | Code::Forbidden => Exit::Usage,
            Code::Overloaded | Code::NotReady | Code::DiskFull => Exit::Unavailable,
            Code::RunEnded
            | Code::NotListening
            | Code::AlreadyDecided
            | Code::Superseded
            | Code::AlreadyEnding
            | Code::MailboxFull
            | Code::Internal => Exit::Failed,
        };
        Failure { exit, error: Some(error) }
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Failure {
        match error {
            ClientError::Refused(refused) => refused.into(),
            lost => Failure::new(Exit::Unavailable, lost.to_string()),
        }
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Failure {
        match error {
            OpenError::Engine(refused) => {
                let mut failure = Failure::from(refused);
                failure.exit = Exit::Unavailable;
                failure
            }
            OpenError::Busy { pid, .. } => Failure::new(Exit::Unavailable, error.to_string())
                .hint(format!("wait for process {pid} to end, or use another --data directory")),
            OpenError::Skew { .. } => Failure::new(Exit::Unavailable, error.to_string())
                .hint("use the same release everywhere, or another --data directory"),
            OpenError::Store(StoreError::Locked { pid, .. }) => {
                Failure::new(Exit::Unavailable, error.to_string())
                    .hint(format!("end process {pid} (its runs stay), or use another --data directory"))
            }
            other => Failure::new(Exit::Unavailable, other.to_string()),
        }
    }
}

impl From<SessionError> for Failure {
    fn from(error: SessionError) -> Failure {
        match error {
            SessionError::Call(error) => error.into(),
            SessionError::Open(error) => error.into(),
            other => Failure::new(Exit::Unavailable, other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_those_of_the_contract() {
        for (exit, code) in [
            (Exit::Done, 0),
            (Exit::Failed, 1),
            (Exit::Usage, 2),
            (Exit::Waiting, 3),
            (Exit::Cancelled, 4),
            (Exit::SomeFailed, 5),
            (Exit::TimedOut, 124),
            (Exit::Unavailable, 75),
            (Exit::Signal(2), 130),
            (Exit::Signal(15), 143),
        ] {
            assert_eq!(exit.code(), code, "{exit:?}");
        }
    }

    #[test]
    fn errors_name_the_run_and_what_to_do() {
        let error =
            ApiError::new(Code::Conflict, "it was started with other input").of_run("r-1").hint("pick an id");
        let text = as_text(&error);
        assert_eq!(text, "error: run r-1: it was started with other input\n  do: pick an id");
        assert_eq!(Failure::from(error.clone()).exit(), Exit::Usage);
        let json: serde_json::Value = serde_json::from_str(&as_json(error)).unwrap();
        assert_eq!(json["error"]["code"], "conflict");
    }
}
