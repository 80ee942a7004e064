//! What callers are told: refusals of the kernel and failures of the store as errors of the contract.

use outlast_kernel::ids::{InvalidRunId, RunId};
use outlast_kernel::input::Refusal;
use outlast_protocol::{ApiError, Code};
use outlast_store::StoreError;

use super::committer::Refused;
use crate::limits::QUOTED_CHARS;

/// Says why an input became no event.
pub(crate) fn refusal(run: &RunId, refusal: &Refusal) -> ApiError {
    let error = |code| ApiError::new(code, refusal.to_string()).of_run(run);
    match refusal {
        Refusal::RunEnded { .. } => error(Code::RunEnded),
        Refusal::AlreadyEnding => error(Code::AlreadyEnding),
        Refusal::Superseded { .. } => error(Code::Superseded),
        Refusal::Repeated | Refusal::MessageRepeated { .. } | Refusal::MessageConflict { .. } => {
            error(Code::Conflict)
        }
        Refusal::Invalid { .. } => error(Code::Invalid),
        Refusal::NotListening { state, .. } => error(Code::NotListening).at(state.clone()),
        Refusal::MailboxFull { .. } => error(Code::MailboxFull).hint("send it again when the run took some"),
        Refusal::AlreadyDecided { op, .. } => error(Code::AlreadyDecided).at(op.to_string()),
        Refusal::WhichQuestion { open } if open.is_empty() => error(Code::NotFound),
        Refusal::WhichQuestion { .. } => error(Code::Invalid).at("question"),
        Refusal::NotFound { .. } => error(Code::NotFound),
        Refusal::ShownDiffers { op, .. } => error(Code::Conflict).at(op.to_string()),
        Refusal::WrongRole { op, .. } => error(Code::Forbidden).at(op.to_string()),
    }
}

/// Says that the store cannot be read.
pub(crate) fn store(error: &StoreError) -> ApiError {
    match error {
        StoreError::Full { .. } => {
            ApiError::new(Code::DiskFull, error.to_string()).hint("make room and try again")
        }
        StoreError::Invalid { .. } => ApiError::new(Code::InvalidCursor, error.to_string()),
        _ => ApiError::new(Code::Internal, error.to_string()),
    }
}

/// Says why something did not become durable.
pub(crate) fn refused(refused: &Refused) -> ApiError {
    match refused {
        Refused::Full(why) => ApiError::new(Code::DiskFull, why.clone()).hint("make room and try again"),
        Refused::Invalid(why) => ApiError::new(Code::Internal, why.clone()),
        Refused::Failed(why) => {
            ApiError::new(Code::Internal, format!("nobody knows whether it was kept: {why}"))
                .hint("the process stops; ask again when it is back")
        }
    }
}

/// Says that there is no such run.
pub(crate) fn no_run(run: impl std::fmt::Display) -> ApiError {
    ApiError::new(Code::NotFound, format!("there is no run {run}")).of_run(run)
}

/// Says that there is no such flow.
pub(crate) fn no_flow(name: &str) -> ApiError {
    let name: String = name.chars().take(QUOTED_CHARS).collect();
    ApiError::new(Code::NotFound, format!("no flow {name:?} is deployed"))
        .hint("deploy its file: outlast serve FILE, or POST /v1/flows")
}

/// Says that there is no such machine.
pub(crate) fn no_machine(hash: &str) -> ApiError {
    let hash: String = hash.chars().take(QUOTED_CHARS).collect();
    ApiError::new(Code::NotFound, format!("there is no machine {hash}"))
}

/// Says that there is no such schedule.
pub(crate) fn no_schedule(name: &str) -> ApiError {
    let name: String = name.chars().take(QUOTED_CHARS).collect();
    ApiError::new(Code::NotFound, format!("there is no schedule {name:?}"))
}

/// Says that the engine is stopping.
pub(crate) fn stopping() -> ApiError {
    ApiError::new(Code::NotReady, "the engine is stopping")
}

/// Says that a worker's session is not known.
pub(crate) fn no_session() -> ApiError {
    ApiError::new(Code::NotFound, "the session is not known: its lease ended or another took its place")
        .hint("register again and list the tasks in hand")
}

/// Reads a run id from a request.
///
/// # Errors
/// [`Code::Invalid`].
pub(crate) fn run_id(text: &str) -> Result<RunId, ApiError> {
    RunId::new(text).map_err(|error: InvalidRunId| ApiError::new(Code::Invalid, error.to_string()).at("id"))
}
